//! BitTorrent: pieces asked of many peers, rarest first, and served tit for tat (Cohen, *Incentives
//! Build Robustness in BitTorrent*, 2003; BEP 3). A rival to compare with, as strong as its
//! description allows.
//!
//! ```text
//!   member ── Announce ──▶ tracker (a role of the source) ── Peers: 50 at random ──▶ member
//!   member ◀── Handshake(bitfield), Have, Interested, Choke/Unchoke ──▶ peer
//!   member ── Request, Cancel ──▶ peer ── sub-pieces, Reject ──▶ member
//! ```
//!
//! Parts, each its own file: pieces and sub-pieces (`pieces`), which to ask next (`picker`), whom to
//! serve (`choker`), the tracker and its client (`tracker`), whom to dial (`known`), connections
//! (`connecting`, `peer`), requests and blocks (`transfer`).
//!
//! Deviations: a sub-piece is a block of the group, and is verified by itself when it comes (the piece is
//! still what is announced and served); a peer with a corrupt block is banned at once, where a client
//! of the time had to guess. Requests are answered with `Reject` (BEP 6), see `transfer`. The tracker
//! is reached over a link, with the set-up of a link. No PEX, DHT or super-seeding. `Stopped` is
//! only sent when there is a link to the tracker.
//!
//! Invariants: a missing block is asked of one peer until the endgame; a held block of none; at most
//! `upload_slots` interested peers are unchoked. Costs: per member a bit per piece and peer; control
//! of a request per sub-piece, and of a `Have` per piece and peer. Page: `docs/bittorrent.md`.

mod choker;
mod config;
mod connecting;
mod known;
mod messages;
mod peer;
mod picker;
mod pieces;
mod rate;
mod tracker;
mod transfer;

pub use config::{Config, Pipelining, Priority, SeedUnchoke};

use super::directory::Directory;
use super::{Command, Ctx, FailReason, Holdings, Input, Outcome, Output, Overlay, Setup, Stats};
use crate::id::{BlockIndex, LinkClass, LinkId, PeerId, PeerInfo};
use crate::random::RngExt;
use crate::time::{Duration, Time};
use choker::{Candidate, Choker};
use known::KnownPeers;
use messages::{Message, Reason};
use peer::Connections;
use picker::Picker;
use pieces::Pieces;
use std::collections::BTreeSet;
use tracker::{Announcer, Tracker};

/// How often a member looks after dials, announcements and idle links.
const TICK: Duration = Duration::from_secs(1);
/// Members whose outcome the tracker remembers.
const OUTCOMES_MAX: usize = 1 << 20;

/// A member of a BitTorrent swarm. See [the module](self).
pub struct BitTorrent {
    config: Config,
    setup: Setup,
    started: Time,
    bytes_before: u64,
    directory: Directory,
    links: Connections,
    /// Links that we have closed and that are not down yet.
    closing: BTreeSet<LinkId>,
    known: KnownPeers,
    pieces: Pieces,
    picker: Picker,
    is_endgame: bool,
    choker: Choker,
    choke_at: Time,
    /// At the source: who is in the swarm.
    tracker: Option<Tracker>,
    tracker_info: Option<PeerInfo>,
    announcer: Announcer,
    told_outcome: bool,
    is_outcome_noted: bool,
    outcomes: BTreeSet<PeerId>,
    tick_at: Option<Time>,
    done_at: Option<Time>,
    leaving: bool,
    stats: Stats,
}

impl BitTorrent {
    /// A member that has not started.
    pub fn new(setup: Setup, config: Config) -> BitTorrent {
        let pieces = Pieces::new(0, 1, config.piece_len);
        let tracker_info = setup.bootstrap.iter().find(|peer| peer.id == setup.source).cloned();
        BitTorrent {
            started: Time::ZERO,
            bytes_before: 0,
            directory: Directory::default(),
            links: Connections::default(),
            closing: BTreeSet::new(),
            known: KnownPeers::default(),
            picker: Picker::new(pieces, &config, &Holdings::uniform(1, 0)),
            pieces,
            is_endgame: false,
            choker: Choker::default(),
            choke_at: Time::FAR,
            tracker: setup.is_source().then(Tracker::default),
            tracker_info,
            announcer: Announcer::new(&config),
            told_outcome: false,
            is_outcome_noted: false,
            outcomes: BTreeSet::new(),
            tick_at: None,
            done_at: None,
            leaving: false,
            stats: Stats::default(),
            config,
            setup,
        }
    }

    // ---- life ----

    fn on_start(&mut self, ctx: &mut Ctx<'_>) {
        self.started = ctx.now;
        let (holdings, held) = (ctx.holdings, ctx.holdings.held());
        self.bytes_before = held.iter().map(|block| u64::from(holdings.block_len(block))).sum();
        let typical = holdings.block_len_typical();
        self.pieces = Pieces::new(holdings.blocks(), typical, self.config.piece_len);
        self.picker = Picker::new(self.pieces, &self.config, holdings);
        // Who is named beside the tracker is a peer, as in a link that carries peers.
        let bootstrap = std::mem::take(&mut self.setup.bootstrap);
        bootstrap.into_iter().for_each(|peer| self.known.add(peer));
        // Rounds of different members do not fall together.
        let offset = ctx.rng.random_range(0..TICK.as_millis() as u64);
        self.tick_at = Some(ctx.now + Duration::from_millis(offset));
        self.choke_at = ctx.now + self.config.choke_interval;
        self.finish_if_complete(ctx);
        self.announce(ctx);
        if self.tracker_info.is_none() || self.setup.is_source() {
            self.dial(ctx);
        }
    }

