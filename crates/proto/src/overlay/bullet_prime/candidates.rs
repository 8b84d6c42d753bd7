//! Whom to ask next to be a sender: members RanSub delivered, ranked by how many useful blocks
//! their summary promises, ties at random (Bullet §4.2.1.1, §4.2.3.1).
//!
//! Members of earlier samples are kept behind those of the last: a lost sender is replaced at once
//! and not an epoch later. One that refused is left alone for a while.

use super::messages::Entry;
use crate::id::{PeerId, PeerInfo};
use crate::membership::ransub::Sample;
use crate::random::{Rng, RngExt};
use crate::summary::Bitmap;
use crate::time::{Duration, Time};
use std::collections::BTreeMap;

/// How long an asked candidate may take to answer before another is tried.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long one that refused, or could not be reached, is left alone.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// Candidates remembered.
const KEPT_MAX: usize = 40;

#[derive(Debug)]
struct Candidate {
    info: PeerInfo,
    useful: f64,
}

/// Candidates of the last distribute sets, and those that have been asked.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Best last.
    ranked: Vec<Candidate>,
    asked: BTreeMap<PeerId, Time>,
    refused: BTreeMap<PeerId, Time>,
}

impl Candidates {
    /// A fresh sample goes before the candidates that are left.
    pub(super) fn refresh(&mut self, rng: &mut Rng, sample: Sample<Entry>, held: &Bitmap) {
        let mut fresh: Vec<(f64, u32, PeerInfo)> = sample
            .members
            .into_iter()
            .map(|entry| (entry.summary.useful(held), rng.random(), entry.info))
            .collect();
        fresh.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.ranked.retain(|old| fresh.iter().all(|(_, _, info)| info.id != old.info.id));
        let fresh = fresh.into_iter().map(|(useful, _, info)| Candidate { info, useful });
        self.ranked.extend(fresh);
        let surplus = self.ranked.len().saturating_sub(KEPT_MAX);
        self.ranked.drain(..surplus);
    }

    /// The best candidate that `fits`, with what it promised; it counts as asked from now on.
    pub(super) fn take(
        &mut self,
        now: Time,
        fits: impl Fn(&PeerInfo) -> bool,
    ) -> Option<(PeerInfo, f64)> {
        let (asked, refused) = (&self.asked, &self.refused);
        let at = self.ranked.iter().rposition(|candidate| {
            let id = &candidate.info.id;
            !asked.contains_key(id) && !refused.contains_key(id) && fits(&candidate.info)
        })?;
        let candidate = self.ranked.remove(at);
        self.asked.insert(candidate.info.id, now);
        Some((candidate.info, candidate.useful))
    }

    /// An asked candidate refused, or cannot be reached. Whether it had been asked.
    pub(super) fn on_refused(&mut self, now: Time, peer: &PeerId) -> bool {
        self.refused.insert(*peer, now);
        self.asked.remove(peer).is_some()
    }

    /// What the best candidate promises.
    pub(super) fn best_promise(&self) -> f64 {
        self.ranked.last().map_or(0.0, |candidate| candidate.useful)
    }

    /// An asked candidate answered; whether it had been asked.
    pub(super) fn on_answer(&mut self, peer: &PeerId) -> bool {
        self.asked.remove(peer).is_some()
    }

    /// Whether this peer has been asked and has not answered.
    pub(super) fn is_asked(&self, peer: &PeerId) -> bool {
        self.asked.contains_key(peer)
    }

    /// How many have been asked and have not answered.
    pub(super) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Gives those up that took too long.
    pub(super) fn expire(&mut self, now: Time) {
        self.asked.retain(|_, at| now.since(*at) < ANSWER_WITHIN);
        self.refused.retain(|_, at| now.since(*at) < REFUSED_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Contact;
    use crate::random::stream;
    use crate::summary::{Summary, SummaryKind};

    /// A member holding the blocks whose digit is 1.
    fn entry(name: &str, held: &str) -> Entry {
        let mut bitmap = Bitmap::new(held.len() as u32);
        held.bytes().zip(0..).filter(|(digit, _)| *digit == b'1').for_each(|(_, block)| {
            bitmap.insert(block);
        });
        let info = PeerInfo { id: PeerId::of_name(name), contact: Contact::default() };
        Entry { info, summary: Summary::of(&bitmap, SummaryKind::default()) }
    }

    fn sample() -> Sample<Entry> {
        let members = vec![entry("few", "0001"), entry("most", "0111"), entry("none", "1000")];
        Sample { members, population: 3 }
    }

    #[test]
    fn the_one_that_promises_most_is_asked_first_and_the_next_when_it_refuses() {
        let mut mine = Bitmap::new(4);
        mine.insert(0);
        let mut candidates = Candidates::default();
        candidates.refresh(&mut stream(1, "c", "t"), sample(), &mine);
        let mut take = || candidates.take(Time::ZERO, |_| true).map(|(info, _)| info.id);
        let expected = ["most", "few", "none"].map(PeerId::of_name);
        assert_eq!([take(), take(), take()], expected.map(Some));
        assert_eq!(take(), None);
    }

    #[test]
    fn ties_are_broken_at_random() {
        let firsts: std::collections::BTreeSet<PeerId> = (0..40)
            .map(|seed| {
                let members = (0..4).map(|i| entry(&i.to_string(), "1111")).collect();
                let mut candidates = Candidates::default();
                let sample = Sample { members, population: 4 };
                candidates.refresh(&mut stream(seed, "c", "t"), sample, &Bitmap::new(4));
                candidates.take(Time::ZERO, |_| true).unwrap().0.id
            })
            .collect();
        assert_eq!(firsts.len(), 4);
    }

    #[test]
    fn one_that_was_asked_is_not_asked_again_until_it_answers_or_takes_too_long() {
        let mut candidates = Candidates::default();
        let mut rng = stream(1, "c", "t");
        let mut ask = |candidates: &mut Candidates| {
            let only = Sample { members: vec![entry("a", "1")], population: 1 };
            candidates.refresh(&mut rng, only, &Bitmap::new(1));
            candidates.take(Time::ZERO, |_| true).is_some()
        };
        assert!(ask(&mut candidates));
        assert!(!ask(&mut candidates));
        assert!(candidates.on_answer(&PeerId::of_name("a")));
        assert!(ask(&mut candidates));
        candidates.expire(Time::from_secs_f64(6.0));
        assert!(ask(&mut candidates));
        assert!(candidates.on_refused(Time::from_secs_f64(7.0), &PeerId::of_name("a")));
        assert!(!ask(&mut candidates));
        candidates.expire(Time::from_secs_f64(13.0));
        assert!(ask(&mut candidates));
    }

    #[test]
    fn members_of_earlier_samples_are_asked_after_those_of_the_last() {
        let mut candidates = Candidates::default();
        let mut rng = stream(1, "c", "t");
        for (name, held) in [("old", "1111"), ("new", "1000")] {
            let sample = Sample { members: vec![entry(name, held)], population: 1 };
            candidates.refresh(&mut rng, sample, &Bitmap::new(4));
        }
        let mut take = || candidates.take(Time::ZERO, |_| true).map(|(info, _)| info.id);
        assert_eq!([take(), take()], ["new", "old"].map(|name| Some(PeerId::of_name(name))));
    }
}
