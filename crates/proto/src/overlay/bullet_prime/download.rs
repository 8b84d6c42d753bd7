//! The receiving side: what each sender has, what is asked of whom, and what goes elsewhere when a
//! sender is lost or slow (Bullet §4.3.3).
//!
//! A missing block is in one of two states: free, or asked for at exactly one sender (its
//! *holder*). A second request for the same block exists only when it is counted: in the endgame,
//! or because its holder stopped delivering. Slow holders are asked to cancel first; a block they
//! withdraw costs nothing.

use super::Config;
mod rebalance;

use super::messages::{BLOCKS_MAX, Header, Message};
use super::order::{Offer, choose};
use super::outstanding::{Outstanding, Sample};
use crate::id::{BlockIndex, LinkId};
use crate::link::estimate::{ServiceRate, WindowRate};
use crate::overlay::{Ctx, Stats};
use crate::summary::Bitmap;
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};

/// A source this many times faster than the other senders is used like them.
const WIDER_UPLINK: f64 = 2.0;
/// Most requests beyond the controller's number.
const CATCH_UP_MAX: usize = 1;

#[derive(Debug)]
struct Ask {
    block: BlockIndex,
    at: Time,
    cancelled_at: Option<Time>,
}

/// A peer this member receives from.
#[derive(Debug)]
pub(super) struct Sender {
    available: Bitmap,
    /// In the order asked; senders serve in this order.
    asks: VecDeque<Ask>,
    outstanding: Outstanding,
    /// Whether more than the limit could have been asked for at the last request.
    limited: bool,
    /// Whether the sender knows that news are wanted.
    more_asked: bool,
    service: ServiceRate,
    last_block_at: Time,
    /// The peering has ended; what is on its way still comes.
    retired: bool,
    /// This is the source itself: see [`Download::spares`].
    is_source: bool,
    /// Bytes since the peers were last judged.
    pub(super) judged: WindowRate,
    pub(super) since: Time,
}

/// What it means that a sender will not deliver a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Withdrawn {
    /// It did not owe it.
    NotOwed,
    /// It was asked to give it back.
    CalledBack,
    /// It ended the peering, or cannot serve it.
    Refused,
}

/// The receiving side of a member.
#[derive(Debug)]
pub(super) struct Download {
    config: Config,
    senders: BTreeMap<LinkId, Sender>,
    /// How many senders have each block.
    rarity: Vec<u16>,
    /// When each block became known, as a running number; 0: not yet.
    encountered: Vec<u32>,
    encounters: u32,
    requested: Bitmap,
    holders: BTreeMap<BlockIndex, LinkId>,
    /// Blocks asked for a second time: their other holders.
    doubled: BTreeMap<BlockIndex, LinkId>,
    /// Requests beyond the controller's number, for a member that has fallen behind.
    catch_up: usize,
}

impl Download {
    pub(super) fn new(config: Config, blocks: u32) -> Download {
        Download {
            config,
            senders: BTreeMap::new(),
            rarity: vec![0; blocks as usize],
            encountered: vec![0; blocks as usize],
            encounters: 0,
            requested: Bitmap::new(blocks),
            holders: BTreeMap::new(),
            doubled: BTreeMap::new(),
            catch_up: 0,
        }
    }

    // ---- senders ----

    pub(super) fn add_sender(
        &mut self,
        now: Time,
        link: LinkId,
        available: Bitmap,
        is_source: bool,
    ) {
        if self.renew_sender(link, &available) {
            return;
        }
        available.iter().for_each(|block| self.count_available(block));
        let config = &self.config;
        let outstanding = Outstanding::new(
            config.outstanding_initial,
            config.outstanding_max,
            config.outstanding_adapt,
        );
        let sender = Sender {
            available,
            asks: VecDeque::new(),
            outstanding,
            limited: false,
            more_asked: false,
            service: ServiceRate::default(),
            last_block_at: now,
            retired: false,
            is_source,
            judged: WindowRate::new(now),
            since: now,
        };
        self.senders.insert(link, sender);
    }

