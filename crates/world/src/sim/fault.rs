//! What can happen to a world while it runs.

use super::host::{HostId, Life};
use super::{Sim, Wire};
use crate::event::Event;
use crate::topology::{Changed, LinkIx};
use crate::units::Rate;
use anabranch_proto::id::PeerInfo;
use anabranch_proto::overlay::{Command, Input};
use anabranch_proto::time::Duration;

/// Something that a scenario does to the world at some time.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// A host starts, or starts again with what it holds, knowing the source's contact (a source:
    /// those its last member knew).
    Start(HostId),
    /// A host starts with a ticket printed by another that runs: that host and whom it knows.
    StartWithTicketOf(HostId, HostId),
    /// A host's machine is gone: silence; peers learn from liveness alone.
    Crash(HostId),
    /// A host's program is killed: its machine resets its links.
    Kill(HostId),
    /// A host is asked to leave in good order.
    Leave(HostId),
    /// Nothing passes between two hosts. What is under way is kept, as TCP would send it again.
    Cut(HostId, HostId),
    /// The path between two hosts is whole again.
    Heal(HostId, HostId),
    /// Every path is whole again.
    HealAll,
    /// Nothing passes between these hosts and all others.
    Partition(Vec<HostId>),
    /// A host's rates change.
    Rates(HostId, Rate, Rate),
    /// The one-way delay between two hosts changes, both ways.
    Delay(HostId, HostId, Duration),
    /// The path between two hosts carries at most this, each way; `None`: as much as they can.
    PathRate(HostId, HostId, Option<Rate>),
    /// Links of the terrain change; what its topology schedules comes by itself.
    Links(Vec<(LinkIx, Changed)>),
    /// From now on the blocks a host sends are wrong, or right again.
    Corrupt(HostId, bool),
    /// A host accepts connections from now on, or no more; its contact says so.
    Reachable(HostId, bool),
}

impl Fault {
    /// The host that starts, when this is a start.
    fn starts(&self) -> Option<HostId> {
        match self {
            Fault::Start(host) | Fault::StartWithTicketOf(host, _) => Some(*host),
            _ => None,
        }
    }
}

impl Sim {
    /// Notes a start that is to come.
    pub(super) fn expect_start(&mut self, fault: &Fault) {
        if let Some(host) = fault.starts()
            && let Some(state) = self.hosts.get_mut(host.0 as usize)
        {
            state.starts_waiting += 1;
        }
    }

    pub(super) fn on_script(&mut self, index: u32) {
        let fault = self.script[index as usize].clone();
        self.trace.add(u64::from(index));
        if let Some(host) = fault.starts() {
            self.hosts[host.0 as usize].starts_waiting -= 1;
        }
        match fault {
            Fault::Start(host) => self.on_start(host, None),
            Fault::StartWithTicketOf(host, via) => self.on_start(host, Some(via)),
            Fault::Crash(host) => self.crash(host.0, true),
            Fault::Kill(host) => self.crash(host.0, false),
            Fault::Leave(host) => self.give(host.0, Input::Command(Command::Leave)),
            Fault::Rates(host, up, down) => self.set_rates(host, up, down),
            Fault::Corrupt(host, is) => self.hosts[host.0 as usize].spec.corrupt = is,
            Fault::Reachable(host, is) => {
                let host = &mut self.hosts[host.0 as usize];
                host.spec.reachable = is;
                host.info.contact.reachable = is;
            }
            Fault::Links(changes) => {
                self.change_links(&changes);
                for (host, up, down) in self.paths.apply(&changes) {
                    let spec = &mut self.hosts[host as usize].spec;
                    (spec.up, spec.down) = (up, down);
                    if self.config.wire != Wire::Packet {
                        self.set_rates(HostId(host), up, down);
                    }
                }
                self.refresh_pipes();
            }
            path => self.change_paths(path),
        }
    }

