//! RanSub: changing, uniformly random subsets of a group's members, over a tree
//! (Bullet §3.3.1).
//!
//! In every epoch each member sends its parent a *collect set*: a random subset of its subtree's
//! members, with the subtree's size; and each parent sends its children a *distribute set*. The
//! sets hold at most [`Config::set_size`] members, made with [`compact`], which keeps them uniform
//! over the members they stand for, weighted by subtree size.
//!
//! ```text
//!   root   ── Distribute e+1 ──▶  …  ──▶ leaf
//!     ▲                                   │ holds for what the root says
//!     └────────── Collect e ◀── … ◀───────┘
//! ```
//!
//! The distribute set of a child stands for all members outside its subtree: the siblings'
//! collect sets, the parent, and the parent's own distribute set (RanSub-nondescendants). A member
//! that wants RanSub-all adds its own children's collect sets: the same messages serve both.
//!
//! The epoch adapts (the paper's is 5 s): it starts at [`Config::epoch_min`], grows by half each
//! time up to [`Config::epoch_max`], and starts over when the population grows by a tenth, so a
//! young or small group learns of its members within a few round trips.
//!
//! A small group that grows need not wait for an epoch's end either ([`RanSub::set_news`], ours): a
//! new child answers at once, and whoever knows a tenth more members than it last told of tells its
//! children, and its parent, under the epoch that is under way.

use crate::id::{LinkId, PeerId};
use crate::random::{Rng, below};
use crate::time::{Duration, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters; the defaults suit groups of 2 to 10,000 members.
#[derive(Clone, Debug)]
pub struct Config {
    /// Members in a set. Default 10 (paper). Raised: better choice, more control bytes.
    pub set_size: usize,
    /// The shortest epoch. Default 200 ms.
    pub epoch_min: Duration,
    /// The longest epoch. Default 5 s (paper).
    pub epoch_max: Duration,
    /// How long beyond an epoch's hold the root (and, half as long per level, others) waits for
    /// collect sets that do not come. Default 2 s.
    pub failure_timeout: Duration,
    /// Up to this population, growth by a tenth is told of at once where news are wanted. Default
    /// 25, as many as one may peer with; the paper's is 0. Raised: a mesh of more than that is made
    /// of those that came first, and less random.
    pub news_max: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            set_size: 10,
            epoch_min: Duration::from_millis(200),
            epoch_max: Duration::from_secs(5),
            failure_timeout: Duration::from_secs(2),
            news_max: 25,
        }
    }
}

/// Which members a distribute set given to the overlay stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// All members but oneself (Bullet′).
    #[default]
    All,
    /// All members outside one's own subtree (Bullet).
    NonDescendants,
}

/// A uniformly random subset of `population` members.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample<T> {
    /// The members drawn.
    pub members: Vec<T>,
    /// How many members they were drawn from.
    pub population: u32,
}

impl<T> Sample<T> {
    /// The subset of nobody.
    pub fn empty() -> Sample<T> {
        Sample { members: Vec::new(), population: 0 }
    }

    /// One member, standing for itself.
    pub fn one(member: T) -> Sample<T> {
        Sample { members: vec![member], population: 1 }
    }
}

/// What travels along the tree.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message<T> {
    /// Child to parent.
    Collect {
        /// Of which epoch.
        epoch: u64,
        /// The subtree's sample.
        sample: Sample<T>,
    },
    /// Parent to child.
    Distribute {
        /// Of which epoch.
        epoch: u64,
        /// How long leaves wait before they answer, in milliseconds.
        hold_ms: u32,
        /// A sample of the members outside the child's subtree.
        sample: Sample<T>,
    },
}

/// What RanSub wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Out<T> {
    /// Send a message to a tree neighbour.
    Send(LinkId, Message<T>),
    /// A fresh sample for the overlay.
    Delivered(Sample<T>),
}

/// A member of RanSub's population: it has a name.
pub trait Member: Clone {
    /// Whose state this is.
    fn peer(&self) -> PeerId;
}

