//! One host: a member, a store that is only its holdings, a clock, and an inbox.

use super::{Sim, Wire};
use crate::clock::Clock;
use crate::meter::Meter;
use crate::prefetch::prefetch;
use crate::units::Rate;
use anabranch_proto::id::{BlockIndex, Contact, LinkId, PeerId, PeerInfo};
use anabranch_proto::overlay::{FailReason, Holdings, Input, Overlay, Setup, Stats};
use anabranch_proto::random::{Rng, stream};
use anabranch_proto::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A host's number, in the order in which hosts were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);

/// What a host is made with.
#[derive(Clone, Debug)]
pub struct HostSpec {
    /// Its name: its identity and its randomness come from it.
    pub name: String,
    /// What it can send.
    pub up: Rate,
    /// What it can receive.
    pub down: Rate,
    /// Its clock.
    pub clock: Clock,
    /// Whether it accepts connections.
    pub reachable: bool,
    /// Whether the blocks it sends are wrong.
    pub corrupt: bool,
    /// Whether it made the content: true for exactly one host, the first.
    pub is_source: bool,
    /// When it starts.
    pub start: Time,
    /// Who prints the ticket it starts with; `None`: the source did, before the run.
    pub ticket_of: Option<HostId>,
}

impl HostSpec {
    /// A reachable, honest receiver with a perfect clock that starts at once.
    pub fn receiver(name: impl Into<String>, up: Rate, down: Rate) -> HostSpec {
        HostSpec {
            name: name.into(),
            up,
            down,
            clock: Clock::default(),
            reachable: true,
            corrupt: false,
            is_source: false,
            start: Time::ZERO,
            ticket_of: None,
        }
    }

    /// The source.
    pub fn source(name: impl Into<String>, up: Rate, down: Rate) -> HostSpec {
        HostSpec { is_source: true, ..HostSpec::receiver(name, up, down) }
    }
}

/// Where a host's program stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// It has not started yet.
    Absent,
    /// It runs.
    Up,
    /// It ended without a word, or was killed.
    Crashed,
    /// It left in good order.
    Left,
    /// Its member gave up.
    Failed(FailReason),
}

/// A block that came whole and right, held before or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockArrival {
    /// When.
    pub at: Time,
    /// Who sent it.
    pub from: HostId,
    /// Which.
    pub block: BlockIndex,
}

/// What waits for a host's member.
#[derive(Debug)]
pub(super) enum Arrival {
    Input(Input),
    /// A block has come whole: it is held (or found corrupt) when its turn comes.
    Block {
        end: u32,
        block: BlockIndex,
        header: Vec<u8>,
        is_corrupt: bool,
    },
}

/// What every event needs is at the front and in this order: a host has to be few lines of memory.
#[repr(C, align(64))]
pub(super) struct Host {
    pub(super) rng: Rng,
    pub(super) member: Option<Box<dyn Overlay + Send>>,
    pub(super) due: Time,
    pub(super) deadline_last: Option<Time>,
    pub(super) clock: Clock,
    inbox: VecDeque<Arrival>,
    is_ready: bool,
    pub(super) is_done: bool,
    pub(super) is_leaving: bool,
    /// Whether a dial meets silence (the machine is gone) rather than a refusal.
    pub(super) is_silent: bool,
    pub(super) life: Life,
    /// Counts starts: what was under way for an earlier one is void.
    pub(super) incarnation: u32,
    /// Starts that the script still has for it.
    pub(super) starts_waiting: u32,
    pub(super) meter: Meter,
    pub(super) holdings: Holdings,
    /// The end of the link to each peer.
    pub(super) peers: BTreeMap<u32, u32>,
    /// Peers that were dialled in vain, until it is known.
    pub(super) vain: BTreeSet<u32>,
    /// Ends elsewhere whose links this host forgot in a crash.
    pub(super) forgotten: Vec<u32>,
    /// Blocks this incarnation lacked when it started.
    pub(super) lacked: u64,
    pub(super) contacts_last: Vec<PeerInfo>,
    pub(super) stats_last: Option<Box<Stats>>,
    pub(super) spec: HostSpec,
    pub(super) info: PeerInfo,
    pub(super) arrivals: Vec<BlockArrival>,
}

impl Host {
    /// Asks for what every event needs of it ahead of time.
    pub(super) fn look_at(&self) {
        prefetch(&self.rng);
        prefetch(&self.clock);
        prefetch(&self.incarnation);
    }

    /// Whether it had everything when it started.
    pub(super) fn started_complete(&self) -> bool {
        self.life == Life::Up && self.lacked == 0
    }
}

