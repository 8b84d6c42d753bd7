//! One connection to another peer, as this end sees it.

use super::rate::Rate;
use crate::id::{BlockIndex, LinkId, PeerId};
use crate::summary::Bitmap;
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Most requests of one peer that wait here; beyond it they are rejected.
pub(super) const QUEUE_MAX: usize = 512;

/// A peer: both sides have shaken hands.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: PeerId,
    /// The pieces it has.
    pub(super) have: Bitmap,
    /// How many of them we lack.
    pub(super) useful: u32,
    /// Whether it has told us that it does not serve us.
    pub(super) chokes_us: bool,
    /// Whether we have told it that it has pieces we lack.
    pub(super) is_interesting: bool,
    /// Whether it wants pieces of ours.
    pub(super) is_interested: bool,
    /// When we told it that we serve it; `None`: we do not.
    pub(super) unchoked_at: Option<Time>,
    /// Asked of it and neither come nor rejected.
    pub(super) asked: Vec<BlockIndex>,
    /// Asked by it and not yet accepted by the link.
    pub(super) queue: VecDeque<BlockIndex>,
    /// The link refused a block and will say when it has room.
    pub(super) is_full: bool,
    /// What comes from it.
    pub(super) down: Rate,
    /// What goes to it.
    pub(super) up: Rate,
    /// Since when requests of ours have waited for its next block.
    waits_since: Time,
}

impl Peer {
    pub(super) fn new(now: Time, id: PeerId, have: Bitmap, ours: &Bitmap) -> Peer {
        Peer {
            id,
            useful: have.count_without(ours),
            have,
            chokes_us: true,
            is_interesting: false,
            is_interested: false,
            unchoked_at: None,
            asked: Vec::new(),
            queue: VecDeque::new(),
            is_full: false,
            down: Rate::new(now),
            up: Rate::new(now),
            waits_since: now,
        }
    }

    /// Whether it has everything.
    pub(super) fn is_seed(&self) -> bool {
        self.have.is_full()
    }

    pub(super) fn on_asked(&mut self, now: Time, block: BlockIndex) {
        if self.asked.is_empty() {
            self.waits_since = now;
        }
        self.asked.push(block);
    }

    /// A block came from it.
    pub(super) fn on_block(&mut self, now: Time, bytes: u64) {
        self.down.add(now, bytes);
        self.waits_since = now;
    }

    /// No longer asked of it; whether it was.
    pub(super) fn forget(&mut self, block: BlockIndex) -> bool {
        let at = self.asked.iter().position(|&asked| asked == block);
        at.map(|at| self.asked.remove(at)).is_some()
    }

    /// Whether it has delivered nothing of what is asked of it for `span` (anti-snubbing, BEP 3).
    pub(super) fn is_snubbing(&self, now: Time, span: Duration) -> bool {
        !self.asked.is_empty() && now.since(self.waits_since) >= span
    }
}

/// A link on which no handshake has come yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) since: Time,
    /// Whether our handshake has gone out.
    pub(super) has_greeted: bool,
}

/// All links: peers, and those that wait for a handshake or only for the tracker.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) peers: std::collections::BTreeMap<LinkId, Peer>,
    pub(super) waiting: std::collections::BTreeMap<LinkId, Waiting>,
}
