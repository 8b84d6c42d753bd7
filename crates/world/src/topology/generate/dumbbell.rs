//! Two sides and one link between them: what congestion controls are compared on.
//!
//! ```text
//! left1 ─┐                ┌─ right1
//! left2 ─┼─ left ── right ─┼─ right2
//! left3 ─┘                └─ right3
//! ```

use crate::topology::Topology;
use crate::topology::build::Builder;
use crate::topology::file::fields::{Fields, Read, SpecError, time};
use crate::topology::file::item::Value;
use crate::topology::file::queue::{LimitForm, QueueForm};
use crate::topology::file::way::{Way, Ways};
use crate::units::{mbit, ms};
use anabranch_proto::time::Duration;

/// A dumbbell; its default is the thesis's single bottleneck (§3.3.1): 250 Mb/s, 80 ms of round
/// trip, a buffer of one bandwidth-delay product.
#[derive(Clone, PartialEq, Debug)]
pub struct Dumbbell {
    /// Hosts on each side.
    pub pairs: u32,
    /// The link in the middle; there is from left to right.
    pub bottleneck: Ways,
    /// Each host's link; there is from the host.
    pub access: Ways,
    /// What is added to the delay of the left hosts' links, each way: the first for `left1`, and
    /// so on, from the start again when they run out. Gives pairs different round trips.
    pub extra_delays: Vec<Duration>,
}

impl Default for Dumbbell {
    fn default() -> Dumbbell {
        let queue = QueueForm::DropTail(LimitForm::Bdp { times: 1.0, rtt: ms(80) });
        Dumbbell {
            pairs: 1,
            bottleneck: Ways::same(Way::new(mbit(250), ms(38)).queue(queue).label("bottleneck")),
            access: access(),
            extra_delays: Vec::new(),
        }
    }
}

/// Access links that never bind: 10 Gb/s, 1 ms, 10,000 packets.
pub(super) fn access() -> Ways {
    Ways::same(Way::new(mbit(10_000), ms(1)).queue(QueueForm::packets(10_000)).label("access"))
}

impl Dumbbell {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Read<Dumbbell> {
        let default = Dumbbell::default();
        let pairs = fields.count("pairs", 1..=10_000, Some(default.pairs))?;
        let bottleneck = Ways::read_at(fields, "bottleneck", default.bottleneck)?;
        let access = Ways::read_at(fields, "access", default.access)?;
        let mut extra_delays = Vec::new();
        if let Some(item) = fields.get("extra-delays") {
            let fail = |what: &str| SpecError::new(&item.span, format!("extra-delays: {what}"));
            let Value::List(items) = &item.value else {
                return Err(fail("a list such as [\"0\", \"20ms\"]"));
            };
            for item in items {
                extra_delays.push(
                    time(item).map_err(|what| {
                        SpecError::new(&item.span, format!("extra-delays: {what}"))
                    })?,
                );
            }
        }
        Ok(Dumbbell { pairs, bottleneck, access, extra_delays })
    }

    /// The topology.
    pub fn build(&self) -> Topology {
        let mut builder = Builder::default();
        let left: Vec<_> = (1..=self.pairs).map(|n| builder.host(format!("left{n}"))).collect();
        let right: Vec<_> = (1..=self.pairs).map(|n| builder.host(format!("right{n}"))).collect();
        let ends = [builder.router("left"), builder.router("right")];
        builder.link(ends[0], ends[1], &self.bottleneck);
        for (number, &host) in left.iter().enumerate() {
            let mut access = self.access.clone();
            if !self.extra_delays.is_empty() {
                let extra = self.extra_delays[number % self.extra_delays.len()];
                access.there.delay += extra;
                access.back.delay += extra;
            }
            builder.link(host, ends[0], &access);
        }
        for host in right {
            builder.link(host, ends[1], &self.access);
        }
        builder.finish()
    }
}
