//! A host's member at work: its inputs handed in, its outputs done, its deadlines kept.

use super::host::{Host, HostId, Life};
use super::wire::End;
use super::{Completion, Sim, Wire};
use crate::event::Event;
use anabranch_proto::id::{BlockIndex, LinkId};
use anabranch_proto::link::frame::Channel;
use anabranch_proto::overlay::{Ctx, Holdings, Input, Links, Measured, Output};
use anabranch_proto::time::Time;

impl Sim {
    pub(super) fn handle(&mut self, host: u32, input: Input) {
        if self.hosts[host as usize].member.is_none() {
            return;
        }
        self.trace_input(host, &input);
        let state = &mut self.hosts[host as usize];
        let Host { member: Some(member), rng, holdings, clock, .. } = state else { return };
        let (ends, touched) = (&mut self.ends, &mut self.touched);
        let mut links = HostLinks { host, ends, touched, holdings, unheld: None };
        let mut ctx = Ctx {
            now: clock.local(self.now),
            rng,
            holdings,
            links: &mut links,
            out: &mut self.outputs,
        };
        member.handle(&mut ctx, input);
        let unheld = links.unheld;
        if self.config.check {
            self.check(host, unheld);
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            self.do_output(host, output);
        }
        self.outputs = outputs;
        self.arm(host);
    }

    fn check(&mut self, host: u32, unheld: Option<BlockIndex>) {
        let state = &self.hosts[host as usize];
        let Some(member) = &state.member else { return };
        let stats = member.stats();
        let repeated = stats.rerequests_lost
            + stats.rerequests_slow
            + stats.rerequests_bad
            + stats.rerequests_endgame;
        let checked = member.check_invariants(&state.holdings).and_then(|()| {
            if let Some(block) = unheld {
                return Err(format!("sends block {block}, which it does not hold"));
            }
            if stats.requests > state.lacked + repeated {
                return Err(format!(
                    "asked for {} blocks, lacked {}, and counts only {repeated} as asked again",
                    stats.requests, state.lacked
                ));
            }
            Ok(())
        });
        if let Err(what) = checked {
            let name = state.spec.name.clone();
            self.violation(&name, what);
        }
    }

    fn do_output(&mut self, host: u32, output: Output) {
        match output {
            Output::Message { link, bytes } if self.config.wire == Wire::Latency => {
                return self.put_aside(host, link, bytes);
            }
            _ => self.send_letters(),
        }
        match output {
            Output::Message { link, bytes } => {
                if let Some(end) = self.end_of(host, link)
                    && let Some(session) = &mut self.ends[end as usize].session
                {
                    session.send(Channel::Overlay, bytes);
                    self.touched.push(end);
                    self.drain_session(end);
                }
            }
            Output::Connect { peer, class } => self.connect(host, &peer, class),
            Output::Disconnect { link } => {
                if let Some(end) = self.end_of(host, link) {
                    self.close(end);
                }
            }
            Output::Done => self.complete(host),
            Output::Failed { reason } => self.abandon(host, Life::Failed(reason)),
            Output::Left => self.leave(host),
            Output::Outcome(outcome) => self.outcomes.push((self.now, outcome)),
        }
    }

    fn complete(&mut self, host: u32) {
        let source_out = self.hosts[0].meter.total.payload_out;
        let state = &mut self.hosts[host as usize];
        let is_complete = state.holdings.is_complete();
        if !std::mem::replace(&mut state.is_done, true) && !state.spec.is_source {
            self.completions.push(Completion { host: HostId(host), at: self.now, source_out });
        }
        if !is_complete {
            let name = self.hosts[host as usize].spec.name.clone();
            self.violation(&name, "says it is done and is not".into());
        }
    }

    fn leave(&mut self, host: u32) {
        self.hosts[host as usize].is_leaving = true;
        let ends: Vec<u32> = self.hosts[host as usize].peers.values().copied().collect();
        ends.into_iter().for_each(|end| self.close(end));
        self.end_leaving(host);
    }

    /// A host that leaves is gone when its last link is.
    pub(super) fn end_leaving(&mut self, host: u32) {
        let state = &self.hosts[host as usize];
        if state.is_leaving && state.life == Life::Up && state.peers.is_empty() {
            self.stop(host, Life::Left);
        }
    }

