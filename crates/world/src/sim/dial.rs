//! Making links: set-up times, refusals, time-outs, dials that cross.

use super::Sim;
use super::host::{HostId, Life};
use super::wire::side_of;
use crate::event::Event;
use anabranch_proto::id::{Contact, LinkClass, PeerId, PeerInfo};
use anabranch_proto::overlay::Input;
use anabranch_proto::time::Duration;
use std::collections::BTreeMap;

/// A link that is being set up.
#[derive(Clone, Copy, Debug)]
struct SetUp {
    /// The dialler's end.
    first: u32,
    /// Which starts of the dialler and the listener it belongs to.
    incarnations: [u32; 2],
    /// Who waits for it: the dialler, and the listener when it dialled meanwhile.
    asked: [bool; 2],
}

/// A dial that will not succeed.
#[derive(Clone, Copy, Debug)]
struct Failing {
    host: u32,
    incarnation: u32,
    target: Option<u32>,
    peer: PeerId,
}

/// All dials under way.
#[derive(Default, Debug)]
pub(super) struct Dials {
    setting_up: BTreeMap<(u32, u32), SetUp>,
    failing: Vec<Failing>,
}

impl Sim {
    /// Does what `Output::Connect` asks.
    pub(super) fn connect(&mut self, host: u32, peer: &PeerInfo, class: LinkClass) {
        let target = host_of(&peer.contact)
            .filter(|&at| self.hosts.get(at as usize).is_some_and(|h| h.info.id == peer.id));
        let Some(target) = target.filter(|&target| target != host) else {
            return self.fail_dial(host, None, peer.id, Duration::ZERO);
        };
        let is_vain = self.hosts[host as usize].vain.contains(&target);
        if is_vain || self.hosts[host as usize].peers.contains_key(&target) {
            return;
        }
        if self.join_set_up(host, target) {
            return;
        }
        let state = &self.hosts[target as usize];
        let is_up = state.life == Life::Up && !state.is_leaving;
        let rtt = self.paths.rtt(host, target);
        if self.paths.is_cut(host, target) || (!is_up && state.is_silent) {
            self.fail_dial(host, Some(target), peer.id, self.config.dial_timeout);
        } else if !is_up || !state.spec.reachable {
            self.fail_dial(host, Some(target), peer.id, rtt);
        } else {
            self.begin_set_up(host, target, class, rtt);
        }
    }

    /// Joins a set-up of this pair that is under way; false when there is none.
    fn join_set_up(&mut self, host: u32, target: u32) -> bool {
        let now = [self.incarnation(host), self.incarnation(target)];
        let Some(set_up) = self.dials.setting_up.get_mut(&pair(host, target)) else { return false };
        let is_dialler = self.ends[set_up.first as usize].host == host;
        let [dialler, listener] = if is_dialler { now } else { [now[1], now[0]] };
        if set_up.incarnations != [dialler, listener] {
            self.dials.setting_up.remove(&pair(host, target));
            return false;
        }
        set_up.asked[usize::from(!is_dialler)] = true;
        true
    }

    fn begin_set_up(&mut self, dialler: u32, listener: u32, class: LinkClass, rtt: Duration) {
        let first = self.add_link(dialler, listener, class);
        let incarnations = [self.incarnation(dialler), self.incarnation(listener)];
        let set_up = SetUp { first, incarnations, asked: [true, false] };
        self.dials.setting_up.insert(pair(dialler, listener), set_up);
        self.queue.push(self.now + rtt * 5 / 2, Event::Hello { end: first + 1 });
    }

    pub(super) fn on_hello(&mut self, end: u32) {
        let (host, peer) = (self.ends[end as usize].host, self.ends[end as usize].peer);
        let Some(&set_up) = self.dials.setting_up.get(&pair(host, peer)) else { return };
        if set_up.first != end & !1 {
            return;
        }
        let [dialler, listener] = if side_of(end) == 0 { [host, peer] } else { [peer, host] };
        let lives = |sim: &Sim, host: u32, at: usize| {
            let state = &sim.hosts[host as usize];
            state.life == Life::Up
                && !state.is_leaving
                && state.incarnation == set_up.incarnations[at]
        };
        let is_cut = self.paths.is_cut(host, peer);
        let lives = [lives(self, dialler, 0), lives(self, listener, 1)];
        let is_listener = side_of(end) == 1;
        let succeeds = !is_cut && lives[0] && (lives[1] || !is_listener);
        if succeeds && is_listener {
            self.forget_old_link(listener, dialler);
            self.make_connection(set_up.first);
            self.open(end);
            let at = self.now + self.paths.delay(listener, dialler);
            self.pipes[end as usize].arrives_after = at;
            self.queue.push(at, Event::Hello { end: set_up.first });
            return;
        }
        self.dials.setting_up.remove(&pair(host, peer));
        if succeeds {
            return self.open(end);
        }
        for (at, (host, peer)) in [(dialler, listener), (listener, dialler)].into_iter().enumerate()
        {
            let is_open = self.hosts[host as usize].peers.contains_key(&peer);
            if set_up.asked[at] && lives[at] && !is_open {
                let id = self.hosts[peer as usize].info.id;
                self.fail_dial(host, Some(peer), id, self.config.dial_timeout);
            }
        }
    }

    /// A peer that dials anew has lost its end of the old link.
    fn forget_old_link(&mut self, listener: u32, dialler: u32) {
        if let Some(&old) = self.hosts[listener as usize].peers.get(&dialler) {
            self.on_break(old);
        }
    }

    fn fail_dial(&mut self, host: u32, target: Option<u32>, peer: PeerId, after: Duration) {
        let incarnation = self.incarnation(host);
        let dial = self.dials.failing.len() as u32;
        self.dials.failing.push(Failing { host, incarnation, target, peer });
        if let Some(target) = target {
            self.hosts[host as usize].vain.insert(target);
        }
        self.queue.push(self.now + after, Event::DialFailed { dial });
    }

    pub(super) fn on_dial_failed(&mut self, dial: u32) {
        let Failing { host, incarnation, target, peer } = self.dials.failing[dial as usize];
        if self.incarnation(host) != incarnation {
            return;
        }
        if let Some(target) = target {
            self.hosts[host as usize].vain.remove(&target);
            if self.hosts[host as usize].peers.contains_key(&target) {
                // The peer dialled meanwhile: there is a link.
                return;
            }
        }
        self.give(host, Input::ConnectFailed { peer });
    }

    fn incarnation(&self, host: u32) -> u32 {
        self.at(HostId(host)).incarnation
    }
}

fn pair(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// Contacts here are host numbers.
fn host_of(contact: &Contact) -> Option<u32> {
    contact.addresses.as_slice().try_into().ok().map(u32::from_le_bytes)
}
