//! The emulator: the simulator's links and queues in real time, under real programs.
//!
//! Each host of a topology becomes a network namespace, in which `ip netns exec NAME …` runs any
//! program. A namespace has one TUN device; what its programs send comes out of the device's other
//! end here, goes through the links and queues of [`crate::net`] as in the simulator, and goes into
//! the device of the host it is for when it is due. No queue of the kernel's is relied on.
//!
//! It says whether it kept up: see [`Report::valid`]. Everything it makes is removed at the end,
//! and what a killed run left is removed by the next. Scope, limits and what was measured:
//! `docs/emulator.md`.
//!
//! This is the part of the crate that reads clocks, and has threads and files; nothing else uses it.
//!
//! Where to look: [`engine`](self) moves packets; `namespace` makes hosts; `record` remembers what
//! was made; `report` tells what happened; `system` holds all unsafe code.

mod address;
mod engine;
mod ip;
mod lateness;
mod machine;
mod namespace;
mod pool;
mod processes;
mod record;
mod report;
mod system;

pub use report::{
    Amount, ClassReport, Health, HostReport, LATE_SHARE_MAX, LinkReport, Quantiles, Report,
};

use crate::net::Network;
use crate::topology::routes::Routes;
use crate::topology::{NodeIx, Topology};
use engine::{Engine, Outcome};
use namespace::{Namespaces, Plan, Port};
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::Serialize;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use thiserror::Error;

/// How many hosts the emulator takes.
pub const HOSTS_MAX: usize = 1000;
/// Up to so many hosts, the ways of all pairs are found before the start; above, one of each host,
/// which makes the others of it short work.
const ALL_PAIRS_MAX: usize = 200;
/// The smallest that IPv4 takes (RFC 791).
const MTU_MIN: u32 = 68;
/// What a link may carry at most in one packet: the length field of IPv4 says no more.
const PACKET_MAX: u32 = 65_535;

/// Why the emulator does not run. Each is one sentence that says what, and what to do.
#[derive(Error, Clone, PartialEq, Eq, Debug)]
pub enum EmuError {
    /// The machine lacks something: root, iproute2, TUN devices, a congestion control.
    #[error("{0}")]
    Missing(String),
    /// The topology cannot be emulated, or its names are taken.
    #[error("{0}")]
    Refused(String),
    /// Something that should work did not.
    #[error("{0}")]
    Failed(String),
}

/// How to run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Put before each host's name to make its namespace's. Default: nothing. With different
    /// prefixes the same topology can run several times at once.
    pub prefix: String,
    /// What random loss and queues draw from. Default: 0.
    pub seed: u64,
}

/// A host that programs can run on.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name in the topology; programs on other hosts find it by this.
    pub name: String,
    /// Its namespace, for `ip netns exec`.
    pub namespace: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its other address, known as `NAME.v6`.
    pub address_v6: Ipv6Addr,
}

/// A network that runs. Dropping it ends it and removes everything.
pub struct Emulator {
    topology: Topology,
    hosts: Vec<Host>,
    // Ends before the namespaces go, since fields are dropped in this order.
    carrier: Carrier,
    namespaces: Namespaces,
    /// The machine's counters at the start.
    machine: machine::Ticks,
}

impl Emulator {
    /// Makes the hosts and starts to carry packets. Nothing stays when it fails.
    pub fn start(topology: &Topology, config: &Config) -> Result<Emulator, EmuError> {
        let nodes = host_nodes(topology)?;
        let plans = plans(topology, &nodes, &config.prefix)?;
        let hosts = (0..).zip(&plans).map(|(number, plan)| host(number, plan)).collect();
        let namespaces = Namespaces::make(&plans, topology.congestion.as_deref())?;
        let work = Work { topology: topology.clone(), seed: config.seed, nodes };
        let carrier = Carrier::start(work, Arc::clone(&namespaces.ports))?;
        let machine = machine::ticks();
        Ok(Emulator { topology: topology.clone(), hosts, carrier, namespaces, machine })
    }

    /// The hosts, in the order of the topology.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The namespaces of runs that were killed, which this run has removed.
    pub fn leftovers(&self) -> &[String] {
        &self.namespaces.leftovers
    }

    /// Lets a program that is about to be started end with this process, however that ends: a killed
    /// emulator leaves no command behind. To be called by the thread that starts it.
    pub fn bind(command: &mut std::process::Command) {
        system::end_with_us(command);
    }

    /// Ends the run, with every process in its namespaces, removes everything and tells what
    /// happened.
    pub fn finish(mut self) -> Result<Report, EmuError> {
        // The counters go with the devices.
        let counted = self.namespaces.counted();
        let machine = machine::shares(self.machine, machine::ticks());
        let outcome = self.carrier.end();
        self.namespaces.remove()?;
        Ok(Report::new(&self.topology, &self.hosts, &outcome?, &counted?, machine))
    }
}

/// What the loop needs beside the devices.
struct Work {
    topology: Topology,
    seed: u64,
    /// The hosts' nodes.
    nodes: Vec<NodeIx>,
}

