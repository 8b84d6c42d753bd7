//! The names protocols use: peers, contacts, links, blocks.

use serde::{Deserialize, Serialize};

/// A peer's public key: what it proves on every link, and its name everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PeerId(pub [u8; 32]);

impl PeerId {
    /// The first eight bytes as a number: enough to tell the peers of one group apart in logs and
    /// in root paths.
    pub fn short(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(bytes)
    }

    /// The identity of the node `name` in a simulation.
    pub fn of_name(name: &str) -> PeerId {
        PeerId(*blake3::hash(name.as_bytes()).as_bytes())
    }
}

impl std::fmt::Debug for PeerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", self.short() >> 32)
    }
}

impl std::fmt::Display for PeerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.short())
    }
}

/// How to reach a peer, opaque to protocols: at most [`Contact::LEN_MAX`] bytes that only the
/// driver reads, and whether the peer accepts inbound connections.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Contact {
    /// Candidate addresses, in the driver's own encoding.
    pub addresses: Vec<u8>,
    /// False when the peer accepts no inbound connections: it must be asked to dial.
    pub reachable: bool,
}

impl Contact {
    /// The most bytes the addresses of a contact may have.
    pub const LEN_MAX: usize = 160;

    /// Whether the contact keeps its bound; decoders refuse one that does not.
    pub fn is_valid(&self) -> bool {
        self.addresses.len() <= Self::LEN_MAX
    }
}

/// A peer and how to reach it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PeerInfo {
    /// Who it is.
    pub id: PeerId,
    /// Where it is.
    pub contact: Contact,
}

/// A link of this member: given by the driver, never reused within a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// The number of a block within its group's content.
pub type BlockIndex = u32;

/// How a link treats blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LinkClass {
    /// Everything arrives, in order, or the link goes down.
    Reliable,
    /// A block may vanish; messages still arrive.
    Datagram,
}
