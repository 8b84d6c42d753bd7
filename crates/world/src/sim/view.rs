//! What can be seen of a world from outside.

use super::host::{BlockArrival, Host};
use super::{Completion, Config, HostId, HostSpec, Life, Sim, SimError, TraceHash};
use crate::clock::Clock;
use crate::meter::Meter;
use anabranch_proto::overlay::{Holdings, Outcome, Overlay, Stats};
use anabranch_proto::time::Time;

impl Sim {
    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What the run was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The hash of everything that happened so far.
    pub fn trace_hash(&self) -> TraceHash {
        self.trace
    }

    /// How many events were handled.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many events wait.
    pub fn events_waiting(&self) -> usize {
        self.queue.len()
    }

    /// All hosts, in the order in which they were added; the source is the first.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// The host called `name`.
    pub fn host(&self, name: &str) -> Option<HostId> {
        self.names.get(name).copied()
    }

    /// What a host was made with, as faults have changed it.
    pub fn spec(&self, host: HostId) -> &HostSpec {
        &self.at(host).spec
    }

    /// Whether a host runs.
    pub fn life(&self, host: HostId) -> Life {
        self.at(host).life
    }

    /// What a host holds.
    pub fn holdings(&self, host: HostId) -> &Holdings {
        &self.at(host).holdings
    }

    /// A host's clock.
    pub fn clock(&self, host: HostId) -> Clock {
        self.at(host).spec.clock
    }

    /// What a host's member counts (the last one's, when the host is down); zeros before it ran.
    pub fn stats(&self, host: HostId) -> Stats {
        let host = self.at(host);
        let last = || host.stats_last.as_deref().copied().unwrap_or_default();
        host.member.as_ref().map_or_else(last, |member| *member.stats())
    }

    /// What a host's member says of whom to join through.
    pub fn member(&self, host: HostId) -> Option<&(dyn Overlay + Send)> {
        self.at(host).member.as_deref()
    }

    /// What a host sent and received.
    pub fn meter(&self, host: HostId) -> &Meter {
        &self.at(host).meter
    }

    /// The blocks that came to a host, in order; none unless [`Config::arrivals`] asks for them.
    pub fn arrivals(&self, host: HostId) -> &[BlockArrival] {
        &self.at(host).arrivals
    }

    /// How many links a host has now.
    pub fn links(&self, host: HostId) -> usize {
        self.at(host).peers.len()
    }

    /// Completions so far, in order.
    pub fn completions(&self) -> &[Completion] {
        &self.completions
    }

    /// When a host reported that it has everything, the first time.
    pub fn completion(&self, host: HostId) -> Option<Time> {
        self.completions.iter().find(|done| done.host == host).map(|done| done.at)
    }

    /// What receivers reported to the root, and when it heard.
    pub fn outcomes(&self) -> &[(Time, Outcome)] {
        &self.outcomes
    }

    /// Whether every receiver that runs is complete, and none is still to start.
    pub fn is_complete(&self) -> bool {
        let waits = |host: &Host| {
            let is_busy = host.life == Life::Up && !host.is_done && !host.started_complete();
            !host.spec.is_source && (is_busy || host.starts_waiting > 0)
        };
        !self.hosts.iter().any(waits)
    }

    /// The error for a run that was not complete when it should have been.
    pub fn unfinished(&self) -> SimError {
        let waiting: Vec<String> = self
            .hosts
            .iter()
            .filter(|host| !host.spec.is_source && !host.is_done)
            .take(10)
            .map(|host| {
                let held = host.holdings.held();
                let (name, life) = (&host.spec.name, host.life);
                format!("{name} ({life:?}) holds {} of {}", held.count(), held.len())
            })
            .collect();
        SimError::Unfinished { time: self.now, waiting: waiting.join(", ") }
    }

    pub(super) fn at(&self, host: HostId) -> &Host {
        &self.hosts[host.0 as usize]
    }
}