    fn change_paths(&mut self, fault: Fault) {
        if let (Wire::Packet, Fault::Delay(..) | Fault::PathRate(..)) = (self.config.wire, &fault) {
            return self.refuse(
                "on the packet wire two hosts have no path of their own whose delay or rate could \
                 change; change the topology's links instead"
                    .into(),
            );
        }
        let hosts = self.hosts.len() as u32;
        let paths = &mut self.paths;
        match fault {
            Fault::Cut(a, b) => paths.set_cut(a.0, b.0, true),
            Fault::Heal(a, b) => paths.set_cut(a.0, b.0, false),
            Fault::HealAll => paths.heal_all(),
            Fault::Partition(island) => {
                let is_inside = |host: u32| island.contains(&HostId(host));
                for inside in island.iter().map(|host| host.0) {
                    (0..hosts)
                        .filter(|&other| !is_inside(other))
                        .for_each(|other| paths.set_cut(inside, other, true));
                }
            }
            Fault::Delay(a, b, delay) => {
                paths.set_delay(a.0, b.0, delay);
                paths.set_delay(b.0, a.0, delay);
            }
            Fault::PathRate(a, b, rate) => {
                paths.set_rate(a.0, b.0, rate);
                paths.set_rate(b.0, a.0, rate);
            }
            _ => {}
        }
        self.refresh_pipes();
    }

    fn on_start(&mut self, host: HostId, via: Option<HostId>) {
        let me = self.at(host).info.id;
        let mut bootstrap = match via {
            Some(via) => self.ticket_of(via),
            None if host.0 == 0 => self.at(host).contacts_last.clone(),
            None => vec![self.hosts[0].info.clone()],
        };
        bootstrap.retain(|peer| peer.id != me);
        self.reset_forgotten(host.0);
        self.start(host.0, bootstrap);
    }

    fn ticket_of(&self, host: HostId) -> Vec<PeerInfo> {
        let state = self.at(host);
        let mut ticket = vec![state.info.clone()];
        let contacts =
            state.member.as_ref().map_or(state.contacts_last.clone(), |member| member.contacts());
        for peer in contacts {
            if ticket.iter().all(|known| known.id != peer.id) {
                ticket.push(peer);
            }
        }
        ticket
    }

    /// A host that is back resets the links it has forgotten.
    fn reset_forgotten(&mut self, host: u32) {
        for end in std::mem::take(&mut self.hosts[host as usize].forgotten) {
            let at = self.now + self.paths.delay(host, self.ends[end as usize].host);
            self.queue.push(at, Event::Break { end });
        }
    }

    fn crash(&mut self, host: u32, is_silent: bool) {
        if self.hosts[host as usize].life == Life::Up {
            self.hosts[host as usize].is_silent = is_silent;
            self.abandon(host, Life::Crashed);
        }
    }

    /// Ends a host's program without farewells.
    pub(super) fn abandon(&mut self, host: u32, life: Life) {
        self.stop(host, life);
        let is_silent = life == Life::Crashed && self.hosts[host as usize].is_silent;
        let peers = std::mem::take(&mut self.hosts[host as usize].peers);
        for (peer, end) in peers {
            let is_packet = self.config.wire == Wire::Packet;
            if is_silent && is_packet {
                self.vanish(end);
            } else {
                self.drop_end(end, false);
            }
            if is_packet {
                continue;
            }
            if is_silent {
                self.stall(end ^ 1);
                self.hosts[host as usize].forgotten.push(end ^ 1);
            } else {
                let at = self.now + self.paths.delay(host, peer);
                self.queue.push(at, Event::Break { end: end ^ 1 });
            }
        }
    }

    fn set_rates(&mut self, host: HostId, up: Rate, down: Rate) {
        let spec = &mut self.hosts[host.0 as usize].spec;
        (spec.up, spec.down) = (up, down);
        if self.config.wire == Wire::Packet {
            return self.change_access(host.0, up, down);
        }
        if self.config.wire == Wire::Fluid {
            self.fluid.set_host(self.now, host.0, up.as_f64(), down.as_f64(), &mut self.queue);
        }
    }
}
