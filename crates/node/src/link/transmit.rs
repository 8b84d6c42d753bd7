//! The sending half of a link: frames and payload into sealed records.

use super::{Link, LinkEvent};
use crate::group::Shared;
use crate::store::Store;
use crate::tls::record::{self, HEAD_LEN, Keys, PLAIN_LEN_MAX, RECORD_LEN_MAX, RecordError};
use anabranch_proto::id::BlockIndex;
use anabranch_proto::link::frame::{self, Frame};
use anabranch_proto::time::Time;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Payload of a fragment: with its head it fills a record, so payload is read from the store
/// straight to where it is sealed.
pub(crate) const FRAGMENT_LEN: u32 = (PLAIN_LEN_MAX - frame::HEAD_LEN) as u32;
/// Records that are sealed ahead of the socket at most, on a fast path: few, so that what is sent
/// is decided late, and enough for one write to be worth its system call.
const RECORDS: usize = 5;

/// A fragment that the session has given and that no record holds yet.
#[derive(Clone, Copy)]
struct Fragment {
    block: BlockIndex,
    offset: u32,
    len: u32,
}

/// What one turn of filling found.
pub(crate) struct Filled {
    /// When the rate limit lets more through, if it is what stopped the filling.
    pub(crate) limited_until: Option<Time>,
}

/// Sealed bytes that wait for the socket.
pub(crate) struct Transmitter {
    seal: Keys,
    /// The group's, once a block is to be sent.
    store: Option<Arc<Store>>,
    bytes: Box<[u8]>,
    sent: usize,
    end: usize,
    /// Encoded frames that still have to go into records, from `placed`.
    frames: Vec<u8>,
    placed: usize,
    fragment: Option<Fragment>,
}

impl Transmitter {
    pub(crate) fn new(seal: Keys) -> Transmitter {
        let bytes = vec![0; RECORDS * RECORD_LEN_MAX].into_boxed_slice();
        let (frames, fragment) = (Vec::new(), None);
        Transmitter { seal, store: None, bytes, sent: 0, end: 0, frames, placed: 0, fragment }
    }

