//! Links: an end (a session at a host) and a pipe (the way from it to the other end) per side.
//!
//! End `2·link` is the dialler's, `2·link + 1` the listener's; a pipe has the number of the end it
//! leaves from. An idle pipe pulls one parcel: messages that wait, or else the next fragment of a
//! block with what belongs before it. What to send is so decided as late as possible, and a
//! message never waits for more than one fragment of its own link.

use super::frames::{Chain, Frames};
use super::host::Arrival;
use super::{Sim, SimError, Wire};
use crate::event::Event;
use anabranch_proto::id::{BlockIndex, LinkClass, LinkId};
use anabranch_proto::link::frame::{Channel, Frame};
use anabranch_proto::link::{Event as Told, FRAGMENT_LEN_MAX, Session};
use anabranch_proto::overlay::{DownReason, Input};
use anabranch_proto::time::{Duration, Time};
use std::sync::Arc;

/// One side of a link. Both fit one line of memory.
#[repr(align(32))]
pub(super) struct End {
    pub(super) host: u32,
    pub(super) peer: u32,
    pub(super) class: LinkClass,
    /// None before the set-up is complete, and once the link is down as this side sees it.
    pub(super) session: Option<Box<Session>>,
    /// Boxed, as most ends are idle.
    incoming: Option<Box<(BlockIndex, Vec<u8>)>>,
}

impl End {
    pub(super) fn drop_session(&mut self) {
        self.session = None;
        self.incoming = None;
    }
}

/// The frames on their way from one end to the other: one line of memory.
#[repr(align(64))]
pub(super) struct Pipe {
    /// In flight, and at the back those in service.
    pub(super) frames: Chain,
    in_service: u32,
    /// Bytes of the parcel in service.
    payload: u32,
    control: u32,
    /// Pulled, and left for the next parcel.
    held: Option<Box<Frame>>,
    /// Frames that would have arrived while the path was cut: what TCP sends again.
    held_back: u32,
    /// In nanoseconds.
    delay: u64,
    cap: f64,
    /// The far host is gone without a word: nothing is acknowledged, so nothing more is sent.
    is_dead: bool,
    /// Whether the set-up was over once, at the end it leaves from.
    pub(super) was_open: bool,
    /// Nothing arrives before this: order is kept when the delay changes.
    pub(super) arrives_after: Time,
}

/// Which side of its link an end is on: 0 dialled.
pub(super) fn side_of(end: u32) -> u32 {
    end & 1
}

impl Sim {
    /// Adds a link without sessions; returns the dialler's end.
    pub(super) fn add_link(&mut self, dialler: u32, listener: u32, class: LinkClass) -> u32 {
        let first = self.ends.len() as u32;
        for (host, peer) in [(dialler, listener), (listener, dialler)] {
            let (delay, cap) = (self.paths.delay(host, peer), self.paths.cap(host, peer));
            if self.config.wire == Wire::Fluid {
                self.fluid.add_flow(host, peer, cap);
            }
            self.letters.note_delay(nanos(delay));
            self.ends.push(End { host, peer, class, session: None, incoming: None });
            self.pipes.push(Pipe {
                frames: Chain::default(),
                in_service: 0,
                payload: 0,
                control: 0,
                held: None,
                held_back: 0,
                delay: nanos(delay),
                cap,
                is_dead: false,
                was_open: false,
                arrives_after: Time::ZERO,
            });
        }
        first
    }

    /// The set-up is complete as `end` sees it.
    pub(super) fn open(&mut self, end: u32) {
        let state = &mut self.ends[end as usize];
        let (host, peer, class) = (state.host, state.peer, state.class);
        let local = self.hosts[host as usize].clock.local(self.now);
        state.session = Some(Box::new(Session::new(Arc::clone(&self.link), local)));
        self.queue.push(self.now, Event::SessionDue { end });
        self.hosts[host as usize].peers.insert(peer, end);
        let info = self.hosts[peer as usize].info.clone();
        let link = LinkId(end / 2);
        let dialled = side_of(end) == 0;
        let up = Input::LinkUp { link, peer: info.id, contact: info.contact, class, dialled };
        self.give(host, up);
        self.pipes[end as usize].was_open = true;
        self.open_connection(end);
    }

    /// Ends a link in good order: what is queued goes out first.
    pub(super) fn close(&mut self, end: u32) {
        if let Some(session) = &mut self.ends[end as usize].session {
            session.close();
            self.touched.push(end);
        }
    }

