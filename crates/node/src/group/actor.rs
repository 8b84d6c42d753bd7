//! The task that drives one member: inputs in, outputs done, files flushed.

mod blocks;
mod ending;

use super::links::Links;
use super::pages::Pages;
use super::progress::Meter;
use super::{Connection, Inbound, Shared, lock};
use crate::clock;
use crate::dial;
use crate::error::GroupError;
use crate::event::Event;
use crate::identity;
use crate::link::{Fatal, HeldBlock, LinkEvent};
use crate::state::ShareState;
use crate::store::Store;
use anabranch_proto::id::{LinkClass, LinkId, PeerId, PeerInfo};
use anabranch_proto::link::frame::Channel;
use anabranch_proto::overlay::{Ctx, FailReason, Holdings, Input, Output, Overlay, Setup};
use anabranch_proto::random::{self, Rng};
use anabranch_proto::time::Time;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

/// How often progress is brought up to date.
const TICK: Duration = Duration::from_millis(500);
/// Every so many ticks what came is put on disk.
const FLUSH_TICKS: u32 = 4;
/// Every so many ticks a source keeps the members it knows.
const PEERS_TICKS: u32 = 20;
/// Inputs handled before deadlines are looked at again.
const BATCH: usize = 64;
/// How long the member may take to say good-bye.
const FAREWELL_WAIT: Duration = Duration::from_secs(1);
/// How long links may take to flush.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// What an actor begins with.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: mpsc::Receiver<Inbound>,
    pub(crate) links: Links,
    pub(crate) store: Arc<Store>,
    /// Members to join through.
    pub(crate) bootstrap: Vec<PeerInfo>,
    /// When the fetch began.
    pub(crate) started: Time,
    /// At the source: where it keeps the members it knows.
    pub(crate) state: Option<Arc<Mutex<ShareState>>>,
}

/// Drives one member of one group.
pub(crate) struct Actor {
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Inbound>,
    links: Links,
    store: Arc<Store>,
    member: Box<dyn Overlay + Send>,
    holdings: Holdings,
    rng: Rng,
    inputs: VecDeque<Input>,
    dialling: BTreeSet<PeerId>,
    pages: Pages,
    /// Blocks that came before their hashes.
    held: Vec<(LinkId, HeldBlock)>,
    meter: Meter,
    started: Time,
    state: Option<Arc<Mutex<ShareState>>>,
    ticks: u32,
    /// Blocks came since the last flush began.
    unflushed: bool,
    flushing: bool,
    finishing: bool,
    warned: bool,
    /// Set once the group is to end: when, at the latest.
    leaving_until: Option<Time>,
    ended: bool,
    failure: Option<GroupError>,
}

impl Actor {
    /// A member that has not started.
    pub(crate) fn new(start: Start) -> Actor {
        let Start { shared, inbox, links, store, bootstrap, started, state } = start;
        let setup = Setup { me: shared.me(), source: shared.base.source, bootstrap };
        let seed = identity::random().map(u64::from_be_bytes).unwrap_or(started.0);
        let holdings = store.holdings();
        let mut meter = Meter::default();
        let info = store.info();
        meter.progress.bytes_total = info.total_len() + info.manifest_len();
        let held = holdings.held();
        meter.progress.bytes_before =
            held.iter().map(|block| u64::from(holdings.block_len(block))).sum();
        meter.progress.bytes_done = meter.progress.bytes_before;
        lock(&shared.view).progress = meter.progress.clone();
        Actor {
            member: info.system.member(setup),
            rng: random::stream(seed, &shared.identity.id().to_string(), "overlay"),
            shared,
            inbox,
            links,
            store,
            holdings,
            inputs: VecDeque::new(),
            dialling: BTreeSet::new(),
            pages: Pages::default(),
            held: Vec::new(),
            meter,
            started,
            state,
            ticks: 0,
            unflushed: false,
            flushing: false,
            finishing: false,
            warned: false,
            leaving_until: None,
            ended: false,
            failure: None,
        }
    }

