//! The source's push: every block once, round robin, to the child whose pipe has room
//! (Bullet §4.4.3). Then the source turns into a peer like any other.
//!
//! A child is pushed to once it has said what it holds ([`super::messages::Message::Ready`]), and
//! a block that some child holds already is out there and is not pushed: a source that returns to
//! a group that has everything pushes nothing.

use super::messages::Header;
use crate::id::{BlockIndex, LinkId};
use crate::link::estimate::WindowRate;
use crate::overlay::{Ctx, Stats};
use crate::summary::Bitmap;
use crate::time::Time;

/// The push of a source.
#[derive(Debug)]
pub(super) struct Push {
    /// Blocks that are out: pushed, or held by a child that said so.
    out: Bitmap,
    next: BlockIndex,
    children: Vec<Child>,
    turn: usize,
    /// To how many of the children is pushed, oldest first.
    fan_out: usize,
    /// Bytes pushed since the fan-out was last judged; `None` before the first time, when pipes
    /// are being filled.
    judged: Option<WindowRate>,
}

#[derive(Debug)]
struct Child {
    link: LinkId,
    blocked: bool,
}

impl Push {
    pub(super) fn new(blocks: u32, fan_out: usize) -> Push {
        Push {
            out: Bitmap::new(blocks),
            next: 0,
            children: Vec::new(),
            turn: 0,
            fan_out,
            judged: None,
        }
    }

    /// Whether every block is out.
    pub(super) fn is_finished(&self) -> bool {
        self.out.is_full()
    }

    /// Children that are ready.
    pub(super) fn children(&self) -> usize {
        self.children.len()
    }

    /// How many children are pushed to.
    pub(super) fn fan_out(&self) -> usize {
        self.children.len().min(self.fan_out)
    }

    /// From now on so many children are pushed to.
    pub(super) fn set_fan_out(&mut self, fan_out: usize) {
        self.fan_out = fan_out;
    }

    /// Bytes per second pushed since the last call; `None` the first time and once all is out.
    pub(super) fn judge(&mut self, now: Time) -> Option<f64> {
        let rate = self.judged.map(|window| window.rate(now));
        self.judged = Some(WindowRate::new(now));
        rate.filter(|_| !self.is_finished())
    }

    /// A child is ready; `held` is what it holds.
    pub(super) fn on_ready(&mut self, link: LinkId, held: &Bitmap) {
        held.iter().for_each(|block| {
            self.out.insert(block);
        });
        if !self.children.iter().any(|child| child.link == link) {
            self.children.push(Child { link, blocked: false });
        }
    }

    /// A child is gone.
    pub(super) fn on_gone(&mut self, link: LinkId) {
        self.children.retain(|child| child.link != link);
    }

    /// A child's pipe has room.
    pub(super) fn on_room(&mut self, link: LinkId) {
        for child in self.children.iter_mut().filter(|child| child.link == link) {
            child.blocked = false;
        }
    }

    /// Pushes while a pipe has room.
    pub(super) fn pump(&mut self, ctx: &mut Ctx<'_>, stats: &mut Stats) {
        while let Some(block) = self.next_block() {
            if !self.push(ctx, block) {
                return;
            }
            stats.blocks_sent += 1;
            if let Some(judged) = &mut self.judged {
                judged.add(u64::from(ctx.holdings.block_len(block)));
            }
            self.out.insert(block);
        }
    }

    fn next_block(&mut self) -> Option<BlockIndex> {
        while self.out.contains(self.next) {
            self.next += 1;
        }
        (self.next < self.out.len()).then_some(self.next)
    }

    /// Offers the block to each child in turn until one takes it.
    fn push(&mut self, ctx: &mut Ctx<'_>, block: BlockIndex) -> bool {
        let fan_out = self.fan_out();
        for _ in 0..fan_out {
            self.turn = (self.turn + 1) % fan_out;
            let child = &mut self.children[self.turn];
            if child.blocked {
                continue;
            }
            if ctx.try_send_block(child.link, block, Header::PUSHED.encode()) {
                return true;
            }
            child.blocked = true;
        }
        false
    }
}

#[cfg(test)]
mod tests;
