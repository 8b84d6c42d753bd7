//! The loop that moves packets in real time: from the hosts' devices into the network, and out of it
//! to the hosts when they are due.
//!
//! One turn: deliver what is due; sleep until the next event or until a device has a packet; read a
//! few packets of each device that has some. Sleeps end a little early and the rest is spent
//! looking, since a timer alone is some tens of microseconds late.
//!
//! What is measured is what a host would notice. A packet may have waited in its device until it was
//! read, and may be written after it was due. The second is known. For the first the bound is taken:
//! the time since that device was last seen empty, or since the loop woke up.

use super::address;
use super::lateness::Histogram;
use super::namespace::Port;
use super::pool::{Buffer, Pool};
use super::system;
use crate::net::{Carried, LinkStats, Network, Packet};
use crate::topology::{LinkIx, NodeIx, Topology};
use anabranch_proto::time::Time;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};
use std::rc::Rc;

/// The last part of a sleep, which is spent looking, in nanoseconds.
const LOOK: u64 = 50_000;
/// Sleeps do not end more often than this, in nanoseconds. Setting the timer costs several
/// microseconds, more on virtual machines, and dense traffic would set it for every packet.
const STEP: u64 = 50_000;
/// One part in so many of its time may go into looking; beyond that it sleeps to the end, somewhat
/// less exactly, and leaves the processor to the programs that it carries packets for.
const LOOK_SHARE: u64 = 8;
/// Nanoseconds of looking that may be saved up.
const LOOK_MAX: u64 = 1_000_000;
/// Packets that are read from one device before others have their turn.
const READS_PER_TURN: usize = 128;
/// Devices that one call reports.
const EVENTS: usize = 64;
/// What a packet may be late before it counts as late, in nanoseconds.
pub(super) const LATE: u64 = 1_000_000;
/// Memory for packets under way. What comes when it is used up is dropped and spoils the run.
const MEMORY: usize = 1 << 30;

const TIMER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// A packet's bytes, and how long it may have waited in the device it came from, in nanoseconds.
pub(super) struct Body {
    buffer: Buffer,
    waited: u64,
}

impl Carried for Body {}

/// What the loop counted.
pub(super) struct Outcome {
    /// The links' counters, in the order of the topology.
    pub(super) links: Vec<LinkStats>,
    /// How late each packet was: its wait in the device at most, and its delivery after it was due.
    pub(super) lateness: Histogram,
    /// How long after the time it was set for each timer woke the loop.
    pub(super) wakes: Histogram,
    /// Why there was no real-time priority, if there was none.
    pub(super) not_real_time: Option<String>,
    /// Packets that came from each host.
    pub(super) read: Vec<u64>,
    /// Packets that were given to each host.
    pub(super) written: Vec<u64>,
    /// Packets with [`LATE`] or more.
    pub(super) late: u64,
    /// Packets that go to no host: multicast, other addresses.
    pub(super) elsewhere: u64,
    /// Packets that the kernel did not take.
    pub(super) refused: u64,
    /// Packets for which there was no memory.
    pub(super) without_memory: u64,
    /// The most packets under way at once.
    pub(super) buffers: usize,
    /// How long it ran.
    pub(super) ran: Time,
    /// Processor time it took, the kernel's work for its reads and writes included.
    pub(super) worked: Time,
}

/// The loop and what it works on.
pub(super) struct Engine<'a> {
    ports: &'a [Port],
    /// The node of each port.
    nodes: &'a [NodeIx],
    /// The port of each node that is a host.
    port_of: Vec<u32>,
    network: Network<Body>,
    link_count: u32,
    epoll: Epoll,
    timer: TimerFd,
    /// What the timer is set to.
    armed: Time,
    /// How long it may look, in nanoseconds.
    look: u64,
    /// When `look` was brought up to date, and whether the loop has been looking since.
    looked: (Time, bool),
    /// When each device was last read until it was empty.
    emptied: Vec<Time>,
    /// When all devices were last seen empty.
    all_empty: Time,
    /// When the timer last ended a sleep.
    woke: Time,
    /// The clock's reading at time zero.
    start: u64,
    pool: Rc<Pool>,
    /// The buffer for the next read.
    spare: Option<Buffer>,
    out: Outcome,
}

