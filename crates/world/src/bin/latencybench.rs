//! The latency wire alone: many hosts that send small messages, beside real time.
//!
//! `cargo run -p anabranch-world --release --bin latencybench -- --nodes 100000`. Each member links to a
//! few random others, once all have started, and sends one of them a message every tenth of a second.

use anabranch_proto::id::{LinkClass, LinkId, PeerInfo};
use anabranch_proto::overlay::{Command, Ctx, Holdings, Input, Output, Overlay, Setup, Stats};
use anabranch_proto::random::below;
use anabranch_proto::time::{Duration, Time};
use anabranch_world::flags::{Flags, wall_clock};
use anabranch_world::sim::{Config, HostSpec, Sim, Wire};
use anabranch_world::units::{mbit, ms};
use std::process::ExitCode;

const USAGE: &str = "usage: latencybench [--nodes N] [--links L (each dials)] [--rate MESSAGES_PER_SECOND]
    [--secs VIRTUAL_SECONDS (measured, after two for the set-up)] [--seed S] [--idle (no messages)]";

/// What a member says.
const MESSAGE: &[u8] = &[0; 40];

/// From a member's start to its dials.
const DIAL_AFTER: Duration = Duration::from_millis(10);

/// Links that a member speaks on; it does not speak on more.
const SPOKEN_MAX: usize = 15;

/// A member that chats.
struct Chatter {
    /// Whom it dials, until it has.
    peers: Vec<PeerInfo>,
    /// The first `spoken` of these.
    links: [LinkId; SPOKEN_MAX],
    spoken: u32,
    interval: Option<Duration>,
    at: Option<Time>,
    stats: Stats,
}

impl Chatter {
    fn add(&mut self, link: LinkId) {
        if let Some(place) = self.links.get_mut(self.spoken as usize) {
            *place = link;
            self.spoken += 1;
        }
    }

    fn remove(&mut self, link: LinkId) {
        let spoken = &self.links[..self.spoken as usize];
        if let Some(place) = spoken.iter().position(|other| *other == link) {
            self.links.copy_within(place + 1.., place);
            self.spoken -= 1;
        }
    }
}

