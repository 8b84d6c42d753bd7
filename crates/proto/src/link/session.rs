//! The session's state machine: queues, fragments, room, liveness. See [the module](super).
//!
//! Driver's loop: frames that arrived go into [`Session::handle_frame`]; events are drained with
//! [`Session::poll_event`]; while the pipe takes bytes, frames are pulled with
//! [`Session::poll_transmit`] (so what goes next is decided as late as possible) and the pipe's
//! backlog is reported with [`Session::set_pipe_unsent`]; at [`Session::next_deadline`],
//! [`Session::handle_deadline`].

use super::backlog::{self, Backlog};
use super::estimate::Rtt;
use super::frame::{Bye, Channel, Frame};
use super::{FRAGMENT_LEN_MAX, HEADER_LEN_MAX, MESSAGE_LEN_MAX};
use crate::id::BlockIndex;
use crate::overlay::{DownReason, Measured};
use crate::time::{Duration, Time};
use std::collections::VecDeque;
use std::sync::Arc;
use thiserror::Error;

/// A session's parameters; the defaults suit links from 100 kb/s to 10 Gb/s.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Blocks are accepted while fewer unsent bytes than this, and than four times the backlog,
    /// wait in the session and the pipe. Default 32 KiB: two fragments, so the pipe never runs dry
    /// between two blocks; raised, a block waits longer in front of the socket.
    pub low_water: u64,
    /// What may wait unsent in the pipe.
    pub backlog: backlog::Bounds,
    /// Bytes of queued messages beyond which the far side is taken for dead. Default 4 MiB.
    pub control_bytes_max: usize,
    /// A ping goes out after this long without a sign of life. Default 2 s.
    pub ping_after: Duration,
    /// The link is down after this long without a sign of life. Default 8 s.
    pub dead_after: Duration,
    /// Payload bytes of a fragment, at most [`FRAGMENT_LEN_MAX`]; fewer when the backlog is.
    pub fragment_len: u32,
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig {
            low_water: 32 * 1024,
            backlog: backlog::Bounds::default(),
            control_bytes_max: 4 * 1024 * 1024,
            ping_after: Duration::from_secs(2),
            dead_after: Duration::from_secs(8),
            fragment_len: FRAGMENT_LEN_MAX,
        }
    }
}

/// What a session tells its driver.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A message for the user of `channel`.
    Message {
        /// Whose it is.
        channel: Channel,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A block begins to arrive.
    BlockStart {
        /// Which.
        block: BlockIndex,
        /// Its length in bytes.
        len: u32,
        /// The overlay's per-hop header.
        header: Vec<u8>,
        /// Hashes of its verify units, for the driver.
        proof: Vec<u8>,
    },
    /// The next `len` bytes of the block under way, from `offset`.
    Fragment {
        /// Which block.
        block: BlockIndex,
        /// From where in it.
        offset: u32,
        /// How many bytes.
        len: u32,
        /// Whether the block is complete with them.
        last: bool,
    },
    /// The far side gave the block under way up.
    BlockAborted {
        /// Which.
        block: BlockIndex,
    },
    /// A refused block may be offered again.
    Room,
    /// The session is over.
    Down {
        /// Why.
        reason: DownReason,
    },
}

/// What the far side did that no correct peer does; the link is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SessionError {
    /// A block began before the one under way ended.
    #[error("a block began inside another")]
    BlockInsideBlock,
    /// A fragment without a block, or beyond its end.
    #[error("a fragment belongs to no block")]
    StrayFragment,
}

#[derive(Clone, Debug)]
struct BlockOut {
    block: BlockIndex,
    len: u32,
    header: Vec<u8>,
    sent: u32,
    started: bool,
}

#[derive(Clone, Copy, Debug)]
struct BlockIn {
    block: BlockIndex,
    len: u32,
    received: u32,
}