    /// Runs the member until the group has ended.
    pub(crate) async fn run(mut self) {
        self.announce();
        self.handle(Input::Start);
        for link in self.links.untold() {
            self.pages.on_link(clock::now(), link);
        }
        self.pages.ask(clock::now(), &self.store, &self.links);
        self.tell_links();
        self.finish_if_complete();
        self.view();
        let mut ticker = tokio::time::interval(TICK);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sleep = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(sleep);
        let mut sleep_until = None;
        while !self.ended {
            let deadline = self.member.next_deadline();
            if deadline != sleep_until
                && let Some(at) = deadline
            {
                sleep.as_mut().reset(clock::instant(at));
                sleep_until = deadline;
            }
            tokio::select! {
                inbound = self.inbox.recv() => match inbound {
                    Some(inbound) => self.on_batch(inbound),
                    None => self.ended = true,
                },
                () = &mut sleep, if deadline.is_some() => self.handle(Input::Deadline),
                _ = ticker.tick() => self.on_tick(),
            }
        }
        self.end().await;
    }

    fn announce(&mut self) {
        let progress = &self.meter.progress;
        let event = if self.shared.is_source() {
            Event::Ready { ticket: self.shared.ticket() }
        } else {
            Event::Joined {
                name: self.shared.name.get().cloned().unwrap_or_default(),
                bytes_total: progress.bytes_total,
                bytes_before: progress.bytes_before,
            }
        };
        self.shared.tell(event);
    }

    fn on_batch(&mut self, first: Inbound) {
        self.on_inbound(first);
        for _ in 1..BATCH {
            match self.inbox.try_recv() {
                Ok(inbound) => self.on_inbound(inbound),
                Err(_) => return,
            }
        }
    }