    /// The sealed bytes that the socket has not taken.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..self.end]
    }

    /// Whether everything taken from the session is sealed and with the socket.
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.end && self.placed == self.frames.len() && self.fragment.is_none()
    }

    /// Whether something taken from the session waits to be sealed.
    pub(crate) fn has_unsealed(&self) -> bool {
        self.placed < self.frames.len() || self.fragment.is_some()
    }

    /// Bytes between the session and the socket.
    pub(crate) fn backlog(&self) -> u64 {
        let fragment = self.fragment.map_or(0, |fragment| fragment.len as usize);
        (self.end - self.sent + self.frames.len() - self.placed + fragment) as u64
    }

    /// The socket took `len` bytes.
    pub(crate) fn advance(&mut self, len: usize) {
        self.sent += len;
        if self.sent == self.end {
            (self.sent, self.end) = (0, 0);
        }
    }

    /// Seals what the session has to send, as far as buffer and rate limit allow. Call it when
    /// [`Transmitter::unsent`] is empty.
    pub(crate) fn fill(
        &mut self,
        now: Time,
        link: &Link,
        group: &Shared,
        outbox: &mut VecDeque<LinkEvent>,
    ) -> Result<Filled, RecordError> {
        let limit = &group.core.up;
        let backlog = link.look(|session| session.backlog()) as usize;
        while self.bytes.len() - self.end >= RECORD_LEN_MAX && self.end < backlog {
            if !self.has_unsealed() && !link.look(|session| session.wants_transmit()) {
                break;
            }
            if let Some(at) = limit.opens_at(now) {
                return Ok(Filled { limited_until: Some(at) });
            }
            let len = self.fill_record(link, group, outbox);
            if len == 0 {
                break;
            }
            let end = self.end + HEAD_LEN + len + record::TAIL_LEN;
            self.seal.seal(&mut self.bytes[self.end..end])?;
            limit.spend(now, end - self.end);
            self.end = end;
        }
        Ok(Filled { limited_until: None })
    }

    /// Puts plaintext into the next record's place; returns how much.
    fn fill_record(
        &mut self,
        link: &Link,
        group: &Shared,
        outbox: &mut VecDeque<LinkEvent>,
    ) -> usize {
        let mut len = 0;
        loop {
            len += self.place_frames(len);
            if len == PLAIN_LEN_MAX {
                return len;
            }
            let Some(fragment) = self.fragment else {
                match self.next_frame(link, group, outbox) {
                    true => continue,
                    false => return len,
                }
            };
            let wanted = frame::HEAD_LEN + fragment.len as usize;
            if len + wanted > PLAIN_LEN_MAX {
                return len;
            }
            self.fragment = None;
            match self.place_fragment(fragment, len, group) {
                Ok(()) => len += wanted,
                Err(error) => {
                    self.abort(fragment, link);
                    outbox.push_back(LinkEvent::Unreadable { block: fragment.block, error });
                }
            }
        }
    }

    /// Copies encoded frames behind `len` bytes of plaintext.
    fn place_frames(&mut self, len: usize) -> usize {
        let rest = &self.frames[self.placed..];
        let count = rest.len().min(PLAIN_LEN_MAX - len);
        let at = self.end + HEAD_LEN + len;
        self.bytes[at..at + count].copy_from_slice(&rest[..count]);
        self.placed += count;
        if self.placed == self.frames.len() {
            self.frames.clear();
            self.placed = 0;
        }
        count
    }

    fn place_fragment(&mut self, fragment: Fragment, len: usize, group: &Shared) -> io::Result<()> {
        let store = self.store.as_ref().ok_or_else(|| io::Error::other("no store yet"))?;
        let at = self.end + HEAD_LEN + len;
        let (head, rest) = self.bytes[at..].split_at_mut(frame::HEAD_LEN);
        store.read_at(fragment.block, fragment.offset, &mut rest[..fragment.len as usize])?;
        Frame::Fragment { len: fragment.len }.encode(&mut self.frames);
        head.copy_from_slice(&self.frames);
        self.frames.clear();
        group.counters.uploaded.fetch_add(u64::from(fragment.len), Ordering::Relaxed);
        Ok(())
    }

    /// Takes the next frame from the session; false when it has none.
    fn next_frame(
        &mut self,
        link: &Link,
        group: &Shared,
        outbox: &mut VecDeque<LinkEvent>,
    ) -> bool {
        let mut state = link.lock();
        let sending = state.session.sending();
        let frame = state.session.poll_transmit();
        drop(state);
        match (frame, sending) {
            (None, _) => return false,
            (Some(Frame::Fragment { len }), Some((block, offset))) => {
                self.fragment = Some(Fragment { block, offset, len });
            }
            (Some(Frame::BlockStart { block, len, header, .. }), _) => {
                if self.store.is_none() {
                    self.store = group.store();
                }
                let absent = Err(io::Error::other("no store yet"));
                let proof = self.store.as_ref().map_or(absent, |store| store.proof(block));
                let unreadable = proof.as_ref().err().is_some();
                let start =
                    Frame::BlockStart { block, len, header, proof: proof.unwrap_or_default() };
                start.encode(&mut self.frames);
                if unreadable {
                    link.lock().session.abort_block();
                    let error = io::Error::other("its hashes cannot be read");
                    outbox.push_back(LinkEvent::Unreadable { block, error });
                }
            }
            (Some(frame), _) => frame.encode(&mut self.frames),
        }
        true
    }

    /// The rest of a block cannot be read: the far end is told.
    fn abort(&mut self, fragment: Fragment, link: &Link) {
        let mut state = link.lock();
        if state.session.sending() == Some((fragment.block, fragment.offset + fragment.len)) {
            state.session.abort_block();
        } else {
            // It was the last fragment: the session is done with the block, the far end is not.
            Frame::BlockAbort.encode(&mut self.frames);
        }
    }
}
