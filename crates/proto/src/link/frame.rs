//! Frames: what travels on a session's pipe.
//!
//! Every frame is `kind: u8, length: u24 (little endian), body: length bytes`. Unknown kinds are
//! skipped, so a later version may add some. A block is one [`Frame::BlockStart`] and then
//! fragments until its length is reached; one block is under way per direction at a time, so a
//! fragment needs no block number. Other frames may come between fragments.

use super::{BLOCK_LEN_MAX, FRAGMENT_LEN_MAX, HEADER_LEN_MAX, MESSAGE_LEN_MAX, PROOF_LEN_MAX};
use crate::id::BlockIndex;
use thiserror::Error;

/// Bytes before a frame's body.
pub const HEAD_LEN: usize = 4;

/// Which of the two users of a link a message belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Channel {
    /// The overlay.
    Overlay,
    /// The driver's own: group parameters and block hashes.
    Content,
}

/// Why a session ends in good order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bye {
    /// The member leaves the group, or no longer needs this link.
    Done,
    /// The far side sent what cannot be right.
    Protocol,
}

/// One frame. A fragment's payload is not part of it: the driver appends or takes the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A message.
    Message {
        /// Whose it is.
        channel: Channel,
        /// Its bytes, at most [`MESSAGE_LEN_MAX`].
        bytes: Vec<u8>,
    },
    /// A block begins.
    BlockStart {
        /// Which block.
        block: BlockIndex,
        /// Its length in bytes, at most [`BLOCK_LEN_MAX`].
        len: u32,
        /// The overlay's per-hop header, at most [`HEADER_LEN_MAX`] bytes.
        header: Vec<u8>,
        /// Hashes of the block's verify units, put in and read by the driver, at most
        /// [`PROOF_LEN_MAX`] bytes.
        proof: Vec<u8>,
    },
    /// The next bytes of the block under way follow this head.
    Fragment {
        /// How many, at most [`FRAGMENT_LEN_MAX`].
        len: u32,
    },
    /// The block under way cannot be finished.
    BlockAbort,
    /// Asks for a pong.
    Ping {
        /// Returned by the pong.
        nonce: u64,
    },
    /// Answers a ping.
    Pong {
        /// Of the ping.
        nonce: u64,
    },
    /// Nothing more follows.
    Bye {
        /// Why.
        reason: Bye,
    },
    /// A frame of a kind this version does not know; skipped.
    Unknown {
        /// Its kind.
        kind: u8,
    },
}

/// Why bytes are not frames; the link is broken then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// A length beyond its bound.
    #[error("frame of kind {kind} is {len} bytes long, more than allowed")]
    TooLong {
        /// The frame's kind.
        kind: u8,
        /// Its length.
        len: u32,
    },
    /// A body that its kind does not allow.
    #[error("frame of kind {kind} is malformed")]
    Malformed {
        /// The frame's kind.
        kind: u8,
    },
}

const MESSAGE_OVERLAY: u8 = 1;
const MESSAGE_CONTENT: u8 = 2;
const BLOCK_START: u8 = 3;
const FRAGMENT: u8 = 4;
const BLOCK_ABORT: u8 = 5;
const PING: u8 = 6;
const PONG: u8 = 7;
const BYE: u8 = 8;

/// The longest body of any kind, a bound on what a reader must buffer.
pub const BODY_LEN_MAX: usize = MESSAGE_LEN_MAX;

impl Frame {
    /// Bytes of the frame on the pipe, a fragment's payload included.
    pub fn wire_len(&self) -> usize {
        HEAD_LEN
            + match self {
                Frame::Message { bytes, .. } => bytes.len(),
                Frame::BlockStart { header, proof, .. } => 12 + header.len() + proof.len(),
                Frame::Fragment { len } => *len as usize,
                Frame::Ping { .. } | Frame::Pong { .. } => 8,
                Frame::Bye { .. } => 1,
                Frame::BlockAbort | Frame::Unknown { .. } => 0,
            }
    }

