//! anabranch's protocols, pure: state machines that are handed time, randomness and input, and
//! whose output is drained. Nothing here reads a clock, opens a socket, touches a file, sleeps or
//! spawns, so the same code runs in the simulator, in the emulator and on real sockets.
//!
//! Where to look:
//! - [`link`]: one session between two peers over a reliable byte pipe;
//! - [`transport`]: one endpoint of one connection, packets in and packets out;
//! - [`overlay`]: one member of one group (who sends what to whom), and the contract all follow;
//! - [`membership`]: whom a member knows (the control tree, RanSub);
//! - [`summary`]: what a member says it has (bitmaps, histograms);
//! - [`time`], [`random`], [`id`]: the words they share.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod id;
pub mod link;
pub mod membership;
pub mod overlay;
pub mod random;
pub mod summary;
pub mod time;
pub mod transport;
