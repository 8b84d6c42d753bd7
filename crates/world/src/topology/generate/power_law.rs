//! A graph whose node degrees follow a power law, with clients at its rim: the streaming and
//! large-scale settings of Bullet (§5.2.1, §5.2.3), made in the manner of INET (Chang et al. 2002).
//!
//! 1. Degrees: a share of the routers has degree 1, the others the quantiles of a power law.
//! 2. Those of degree 2 and more join a tree one by one, each at a free end of the tree chosen
//!    uniformly (so, by free degree); then those of degree 1 do; then the free ends that remain
//!    are joined, the largest router first.
//! 3. Routers lie uniformly in a square and delays are proportional to distance, scaled so that
//!    the mean round trip between clients is as stated.
//! 4. The routers of the highest degree are transit, the others stub; clients `n1`, `n2`, … hang
//!    at stub routers of degree 1. A link's class follows from its ends.
//!
//! Routers are `r1`, `r2`, … by falling degree. Deviation: INET's own files were not published
//! with the paper, so the share of degree 1, the exponent and the share of transit routers are
//! ours; rates are drawn once per link, losses once per direction.

use super::{Point, scaled};
use crate::topology::build::Builder;
use crate::topology::file::fields::{Fields, Read, probability, rate};
use crate::topology::file::queue::QueueForm;
use crate::topology::file::way::{SIDES, Way, Ways};
use crate::topology::{Loss, LossModel, NodeIx, Routes, Side, Topology};
use crate::units::{Rate, kbit, ms};
use anabranch_proto::random::{Rng, RngExt, shuffle, stream};
use anabranch_proto::time::Duration;
use std::collections::BTreeSet;

/// What a link is, by its ends (Calvert et al. 1997).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A client's access.
    ClientStub,
    /// Between stub routers.
    StubStub,
    /// Between a transit and a stub router.
    TransitStub,
    /// Between transit routers.
    TransitTransit,
}

impl Class {
    /// As it is written in files, and as links are labelled.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

const NAMES: [&str; 4] = ["client-stub", "stub-stub", "transit-stub", "transit-transit"];

/// Rates by class, least and most, in the order of [`Class`].
pub type Rates = [(Rate, Rate); 4];

const fn kbits(ranges: [(u64, u64); 4]) -> Rates {
    let [a, b, c, d] = ranges;
    const fn range(range: (u64, u64)) -> (Rate, Rate) {
        (kbit(range.0), kbit(range.1))
    }
    [range(a), range(b), range(c), range(d)]
}

/// Bullet's table II, low.
pub const LOW: Rates = kbits([(300, 600), (500, 1000), (1000, 2000), (2000, 4000)]);
/// Bullet's table II, medium.
pub const MEDIUM: Rates = kbits([(800, 2800), (1000, 4000), (1000, 4000), (5000, 10_000)]);
/// Bullet's table II, high.
pub const HIGH: Rates = kbits([(1600, 5600), (2000, 8000), (2000, 8000), (10_000, 20_000)]);
/// Bullet §5.2.3: access 6 Mb/s, transit-transit 150 Mb/s. Of the others the text says that the
/// core is well provisioned: 150 Mb/s too.
pub const BULLET_PRIME: Rates =
    kbits([(6000, 6000), (150_000, 150_000), (150_000, 150_000), (150_000, 150_000)]);

/// Loss probabilities by class, in the order of [`Class`], and of links that are overloaded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Losses {
    /// By class, least and most.
    pub by_class: [(f64, f64); 4],
    /// Share of links that are overloaded instead.
    pub overloaded_share: f64,
    /// Theirs.
    pub overloaded: (f64, f64),
    /// Where they lose.
    pub side: Side,
}

impl Losses {
    /// None.
    pub const NONE: Losses = Losses {
        by_class: [(0.0, 0.0); 4],
        overloaded_share: 0.0,
        overloaded: (0.05, 0.1),
        side: Side::Before,
    };
    /// Bullet §5.5; a link with a transit end counts as transit.
    pub const LOSSY: Losses = Losses {
        by_class: [(0.0, 0.003), (0.0, 0.003), (0.0, 0.001), (0.0, 0.001)],
        overloaded_share: 0.05,
        ..Losses::NONE
    };
    /// Bullet §5.2.3.
    pub const BULLET_PRIME: Losses =
        Losses { by_class: [(0.0, 0.003), (0.0, 0.0), (0.0, 0.0), (0.0, 0.005)], ..Losses::NONE };
}

