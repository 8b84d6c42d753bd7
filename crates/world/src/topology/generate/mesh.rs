//! A private link between every ordered pair of hosts behind their access links: Bullet's
//! file-distribution setting (Bullet §5.2.2), static or with its changes.
//!
//! Host `n1` sends through the router `n1.up`, which has a core link to every other host's
//! `n2.down`. Two routers per host, because with one the shortest path would often lead over a
//! third host's.

use super::between;
use crate::topology::build::Builder;
use crate::topology::file::fields::{Fields, Read, probability, time};
use crate::topology::file::queue::QueueForm;
use crate::topology::file::way::{SIDES, Way, Ways};
use crate::topology::{Change, Changed, LinkIx, Loss, LossModel, Side, Topology};
use crate::units::{Rate, mbit, ms, s};
use anabranch_proto::random::{Rng, RngExt, shuffle, stream};
use anabranch_proto::time::{Duration, Time};

/// A pairwise mesh; its default is the paper's (Bullet §5.2.2) with 100 hosts.
#[derive(Clone, PartialEq, Debug)]
pub struct Mesh {
    /// Hosts.
    pub nodes: u32,
    /// Each host's link; there is up, from the host. Paper: 6 Mb/s each way, 1 ms.
    pub access: Ways,
    /// What each core link is like; its delay and loss are drawn. Paper: 2 Mb/s.
    pub core: Way,
    /// Delays of core links, uniform, one draw per ordered pair. Paper: 5..200 ms.
    pub delays: (Duration, Duration),
    /// Loss probabilities of core links, uniform, one draw per ordered pair. Paper: 0..3%.
    pub losses: (f64, f64),
    /// Where core links lose. Before the queue, as the paper's emulator drops on entry.
    pub side: Side,
    /// How rates change in the course of the run, if they do.
    pub dynamic: Option<Dynamic>,
}

/// Bullet's changing bandwidth: in every period some hosts are chosen, and for each of them some
/// of the others; the core links from those to it lose a part of their rate, for good.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dynamic {
    /// Time between two rounds; the first is one period after the start. Paper: 20 s.
    pub period: Duration,
    /// No round after this. The paper's runs end with the last receiver.
    pub until: Duration,
    /// Share of hosts that are chosen in a round. Paper: a half.
    pub nodes: f64,
    /// Share of the others whose links to a chosen host change. Paper: a half.
    pub others: f64,
    /// What the rate is multiplied by. Paper: a half.
    pub factor: f64,
}

impl Default for Dynamic {
    fn default() -> Dynamic {
        Dynamic { period: s(20), until: s(600), nodes: 0.5, others: 0.5, factor: 0.5 }
    }
}

impl Default for Mesh {
    fn default() -> Mesh {
        Mesh {
            nodes: 100,
            access: Ways::same(Way::new(mbit(6), ms(1)).label("access")),
            core: Way::new(mbit(2), ms(5)).queue(QueueForm::packets(50)).label("core"),
            delays: (ms(5), ms(200)),
            losses: (0.0, 0.03),
            side: Side::Before,
            dynamic: None,
        }
    }
}

impl Mesh {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Read<Mesh> {
        let default = Mesh::default();
        let nodes = fields.count("nodes", 2..=1000, Some(default.nodes))?;
        let access = Ways::read_at(fields, "access", default.access)?;
        let mut mesh = Mesh { nodes, access, ..Mesh::default() };
        if let Some(item) = fields.get("core") {
            let mut core = Fields::of(item, "`core`")?;
            mesh.core.rate = core.rate("rate", Some(mesh.core.rate))?;
            mesh.delays = core.range("delay", Some(mesh.delays), time)?;
            mesh.losses = core.range("loss", Some(mesh.losses), probability)?;
            mesh.side = core.word("side", &SIDES, Some(mesh.side))?;
            mesh.core.mtu = core.count("mtu", 68..=65_535, Some(mesh.core.mtu))?;
            mesh.core.label = core.text("label", Some(&mesh.core.label))?;
            if let Some(queue) = core.get("queue") {
                mesh.core.queue = QueueForm::read(queue, mesh.core.mtu)?;
            }
            core.finish()?;
        }
        if let Some(item) = fields.get("dynamic") {
            let mut dynamic = Fields::of(item, "`dynamic`")?;
            mesh.dynamic = Some(Dynamic::read(&mut dynamic)?);
            dynamic.finish()?;
        }
        Ok(mesh)
    }