    /// A peering that had ended begins again: what is still on its way is kept.
    fn renew_sender(&mut self, link: LinkId, available: &Bitmap) -> bool {
        let Some(sender) = self.senders.get_mut(&link) else { return false };
        sender.retired = false;
        sender.more_asked = false;
        let known: Vec<BlockIndex> = available.iter_without(&[&sender.available]).collect();
        self.on_diff(link, &known);
        true
    }

    /// A peering has ended in good order: nothing more is asked of the sender, and it is forgotten
    /// once all it owes has come or been given back.
    pub(super) fn retire_sender(&mut self, link: LinkId) {
        if let Some(sender) = self.senders.get_mut(&link) {
            sender.retired = true;
            self.forget_if_settled(link);
        }
    }

    fn forget_if_settled(&mut self, link: LinkId) {
        if self.senders.get(&link).is_some_and(|sender| sender.retired && sender.asks.is_empty()) {
            self.remove_sender(link);
        }
    }

    /// A sender is gone; what it owed is free again. Gives how many blocks that were.
    pub(super) fn remove_sender(&mut self, link: LinkId) -> usize {
        let Some(sender) = self.senders.remove(&link) else { return 0 };
        for block in sender.available.iter() {
            self.rarity[block as usize] -= 1;
        }
        sender.asks.iter().for_each(|ask| self.free(ask.block, link));
        sender.asks.len()
    }

    pub(super) fn senders(&self) -> &BTreeMap<LinkId, Sender> {
        &self.senders
    }

    pub(super) fn senders_mut(&mut self) -> &mut BTreeMap<LinkId, Sender> {
        &mut self.senders
    }

    /// Senders whose peering has not ended.
    pub(super) fn active(&self) -> impl Iterator<Item = (&LinkId, &Sender)> {
        self.senders.iter().filter(|(_, sender)| !sender.retired)
    }

    pub(super) fn active_count(&self) -> usize {
        self.active().count()
    }

    pub(super) fn is_active(&self, link: LinkId) -> bool {
        self.senders.get(&link).is_some_and(|sender| !sender.retired)
    }

    pub(super) fn is_sender(&self, link: LinkId) -> bool {
        self.senders.contains_key(&link)
    }

    /// Whether the sender has the block, as far as it said.
    pub(super) fn is_available(&self, link: LinkId, block: BlockIndex) -> bool {
        self.senders.get(&link).is_some_and(|sender| sender.available.contains(block))
    }

    /// How many blocks that are not held this sender has.
    pub(super) fn useful(&self, link: LinkId, held: &Bitmap) -> u32 {
        self.senders.get(&link).map_or(0, |sender| sender.available.count_without(held))
    }

    fn count_available(&mut self, block: BlockIndex) {
        self.rarity[block as usize] += 1;
        if self.encountered[block as usize] == 0 {
            self.encounters += 1;
            self.encountered[block as usize] = self.encounters;
        }
    }

    /// A sender has these blocks too.
    pub(super) fn on_diff(&mut self, link: LinkId, blocks: &[BlockIndex]) {
        let Some(sender) = self.senders.get_mut(&link) else { return };
        sender.more_asked = false;
        let new: Vec<BlockIndex> =
            blocks.iter().copied().filter(|&block| sender.available.insert(block)).collect();
        new.into_iter().for_each(|block| self.count_available(block));
    }

    // ---- requests ----

    /// Asks every sender for as much as it may owe.
    pub(super) fn fill_all(&mut self, ctx: &mut Ctx<'_>, stats: &mut Stats) {
        let mut links: Vec<LinkId> = self.senders.keys().copied().collect();
        crate::random::shuffle(ctx.rng, &mut links);
        links.into_iter().for_each(|link| self.fill(ctx, stats, link));
    }

