//! The receiving half of a link: frames to session, payload to store.

use super::{Fatal, FrameSink, HeldBlock, Link, LinkEvent};
use crate::clock;
use crate::group::Shared;
use crate::store::{BlockWriter, Refused, Store, WriteError};
use anabranch_proto::id::BlockIndex;
use anabranch_proto::link::frame::{Channel, Frame, FrameError};
use anabranch_proto::link::{Event, Session, SessionError};
use anabranch_proto::overlay::DownReason;
use anabranch_proto::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most bytes of blocks that a group keeps in memory until they can be verified.
pub(crate) const HELD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why the far end is not listened to any longer.
#[derive(Debug)]
pub(crate) struct Broken;

impl From<FrameError> for Broken {
    fn from(_: FrameError) -> Broken {
        Broken
    }
}

impl From<SessionError> for Broken {
    fn from(_: SessionError) -> Broken {
        Broken
    }
}

/// What becomes of the block under way.
enum Incoming {
    /// There is none.
    None,
    /// It is verified and stored as it comes.
    Writing { block: BlockIndex, header: Vec<u8>, len: u32, writer: BlockWriter },
    /// It cannot be verified yet: its bytes are collected.
    Holding(HeldBlock),
    /// It is of no use: its bytes are skipped.
    Skipping { block: BlockIndex, corrupt: bool },
}

/// The receiving half of a link.
pub(crate) struct Receiver {
    link: Arc<Link>,
    group: Arc<Shared>,
    /// The group's, once there is one.
    store: Option<Arc<Store>>,
    incoming: Incoming,
    /// Whether the fragment under way is the last of its block.
    last: bool,
    /// The session's events, drained under its lock and handled after.
    events: VecDeque<Event>,
    /// Why the session is over, once it is.
    pub(crate) down: Option<DownReason>,
    /// For the actor, in order.
    pub(crate) outbox: VecDeque<LinkEvent>,
    /// When the bytes at hand came.
    pub(crate) now: Time,
}

impl Receiver {
    pub(crate) fn new(link: Arc<Link>, group: Arc<Shared>) -> Receiver {
        Receiver {
            link,
            group,
            store: None,
            incoming: Incoming::None,
            last: false,
            events: VecDeque::new(),
            down: None,
            outbox: VecDeque::new(),
            now: clock::now(),
        }
    }

    /// Handles what the session has to tell.
    pub(crate) fn drain(&mut self) {
        let link = self.link.clone();
        self.collect(&mut link.lock().session);
        self.on_events();
    }

    fn collect(&mut self, session: &mut Session) {
        self.events.extend(std::iter::from_fn(|| session.poll_event()));
    }

    fn on_events(&mut self) {
        while let Some(event) = self.events.pop_front() {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Message { channel: Channel::Overlay, bytes } => {
                self.outbox.push_back(LinkEvent::Overlay(bytes));
            }
            Event::Message { channel: Channel::Content, bytes } => {
                self.outbox.push_back(LinkEvent::Content(bytes));
            }
            Event::BlockStart { block, len, header, proof } => {
                self.on_block_start(block, len, header, proof);
            }
            Event::Fragment { last, .. } => self.last = last,
            Event::BlockAborted { block } => {
                self.give_up();
                self.outbox.push_back(LinkEvent::BadBlock { block, corrupt: false });
            }
            Event::Room => self.outbox.push_back(LinkEvent::Room),
            Event::Down { reason } => self.down = Some(reason),
        }
    }

    fn on_block_start(&mut self, block: BlockIndex, len: u32, header: Vec<u8>, proof: Vec<u8>) {
        if self.store.is_none() {
            self.store = self.group.store();
        }
        let begun = match &self.store {
            Some(store) => store.begin(block, len, &proof),
            None => Err(Refused::NotVerifiable),
        };
        self.incoming = match begun {
            Ok(writer) => Incoming::Writing { block, header, len, writer },
            Err(Refused::NotVerifiable) if self.reserve(len) => {
                let bytes = Vec::with_capacity(len as usize);
                Incoming::Holding(HeldBlock { block, len, header, proof, bytes })
            }
            Err(Refused::NotVerifiable) => Incoming::Skipping { block, corrupt: false },
            Err(Refused::Length | Refused::Corrupt) => Incoming::Skipping { block, corrupt: true },
        };
    }

    fn reserve(&self, len: u32) -> bool {
        let held = &self.group.held_bytes;
        let taken = held.fetch_add(u64::from(len), Ordering::Relaxed) + u64::from(len);
        if taken > HELD_BYTES_MAX {
            held.fetch_sub(u64::from(len), Ordering::Relaxed);
        }
        taken <= HELD_BYTES_MAX
    }

    /// Forgets the block under way.
    fn give_up(&mut self) {
        if let Incoming::Holding(held) = std::mem::replace(&mut self.incoming, Incoming::None) {
            self.group.release(held.len);
        }
    }

    fn on_block_end(&mut self) {
        match std::mem::replace(&mut self.incoming, Incoming::None) {
            Incoming::Writing { block, header, len, writer } => match writer.finish() {
                Ok(written) => {
                    self.outbox.push_back(LinkEvent::Block { block, header, len, written });
                }
                Err(error) => self.on_write_error(block, error),
            },
            Incoming::Holding(held) => self.outbox.push_back(LinkEvent::Held(held)),
            Incoming::Skipping { block, corrupt } => {
                self.outbox.push_back(LinkEvent::BadBlock { block, corrupt });
            }
            Incoming::None => {}
        }
    }

    fn on_write_error(&mut self, block: BlockIndex, error: WriteError) {
        match error {
            WriteError::Corrupt => {
                self.outbox.push_back(LinkEvent::BadBlock { block, corrupt: true });
            }
            WriteError::Storage(error) => {
                self.outbox.push_back(LinkEvent::Fatal(Fatal::Storage(error)));
            }
            WriteError::Contradiction(why) => {
                self.outbox.push_back(LinkEvent::Fatal(Fatal::Contradiction(why)));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        match &mut self.incoming {
            Incoming::Writing { block, writer, .. } => {
                let block = *block;
                if let Err(error) = writer.write(bytes) {
                    // A corrupt unit ends the link at once: see the actor.
                    self.incoming = Incoming::None;
                    self.on_write_error(block, error);
                }
            }
            Incoming::Holding(held) => held.bytes.extend_from_slice(bytes),
            Incoming::Skipping { .. } | Incoming::None => {}
        }
    }
}

impl FrameSink for Receiver {
    type Error = Broken;

    fn frame(&mut self, frame: Frame) -> Result<(), Broken> {
        let link = self.link.clone();
        let mut state = link.lock();
        let handled = state.session.handle_frame(self.now, frame);
        self.collect(&mut state.session);
        drop(state);
        self.on_events();
        if self.down.is_some() { Err(Broken) } else { Ok(handled?) }
    }

    fn payload(&mut self, bytes: &[u8], end: bool) -> Result<(), Broken> {
        self.write(bytes);
        if end && self.last {
            self.last = false;
            self.on_block_end();
        }
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.give_up();
    }
}
