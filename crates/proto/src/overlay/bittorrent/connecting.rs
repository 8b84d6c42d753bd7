//! Coming by peers, and losing them: announcements, dials, handshakes.

use super::messages::{Message, Reason};
use super::peer::{Peer, Waiting};
use super::{BitTorrent, Ctx, FailReason, LinkClass, LinkId, Outcome, Output, PeerId, PeerInfo};
use crate::summary::Exact;
use crate::time::Duration;

/// A link on which nobody shakes hands is closed after this long.
const IDLE: Duration = Duration::from_secs(30);
/// Announcements in a row without an answer after which a member that knows nobody gives up.
const FAILURES_MAX: u32 = 20;

impl BitTorrent {
    // ---- the tracker ----

    /// Announces this member when it is time to.
    pub(super) fn announce(&mut self, ctx: &mut Ctx<'_>) {
        if !self.announcer.is_due(&self.config, ctx.now, self.links.peers.len()) {
            return;
        }
        if self.announcer.is_waiting() {
            return self.on_announce_failed(ctx);
        }
        if let Some(tracker) = &mut self.tracker {
            // The tracker's own host needs no message to ask it.
            let peers = tracker.sample(&self.config, ctx.now, ctx.rng, &self.setup.me.id);
            peers.into_iter().for_each(|peer| self.known.add(peer));
            self.announcer.on_answer(ctx.now, self.config.announce_interval);
            return;
        }
        self.announcer.on_begun(ctx.now);
        match self.directory.link(&self.setup.source) {
            Some(link) if !self.closing.contains(&link) => self.send_announcement(ctx, link),
            Some(_) => {}
            None => match self.tracker_info.clone() {
                Some(peer) => ctx.out.push(Output::Connect { peer, class: LinkClass::Reliable }),
                None => self.on_announce_failed(ctx),
            },
        }
    }

    fn send_announcement(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let reason = match self.done_at {
            Some(done) if !self.is_outcome_noted => Reason::Completed(Outcome {
                peer: self.setup.me.id,
                elapsed_ms: done.since(self.started).as_millis() as u64,
                bytes_from_source: self.stats.bytes_from_source,
                bytes_from_peers: self.stats.bytes_from_peers,
                bytes_before: self.bytes_before,
            }),
            _ => Reason::Present,
        };
        self.told_outcome = matches!(reason, Reason::Completed(_));
        ctx.send(link, Message::Announce { reason }.encode());
    }

    pub(super) fn on_announce_failed(&mut self, ctx: &mut Ctx<'_>) {
        let failures = self.announcer.on_failed(ctx.now);
        let is_alone = self.links.peers.is_empty() && self.known.is_empty_but(&self.setup.source);
        if failures >= FAILURES_MAX && is_alone && self.done_at.is_none() {
            ctx.out.push(Output::Failed { reason: FailReason::Unreachable });
        }
    }

    /// At the tracker: a member announces itself.
    pub(super) fn on_announce(&mut self, ctx: &mut Ctx<'_>, link: LinkId, reason: Reason) {
        let Some(info) = self.directory.peer(link).cloned() else { return };
        let Some(tracker) = &mut self.tracker else {
            self.stats.messages_bad += 1;
            return;
        };
        match reason {
            Reason::Stopped => return tracker.on_stopped(&info.id),
            Reason::Completed(mut outcome) => {
                outcome.peer = info.id;
                if self.outcomes.len() < super::OUTCOMES_MAX && self.outcomes.insert(info.id) {
                    ctx.out.push(Output::Outcome(outcome));
                }
            }
            Reason::Present => {}
        }
        tracker.on_present(ctx.now, info.clone());
        let mut peers = tracker.sample(&self.config, ctx.now, ctx.rng, &info.id);
        // The source announces itself as any seed does.
        let at = crate::random::below(ctx.rng, peers.len() + 1);
        peers.insert(at, self.setup.me.clone());
        peers.truncate(self.config.peers_told.max(1));
        let interval_s = self.config.announce_interval.as_secs() as u32;
        ctx.send(link, Message::Peers { interval_s, peers }.encode());
    }

    /// The tracker's answer.
    pub(super) fn on_peers(
        &mut self,
        ctx: &mut Ctx<'_>,
        link: LinkId,
        interval_s: u32,
        peers: Vec<PeerInfo>,
    ) {
        let is_tracker = self.directory.peer(link).is_some_and(|peer| peer.id == self.setup.source);
        if !is_tracker || !self.announcer.is_waiting() {
            self.stats.messages_bad += 1;
            return;
        }
        self.announcer.on_answer(ctx.now, Duration::from_secs(interval_s.into()));
        self.is_outcome_noted |= self.told_outcome;
        let me = self.setup.me.id;
        peers.into_iter().filter(|peer| peer.id != me).for_each(|peer| self.known.add(peer));
        self.dial(ctx);
        // As a tracker's connection is: closed once it has answered, unless it serves a peer too.
        if self.links.waiting.get(&link).is_some_and(|state| !state.has_greeted) {
            self.hang_up(ctx, link);
        }
    }

    // ---- links ----

