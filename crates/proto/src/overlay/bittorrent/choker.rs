//! Whom to unchoke: tit for tat (Cohen §3.2; BEP 3, "choking").
//!
//! Interested peers compete. A downloader unchokes those that give most; all but one slot are theirs.
//! The last goes to the *optimistic* unchoke: the first choked and interested peer in an order that
//! moves on every third round, in which a newcomer starts three times as likely in front. Peers that
//! snub us are unchoked in no other way.
//!
//! Deviation: BEP 3 also unchokes peers that are not interested and give more. Here, as in clients of
//! today, they are choked until a slot is free: otherwise what they ask as soon as they are interested
//! meets the choke that their interest sets off (at 100 nodes, a request in two was refused).
//!
//! A seed has nobody to repay: see [`SeedUnchoke`].

use super::config::{Config, SeedUnchoke};
use crate::id::LinkId;
use crate::random::{Rng, RngExt, shuffle};
use crate::time::{Duration, Time};
use std::collections::BTreeSet;

/// How long a seed's unchoked peer counts as fresh.
const FRESH: Duration = Duration::from_secs(20);

/// What the choice knows of a peer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    pub(super) link: LinkId,
    /// Whether it wants pieces of ours.
    pub(super) is_interested: bool,
    /// Whether it delivers nothing although it could.
    pub(super) is_snubbing: bool,
    /// When it was unchoked; `None` while it is choked.
    pub(super) unchoked_at: Option<Time>,
    /// Whether requests of it wait here.
    pub(super) is_waiting: bool,
    /// Bytes per second: what it gives to a downloader, what it takes from a seed.
    pub(super) rate: f64,
}

/// The order of optimistic unchokes and the count of rounds.
#[derive(Debug, Default)]
pub(super) struct Choker {
    order: Vec<LinkId>,
    rounds: u32,
}

impl Choker {
    /// A new peer: three of so many chances that it is first.
    pub(super) fn add(&mut self, rng: &mut Rng, link: LinkId) {
        let at = rng.random_range(0..self.order.len() + 3).saturating_sub(2);
        self.order.insert(at, link);
    }

    pub(super) fn remove(&mut self, link: LinkId) {
        self.order.retain(|other| *other != link);
    }

    /// A round of ten seconds begins: the optimistic unchoke moves on when it is time.
    pub(super) fn next_round(&mut self, config: &Config, peers: &[Candidate]) {
        self.rounds = self.rounds.wrapping_add(1);
        if !self.rounds.is_multiple_of(config.optimistic_rounds.max(1)) {
            return;
        }
        let is_next = |link: &LinkId| {
            peers.iter().any(|p| p.link == *link && p.is_interested && p.unchoked_at.is_none())
        };
        if let Some(at) = self.order.iter().position(is_next) {
            self.order.rotate_left(at);
        }
    }

    /// Who is unchoked from now on, for a member that still downloads.
    pub(super) fn choose(&self, config: &Config, peers: &[Candidate]) -> BTreeSet<LinkId> {
        let slots = config.upload_slots;
        let Some(regular) = slots.checked_sub(1) else { return BTreeSet::new() };
        let find = |link: &LinkId| peers.iter().find(|p| p.link == *link && p.is_interested);
        let in_order: Vec<&Candidate> = self.order.iter().filter_map(find).collect();
        let mut best: Vec<&Candidate> =
            in_order.iter().copied().filter(|peer| !peer.is_snubbing).collect();
        // Stable: among equals the order of optimistic unchokes decides.
        best.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        best.truncate(regular);
        let mut unchoked: BTreeSet<LinkId> = best.iter().map(|peer| peer.link).collect();
        for peer in in_order {
            if unchoked.len() < slots {
                unchoked.insert(peer.link);
            }
        }
        unchoked
    }

    /// Who is unchoked from now on, for a seed; `is_round` when a round begins, and not only a
    /// peer's interest has changed.
    pub(super) fn choose_as_seed(
        &self,
        config: &Config,
        rng: &mut Rng,
        now: Time,
        peers: &[Candidate],
        is_round: bool,
    ) -> BTreeSet<LinkId> {
        if config.seed_unchoke == SeedUnchoke::Fastest || config.upload_slots == 0 {
            return self.choose(config, peers);
        }
        let slots = config.upload_slots;
        let is_kept = |peer: &&Candidate| peer.is_interested && peer.unchoked_at.is_some();
        let mut kept: Vec<&Candidate> = peers.iter().filter(is_kept).collect();
        kept.sort_by(|a, b| turn(now, a).cmp(&turn(now, b)).then(b.rate.total_cmp(&a.rate)));
        let makes_room = is_round && !self.rounds.is_multiple_of(3);
        kept.truncate(slots - usize::from(makes_room));
        let is_choked = |peer: &&Candidate| peer.is_interested && peer.unchoked_at.is_none();
        let mut others: Vec<&Candidate> = peers.iter().filter(is_choked).collect();
        shuffle(rng, &mut others);
        kept.into_iter().chain(others).take(slots).map(|peer| peer.link).collect()
    }
}

/// A seed's order: the fresh before the others, of the fresh the latest first.
fn turn(now: Time, peer: &Candidate) -> (bool, Duration) {
    let age = peer.unchoked_at.map_or(Duration::MAX, |at| now.since(at));
    let is_fresh = age < FRESH || peer.is_waiting;
    (!is_fresh, if is_fresh { age } else { Duration::ZERO })
}

#[cfg(test)]
mod tests;
