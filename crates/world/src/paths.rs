//! What lies between two hosts: delay, rate, and whether it is cut.

use crate::terrain::Terrain;
use crate::topology::{Changed, LinkIx};
use crate::units::Rate;
use anabranch_proto::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// One-way delays by (from, to), for topologies that are computed.
pub type DelayFn = Box<dyn Fn(u32, u32) -> Duration + Send>;

/// The paths between all pairs of hosts, which are numbered in the order they were added.
pub(crate) struct Paths {
    delay: DelayFn,
    delays: BTreeMap<(u32, u32), Duration>,
    rates: BTreeMap<(u32, u32), Rate>,
    cuts: BTreeSet<(u32, u32)>,
    /// What lies between hosts where nothing else was said.
    terrain: Option<Terrain>,
}

impl Paths {
    /// The same one-way delay between all hosts.
    pub(crate) fn uniform(delay: Duration) -> Paths {
        Paths::computed(Box::new(move |_, _| delay))
    }

    pub(crate) fn computed(delay: DelayFn) -> Paths {
        let (delays, rates, cuts) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Paths { delay, delays, rates, cuts, terrain: None }
    }

    /// As a topology has it.
    pub(crate) fn over(terrain: Terrain) -> Paths {
        Paths { terrain: Some(terrain), ..Paths::uniform(Duration::ZERO) }
    }

    /// Carries out changes of the topology's links; returns hosts whose rates are others now.
    pub(crate) fn apply(&mut self, changes: &[(LinkIx, Changed)]) -> Vec<(u32, Rate, Rate)> {
        self.terrain.as_mut().map_or(Vec::new(), |terrain| terrain.apply(changes))
    }

    pub(crate) fn delay(&self, from: u32, to: u32) -> Duration {
        self.delays.get(&(from, to)).copied().unwrap_or_else(|| match &self.terrain {
            Some(terrain) => terrain.delay(from, to),
            None => (self.delay)(from, to),
        })
    }

    pub(crate) fn rtt(&self, a: u32, b: u32) -> Duration {
        self.delay(a, b) + self.delay(b, a)
    }

    /// Bytes per second from one host to another; zero while the pair is cut.
    pub(crate) fn cap(&self, from: u32, to: u32) -> f64 {
        if self.is_cut(from, to) {
            return 0.0;
        }
        let cap = self.terrain.as_ref().map_or(f64::INFINITY, |terrain| terrain.cap(from, to));
        self.rates.get(&(from, to)).map_or(cap, |rate| rate.as_f64().min(cap))
    }

    /// Whether the pair itself is cut, whatever the links between are.
    pub(crate) fn is_severed(&self, a: u32, b: u32) -> bool {
        !self.cuts.is_empty() && self.cuts.contains(&(a.min(b), a.max(b)))
    }

    pub(crate) fn is_cut(&self, a: u32, b: u32) -> bool {
        self.is_severed(a, b) || self.terrain.as_ref().is_some_and(|terrain| terrain.is_cut(a, b))
    }

    pub(crate) fn set_delay(&mut self, from: u32, to: u32, delay: Duration) {
        self.delays.insert((from, to), delay);
    }

    pub(crate) fn set_rate(&mut self, from: u32, to: u32, rate: Option<Rate>) {
        match rate {
            Some(rate) => self.rates.insert((from, to), rate),
            None => self.rates.remove(&(from, to)),
        };
    }

    pub(crate) fn heal_all(&mut self) {
        self.cuts.clear();
    }

    pub(crate) fn set_cut(&mut self, a: u32, b: u32, is_cut: bool) {
        let pair = (a.min(b), a.max(b));
        if is_cut {
            self.cuts.insert(pair);
        } else {
            self.cuts.remove(&pair);
        }
    }
}

impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paths").field("cuts", &self.cuts).finish_non_exhaustive()
    }
}
