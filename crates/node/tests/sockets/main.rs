//! Nodes over loopback sockets, in one process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and says where")]

mod abuse;
mod common;
mod limits;
mod refusal;
mod restart;
mod transfer;
