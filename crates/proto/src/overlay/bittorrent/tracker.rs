//! The tracker, a role of the source: who is in the group. And the announcer, its client.
//!
//! A member that is not heard of for two intervals is forgotten (BEP 3 leaves that to the tracker).
//! Members that accept no connections are noted and not named: trackers check who can be dialled.

use super::config::Config;
use crate::id::{PeerId, PeerInfo};
use crate::random::{Rng, RngExt};
use crate::time::{Duration, Time};
use std::collections::BTreeMap;

/// Members a tracker remembers.
const MEMBERS_MAX: usize = 1 << 17;
/// The first wait after an announcement without answer; it doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(15);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

#[derive(Debug)]
struct Member {
    info: PeerInfo,
    heard: Time,
}

/// Who has announced itself.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    members: BTreeMap<PeerId, Member>,
}

impl Tracker {
    /// A member is there.
    pub(super) fn on_present(&mut self, now: Time, info: PeerInfo) {
        if self.members.len() < MEMBERS_MAX || self.members.contains_key(&info.id) {
            self.members.insert(info.id, Member { info, heard: now });
        }
    }

    /// A member has left.
    pub(super) fn on_stopped(&mut self, peer: &PeerId) {
        self.members.remove(peer);
    }

    /// Up to `count` members drawn at random, without `but`.
    pub(super) fn sample(
        &mut self,
        config: &Config,
        now: Time,
        rng: &mut Rng,
        but: &PeerId,
    ) -> Vec<PeerInfo> {
        let lifetime = config.announce_interval * 2;
        self.members.retain(|_, member| now.since(member.heard) < lifetime);
        let mut others: Vec<&PeerInfo> = self
            .members
            .values()
            .map(|member| &member.info)
            .filter(|info| info.id != *but && info.contact.reachable)
            .collect();
        let count = config.peers_told.min(super::messages::TOLD_MAX).min(others.len());
        for at in 0..count {
            let other = rng.random_range(at..others.len());
            others.swap(at, other);
        }
        others.into_iter().take(count).cloned().collect()
    }
}

/// When to announce oneself next.
#[derive(Debug)]
pub(super) struct Announcer {
    due: Time,
    /// An announcement is under way since then: dialled, or sent and not answered.
    waits_since: Option<Time>,
    answered_at: Option<Time>,
    interval: Duration,
    failures: u32,
}

impl Announcer {
    pub(super) fn new(config: &Config) -> Announcer {
        Announcer {
            due: Time::ZERO,
            waits_since: None,
            answered_at: None,
            interval: config.announce_interval,
            failures: 0,
        }
    }

    /// Whether to announce oneself now.
    pub(super) fn is_due(&self, config: &Config, now: Time, peers: usize) -> bool {
        if self.waits_since.is_some_and(|since| now.since(since) < ANSWER_WITHIN) {
            return false;
        }
        let early = peers < config.peers_min
            && self.answered_at.is_some_and(|at| now.since(at) >= config.announce_early);
        early || now >= self.due
    }

    /// Something is to be announced at once.
    pub(super) fn hurry(&mut self, now: Time) {
        self.due = now;
        self.waits_since = None;
    }

    pub(super) fn on_begun(&mut self, now: Time) {
        self.waits_since = Some(now);
    }

    /// Whether an announcement waits for its link, or for its answer.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits_since.is_some()
    }

    pub(super) fn on_answer(&mut self, now: Time, interval: Duration) {
        self.interval = interval.max(Duration::from_secs(1));
        self.answered_at = Some(now);
        self.waits_since = None;
        self.failures = 0;
        self.due = now + self.interval;
    }

    /// The tracker was not reached, or did not answer; gives how often in a row.
    pub(super) fn on_failed(&mut self, now: Time) -> u32 {
        self.waits_since = None;
        self.due = now + (RETRY * (1 << self.failures.min(4))).min(RETRY_MAX);
        self.failures += 1;
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Contact;
    use crate::random::stream;

    fn info(number: u32) -> PeerInfo {
        let contact = Contact { addresses: Vec::new(), reachable: number != 7 };
        PeerInfo { id: PeerId::of_name(&number.to_string()), contact }
    }

    #[test]
    fn a_tracker_names_fifty_others_at_random_and_nobody_who_cannot_be_dialled() {
        let (config, mut tracker) = (Config::default(), Tracker::default());
        (0..120).for_each(|number| tracker.on_present(Time::ZERO, info(number)));
        let mut rng = stream(1, "t", "t");
        let mut draw = || tracker.sample(&config, Time::ZERO, &mut rng, &info(3).id);
        let (one, other) = (draw(), draw());
        assert_eq!((one.len(), other.len()), (50, 50));
        assert_ne!(one, other);
        let mut named = std::collections::BTreeSet::new();
        (0..40).for_each(|_| named.extend(draw().into_iter().map(|peer| peer.id)));
        assert_eq!(named.len(), 118);
        assert!(!named.contains(&info(3).id) && !named.contains(&info(7).id));
    }

    #[test]
    fn a_member_that_stopped_or_fell_silent_is_not_named() {
        let (config, mut tracker) = (Config::default(), Tracker::default());
        (0..3).for_each(|number| tracker.on_present(Time::ZERO, info(number)));
        tracker.on_stopped(&info(1).id);
        let late = Time::ZERO + config.announce_interval * 2;
        tracker.on_present(late, info(2));
        let named = tracker.sample(&config, late, &mut stream(1, "t", "t"), &info(9).id);
        assert_eq!(named, [info(2)]);
    }

    #[test]
    fn a_member_with_few_peers_asks_again_early_and_an_unanswered_one_ever_more_slowly() {
        let config = Config::default();
        let mut announcer = Announcer::new(&config);
        let at = |secs: u64| Time::ZERO + Duration::from_secs(secs);
        assert!(announcer.is_due(&config, at(0), 0));
        announcer.on_begun(at(0));
        assert!(!announcer.is_due(&config, at(1), 0));
        announcer.on_answer(at(1), config.announce_interval);
        assert!(!announcer.is_due(&config, at(60), 5));
        assert!(announcer.is_due(&config, at(61), 5));
        assert!(!announcer.is_due(&config, at(61), 30));
        assert!(announcer.is_due(&config, at(1801), 30));
        let waits: Vec<u64> = (0..6)
            .map(|_| {
                announcer.on_failed(at(2000));
                (0..).find(|&more| announcer.is_due(&config, at(2000 + more), 30)).unwrap()
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 15, 15]);
    }
}
