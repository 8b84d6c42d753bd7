use super::*;
use crate::random::stream;

#[derive(Clone, PartialEq, Debug)]
struct Name(PeerId);

impl Member for Name {
    fn peer(&self) -> PeerId {
        self.0
    }
}

fn name(index: u32) -> Name {
    Name(PeerId::of_name(&index.to_string()))
}

/// A tree of RanSub members driven level by level with instant messages.
struct Forest {
    nodes: Vec<RanSub<Name>>,
    parents: Vec<Option<usize>>,
    rng: Rng,
    now: Time,
    delivered: Vec<Vec<Sample<Name>>>,
}

impl Forest {
    /// `parents[i]` is the parent of node `i`; node 0 is the root. Link numbers are node numbers.
    fn new(parents: &[Option<usize>], scope: Scope, seed: u64) -> Forest {
        let mut nodes: Vec<_> =
            parents.iter().map(|_| RanSub::new(Config::default(), scope)).collect();
        nodes[0].become_root(Time::ZERO);
        let mut rng = stream(seed, "forest", "ransub");
        for (index, parent) in parents.iter().enumerate() {
            if let Some(parent) = *parent {
                let mut sink = Vec::new();
                nodes[index].attach(LinkId(parent as u32));
                nodes[parent].child_joined(LinkId(index as u32), &mut rng, None, &mut sink);
            }
        }
        let delivered = vec![Vec::new(); parents.len()];
        Forest { nodes, parents: parents.to_vec(), rng, now: Time::ZERO, delivered }
    }

    fn settle(&mut self, from: usize, out: Vec<Out<Name>>) {
        for out in out {
            match out {
                Out::Delivered(sample) => self.delivered[from].push(sample),
                Out::Send(to, message) => {
                    let (to, mut next) = (to.0 as usize, Vec::new());
                    let own = name(to as u32);
                    let link = LinkId(from as u32);
                    let (now, rng) = (self.now, &mut self.rng);
                    self.nodes[to].handle_message(now, rng, Some(&own), link, message, &mut next);
                    self.settle(to, next);
                }
            }
        }
    }

    fn run_epochs(&mut self, epochs: u64) {
        let last = self.nodes[0].epoch + epochs;
        while self.nodes[0].epoch < last {
            let due = self.nodes.iter().filter_map(RanSub::next_deadline).min().unwrap();
            self.now = self.now.max(due);
            for index in 0..self.nodes.len() {
                if self.nodes[index].next_deadline().is_some_and(|at| at <= self.now) {
                    let mut out = Vec::new();
                    let own = name(index as u32);
                    self.nodes[index].handle_deadline(
                        self.now,
                        &mut self.rng,
                        Some(&own),
                        &mut out,
                    );
                    self.settle(index, out);
                }
            }
        }
    }
}

/// A lopsided tree: 0 has a chain below 1 and a bush below 2.
fn lopsided(nodes: usize) -> Vec<Option<usize>> {
    (0..nodes)
        .map(|index| match index {
            0 => None,
            1 | 2 => Some(0),
            _ if index < nodes / 4 => Some(index - 2),
            _ => Some(2),
        })
        .collect()
}

#[test]
fn compact_draws_every_member_equally_often_whatever_its_subset_stands_for() {
    let mut rng = stream(1, "compact", "test");
    let mut counts = [0u32; 60];
    for _ in 0..20_000 {
        // 10 of 50 members (0..50) were drawn below us; 10 others are known one by one.
        let mut below: Vec<u32> = (0..50).collect();
        crate::random::shuffle(&mut rng, &mut below);
        below.truncate(10);
        let big = Sample { members: below, population: 50 };
        let small = Sample { members: (50..60).collect(), population: 10 };
        for member in compact(&mut rng, &[&big, &small], 10).members {
            counts[member as usize] += 1;
        }
    }
    let expected = 20_000.0 * 10.0 / 60.0;
    let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
    // 59 degrees of freedom: the 99.9th percentile is 98.3.
    assert!(chi2 < 98.3, "chi² {chi2}");
}

