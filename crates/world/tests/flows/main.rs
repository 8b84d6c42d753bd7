//! The simulator of flows against closed forms and against what papers state.

mod datagrams;
mod streams;
mod wires;
