//! One link: a [`Session`] over TLS over TCP, run by a task of its own.
//!
//! ```text
//!  group's actor ── try_send_block, send ──▶ Session (behind a lock) ◀── link task ──▶ socket
//!                ◀───────── LinkEvent ──────────────────────────────────┘   │
//!                                             store: read_at, BlockWriter ◀─┘
//! ```
//!
//! The task moves payload between socket and store itself; the actor only hears what happened.
//! The lock is held for a call of the session, never across a read, a write or an await.

mod frames;
pub(crate) mod hello;
mod receive;
mod task;
mod transmit;

pub(crate) use frames::{FrameReader, FrameSink};
pub(crate) use task::run;

use crate::store::{StorageError, Written};
use anabranch_proto::id::{BlockIndex, Contact, LinkId, PeerId};
use anabranch_proto::link::Session;
use anabranch_proto::overlay::DownReason;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What the group's actor and the link's task share.
pub(crate) struct Link {
    pub(crate) id: LinkId,
    /// Who is at the far end, proved.
    pub(crate) peer: PeerId,
    /// How others reach it, as it says.
    pub(crate) contact: Contact,
    /// Whether this end dialled.
    pub(crate) dialled: bool,
    state: Mutex<State>,
}

struct State {
    session: Session,
    /// Of the task, while it sleeps.
    waker: Option<Waker>,
}

impl Link {
    pub(crate) fn new(
        id: LinkId,
        peer: PeerId,
        contact: Contact,
        dialled: bool,
        session: Session,
    ) -> Arc<Link> {
        let state = Mutex::new(State { session, waker: None });
        Arc::new(Link { id, peer, contact, dialled, state })
    }

    /// Uses the session from outside of the task, and wakes the task to look what there is to do.
    pub(crate) fn with(&self, act: impl FnOnce(&mut Session)) {
        self.with_if(|session| {
            act(session);
            true
        });
    }

    /// Uses the session from outside of the task, and wakes the task if that returns true.
    pub(crate) fn with_if(&self, act: impl FnOnce(&mut Session) -> bool) -> bool {
        let mut state = self.lock();
        let done = act(&mut state.session);
        let waker = if done { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        done
    }

    /// Looks at the session.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Session) -> T) -> T {
        look(&self.lock().session)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a link's task tells the group's actor.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// A message for the overlay.
    Overlay(Vec<u8>),
    /// A message for the driver: see [`crate::group`].
    Content(Vec<u8>),
    /// A block came whole and is in the store.
    Block { block: BlockIndex, header: Vec<u8>, len: u32, written: Written },
    /// A block came that could not be verified yet; it is kept in memory.
    Held(HeldBlock),
    /// A block came that is wrong (`corrupt`), was given up by the sender, or could not be kept.
    BadBlock { block: BlockIndex, corrupt: bool },
    /// A refused block may be offered again.
    Room,
    /// A block that was accepted cannot be read: the far end was told.
    Unreadable { block: BlockIndex, error: std::io::Error },
    /// The local disk failed, or the source contradicts itself: the group cannot go on.
    Fatal(Fatal),
    /// The link is over; the last event.
    Down(DownReason),
}

/// Why the whole group must end.
#[derive(Debug)]
pub(crate) enum Fatal {
    Storage(StorageError),
    Contradiction(String),
}

/// A block that waits in memory for the hashes it is verified with.
pub(crate) struct HeldBlock {
    pub(crate) block: BlockIndex,
    /// Bytes, which count against the group's bound until it is released.
    pub(crate) len: u32,
    pub(crate) header: Vec<u8>,
    pub(crate) proof: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

impl std::fmt::Debug for HeldBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeldBlock({}, {} bytes)", self.block, self.len)
    }
}
