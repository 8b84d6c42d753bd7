//! Drop-tail: who comes when the queue is full is dropped.

use crate::net::stats::Count;
use crate::topology::Limit;

/// Whether `len` bytes more fit beside what is held.
pub(crate) fn fits(limit: Limit, held: Count, len: u32) -> bool {
    match limit {
        Limit::Packets(packets) => held.packets < u64::from(packets),
        Limit::Bytes(bytes) => held.bytes + u64::from(len) <= bytes,
    }
}