    fn finish_if_complete(&mut self, ctx: &mut Ctx<'_>) {
        if self.done_at.is_some() || !ctx.holdings.is_complete() {
            return;
        }
        self.done_at = Some(ctx.now);
        ctx.out.push(Output::Done);
        if !self.setup.is_source() {
            self.announcer.hurry(ctx.now);
            self.announce(ctx);
        }
        let links: Vec<LinkId> = self.links.peers.keys().copied().collect();
        links.into_iter().for_each(|link| self.part_with_seed(ctx, link));
        self.rechoke(ctx, false);
    }

    fn on_leave(&mut self, ctx: &mut Ctx<'_>) {
        self.leaving = true;
        self.tick_at = None;
        if let Some(link) = self.directory.link(&self.setup.source)
            && !self.closing.contains(&link)
        {
            ctx.send(link, Message::Announce { reason: Reason::Stopped }.encode());
        }
        ctx.out.push(Output::Left);
    }

    fn on_deadline(&mut self, ctx: &mut Ctx<'_>) {
        if self.tick_at.is_none_or(|at| ctx.now < at) {
            return;
        }
        self.tick_at = Some(ctx.now + TICK);
        if ctx.now >= self.choke_at {
            self.choke_at = ctx.now + self.config.choke_interval;
            self.rechoke(ctx, true);
        }
        self.known.expire(ctx.now);
        self.announce(ctx);
        self.dial(ctx);
        self.close_idle(ctx);
    }

    // ---- messages ----

    fn on_message(&mut self, ctx: &mut Ctx<'_>, link: LinkId, bytes: &[u8]) {
        let Some(message) = Message::decode(bytes) else {
            self.stats.messages_bad += 1;
            return;
        };
        if self.closing.contains(&link) {
            return;
        }
        match message {
            Message::Announce { reason } => self.on_announce(ctx, link, reason),
            Message::Peers { interval_s, peers } => self.on_peers(ctx, link, interval_s, peers),
            Message::Handshake { piece_blocks, have } => {
                self.on_handshake(ctx, link, piece_blocks, &have);
            }
            message if self.links.peers.contains_key(&link) => {
                self.on_peer_message(ctx, link, message);
            }
            _ => self.stats.messages_bad += 1,
        }
    }

    fn on_peer_message(&mut self, ctx: &mut Ctx<'_>, link: LinkId, message: Message) {
        match message {
            Message::Choke => self.set_chokes_us(link, true),
            Message::Unchoke => {
                self.set_chokes_us(link, false);
                self.fill(ctx, link);
            }
            Message::Interested => self.on_interest(ctx, link, true),
            Message::NotInterested => self.on_interest(ctx, link, false),
            Message::Have { piece } => self.on_have(ctx, link, piece),
            Message::Request { block } => self.on_request(ctx, link, block),
            Message::Cancel { block } => self.on_cancel(ctx, link, block),
            Message::Reject { block } => self.on_reject(ctx, link, block),
            // Handled above, whoever sends them.
            Message::Announce { .. } | Message::Peers { .. } | Message::Handshake { .. } => {}
        }
    }

    fn set_chokes_us(&mut self, link: LinkId, chokes: bool) {
        if let Some(peer) = self.links.peers.get_mut(&link) {
            peer.chokes_us = chokes;
        }
    }

    fn on_interest(&mut self, ctx: &mut Ctx<'_>, link: LinkId, is_interested: bool) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        let has_changed =
            std::mem::replace(&mut peer.is_interested, is_interested) != is_interested;
        let frees_slot = !is_interested && peer.unchoked_at.is_some();
        let has_slot = (self.stats.receivers_now as usize) < self.config.upload_slots;
        // Otherwise a peer waits for the next round.
        if has_changed && (frees_slot || (is_interested && has_slot)) {
            self.rechoke(ctx, false);
        }
    }

    fn on_have(&mut self, ctx: &mut Ctx<'_>, link: LinkId, piece: u32) {
        let Some(peer) = self.links.peers.get_mut(&link) else { return };
        if piece >= self.pieces.count() {
            self.stats.messages_bad += 1;
            return;
        }
        if !peer.have.insert(piece) {
            return;
        }
        peer.useful += u32::from(!self.picker.have().contains(piece));
        self.picker.add_piece(piece);
        self.tell_interest(ctx, link);
        self.fill(ctx, link);
        self.part_with_seed(ctx, link);
    }

    // ---- chokes ----

