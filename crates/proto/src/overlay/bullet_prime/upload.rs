//! The sending side: receivers' requests, served first in first out per receiver, and the diffs
//! that keep them up to date (Bullet §4.3.3.3, §4.4.3).
//!
//! A diff goes out when its receiver has nothing requested here, or asked for news; a block is told
//! to a receiver once.

use super::messages::{BLOCKS_MAX, Have, Header, Message};
use crate::id::{BlockIndex, LinkId};
use crate::link::estimate::WindowRate;
use crate::overlay::{Ctx, Stats};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};

/// Most requests queued for one receiver; beyond it they are refused.
const QUEUE_MAX: usize = 256;

#[derive(Debug)]
struct Queued {
    block: BlockIndex,
    at: Time,
    in_front: u32,
}

/// A peer this member sends to.
#[derive(Debug)]
pub(super) struct Receiver {
    queue: VecDeque<Queued>,
    /// The link refused the front block; it will say when it has room.
    blocked: bool,
    /// Since when the pipe would have taken a block that was not there.
    idle_since: Option<Time>,
    untold: Vec<BlockIndex>,
    wants_news: bool,
    /// Bytes accepted by its link since the peers were last judged.
    pub(super) judged: WindowRate,
    /// What it says comes in at all, in bytes per second.
    pub(super) incoming: Option<f64>,
    pub(super) since: Time,
}

/// The sending side of a member.
#[derive(Debug, Default)]
pub(super) struct Upload {
    receivers: BTreeMap<LinkId, Receiver>,
}

impl Upload {
    pub(super) fn receivers(&self) -> &BTreeMap<LinkId, Receiver> {
        &self.receivers
    }

    pub(super) fn receivers_mut(&mut self) -> &mut BTreeMap<LinkId, Receiver> {
        &mut self.receivers
    }

    /// Takes a receiver and tells it what is held.
    pub(super) fn accept(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let receiver = Receiver {
            queue: VecDeque::new(),
            blocked: false,
            idle_since: Some(ctx.now),
            untold: Vec::new(),
            wants_news: true,
            judged: WindowRate::new(ctx.now),
            incoming: None,
            since: ctx.now,
        };
        self.receivers.insert(link, receiver);
        ctx.send(link, Message::PeerAccept { have: Have::of(ctx.holdings.held()) }.encode());
    }

    pub(super) fn remove(&mut self, link: LinkId) -> bool {
        self.receivers.remove(&link).is_some()
    }

    pub(super) fn on_report(&mut self, link: LinkId, incoming: u32) {
        if let Some(receiver) = self.receivers.get_mut(&link) {
            receiver.incoming = Some(f64::from(incoming) * 1_000.0);
        }
    }

    /// A receiver asks for blocks.
    pub(super) fn on_request(
        &mut self,
        ctx: &mut Ctx<'_>,
        stats: &mut Stats,
        link: LinkId,
        blocks: &[BlockIndex],
        more: bool,
    ) {
        let Some(receiver) = self.receivers.get_mut(&link) else {
            // It was dropped while the request was under way; the drop told it so.
            return;
        };
        receiver.wants_news |= more;
        for &block in blocks {
            let in_front = receiver.queue.len() as u32;
            if !ctx.holdings.held().contains(block) || receiver.queue.len() >= QUEUE_MAX {
                ctx.send(link, Message::Withdrawn { block }.encode());
                continue;
            }
            receiver.queue.push_back(Queued { block, at: ctx.now, in_front });
        }
        self.serve(ctx, stats, link);
        self.tell(ctx, link);
    }

    /// A receiver no longer wants a block; it is given back unless it is on its way.
    pub(super) fn on_cancel(&mut self, ctx: &mut Ctx<'_>, link: LinkId, block: BlockIndex) {
        let Some(receiver) = self.receivers.get_mut(&link) else { return };
        let before = receiver.queue.len();
        receiver.queue.retain(|queued| queued.block != block);
        if receiver.queue.len() < before {
            ctx.send(link, Message::Withdrawn { block }.encode());
        }
    }

    /// The link has room.
    pub(super) fn on_room(&mut self, ctx: &mut Ctx<'_>, stats: &mut Stats, link: LinkId) {
        let Some(receiver) = self.receivers.get_mut(&link) else { return };
        receiver.blocked = false;
        if receiver.queue.is_empty() {
            receiver.idle_since = receiver.idle_since.or(Some(ctx.now));
        }
        self.serve(ctx, stats, link);
        self.tell(ctx, link);
    }

    fn serve(&mut self, ctx: &mut Ctx<'_>, stats: &mut Stats, link: LinkId) {
        let Some(receiver) = self.receivers.get_mut(&link) else { return };
        while let Some(front) = receiver.queue.front()
            && !receiver.blocked
        {
            let wasted_us = match receiver.idle_since {
                Some(idle) => -(ctx.now.since(idle).as_micros() as i64),
                None => ctx.now.since(front.at).as_micros() as i64,
            };
            let header = Header { in_front: Some(front.in_front), wasted_us };
            if !ctx.try_send_block(link, front.block, header.encode()) {
                receiver.blocked = true;
                return;
            }
            receiver.idle_since = None;
            receiver.judged.add(u64::from(ctx.holdings.block_len(front.block)));
            stats.blocks_sent += 1;
            receiver.queue.pop_front();
            if receiver.queue.is_empty() {
                // To learn when the pipe begins to idle.
                ctx.links.want_room(link);
                receiver.blocked = true;
            }
        }
    }

    /// A block is held now: receivers that do not have it are told, or will be.
    pub(super) fn on_held(
        &mut self,
        ctx: &mut Ctx<'_>,
        block: BlockIndex,
        has: impl Fn(LinkId) -> bool,
    ) {
        let mut tell = Vec::new();
        for (&link, receiver) in &mut self.receivers {
            if !has(link) {
                receiver.untold.push(block);
                tell.push(link);
            }
        }
        tell.into_iter().for_each(|link| self.tell(ctx, link));
    }

    /// Sends a diff when one is due.
    fn tell(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        let Some(receiver) = self.receivers.get_mut(&link) else { return };
        if receiver.untold.is_empty() || !(receiver.queue.is_empty() || receiver.wants_news) {
            return;
        }
        receiver.wants_news = false;
        let rest = receiver.untold.split_off(receiver.untold.len().min(BLOCKS_MAX));
        let blocks = std::mem::replace(&mut receiver.untold, rest);
        ctx.send(link, Message::Diff { blocks }.encode());
    }

    pub(super) fn check_invariants(&self) -> Result<(), String> {
        match self.receivers.iter().find(|(_, receiver)| receiver.queue.len() > QUEUE_MAX) {
            Some((link, _)) => Err(format!("more than {QUEUE_MAX} requests queued for {link:?}")),
            None => Ok(()),
        }
    }
}