/// Draws a subset of at most `size` from samples of disjoint populations, each member of the
/// union of populations being equally likely to be in it (Bullet §3.3.1, Compact): the next member
/// comes from a sample with the probability of its share in what is left of all populations.
pub fn compact<T: Clone>(rng: &mut Rng, samples: &[&Sample<T>], size: usize) -> Sample<T> {
    let population = samples.iter().fold(0u32, |sum, sample| sum.saturating_add(sample.population));
    let mut pools: Vec<(Vec<&T>, u64)> = samples
        .iter()
        .map(|sample| {
            let stands_for = (sample.population as u64).max(sample.members.len() as u64);
            (sample.members.iter().collect(), stands_for)
        })
        .collect();
    let mut members = Vec::with_capacity(size);
    while members.len() < size {
        let total: u64 = pools.iter().filter(|(pool, _)| !pool.is_empty()).map(|(_, n)| n).sum();
        if total == 0 {
            break;
        }
        let mut ticket = rand::RngExt::random_range(rng, 0..total);
        for (pool, stands_for) in pools.iter_mut().filter(|(pool, _)| !pool.is_empty()) {
            if ticket < *stands_for {
                members.push(pool.swap_remove(below(rng, pool.len())).clone());
                *stands_for -= 1;
                break;
            }
            ticket -= *stands_for;
        }
    }
    Sample { members, population }
}

#[derive(Debug)]
struct Child<T> {
    sample: Sample<T>,
    /// The epoch whose collect set came last.
    epoch: u64,
}

/// One member's RanSub: see [the module](self). Tree links are told with
/// [`RanSub::child_joined`] and its kin; the member's own state is asked for with each input, so
/// that it is fresh when it is sent.
#[derive(Debug)]
pub struct RanSub<T> {
    config: Config,
    scope: Scope,
    parent: Option<LinkId>,
    is_root: bool,
    children: BTreeMap<LinkId, Child<T>>,
    /// The last distribute set from the parent.
    outside: Sample<T>,
    epoch: u64,
    hold: Duration,
    /// When the leaf's hold ends; collect sets go up from then on.
    collect_from: Option<Time>,
    /// When collect sets that are missing are no longer waited for.
    collect_until: Option<Time>,
    interval: Duration,
    population_seen: u32,
    wants_news: bool,
    /// The population when it was last told of, down and up.
    told: [u32; 2],
    /// The epoch that this parent has been answered.
    answered: Option<u64>,
    distributed_at: Time,
    round: Duration,
    routes: BTreeMap<PeerId, (LinkId, u64)>,
}

impl<T: Member> RanSub<T> {
    /// A member without tree neighbours.
    pub fn new(config: Config, scope: Scope) -> RanSub<T> {
        RanSub {
            interval: config.epoch_min,
            config,
            scope,
            parent: None,
            is_root: false,
            children: BTreeMap::new(),
            outside: Sample::empty(),
            epoch: 0,
            hold: Duration::ZERO,
            collect_from: None,
            collect_until: None,
            population_seen: 1,
            wants_news: false,
            told: [1; 2],
            answered: None,
            distributed_at: Time::ZERO,
            round: Duration::ZERO,
            routes: BTreeMap::new(),
        }
    }

    /// The member is the root now; epochs go on from the last one seen.
    pub fn become_root(&mut self, now: Time) {
        self.parent = None;
        self.is_root = true;
        self.outside = Sample::empty();
        self.interval = self.config.epoch_min;
        self.collect_from = Some(now);
        self.collect_until = Some(now + self.config.epoch_min);
    }

    /// The member hangs below `parent` now.
    pub fn attach(&mut self, parent: LinkId) {
        self.is_root = false;
        self.parent = Some(parent);
        self.answered = None;
        self.collect_from = None;
        self.collect_until = None;
    }

    /// The member has no parent for now.
    pub fn detach(&mut self) {
        self.is_root = false;
        self.parent = None;
        self.collect_from = None;
        self.collect_until = None;
    }

    /// A child joined: it is given what is known at once, so that it need not wait for an epoch.
    pub fn child_joined(
        &mut self,
        link: LinkId,
        rng: &mut Rng,
        own: Option<&T>,
        out: &mut Vec<Out<T>>,
    ) {
        self.children.insert(link, Child { sample: Sample::empty(), epoch: 0 });
        if self.is_root || self.parent.is_some() {
            let hold = if self.has_news() { Duration::ZERO } else { self.hold };
            let message = self.distribute_to(link, hold, rng, own);
            out.push(Out::Send(link, message));
        }
    }

    /// A child left.
    pub fn child_left(&mut self, link: LinkId) {
        self.children.remove(&link);
        self.routes.retain(|_, (via, _)| *via != link);
    }

