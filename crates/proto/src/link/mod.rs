//! One session between two peers over any reliable byte pipe: TLS over TCP on real machines, the
//! fluid wire in the simulator.
//!
//! ```text
//!  overlay ── messages ──▶ control queue ─┐   between fragments
//!          ── blocks ────▶ block queue ───┴─▶ frames ─▶ pipe
//!                 ▲ room ledger: accepts while unsent < low-water mark
//! ```
//!
//! A session owns the frame codec ([`frame`]), a control queue and a block queue, fragments of at
//! most [`FRAGMENT_LEN_MAX`] bytes, the room ledger, keep-alive and liveness, and the link's
//! measurements. Control frames go between fragments, so a block of 8 MiB never holds up a
//! message. Its direction has nothing to do with who dialled.
//!
//! The session names blocks; the driver puts their bytes into the fragments it is told to send,
//! and takes them out of the fragments that arrive.
//!
//! How much may wait below a session follows what its pipe sends ([`backlog`]).
//! Rates are limited with the token buckets of [`bucket`], which drivers share among links.

pub mod backlog;
pub mod bucket;
pub mod estimate;
pub mod frame;
pub mod handshake;
mod session;

pub use session::{Event, LinkConfig, Session, SessionError};

/// The most payload bytes one fragment carries.
pub const FRAGMENT_LEN_MAX: u32 = 16 * 1024;
/// The most bytes a message may have.
pub const MESSAGE_LEN_MAX: usize = 64 * 1024;
/// The most bytes a per-hop block header may have.
pub const HEADER_LEN_MAX: usize = 256;
/// The most bytes of hashes that may precede a block (128 verify units of 32 bytes, twice).
pub const PROOF_LEN_MAX: usize = 8 * 1024;
/// The longest block.
pub const BLOCK_LEN_MAX: u32 = 8 * 1024 * 1024;
