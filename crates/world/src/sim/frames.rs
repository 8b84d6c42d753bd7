//! The frames under way on all pipes, in one store.
//!
//! A pipe is a chain of slots. A slot that is free is used again at once, while it is still in the
//! cache, and a pipe on which nothing is under way needs no memory of its own.

use crate::prefetch::prefetch;
use anabranch_proto::link::frame::Frame;

const NONE: u32 = u32::MAX;

/// The frames of one pipe, first in, first out. Its frames are in [`Frames`].
#[derive(Debug)]
pub(super) struct Chain {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { first: NONE, last: NONE, len: 0 }
    }
}

#[derive(Debug)]
struct Slot {
    frame: Option<Frame>,
    /// The next of the chain, or the next free one.
    next: u32,
}

/// All frames under way. See [the module](self).
#[derive(Debug)]
pub(super) struct Frames {
    slots: Vec<Slot>,
    free: u32,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames { slots: Vec::new(), free: NONE }
    }
}

impl Frames {
    pub(super) fn push_back(&mut self, chain: &mut Chain, frame: Frame) {
        let slot = Slot { frame: Some(frame), next: NONE };
        let place = match self.slots.get_mut(self.free as usize) {
            Some(free) => {
                let place = std::mem::replace(&mut self.free, free.next);
                *free = slot;
                place
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        match self.slots.get_mut(chain.last as usize) {
            Some(last) => last.next = place,
            None => chain.first = place,
        }
        chain.last = place;
        chain.len += 1;
    }

    pub(super) fn pop_front(&mut self, chain: &mut Chain) -> Option<Frame> {
        let place = chain.first;
        let slot = self.slots.get_mut(place as usize)?;
        let frame = slot.frame.take();
        chain.first = std::mem::replace(&mut slot.next, self.free);
        self.free = place;
        chain.len -= 1;
        if chain.first == NONE {
            chain.last = NONE;
        }
        frame
    }

    /// Drops the last `frames` of a chain: turns it round once.
    pub(super) fn drop_back(&mut self, chain: &mut Chain, frames: u32) {
        let kept = chain.len.saturating_sub(frames);
        for place in 0..chain.len {
            let frame = self.pop_front(chain);
            if let Some(frame) = frame.filter(|_| place < kept) {
                self.push_back(chain, frame);
            }
        }
    }

    /// Asks for the next frame's slot ahead of time.
    pub(super) fn look_at(&self, chain: &Chain) {
        self.slots.get(chain.first as usize).into_iter().for_each(prefetch);
    }

    /// Asks for the next message's bytes ahead of time; its slot must be there by now.
    pub(super) fn look_in(&self, chain: &Chain) {
        let slot = self.slots.get(chain.first as usize);
        if let Some(Slot { frame: Some(Frame::Message { bytes, .. }), .. }) = slot {
            prefetch(bytes.as_slice());
        }
    }

    pub(super) fn clear(&mut self, chain: &mut Chain) {
        while self.pop_front(chain).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn chains_in_one_store_are_queues_that_know_nothing_of_each_other() {
        let mut frames = Frames::default();
        let mut chains = [Chain::default(), Chain::default(), Chain::default()];
        let mut model: [VecDeque<Frame>; 3] = Default::default();
        let mut state = 1u64;
        for nonce in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (at, what) = ((state >> 40) as usize % 3, (state >> 50) % 16);
            match what {
                0..8 => {
                    frames.push_back(&mut chains[at], Frame::Ping { nonce });
                    model[at].push_back(Frame::Ping { nonce });
                }
                8..14 => {
                    assert_eq!(frames.pop_front(&mut chains[at]), model[at].pop_front());
                }
                14 => {
                    frames.drop_back(&mut chains[at], 3);
                    let kept = model[at].len().saturating_sub(3);
                    model[at].truncate(kept);
                }
                _ if nonce % 7 == 0 => {
                    frames.clear(&mut chains[at]);
                    model[at].clear();
                }
                _ => {}
            }
        }
        for (chain, model) in chains.iter_mut().zip(model) {
            let left: Vec<Frame> = std::iter::from_fn(|| frames.pop_front(chain)).collect();
            assert_eq!(left, Vec::from(model));
        }
    }

    #[test]
    fn a_free_slot_is_used_again() {
        let (mut frames, mut chain) = (Frames::default(), Chain::default());
        for nonce in 0..1_000 {
            frames.push_back(&mut chain, Frame::Ping { nonce });
            assert_eq!(frames.pop_front(&mut chain), Some(Frame::Ping { nonce }));
        }
        assert_eq!(frames.slots.len(), 1);
    }
}
