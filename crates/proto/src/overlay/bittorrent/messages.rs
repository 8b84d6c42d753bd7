//! BitTorrent's messages, in postcard's encoding: those of BEP 3, `Reject` of BEP 6, and the
//! tracker's two as messages on a link.

use crate::id::{BlockIndex, PeerInfo};
use crate::overlay::Outcome;
use crate::summary::Exact;
use serde::{Deserialize, Serialize};

/// Most peers a tracker names in one message.
pub(super) const TOLD_MAX: usize = 200;

/// Why a member announces itself (BEP 3, tracker GET requests).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum Reason {
    /// It has come, or time has passed.
    Present,
    /// It has everything.
    Completed(Outcome),
    /// It leaves.
    Stopped,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Opens a connection between peers, from both sides: so many blocks make a piece, and these
    /// pieces I have (handshake and bitfield).
    Handshake { piece_blocks: u32, have: Exact },
    /// Requests are not served from now on.
    Choke,
    /// Requests are served from now on.
    Unchoke,
    /// You have pieces that I lack.
    Interested,
    /// You have none.
    NotInterested,
    /// I have this piece now.
    Have { piece: u32 },
    /// Send me this sub-piece.
    Request { block: BlockIndex },
    /// I no longer need this sub-piece.
    Cancel { block: BlockIndex },
    /// This sub-piece will not come (BEP 6).
    Reject { block: BlockIndex },
    /// To the tracker: I am here.
    Announce { reason: Reason },
    /// From the tracker: some members. Announce yourself again after so many seconds.
    Peers { interval_s: u32, peers: Vec<PeerInfo> },
}

impl Message {
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Reads a message and checks its bounds.
    pub(super) fn decode(bytes: &[u8]) -> Option<Message> {
        let message: Message = postcard::from_bytes(bytes).ok()?;
        let valid = match &message {
            Message::Peers { peers, .. } => {
                peers.len() <= TOLD_MAX && peers.iter().all(|peer| peer.contact.is_valid())
            }
            _ => true,
        };
        valid.then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Contact, PeerId};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(message) = Message::decode(&bytes) {
                prop_assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }
    }

    #[test]
    fn a_list_of_peers_beyond_its_bound_is_refused() {
        let peer = PeerInfo { id: PeerId::of_name("a"), contact: Contact::default() };
        let peers = |count| Message::Peers { interval_s: 1, peers: vec![peer.clone(); count] };
        assert!(Message::decode(&peers(TOLD_MAX).encode()).is_some());
        assert_eq!(Message::decode(&peers(TOLD_MAX + 1).encode()), None);
    }
}
