//! Transit domains that join stub domains, members at the rim: the graph on which the thesis
//! places its multicast members (thesis §4.4), in the manner of GT-ITM (Zegura et al. 1996).
//!
//! 10 transit domains of 5 routers, each router with 10 stub domains of 10 routers: 5,050. Every
//! domain is a random tree with some more links; domains lie in the plane, and delays are
//! proportional to distance along the links, scaled so that the median between members is as
//! stated. Transit routers are `t1.1` …, stub routers `s1.1.1.1` (transit domain, its router, stub
//! domain, router), members `n1`, `n2`, …. Routes follow the least delay; GT-ITM's policy weights
//! are not modelled, and not needed: a stub domain has one way out.

use super::{Point, scaled};
use crate::topology::build::Builder;
use crate::topology::file::fields::{Fields, Read};
use crate::topology::file::way::{Way, Ways};
use crate::topology::{NodeIx, Routes, Topology};
use crate::units::{Rate, mbit, ms};
use anabranch_proto::random::{Rng, RngExt, below, stream};
use anabranch_proto::time::Duration;

/// A transit-stub graph; its default is the thesis's: 5,050 routers and 5,000 members with a
/// median one-way delay of 400 ms.
#[derive(Clone, PartialEq, Debug)]
pub struct TransitStub {
    /// Transit domains.
    pub domains: u32,
    /// Routers in each.
    pub transit: u32,
    /// Stub domains at each transit router.
    pub stubs: u32,
    /// Routers in each stub domain.
    pub stub: u32,
    /// Hosts, at stub routers chosen uniformly.
    pub members: u32,
    /// Median one-way delay between members.
    pub median_delay: Duration,
    /// What links between routers carry; the papers that use this graph say nothing of it.
    pub rate: Rate,
    /// Each member's link; there is up, from the member.
    pub access: Ways,
}

impl Default for TransitStub {
    fn default() -> TransitStub {
        TransitStub {
            domains: 10,
            transit: 5,
            stubs: 10,
            stub: 10,
            members: 5000,
            median_delay: ms(400),
            rate: mbit(1000),
            access: Ways::same(Way::new(mbit(100), Duration::ZERO).label("access")),
        }
    }
}

impl TransitStub {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Read<TransitStub> {
        let default = TransitStub::default();
        Ok(TransitStub {
            domains: fields.count("domains", 1..=100, Some(default.domains))?,
            transit: fields.count("transit", 1..=100, Some(default.transit))?,
            stubs: fields.count("stubs", 1..=100, Some(default.stubs))?,
            stub: fields.count("stub", 1..=100, Some(default.stub))?,
            members: fields.count("members", 2..=100_000, Some(default.members))?,
            median_delay: fields.time("median-delay", Some(default.median_delay))?,
            rate: fields.rate("rate", Some(default.rate))?,
            access: Ways::read_at(fields, "access", default.access)?,
        })
    }

    /// The topology.
    pub fn build(&self, seed: u64) -> Topology {
        let rng = stream(seed, "transit-stub", "graph");
        let mut plane = Plane { builder: Builder::default(), points: Vec::new(), rng };
        let members: Vec<NodeIx> =
            (1..=self.members).map(|n| plane.builder.host(format!("n{n}"))).collect();
        let stubs = self.lay(&mut plane);
        let mut places = stream(seed, "transit-stub", "members");
        let first_access = plane.builder.topology().links.len();
        for member in members {
            let place = stubs[below(&mut places, stubs.len())];
            plane.builder.link(member, place, &self.access);
        }
        let mut topology = plane.builder.finish();
        self.scale(&mut topology, first_access);
        topology
    }

    /// Lays all routers and their links; returns the stub routers.
    fn lay(&self, plane: &mut Plane) -> Vec<NodeIx> {
        let mut transits = Vec::new();
        for domain in 1..=self.domains {
            let centre = Point::random(&mut plane.rng);
            let name = |n| format!("t{domain}.{n}");
            transits.push(plane.domain(self, centre, TRANSIT, self.transit, &name));
        }
        self.join_domains(plane, &transits);
        let mut stubs = Vec::new();
        for (domain, routers) in transits.iter().enumerate() {
            for (place, &router) in routers.iter().enumerate() {
                for stub in 1..=self.stubs {
                    let centre = plane.near(plane.at(router), STUB_DISTANCE);
                    let name = |n| format!("s{}.{}.{stub}.{n}", domain + 1, place + 1);
                    let inside = plane.domain(self, centre, STUB, self.stub, &name);
                    let gate = inside[below(&mut plane.rng, inside.len())];
                    plane.link(router, gate, self.rate, "transit-stub");
                    stubs.extend(inside);
                }
            }
        }
        stubs
    }