    /// Decides anew whom to serve.
    fn rechoke(&mut self, ctx: &mut Ctx<'_>, is_round: bool) {
        let peers = self.candidates(ctx.now);
        if is_round {
            self.choker.next_round(&self.config, &peers);
        }
        let unchoked = match self.done_at {
            None => self.choker.choose(&self.config, &peers),
            Some(_) => self.choker.choose_as_seed(&self.config, ctx.rng, ctx.now, &peers, is_round),
        };
        for Candidate { link, unchoked_at, .. } in peers {
            match (unchoked_at.is_some(), unchoked.contains(&link)) {
                (true, false) => self.choke(ctx, link),
                (false, true) => self.unchoke(ctx, link),
                _ => {}
            }
        }
    }

    fn unchoke(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if let Some(peer) = self.links.peers.get_mut(&link) {
            peer.unchoked_at = Some(ctx.now);
            ctx.send(link, Message::Unchoke.encode());
        }
    }

    fn candidates(&self, now: Time) -> Vec<Candidate> {
        let is_done = self.done_at.is_some();
        let peers = self.links.peers.iter();
        peers
            .map(|(&link, peer)| Candidate {
                link,
                is_interested: peer.is_interested,
                is_snubbing: !is_done && peer.is_snubbing(now, self.config.snub_after),
                unchoked_at: peer.unchoked_at,
                is_waiting: !peer.queue.is_empty(),
                rate: if is_done { peer.up.at(now) } else { peer.down.at(now) },
            })
            .collect()
    }

    fn on_bad_block(&mut self, ctx: &mut Ctx<'_>, link: LinkId, block: BlockIndex, corrupt: bool) {
        self.on_reject(ctx, link, block);
        if corrupt {
            self.stats.corrupt += 1;
            if let Some(id) = self.directory.peer(link).map(|peer| peer.id) {
                self.known.ban(id);
            }
            self.hang_up(ctx, link);
        }
    }
}

impl Overlay for BitTorrent {
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        if self.leaving {
            return;
        }
        match input {
            Input::Start => self.on_start(ctx),
            Input::LinkUp { link, peer, contact, .. } => {
                self.on_link_up(ctx, link, PeerInfo { id: peer, contact });
            }
            Input::LinkDown { link, .. } => self.on_link_down(ctx, link),
            Input::ConnectFailed { peer } => self.on_connect_failed(ctx, peer),
            Input::Message { link, bytes } => self.on_message(ctx, link, &bytes),
            Input::Block { link, block, duplicate, .. } => {
                self.on_block(ctx, link, block, duplicate);
                self.finish_if_complete(ctx);
            }
            Input::BadBlock { link, block, corrupt } => {
                self.on_bad_block(ctx, link, block, corrupt);
            }
            Input::Room { link } => {
                if let Some(peer) = self.links.peers.get_mut(&link) {
                    peer.is_full = false;
                }
                self.serve(ctx, link);
            }
            Input::Learned => {
                self.fill_all(ctx);
                self.finish_if_complete(ctx);
            }
            Input::Deadline => self.on_deadline(ctx),
            Input::Command(Command::Leave) => return self.on_leave(ctx),
            // Files neither appear nor expire.
            Input::Produced { .. } | Input::Evicted { .. } => {}
        }
        self.watch_endgame(ctx);
        let peers = self.links.peers.values();
        self.stats.senders_now =
            peers.clone().filter(|p| !p.chokes_us && p.is_interesting).count() as u32;
        self.stats.receivers_now =
            peers.filter(|p| p.unchoked_at.is_some() && p.is_interested).count() as u32;
    }

    fn next_deadline(&self) -> Option<Time> {
        self.tick_at
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn check_invariants(&self, holdings: &Holdings) -> Result<(), String> {
        if self.leaving || self.tick_at.is_none() {
            return Ok(());
        }
        let peers = &self.links.peers;
        let asked = peers.values().map(|peer| (&peer.have, peer.asked.as_slice()));
        self.picker.check_invariants(holdings.held(), asked)?;
        for (link, peer) in peers {
            if peer.asked.len() > Pipelining::MOST || peer.queue.len() > peer::QUEUE_MAX {
                return Err(format!("{} requests outstanding at {link:?}", peer.asked.len()));
            }
            if peer.useful != peer.have.count_without(self.picker.have()) {
                return Err(format!("{link:?} has not {} useful pieces", peer.useful));
            }
        }
        if peers.len() > self.config.peers_max {
            return Err(format!("{} peers", peers.len()));
        }
        if self.stats.receivers_now as usize > self.config.upload_slots {
            return Err(format!("{} peers are served at once", self.stats.receivers_now));
        }
        if self.done_at.is_some() && peers.values().any(|peer| !peer.asked.is_empty()) {
            return Err("complete, and still asking for blocks".into());
        }
        Ok(())
    }

    fn contacts(&self) -> Vec<PeerInfo> {
        let mut contacts: Vec<PeerInfo> = self.tracker_info.iter().cloned().collect();
        contacts.extend(self.directory.iter().map(|(_, peer)| peer.clone()));
        let mut seen = BTreeSet::from([self.setup.me.id]);
        contacts.retain(|peer| peer.contact.reachable && seen.insert(peer.id));
        contacts
    }
}

#[cfg(test)]
mod tests;