    /// The same, `last` after all others: it gave blocks back.
    pub(super) fn fill_all_but(&mut self, ctx: &mut Ctx<'_>, stats: &mut Stats, last: LinkId) {
        let links: Vec<LinkId> =
            self.senders.keys().copied().filter(|link| *link != last).collect();
        links.into_iter().chain([last]).for_each(|link| self.fill(ctx, stats, link));
    }

    /// Whether this sender is only asked for what no other has: a source that is no faster than
    /// the others is spared, so that it need not send everything again to everyone. A source
    /// behind a wider uplink is used like any other sender.
    fn spares(&self, link: LinkId) -> bool {
        let Some(sender) = self.senders.get(&link) else { return false };
        let mut others = self.active().filter(|(_, other)| !other.is_source).peekable();
        if !sender.is_source || !self.config.spare_source || others.peek().is_none() {
            return false;
        }
        let rates: Vec<f64> = others.filter_map(|(_, other)| other.service.rate()).collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        sender.service.rate().is_none_or(|rate| rate < mean * WIDER_UPLINK)
    }

    /// Asks one sender for as much as it may owe.
    pub(super) fn fill(&mut self, ctx: &mut Ctx<'_>, stats: &mut Stats, link: LinkId) {
        let most = if self.spares(link) { 1 } else { u16::MAX };
        let Some(sender) = self.senders.get_mut(&link) else { return };
        let limit = sender.outstanding.limit() + self.catch_up;
        let room = limit.saturating_sub(sender.asks.len());
        if room == 0 || sender.retired {
            return;
        }
        let (held, verifiable) = (ctx.holdings.held(), ctx.holdings.verifiable());
        let taken = [held, &self.requested];
        let mut free = 0;
        let (rarity, wanted) = (&self.rarity, |b: &BlockIndex| verifiable.contains(*b));
        let rare = |b: &BlockIndex| rarity[*b as usize] <= most;
        let offers =
            sender.available.iter_without(&taken).filter(wanted).filter(rare).map(|block| {
                free += 1;
                let at = block as usize;
                Offer { block, rarity: self.rarity[at], encountered: self.encountered[at] }
            });
        let blocks = choose(self.config.order, offers, room.min(BLOCKS_MAX), ctx.rng);
        sender.limited = free > blocks.len();
        let more = free <= blocks.len() + sender.outstanding.limit();
        self.request(ctx, stats, link, blocks, more);
    }

    fn request(
        &mut self,
        ctx: &mut Ctx<'_>,
        stats: &mut Stats,
        link: LinkId,
        blocks: Vec<BlockIndex>,
        more: bool,
    ) {
        let Some(sender) = self.senders.get_mut(&link) else { return };
        if blocks.is_empty() && (!more || sender.more_asked) {
            return;
        }
        sender.more_asked |= more;
        for &block in &blocks {
            sender.outstanding.on_request(block);
            sender.asks.push_back(Ask { block, at: ctx.now, cancelled_at: None });
            self.requested.insert(block);
            if let Some(first) = self.holders.insert(block, link) {
                self.doubled.insert(block, first);
            }
        }
        stats.requests += blocks.len() as u64;
        ctx.send(link, Message::Request { blocks, more }.encode());
    }

    /// A block is no longer owed by `link`; it is free when nobody else owes it.
    fn free(&mut self, block: BlockIndex, link: LinkId) {
        if self.doubled.get(&block) == Some(&link) {
            self.doubled.remove(&block);
        } else if self.holders.get(&block) == Some(&link) {
            match self.doubled.remove(&block) {
                Some(other) => {
                    self.holders.insert(block, other);
                }
                None => {
                    self.holders.remove(&block);
                    self.requested.remove(block);
                }
            }
        }
    }

