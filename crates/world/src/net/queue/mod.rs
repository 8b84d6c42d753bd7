//! What waits for a wire, and who is dropped.

mod drop_tail;

use super::stats::{Cause, Count};
use crate::topology::{Limit, QueueSpec};
use anabranch_proto::time::Time;

/// What decides at arrival whether a packet may wait.
#[derive(Debug)]
pub(crate) enum Gate {
    /// As long as there is space.
    DropTail(Limit),
}

impl Gate {
    pub(crate) fn new(spec: &QueueSpec) -> Gate {
        // The other disciplines keep their limit here; they come with the next commits.
        match spec {
            QueueSpec::DropTail { limit } | QueueSpec::PushOut { limit, .. } => {
                Gate::DropTail(*limit)
            }
            QueueSpec::Red(red) => Gate::DropTail(red.limit),
            QueueSpec::Xcp(xcp) => Gate::DropTail(xcp.limit),
            QueueSpec::Priority { classes, .. } => {
                classes.first().map_or(Gate::DropTail(Limit::Packets(0)), Gate::new)
            }
        }
    }

    /// Whether a packet of `len` bytes may join what is `held`, the packet in service included.
    /// The queue was last empty until, or will be from, `free`.
    pub(crate) fn admit(
        &mut self,
        _now: Time,
        held: Count,
        len: u32,
        _free: Time,
    ) -> Result<(), Cause> {
        match self {
            Gate::DropTail(limit) => drop_tail::admit(*limit, held, len),
        }
    }
}