impl<'a> Engine<'a> {
    /// Prepares the loop. `stop` ends it; `ports` are those of the nodes in `nodes`.
    pub(super) fn new(
        ports: &'a [Port],
        nodes: &'a [NodeIx],
        network: Network<Body>,
        topology: &Topology,
        stop: &EventFd,
    ) -> Result<Engine<'a>, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(
            timerfd::ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        // With edges, a timer that fired needs no read before it is set again.
        epoll.add(&timer, EpollEvent::new(edge, TIMER))?;
        epoll.add(stop, EpollEvent::new(EpollFlags::EPOLLIN, STOP))?;
        for (index, port) in (0..).zip(ports) {
            epoll.add(&port.device, EpollEvent::new(EpollFlags::EPOLLIN, index))?;
        }
        let node_count = nodes.iter().map(|node| node.0 as usize + 1).max().unwrap_or(0);
        let mut port_of = vec![u32::MAX; node_count];
        for (index, node) in (0..).zip(nodes) {
            port_of[node.0 as usize] = index;
        }
        let out = Outcome {
            links: Vec::new(),
            lateness: Histogram::new(),
            wakes: Histogram::new(),
            not_real_time: None,
            read: vec![0; ports.len()],
            written: vec![0; ports.len()],
            late: 0,
            elsewhere: 0,
            refused: 0,
            without_memory: 0,
            buffers: 0,
            ran: Time::ZERO,
            worked: Time::ZERO,
        };
        let packet_max = topology.links.iter().map(|link| link.mtu).max().unwrap_or(0) as usize;
        let (start, pool) = (clock(ClockId::CLOCK_MONOTONIC)?, Pool::new(packet_max, MEMORY));
        let link_count = topology.links.len() as u32;
        let (armed, woke, spare) = (Time::FAR, Time::ZERO, None);
        let emptied = vec![Time::ZERO; ports.len()];
        let (look, looked) = (0, (Time::ZERO, false));
        Ok(Engine {
            ports,
            nodes,
            port_of,
            network,
            link_count,
            epoll,
            look,
            looked,
            woke,
            emptied,
            all_empty: Time::ZERO,
            timer,
            armed,
            start,
            pool,
            spare,
            out,
        })
    }

    /// Runs until it is told to stop.
    pub(super) fn run(mut self) -> Result<Outcome, Errno> {
        self.out.not_real_time = prepare_thread();
        let worked_before = clock(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let now = self.now()?;
            self.deliver(now);
            let (count, slept) = self.wait(now, &mut events)?;
            let woke = self.now()?;
            if slept {
                // What is there now came while it slept, and woke it.
                self.all_empty = woke;
            }
            for event in &events[..count] {
                match event.data() {
                    TIMER => {
                        self.woke = woke;
                        self.out.wakes.add(woke.0.saturating_sub(self.armed.0));
                        self.armed = Time::FAR;
                    }
                    STOP => {
                        let worked = clock(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
                        self.out.ran = woke;
                        self.out.worked = Time(worked - worked_before);
                        self.out.buffers = self.pool.count();
                        let links = (0..self.link_count).map(LinkIx);
                        self.out.links = links.map(|link| self.network.stats(link)).collect();
                        return Ok(self.out);
                    }
                    port => self.read(port as usize)?,
                }
            }
        }
    }

    fn now(&self) -> Result<Time, Errno> {
        Ok(Time(clock(ClockId::CLOCK_MONOTONIC)? - self.start))
    }

    /// Waits for the next event or packet. Tells how many devices are ready, and whether the loop
    /// slept.
    fn wait(&mut self, now: Time, events: &mut [EpollEvent]) -> Result<(usize, bool), Errno> {
        let next = self.network.next_event().unwrap_or(Time::FAR);
        let may_look = self.may_look(now);
        let is_near = next.0.saturating_sub(now.0) <= if may_look { LOOK } else { 0 };
        let ready = match self.epoll.wait(events, EpollTimeout::ZERO) {
            Err(Errno::EINTR) => 0,
            ready => ready?,
        };
        if ready == 0 {
            self.all_empty = now;
        }
        if ready > 0 || is_near {
            self.looked.1 = ready == 0;
            return Ok((ready, false));
        }
        let wake = next.0.saturating_sub(if may_look { LOOK } else { 0 });
        let wake = Time(wake.max(self.woke.0.saturating_add(STEP)));
        if next != Time::FAR && wake != self.armed {
            let at = TimeSpec::nanoseconds(self.start.saturating_add(wake.0) as i64);
            let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
            self.timer.set(Expiration::OneShot(at), flags)?;
            self.armed = wake;
        }
        match self.epoll.wait(events, EpollTimeout::NONE) {
            Err(Errno::EINTR) => Ok((0, true)),
            ready => Ok((ready?, true)),
        }
    }

    /// Whether some time for looking is left.
    fn may_look(&mut self, now: Time) -> bool {
        let (before, was_looking) = std::mem::replace(&mut self.looked, (now, false));
        let passed = now.0.saturating_sub(before.0);
        self.look = (self.look + passed / LOOK_SHARE).min(LOOK_MAX);
        self.look = self.look.saturating_sub(if was_looking { passed } else { 0 });
        self.look > LOOK
    }

    /// Gives the hosts everything that is due.
    fn deliver(&mut self, mut now: Time) {
        while let Some((due, packet)) = self.network.poll(now) {
            let port = self.port_of[packet.to.0 as usize] as usize;
            let late = now.0.saturating_sub(due.0).saturating_add(packet.body.waited);
            self.out.lateness.add(late);
            self.out.late += u64::from(late > LATE);
            match nix::unistd::write(&self.ports[port].device, packet.body.buffer.packet()) {
                Ok(_) => self.out.written[port] += 1,
                Err(_) => self.out.refused += 1,
            }
            // Writing takes a while: the host does its share of the work in it.
            now = self.now().unwrap_or(now);
        }
    }

    /// Takes packets from a device, each into the network at the time it is read.
    fn read(&mut self, port: usize) -> Result<(), Errno> {
        let since = self.all_empty.max(self.emptied[port]);
        for _ in 0..READS_PER_TURN {
            let now = self.now()?;
            // What leaves a queue now makes room for what comes now.
            self.deliver(now);
            let Some(mut buffer) = self.spare.take().or_else(|| self.pool.take()) else {
                return self.read_into_nothing(port);
            };
            let len = match nix::unistd::read(&self.ports[port].device, buffer.space()) {
                Ok(len) => len,
                Err(Errno::EAGAIN | Errno::EINTR) => {
                    self.spare = Some(buffer);
                    self.emptied[port] = now;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            self.out.read[port] += 1;
            buffer.used = len as u32;
            let header = address::header(buffer.packet());
            let to = header.and_then(|header| self.nodes.get(header.to as usize));
            let (Some(header), Some(&to)) = (header, to) else {
                self.out.elsewhere += 1;
                self.spare = Some(buffer);
                continue;
            };
            let from = self.nodes[port];
            let body = Body { buffer, waited: now.0.saturating_sub(since.0) };
            let packet = Packet { from, to, flow: 0, len: len as u32, dscp: header.dscp, body };
            self.network.send(now, packet);
        }
        Ok(())
    }

    /// Drops one packet, so that the device does not stay ready while memory is short.
    fn read_into_nothing(&mut self, port: usize) -> Result<(), Errno> {
        match nix::unistd::read(&self.ports[port].device, &mut [0; 1]) {
            Ok(_) => self.out.without_memory += 1,
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Real-time scheduling and memory that stays, where the machine allows them. `None` when it does;
/// else what it said.
fn prepare_thread() -> Option<String> {
    // Sleeps of ordinary threads are stretched to save power; not this one's.
    let _ = nix::sys::prctl::set_timerslack(1);
    // Without it a page may be read back from disk, which shows in the lateness.
    let _ = system::lock_memory();
    system::be_real_time().err().map(|error| error.desc().to_owned())
}

fn clock(which: ClockId) -> Result<u64, Errno> {
    let time = clock_gettime(which)?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