    /// A sender will not deliver a block it owes: it is free again.
    pub(super) fn on_withdrawn(&mut self, link: LinkId, block: BlockIndex) -> Withdrawn {
        let Some(sender) = self.senders.get_mut(&link) else { return Withdrawn::NotOwed };
        let Some(at) = sender.asks.iter().position(|ask| ask.block == block) else {
            return Withdrawn::NotOwed;
        };
        let called_back = sender.asks[at].cancelled_at.is_some();
        sender.asks.remove(at);
        sender.outstanding.on_lost(block);
        self.free(block, link);
        self.forget_if_settled(link);
        if called_back { Withdrawn::CalledBack } else { Withdrawn::Refused }
    }

    /// The sender does not have this block, whatever it said.
    pub(super) fn on_lacking(&mut self, link: LinkId, block: BlockIndex) {
        if let Some(sender) = self.senders.get_mut(&link)
            && sender.available.remove(block)
        {
            self.rarity[block as usize] -= 1;
        }
    }

    /// A block came from `link` (asked of it or of another, or pushed) and is held now.
    pub(super) fn on_block(
        &mut self,
        ctx: &mut Ctx<'_>,
        link: LinkId,
        block: BlockIndex,
        header: Header,
    ) {
        let len = u64::from(ctx.holdings.block_len(block));
        if let Some(sender) = self.senders.get_mut(&link) {
            sender.judged.add(len);
            let asked = sender.asks.iter().position(|ask| ask.block == block);
            if let Some(ask) = asked.and_then(|at| sender.asks.remove(at)) {
                let busy_from = sender.last_block_at.max(ask.at);
                sender.service.sample(len, ctx.now.since(busy_from));
                sender.last_block_at = ctx.now;
                let sample = Sample {
                    in_front: header.in_front.unwrap_or(1),
                    wasted: header.wasted_us as f64 / 1e6,
                    bandwidth: sender.service.rate().unwrap_or(0.0),
                    rtt: ctx.links.measured(link).rtt.map_or(0.0, |rtt| rtt.as_secs_f64()),
                    block_len: f64::from(ctx.holdings.block_len_typical()),
                    requested: sender.asks.len() as u32,
                    limited: sender.limited,
                };
                sender.outstanding.on_block(block, &sample);
            }
        }
        self.free(block, link);
        self.cancel_elsewhere(ctx, block);
        self.forget_if_settled(link);
    }

    /// Whoever still owes a block that came is told so.
    fn cancel_elsewhere(&mut self, ctx: &mut Ctx<'_>, block: BlockIndex) {
        for link in [self.holders.remove(&block), self.doubled.remove(&block)].into_iter().flatten()
        {
            if let Some(sender) = self.senders.get_mut(&link) {
                sender.asks.retain(|ask| ask.block != block);
                sender.outstanding.on_lost(block);
            }
            ctx.send(link, Message::Cancel { block }.encode());
        }
        self.requested.remove(block);
    }

    /// Whether anything is owed.
    pub(super) fn is_waiting(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Whether every block that is still missing has been asked for.
    pub(super) fn is_endgame(&self, held: &Bitmap) -> bool {
        held.count() + self.requested.count() >= held.len()
    }

    pub(super) fn check_invariants(&self, held: &Bitmap) -> Result<(), String> {
        let mut owed: BTreeMap<BlockIndex, u32> = BTreeMap::new();
        for (link, sender) in &self.senders {
            if sender.asks.len() > self.config.outstanding_max as usize + CATCH_UP_MAX {
                return Err(format!("{} requests outstanding at {link:?}", sender.asks.len()));
            }
            sender.asks.iter().for_each(|ask| *owed.entry(ask.block).or_default() += 1);
        }
        for (block, times) in &owed {
            let allowed = 1 + u32::from(self.doubled.contains_key(block));
            if *times > allowed || !self.requested.contains(*block) {
                return Err(format!("block {block} is asked for {times} times, {allowed} known"));
            }
            if held.contains(*block) {
                return Err(format!("block {block} is held and still asked for"));
            }
        }
        if self.requested.count() as usize != self.holders.len() || owed.len() != self.holders.len()
        {
            return Err("requested blocks and their holders differ".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
