//! Drop-tail: who comes when the queue is full is dropped.

use crate::net::stats::{Cause, Count};
use crate::topology::Limit;

/// Whether `len` bytes more fit.
pub(crate) fn admit(limit: Limit, held: Count, len: u32) -> Result<(), Cause> {
    let fits = match limit {
        Limit::Packets(packets) => held.packets < u64::from(packets),
        Limit::Bytes(bytes) => held.bytes + u64::from(len) <= bytes,
    };
    if fits { Ok(()) } else { Err(Cause::Full) }
}