impl Overlay for Chatter {
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        match input {
            Input::Start => {
                // Who dials at once meets many that have not started.
                self.at = Some(ctx.now + DIAL_AFTER);
            }
            Input::Deadline if !self.peers.is_empty() => {
                for peer in std::mem::take(&mut self.peers) {
                    ctx.out.push(Output::Connect { peer, class: LinkClass::Reliable });
                }
                // Members speak one after the other, not all at once.
                let interval = self.interval.map(|interval| interval.as_nanos() as usize);
                let offset = interval.map(|nanos| below(ctx.rng, nanos.max(1)) as u64);
                self.at = offset.map(|offset| ctx.now + Duration::from_nanos(offset));
            }
            Input::LinkUp { link, .. } => self.add(link),
            Input::LinkDown { link, .. } => self.remove(link),
            Input::Message { .. } => self.stats.messages_bad += 1,
            Input::Deadline => {
                if let (Some(at), Some(interval)) = (self.at, self.interval)
                    && ctx.now >= at
                {
                    self.at = Some(at + interval);
                    if self.spoken > 0 {
                        let link = self.links[below(ctx.rng, self.spoken as usize)];
                        ctx.send(link, MESSAGE.to_vec());
                        self.stats.requests += 1;
                    }
                }
            }
            Input::Command(Command::Leave) => ctx.out.push(Output::Left),
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.at
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn check_invariants(&self, _: &Holdings) -> Result<(), String> {
        Ok(())
    }

    fn contacts(&self) -> Vec<PeerInfo> {
        Vec::new()
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut flags = Flags::from_env()?;
    let nodes: u32 = flags.take("nodes")?.unwrap_or(100_000);
    let links: usize = flags.take("links")?.unwrap_or(2);
    let rate: f64 = flags.take("rate")?.unwrap_or(10.0);
    let secs: u64 = flags.take("secs")?.unwrap_or(10);
    let seed: u64 = flags.take("seed")?.unwrap_or(1);
    let is_idle = flags.take_switch("idle");
    flags.finish()?;
    if nodes < 2 || rate <= 0.0 {
        return Err("there must be two nodes and a rate above zero".into());
    }
    let interval = (!is_idle).then(|| Duration::from_secs_f64(1.0 / rate));
    let before = resident_kib();
    let mut sim = world(seed, nodes, links, interval);
    let made = resident_kib();
    let set_up = Time::ZERO + Duration::from_secs(2);
    sim.run(set_up, |_| false).map_err(|error| error.to_string())?;
    let linked = resident_kib();
    let sent = messages(&sim);
    let (started, cpu_before) = (wall_clock(), cpu_secs());
    sim.run(set_up + Duration::from_secs(secs), |_| false).map_err(|error| error.to_string())?;
    let wall = started.elapsed().as_secs_f64();
    let cpu = cpu_secs() - cpu_before;
    let sent = messages(&sim) - sent;
    let row = |name: &str, value: String| println!("{name:<34} {value}");
    row("nodes", format!("{nodes}, each dials {links}"));
    row("messages", format!("{sent} in {secs} s of virtual time"));
    row("wall time", format!("{wall:.2} s"));
    row("processor time", format!("{cpu:.2} s"));
    row("virtual time / wall time", format!("{:.2}", secs as f64 / wall.max(1e-9)));
    row("virtual time / processor time", format!("{:.2}", secs as f64 / cpu.max(1e-9)));
    let links: usize = sim.hosts().map(|host| sim.links(host)).sum();
    row("links per node", format!("{:.2}", links as f64 / f64::from(nodes)));
    let per_node = |kib: u64| format!("{:.2} KiB per node", kib as f64 / f64::from(nodes));
    row("memory before anyone starts", per_node(made.saturating_sub(before)));
    row("memory with links", per_node(linked.saturating_sub(before)));
    row("trace", format!("{:?}", sim.trace_hash()));
    Ok(())
}

fn messages(sim: &Sim) -> u64 {
    sim.hosts().map(|host| sim.stats(host).requests).sum()
}

fn world(seed: u64, nodes: u32, links: usize, interval: Option<Duration>) -> Sim {
    let mut config = Config::new(seed, 1, 1);
    (config.wire, config.check) = (Wire::Latency, false);
    let name = |number: u32| format!("n{number}");
    let info = move |number: u32| PeerInfo {
        id: anabranch_proto::id::PeerId::of_name(&name(number)),
        contact: anabranch_proto::id::Contact {
            addresses: number.to_le_bytes().to_vec(),
            reachable: true,
        },
    };
    let factory = move |setup: Setup| {
        let me = setup.me.id.to_string();
        let mut rng = anabranch_proto::random::stream(seed, &me, "latencybench");
        let peers = (0..links).map(|_| info(below(&mut rng, nodes as usize) as u32)).collect();
        let (links, stats) = ([LinkId(0); SPOKEN_MAX], Stats::default());
        let chatter = Chatter { peers, links, spoken: 0, interval, at: None, stats };
        Box::new(chatter) as Box<dyn Overlay + Send>
    };
    let mut sim = Sim::new(config, ms(25), Box::new(factory));
    for number in 0..nodes {
        let rate = mbit(10);
        sim.add_host(match number {
            0 => HostSpec::source(format!("n{number}"), rate, rate),
            _ => HostSpec::receiver(format!("n{number}"), rate, rate),
        });
    }
    sim
}

/// This process's resident memory, as the system says; zero where it does not.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// This process's processor time in seconds, as the system says; zero where it does not.
fn cpu_secs() -> f64 {
    let status = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = status.split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok());
    nanos.map_or(0.0, |nanos| nanos as f64 / 1e9)
}