    fn on_inbound(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Ready(connection) => self.on_ready(*connection),
            Inbound::DialFailed { peer, error } => {
                tracing::debug!(%peer, %error, "dial failed");
                self.dialling.remove(&peer);
                // A link that the peer dialled meanwhile serves as well.
                if self.links.to(&peer).is_none() {
                    self.handle(Input::ConnectFailed { peer });
                }
            }
            Inbound::Link(link, event) => self.on_link_event(link, event),
            Inbound::Flushed(flushed) => {
                self.flushing = false;
                if let Err(error) = flushed {
                    self.fail_storage(&error);
                }
            }
            Inbound::Finished(finished) => self.on_finished(finished),
            Inbound::Leave => self.leave(),
        }
    }

    fn on_ready(&mut self, connection: Connection) {
        if connection.dialled {
            self.dialling.remove(&connection.secured.peer);
        }
        if self.leaving_until.is_some() {
            return;
        }
        if let Some(link) = self.links.add(connection) {
            let now = clock::now();
            self.pages.on_link(now, link);
            self.pages.ask(now, &self.store, &self.links);
            self.tell_links();
        }
    }

    /// Tells the member of links that are ready for it.
    fn tell_links(&mut self) {
        let now = clock::now();
        let verifiable =
            self.holdings.verifiable().count() > 0 || self.store.missing_pages(1).is_empty();
        for link in self.links.untold() {
            if !self.pages.may_tell(now, link, verifiable) {
                continue;
            }
            let early = self.links.tell(link);
            let Some(entry) = self.links.entry(link) else { continue };
            let (peer, contact) = (entry.link.peer, entry.link.contact.clone());
            let (class, dialled) = (LinkClass::Reliable, entry.link.dialled);
            self.shared.tell(Event::PeerUp { peer });
            self.handle(Input::LinkUp { link, peer, contact, class, dialled });
            early.into_iter().for_each(|event| self.on_link_event(link, event));
        }
    }

    fn on_link_event(&mut self, link: LinkId, event: LinkEvent) {
        let Some(entry) = self.links.entry(link) else { return };
        let passes = matches!(event, LinkEvent::Content(_) | LinkEvent::Down(_));
        if !entry.told && !passes {
            return self.links.keep_back(link, event);
        }
        match event {
            LinkEvent::Overlay(bytes) => self.handle(Input::Message { link, bytes }),
            LinkEvent::Content(bytes) => self.on_content(link, &bytes),
            LinkEvent::Block { block, header, len, written } => {
                self.on_block(link, block, header, len, written);
            }
            LinkEvent::Held(held) => self.on_held(link, held),
            LinkEvent::BadBlock { block, corrupt } => self.on_bad_block(link, block, corrupt),
            LinkEvent::Room => self.handle(Input::Room { link }),
            LinkEvent::Unreadable { block, error } => self.warn_unreadable(block, &error),
            LinkEvent::Fatal(Fatal::Storage(error)) => self.fail_storage(&error),
            LinkEvent::Fatal(Fatal::Contradiction(text)) => {
                self.fail(GroupError::Integrity { text });
            }
            LinkEvent::Down(reason) => {
                let Some(entry) = self.links.remove(link) else { return };
                self.pages.on_link_down(link);
                self.forget_held(link);
                if entry.told {
                    self.shared.tell(Event::PeerDown { peer: entry.link.peer, reason });
                    self.handle(Input::LinkDown { link, reason });
                }
            }
        }
    }

    /// Hands the member an input and does what it wants, until it wants nothing more.
    fn handle(&mut self, input: Input) {
        self.inputs.push_back(input);
        let mut out = Vec::new();
        while let Some(input) = self.inputs.pop_front() {
            let mut ctx = Ctx {
                now: clock::now(),
                rng: &mut self.rng,
                holdings: &self.holdings,
                links: &mut self.links,
                out: &mut out,
            };
            self.member.handle(&mut ctx, input);
            debug_assert_eq!(self.member.check_invariants(&self.holdings), Ok(()));
            out.drain(..).for_each(|output| self.on_output(output));
        }
    }

    fn on_output(&mut self, output: Output) {
        match output {
            Output::Connect { peer, .. } => self.connect(peer),
            Output::Disconnect { link } => self.links.close(link),
            Output::Message { link, bytes } => self.links.send(link, Channel::Overlay, bytes),
            // The store knows better than the member when everything is there.
            Output::Done => {}
            Output::Failed { reason: FailReason::Unreachable } => {
                if !self.holdings.is_complete() {
                    self.fail(GroupError::Unreachable);
                }
            }
            Output::Left => self.ended = true,
            Output::Outcome(outcome) => self.shared.tell(Event::Outcome(outcome)),
        }
    }

    fn connect(&mut self, peer: PeerInfo) {
        if self.links.to(&peer.id).is_some() || !self.dialling.insert(peer.id) {
            return;
        }
        let (shared, id) = (self.shared.clone(), peer.id);
        if !peer.contact.reachable || !shared.welcomes(&id) {
            self.dialling.remove(&id);
            self.inputs.push_back(Input::ConnectFailed { peer: id });
            return;
        }
        tokio::spawn(async move {
            let dialled = dial::dial(shared.clone(), peer).await;
            let inbound = match dialled {
                Ok(connection) => Inbound::Ready(Box::new(connection)),
                Err(error) => Inbound::DialFailed { peer: id, error },
            };
            // The group may have ended meanwhile.
            let _ = shared.inbox.send(inbound).await;
        });
    }

    fn on_tick(&mut self) {
        let now = clock::now();
        self.ticks += 1;
        self.pages.ask(now, &self.store, &self.links);
        self.tell_links();
        self.view();
        if self.ticks.is_multiple_of(FLUSH_TICKS) && self.unflushed && !self.flushing {
            self.flush();
        }
        if self.ticks.is_multiple_of(PEERS_TICKS) {
            self.keep_peers();
        }
        if self.leaving_until.is_some_and(|until| now >= until) {
            self.ended = true;
        }
    }

    /// A source that returns finds the members it knew.
    fn keep_peers(&self) {
        let Some(state) = self.state.clone() else { return };
        let peers = self.member.contacts();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = lock(&state).keep_peers(peers) {
                tracing::warn!(%error, "the known peers cannot be kept");
            }
        });
    }

    /// Shows handles how far it is.
    fn view(&mut self) {
        let peers = self.links.live().len() as u32;
        let before = self.meter.progress.clone();
        if self.shared.is_source() {
            self.meter.progress.bytes_done = self.meter.progress.bytes_total;
        }
        self.meter.sample(clock::now(), &self.shared.counters, peers);
        let progress = self.meter.progress.clone();
        if progress != before && self.ticks.is_multiple_of(2) {
            self.shared.tell(Event::Progress(progress.clone()));
        }
        let mut view = lock(&self.shared.view);
        view.progress = progress;
        view.contacts = self.member.contacts();
    }
}