#[test]
fn compact_gives_all_when_there_are_few_and_sums_populations() {
    let mut rng = stream(2, "compact", "test");
    let (a, b) = (Sample::one(1), Sample { members: vec![2, 3], population: 7 });
    let mut sample = compact(&mut rng, &[&a, &b], 10);
    sample.members.sort_unstable();
    assert_eq!(sample, Sample { members: vec![1, 2, 3], population: 8 });
}

#[test]
fn after_one_collect_the_root_knows_the_population_and_after_two_everybody_does() {
    let mut forest = Forest::new(&lopsided(40), Scope::All, 3);
    forest.run_epochs(3);
    for node in &forest.nodes {
        assert_eq!(node.population(), 40);
    }
}

#[test]
fn ransub_all_delivers_every_member_about_equally_often() {
    let mut forest = Forest::new(&lopsided(24), Scope::All, 4);
    forest.run_epochs(3);
    forest.delivered.iter_mut().for_each(Vec::clear);
    forest.run_epochs(1_500);
    for watcher in [0usize, 1, 5, 23] {
        let mut counts = std::collections::BTreeMap::new();
        for sample in &forest.delivered[watcher] {
            for member in &sample.members {
                *counts.entry(member.peer()).or_insert(0u32) += 1;
            }
        }
        assert_eq!(counts.len(), 23, "all others are seen by {watcher}");
        let (low, high) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        assert!(f64::from(*high) / f64::from(*low) < 1.25, "{watcher}: {low}..{high}");
    }
}

#[test]
fn nondescendants_never_delivers_a_member_of_ones_own_subtree() {
    let parents = lopsided(24);
    let mut forest = Forest::new(&parents, Scope::NonDescendants, 5);
    forest.run_epochs(50);
    for index in 0..24 {
        let below: Vec<PeerId> = (0..24usize)
            .filter(|&other| {
                std::iter::successors(Some(other), |&at| forest.parents[at]).any(|at| at == index)
            })
            .map(|other| name(other as u32).peer())
            .collect();
        let seen = forest.delivered[index].iter().flat_map(|sample| &sample.members);
        assert!(seen.map(Member::peer).all(|peer| !below.contains(&peer)), "node {index}");
    }
}

#[test]
fn a_child_that_does_not_answer_costs_the_root_its_time_out_and_no_more() {
    let mut forest = Forest::new(&lopsided(12), Scope::All, 6);
    forest.run_epochs(2);
    let config = Config::default();
    // Node 1 never answers: take its parent link away from it only.
    forest.nodes[1].detach();
    let before = forest.now;
    forest.run_epochs(2);
    let allowed = 2 * (config.epoch_max + config.failure_timeout) + config.failure_timeout;
    assert!(forest.now.since(before) <= allowed);
}

#[test]
fn the_epoch_grows_to_five_seconds_and_starts_over_when_members_join() {
    let mut forest = Forest::new(&lopsided(10), Scope::All, 7);
    forest.run_epochs(15);
    assert_eq!(forest.nodes[0].interval(), Duration::from_secs(5));
    let mut out = Vec::new();
    for _ in 0..4 {
        forest.nodes.push(RanSub::new(Config::default(), Scope::All));
        forest.parents.push(Some(0));
        forest.delivered.push(Vec::new());
        let index = forest.nodes.len() - 1;
        forest.nodes[index].attach(LinkId(0));
        let own = name(0);
        let link = LinkId(index as u32);
        forest.nodes[0].child_joined(link, &mut forest.rng, Some(&own), &mut out);
    }
    let settle = std::mem::take(&mut out);
    forest.settle(0, settle);
    forest.run_epochs(2);
    assert!(forest.nodes[0].interval() < Duration::from_secs(1));
}

