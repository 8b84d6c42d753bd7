//! A chain of bottlenecks, with flows over all of it, flows over each link, and cross traffic.
//!
//! ```text
//! left1 ─ c0 ══ c1 ══ c2 ══ c3 ─ right1        through: over the whole chain
//!         │     ││    ││     │
//!   hop1-from1 hop1-to1 …  hop3-to1            one bottleneck each
//!               cross2-from, cross2-to         cross traffic over the second bottleneck
//! ```

use super::dumbbell;
use crate::topology::Topology;
use crate::topology::build::Builder;
use crate::topology::file::fields::{Fields, Read, SpecError, count};
use crate::topology::file::item::Value;
use crate::topology::file::queue::{LimitForm, QueueForm};
use crate::topology::file::way::{Way, Ways};
use crate::units::{mbit, ms};

/// A parking lot; its default is the thesis's (§3.3.7, figure 3.4b): bottlenecks of 250 Mb/s with
/// 3 flows each, 3 flows over all, and cross traffic on the central one. The text gives neither
/// the number of links nor their delays: 3 links, and 80 ms of round trip end to end.
#[derive(Clone, PartialEq, Debug)]
pub struct ParkingLot {
    /// Bottlenecks in the chain.
    pub hops: u32,
    /// Pairs of hosts at the chain's ends.
    pub through: u32,
    /// Pairs of hosts around each bottleneck.
    pub per_hop: u32,
    /// Bottlenecks, counted from 1, that have a pair of hosts for cross traffic.
    pub cross: Vec<u32>,
    /// Each bottleneck; there is away from `c0`.
    pub bottleneck: Ways,
    /// Each host's link; there is from the host.
    pub access: Ways,
}

impl Default for ParkingLot {
    fn default() -> ParkingLot {
        let queue = QueueForm::DropTail(LimitForm::Bdp { times: 1.0, rtt: ms(80) });
        // 3 · 12 ms and twice 2 ms of access are 40 ms each way.
        let mut access = dumbbell::access();
        (access.there.delay, access.back.delay) = (ms(2), ms(2));
        ParkingLot {
            hops: 3,
            through: 3,
            per_hop: 3,
            cross: vec![2],
            bottleneck: Ways::same(Way::new(mbit(250), ms(12)).queue(queue).label("bottleneck")),
            access,
        }
    }
}

impl ParkingLot {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Read<ParkingLot> {
        let default = ParkingLot::default();
        let hops = fields.count("hops", 1..=1000, Some(default.hops))?;
        let cross = match fields.get("cross") {
            None => vec![hops.div_ceil(2)],
            Some(item) => {
                let fail = |what| SpecError::new(&item.span, format!("cross: {what}"));
                let Value::List(items) = &item.value else {
                    return Err(fail("a list of bottlenecks such as [2]".to_owned()));
                };
                let read = |item| count(item, &(1..=hops)).map_err(fail);
                let mut cross: Vec<u32> = items.iter().map(read).collect::<Read<_>>()?;
                cross.sort_unstable();
                cross.dedup();
                cross
            }
        };
        Ok(ParkingLot {
            hops,
            cross,
            through: fields.count("through", 0..=10_000, Some(default.through))?,
            per_hop: fields.count("per-hop", 0..=10_000, Some(default.per_hop))?,
            bottleneck: Ways::read_at(fields, "bottleneck", default.bottleneck)?,
            access: Ways::read_at(fields, "access", default.access)?,
        })
    }

    /// The topology.
    pub fn build(&self) -> Topology {
        let mut builder = Builder::default();
        // (host, place in the chain)
        let mut hosts = Vec::new();
        for n in 1..=self.through {
            hosts.push((builder.host(format!("left{n}")), 0));
            hosts.push((builder.host(format!("right{n}")), self.hops));
        }
        for hop in 1..=self.hops {
            for n in 1..=self.per_hop {
                hosts.push((builder.host(format!("hop{hop}-from{n}")), hop - 1));
                hosts.push((builder.host(format!("hop{hop}-to{n}")), hop));
            }
        }
        for &hop in &self.cross {
            hosts.push((builder.host(format!("cross{hop}-from")), hop - 1));
            hosts.push((builder.host(format!("cross{hop}-to")), hop));
        }
        let chain: Vec<_> = (0..=self.hops).map(|n| builder.router(format!("c{n}"))).collect();
        for pair in chain.windows(2) {
            builder.link(pair[0], pair[1], &self.bottleneck);
        }
        for (host, place) in hosts {
            builder.link(host, chain[place as usize], &self.access);
        }
        builder.finish()
    }
}
