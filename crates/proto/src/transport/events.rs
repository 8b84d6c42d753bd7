//! Events that have happened and were not told yet.

use super::{Event, Failure};

/// One bit per kind of event: what happened twice before it was told is told once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Events {
    waiting: u8,
    /// Those that happen once, and did.
    told: u8,
}

impl Events {
    pub(super) const CONNECTED: u8 = 1;
    pub(super) const READABLE: u8 = 2;
    pub(super) const DELIVERED: u8 = 4;
    pub(super) const FINISHED: u8 = 8;
    pub(super) const RESET: u8 = 16;
    pub(super) const TIMED_OUT: u8 = 32;

    pub(super) fn tell(&mut self, event: u8) {
        self.waiting |= event;
    }

    pub(super) fn tell_once(&mut self, event: u8) {
        self.waiting |= event & !self.told;
        self.told |= event;
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let bit = self.waiting & self.waiting.wrapping_neg();
        self.waiting ^= bit;
        Some(match bit {
            Events::CONNECTED => Event::Connected,
            Events::READABLE => Event::Readable,
            Events::DELIVERED => Event::Delivered,
            Events::FINISHED => Event::Finished,
            Events::RESET => Event::Failed(Failure::Reset),
            Events::TIMED_OUT => Event::Failed(Failure::TimedOut),
            _ => return None,
        })
    }
}
