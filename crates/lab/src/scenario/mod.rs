//! Scenarios: a file that says what is compared, on which network, doing what, measured how.
//!
//! The reference of the format is `docs/scenarios.md`. A file is parsed into a tree that remembers
//! its lines (`tree`); systems and sweeps set parameters in that tree by dotted paths; and the
//! tree is then read (`read`) into an [`Experiment`], one per system and point. So a value
//! that only one point has is checked like any other, and reported where it stands.

mod document;
mod file_workload;
mod measure;
pub(crate) mod nearest;
mod quantity;
mod read;
pub(crate) mod source;
mod sweep;
mod system;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
pub(crate) mod workload;

pub use document::{Experiment, Load, Point, Scenario, TopologyText, Variation, Wire, parse_seeds};
pub use file_workload::{Churn, FileFault, FileFaultKind, FileWorkload, Joins, Leave};
pub use measure::{Measure, Series};
pub use source::ScenarioError;
pub use sweep::Axis;
pub use system::{
    BitTorrent, BulletPrime, Overlay, Plt, PltControl, System, SystemKind, TcpControl, Transport,
    TransportKind,
};
pub use workload::{Hosts, Work, Workload, WorkloadKind};
