//! Hosts around a hub: every host limited by its own access alone. This is what the fluid wire
//! models exactly.

use crate::topology::Topology;
use crate::topology::build::Builder;
use crate::topology::file::fields::{Fields, Read};
use crate::topology::file::way::{Way, Ways};
use crate::units::{mbit, ms};

/// A star: `n1`, `n2`, … around the router `hub`.
#[derive(Clone, PartialEq, Debug)]
pub struct Star {
    /// Hosts.
    pub nodes: u32,
    /// Each host's link; there is up, from the host.
    pub access: Ways,
    /// The link of `n1`, when it is another.
    pub first: Option<Ways>,
}

impl Default for Star {
    /// 10 hosts at 10 Mb/s, 10 ms from the hub.
    fn default() -> Star {
        let access = Ways::same(Way::new(mbit(10), ms(10)).label("access"));
        Star { nodes: 10, access, first: None }
    }
}

impl Star {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Read<Star> {
        let default = Star::default();
        let nodes = fields.count("nodes", 2..=100_000, Some(default.nodes))?;
        let access = Ways::read_at(fields, "access", default.access)?;
        let first = match fields.get("first") {
            Some(_) => Some(Ways::read_at(fields, "first", access.clone())?),
            None => None,
        };
        Ok(Star { nodes, access, first })
    }

    /// The topology.
    pub fn build(&self) -> Topology {
        let mut builder = Builder::default();
        let hosts: Vec<_> = (1..=self.nodes).map(|n| builder.host(format!("n{n}"))).collect();
        let hub = builder.router("hub");
        for (number, host) in hosts.into_iter().enumerate() {
            let access = self.first.as_ref().filter(|_| number == 0).unwrap_or(&self.access);
            builder.link(host, hub, access);
        }
        builder.finish()
    }
}
