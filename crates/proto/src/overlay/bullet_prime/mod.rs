//! Bullet′: a mesh in which every member pulls disjoint blocks from many peers, over a random
//! control tree (Bullet §3.2).
//!
//! ```text
//!   source ── push: each block once, round robin ──▶ its children in the control tree
//!   member ◀── RanSub: random members and what they have ── control tree
//!   member ── Peer ──▶ sender ── PeerAccept(have), Diff… ──▶ member
//!   member ── Request ──▶ sender ── blocks (in_front, wasted) ──▶ member
//! ```
//!
//! Parts, each its own file: the receiving side (`download`) with request order ([`order`]) and
//! flow control ([`outstanding`]); the sending side (`upload`); the source's push (`push`);
//! whom to peer with (`candidates`) and how many peers to have ([`limits`]). The control tree and
//! RanSub are shared: [`crate::membership`].
//!
//! Invariants: a missing block is asked for at one sender, a second request is counted; a held
//! block is never asked for; queues and peer sets keep their bounds. Costs: per member a bit per
//! block and sender; control of about 120 bytes per block plus 0.8 kB/s. Page: `docs/bullet-prime.md`.

mod candidates;
mod config;
mod control;
mod download;
pub mod limits;
mod messages;
pub mod order;
pub mod outstanding;
mod peering;
mod push;
#[cfg(test)]
mod testing;
mod upload;

pub use config::{Config, InFront};

use super::directory::Directory;
use super::{Command, Ctx, Holdings, Input, Output, Overlay, Setup, Stats};
use crate::id::{BlockIndex, LinkClass, LinkId, PeerId, PeerInfo};
use crate::membership::ransub::{RanSub, Scope};
use crate::membership::tree::Tree;
use crate::summary::{Exact, Summary};
use crate::time::{Duration, Time, earliest};
use candidates::Candidates;
use download::{Download, Withdrawn};
use limits::PeerLimit;
use messages::{Entry, Header, Message};
use push::Push;
use std::collections::{BTreeMap, BTreeSet};
use upload::Upload;

/// How often a waiting member looks after slow senders.
const TICK_BUSY: Duration = Duration::from_millis(250);
/// How often others look after idle links and unanswered questions.
const TICK_QUIET: Duration = Duration::from_secs(1);
/// How long the root may take to note an outcome before it is told again.
const OUTCOME_RETRY: Duration = Duration::from_secs(2);
/// With so few blocks left per sender, each block that comes is a reason to look after the others.
const END_BLOCKS: usize = 6;
/// Members whose outcome the root remembers.
const OUTCOMES_MAX: usize = 1 << 20;

/// A member of a Bullet′ group. See [the module](self).
pub struct BulletPrime {
    config: Config,
    setup: Setup,
    started: Time,
    directory: Directory,
    /// Links that neither tree nor peering uses, and since when.
    unused: BTreeMap<LinkId, Time>,
    tree: Tree,
    ransub: RanSub<Entry>,
    download: Download,
    upload: Upload,
    push: Option<Push>,
    candidates: Candidates,
    sender_limit: PeerLimit,
    receiver_limit: PeerLimit,
    fan_out: PeerLimit,
    judged_at: Time,
    tick_at: Option<Time>,
    bytes_before: u64,
    done_at: Option<Time>,
    /// The root that has noted our outcome.
    noted_by: Option<PeerId>,
    outcome_at: Option<Time>,
    outcomes: BTreeSet<PeerId>,
    leaving: bool,
    stats: Stats,
}

