//! Requests and blocks, both ways.
//!
//! Every request has one answer: the block, or `Reject` (BEP 6). BEP 3 lets a choke void what is
//! outstanding; here messages overtake blocks that the link has accepted, so a downloader could not tell
//! which of them still come, and would ask for them twice.

use super::messages::Message;
use super::peer::QUEUE_MAX;
use super::{BitTorrent, Ctx, LinkId};
use crate::id::BlockIndex;

impl BitTorrent {
    // ---- asking ----

    /// Asks a peer for as much as it may owe.
    pub(super) fn fill(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        if peer.chokes_us || !peer.is_interesting {
            return;
        }
        let typical = ctx.holdings.block_len_typical();
        let limit = self.config.pipelining.limit(peer.down.at(ctx.now), typical);
        while peer.asked.len() < limit {
            let next = self.picker.choose(ctx.rng, ctx.holdings, &peer.have, &peer.asked);
            let Some(block) = next else { break };
            let is_again = self.picker.on_ask(ctx.holdings.held(), block);
            self.stats.requests += 1;
            self.stats.rerequests_endgame += u64::from(is_again);
            peer.on_asked(ctx.now, block);
            ctx.send(link, Message::Request { block }.encode());
        }
    }

    pub(super) fn fill_all(&mut self, ctx: &mut Ctx<'_>) {
        let links: Vec<LinkId> = self.links.peers.keys().copied().collect();
        links.into_iter().for_each(|link| self.fill(ctx, link));
    }

    /// When the last missing sub-piece has been asked for, all of them are asked of everybody.
    pub(super) fn watch_endgame(&mut self, ctx: &mut Ctx<'_>) {
        let is_endgame = self.picker.is_endgame();
        if is_endgame && !std::mem::replace(&mut self.is_endgame, is_endgame) {
            self.fill_all(ctx);
        }
        self.is_endgame = is_endgame;
    }

    /// What was asked of a peer that is gone may be asked elsewhere.
    pub(super) fn release(&mut self, ctx: &mut Ctx<'_>, asked: Vec<BlockIndex>) {
        if asked.is_empty() {
            return;
        }
        self.stats.rerequests_lost += asked.len() as u64;
        asked.into_iter().for_each(|block| self.picker.on_release(ctx.holdings.held(), block));
        self.fill_all(ctx);
    }

    pub(super) fn on_reject(&mut self, ctx: &mut Ctx<'_>, link: LinkId, block: BlockIndex) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        if peer.forget(block) {
            self.stats.rerequests_bad += 1;
            self.picker.on_release(ctx.holdings.held(), block);
            self.fill_all(ctx);
        }
    }

    /// A block came: it is no longer asked for anywhere.
    pub(super) fn on_block(
        &mut self,
        ctx: &mut Ctx<'_>,
        link: LinkId,
        block: BlockIndex,
        duplicate: bool,
    ) {
        let bytes = u64::from(ctx.holdings.block_len(block));
        if let Some(peer) = self.links.peers.get_mut(&link) {
            peer.on_block(ctx.now, bytes);
        }
        if duplicate {
            self.stats.duplicates += 1;
            // Held and asked for never go together: nothing to forget.
            return self.fill(ctx, link);
        }
        self.count_new_block(link, bytes);
        let whole = self.picker.on_held(ctx.holdings.held(), block);
        let mut freed = vec![link];
        for (&other, peer) in &mut self.links.peers {
            if !peer.forget(block) {
                continue;
            }
            self.picker.on_release(ctx.holdings.held(), block);
            if other != link {
                ctx.send(other, Message::Cancel { block }.encode());
                freed.push(other);
            }
        }
        if let Some(piece) = whole {
            self.on_piece(ctx, piece);
        }
        freed.into_iter().for_each(|link| self.fill(ctx, link));
    }

    fn count_new_block(&mut self, link: LinkId, bytes: u64) {
        let from = self.directory.peer(link).map(|peer| peer.id);
        self.stats.blocks_received += 1;
        match from == Some(self.setup.source) {
            true => self.stats.bytes_from_source += bytes,
            false => self.stats.bytes_from_peers += bytes,
        }
    }

    /// A piece is whole: it is announced, and peers that have it are less interesting.
    fn on_piece(&mut self, ctx: &mut Ctx<'_>, piece: u32) {
        let have = Message::Have { piece }.encode();
        let waiting = self.links.waiting.iter().filter(|(_, state)| state.has_greeted);
        for &link in self.links.peers.keys().chain(waiting.map(|(link, _)| link)) {
            ctx.send(link, have.clone());
        }
        for (&link, peer) in &mut self.links.peers {
            if peer.have.contains(piece) {
                peer.useful -= 1;
                if peer.useful == 0 && std::mem::take(&mut peer.is_interesting) {
                    ctx.send(link, Message::NotInterested.encode());
                }
            }
        }
    }

    /// Tells a peer whether it has something we lack, when that has changed.
    pub(super) fn tell_interest(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        let is_interesting = peer.useful > 0;
        if std::mem::replace(&mut peer.is_interesting, is_interesting) != is_interesting {
            let message = if is_interesting { Message::Interested } else { Message::NotInterested };
            ctx.send(link, message.encode());
        }
    }

    // ---- serving ----

    pub(super) fn on_request(&mut self, ctx: &mut Ctx<'_>, link: LinkId, block: BlockIndex) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        // Only whole pieces are served, as they alone are announced.
        let is_here = self.picker.have().contains(self.pieces.of(block));
        let fits = peer.queue.len() < QUEUE_MAX && block < ctx.holdings.blocks();
        if peer.unchoked_at.is_none() || !is_here || !fits {
            return ctx.send(link, Message::Reject { block }.encode());
        }
        peer.queue.push_back(block);
        self.serve(ctx, link);
    }

    pub(super) fn on_cancel(&mut self, ctx: &mut Ctx<'_>, link: LinkId, block: BlockIndex) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        if let Some(at) = peer.queue.iter().position(|&queued| queued == block) {
            peer.queue.remove(at);
            ctx.send(link, Message::Reject { block }.encode());
        }
    }

    /// Serves a peer's requests in order while its link takes blocks.
    pub(super) fn serve(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        while !peer.is_full
            && let Some(&block) = peer.queue.front()
        {
            if !ctx.try_send_block(link, block, Vec::new()) {
                peer.is_full = true;
                return;
            }
            peer.queue.pop_front();
            peer.up.add(ctx.now, u64::from(ctx.holdings.block_len(block)));
            self.stats.blocks_sent += 1;
        }
    }

    /// A choked peer's requests are rejected.
    pub(super) fn choke(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        peer.unchoked_at = None;
        ctx.send(link, Message::Choke.encode());
        for block in std::mem::take(&mut peer.queue) {
            ctx.send(link, Message::Reject { block }.encode());
        }
    }
}
