//! The simulator of flows against closed forms and against what papers state.

mod datagrams;
mod plt;
mod streams;
mod wires;