impl BulletPrime {
    /// A member that has not started.
    pub fn new(setup: Setup, config: Config) -> BulletPrime {
        let bounds = (config.peers_min, config.peers_max);
        let limit = |bounds| PeerLimit::new(config.peers_initial, bounds);
        let senders_max = config.senders_max.clamp(1, config.peers_max);
        let tree =
            Tree::new(config.tree.clone(), setup.me.clone(), setup.source, setup.bootstrap.clone());
        BulletPrime {
            started: Time::ZERO,
            directory: Directory::default(),
            unused: BTreeMap::new(),
            tree,
            ransub: RanSub::new(config.ransub.clone(), Scope::All),
            download: Download::new(config.clone(), 0),
            upload: Upload::new(config.in_front),
            push: None,
            candidates: Candidates::default(),
            sender_limit: limit((config.peers_min.min(senders_max), senders_max)),
            receiver_limit: limit(bounds),
            fan_out: PeerLimit::new(config.tree.root_children_max, bounds),
            judged_at: Time::ZERO,
            tick_at: None,
            bytes_before: 0,
            done_at: None,
            noted_by: None,
            outcome_at: None,
            outcomes: BTreeSet::new(),
            leaving: false,
            stats: Stats::default(),
            config,
            setup,
        }
    }

    // ---- life ----

    fn on_start(&mut self, ctx: &mut Ctx<'_>) {
        self.started = ctx.now;
        self.judged_at = ctx.now;
        self.download = Download::new(self.config.clone(), ctx.holdings.blocks());
        let held = ctx.holdings.held();
        self.bytes_before = held.iter().map(|b| u64::from(ctx.holdings.block_len(b))).sum();
        if self.setup.is_source() {
            self.push = Some(Push::new(ctx.holdings.blocks(), self.fan_out.max()));
        }
        self.tick_at = Some(ctx.now + TICK_QUIET);
        self.with_tree(ctx, |tree, ctx| tree.start(ctx));
        self.finish_if_complete(ctx);
    }

    fn finish_if_complete(&mut self, ctx: &mut Ctx<'_>) {
        if self.done_at.is_some() || !ctx.holdings.is_complete() {
            return;
        }
        self.done_at = Some(ctx.now);
        ctx.out.push(Output::Done);
        let senders: Vec<LinkId> = self.download.senders().keys().copied().collect();
        for link in senders {
            self.download.remove_sender(link);
            ctx.send(link, Message::PeerLeave.encode());
        }
        self.report_outcome(ctx);
    }

    fn on_leave(&mut self, ctx: &mut Ctx<'_>) {
        self.leaving = true;
        self.tick_at = None;
        self.with_tree(ctx, |tree, ctx| tree.leave(ctx));
        self.ransub.detach();
        for &link in self.upload.receivers().keys() {
            ctx.send(link, Message::PeerDrop.encode());
        }
        for &link in self.download.senders().keys() {
            ctx.send(link, Message::PeerLeave.encode());
        }
        self.download = Download::new(self.config.clone(), ctx.holdings.blocks());
        ctx.out.push(Output::Left);
    }

    // ---- messages ----

    fn on_message(&mut self, ctx: &mut Ctx<'_>, link: LinkId, bytes: &[u8]) {
        let Some(message) = Message::decode(bytes) else {
            self.stats.messages_bad += 1;
            return;
        };
        match message {
            Message::Request { blocks, more } => {
                self.upload.on_request(ctx, &mut self.stats, link, &blocks, more);
            }
            Message::Diff { blocks } => {
                let count = ctx.holdings.blocks();
                let known: Vec<BlockIndex> = blocks.into_iter().filter(|&b| b < count).collect();
                self.download.on_diff(link, &known);
                self.download.fill(ctx, &mut self.stats, link);
            }
            Message::Peer => self.on_peer(ctx, link),
            Message::PeerAccept { have } => self.on_peer_accept(ctx, link, &have),
            Message::PeerRefuse => self.on_peer_refuse(ctx, link),
            Message::PeerLeave => {
                self.upload.remove(ctx, link);
            }
            Message::PeerDrop => self.retire_sender(ctx, link),
            Message::Report { incoming } => self.upload.on_report(link, incoming),
            Message::Cancel { block } => self.upload.on_cancel(ctx, link, block),
            Message::Withdrawn { block } => self.on_withdrawn(ctx, link, block),
            Message::Ready { have } => self.on_ready(ctx, link, &have),
            Message::Tree(message) => {
                self.widen_push(ctx);
                self.with_tree(ctx, |tree, ctx| tree.handle_message(ctx, link, message));
            }
            Message::RanSub(message) => {
                let own = self.own_entry(ctx.holdings);
                let mut out = Vec::new();
                let (now, own) = (ctx.now, own.as_ref());
                self.ransub.set_news(self.has_long_paths(ctx));
                self.ransub.handle_message(now, ctx.rng, own, link, message, &mut out);
                self.on_ransub(ctx, out);
            }
            Message::Reverse { target, from } => self.on_reverse(ctx, target, from),
            Message::Outcome(outcome) => self.on_outcome(ctx, link, outcome),
            Message::OutcomeNoted => {
                self.noted_by = self.directory.peer(link).map(|peer| peer.id);
            }
        }
    }