    /// Members known to be in the group: this subtree and what the parent said is outside it.
    pub fn population(&self) -> u32 {
        self.subtree_population().saturating_add(self.outside.population)
    }

    /// Members of this subtree, oneself included.
    pub fn subtree_population(&self) -> u32 {
        self.children
            .values()
            .fold(1, |sum: u32, child| sum.saturating_add(child.sample.population))
    }

    /// The epoch's length now, as the root sees it.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The child below which `peer` was seen in a recent collect set: the way to reach a member
    /// that only the tree reaches.
    pub fn route(&self, peer: &PeerId) -> Option<LinkId> {
        self.routes.get(peer).map(|(link, _)| *link)
    }

    /// When [`RanSub::handle_deadline`] is due.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.collect_from {
            Some(from) if self.all_collected() => Some(from),
            Some(_) => self.collect_until,
            None => None,
        }
    }

    /// A message came from a tree neighbour; others are ignored.
    pub fn handle_message(
        &mut self,
        now: Time,
        rng: &mut Rng,
        own: Option<&T>,
        link: LinkId,
        message: Message<T>,
        out: &mut Vec<Out<T>>,
    ) {
        match message {
            Message::Collect { epoch, mut sample } => {
                sample.members.truncate(self.config.set_size);
                self.on_collect(now, rng, own, link, epoch, sample, out);
            }
            Message::Distribute { epoch, hold_ms, mut sample } if self.parent == Some(link) => {
                sample.members.truncate(self.config.set_size);
                let hold = Duration::from_millis(u64::from(hold_ms)).min(self.config.epoch_max);
                self.on_distribute(now, rng, own, epoch, hold, sample, out);
            }
            Message::Distribute { .. } => {}
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one input with its context, called in one place"
    )]
    fn on_collect(
        &mut self,
        now: Time,
        rng: &mut Rng,
        own: Option<&T>,
        link: LinkId,
        epoch: u64,
        sample: Sample<T>,
        out: &mut Vec<Out<T>>,
    ) {
        let Some(child) = self.children.get_mut(&link) else { return };
        for member in &sample.members {
            self.routes.insert(member.peer(), (link, self.epoch));
        }
        *child = Child { sample, epoch: epoch.max(child.epoch) };
        self.advance(now, rng, own, out);
        if self.has_news() {
            self.tell_news(rng, own, out);
        }
    }

    /// Whether the group is so small that growth is news.
    fn has_news(&self) -> bool {
        self.wants_news && self.population() <= self.config.news_max
    }

    /// Whether the growth of a small group is told of at once. It is worth it where round trips, and
    /// with them epochs, are long; where they are short, those that learn of each other first take
    /// each other for peers and have no place left for those who come a moment later.
    pub fn set_news(&mut self, wanted: bool) {
        self.wants_news = wanted;
    }

    /// Tells of a population that has grown by a tenth, under the epoch that is under way.
    fn tell_news(&mut self, rng: &mut Rng, own: Option<&T>, out: &mut Vec<Out<T>>) {
        let has_grown = |now: u32, told: u32| now > told.saturating_add(told / 10);
        if has_grown(self.population(), self.told[0]) {
            self.distribute(rng, own, out);
        }
        if let Some(parent) = self.parent
            && has_grown(self.subtree_population(), self.told[1])
        {
            // The answer to this epoch is still owed, or has been given.
            let epoch = self.answered.unwrap_or(self.epoch.saturating_sub(1));
            self.collect(parent, epoch, rng, own, out);
        }
    }

    fn collect(
        &mut self,
        parent: LinkId,
        epoch: u64,
        rng: &mut Rng,
        own: Option<&T>,
        out: &mut Vec<Out<T>>,
    ) {
        self.told[1] = self.subtree_population();
        let sample = self.subtree_sample(rng, own);
        out.push(Out::Send(parent, Message::Collect { epoch, sample }));
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one input with its context, called in one place"
    )]
    fn on_distribute(
        &mut self,
        now: Time,
        rng: &mut Rng,
        own: Option<&T>,
        epoch: u64,
        hold: Duration,
        sample: Sample<T>,
        out: &mut Vec<Out<T>>,
    ) {
        self.outside = sample;
        let is_known = self.collect_from.is_some() || self.answered == Some(epoch);
        if epoch == self.epoch && is_known {
            return self.distribute(rng, own, out);
        }
        self.epoch = epoch;
        self.hold = hold;
        self.collect_from = Some(now + hold);
        // Half the root's patience: a hung child must not cost the root this whole subtree.
        self.collect_until = Some(now + hold + self.config.failure_timeout / 2);
        self.distribute(rng, own, out);
        self.advance(now, rng, own, out);
    }

    /// Sends what is due: collect sets whose hold ended, or the next epoch at the root.
    pub fn handle_deadline(
        &mut self,
        now: Time,
        rng: &mut Rng,
        own: Option<&T>,
        out: &mut Vec<Out<T>>,
    ) {
        self.advance(now, rng, own, out);
    }

    fn all_collected(&self) -> bool {
        self.children.values().all(|child| child.epoch >= self.epoch)
    }

    fn advance(&mut self, now: Time, rng: &mut Rng, own: Option<&T>, out: &mut Vec<Out<T>>) {
        let Some(from) = self.collect_from else { return };
        let overdue = self.collect_until.is_some_and(|until| now >= until);
        if now < from || !(self.all_collected() || overdue) {
            return;
        }
        if self.is_root {
            return self.start_epoch(now, rng, own, out);
        }
        self.collect_from = None;
        self.collect_until = None;
        if let Some(parent) = self.parent {
            self.answered = Some(self.epoch);
            self.collect(parent, self.epoch, rng, own, out);
        }
    }

    fn start_epoch(&mut self, now: Time, rng: &mut Rng, own: Option<&T>, out: &mut Vec<Out<T>>) {
        self.adapt_interval(now);
        self.epoch += 1;
        let oldest = self.epoch.saturating_sub(4);
        self.routes.retain(|_, (_, epoch)| *epoch >= oldest);
        self.distributed_at = now;
        self.hold = self.interval.saturating_sub(self.round);
        self.collect_from = Some(now + self.interval);
        self.collect_until = Some(now + self.interval + self.config.failure_timeout);
        self.distribute(rng, own, out);
    }

    fn adapt_interval(&mut self, now: Time) {
        let took = now.since(self.distributed_at).saturating_sub(self.hold);
        self.round =
            if self.epoch == 0 { Duration::ZERO } else { took.min(self.config.failure_timeout) };
        let population = self.subtree_population();
        if population > self.population_seen + self.population_seen / 10 {
            self.interval = self.config.epoch_min;
        } else {
            self.interval = (self.interval * 3 / 2).min(self.config.epoch_max);
        }
        self.population_seen = population;
    }

    fn subtree_sample(&self, rng: &mut Rng, own: Option<&T>) -> Sample<T> {
        let own = own_sample(own);
        let mut samples: Vec<&Sample<T>> =
            self.children.values().map(|child| &child.sample).collect();
        samples.push(&own);
        compact(rng, &samples, self.config.set_size)
    }

    /// Gives every child its set and the overlay a fresh sample.
    fn distribute(&mut self, rng: &mut Rng, own: Option<&T>, out: &mut Vec<Out<T>>) {
        self.told[0] = self.population();
        let links: Vec<LinkId> = self.children.keys().copied().collect();
        for link in links {
            let message = self.distribute_to(link, self.hold, rng, own);
            out.push(Out::Send(link, message));
        }
        let mut samples = vec![&self.outside];
        if self.scope == Scope::All {
            samples.extend(self.children.values().map(|child| &child.sample));
        }
        out.push(Out::Delivered(compact(rng, &samples, self.config.set_size)));
    }

    fn distribute_to(
        &self,
        link: LinkId,
        hold: Duration,
        rng: &mut Rng,
        own: Option<&T>,
    ) -> Message<T> {
        let own = own_sample(own);
        let mut samples: Vec<&Sample<T>> = vec![&self.outside, &own];
        let siblings = self.children.iter().filter(|(sibling, _)| **sibling != link);
        samples.extend(siblings.map(|(_, child)| &child.sample));
        let sample = compact(rng, &samples, self.config.set_size);
        let hold_ms = u32::try_from(hold.as_millis()).unwrap_or(u32::MAX);
        Message::Distribute { epoch: self.epoch, hold_ms, sample }
    }
}

/// A member that does not offer itself (a source that still pushes) counts and is not drawn.
fn own_sample<T: Clone>(own: Option<&T>) -> Sample<T> {
    Sample { members: own.into_iter().cloned().collect(), population: 1 }
}

#[cfg(test)]
mod tests;