/// One end of a session. See [the module](super).
#[derive(Debug)]
pub struct Session {
    config: Arc<LinkConfig>,
    control: VecDeque<Frame>,
    control_bytes: usize,
    blocks: VecDeque<BlockOut>,
    blocks_unsent: u64,
    pipe_unsent: u64,
    /// Bytes of frames given to the pipe.
    pulled: u64,
    backlog: Backlog,
    refused: bool,
    abort_pending: bool,
    incoming: Option<BlockIn>,
    events: VecDeque<Event>,
    heard_at: Time,
    ping_at: Option<Time>,
    /// When the last ping went out, until its pong is there.
    ping_sent: Option<Time>,
    /// Whether anything went out since the last look.
    has_sent: bool,
    pings: u64,
    rtt: Rtt,
    closing: bool,
    bye_sent: bool,
    down: bool,
    block_bytes_in: u64,
    block_bytes_out: u64,
}

impl Session {
    /// A session over a pipe that is ready and whose hellos are exchanged. Who has many shares one
    /// `Arc` of the parameters between them.
    pub fn new(config: impl Into<Arc<LinkConfig>>, now: Time) -> Session {
        let config = config.into();
        debug_assert!((1..=FRAGMENT_LEN_MAX).contains(&config.fragment_len));
        let backlog = Backlog::new(&config.backlog, now);
        Session {
            // The first ping goes out at once: it measures the round trip.
            ping_at: Some(now),
            config,
            control: VecDeque::new(),
            control_bytes: 0,
            blocks: VecDeque::new(),
            blocks_unsent: 0,
            pipe_unsent: 0,
            pulled: 0,
            backlog,
            refused: false,
            abort_pending: false,
            incoming: None,
            events: VecDeque::new(),
            heard_at: now,
            ping_sent: None,
            has_sent: false,
            pings: 0,
            rtt: Rtt::default(),
            closing: false,
            bye_sent: false,
            down: false,
            block_bytes_in: 0,
            block_bytes_out: 0,
        }
    }

    /// Queues a message. A far side that reads so slowly that the control queue overflows is
    /// given up.
    pub fn send(&mut self, channel: Channel, bytes: Vec<u8>) {
        debug_assert!(bytes.len() <= MESSAGE_LEN_MAX);
        if self.down || self.closing {
            return;
        }
        self.queue(Frame::Message { channel, bytes });
    }

    /// Queues a control frame. Answers to pings count too: a far side that pings and does not read
    /// must not fill the memory.
    fn queue(&mut self, frame: Frame) {
        self.control_bytes += queued_len(&frame);
        self.control.push_back(frame);
        if self.control_bytes > self.config.control_bytes_max {
            self.fail(DownReason::Silent);
        }
    }

    /// Offers a block: true when accepted; false when there is no room, and then exactly one
    /// [`Event::Room`] follows.
    pub fn try_send_block(&mut self, block: BlockIndex, len: u32, header: Vec<u8>) -> bool {
        debug_assert!(header.len() <= HEADER_LEN_MAX && len > 0);
        if self.down || self.closing || self.unsent() >= self.low_water() {
            self.refused = true;
            return false;
        }
        self.blocks_unsent += u64::from(len);
        self.blocks.push_back(BlockOut { block, len, header, sent: 0, started: false });
        true
    }

    /// Asks for one [`Event::Room`] when the session next takes a block; at once when it does now.
    pub fn want_room(&mut self) {
        self.refused = true;
        self.check_room();
    }