    // ---- blocks ----

    fn on_block(
        &mut self,
        ctx: &mut Ctx<'_>,
        link: LinkId,
        block: BlockIndex,
        header: &[u8],
        duplicate: bool,
    ) {
        self.download.on_block(ctx, link, block, Header::decode(header));
        if duplicate {
            self.stats.duplicates += 1;
        } else {
            self.count_new_block(ctx, link, block);
            let download = &self.download;
            // Who sent it has it, and so has a sender that told us of it.
            let has = |to: LinkId| to == link || download.is_available(to, block);
            self.upload.on_held(ctx, block, has);
        }
        self.download.fill(ctx, &mut self.stats, link);
        self.finish_if_complete(ctx);
        if self.done_at.is_none() && self.download.is_endgame(ctx.holdings.held()) {
            let left = ctx.holdings.blocks() - ctx.holdings.held().count();
            if left as usize <= END_BLOCKS * self.download.senders().len() {
                self.download.rebalance(ctx, &mut self.stats);
            }
        }
    }

    fn count_new_block(&mut self, ctx: &Ctx<'_>, link: LinkId, block: BlockIndex) {
        let len = u64::from(ctx.holdings.block_len(block));
        let from_source =
            self.directory.peer(link).is_some_and(|peer| peer.id == self.setup.source);
        self.stats.blocks_received += 1;
        match from_source {
            true => self.stats.bytes_from_source += len,
            false => self.stats.bytes_from_peers += len,
        }
    }

    fn on_bad_block(&mut self, ctx: &mut Ctx<'_>, link: LinkId, block: BlockIndex, corrupt: bool) {
        self.download.on_lacking(link, block);
        if self.download.on_withdrawn(link, block) != Withdrawn::NotOwed {
            self.stats.rerequests_bad += 1;
        }
        if corrupt {
            self.stats.corrupt += 1;
            ctx.out.push(Output::Disconnect { link });
            self.lose_sender(ctx, link);
        }
        self.download.fill_all(ctx, &mut self.stats);
    }

    fn on_withdrawn(&mut self, ctx: &mut Ctx<'_>, link: LinkId, block: BlockIndex) {
        match self.download.on_withdrawn(link, block) {
            Withdrawn::NotOwed => return,
            Withdrawn::CalledBack => self.stats.rerequests_slow += 1,
            Withdrawn::Refused => self.stats.rerequests_lost += 1,
        }
        self.download.fill_all_but(ctx, &mut self.stats, link);
    }

    fn on_room(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        if let Some(push) = &mut self.push {
            push.on_room(link);
        }
        self.upload.on_room(ctx, &mut self.stats, link);
        self.pump(ctx);
    }

    // ---- the source's push ----

    fn on_ready(&mut self, ctx: &mut Ctx<'_>, link: LinkId, have: &Exact) {
        let Some(held) = have.bitmap(ctx.holdings.blocks()) else {
            self.stats.messages_bad += 1;
            return;
        };
        if let Some(push) = &mut self.push
            && self.tree.children().any(|child| child == link)
        {
            push.on_ready(link, &held);
            self.pump(ctx);
        }
    }

    fn pump(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(push) = &mut self.push {
            push.pump(ctx, &mut self.stats);
        }
    }