/// Who has been delivered to `watcher` since the last look.
fn seen(forest: &mut Forest, watcher: usize) -> std::collections::BTreeSet<PeerId> {
    let samples = std::mem::take(&mut forest.delivered[watcher]);
    samples.iter().flat_map(|sample| &sample.members).map(Member::peer).collect()
}

/// A new child of `parent` joins and its answers settle; no time passes.
fn join(forest: &mut Forest, parent: usize) -> usize {
    let (index, mut out) = (forest.nodes.len(), Vec::new());
    forest.nodes.push(RanSub::new(Config::default(), Scope::All));
    forest.nodes.iter_mut().for_each(|node| node.set_news(true));
    forest.parents.push(Some(parent));
    forest.delivered.push(Vec::new());
    forest.nodes[index].attach(LinkId(parent as u32));
    let (own, link) = (name(parent as u32), LinkId(index as u32));
    forest.nodes[parent].child_joined(link, &mut forest.rng, Some(&own), &mut out);
    forest.settle(parent, out);
    // What it was told lets it answer at once.
    let (own, mut out) = (name(index as u32), Vec::new());
    let now = forest.now;
    forest.nodes[index].handle_deadline(now, &mut forest.rng, Some(&own), &mut out);
    forest.settle(index, out);
    index
}

#[test]
fn in_a_small_group_everybody_learns_of_a_new_member_before_the_epoch_ends() {
    let mut forest = Forest::new(&[None, Some(0), Some(0), Some(1)], Scope::All, 10);
    forest.run_epochs(15);
    let epoch = forest.nodes[0].epoch;
    (0..4).for_each(|index| drop(seen(&mut forest, index)));
    // Below the deepest member: up to the root, and down to the other branch.
    let new = join(&mut forest, 3);
    for watcher in 0..4 {
        let seen = seen(&mut forest, watcher);
        assert!(seen.contains(&name(new as u32).peer()), "{watcher}: {seen:?}");
    }
    assert_eq!(forest.nodes[0].epoch, epoch);
    // Nobody answered this epoch too early, or twice: the next ones go on as ever.
    forest.run_epochs(3);
    assert!(forest.nodes.iter().all(|node| node.population() == 5));
}

#[test]
fn in_a_large_group_a_new_member_waits_for_the_epoch() {
    let mut forest = Forest::new(&lopsided(40), Scope::All, 11);
    forest.run_epochs(15);
    (0..40).for_each(|index| drop(seen(&mut forest, index)));
    for _ in 0..5 {
        join(&mut forest, 2);
    }
    assert!((0..40).all(|index| forest.delivered[index].is_empty()));
}

#[test]
fn the_way_down_to_a_member_is_known_where_its_name_came_up() {
    let parents = lopsided(9);
    let mut forest = Forest::new(&parents, Scope::All, 8);
    forest.run_epochs(3);
    for index in 1..9usize {
        let top =
            std::iter::successors(Some(index), |&at| parents[at].filter(|&up| up != 0)).last();
        assert_eq!(
            forest.nodes[0].route(&name(index as u32).peer()),
            top.map(|top| LinkId(top as u32))
        );
    }
}

#[test]
fn a_set_larger_than_agreed_is_cut_and_a_stranger_ignored() {
    let mut node: RanSub<Name> = RanSub::new(Config::default(), Scope::All);
    let mut rng = stream(9, "n", "t");
    let mut out = Vec::new();
    node.attach(LinkId(1));
    let sample = Sample { members: (0..500).map(name).collect(), population: u32::MAX };
    let message = Message::Distribute { epoch: 1, hold_ms: u32::MAX, sample };
    node.handle_message(Time::ZERO, &mut rng, None, LinkId(2), message.clone(), &mut out);
    assert!(out.is_empty());
    node.handle_message(Time::ZERO, &mut rng, None, LinkId(1), message, &mut out);
    let Some(Out::Delivered(sample)) = out.first() else { panic!("{out:?}") };
    assert_eq!(sample.members.len(), 10);
    assert!(node.next_deadline().unwrap() <= Time::from_secs_f64(6.1));
}