    /// Schedules the member's next deadline when it is earlier than what is scheduled.
    fn arm(&mut self, host: u32) {
        let step = self.config.timer_step;
        let state = &mut self.hosts[host as usize];
        let deadline = state.member.as_ref().and_then(|member| member.next_deadline());
        let Some(local) = deadline else { return };
        let earliest = state.deadline_last.map_or(self.now, |last| last + step).max(self.now);
        let at = state.clock.global(local).max(earliest);
        if at < state.due {
            state.due = at;
            self.queue.push(at, Event::MemberDue { host });
        }
    }

    pub(super) fn on_member_due(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        if state.due != self.now {
            return;
        }
        state.due = Time::FAR;
        let local = state.clock.local(self.now);
        let deadline = state.member.as_ref().and_then(|member| member.next_deadline());
        if deadline.is_some_and(|at| at <= local) {
            state.deadline_last = Some(self.now);
            // Nothing else waits for it: an event begins when all that came before is done.
            self.handle(host, Input::Deadline);
        } else {
            self.arm(host);
        }
    }

    /// The end of `link` at `host`, when there is a session.
    pub(super) fn end_of(&self, host: u32, link: LinkId) -> Option<u32> {
        let first = link.0.checked_mul(2)?;
        (first..first + 2).find(|&end| {
            self.ends.get(end as usize).is_some_and(|e| e.host == host && e.session.is_some())
        })
    }

    fn trace_input(&mut self, host: u32, input: &Input) {
        let trace = &mut self.trace;
        trace.add(u64::from(host));
        let mut add = |kind: u64, a: u32, b: u32| {
            trace.add((kind << 32) | u64::from(a));
            trace.add(u64::from(b));
        };
        match input {
            Input::Start => add(1, 0, 0),
            Input::LinkUp { link, dialled, .. } => add(2, link.0, u32::from(*dialled)),
            Input::LinkDown { link, reason } => add(3, link.0, *reason as u32),
            Input::ConnectFailed { peer } => add(4, (peer.short() >> 32) as u32, 0),
            Input::Message { link, bytes } => {
                add(5, link.0, 0);
                trace.add_bytes(bytes);
            }
            Input::Block { link, block, header, duplicate } => {
                add(6, link.0, block * 2 + u32::from(*duplicate));
                trace.add_bytes(header);
            }
            Input::BadBlock { link, block, corrupt } => {
                add(7, link.0, block * 2 + u32::from(*corrupt));
            }
            Input::Room { link } => add(8, link.0, 0),
            Input::Produced { block } => add(9, 0, *block),
            Input::Evicted { below } => add(10, 0, *below),
            Input::Learned => add(11, 0, 0),
            Input::Deadline => add(12, 0, 0),
            Input::Command(_) => add(13, 0, 0),
        }
    }
}

/// The links as one host's member may use them.
struct HostLinks<'a> {
    host: u32,
    ends: &'a mut Vec<End>,
    touched: &'a mut Vec<u32>,
    holdings: &'a Holdings,
    unheld: Option<BlockIndex>,
}

impl HostLinks<'_> {
    fn end(&self, link: LinkId) -> Option<usize> {
        let first = link.0.checked_mul(2)? as usize;
        (first..first + 2).find(|&end| self.ends.get(end).is_some_and(|e| e.host == self.host))
    }
}

impl Links for HostLinks<'_> {
    fn try_send_block(
        &mut self,
        link: LinkId,
        block: BlockIndex,
        len: u32,
        header: Vec<u8>,
    ) -> bool {
        if !self.holdings.held().contains(block) {
            self.unheld.get_or_insert(block);
            return false;
        }
        let Some(end) = self.end(link) else { return false };
        let Some(session) = &mut self.ends[end].session else { return false };
        self.touched.push(end as u32);
        session.try_send_block(block, len, header)
    }

    fn want_room(&mut self, link: LinkId) {
        if let Some(end) = self.end(link)
            && let Some(session) = &mut self.ends[end].session
        {
            session.want_room();
            self.touched.push(end as u32);
        }
    }

    fn measured(&self, link: LinkId) -> Measured {
        let session = self.end(link).and_then(|end| self.ends[end].session.as_ref());
        session.map_or(Measured::default(), |session| session.measured())
    }
}