    /// Whether this member offers itself as a sender: a source does once everything is out.
    fn is_peer(&self) -> bool {
        !self.leaving && self.push.as_ref().is_none_or(Push::is_finished)
    }

    fn own_entry(&self, holdings: &Holdings) -> Option<Entry> {
        self.is_peer().then(|| Entry {
            info: self.setup.me.clone(),
            summary: Summary::of(holdings.held(), self.config.summary),
        })
    }

    fn on_deadline(&mut self, ctx: &mut Ctx<'_>) {
        if self.tree.next_deadline().is_some_and(|at| ctx.now >= at) {
            self.with_tree(ctx, |tree, ctx| tree.handle_deadline(ctx));
        }
        if self.ransub.next_deadline().is_some_and(|at| ctx.now >= at) {
            let own = self.own_entry(ctx.holdings);
            let mut out = Vec::new();
            self.ransub.handle_deadline(ctx.now, ctx.rng, own.as_ref(), &mut out);
            self.on_ransub(ctx, out);
        }
        if self.outcome_at.is_some_and(|at| ctx.now >= at) {
            self.report_outcome(ctx);
        }
        if self.tick_at.is_some_and(|at| ctx.now >= at) {
            self.on_tick(ctx);
        }
    }

    fn on_tick(&mut self, ctx: &mut Ctx<'_>) {
        let busy = self.download.is_waiting();
        self.tick_at = Some(ctx.now + if busy { TICK_BUSY } else { TICK_QUIET });
        self.candidates.expire(ctx.now);
        self.download.judge_progress(ctx.holdings.held());
        self.download.rebalance(ctx, &mut self.stats);
        self.close_unused(ctx);
        // Distributes judge; without any, nobody should stay with dead weight.
        if ctx.now.since(self.judged_at) >= self.config.judge_interval * 3 / 2 {
            self.prune_peers(ctx);
        }
        self.seek_senders(ctx);
    }
}

impl Overlay for BulletPrime {
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
            Input::Block { link, block, header, duplicate } => {
                self.on_block(ctx, link, block, &header, duplicate);
            }
            Input::BadBlock { link, block, corrupt } => {
                self.on_bad_block(ctx, link, block, corrupt);
            }
            Input::Room { link } => self.on_room(ctx, link),
            Input::Learned => {
                self.download.fill_all(ctx, &mut self.stats);
                self.finish_if_complete(ctx);
            }
            Input::Deadline => self.on_deadline(ctx),
            Input::Command(Command::Leave) => self.on_leave(ctx),
            // Files neither appear nor expire.
            Input::Produced { .. } | Input::Evicted { .. } => {}
        }
        self.stats.senders_now = self.download.active_count() as u32;
        self.stats.receivers_now = self.upload.receivers().len() as u32;
    }

    fn next_deadline(&self) -> Option<Time> {
        if self.leaving {
            return None;
        }
        let control = earliest(self.tree.next_deadline(), self.ransub.next_deadline());
        earliest(control, earliest(self.outcome_at, self.tick_at))
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn check_invariants(&self, holdings: &Holdings) -> Result<(), String> {
        self.tree.check_invariants()?;
        self.download.check_invariants(holdings.held())?;
        self.upload.check_invariants()?;
        let (senders, receivers) = (self.download.active_count(), self.upload.receivers().len());
        if senders > self.senders_max() || receivers > self.config.peers_max {
            return Err(format!("{senders} senders and {receivers} receivers are too many"));
        }
        if self.done_at.is_some() && self.download.is_waiting() {
            return Err("complete, and still asking for blocks".into());
        }
        Ok(())
    }

    fn contacts(&self) -> Vec<PeerInfo> {
        let lineage = self.tree.lineage();
        let mut contacts = vec![lineage.root.clone()];
        contacts.extend(lineage.successors.iter().cloned());
        contacts.extend(self.directory.iter().map(|(_, peer)| peer.clone()));
        let mut seen = BTreeSet::new();
        contacts.retain(|peer| peer.contact.reachable && seen.insert(peer.id));
        contacts
    }
}
