//! What a group tells its application.

use crate::ticket::Ticket;
use anabranch_proto::id::PeerId;
use anabranch_proto::overlay::{DownReason, Outcome};
use std::path::PathBuf;
use std::time::Duration;

/// Something that happened in a group.
#[derive(Clone, Debug)]
pub enum Event {
    /// The source can be reached with this ticket; its first event.
    Ready {
        /// The ticket.
        ticket: Ticket,
    },
    /// The receiver knows what it fetches and is connected; its first event.
    Joined {
        /// The name of the content.
        name: String,
        /// Its size in bytes.
        bytes_total: u64,
        /// Bytes of it that were here already.
        bytes_before: u64,
    },
    /// How far it is, about once a second while something changes.
    Progress(Progress),
    /// A peer is linked.
    PeerUp {
        /// Who.
        peer: PeerId,
    },
    /// A peer is no longer linked.
    PeerDown {
        /// Who.
        peer: PeerId,
        /// Why.
        reason: DownReason,
    },
    /// A peer sent a corrupt block: it is not linked again in this run.
    PeerBanned {
        /// Who.
        peer: PeerId,
    },
    /// Everything is here, verified and at its final name.
    Complete {
        /// Where.
        path: PathBuf,
        /// From the start of the fetch.
        elapsed: Duration,
    },
    /// At the source: a receiver has everything.
    Outcome(Outcome),
    /// Something the user should know; the group goes on.
    Warning {
        /// One sentence.
        text: String,
    },
    /// The group ended with an error, the one [`crate::Group::wait_complete`] returns.
    Failed {
        /// One sentence: what, and what to do.
        text: String,
    },
}

/// How far a group is; a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Bytes of the content.
    pub bytes_total: u64,
    /// Bytes held and verified.
    pub bytes_done: u64,
    /// Bytes of these that were here before (resumed).
    pub bytes_before: u64,
    /// New content bytes per second, smoothed over a few seconds.
    pub rate_down: f64,
    /// Content bytes sent per second, smoothed over a few seconds.
    pub rate_up: f64,
    /// Peers linked now.
    pub peers: u32,
    /// New content bytes that came from the source itself.
    pub from_source: u64,
    /// New content bytes that came from other receivers.
    pub from_peers: u64,
    /// Content bytes sent.
    pub uploaded: u64,
    /// Content bytes that came although they were here.
    pub duplicates: u64,
    /// Bytes received on the wire (TLS records, everything counted).
    pub wire_down: u64,
    /// Bytes sent on the wire (TLS records, everything counted).
    pub wire_up: u64,
    /// When it will be complete at the present rate; `None` when it is, or nobody can tell.
    pub eta: Option<Duration>,
}