    /// The driver cannot read the block under way: it is abandoned and the far side told.
    pub fn abort_block(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            self.blocks_unsent -= u64::from(block.len - block.sent);
            self.abort_pending = block.started;
            self.check_room();
        }
    }

    /// The next frame for the pipe; control goes between fragments. For a
    /// [`Frame::Fragment`] the payload is the bytes of the block [`Session::sending`] names.
    pub fn poll_transmit(&mut self) -> Option<Frame> {
        let frame = self.next_frame()?;
        self.has_sent = true;
        self.pulled += match &frame {
            Frame::Fragment { len } => u64::from(*len),
            other => other.wire_len() as u64,
        };
        Some(frame)
    }

    fn next_frame(&mut self) -> Option<Frame> {
        if self.down {
            return None;
        }
        if self.abort_pending {
            self.abort_pending = false;
            return Some(Frame::BlockAbort);
        }
        if let Some(frame) = self.control.pop_front() {
            self.control_bytes -= queued_len(&frame);
            return Some(frame);
        }
        let Some(current) = self.blocks.front_mut() else { return self.poll_bye() };
        if !current.started {
            current.started = true;
            let header = std::mem::take(&mut current.header);
            let (block, len) = (current.block, current.len);
            return Some(Frame::BlockStart { block, len, header, proof: Vec::new() });
        }
        let len_max = u64::from(self.config.fragment_len).min(self.backlog.limit().max(1)) as u32;
        let len = len_max.min(current.len - current.sent);
        current.sent += len;
        self.blocks_unsent -= u64::from(len);
        self.block_bytes_out += u64::from(len);
        // The pipe holds it now; the driver corrects this with what the pipe really holds.
        self.pipe_unsent += u64::from(len);
        if current.sent == current.len {
            self.blocks.pop_front();
        }
        Some(Frame::Fragment { len })
    }

    fn poll_bye(&mut self) -> Option<Frame> {
        if !self.closing || self.bye_sent {
            return None;
        }
        self.bye_sent = true;
        Some(Frame::Bye { reason: Bye::Done })
    }

    /// The block the next fragment belongs to, and the offset it starts from. Read it before
    /// [`Session::poll_transmit`].
    pub fn sending(&self) -> Option<(BlockIndex, u32)> {
        self.blocks.front().map(|out| (out.block, out.sent))
    }

    /// Whether [`Session::poll_transmit`] has something to give.
    pub fn wants_transmit(&self) -> bool {
        let bye = self.closing && !self.bye_sent;
        let queued = !self.control.is_empty() || !self.blocks.is_empty();
        !self.down && (self.abort_pending || queued || bye)
    }

    /// The driver says how many bytes it has put into the pipe that the pipe has not sent.
    pub fn set_pipe_unsent(&mut self, now: Time, bytes: u64) {
        self.pipe_unsent = bytes;
        self.backlog.update(&self.config.backlog, now, self.pulled.saturating_sub(bytes));
        self.check_room();
    }

    /// How many bytes should wait unsent in the pipe at most: the driver pulls no more frames
    /// while more do.
    pub fn backlog(&self) -> u64 {
        self.backlog.limit()
    }

    fn low_water(&self) -> u64 {
        self.config.low_water.min(self.backlog.limit() * 4)
    }

    /// A frame arrived (for a fragment: with its payload, which the driver keeps).
    pub fn handle_frame(&mut self, now: Time, frame: Frame) -> Result<(), SessionError> {
        self.heard(now);
        if self.down {
            return Ok(());
        }
        let handled = self.handle_live_frame(now, frame);
        if handled.is_err() {
            self.fail(DownReason::Broken);
        }
        handled
    }

    fn handle_live_frame(&mut self, now: Time, frame: Frame) -> Result<(), SessionError> {
        match frame {
            Frame::Message { channel, bytes } => {
                self.events.push_back(Event::Message { channel, bytes });
            }
            Frame::BlockStart { block, len, header, proof } => {
                if self.incoming.is_some() {
                    return Err(SessionError::BlockInsideBlock);
                }
                self.incoming = Some(BlockIn { block, len, received: 0 });
                self.events.push_back(Event::BlockStart { block, len, header, proof });
            }
            Frame::Fragment { len } => self.handle_fragment(len)?,
            Frame::BlockAbort => {
                let under_way = self.incoming.take().ok_or(SessionError::StrayFragment)?;
                self.events.push_back(Event::BlockAborted { block: under_way.block });
            }
            Frame::Ping { nonce } => self.queue(Frame::Pong { nonce }),
            Frame::Pong { nonce } => self.handle_pong(now, nonce),
            Frame::Bye { reason: Bye::Done } => self.fail(DownReason::Remote),
            Frame::Bye { reason: Bye::Protocol } => self.fail(DownReason::Broken),
            Frame::Unknown { .. } => {}
        }
        Ok(())
    }

    fn handle_fragment(&mut self, len: u32) -> Result<(), SessionError> {
        let Some(current) = &mut self.incoming else { return Err(SessionError::StrayFragment) };
        if len > current.len - current.received {
            return Err(SessionError::StrayFragment);
        }
        let offset = current.received;
        current.received += len;
        let (block, last) = (current.block, current.received == current.len);
        if last {
            self.incoming = None;
        }
        self.block_bytes_in += u64::from(len);
        self.events.push_back(Event::Fragment { block, offset, len, last });
        Ok(())
    }

    fn handle_pong(&mut self, now: Time, nonce: u64) {
        if let Some(at) = self.ping_sent
            && self.pings == nonce
        {
            self.rtt.sample(now.since(at));
            self.ping_sent = None;
        }
    }

    /// Bytes of any kind arrived: the far side lives.
    pub fn heard(&mut self, now: Time) {
        self.heard_at = self.heard_at.max(now);
    }

    /// What the session has to tell.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Session::handle_deadline`] is due.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.down {
            return None;
        }
        let dead_at = self.heard_at + self.config.dead_after;
        Some(self.ping_at.map_or(dead_at, |ping| ping.min(dead_at)))
    }

    /// Pings when it is time to, and gives a silent far side up.
    pub fn handle_deadline(&mut self, now: Time) {
        if self.down {
            return;
        }
        if now >= self.heard_at + self.config.dead_after {
            return self.fail(DownReason::Silent);
        }
        if self.ping_at.is_some_and(|at| now >= at) {
            // Silence of one's own counts too: the far side may be sending one long fragment, and
            // hear nothing while its own ping waits behind it.
            let unheard = now.since(self.heard_at) >= self.config.ping_after;
            let quiet = unheard || !self.has_sent || self.pings == 0;
            self.has_sent = false;
            if quiet {
                self.pings += 1;
                self.ping_sent = Some(now);
                self.queue(Frame::Ping { nonce: self.pings });
            }
            let from = if quiet { now } else { self.heard_at };
            self.ping_at =
                Some((from + self.config.ping_after).max(now + self.config.ping_after / 4));
        }
    }

    /// Ends the session in good order: what is queued goes out, then a farewell; the driver closes
    /// the pipe when [`Session::is_flushed`].
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Whether everything queued before [`Session::close`] went to the pipe.
    pub fn is_flushed(&self) -> bool {
        self.down || (self.bye_sent && self.pipe_unsent == 0)
    }

    /// The pipe broke, or the driver is done with it.
    pub fn fail(&mut self, reason: DownReason) {
        if !self.down {
            self.down = true;
            let reason = if self.closing { DownReason::Local } else { reason };
            self.events.push_back(Event::Down { reason });
        }
    }

    /// Gives the memory of empty queues back: for who has very many sessions, most of them idle.
    pub fn trim(&mut self) {
        if self.control.is_empty() {
            self.control = VecDeque::new();
        }
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
        if self.blocks.is_empty() {
            self.blocks = VecDeque::new();
        }
    }

    /// Whether the session is over.
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// What the session has measured.
    pub fn measured(&self) -> Measured {
        Measured {
            rtt: self.rtt.smoothed(),
            block_bytes_in: self.block_bytes_in,
            block_bytes_out: self.block_bytes_out,
            unsent: self.unsent(),
        }
    }

    fn unsent(&self) -> u64 {
        self.blocks_unsent + self.pipe_unsent
    }

    fn check_room(&mut self) {
        if self.refused && !self.closing && !self.down && self.unsent() < self.low_water() {
            self.refused = false;
            self.events.push_back(Event::Room);
        }
    }
}

/// What a queued frame costs in memory, in bytes.
fn queued_len(frame: &Frame) -> usize {
    std::mem::size_of::<Frame>() + frame.wire_len()
}

#[cfg(test)]
mod tests;
