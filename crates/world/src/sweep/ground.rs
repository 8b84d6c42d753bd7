//! A scenario's network when links carry packets: a star whose access links have the hosts' rates,
//! with delays, queues and losses drawn from the seed, apart from all else.

use super::draw::Scenario;
use crate::sim::HostSpec;
use crate::terrain::Terrain;
use crate::topology::build::Builder;
use crate::topology::file::queue::QueueForm;
use crate::topology::file::way::{Way, Ways};
use crate::topology::{Loss, LossModel, Side, Topology};
use anabranch_proto::random::{Rng, RngExt, below, stream};
use anabranch_proto::time::Duration;

/// The star of a scenario, and where its hosts are.
pub(super) fn of(scenario: &Scenario) -> Result<(Topology, Terrain), String> {
    let rng = &mut stream(scenario.seed, "sweep", "ground");
    let loss = [0.0, 0.0, 0.001, 0.01, 0.03][below(rng, 5)];
    let mut builder = Builder::default();
    let router = builder.router("router");
    for spec in &scenario.hosts {
        let host = builder.host(&spec.name);
        let ways = access(rng, scenario.delay_max, spec, loss);
        builder.link(host, router, &ways);
    }
    let topology = builder.finish();
    let members: Vec<_> = topology.hosts().collect();
    let mut terrain = Terrain::new(&topology, &members).map_err(|problem| problem.to_string())?;
    terrain.hosts = scenario.hosts.clone();
    Ok((topology, terrain))
}

/// Half of the longest delay at most, so that no pair is further apart; a queue of 20 to 200 packets.
fn access(rng: &mut Rng, delay_max: Duration, spec: &HostSpec, loss: f64) -> Ways {
    let delay = Duration::from_nanos(rng.random_range(0..=delay_max.as_nanos() as u64 / 2));
    let queue = QueueForm::packets(rng.random_range(20..=200));
    let loss = (loss > 0.0).then_some(Loss {
        model: LossModel::Independent { probability: loss },
        side: if rng.random() { Side::Before } else { Side::After },
    });
    let way = |rate| Way { loss, ..Way::new(rate, delay).queue(queue.clone()) };
    Ways { there: way(spec.up), back: way(spec.down) }
}
