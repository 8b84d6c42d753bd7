//! The worlds anabranch's protocols run in. Here: a deterministic simulator, in which the pure
//! members of [`anabranch_proto::overlay`] run over [`anabranch_proto::link::Session`] in virtual
//! time, on hosts whose links, clocks and faults are given.
//!
//! Same seed, same run: events are ordered by (time, sequence), chance comes from (seed, host
//! name, purpose), every table is ordered, and the arithmetic is the same in debug and release.
//!
//! Where to look:
//! - [`story`]: a hard case in ten lines, and what came of it;
//! - [`sweep`]: small scenarios with faults drawn from a seed, checked at every event;
//! - [`sim`]: the simulator itself, its wires, and what can go wrong;
//! - [`emu`]: the emulator, which carries real programs' packets in real time;
//! - [`net`]: the packet-level network, in virtual or in real time;
//! - [`topology`]: what a network is made of, for the simulator and the emulator;
//! - [`flows`]: plain connections over a packet-level network, for experiments with transports;
//! - [`terrain`]: a topology under the fluid and latency wires;
//! - [`bounds`]: the least time a distribution can take, to compare with;
//! - `docs/simulator.md`: scope, limits, parameters, validation.

// Only `emu::system` and `prefetch` have any, with their reasons.
#![deny(unsafe_code)]
#![deny(missing_docs)]

pub mod bounds;
pub mod clock;
pub mod emu;
mod event;
pub mod flags;
pub mod flows;
mod fluid;
pub mod meter;
pub mod net;
mod paths;
mod prefetch;
pub mod sim;
pub mod story;
pub mod sweep;
pub mod terrain;
pub mod topology;
pub mod units;
