//! Topologies made by rule: the papers' ones, and those of most experiments.
//!
//! Each generator is a plain struct with the paper's values as its default and a `build`; a file
//! names it under `[generate]` with `kind`. The same parameters and seed give the same topology;
//! names can be predicted (`left1`, `n7`), and hosts come first in what they name.

pub mod dumbbell;
pub mod matrix;
pub mod mesh;
pub mod parking_lot;
pub mod power_law;
pub mod star;
pub mod transit_stub;

pub use dumbbell::Dumbbell;
pub use matrix::Matrix;
pub use mesh::{Dynamic, Mesh};
pub use parking_lot::ParkingLot;
pub use power_law::PowerLaw;
pub use star::Star;
pub use transit_stub::TransitStub;

use super::Topology;
use super::file::fields::{Fields, Read};
use super::file::item::Item;
use anabranch_proto::random::{Rng, RngExt};
use anabranch_proto::time::Duration;

/// Reads and builds a `[generate]` table.
pub(crate) fn read(item: &Item, seed: u64) -> Read<Topology> {
    let mut fields = Fields::of(item, "`generate`")?;
    let kinds = [
        ("dumbbell", 0),
        ("parking-lot", 1),
        ("star", 2),
        ("mesh", 3),
        ("power-law", 4),
        ("transit-stub", 5),
        ("matrix", 6),
    ];
    let topology = match fields.word("kind", &kinds, None)? {
        0 => Dumbbell::read(&mut fields)?.build(),
        1 => ParkingLot::read(&mut fields)?.build(),
        2 => Star::read(&mut fields)?.build(),
        3 => Mesh::read(&mut fields)?.build(seed),
        4 => PowerLaw::read(&mut fields)?.build(seed),
        5 => TransitStub::read(&mut fields)?.build(seed),
        _ => Matrix::read(&mut fields)?.build(),
    };
    fields.finish()?;
    Ok(topology)
}

/// Uniform between two times.
fn between(rng: &mut Rng, range: (Duration, Duration)) -> Duration {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(rng.random_range(nanos(range.0)..=nanos(range.1)))
}

/// A point in the plane.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    x: f64,
    y: f64,
}

impl Point {
    /// Uniform in the unit square.
    fn random(rng: &mut Rng) -> Point {
        Point { x: rng.random(), y: rng.random() }
    }

    fn distance(self, other: Point) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        libm::sqrt(x * x + y * y)
    }
}

/// A delay that was made as a distance: how long one unit of distance takes is found out last.
fn scaled(distance: f64, per_unit: f64) -> Duration {
    Duration::from_nanos((distance * per_unit) as u64)
}

#[cfg(test)]
mod tests;
