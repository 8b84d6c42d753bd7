//! On the latency wire a message waits a moment before its link is looked up.
//!
//! Which link a member sends on is known only when it has spoken, and by then the link's state would have to
//! come from memory while everything stands still. So what members send is put aside, its memory
//! is asked for, and it goes to its session when a few more messages wait behind it. Nothing in the
//! run can tell: a message keeps the time and the place in the order of events that it had when it was sent,
//! and goes out before anything happens to its link, before any event but a member's deadline or
//! a delivery, and before the first of those that wait could arrive.

use super::Sim;
use crate::event::Event;
use anabranch_proto::id::LinkId;
use anabranch_proto::link::frame::Channel;
use anabranch_proto::time::Time;
use std::collections::VecDeque;

/// Messages that wait.
const WAITING: usize = 6;
/// A link's session is asked for when this many wait behind it.
const SESSION_AFTER: usize = 3;

struct Letter {
    at: Time,
    /// Its place among the events.
    sequence: u64,
    host: u32,
    link: LinkId,
    bytes: Vec<u8>,
}

/// The messages that wait. See [the module](self).
pub(super) struct Letters {
    waiting: VecDeque<Letter>,
    waiting_max: usize,
    /// No pipe is faster than this, in nanoseconds.
    shortest: u64,
}

impl Default for Letters {
    fn default() -> Letters {
        Letters { waiting: VecDeque::new(), waiting_max: WAITING, shortest: u64::MAX }
    }
}

impl Letters {
    /// A pipe takes `delay` nanoseconds.
    pub(super) fn note_delay(&mut self, delay: u64) {
        self.shortest = self.shortest.min(delay);
    }

    fn hold_up(&self, event: Event) -> bool {
        match event {
            Event::MemberDue { .. } => false,
            Event::Deliver { flow: end, .. } | Event::SessionDue { end } => {
                self.waiting.iter().any(|letter| letter.link.0 == end / 2)
            }
            _ => true,
        }
    }

    fn could_arrive_by(&self, time: Option<Time>) -> bool {
        self.waiting.front().is_some_and(|letter| {
            time.is_none_or(|time| time.0 >= letter.at.0.saturating_add(self.shortest))
        })
    }
}

impl Sim {
    /// Puts a message of `host` aside.
    pub(super) fn put_aside(&mut self, host: u32, link: LinkId, bytes: Vec<u8>) {
        let letter = Letter { at: self.now, sequence: self.queue.reserve(), host, link, bytes };
        self.letters.waiting.push_back(letter);
        self.look_at_link(link.0);
        let waiting = &self.letters.waiting;
        if let Some(place) = waiting.len().checked_sub(SESSION_AFTER + 1) {
            let (host, link) = (waiting[place].host, waiting[place].link);
            self.look_at_session_of(host, link);
        }
        if waiting.len() > self.letters.waiting_max {
            self.send_letter();
        }
    }

    /// Sends what must go before the next event, which is due at `next`, is known.
    pub(super) fn send_letters_before(&mut self, next: Option<Time>) {
        if self.letters.could_arrive_by(next) {
            self.send_letters();
        }
    }

    /// Sends what must go before `event` happens.
    pub(super) fn send_letters_for(&mut self, event: Event) {
        if !self.letters.waiting.is_empty() && self.letters.hold_up(event) {
            self.send_letters();
        }
    }

    /// Sends all that waits.
    pub(super) fn send_letters(&mut self) {
        while self.send_letter() {}
    }

    fn send_letter(&mut self) -> bool {
        let Some(Letter { at, sequence, host, link, bytes }) = self.letters.waiting.pop_front()
        else {
            return false;
        };
        if let Some(end) = self.end_of(host, link)
            && let Some(session) = &mut self.ends[end as usize].session
        {
            session.send(Channel::Overlay, bytes);
            self.pump_latency(end, at, Some(sequence));
            self.drain_session(end);
        }
        true
    }
}

#[cfg(test)]
mod tests;
