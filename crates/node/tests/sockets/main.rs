//! Nodes over loopback sockets, in one process.

mod abuse;
mod common;
mod limits;
mod refusal;
mod restart;
mod transfer;