impl Sim {
    /// Adds a host; the first must be the source. It starts when its specification says.
    pub fn add_host(&mut self, spec: HostSpec) -> HostId {
        let id = HostId(self.hosts.len() as u32);
        debug_assert_eq!(spec.is_source, id.0 == 0, "the source is the first host");
        let mut holdings = Holdings::uniform(self.config.block_len, self.config.content_len);
        if spec.is_source {
            (0..holdings.blocks()).for_each(|block| {
                holdings.hold(block);
            });
        }
        let addresses = id.0.to_le_bytes().to_vec();
        let contact = Contact { addresses, reachable: spec.reachable };
        let info = PeerInfo { id: PeerId::of_name(&spec.name), contact };
        if self.config.wire == Wire::Fluid {
            self.fluid.add_host(spec.up.as_f64(), spec.down.as_f64());
        }
        self.names.insert(spec.name.clone(), id);
        let first_start = match spec.ticket_of {
            None => super::Fault::Start(id),
            Some(via) => super::Fault::StartWithTicketOf(id, via),
        };
        let (start, config, rng) =
            (spec.start, &self.config, stream(self.config.seed, &spec.name, "member"));
        self.hosts.push(Host {
            clock: spec.clock,
            spec,
            info,
            life: Life::Absent,
            starts_waiting: 0,
            incarnation: 0,
            is_silent: false,
            member: None,
            holdings,
            rng,
            inbox: VecDeque::new(),
            is_ready: false,
            due: Time::FAR,
            deadline_last: None,
            is_done: false,
            is_leaving: false,
            peers: BTreeMap::new(),
            vain: BTreeSet::new(),
            forgotten: Vec::new(),
            lacked: 0,
            contacts_last: Vec::new(),
            stats_last: None,
            meter: Meter::new(config.interval),
            arrivals: Vec::new(),
        });
        self.schedule(start, first_start);
        id
    }

    /// Marks blocks as held before the run: a receiver that resumes.
    pub fn hold(&mut self, host: HostId, blocks: impl IntoIterator<Item = BlockIndex>) {
        for block in blocks {
            self.hosts[host.0 as usize].holdings.hold(block);
        }
    }

    /// Who a host is and how others reach it.
    pub fn info(&self, host: HostId) -> &PeerInfo {
        &self.at(host).info
    }

    /// Starts a host's program, joining through `bootstrap`.
    pub(super) fn start(&mut self, host: u32, bootstrap: Vec<PeerInfo>) {
        let source = self.hosts[0].info.id;
        let state = &mut self.hosts[host as usize];
        if state.life == Life::Up {
            return;
        }
        let setup = Setup { me: state.info.clone(), source, bootstrap };
        state.member = Some((self.factory)(setup));
        state.life = Life::Up;
        self.life_changes += 1;
        state.incarnation += 1;
        state.is_leaving = false;
        state.is_done = false;
        state.due = Time::FAR;
        state.deadline_last = None;
        state.lacked = u64::from(state.holdings.blocks() - state.holdings.held().count());
        self.give(host, Input::Start);
    }

    /// Ends a host's program at once; its links are gone as far as it is concerned.
    pub(super) fn stop(&mut self, host: u32, life: Life) {
        let state = &mut self.hosts[host as usize];
        if let Some(member) = state.member.take() {
            state.contacts_last = member.contacts();
            state.stats_last = Some(Box::new(*member.stats()));
        }
        state.life = life;
        self.life_changes += 1;
        state.inbox.clear();
        state.vain.clear();
    }

    /// Puts an input into a host's inbox.
    pub(super) fn give(&mut self, host: u32, input: Input) {
        self.give_arrival(host, Arrival::Input(input));
    }

    pub(super) fn give_arrival(&mut self, host: u32, arrival: Arrival) {
        let state = &mut self.hosts[host as usize];
        if state.member.is_none() {
            return;
        }
        if state.inbox.capacity() == 0 {
            state.inbox = self.inboxes.pop().unwrap_or_default();
        }
        state.inbox.push_back(arrival);
        if !state.is_ready {
            state.is_ready = true;
            self.ready.push_back(host);
        }
    }

    pub(super) fn drain_inbox(&mut self, host: u32) {
        self.hosts[host as usize].is_ready = false;
        while let Some(arrival) = self.hosts[host as usize].inbox.pop_front() {
            let input = match arrival {
                Arrival::Input(input) => input,
                Arrival::Block { end, block, header, is_corrupt } => {
                    self.store(host, end, block, header, is_corrupt)
                }
            };
            self.handle(host, input);
            if self.failure.is_some() {
                return;
            }
        }
        self.inboxes.push(std::mem::take(&mut self.hosts[host as usize].inbox));
    }

    fn store(
        &mut self,
        host: u32,
        end: u32,
        block: BlockIndex,
        header: Vec<u8>,
        is_corrupt: bool,
    ) -> Input {
        let link = LinkId(end / 2);
        if is_corrupt {
            return Input::BadBlock { link, block, corrupt: true };
        }
        let from = HostId(self.ends[(end ^ 1) as usize].host);
        let state = &mut self.hosts[host as usize];
        let duplicate = !state.holdings.hold(block);
        if self.config.arrivals {
            state.arrivals.push(BlockArrival { at: self.now, from, block });
        }
        if duplicate {
            state.meter.total.duplicate_in += u64::from(state.holdings.block_len(block));
        }
        Input::Block { link, block, header, duplicate }
    }
}