/// A power-law graph; its default is Bullet's streaming setting with medium rates.
#[derive(Clone, PartialEq, Debug)]
pub struct PowerLaw {
    /// Routers. Paper: 20,000; 5,000 in §5.2.3.
    pub nodes: u32,
    /// Clients. Paper: 1,000; 250 in §5.2.3.
    pub clients: u32,
    /// The share of routers with one link. INET's default: 0.3.
    pub leaves: f64,
    /// The exponent of the frequency of degrees. Measured in the Internet: 2.2.
    pub exponent: f64,
    /// The share of routers that are transit.
    pub transit: f64,
    /// Rates by class.
    pub rates: Rates,
    /// Losses by class.
    pub losses: Losses,
    /// Mean round trip between clients. Paper: 130 ms (§5.2.3).
    pub mean_rtt: Duration,
    /// Delay of a client's access, each way.
    pub client_delay: Duration,
    /// The queue of every link.
    pub queue: QueueForm,
    /// The largest packet in bytes.
    pub mtu: u32,
}

impl Default for PowerLaw {
    fn default() -> PowerLaw {
        PowerLaw {
            nodes: 20_000,
            clients: 1000,
            leaves: 0.3,
            exponent: 2.2,
            transit: 0.05,
            rates: MEDIUM,
            losses: Losses::NONE,
            mean_rtt: ms(130),
            client_delay: ms(1),
            queue: QueueForm::packets(50),
            mtu: 1500,
        }
    }
}