    /// Gives an idle pipe its next parcel, when its session has one.
    pub(super) fn pump(&mut self, end: u32) {
        if self.config.wire == Wire::Packet {
            return self.pump_packets(end);
        }
        if self.pipes[end as usize].in_service > 0 {
            return;
        }
        let host_at = self.ends[end as usize].host as usize;
        let Some(session) = &mut self.ends[end as usize].session else { return };
        if self.config.wire == Wire::Latency {
            return self.pump_latency(end, self.now, None);
        }
        let pipe = &mut self.pipes[end as usize];
        let Some(is_control) = pipe.load(session, &mut self.frames) else {
            return self.fluid.stop(self.now, end, &mut self.queue);
        };
        let bytes = u64::from(pipe.payload + pipe.control);
        session.set_pipe_unsent(self.hosts[host_at].clock.local(self.now), bytes);
        // Room is refused above the low-water mark, so at most one block and one parcel exceed it.
        let bound = self.config.link.low_water + u64::from(self.config.block_len) + bytes;
        let unsent = session.measured().unsent;
        if self.config.check && unsent > bound {
            let host = self.ends[end as usize].host;
            let name = self.hosts[host as usize].spec.name.clone();
            return self.violation(&name, format!("{unsent} bytes wait in one link"));
        }
        let on_wire = bytes + self.config.overhead.bytes(bytes);
        self.fluid.serve(self.now, end, on_wire, is_control, &mut self.queue);
        self.drain_session(end);
    }

    /// Sends what the session at `end` has, as of `now`; `sequence` is its arrival's place in the
    /// order of events, the next one otherwise.
    pub(super) fn pump_latency(&mut self, end: u32, now: Time, sequence: Option<u64>) {
        let state = &mut self.ends[end as usize];
        let Some(session) = &mut state.session else { return };
        let pipe = &mut self.pipes[end as usize];
        let (mut frames, mut control) = (0, 0);
        while let Some(frame) = session.poll_transmit() {
            if matches!(frame, Frame::BlockStart { .. } | Frame::Fragment { .. }) {
                let (host, time) = (self.hosts[state.host as usize].spec.name.clone(), self.now);
                self.failure.get_or_insert(SimError::BulkOnLatencyWire { host, time });
                return;
            }
            control += frame.wire_len() as u64;
            frames += 1;
            self.frames.push_back(&mut pipe.frames, frame);
        }
        session.trim();
        if frames > 0 {
            let overhead = self.config.overhead.bytes(control);
            self.hosts[state.host as usize].meter.sent(now, 0, control, overhead);
            let sequence = sequence.unwrap_or_else(|| self.queue.reserve());
            pipe.arrives_after = pipe.arrives_after.max(pipe.after(now));
            let deliver = Event::Deliver { flow: end, frames };
            self.queue.push_at(pipe.arrives_after, sequence, deliver);
        }
        self.end_if_flushed(end);
    }

    pub(super) fn on_served(&mut self, flow: u32, turn: u32) {
        if !self.fluid.take_served(flow, turn) {
            return;
        }
        let pipe = &mut self.pipes[flow as usize];
        let frames = std::mem::take(&mut pipe.in_service);
        let (payload, control) = (u64::from(pipe.payload), u64::from(pipe.control));
        let overhead = self.config.overhead.bytes(payload + control);
        let host = self.ends[flow as usize].host;
        self.hosts[host as usize].meter.sent(self.now, payload, control, overhead);
        self.trace.add((u64::from(flow) << 32) | (payload + control));
        self.send_off(flow, frames);
        let local = self.hosts[host as usize].clock.local(self.now);
        if let Some(session) = &mut self.ends[flow as usize].session {
            session.set_pipe_unsent(local, 0);
        }
        self.end_if_flushed(flow);
        self.drain_session(flow);
        self.touched.push(flow);
    }

    fn send_off(&mut self, flow: u32, frames: u32) {
        let pipe = &mut self.pipes[flow as usize];
        pipe.arrives_after = pipe.arrives_after.max(pipe.after(self.now));
        self.queue.push(pipe.arrives_after, Event::Deliver { flow, frames });
    }

    pub(super) fn end_if_flushed(&mut self, end: u32) {
        if let Some(session) = &mut self.ends[end as usize].session
            && session.is_flushed()
        {
            session.fail(DownReason::Local);
            self.drain_session(end);
        }
    }

