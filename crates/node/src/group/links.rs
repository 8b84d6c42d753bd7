//! The links of a group, as its actor knows them.

use super::{Connection, LINKS_MAX, Shared};
use crate::clock;
use crate::link::hello::link_config;
use crate::link::{self, Link, LinkEvent};
use anabranch_proto::id::{BlockIndex, LinkId, PeerId};
use anabranch_proto::link::Session;
use anabranch_proto::link::frame::Channel;
use anabranch_proto::overlay::{self, DownReason, Measured};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::AbortHandle;

/// Events of a link that the member has not been told of yet.
const EARLY_MAX: usize = 256;

/// One link.
pub(super) struct Entry {
    pub(super) link: Arc<Link>,
    /// Whether the member knows of it.
    pub(super) told: bool,
    /// What came before the member knew.
    early: Vec<LinkEvent>,
    closing: bool,
    task: AbortHandle,
}

/// The links of a group, up or going down.
pub(crate) struct Links {
    shared: Arc<Shared>,
    entries: BTreeMap<LinkId, Entry>,
    next: u32,
}

impl Links {
    pub(crate) fn new(shared: Arc<Shared>) -> Links {
        Links { shared, entries: BTreeMap::new(), next: 0 }
    }

    /// Takes a connection in and starts its task. `None` when the peer is linked already and the
    /// older link stays, or when it may not be linked.
    pub(super) fn add(&mut self, connection: Connection) -> Option<LinkId> {
        let Connection { secured, contact, dialled } = connection;
        let (me, peer) = (self.shared.identity.id(), secured.peer);
        if self.shared.is_banned(&peer) || self.entries.len() >= LINKS_MAX + 16 {
            return None;
        }
        if let Some(older) = self.to(&peer) {
            // Dialled by both: both keep the one that the smaller key dialled. Dialled twice by
            // the same: it knows why.
            let smaller_dialled = if dialled { me < peer } else { peer < me };
            if self.entries[&older].link.dialled != dialled && !smaller_dialled {
                return None;
            }
            self.close(older);
        }
        let id = LinkId(self.next);
        self.next += 1;
        let session = Session::new(link_config(), clock::now());
        let link = Link::new(id, peer, contact, dialled, session);
        let (stream, seal, open) = (secured.stream, secured.seal, secured.open);
        let task = link::run(link.clone(), self.shared.clone(), stream, seal, open);
        let task = tokio::spawn(task).abort_handle();
        let entry = Entry { link, told: false, early: Vec::new(), closing: false, task };
        self.entries.insert(id, entry);
        self.shared.links_now.store(self.entries.len(), Ordering::Relaxed);
        Some(id)
    }

    /// The link to `peer` that is not going down.
    pub(super) fn to(&self, peer: &PeerId) -> Option<LinkId> {
        let live = self.entries.iter().filter(|(_, entry)| !entry.closing);
        live.filter(|(_, entry)| entry.link.peer == *peer).map(|(&id, _)| id).next()
    }

    pub(super) fn entry(&self, link: LinkId) -> Option<&Entry> {
        self.entries.get(&link)
    }

    /// Keeps an event back until the member knows of the link; a link with too many is closed.
    pub(super) fn keep_back(&mut self, link: LinkId, event: LinkEvent) {
        let Some(entry) = self.entries.get_mut(&link) else { return };
        entry.early.push(event);
        if entry.early.len() > EARLY_MAX {
            self.fail(link);
        }
    }

    /// The member is told of the link now: gives what was kept back.
    pub(super) fn tell(&mut self, link: LinkId) -> Vec<LinkEvent> {
        let Some(entry) = self.entries.get_mut(&link) else { return Vec::new() };
        entry.told = true;
        std::mem::take(&mut entry.early)
    }

    /// Links that the member does not know of.
    pub(super) fn untold(&self) -> Vec<LinkId> {
        let untold = self.entries.iter().filter(|(_, entry)| !entry.told && !entry.closing);
        untold.map(|(&id, _)| id).collect()
    }

    /// Links that are up, oldest first.
    pub(super) fn live(&self) -> Vec<LinkId> {
        self.entries.iter().filter(|(_, entry)| !entry.closing).map(|(&id, _)| id).collect()
    }

    pub(super) fn send(&self, link: LinkId, channel: Channel, bytes: Vec<u8>) {
        if let Some(entry) = self.entries.get(&link) {
            entry.link.with(|session| session.send(channel, bytes));
        }
    }

    /// Closes a link in good order.
    pub(super) fn close(&mut self, link: LinkId) {
        if let Some(entry) = self.entries.get_mut(&link) {
            entry.closing = true;
            entry.link.with(Session::close);
        }
    }

    /// Closes a link whose far end cannot be trusted.
    pub(super) fn fail(&mut self, link: LinkId) {
        if let Some(entry) = self.entries.get_mut(&link) {
            entry.closing = true;
            entry.link.with(|session| session.fail(DownReason::Broken));
        }
    }

    /// A link's task has ended.
    pub(super) fn remove(&mut self, link: LinkId) -> Option<Entry> {
        let entry = self.entries.remove(&link);
        self.shared.links_now.store(self.entries.len(), Ordering::Relaxed);
        entry
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Ends what did not end by itself.
    pub(super) fn abort_all(&mut self) {
        self.entries.values().for_each(|entry| entry.task.abort());
        self.entries.clear();
    }
}

impl overlay::Links for Links {
    fn try_send_block(
        &mut self,
        link: LinkId,
        block: BlockIndex,
        len: u32,
        header: Vec<u8>,
    ) -> bool {
        let entry = self.entries.get(&link);
        entry.is_some_and(|entry| entry.link.with_if(|s| s.try_send_block(block, len, header)))
    }

    fn want_room(&mut self, link: LinkId) {
        if let Some(entry) = self.entries.get(&link) {
            entry.link.with(Session::want_room);
        }
    }

    fn measured(&self, link: LinkId) -> Measured {
        let entry = self.entries.get(&link);
        entry.map(|entry| entry.link.look(Session::measured)).unwrap_or_default()
    }
}
