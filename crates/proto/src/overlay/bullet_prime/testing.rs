//! The surroundings of a part of Bullet′ in its unit tests: links that take as many blocks as they
//! are given room for, and everything that was sent.

use super::messages::Message;
use crate::id::{BlockIndex, LinkId};
use crate::overlay::{Ctx, Holdings, Links, Measured, Output, Stats};
use crate::random::{Rng, stream};
use crate::summary::Bitmap;
use crate::time::{Duration, Time};
use std::collections::BTreeMap;

/// Links with room for a number of blocks each; none for those not named.
#[derive(Default)]
pub(super) struct RoomyLinks {
    pub(super) room: BTreeMap<LinkId, u32>,
    /// Blocks accepted, in order.
    pub(super) blocks: Vec<(LinkId, BlockIndex, Vec<u8>)>,
}

impl Links for RoomyLinks {
    fn try_send_block(&mut self, link: LinkId, block: BlockIndex, _: u32, header: Vec<u8>) -> bool {
        let room = self.room.entry(link).or_default();
        let accepted = *room > 0;
        *room = room.saturating_sub(1);
        if accepted {
            self.blocks.push((link, block, header));
        }
        accepted
    }
    fn want_room(&mut self, _: LinkId) {}
    fn measured(&self, _: LinkId) -> Measured {
        Measured { rtt: Some(Duration::from_millis(20)), ..Measured::default() }
    }
}

/// See [the module](self).
pub(super) struct Surroundings {
    pub(super) holdings: Holdings,
    pub(super) links: RoomyLinks,
    pub(super) rng: Rng,
    pub(super) now: Time,
    pub(super) stats: Stats,
    pub(super) sent: Vec<(LinkId, Message)>,
}

impl Surroundings {
    pub(super) fn new(blocks: u32) -> Surroundings {
        Surroundings {
            holdings: Holdings::uniform(1_000, u64::from(blocks) * 1_000),
            links: RoomyLinks::default(),
            rng: stream(1, "part", "test"),
            now: Time::from_secs_f64(1.0),
            stats: Stats::default(),
            sent: Vec::new(),
        }
    }

    /// Runs one input of the part under test and notes what it sent.
    pub(super) fn run(&mut self, act: impl FnOnce(&mut Ctx<'_>, &mut Stats)) {
        let mut out = Vec::new();
        let mut ctx = Ctx {
            now: self.now,
            rng: &mut self.rng,
            holdings: &self.holdings,
            links: &mut self.links,
            out: &mut out,
        };
        act(&mut ctx, &mut self.stats);
        for out in out {
            if let Output::Message { link, bytes } = out {
                self.sent.push((link, Message::decode(&bytes).unwrap()));
            }
        }
    }

    /// What was sent to `link` since the last look.
    pub(super) fn sent_to(&mut self, link: LinkId) -> Vec<Message> {
        let (here, rest) =
            std::mem::take(&mut self.sent).into_iter().partition(|(to, _)| *to == link);
        self.sent = rest;
        let here: Vec<(LinkId, Message)> = here;
        here.into_iter().map(|(_, message)| message).collect()
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.now += by;
    }
}

/// The blocks whose digit is 1.
pub(super) fn set(blocks: &str) -> Bitmap {
    let mut set = Bitmap::new(blocks.len() as u32);
    blocks.bytes().zip(0..).filter(|(bit, _)| *bit == b'1').for_each(|(_, block)| {
        set.insert(block);
    });
    set
}