    pub(super) fn on_deliver(&mut self, flow: u32, frames: u32) {
        let end = flow ^ 1;
        let (host, peer) = (self.ends[end as usize].host, self.ends[end as usize].peer);
        if self.paths.is_cut(host, peer) {
            self.pipes[flow as usize].held_back += frames;
            return;
        }
        let (state, pipe) = (&mut self.ends[end as usize], &mut self.pipes[flow as usize]);
        let Some(session) = &mut state.session else {
            (0..frames).for_each(|_| drop(self.frames.pop_front(&mut pipe.frames)));
            return;
        };
        let local = self.hosts[host as usize].clock.local(self.now);
        let (mut payload, mut control) = (0, 0);
        for frame in (0..frames).map_while(|_| self.frames.pop_front(&mut pipe.frames)) {
            let (of_payload, of_control) = split_len(&frame);
            payload += of_payload;
            control += of_control;
            if session.handle_frame(local, frame).is_err() {
                break;
            }
        }
        self.hosts[host as usize].meter.received(self.now, payload, control);
        let told = if frames == 1 { session.poll_event() } else { None };
        self.trace.add((u64::from(end) << 32) | (payload + control));
        if let Some(Told::Message { channel: Channel::Overlay, bytes }) = told {
            // One frame has only this to tell, and nothing else waits for the member: no inbox.
            self.touch(end);
            return self.handle(host, Input::Message { link: LinkId(end / 2), bytes });
        }
        told.into_iter().for_each(|told| self.tell(end, told));
        self.drain_session(end);
        self.touch(end);
    }

    /// Lets `end` be pumped before this event is over. On the latency wire, where nothing waits for
    /// room, only when it has something to send: its pipe is not read from memory in vain.
    fn touch(&mut self, end: u32) {
        if self.config.wire == Wire::Latency {
            let Some(session) = &mut self.ends[end as usize].session else { return };
            if !session.wants_transmit() {
                return session.trim();
            }
        }
        self.touched.push(end);
    }

    pub(super) fn on_session_due(&mut self, end: u32) {
        let state = &mut self.ends[end as usize];
        let Some(session) = &mut state.session else { return };
        let clock = self.hosts[state.host as usize].clock;
        let coming = end ^ 1;
        if self.config.wire == Wire::Fluid
            && self.fluid.is_flowing(coming, self.pipes[coming as usize].before(self.now))
        {
            // Part of a parcel has arrived: on a slow link a whole one can take longer than
            // silence is borne.
            session.heard(clock.local(self.now));
        }
        session.handle_deadline(clock.local(self.now));
        if let Some(next) = session.next_deadline() {
            let at = clock.global(next).max(self.now + self.config.timer_step);
            self.queue.push(at, Event::SessionDue { end });
        }
        self.drain_session(end);
        self.touch(end);
    }

    /// The pipe is broken, as a reset from the far host says.
    pub(super) fn on_break(&mut self, end: u32) {
        let state = &mut self.ends[end as usize];
        if self.paths.is_cut(state.host, state.peer) {
            return;
        }
        if let Some(session) = &mut state.session {
            session.fail(DownReason::Broken);
            self.drain_session(end);
        }
    }

    /// Turns what the session at `end` has to tell into inputs.
    pub(super) fn drain_session(&mut self, end: u32) {
        while let Some(session) = &mut self.ends[end as usize].session
            && let Some(told) = session.poll_event()
        {
            self.tell(end, told);
        }
    }

    fn tell(&mut self, end: u32, told: Told) {
        let state = &mut self.ends[end as usize];
        let (host, link) = (state.host, LinkId(end / 2));
        match told {
            Told::Message { channel: Channel::Overlay, bytes } => {
                self.give(host, Input::Message { link, bytes });
            }
            // No driver here has content messages: every block is verifiable.
            Told::Message { channel: Channel::Content, .. } => {}
            Told::BlockStart { block, header, .. } => {
                state.incoming = Some(Box::new((block, header)));
            }
            Told::Fragment { last: false, .. } => {}
            Told::Fragment { last: true, .. } => {
                if let Some((block, header)) = state.incoming.take().map(|incoming| *incoming) {
                    let is_corrupt = self.hosts[state.peer as usize].spec.corrupt;
                    let arrival = Arrival::Block { end, block, header, is_corrupt };
                    self.give_arrival(host, arrival);
                }
            }
            Told::BlockAborted { block } => {
                state.incoming = None;
                self.give(host, Input::BadBlock { link, block, corrupt: false });
            }
            Told::Room => self.give(host, Input::Room { link }),
            Told::Down { reason } => self.on_down(end, reason),
        }
    }