    /// Appends the frame to `out`; for a fragment only its head, its payload must follow.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut head = |kind: u8, len: usize| {
            out.push(kind);
            out.extend_from_slice(&(len as u32).to_le_bytes()[..3]);
        };
        let body_len = self.wire_len() - HEAD_LEN;
        match self {
            Frame::Message { channel, bytes } => {
                let kind = match channel {
                    Channel::Overlay => MESSAGE_OVERLAY,
                    Channel::Content => MESSAGE_CONTENT,
                };
                head(kind, body_len);
                out.extend_from_slice(bytes);
            }
            Frame::BlockStart { block, len, header, proof } => {
                head(BLOCK_START, body_len);
                out.extend_from_slice(&block.to_le_bytes());
                out.extend_from_slice(&len.to_le_bytes());
                out.extend_from_slice(&(header.len() as u16).to_le_bytes());
                out.extend_from_slice(&(proof.len() as u16).to_le_bytes());
                out.extend_from_slice(header);
                out.extend_from_slice(proof);
            }
            Frame::Fragment { .. } => head(FRAGMENT, body_len),
            Frame::BlockAbort => head(BLOCK_ABORT, body_len),
            Frame::Ping { nonce } => {
                head(PING, body_len);
                out.extend_from_slice(&nonce.to_le_bytes());
            }
            Frame::Pong { nonce } => {
                head(PONG, body_len);
                out.extend_from_slice(&nonce.to_le_bytes());
            }
            Frame::Bye { reason } => {
                head(BYE, body_len);
                out.push(match reason {
                    Bye::Done => 0,
                    Bye::Protocol => 1,
                });
            }
            Frame::Unknown { kind } => head(*kind, body_len),
        }
    }
}

/// The head of a frame: its kind and the length of its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    kind: u8,
    len: u32,
}

impl Head {
    /// Reads a head; `None` when `bytes` holds less than one.
    pub fn decode(bytes: &[u8]) -> Result<Option<Head>, FrameError> {
        let Some(head) = bytes.get(..HEAD_LEN) else { return Ok(None) };
        let head = Head { kind: head[0], len: u32::from_le_bytes([head[1], head[2], head[3], 0]) };
        let len_max = match head.kind {
            FRAGMENT => FRAGMENT_LEN_MAX as usize,
            BLOCK_START => 12 + HEADER_LEN_MAX + PROOF_LEN_MAX,
            _ => MESSAGE_LEN_MAX,
        };
        if head.len as usize > len_max {
            return Err(FrameError::TooLong { kind: head.kind, len: head.len });
        }
        Ok(Some(head))
    }

    /// The length of the body that follows.
    pub fn body_len(&self) -> usize {
        self.len as usize
    }

    /// Whether the body is block payload that need not be buffered whole.
    pub fn is_fragment(&self) -> bool {
        self.kind == FRAGMENT
    }

    /// The frame with this head and `body` (which is ignored for a fragment).
    pub fn frame(&self, body: &[u8]) -> Result<Frame, FrameError> {
        let kind = self.kind;
        let malformed = FrameError::Malformed { kind };
        let number = |body: &[u8]| body.try_into().map(u64::from_le_bytes).map_err(|_| malformed);
        match kind {
            MESSAGE_OVERLAY => Ok(Frame::Message { channel: Channel::Overlay, bytes: body.into() }),
            MESSAGE_CONTENT => Ok(Frame::Message { channel: Channel::Content, bytes: body.into() }),
            BLOCK_START => decode_block_start(body).ok_or(malformed),
            FRAGMENT if self.len == 0 => Err(malformed),
            FRAGMENT => Ok(Frame::Fragment { len: self.len }),
            BLOCK_ABORT => Ok(Frame::BlockAbort),
            PING => Ok(Frame::Ping { nonce: number(body)? }),
            PONG => Ok(Frame::Pong { nonce: number(body)? }),
            BYE => match body {
                [0] => Ok(Frame::Bye { reason: Bye::Done }),
                [1] => Ok(Frame::Bye { reason: Bye::Protocol }),
                _ => Err(malformed),
            },
            _ => Ok(Frame::Unknown { kind }),
        }
    }
}