    /// The topology.
    pub fn build(&self, seed: u64) -> Topology {
        let mut builder = Builder::default();
        let hosts: Vec<_> = (1..=self.nodes).map(|n| builder.host(format!("n{n}"))).collect();
        let ups: Vec<_> = (1..=self.nodes).map(|n| builder.router(format!("n{n}.up"))).collect();
        let downs: Vec<_> =
            (1..=self.nodes).map(|n| builder.router(format!("n{n}.down"))).collect();
        for (place, &host) in hosts.iter().enumerate() {
            builder.one_way(host, ups[place], &self.access.there);
            builder.one_way(downs[place], host, &self.access.back);
        }
        let first = builder.topology().links.len() as u32;
        for (from, &up) in ups.iter().enumerate() {
            // A generator per sender: more hosts change no link that was there.
            let mut rng = stream(seed, &format!("n{}", from + 1), "mesh");
            for (to, &down) in downs.iter().enumerate() {
                let delay = between(&mut rng, self.delays);
                let probability = rng.random_range(self.losses.0..=self.losses.1);
                if to == from {
                    continue;
                }
                let model = LossModel::Independent { probability };
                let loss = (self.losses.1 > 0.0).then_some(Loss { model, side: self.side });
                builder.one_way(up, down, &Way { delay, loss, ..self.core.clone() });
            }
        }
        if let Some(dynamic) = &self.dynamic {
            let changes = dynamic.changes(self.nodes as usize, self.core.rate, first, seed);
            builder.topology().changes = changes;
        }
        builder.finish()
    }
}

impl Dynamic {
    fn read(fields: &mut Fields<'_>) -> Read<Dynamic> {
        let default = Dynamic::default();
        Ok(Dynamic {
            period: fields.time("period", Some(default.period))?.max(ms(1)),
            until: fields.time("until", Some(default.until))?,
            nodes: fields.probability("nodes", Some(default.nodes))?,
            others: fields.probability("others", Some(default.others))?,
            factor: fields.number("factor", 0.0..=1.0, Some(default.factor))?,
        })
    }

    /// The changes to a mesh whose core links are numbered from `first`, sender by sender.
    fn changes(&self, nodes: usize, rate: Rate, first: u32, seed: u64) -> Vec<Change> {
        let mut rng = stream(seed, "mesh", "dynamic");
        let mut rates = vec![rate.as_f64(); nodes * nodes];
        let mut changes = Vec::new();
        let mut at = self.period;
        while at <= self.until && changes.len() < CHANGES_MAX {
            for to in pick(&mut rng, (0..nodes).collect(), self.nodes) {
                let others = (0..nodes).filter(|&from| from != to).collect();
                for from in pick(&mut rng, others, self.others) {
                    let rate = &mut rates[from * nodes + to];
                    *rate *= self.factor;
                    let place = from * (nodes - 1) + to - usize::from(to > from);
                    changes.push(Change {
                        at: Time::ZERO + at,
                        link: LinkIx(first + place as u32),
                        to: Changed::Rate(Rate::bytes_per_sec(rate.round() as u64)),
                    });
                }
            }
            at += self.period;
        }
        changes
    }
}

/// A random `share` of `items`, in random order.
fn pick(rng: &mut Rng, mut items: Vec<usize>, share: f64) -> Vec<usize> {
    let count = (items.len() as f64 * share).round() as usize;
    shuffle(rng, &mut items);
    items.truncate(count);
    items
}

/// Beyond this a run is unlikely to be meant: 1,000 hosts change 250,000 links in a round.
const CHANGES_MAX: usize = 20_000_000;
