//! Whom a member knows and may dial.

use crate::id::{PeerId, PeerInfo};
use crate::random::{Rng, below};
use crate::time::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Peers remembered.
const KNOWN_MAX: usize = 1_000;
/// The wait after a first failed dial or lost connection; it doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(10);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long a dial may take before it is forgotten.
const DIAL_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Known {
    info: PeerInfo,
    /// It is not dialled before.
    retry_at: Time,
    failures: u32,
    /// It has everything: of no use to another that has.
    is_seed: bool,
}

/// Peers that were heard of, those being dialled, and those whose blocks were corrupt.
#[derive(Debug, Default)]
pub(super) struct KnownPeers {
    peers: BTreeMap<PeerId, Known>,
    dialling: BTreeMap<PeerId, Time>,
    banned: BTreeSet<PeerId>,
}

impl KnownPeers {
    /// A peer was heard of.
    pub(super) fn add(&mut self, info: PeerInfo) {
        if let Some(known) = self.peers.get_mut(&info.id) {
            known.info = info;
        } else if self.peers.len() < KNOWN_MAX {
            let known = Known { info, retry_at: Time::ZERO, failures: 0, is_seed: false };
            self.peers.insert(known.info.id, known);
        }
    }

    /// A peer that may be dialled now and `fits`, drawn at random; it counts as being dialled.
    pub(super) fn draw(
        &mut self,
        rng: &mut Rng,
        now: Time,
        skips_seeds: bool,
        fits: impl Fn(&PeerInfo) -> bool,
    ) -> Option<PeerInfo> {
        let candidates: Vec<&PeerInfo> = self
            .peers
            .values()
            .filter(|known| now >= known.retry_at && !(skips_seeds && known.is_seed))
            .map(|known| &known.info)
            .filter(|info| !self.dialling.contains_key(&info.id) && fits(info))
            .filter(|info| !self.banned.contains(&info.id))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let info = candidates[below(rng, candidates.len())].clone();
        self.dialling.insert(info.id, now);
        Some(info)
    }

    /// How many are being dialled.
    pub(super) fn dialling(&self) -> usize {
        self.dialling.len()
    }

    /// Whether this peer is being dialled.
    pub(super) fn is_dialled(&self, peer: &PeerId) -> bool {
        self.dialling.contains_key(peer)
    }

    /// A peer has answered: there is a connection.
    pub(super) fn on_connected(&mut self, peer: &PeerId) {
        self.dialling.remove(peer);
        if let Some(known) = self.peers.get_mut(peer) {
            known.failures = 0;
        }
    }

    /// A peer was not reached, wanted no connection, or is lost.
    pub(super) fn on_lost(&mut self, now: Time, peer: &PeerId) {
        self.dialling.remove(peer);
        if let Some(known) = self.peers.get_mut(peer) {
            known.retry_at = now + (RETRY * (1 << known.failures.min(3))).min(RETRY_MAX);
            known.failures += 1;
        }
    }

    /// A peer has everything.
    pub(super) fn on_seed(&mut self, peer: &PeerId) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.is_seed = true;
        }
    }

    /// A peer sent what the source did not make: it is not dealt with any more.
    pub(super) fn ban(&mut self, peer: PeerId) {
        self.banned.insert(peer);
        self.dialling.remove(&peer);
    }

    pub(super) fn is_banned(&self, peer: &PeerId) -> bool {
        self.banned.contains(peer)
    }

    /// Whether nobody is known but perhaps the tracker's host.
    pub(super) fn is_empty_but(&self, tracker: &PeerId) -> bool {
        self.peers.keys().all(|peer| peer == tracker)
    }

    /// Forgets dials that nothing came of.
    pub(super) fn expire(&mut self, now: Time) {
        let late: Vec<PeerId> = self
            .dialling
            .iter()
            .filter(|(_, since)| now.since(**since) >= DIAL_WITHIN)
            .map(|(peer, _)| *peer)
            .collect();
        late.iter().for_each(|peer| self.on_lost(now, peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Contact;
    use crate::random::stream;

    fn info(name: &str) -> PeerInfo {
        PeerInfo { id: PeerId::of_name(name), contact: Contact::default() }
    }

    #[test]
    fn a_peer_that_is_not_reached_is_tried_again_after_a_while_and_a_banned_one_never() {
        let mut known = KnownPeers::default();
        let mut rng = stream(1, "k", "t");
        known.add(info("a"));
        let mut draw = |known: &mut KnownPeers, secs: f64| {
            known.draw(&mut rng, Time::from_secs_f64(secs), false, |_| true)
        };
        assert_eq!(draw(&mut known, 0.0), Some(info("a")));
        assert_eq!(draw(&mut known, 0.0), None);
        known.on_lost(Time::from_secs_f64(3.0), &info("a").id);
        assert_eq!(draw(&mut known, 12.9), None);
        assert_eq!(draw(&mut known, 13.0), Some(info("a")));
        known.on_lost(Time::from_secs_f64(13.0), &info("a").id);
        assert_eq!(draw(&mut known, 32.9), None);
        known.ban(info("a").id);
        assert_eq!(draw(&mut known, 1e6), None);
    }

    #[test]
    fn a_dial_without_any_answer_is_forgotten() {
        let mut known = KnownPeers::default();
        known.add(info("a"));
        known.draw(&mut stream(1, "k", "t"), Time::ZERO, false, |_| true);
        known.expire(Time::from_secs_f64(19.0));
        assert!(known.is_dialled(&info("a").id));
        known.expire(Time::from_secs_f64(20.0));
        assert!(!known.is_dialled(&info("a").id));
    }

    #[test]
    fn a_seed_does_not_dial_seeds() {
        let mut known = KnownPeers::default();
        known.add(info("a"));
        known.on_seed(&info("a").id);
        let mut rng = stream(1, "k", "t");
        assert_eq!(known.draw(&mut rng, Time::ZERO, true, |_| true), None);
        assert!(known.draw(&mut rng, Time::ZERO, false, |_| true).is_some());
    }
}