fn decode_block_start(body: &[u8]) -> Option<Frame> {
    let block = u32::from_le_bytes(body.get(0..4)?.try_into().ok()?);
    let len = u32::from_le_bytes(body.get(4..8)?.try_into().ok()?);
    let header_len = usize::from(u16::from_le_bytes(body.get(8..10)?.try_into().ok()?));
    let proof_len = usize::from(u16::from_le_bytes(body.get(10..12)?.try_into().ok()?));
    let rest = &body[12..];
    if len == 0 || len > BLOCK_LEN_MAX || header_len > HEADER_LEN_MAX || proof_len > PROOF_LEN_MAX {
        return None;
    }
    if rest.len() != header_len + proof_len {
        return None;
    }
    let (header, proof) = rest.split_at(header_len);
    Some(Frame::BlockStart { block, len, header: header.into(), proof: proof.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
        let Some(head) = Head::decode(bytes)? else { return Ok(None) };
        let Some(body) = bytes.get(HEAD_LEN..HEAD_LEN + head.body_len()) else { return Ok(None) };
        head.frame(body).map(Some)
    }

    fn frames() -> impl Strategy<Value = Frame> {
        let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
        prop_oneof![
            (any::<bool>(), bytes(500)).prop_map(|(overlay, bytes)| Frame::Message {
                channel: if overlay { Channel::Overlay } else { Channel::Content },
                bytes
            }),
            (any::<u32>(), 1..=BLOCK_LEN_MAX, bytes(HEADER_LEN_MAX), bytes(500)).prop_map(
                |(block, len, header, proof)| Frame::BlockStart { block, len, header, proof }
            ),
            Just(Frame::BlockAbort),
            any::<u64>().prop_map(|nonce| Frame::Ping { nonce }),
            any::<u64>().prop_map(|nonce| Frame::Pong { nonce }),
            Just(Frame::Bye { reason: Bye::Done }),
            Just(Frame::Bye { reason: Bye::Protocol }),
        ]
    }

    proptest! {
        #[test]
        fn a_frame_survives_encoding_and_says_its_length(frame in frames()) {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), frame.wire_len());
            prop_assert_eq!(decode(&bytes), Ok(Some(frame)));
        }

        #[test]
        fn no_bytes_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_frame_longer_than_its_kind_allows_is_refused_from_its_head_alone() {
        assert!(matches!(Head::decode(&[FRAGMENT, 1, 0x40, 0]), Err(FrameError::TooLong { .. })));
        assert!(matches!(
            Head::decode(&[MESSAGE_OVERLAY, 1, 0, 1]),
            Err(FrameError::TooLong { .. })
        ));
        assert!(matches!(Head::decode(&[99, 0xff, 0xff, 0xff]), Err(FrameError::TooLong { .. })));
        assert!(Head::decode(&[FRAGMENT, 0, 0x40, 0]).is_ok_and(|head| head.is_some()));
    }

    #[test]
    fn unknown_kinds_are_skipped_not_fatal() {
        assert_eq!(decode(&[77, 2, 0, 0, 1, 2]), Ok(Some(Frame::Unknown { kind: 77 })));
    }

    #[test]
    fn the_bytes_of_every_kind_are_what_they_were_in_version_1() {
        let golden: [(Frame, &[u8]); 6] = [
            (Frame::Message { channel: Channel::Overlay, bytes: vec![9, 8] }, &[1, 2, 0, 0, 9, 8]),
            (
                Frame::BlockStart { block: 258, len: 4096, header: vec![7], proof: vec![5, 6] },
                &[3, 15, 0, 0, 2, 1, 0, 0, 0, 16, 0, 0, 1, 0, 2, 0, 7, 5, 6],
            ),
            (Frame::Fragment { len: 16384 }, &[4, 0, 64, 0]),
            (Frame::BlockAbort, &[5, 0, 0, 0]),
            (Frame::Ping { nonce: 1 }, &[6, 8, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
            (Frame::Bye { reason: Bye::Done }, &[8, 1, 0, 0, 0]),
        ];
        for (frame, bytes) in golden {
            let mut encoded = Vec::new();
            frame.encode(&mut encoded);
            assert_eq!(encoded, bytes, "{frame:?}");
        }
    }
}