    /// Dials known peers while there are fewer than a member dials for.
    pub(super) fn dial(&mut self, ctx: &mut Ctx<'_>) {
        if self.leaving {
            return;
        }
        while self.links.peers.len() + self.known.dialling() < self.config.peers_dialled {
            let (directory, links, closing) = (&self.directory, &self.links, &self.closing);
            let fits = |peer: &PeerInfo| match directory.link(&peer.id) {
                Some(link) => !links.peers.contains_key(&link) && !closing.contains(&link),
                None => peer.contact.reachable,
            };
            let is_done = self.done_at.is_some();
            let Some(peer) = self.known.draw(ctx.rng, ctx.now, is_done, fits) else { return };
            match self.directory.link(&peer.id) {
                Some(link) => self.greet(ctx, link),
                None => ctx.out.push(Output::Connect { peer, class: LinkClass::Reliable }),
            }
        }
    }

    fn greet(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(state) = self.links.waiting.get_mut(&link) else { return };
        if !std::mem::replace(&mut state.has_greeted, true) {
            let (piece_blocks, have) = (self.pieces.per_piece(), Exact::of(self.picker.have()));
            ctx.send(link, Message::Handshake { piece_blocks, have }.encode());
        }
    }

    pub(super) fn on_link_up(&mut self, ctx: &mut Ctx<'_>, link: LinkId, peer: PeerInfo) {
        let (id, is_tracker) = (peer.id, peer.id == self.setup.source);
        if is_tracker {
            self.tracker_info = Some(peer.clone());
        }
        if peer.contact.reachable {
            self.known.add(peer.clone());
        }
        self.directory.add(link, peer);
        self.links.waiting.insert(link, Waiting { since: ctx.now, has_greeted: false });
        if self.known.is_banned(&id) {
            return self.hang_up(ctx, link);
        }
        if is_tracker && self.announcer.is_waiting() {
            self.send_announcement(ctx, link);
        }
        if self.known.is_dialled(&id) {
            self.greet(ctx, link);
        }
    }

    pub(super) fn on_handshake(
        &mut self,
        ctx: &mut Ctx<'_>,
        link: LinkId,
        piece_blocks: u32,
        have: &Exact,
    ) {
        let Some(id) = self.directory.peer(link).map(|peer| peer.id) else { return };
        if !self.links.waiting.contains_key(&link) {
            self.stats.messages_bad += 1;
            return;
        }
        let have = have.bitmap(self.pieces.count());
        let Some(have) = have.filter(|_| piece_blocks == self.pieces.per_piece()) else {
            self.stats.messages_bad += 1;
            return self.hang_up(ctx, link);
        };
        if self.links.peers.len() >= self.config.peers_max {
            return self.hang_up(ctx, link);
        }
        self.greet(ctx, link);
        self.links.waiting.remove(&link);
        self.known.on_connected(&id);
        self.picker.add_peer(&have);
        let peer = Peer::new(ctx.now, id, have, self.picker.have());
        self.links.peers.insert(link, peer);
        self.choker.add(ctx.rng, link);
        self.tell_interest(ctx, link);
        self.part_with_seed(ctx, link);
        self.rechoke(ctx, false);
    }

    /// Two that have everything have nothing to say to each other.
    pub(super) fn part_with_seed(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(peer) = self.links.peers.get(&link) else { return };
        if !peer.is_seed() {
            return;
        }
        self.known.on_seed(&peer.id);
        if self.done_at.is_some() {
            self.hang_up(ctx, link);
        }
    }

    /// Closes a link; it counts for nothing from now on.
    pub(super) fn hang_up(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if self.closing.insert(link) {
            ctx.out.push(Output::Disconnect { link });
            self.lose_link(ctx, link);
        }
    }

    pub(super) fn on_link_down(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if !self.closing.remove(&link) {
            self.lose_link(ctx, link);
        }
        let Some(peer) = self.directory.remove(link) else { return };
        if peer.id == self.setup.source && self.announcer.is_waiting() {
            self.on_announce_failed(ctx);
        }
    }

    fn lose_link(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if let Some(id) = self.directory.peer(link).map(|peer| peer.id) {
            let was_dialled = self.known.is_dialled(&id);
            if was_dialled || self.links.peers.contains_key(&link) {
                self.known.on_lost(ctx.now, &id);
            }
        }
        self.links.waiting.remove(&link);
        if let Some(peer) = self.links.peers.remove(&link) {
            self.picker.remove_peer(&peer.have);
            self.choker.remove(link);
            self.release(ctx, peer.asked);
            if peer.unchoked_at.is_some() && peer.is_interested {
                self.rechoke(ctx, false);
            }
        }
    }

    pub(super) fn on_connect_failed(&mut self, ctx: &mut Ctx<'_>, peer: PeerId) {
        if self.known.is_dialled(&peer) {
            self.known.on_lost(ctx.now, &peer);
        }
        if peer == self.setup.source && self.announcer.is_waiting() {
            self.on_announce_failed(ctx);
        }
        self.dial(ctx);
    }

    /// Closes links that nobody needs.
    pub(super) fn close_idle(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now;
        let is_idle = |state: &Waiting| now.since(state.since) >= IDLE;
        let idle: Vec<LinkId> = self
            .links
            .waiting
            .iter()
            .filter(|(link, state)| is_idle(state) && !self.closing.contains(link))
            .map(|(link, _)| *link)
            .collect();
        idle.into_iter().for_each(|link| self.hang_up(ctx, link));
    }
}