impl PowerLaw {
    /// The setting of Bullet §5.2.3: 250 clients on 5,000 routers.
    pub fn bullet_prime() -> PowerLaw {
        PowerLaw {
            nodes: 5000,
            clients: 250,
            rates: BULLET_PRIME,
            losses: Losses::BULLET_PRIME,
            ..PowerLaw::default()
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Read<PowerLaw> {
        let default = PowerLaw::default();
        let mtu = fields.count("mtu", 68..=65_535, Some(default.mtu))?;
        Ok(PowerLaw {
            nodes: fields.count("nodes", 10..=100_000, Some(default.nodes))?,
            clients: fields.count("clients", 2..=100_000, Some(default.clients))?,
            leaves: fields.number("leaves", 0.05..=0.8, Some(default.leaves))?,
            exponent: fields.number("exponent", 2.0..=4.0, Some(default.exponent))?,
            transit: fields.number("transit", 0.0..=1.0, Some(default.transit))?,
            rates: read_rates(fields)?,
            losses: read_losses(fields)?,
            mean_rtt: fields.time("mean-rtt", Some(default.mean_rtt))?,
            client_delay: fields.time("client-delay", Some(default.client_delay))?,
            queue: match fields.get("queue") {
                Some(item) => QueueForm::read(item, mtu)?,
                None => default.queue,
            },
            mtu,
        })
    }

    /// The topology.
    pub fn build(&self, seed: u64) -> Topology {
        let graph = Graph::grow(&self.degrees(), &mut stream(seed, "power-law", "graph"));
        let mut rng = stream(seed, "power-law", "links");
        let points: Vec<Point> = (0..self.nodes).map(|_| Point::random(&mut rng)).collect();
        let transit = (f64::from(self.nodes) * self.transit).round() as u32;
        let mut builder = Builder::default();
        let clients: Vec<NodeIx> =
            (1..=self.clients).map(|n| builder.host(format!("n{n}"))).collect();
        let routers: Vec<NodeIx> =
            (1..=self.nodes).map(|n| builder.router(format!("r{n}"))).collect();
        for &(a, b) in &graph.edges {
            let class = match (a < transit, b < transit) {
                (true, true) => Class::TransitTransit,
                (false, false) => Class::StubStub,
                _ => Class::TransitStub,
            };
            // A provisional scale: one second per unit; `scale` puts it right.
            let distance = points[a as usize].distance(points[b as usize]);
            let ways = self.draw(class, scaled(distance, 1e9), &mut rng);
            builder.link(routers[a as usize], routers[b as usize], &ways);
        }
        let places = places(&graph.degrees(self.nodes), self.clients, &mut rng);
        let first_access = builder.topology().links.len();
        for (client, place) in clients.into_iter().zip(places) {
            let ways = self.draw(Class::ClientStub, Duration::ZERO, &mut rng);
            builder.link(client, routers[place as usize], &ways);
        }
        let mut topology = builder.finish();
        self.scale(&mut topology, first_access);
        topology
    }

    /// What a link of this class is like.
    fn draw(&self, class: Class, delay: Duration, rng: &mut Rng) -> Ways {
        let (least, most) = self.rates[class as usize];
        let rate = Rate::bytes_per_sec(rng.random_range(least.bytes()..=most.bytes()));
        let mut way = || {
            let is_overloaded = rng.random::<f64>() < self.losses.overloaded_share;
            let (least, most) = match is_overloaded {
                true => self.losses.overloaded,
                false => self.losses.by_class[class as usize],
            };
            let probability = rng.random_range(least..=most);
            let model = LossModel::Independent { probability };
            let loss = (most > 0.0).then_some(Loss { model, side: self.losses.side });
            let way = Way::new(rate, delay).queue(self.queue.clone()).label(class.name());
            Way { loss, mtu: self.mtu, ..way }
        };
        Ways { there: way(), back: way() }
    }

    /// How many links each router is to have, falling.
    fn degrees(&self) -> Vec<u32> {
        let leaves = (f64::from(self.nodes) * self.leaves).round() as u32;
        let inner = self.nodes - leaves.min(self.nodes - 2);
        // The real graph's largest had about a tenth of all others as neighbours.
        let most = f64::from(self.nodes) / 10.0;
        let quantile = |rank: u32| {
            let share = (f64::from(rank) + 0.5) / f64::from(inner);
            let degree = 2.0 * libm::pow(share, -1.0 / (self.exponent - 1.0));
            degree.min(most).max(2.0) as u32
        };
        let ones = std::iter::repeat_n(1, (self.nodes - inner) as usize);
        (0..inner).map(quantile).chain(ones).collect()
    }

    /// Gives delays their scale: the mean round trip between clients becomes the stated one.
    fn scale(&self, topology: &mut Topology, first_access: usize) {
        let clients: Vec<NodeIx> = topology.hosts().collect();
        let mut routes = Routes::new(topology);
        let step = clients.len().div_ceil(SAMPLE);
        let (mut total, mut pairs) = (0.0, 0.0);
        for &from in clients.iter().step_by(step) {
            for &to in clients.iter().filter(|&&to| to != from) {
                total += routes.delay(from, to).map_or(0.0, |delay| delay.as_secs_f64());
                pairs += 1.0;
            }
        }
        let access = 2.0 * self.client_delay.as_secs_f64();
        let wanted = (self.mean_rtt.as_secs_f64() / 2.0 - access).max(0.0);
        // Two clients at one router are no distance apart.
        let factor = if total > 0.0 { wanted / (total / pairs) } else { 0.0 };
        for (number, link) in topology.links.iter_mut().enumerate() {
            link.delay = match number >= first_access {
                true => self.client_delay,
                false => scaled(link.delay.as_secs_f64(), factor * 1e9),
            };
        }
    }
}

/// Where clients hang: routers of degree 1, each once before any twice.
fn places(degrees: &[u32], clients: u32, rng: &mut Rng) -> Vec<u32> {
    let mut leaves: Vec<u32> =
        (0..degrees.len() as u32).filter(|&node| degrees[node as usize] <= 1).collect();
    shuffle(rng, &mut leaves);
    leaves.iter().copied().cycle().take(clients as usize).collect()
}

/// Routers by falling degree, and which of them are joined.
struct Graph {
    edges: Vec<(u32, u32)>,
}

impl Graph {
    fn grow(degrees: &[u32], rng: &mut Rng) -> Graph {
        let count = degrees.len() as u32;
        let inner = degrees.partition_point(|&degree| degree > 1) as u32;
        let mut order: Vec<u32> = (1..inner).collect();
        shuffle(rng, &mut order);
        order.extend(inner..count);
        // Free ends of what is joined already: a router once for each.
        let mut free: Vec<u32> = vec![0; degrees[0] as usize];
        let mut edges = Vec::new();
        for node in order {
            let at = match free.len() {
                // More leaves than ends: the largest router takes them.
                0 => 0,
                len => free.swap_remove(rng.random_range(0..len)),
            };
            edges.push((at.min(node), at.max(node)));
            free.extend(std::iter::repeat_n(node, degrees[node as usize] as usize - 1));
        }
        let mut graph = Graph { edges };
        graph.join(free, rng);
        graph
    }

    /// Joins free ends at random, the largest routers' first; no link twice, none to itself.
    fn join(&mut self, mut free: Vec<u32>, rng: &mut Rng) {
        let mut known: BTreeSet<(u32, u32)> = self.edges.iter().copied().collect();
        shuffle(rng, &mut free);
        let mut order = free.clone();
        order.sort_unstable();
        let mut left = vec![0u32; order.last().map_or(0, |&last| last as usize + 1)];
        free.iter().for_each(|&node| left[node as usize] += 1);
        for node in order {
            if left[node as usize] == 0 {
                continue;
            }
            for _ in 0..TRIES {
                let place = rng.random_range(0..free.len());
                let other = free[place];
                if left[other as usize] == 0 {
                    free.swap_remove(place);
                    if free.is_empty() {
                        return;
                    }
                    continue;
                }
                let edge = (node.min(other), node.max(other));
                if node != other && known.insert(edge) {
                    self.edges.push(edge);
                    left[node as usize] -= 1;
                    left[other as usize] -= 1;
                    free.swap_remove(place);
                    break;
                }
            }
            if free.is_empty() {
                return;
            }
        }
    }

    fn degrees(&self, nodes: u32) -> Vec<u32> {
        let mut degrees = vec![0; nodes as usize];
        for &(a, b) in &self.edges {
            degrees[a as usize] += 1;
            degrees[b as usize] += 1;
        }
        degrees
    }
}

fn read_rates(fields: &mut Fields<'_>) -> Read<Rates> {
    let words = [("low", LOW), ("medium", MEDIUM), ("high", HIGH), ("bullet-prime", BULLET_PRIME)];
    let Some(item) = fields.get("bandwidth") else { return Ok(MEDIUM) };
    if !item.is_table() {
        return fields.word("bandwidth", &words, None);
    }
    let mut table = Fields::of(item, "`bandwidth`")?;
    let mut rates = table.word("base", &words, Some(MEDIUM))?;
    for (class, range) in NAMES.into_iter().zip(&mut rates) {
        *range = table.range(class, Some(*range), rate)?;
    }
    table.finish()?;
    Ok(rates)
}

fn read_losses(fields: &mut Fields<'_>) -> Read<Losses> {
    let words =
        [("none", Losses::NONE), ("lossy", Losses::LOSSY), ("bullet-prime", Losses::BULLET_PRIME)];
    let Some(item) = fields.get("loss") else { return Ok(Losses::NONE) };
    if !item.is_table() {
        return fields.word("loss", &words, None);
    }
    let mut table = Fields::of(item, "`loss`")?;
    let mut losses = table.word("base", &words, Some(Losses::NONE))?;
    for (class, range) in NAMES.into_iter().zip(&mut losses.by_class) {
        *range = table.range(class, Some(*range), probability)?;
    }
    losses.overloaded_share =
        table.probability("overloaded-share", Some(losses.overloaded_share))?;
    losses.overloaded = table.range("overloaded", Some(losses.overloaded), probability)?;
    losses.side = table.word("side", &SIDES, Some(losses.side))?;
    table.finish()?;
    Ok(losses)
}

/// Draws for a partner before a free end is given up.
const TRIES: u32 = 50;
/// Clients from which round trips are measured to all others.
const SAMPLE: usize = 64;