/// The thread of the loop; ended when dropped.
struct Carrier {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<Result<Outcome, EmuError>>>,
}

impl Carrier {
    #[expect(clippy::disallowed_methods, reason = "packets are carried while other programs run")]
    fn start(work: Work, ports: Arc<Vec<Port>>) -> Result<Carrier, EmuError> {
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let stop = Arc::new(stop.map_err(|error| stopped(&error))?);
        let told = Arc::clone(&stop);
        let (ready, is_ready) = sync_channel(1);
        let thread = std::thread::spawn(move || carry(&work, &ports, &told, &ready));
        // An error means that the thread has ended, which `end` explains.
        let _ = is_ready.recv();
        Ok(Carrier { stop, thread: Some(thread) })
    }

    fn end(&mut self) -> Result<Outcome, EmuError> {
        // Writing fails only when it has been told before.
        let _ = self.stop.write(1);
        let joined = self.thread.take().map(JoinHandle::join);
        joined.and_then(Result::ok).unwrap_or_else(|| Err(stopped(&"its thread is gone")))
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Whoever wanted to know has called `end`.
            let _ = self.end();
        }
    }
}

fn carry(
    work: &Work,
    ports: &[Port],
    stop: &EventFd,
    ready: &SyncSender<()>,
) -> Result<Outcome, EmuError> {
    let mut network = Network::new(&work.topology, work.seed);
    // The first way from a host may take milliseconds, which no packet should wait for.
    let others = if work.nodes.len() <= ALL_PAIRS_MAX { work.nodes.len() } else { 1 };
    for (index, &from) in work.nodes.iter().enumerate() {
        for &to in work.nodes.iter().cycle().skip(index + 1).take(others) {
            network.find_route(from, to);
        }
    }
    let engine = Engine::new(ports, &work.nodes, network, &work.topology, stop);
    // Whoever started this waits for it.
    let _ = ready.send(());
    engine.and_then(Engine::run).map_err(|error| stopped(&error))
}

fn stopped(error: &dyn std::fmt::Display) -> EmuError {
    EmuError::Failed(format!("the emulator stopped carrying packets: {error}"))
}

/// The nodes that programs run on.
fn host_nodes(topology: &Topology) -> Result<Vec<NodeIx>, EmuError> {
    let nodes = (0..).map(NodeIx).zip(&topology.nodes);
    let hosts: Vec<NodeIx> =
        nodes.filter(|(_, node)| node.is_host).map(|(index, _)| index).collect();
    if hosts.is_empty() || hosts.len() > HOSTS_MAX {
        let count = hosts.len();
        let text = format!("the topology has {count} hosts; the emulator takes 1 to {HOSTS_MAX}");
        return Err(EmuError::Refused(text));
    }
    Ok(hosts)
}

/// What each host is to be.
fn plans(topology: &Topology, nodes: &[NodeIx], prefix: &str) -> Result<Vec<Plan>, EmuError> {
    let mut plans = Vec::with_capacity(nodes.len());
    for &node in nodes {
        let name = topology.nodes[node.0 as usize].name.clone();
        let leaving = topology.links.iter().filter(|link| link.from == node);
        let Some(mtu) = leaving.map(|link| link.mtu).max() else {
            return Err(EmuError::Refused(format!("host {name:?} has no link that leaves it")));
        };
        if !(MTU_MIN..=PACKET_MAX).contains(&mtu) {
            return Err(EmuError::Refused(format!(
                "the link of host {name:?} has an MTU of {mtu} bytes; IP takes {MTU_MIN} to \
                 {PACKET_MAX}"
            )));
        }
        plans.push(Plan { namespace: format!("{prefix}{name}"), name, mtu, narrow: Vec::new() });
    }
    let mtu_of_all = topology.links.first().map(|link| link.mtu);
    if topology.links.iter().any(|link| Some(link.mtu) != mtu_of_all) {
        find_narrow(topology, nodes, &mut plans);
    }
    Ok(plans)
}

/// Finds the pairs between which a link takes smaller packets than the sender's first. Routers here
/// send no ICMP, so hosts must know beforehand.
fn find_narrow(topology: &Topology, nodes: &[NodeIx], plans: &mut [Plan]) {
    let mut routes = Routes::new(topology);
    for (plan, &from) in plans.iter_mut().zip(nodes) {
        for (number, &to) in (0..).zip(nodes).filter(|(_, to)| **to != from) {
            let path = routes.path(from, to).unwrap_or_default();
            let mtu = path.iter().map(|link| topology.links[link.0 as usize].mtu).min();
            plan.narrow.extend(mtu.filter(|mtu| *mtu < plan.mtu).map(|mtu| (number, mtu)));
        }
    }
}

fn host(number: u32, plan: &Plan) -> Host {
    Host {
        name: plan.name.clone(),
        namespace: plan.namespace.clone(),
        address: address::v4(number),
        address_v6: address::v6(number),
    }
}
