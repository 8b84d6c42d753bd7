//! Bullet′'s messages and its per-hop block header, in postcard's encoding.

use crate::id::{BlockIndex, PeerId, PeerInfo};
use crate::membership::{ransub, tree};
use crate::overlay::Outcome;
use crate::summary::{Exact, Summary};
use serde::{Deserialize, Serialize};

/// Most blocks one request or diff names.
pub(super) const BLOCKS_MAX: usize = 4096;

/// A member as RanSub carries it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Who and where.
    pub info: PeerInfo,
    /// What it has.
    pub summary: Summary,
}

impl ransub::Member for Entry {
    fn peer(&self) -> PeerId {
        self.info.id
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Receiver to sender: these blocks, in this order. `more`: tell me of new ones, I run out.
    Request { blocks: Vec<BlockIndex>, more: bool },
    /// Sender to receiver: these blocks I have now too.
    Diff { blocks: Vec<BlockIndex> },
    /// To a candidate: may I be your receiver?
    Peer,
    /// You are my receiver; this is what I have.
    PeerAccept { have: Exact },
    /// Not now.
    PeerRefuse,
    /// Receiver to sender: I am your receiver no more.
    PeerLeave,
    /// Sender to receiver: you are my receiver no more.
    PeerDrop,
    /// Receiver to sender: this much comes in at all, in kilobytes per second.
    Report { incoming: u32 },
    /// Receiver to sender: do not send this block if you have not begun.
    Cancel { block: BlockIndex },
    /// Sender to receiver: this block will not come.
    Withdrawn { block: BlockIndex },
    /// Child to the source: push me what I lack; this I have.
    Ready { have: Exact },
    /// Along the control tree.
    Tree(tree::Message),
    /// Along the control tree.
    RanSub(ransub::Message<Entry>),
    /// Along the control tree to `target`, who accepts no connections: dial `from`.
    Reverse { target: PeerId, from: PeerInfo },
    /// Receiver to root: I have everything.
    Outcome(Outcome),
    /// Root to receiver: I have noted it.
    OutcomeNoted,
}

impl Message {
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Reads a message and checks its bounds.
    pub(super) fn decode(bytes: &[u8]) -> Option<Message> {
        let message: Message = postcard::from_bytes(bytes).ok()?;
        let valid = match &message {
            Message::Request { blocks, .. } | Message::Diff { blocks } => {
                blocks.len() <= BLOCKS_MAX
            }
            Message::Reverse { from, .. } => from.contact.is_valid(),
            Message::RanSub(message) => {
                let (ransub::Message::Collect { sample, .. }
                | ransub::Message::Distribute { sample, .. }) = message;
                sample.members.iter().all(|e| e.info.contact.is_valid() && e.summary.is_valid())
            }
            _ => true,
        };
        valid.then_some(message)
    }
}

/// What goes with every block.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    /// Requested blocks that stood before this one's request; `None` for a pushed block.
    pub in_front: Option<u32>,
    /// Microseconds: below zero the pipe idled, above zero the request waited.
    pub wasted_us: i64,
}

impl Header {
    pub(super) const PUSHED: Header = Header { in_front: None, wasted_us: 0 };

    pub(super) fn encode(self) -> Vec<u8> {
        postcard::to_stdvec(&self).unwrap_or_default()
    }

    /// Reads a header; one that cannot be read says nothing.
    pub(super) fn decode(bytes: &[u8]) -> Header {
        postcard::from_bytes(bytes).unwrap_or(Header::PUSHED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic_the_decoders(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(message) = Message::decode(&bytes) {
                prop_assert_eq!(Message::decode(&message.encode()), Some(message));
            }
            let _ = Header::decode(&bytes);
        }
    }

    #[test]
    fn the_bytes_of_the_frequent_messages_are_what_they_were_in_version_1() {
        let golden: [(Message, &[u8]); 5] = [
            (Message::Request { blocks: vec![1, 300], more: true }, &[0, 2, 1, 0xac, 2, 1]),
            (Message::Diff { blocks: vec![5] }, &[1, 1, 5]),
            (Message::Peer, &[2]),
            (Message::PeerAccept { have: Exact::Bits(vec![3]) }, &[3, 2, 1, 3]),
            (Message::Cancel { block: 9 }, &[8, 9]),
        ];
        for (message, bytes) in golden {
            assert_eq!(message.encode(), bytes);
            assert_eq!(Message::decode(bytes), Some(message));
        }
        let header = Header { in_front: Some(1), wasted_us: -1_000 };
        assert_eq!(header.encode(), [1, 1, 0xcf, 0x0f]);
    }

    #[test]
    fn a_message_beyond_its_bounds_is_refused() {
        let blocks = vec![0; BLOCKS_MAX + 1];
        assert_eq!(Message::decode(&Message::Diff { blocks }.encode()), None);
    }
}
