//! Looking ahead: what the coming events need is fetched a little before they are handled.
//!
//! The state of a hundred thousand hosts lies outside every cache, and most of an event's time would
//! be waiting for memory, one line after the other. The coming events are known, so the processor is
//! told what they will need while it works on others. Three steps, because each says where the next
//! lies: end, session and host, member. Nothing depends on what is looked at.

use super::Sim;
use super::host::Host;
use crate::event::Event;
use crate::prefetch::prefetch;
use anabranch_proto::id::LinkId;

/// Events between the three steps, and from the last to the event itself.
const STEP: usize = 6;

impl Sim {
    /// Looks at the events one, two and three steps ahead; once per event.
    pub(super) fn look_ahead(&self) {
        if let Some(event) = self.queue.ahead(3 * STEP) {
            self.look_at_place(event);
        }
        if let Some(event) = self.queue.ahead(2 * STEP) {
            self.look_at_session(event);
        }
        if let Some(event) = self.queue.ahead(STEP) {
            self.look_at_member(event);
        }
    }

    fn look_at_place(&self, event: Event) {
        match event {
            Event::MemberDue { host } => self.look_at_host(host),
            Event::Deliver { flow, .. } => {
                self.look_at_link(flow / 2);
                self.pipes.get(flow as usize).into_iter().for_each(prefetch);
            }
            Event::SessionDue { end } => self.look_at_link(end / 2),
            _ => {}
        }
    }

    fn look_at_session(&self, event: Event) {
        match event {
            Event::MemberDue { host } => self.look_in_member(host),
            Event::Deliver { flow, .. } => {
                if let Some(end) = self.ends.get((flow ^ 1) as usize) {
                    end.session.as_deref().into_iter().for_each(prefetch);
                    self.look_at_host(end.host);
                }
                if let Some(pipe) = self.pipes.get(flow as usize) {
                    self.frames.look_at(&pipe.frames);
                }
            }
            Event::SessionDue { end } => {
                if let Some(end) = self.ends.get(end as usize) {
                    end.session.as_deref().into_iter().for_each(prefetch);
                    self.look_at_host(end.host);
                }
            }
            _ => {}
        }
    }

    fn look_at_member(&self, event: Event) {
        if let Event::Deliver { flow, .. } = event {
            if let Some(end) = self.ends.get((flow ^ 1) as usize) {
                self.look_in_member(end.host);
            }
            if let Some(pipe) = self.pipes.get(flow as usize) {
                self.frames.look_in(&pipe.frames);
            }
        }
    }

    /// Both ends of a link.
    pub(super) fn look_at_link(&self, link: u32) {
        let first = link as usize * 2;
        self.ends.get(first..first + 2).into_iter().for_each(prefetch);
    }

    /// The ends of `link` must be there by now.
    pub(super) fn look_at_session_of(&self, host: u32, link: LinkId) {
        if let Some(end) = self.end_of(host, link)
            && let Some(state) = self.ends.get(end as usize)
        {
            state.session.as_deref().into_iter().for_each(prefetch);
            self.pipes.get(end as usize).into_iter().for_each(prefetch);
        }
    }

    fn look_at_host(&self, host: u32) {
        self.hosts.get(host as usize).into_iter().for_each(Host::look_at);
    }

    fn look_in_member(&self, host: u32) {
        let member = self.hosts.get(host as usize).and_then(|host| host.member.as_deref());
        member.into_iter().for_each(prefetch);
    }
}
