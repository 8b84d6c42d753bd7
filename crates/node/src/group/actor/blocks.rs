//! Blocks and the hashes they are verified with.

use super::Actor;
use crate::clock;
use crate::error::GroupError;
use crate::event::Event;
use crate::group::messages::Message;
use crate::link::HeldBlock;
use crate::store::{Learned, PageError, WriteError, Written};
use anabranch_proto::id::{BlockIndex, LinkId};
use anabranch_proto::link::frame::Channel;
use anabranch_proto::overlay::Input;

impl Actor {
    pub(super) fn on_content(&mut self, link: LinkId, bytes: &[u8]) {
        match Message::decode(bytes) {
            Some(Message::InfoWanted) => {
                if let Some(signed) = self.shared.signed.get() {
                    let info = Message::Info(signed.clone());
                    self.links.send(link, Channel::Content, info.encode());
                }
            }
            Some(Message::PageWanted(id)) => {
                let page = Message::Page(id, self.store.page(id));
                self.links.send(link, Channel::Content, page.encode());
            }
            Some(Message::Page(id, page)) => {
                let now = clock::now();
                if !self.pages.on_page(now, link, id, page.is_some()) {
                    return;
                }
                match page.map(|bytes| self.store.accept_page(id, &bytes)) {
                    Some(Ok(learned)) => self.on_learned(&learned),
                    Some(Err(PageError::Corrupt)) => self.ban(link),
                    Some(Err(PageError::Storage(error))) => self.fail_storage(&error),
                    Some(Err(PageError::Unknown)) | None => {}
                }
                self.pages.ask(now, &self.store, &self.links);
                self.tell_links();
            }
            Some(Message::Info(_)) | None => {}
        }
    }

    pub(super) fn on_learned(&mut self, learned: &Learned) {
        if learned.is_empty() {
            return;
        }
        learned.apply(&mut self.holdings);
        self.handle(Input::Learned);
        for (link, held) in std::mem::take(&mut self.held) {
            self.on_held(link, held);
        }
    }

    /// Stores a block that waits in memory, or lets it wait on.
    pub(super) fn on_held(&mut self, link: LinkId, held: HeldBlock) {
        if self.holdings.verifiable().contains(held.block) {
            self.shared.release(held.len);
            self.store_held(link, held);
        } else if held.block < self.holdings.blocks() {
            self.held.push((link, held));
        } else {
            self.shared.release(held.len);
            self.on_bad_block(link, held.block, true);
        }
    }

    /// A link is gone: the member will not hear of it again, so neither of its blocks.
    pub(super) fn forget_held(&mut self, link: LinkId) {
        let (gone, kept) =
            std::mem::take(&mut self.held).into_iter().partition(|(of, _)| *of == link);
        self.held = kept;
        let gone: Vec<(LinkId, HeldBlock)> = gone;
        gone.iter().for_each(|(_, held)| self.shared.release(held.len));
    }

    pub(super) fn store_held(&mut self, link: LinkId, held: HeldBlock) {
        let Ok(mut writer) = self.store.begin(held.block, held.len, &held.proof) else {
            return self.on_bad_block(link, held.block, true);
        };
        let written = writer.write(&held.bytes).and_then(|()| writer.finish());
        match written {
            Ok(written) => self.on_block(link, held.block, held.header, held.len, written),
            Err(WriteError::Corrupt) => self.on_bad_block(link, held.block, true),
            Err(WriteError::Storage(error)) => self.fail_storage(&error),
            Err(WriteError::Contradiction(text)) => self.fail(GroupError::Integrity { text }),
        }
    }

    pub(super) fn on_block(
        &mut self,
        link: LinkId,
        block: BlockIndex,
        header: Vec<u8>,
        len: u32,
        written: Written,
    ) {
        let from = self.links.entry(link).map(|entry| entry.link.peer);
        let progress = &mut self.meter.progress;
        if written.duplicate {
            progress.duplicates += u64::from(len);
        } else {
            self.unflushed = true;
            progress.bytes_done += u64::from(len);
            match from == Some(self.shared.base.source) {
                true => progress.from_source += u64::from(len),
                false => progress.from_peers += u64::from(len),
            }
            self.holdings.hold(block);
        }
        let Written { duplicate, learned, complete } = written;
        learned.apply(&mut self.holdings);
        self.handle(Input::Block { link, block, header, duplicate });
        if !learned.is_empty() {
            self.on_learned(&learned);
            self.pages.ask(clock::now(), &self.store, &self.links);
        }
        if complete {
            self.finish_if_complete();
        }
    }

    pub(super) fn on_bad_block(&mut self, link: LinkId, block: BlockIndex, corrupt: bool) {
        self.handle(Input::BadBlock { link, block, corrupt });
        if corrupt {
            self.ban(link);
        }
    }

    /// Never links this peer again.
    pub(super) fn ban(&mut self, link: LinkId) {
        let Some(entry) = self.links.entry(link) else { return };
        let peer = entry.link.peer;
        if self.shared.ban(peer) {
            tracing::warn!(%peer, "a peer sent corrupt data and is banned");
            self.shared.tell(Event::PeerBanned { peer });
        }
        self.links.fail(link);
    }

    pub(super) fn warn_unreadable(&mut self, block: BlockIndex, error: &std::io::Error) {
        tracing::warn!(block, %error, "a block cannot be read");
        if !std::mem::replace(&mut self.warned, true) {
            let text = format!("parts of the content can no longer be served: {error}");
            self.shared.tell(Event::Warning { text });
        }
    }
}