    /// A random tree over the transit domains, and as many links again between random ones.
    fn join_domains(&self, plane: &mut Plane, transits: &[Vec<NodeIx>]) {
        let count = transits.len();
        let mut pairs: Vec<(usize, usize)> =
            (1..count).map(|domain| (domain, below(&mut plane.rng, domain))).collect();
        if count > 2 {
            for _ in 0..3 * count {
                let (a, b) = (below(&mut plane.rng, count), below(&mut plane.rng, count));
                let is_new = !pairs.contains(&(a.max(b), a.min(b)));
                if a != b && is_new {
                    pairs.push((a.max(b), a.min(b)));
                }
            }
        }
        for (a, b) in pairs {
            let a = transits[a][below(&mut plane.rng, transits[a].len())];
            let b = transits[b][below(&mut plane.rng, transits[b].len())];
            plane.link(a, b, self.rate, "transit-transit");
        }
    }

    /// Gives delays their scale: the median between members becomes the stated one.
    fn scale(&self, topology: &mut Topology, first_access: usize) {
        let members: Vec<NodeIx> = topology.hosts().collect();
        let mut routes = Routes::new(topology);
        let step = members.len().div_ceil(SAMPLE);
        let access = self.access.there.delay + self.access.back.delay;
        let mut delays = Vec::new();
        for &from in members.iter().step_by(step) {
            let others = members.iter().filter(|&&to| to != from);
            delays.extend(others.filter_map(|&to| routes.delay(from, to)));
        }
        delays.sort_unstable();
        let median = delays.get(delays.len() / 2).copied().unwrap_or_default();
        let wanted = self.median_delay.saturating_sub(access).as_secs_f64();
        let found = median.saturating_sub(access).as_secs_f64();
        let factor = if found > 0.0 { wanted / found } else { 0.0 };
        for link in &mut topology.links[..first_access] {
            link.delay = scaled(link.delay.as_secs_f64(), factor * 1e9);
        }
    }
}

/// How a domain is made: how far its routers lie from its centre, and the chance of a link between
/// two of them beside the tree (GT-ITM's usual 0.6 and 0.42).
#[derive(Clone, Copy)]
struct Shape {
    radius: f64,
    links: f64,
    label: &'static str,
}

const TRANSIT: Shape = Shape { radius: 0.1, links: 0.6, label: "transit-transit" };
const STUB: Shape = Shape { radius: 0.1, links: 0.42, label: "stub-stub" };
/// How far stub domains lie from their transit router.
const STUB_DISTANCE: f64 = 0.3;
/// Members from which delays are measured to all others.
const SAMPLE: usize = 64;

/// Routers that lie somewhere.
struct Plane {
    builder: Builder,
    /// Of routers, by node number from the first router's on.
    points: Vec<(NodeIx, Point)>,
    rng: Rng,
}

impl Plane {
    fn at(&self, router: NodeIx) -> Point {
        let first = self.points[0].0.0;
        self.points[(router.0 - first) as usize].1
    }

    /// A point within `radius` in each coordinate.
    fn near(&mut self, centre: Point, radius: f64) -> Point {
        let mut shift = || (self.rng.random::<f64>() * 2.0 - 1.0) * radius;
        Point { x: centre.x + shift(), y: centre.y + shift() }
    }

    fn link(&mut self, a: NodeIx, b: NodeIx, rate: Rate, label: &str) {
        // A provisional scale: one second per unit.
        let delay = scaled(self.at(a).distance(self.at(b)), 1e9);
        self.builder.link(a, b, &Ways::same(Way::new(rate, delay).label(label)));
    }

    /// A domain of `count` routers: a random tree, and some links more.
    fn domain(
        &mut self,
        graph: &TransitStub,
        centre: Point,
        shape: Shape,
        count: u32,
        name: &dyn Fn(u32) -> String,
    ) -> Vec<NodeIx> {
        let mut routers: Vec<NodeIx> = Vec::new();
        for number in 1..=count {
            let router = self.builder.router(name(number));
            let point = self.near(centre, shape.radius);
            self.points.push((router, point));
            let parent = (number > 1).then(|| below(&mut self.rng, routers.len()));
            for (place, &other) in routers.iter().enumerate() {
                // The same mean degree in domains of any size as in ten routers.
                let chance = shape.links * (10.0 / f64::from(count)).min(1.0);
                if parent == Some(place) || self.rng.random::<f64>() < chance {
                    self.link(router, other, graph.rate, shape.label);
                }
            }
            routers.push(router);
        }
        routers
    }
}
