//! The Low-priority Control Module: sends what the network can spare, at a priority at which it
//! hurts nobody (thesis §3.2.2).
//!
//! ```text
//!   data ---> Sender --(seq, lseq)--> network ---> Receiver
//!               ^  |                                  |
//!      Window --+  +-- lost bytes --> retransmit      +-- reports: blocks that cycle
//!      Pacer  --+      buffer, HCM                        through [lseq, highest)
//! ```
//!
//! The LCM is not reliable: it tells what was lost, and the HCM sends that. Its virtual stream has a
//! new offset for every packet, so that its order is the order of sending.
//!
//! - [`sender`]: which packets are on their way, and what became of them;
//! - [`window`]: multiplicative increase and decrease by the loss rate of an epoch;
//! - [`tuner`]: the loss rate that is aimed at;
//! - [`pacer`]: burst control;
//! - [`receiver`]: what has arrived, and the reports.

pub mod pacer;
pub mod receiver;
pub mod sender;
pub mod tuner;
pub mod window;
