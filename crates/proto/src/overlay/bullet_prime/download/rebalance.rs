//! Slow senders and the endgame: blocks move from senders that will be long to senders that have
//! nothing left to do, and a member that lags asks for more (Bullet §4.3.3, and ours).

use super::{BlockIndex, CATCH_UP_MAX, Ctx, Download, LinkId, Message, Stats};
use crate::summary::Bitmap;
use crate::time::{Duration, Time};

/// A sender that delivers nothing for this long while it owes something is passed by.
const HUNG_AFTER: Duration = Duration::from_secs(4);
/// A holder that was asked to give a block back and has done neither for this long may be too
/// throttled to hear it: waiting for it would cost the last blocks seconds.
const UNANSWERED_AFTER: Duration = Duration::from_secs(1);
/// A block is fetched elsewhere when that is expected to take less than this share of the time
/// its holder still needs.
const STEAL_SHARE: f64 = 0.5;
/// And when it gains at least this.
const STEAL_GAIN: Duration = Duration::from_millis(200);

impl Download {
    /// Whether this member holds clearly less than its senders.
    pub(in super::super) fn is_behind(&self) -> bool {
        self.catch_up > 0
    }

    /// Notices whether this member holds clearly less than its senders do. Where uplinks are
    /// shared, senders serve all receivers alike, so one with few senders would stay behind; it may
    /// ask each of them for one block more per round of requests to all of them that it lags.
    pub(in super::super) fn judge_progress(&mut self, held: &Bitmap) {
        let mut counts: Vec<u32> = self.active().map(|(_, s)| s.available.count()).collect();
        counts.sort_unstable();
        let median = counts.get(counts.len() / 2).copied().unwrap_or(0);
        let behind = median.saturating_sub(held.count()) as usize;
        let rounds = behind / counts.len().max(1);
        self.catch_up = if self.config.catch_up { rounds.min(CATCH_UP_MAX) } else { 0 };
    }

    /// Moves blocks from senders that will be long to senders that have nothing left to do.
    pub(in super::super) fn rebalance(&mut self, ctx: &mut Ctx<'_>, stats: &mut Stats) {
        let idle: Vec<LinkId> = self
            .senders
            .iter()
            .filter(|(_, s)| !s.retired && s.asks.len() < s.outstanding.limit())
            .map(|(link, _)| *link)
            .collect();
        let block_len = f64::from(ctx.holdings.block_len_typical());
        let mut moves = Vec::new();
        for thief in idle {
            if let Some((block, holder)) = self.worth_moving(ctx, thief, block_len) {
                moves.push((thief, block, holder));
            }
        }
        for (thief, block, holder) in moves {
            self.move_block(ctx, stats, thief, block, holder);
        }
    }

    /// The block that gains most when `thief` fetches it instead of its holder.
    fn worth_moving(
        &self,
        ctx: &Ctx<'_>,
        thief: LinkId,
        block_len: f64,
    ) -> Option<(BlockIndex, LinkId)> {
        let sender = self.senders.get(&thief)?;
        let rtt = ctx.links.measured(thief).rtt.map_or(0.1, |rtt| rtt.as_secs_f64());
        let rate = sender.service.rate().or_else(|| self.mean_rate())?;
        let there = (sender.asks.len() + 1) as f64 * block_len / rate + rtt;
        let gain = |(block, holder): (&BlockIndex, &LinkId)| {
            if *holder == thief
                || !sender.available.contains(*block)
                || self.doubled.contains_key(block)
            {
                return None;
            }
            let here = self.expected_wait(ctx.now, *holder, *block, block_len)?;
            let worth = there < here * STEAL_SHARE && here - there > STEAL_GAIN.as_secs_f64();
            worth.then_some((here - there, *block, *holder))
        };
        let best = self.holders.iter().filter_map(gain).max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, block, holder)| (block, holder))
    }

    fn mean_rate(&self) -> Option<f64> {
        let rates: Vec<f64> = self.senders.values().filter_map(|s| s.service.rate()).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// Seconds until `holder` is expected to have delivered `block`; the longer it has been silent,
    /// the longer it is expected to stay so.
    fn expected_wait(&self, now: Time, holder: LinkId, block: BlockIndex, len: f64) -> Option<f64> {
        let sender = self.senders.get(&holder)?;
        let position = sender.asks.iter().position(|ask| ask.block == block)?;
        let quiet = now.since(sender.last_block_at.max(sender.asks.front()?.at)).as_secs_f64();
        let rate = sender.service.rate().or_else(|| self.mean_rate())?;
        let each = len / rate;
        let current = if quiet > 2.0 * each { quiet } else { (each - quiet).max(0.0) };
        Some(current + position as f64 * each)
    }

    fn move_block(
        &mut self,
        ctx: &mut Ctx<'_>,
        stats: &mut Stats,
        thief: LinkId,
        block: BlockIndex,
        holder: LinkId,
    ) {
        if self.doubled.contains_key(&block) {
            return;
        }
        let races = self.config.races_at_end && self.is_endgame(ctx.holdings.held());
        let Some(sender) = self.senders.get_mut(&holder) else { return };
        let Some(ask) = sender.asks.iter_mut().find(|ask| ask.block == block) else { return };
        match ask.cancelled_at {
            None if races => {
                // Given back or not, it comes from the thief: at the end waiting costs more than a
                // block that comes twice.
                ask.cancelled_at = Some(ctx.now);
                ctx.send(holder, Message::Cancel { block }.encode());
                stats.rerequests_endgame += 1;
                self.request(ctx, stats, thief, vec![block], false);
            }
            None => {
                // The holder gives it back when it has not begun; then anyone may fetch it.
                ask.cancelled_at = Some(ctx.now);
                ctx.send(holder, Message::Cancel { block }.encode());
            }
            Some(at) => {
                let quiet = ctx.now.since(sender.last_block_at.max(ask.at));
                let hung = quiet > HUNG_AFTER;
                if hung || ctx.now.since(at) > UNANSWERED_AFTER {
                    let counter = if hung {
                        &mut stats.rerequests_slow
                    } else {
                        &mut stats.rerequests_endgame
                    };
                    *counter += 1;
                    self.request(ctx, stats, thief, vec![block], false);
                }
            }
        }
    }
}