    fn on_down(&mut self, end: u32, reason: DownReason) {
        let (host, peer) = (self.ends[end as usize].host, self.ends[end as usize].peer);
        let in_order = matches!(reason, DownReason::Local | DownReason::Remote);
        self.drop_end(end, in_order);
        self.give(host, Input::LinkDown { link: LinkId(end / 2), reason });
        // TCP's own reset says so on the packet wire.
        if !in_order && self.config.wire != Wire::Packet {
            let at = self.pipes[end as usize].after(self.now);
            self.queue.push(at, Event::Break { end: end ^ 1 });
        }
        let state = &mut self.hosts[host as usize];
        if state.peers.get(&peer) == Some(&end) {
            state.peers.remove(&peer);
        }
        self.end_leaving(host);
    }

    /// Forgets the session at `end` and what its pipe has not sent; what is in flight arrives.
    /// `in_order`: nothing that the session sent is to be lost.
    pub(super) fn drop_end(&mut self, end: u32, in_order: bool) {
        let state = &mut self.ends[end as usize];
        state.drop_session();
        if self.config.wire == Wire::Packet {
            return self.end_connection(end, in_order);
        }
        let pipe = &mut self.pipes[end as usize];
        pipe.held = None;
        let in_service = std::mem::take(&mut pipe.in_service);
        if in_service > 0 {
            self.frames.drop_back(&mut pipe.frames, in_service);
        }
        if self.config.wire == Wire::Fluid {
            self.fluid.stop(self.now, end, &mut self.queue);
        }
    }

    /// The far host of `end` is gone without a word.
    pub(super) fn stall(&mut self, end: u32) {
        self.pipes[end as usize].is_dead = true;
        if self.config.wire == Wire::Fluid {
            self.fluid.set_cap(self.now, end, 0.0, &mut self.queue);
        }
    }

    /// Brings all pipes in line with the paths, after these have changed.
    pub(super) fn refresh_pipes(&mut self) {
        if self.config.wire == Wire::Packet {
            return;
        }
        for end in 0..self.ends.len() as u32 {
            let (host, peer) = (self.ends[end as usize].host, self.ends[end as usize].peer);
            let pipe = &mut self.pipes[end as usize];
            pipe.delay = nanos(self.paths.delay(host, peer));
            self.letters.note_delay(pipe.delay);
            let cap = self.paths.cap(host, peer);
            if pipe.is_dead || pipe.cap == cap {
                continue;
            }
            pipe.cap = cap;
            let frames = if cap > 0.0 { std::mem::take(&mut pipe.held_back) } else { 0 };
            if self.config.wire == Wire::Fluid {
                self.fluid.set_cap(self.now, end, cap, &mut self.queue);
            }
            if frames > 0 {
                self.send_off(end, frames);
            }
        }
    }
}

impl Pipe {
    fn after(&self, sent: Time) -> Time {
        Time(sent.0.saturating_add(self.delay))
    }

    fn before(&self, arrived: Time) -> Time {
        Time(arrived.0.saturating_sub(self.delay))
    }

    /// Pulls a parcel into service; whether it is all control, or `None` when there is nothing.
    fn load(&mut self, session: &mut Session, frames: &mut Frames) -> Option<bool> {
        (self.payload, self.control) = (0, 0);
        let mut is_control = true;
        while let Some(frame) =
            self.held.take().map(|held| *held).or_else(|| session.poll_transmit())
        {
            let is_fragment = matches!(frame, Frame::Fragment { .. });
            let is_block = is_fragment || matches!(frame, Frame::BlockStart { .. });
            if is_block && is_control && self.in_service > 0 {
                self.held = Some(Box::new(frame));
                break;
            }
            is_control &= !is_block;
            let (payload, control) = split_len(&frame);
            // A parcel is a fragment and what belongs before it: far below 4 GiB.
            self.payload += payload as u32;
            self.control += control as u32;
            self.in_service += 1;
            frames.push_back(&mut self.frames, frame);
            if is_fragment || self.control >= FRAGMENT_LEN_MAX {
                break;
            }
        }
        (self.in_service > 0).then_some(is_control)
    }
}

fn nanos(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)
}

/// A frame's bytes: (payload, control).
pub(super) fn split_len(frame: &Frame) -> (u64, u64) {
    let len = frame.wire_len() as u64;
    match frame {
        Frame::Fragment { len: payload } => (u64::from(*payload), len - u64::from(*payload)),
        _ => (0, len),
    }
}
