//! Looking ahead: what the coming events need is read a little before they are handled.
//!
//! The state of a hundred thousand hosts lies outside every cache, and most of an event's time would
//! be waiting for memory, one line after the other. The coming events are known, so what they
//! need is read for a batch of them at once: the processor waits for many lines together. Three
//! steps, because each says where the next lies: end, session and host, member. Nothing depends on
//! what is read.

use super::wire::End;
use super::{Sim, Wire};
use crate::event::Event;
use std::hint::black_box;

/// Events per batch.
pub(super) const BATCH: usize = 32;

impl Sim {
    /// Reads ahead for the next batches; once per batch.
    pub(super) fn look_ahead(&self) {
        let batch = |number: usize| {
            (number * BATCH..(number + 1) * BATCH).map_while(|steps| self.queue.ahead(steps))
        };
        let mut sum = 0;
        batch(2).for_each(|event| sum ^= self.look_at_place(event));
        batch(1).for_each(|event| sum ^= self.look_at_session(event));
        batch(0).for_each(|event| sum ^= self.look_at_member(event));
        black_box(sum);
    }

    fn look_at_place(&self, event: Event) -> u64 {
        match event {
            Event::MemberDue { host } => self.look_at_host(host),
            Event::Deliver { flow: end, .. } | Event::SessionDue { end } => {
                let host = self.ends.get(end as usize).map_or(0, |end| end.host);
                let pipe = self.pipes.get(end as usize).map_or(0, |pipe| pipe.arrives_after.0);
                u64::from(host) ^ pipe
            }
            _ => 0,
        }
    }

    fn look_at_session(&self, event: Event) -> u64 {
        let end = match event {
            Event::MemberDue { host } => return self.look_in_member(host),
            Event::Deliver { flow, .. } => flow ^ 1,
            Event::SessionDue { end } => end,
            _ => return 0,
        };
        let Some(state) = self.ends.get(end as usize) else { return 0 };
        look_at(state) ^ self.look_at_host(state.host)
    }

    /// On the latency wire reads what a message on `end` needs, all at once; always true.
    pub(super) fn look_at_link(&self, end: u32) -> bool {
        if self.config.wire == Wire::Latency
            && let (Some(state), Some(pipe)) =
                (self.ends.get(end as usize), self.pipes.get(end as usize))
        {
            black_box(look_at(state) ^ pipe.arrives_after.0);
        }
        true
    }

    fn look_at_member(&self, event: Event) -> u64 {
        match event {
            Event::Deliver { flow, .. } => {
                self.ends.get((flow ^ 1) as usize).map_or(0, |end| self.look_in_member(end.host))
            }
            _ => 0,
        }
    }

    fn look_at_host(&self, host: u32) -> u64 {
        self.hosts.get(host as usize).map_or(0, |host| {
            host.due.0 ^ u64::from(host.incarnation) ^ host.meter.total.control_out
        })
    }

    fn look_in_member(&self, host: u32) -> u64 {
        let member = self.hosts.get(host as usize).and_then(|host| host.member.as_ref());
        member.map_or(0, |member| {
            member.next_deadline().map_or(0, |at| at.0) ^ member.stats().requests
        })
    }
}

fn look_at(end: &End) -> u64 {
    end.session.as_ref().map_or(0, |session| {
        let deadline = session.next_deadline().map_or(0, |at| at.0);
        let measured = session.measured();
        let rtt = measured.rtt.map_or(0, |rtt| u64::from(rtt.subsec_nanos()));
        deadline ^ measured.unsent ^ rtt ^ u64::from(session.wants_transmit())
    })
}
