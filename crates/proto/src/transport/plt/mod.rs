//! PLT, Priority Layered Transport (thesis ch. 3): one reliable byte stream over two sub-flows. The
//! HCM is a TCP at best effort, as fair as any; the LCM takes what is spare, at a strictly lower
//! priority, and hurts nobody.
//!
//! ```text
//!  application --> Stream --- first ---> HCM: tcp::Endpoint ----> best effort --+
//!                  |  ^  \                                                      |
//!                  |  |   +-- then ----> LCM: lcm::sender ------> lower effort -+--> Assembly
//!          LCM retransmit buffer <-- lost bytes --+                                  application
//! ```
//!
//! - [`stream`]: who is responsible for which bytes of the actual stream; [`map`]: the HCM's virtual
//!   stream; [`lcm`]: the Low-priority Control Module; [`assembly`]: the receiver, its window;
//! - [`shutdown`]: finding out that routers know no priorities; [`sizing`]: the thesis's bounds;
//! - [`config`]: parameters and variants; [`header`]: what packets carry.
//!
//! *Between the modules* (thesis §3.2.2): a cutback of the HCM wakes a starved LCM; an HCM that the
//! outstanding window holds back shrinks the LCM. Nothing else.
//!
//! Deviations: a probe of a starved LCM is a copy of what the HCM has on its way, so that its loss
//! holds nothing up. While the whole stream waits for the HCM for two round trips, the LCM sends
//! copies of that ([`Config::copies`]). LCM acknowledgements are never joined to data.
//!
//! Not there: a peer that does not speak PLT (the set-up is taken to be between two that do).
//!
//! Page: `docs/plt.md`.

pub mod assembly;
pub mod config;
pub mod header;
pub mod lcm;
pub mod map;
pub mod shutdown;
pub mod sizing;
pub mod stream;

pub use assembly::Buffer;
pub use config::Config;
pub use header::Header;

use super::events::Events;
use super::packet::{Body, Class, Packet, Range, Segment};
use super::{CongestionControl, Event, Failure, Probe, Transport, tcp};
use crate::time::{Duration, Time, earliest};
use assembly::Assembly;
use header::{Credit, HIGH_OPTION_LEN, High, LOW_LEN, Low, Report, report_len};
use shutdown::Shutdown;
use stream::Stream;

/// Round trips without progress after which the LCM sends copies.
const STUCK_RTTS: u32 = 2;
/// Packets of copies at a time.
const COPIES_MAX: u64 = 64;
/// The longest time between two questions for a window.
const ASK_MAX: Duration = Duration::from_secs(60);

/// One end of a connection. See [the module](self).
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    mss: u64,
    /// The HCM, both halves, in its virtual streams.
    hcm: tcp::Endpoint,
    /// The LCM's sender and receiver.
    lcm: lcm::sender::Sender,
    reports: lcm::receiver::Receiver,
    /// The actual stream that goes, and the one that comes.
    stream: Stream,
    assembly: Assembly,
    shutdown: Shutdown,
    events: Events,
    /// Cutbacks of the HCM that the LCM knows of.
    cutbacks: u64,
    /// When more of the stream was acknowledged, or copies were made.
    moved: Time,
    /// When the peer first silenced the LCM.
    off_at: Option<Time>,
    /// When copies were made because the window was used up.
    copied: Time,
    /// Copies that wait.
    copies: super::ranges::Ranges,
    /// When the window is asked for, and the time to the next question.
    ask_at: Option<Time>,
    ask_wait: Duration,
    /// Questions since something came.
    asked: u32,
}

impl Endpoint {
    /// An end that has not begun. It dials when [`Transport::open`] is called and listens otherwise.
    pub fn new(config: Config, congestion: Box<dyn CongestionControl>) -> Endpoint {
        let mut hcm = config.hcm;
        // The receive window is that of the actual stream; this one only bounds what is remembered.
        hcm.receiving.buffer = config.buffer.max().saturating_mul(2);
        hcm.peer_window = None;
        let assumed = config.peer_window.unwrap_or(config.buffer.initial());
        let mss = config.mss();
        Endpoint {
            mss: u64::from(mss),
            hcm: tcp::Endpoint::new(hcm, congestion),
            lcm: lcm::sender::Sender::new(config.lcm, mss),
            reports: lcm::receiver::Receiver::new(config.reports),
            stream: Stream::new(mss, if hcm.handshake { 0 } else { assumed }),
            assembly: Assembly::new(config.buffer, mss),
            shutdown: Shutdown::new(config.shutdown),
            events: Events::default(),
            cutbacks: 0,
            moved: Time::ZERO,
            off_at: None,
            copied: Time::ZERO,
            copies: super::ranges::Ranges::default(),
            ask_at: None,
            ask_wait: Duration::ZERO,
            asked: 0,
            config,
        }
    }

    /// The HCM, to look at.
    pub fn hcm(&self) -> &tcp::Endpoint {
        &self.hcm
    }

    /// The LCM's sender, to look at.
    pub fn lcm(&self) -> &lcm::sender::Sender {
        &self.lcm
    }

    /// The actual stream that goes, to look at.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The actual stream that comes, to look at.
    pub fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    /// PLT-Shutdown, to look at.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    fn srtt(&self) -> Duration {
        self.hcm.sender().srtt()
    }

    fn credit(&mut self) -> Credit {
        self.assembly.credit(self.shutdown.is_off())
    }

    // ---- what comes ----

    fn on_high(&mut self, now: Time, packet: Packet, high: &High) {
        let mut segment = high.segment;
        let mut len = packet.payload_len;
        if len > 0 && self.hcm.hears() {
            let end = high.actual.saturating_add(u64::from(len));
            if self.take(Range { start: high.actual, end }, high.is_full) {
                let virt =
                    Range { start: segment.seq, end: segment.seq.saturating_add(u64::from(len)) };
                let shuts = self.shutdown.on_high(now, segment.sent, virt);
                self.announce_if(shuts);
            } else {
                // As if lost, but answered: the answer shows the window.
                (len, segment.fin) = (0, false);
                self.hcm.announce();
            }
        }
        self.note_end(high.end);
        self.hcm.handle(now, Packet { payload_len: len, body: Body::Tcp(segment), ..packet });
        self.hcm.read(u64::MAX);
        self.stream.advance_map(self.hcm.sender().board().una());
        if high.asks {
            self.hcm.announce();
        }
        if self.hcm.hears() && (segment.has_ack || segment.syn) {
            self.on_credit(now, &high.credit);
        }
        self.note_cutback();
    }

    fn on_low(&mut self, now: Time, low: &Low, len: u32) {
        let end = low.actual.saturating_add(u64::from(len));
        let has_place = self.reports.has_place(low, len);
        let is_taken = has_place && self.take(Range { start: low.actual, end }, low.is_full);
        self.note_end(low.end);
        self.reports.on_data(now, low, len, is_taken);
        let virt = Range { start: low.seq, end: low.seq.saturating_add(u64::from(len)) };
        let shuts = self.shutdown.on_low(now, low.sent, virt);
        self.announce_if(shuts);
    }

    fn on_report(&mut self, now: Time, report: &Report) {
        let (rtt, most) = (self.srtt(), self.stream.window());
        self.lcm.on_report(now, report, rtt, most, self.stream.lost());
        self.on_credit(now, &report.credit);
    }

    /// Takes bytes of the stream that comes; gives whether they have a place.
    fn take(&mut self, range: Range, is_full: bool) -> bool {
        let before = self.assembly.next();
        let is_taken = self.assembly.take(range, is_full);
        if self.assembly.next() > before {
            self.events.tell(Events::READABLE);
        }
        is_taken
    }

    fn note_end(&mut self, end: Option<u64>) {
        if let Some(end) = end.filter(|_| self.hcm.hears()) {
            self.assembly.note_end(end);
        }
    }

    fn on_credit(&mut self, now: Time, credit: &Credit) {
        if self.stream.on_credit(credit) {
            self.moved = now;
            self.copies.remove_below(self.stream.una());
        }
        self.lcm.set_off(credit.is_low_off);
        if credit.is_low_off {
            self.off_at.get_or_insert(now);
        }
        self.asked = 0;
        if !self.stream.is_held() {
            self.ask_at = None;
        }
    }

    fn announce_if(&mut self, is_news: bool) {
        if is_news {
            self.hcm.announce();
        }
    }

    /// First notification: the HCM has cut its window (thesis §3.2.2).
    fn note_cutback(&mut self) {
        let counts = self.hcm.sender().counts();
        let cutbacks = counts.recoveries + counts.timeouts;
        if cutbacks > self.cutbacks {
            self.cutbacks = cutbacks;
            let control = self.hcm.sender().congestion();
            self.lcm.on_cutback(control.ssthresh().min(control.window().max(self.mss) * 2));
        }
    }

    fn note_ends(&mut self) {
        while let Some(event) = self.hcm.poll_event() {
            match event {
                Event::Connected => self.events.tell_once(Events::CONNECTED),
                Event::Failed(Failure::Reset) => self.events.tell_once(Events::RESET),
                Event::Failed(Failure::TimedOut) => self.events.tell_once(Events::TIMED_OUT),
                // Of its virtual streams.
                Event::Readable | Event::Delivered | Event::Finished => {}
            }
        }
        if self.stream.is_delivered() {
            // The end of the HCM's stream carries the end of the actual one, reliably.
            self.hcm.finish();
            self.events.tell_once(Events::DELIVERED);
        }
        if self.assembly.is_finished() {
            self.events.tell_once(Events::FINISHED);
        }
    }

    // ---- what goes: the HCM ----

    /// Bytes that the HCM accepts.
    fn room(&self) -> u64 {
        let room = self.hcm.sender().room();
        match self.config.scavenger {
            Some(packets) => {
                let out = self.hcm.sender().board();
                let out = out.nxt() - out.una();
                room.min((u64::from(packets) * self.mss).saturating_sub(out))
            }
            None => room,
        }
    }

    /// Gives the HCM its next packet, when it accepts one (thesis §3.2.1).
    fn feed_high(&mut self, now: Time) {
        if self.hcm.unsent() > 0 {
            return;
        }
        let takes_new =
            self.config.scavenger.is_none() || self.lcm.is_off() || self.lcm.window().is_starved();
        let len = self.stream.next_len_for_high(takes_new);
        let room = self.room();
        if len == 0 {
            // Second notification.
            if takes_new && room >= self.mss && self.stream.is_held() {
                self.lcm.on_held(now, self.srtt());
                self.ask_later(now);
            }
        } else if room < len {
            if self.config.scavenger.is_none() {
                self.hcm.note_limited();
            }
        } else if let Some(range) = self.stream.take_for_high() {
            self.hcm.write(range.len());
        }
    }

    fn high(&mut self, packet: Packet) -> Option<Packet> {
        let Body::Tcp(segment) = packet.body else { return None };
        let actual = self.stream.map().actual(segment.seq).map_or(0, |run| run.start);
        Some(self.wrap(packet, segment, actual, false))
    }

    fn wrap(&mut self, packet: Packet, segment: Segment, actual: u64, asks: bool) -> Packet {
        let option = if self.config.hcm.header_len.is_some() { 0 } else { HIGH_OPTION_LEN };
        let (end, is_full) = (self.stream.end(), self.stream.is_full());
        let credit = self.credit();
        let header = Header::High(High { segment, actual, end, credit, is_full, asks });
        Packet { header_len: packet.header_len + option, body: Body::Plt(header), ..packet }
    }

    // ---- what goes: questions ----

    /// Nothing is on its way that could bring a larger window: it has to be asked for.
    fn ask_later(&mut self, now: Time) {
        if self.ask_at.is_none() && self.stream.una() == self.stream.nxt() {
            self.ask_wait = self.hcm.sender().timeout();
            self.ask_at = Some(now + self.ask_wait);
        }
    }

    /// A question is due: an empty packet that is answered at once.
    fn question(&mut self, now: Time) -> Option<Packet> {
        self.ask_at.filter(|at| *at <= now)?;
        self.ask_wait = (self.ask_wait * 2).min(ASK_MAX);
        self.ask_at = Some(now + self.ask_wait);
        self.asked += 1;
        let packet = self.hcm.bare(now);
        let Body::Tcp(segment) = packet.body else { return None };
        Some(self.wrap(packet, segment, 0, true))
    }

    // ---- what goes: the LCM ----

    fn report(&mut self, now: Time) -> Option<Packet> {
        let (assembly, is_off) = (&mut self.assembly, self.shutdown.is_off());
        let (report, is_high) = self.reports.poll(now, || assembly.credit(is_off))?;
        let class = if is_high { self.config.hcm.class } else { self.config.low_class };
        Some(self.packet(class, report_len(report.blocks_len), 0, Header::Report(report)))
    }

    fn packet(&self, class: Class, header_len: u16, payload_len: u32, header: Header) -> Packet {
        let header_len = self.config.hcm.header_len.unwrap_or(header_len);
        Packet { class, header_len, payload_len, xcp: None, body: Body::Plt(header) }
    }

    fn low(&mut self, now: Time) -> Option<Packet> {
        if self.lcm.is_off() {
            return None;
        }
        let rtt = self.srtt();
        if self.lcm.window().is_starved() {
            return self.probe_packet(now, rtt);
        }
        if let Some(first) = self.copies.first() {
            let len = first.len().min(self.mss);
            let may = self.lcm.may_send(now, len, rtt);
            let range = self.copies.pop(len).filter(|_| may)?;
            return Some(self.low_packet(now, range, true));
        }
        let resends = self.resends();
        let len = self.stream.next_len_for_low(resends);
        if len == 0 {
            self.lcm.is_idle();
            return self.copy_missing(now).then(|| self.low(now))?;
        }
        if !self.lcm.may_send(now, len, rtt) {
            return None;
        }
        let range = self.stream.take_for_low(resends)?;
        Some(self.low_packet(now, range, false))
    }

    /// Whether the LCM may send what it lost: the HCM's window is very small against that.
    fn resends(&self) -> bool {
        let window = self.hcm.sender().congestion().window();
        let can = sizing::can_resend(window, self.stream.lost_bytes(), self.mss as u32);
        self.config.resends && (!can || self.config.scavenger.is_some())
    }

    fn probe_packet(&mut self, now: Time, rtt: Duration) -> Option<Packet> {
        let copy = self.stream.first_of_high(self.hcm.sender().board().una());
        let len = copy.map_or_else(|| self.stream.next_len_for_low(true), |range| range.len());
        if len == 0 {
            self.lcm.is_idle();
            return None;
        }
        if !self.lcm.may_send(now, len, rtt) {
            return None;
        }
        let range = copy.or_else(|| self.stream.take_for_low(true))?;
        Some(self.low_packet(now, range, copy.is_some()))
    }

    fn low_packet(&mut self, now: Time, range: Range, is_copy: bool) -> Packet {
        let seq = self.lcm.send(now, range, is_copy, self.srtt());
        let (unknown, end, is_full) =
            (self.lcm.unknown(), self.stream.end(), self.stream.is_full());
        let low = Low { seq, actual: range.start, unknown, end, is_full, sent: now };
        let control = self.hcm.sender().congestion();
        let is_slow_start = control.window() < control.ssthresh();
        let class = self.config.slow_start_class.filter(|_| is_slow_start);
        let class = class.unwrap_or(self.config.low_class);
        self.packet(class, LOW_LEN, range.len() as u32, Header::Low(low))
    }

    /// When the stream counts as stuck.
    fn stuck_at(&self) -> Option<Time> {
        let is_waiting = self.stream.una() < self.stream.nxt();
        let can = self.config.copies && !self.lcm.is_off() && !self.srtt().is_zero();
        (is_waiting && can).then(|| self.moved + self.srtt() * STUCK_RTTS)
    }

    /// The receive window is used up and nothing moves, so copies cost nothing: of the first bytes
    /// that are missing, whoever is responsible for them, twice per round trip. Gives whether there
    /// are any.
    fn copy_missing(&mut self, now: Time) -> bool {
        let is_due = now >= self.copied.max(self.moved) + self.srtt() / 2;
        if !self.config.copies || !is_due || !self.stream.is_full() {
            return false;
        }
        self.copied = now;
        let una = self.stream.una();
        let before = una + self.stream.window() / 4;
        let missing = self.stream.lost_ranges().chain(self.stream.map().runs());
        let missing = missing.chain(self.lcm.responsible());
        for run in missing.filter(|run| run.end > una && run.start < before) {
            let run = Range { start: run.start.max(una), end: run.end.min(before) };
            if self.copies.bytes() < COPIES_MAX * self.mss {
                self.copies.insert(run);
            }
        }
        !self.copies.is_empty()
    }

    /// The stream is stuck at bytes that the HCM is responsible for: the LCM sends copies.
    fn copy_stuck(&mut self) {
        let una = self.stream.una();
        let holds = |run: &Range| run.start <= una && una < run.end;
        if !self.stream.map().runs().any(|run| holds(&run)) {
            return;
        }
        let mut left = COPIES_MAX * self.mss;
        for run in self.stream.map().runs().filter(|run| run.end > una) {
            let start = run.start.max(una);
            let run = Range { start, end: run.end.min(start + left) };
            left -= self.copies.insert(run).min(left);
            if left == 0 {
                return;
            }
        }
    }

    /// Panics when two are responsible for a byte. For tests.
    pub fn check_invariants(&self) {
        self.lcm.check_invariants();
        self.hcm.sender().board().check_invariants();
        let mut all = super::ranges::Ranges::default();
        let una = self.stream.una();
        let low = self.lcm.responsible().chain(self.stream.lost_ranges());
        for range in low.chain(self.stream.map().runs()) {
            let range = Range { start: range.start.max(una), ..range };
            assert_eq!(all.insert(range), range.len(), "twice: {range:?}");
        }
        assert!(all.last().is_none_or(|last| last.end <= self.stream.nxt()));
    }
}

impl Transport for Endpoint {
    fn open(&mut self, now: Time) {
        self.moved = now;
        self.hcm.open(now);
        self.note_ends();
    }

    fn handle(&mut self, now: Time, packet: Packet) {
        let Body::Plt(header) = &packet.body else { return };
        let hears = self.hcm.hears();
        match header.clone() {
            Header::High(high) => self.on_high(now, packet, &high),
            Header::Low(low) if hears => self.on_low(now, &low, packet.payload_len),
            Header::Report(report) if hears => self.on_report(now, &report),
            Header::Low(_) | Header::Report(_) => {}
        }
        self.note_ends();
    }

    fn handle_deadline(&mut self, now: Time) {
        self.hcm.handle_deadline(now);
        self.note_cutback();
        let (rtt, una) = (self.srtt(), self.stream.una());
        self.lcm.expire(now, rtt, una, self.stream.lost());
        if self.stuck_at().is_some_and(|at| at <= now) {
            self.moved = now;
            self.copy_stuck();
        }
        let may_speak = self.shutdown.handle_deadline(now);
        self.announce_if(may_speak);
        if self.asked > self.config.hcm.sending.timeouts_max {
            self.events.tell_once(Events::TIMED_OUT);
            self.hcm.abort(now);
        }
        self.note_ends();
    }

    fn next_deadline(&self) -> Option<Time> {
        let hcm = self.hcm.next_deadline();
        if !self.hcm.hears() {
            return hcm;
        }
        let low = earliest(self.lcm.next_deadline(self.srtt()), self.reports.next_deadline());
        let rest = earliest(self.stuck_at(), earliest(self.ask_at, self.shutdown.next_deadline()));
        earliest(hcm, earliest(low, rest))
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let is_established = self.hcm.is_established();
        if is_established {
            self.feed_high(now);
        }
        let map = self.stream.map();
        if let Some(packet) = self.hcm.poll_transmit_cut(now, |at| map.cut(at)) {
            return self.high(packet);
        }
        if !self.hcm.hears() {
            return None;
        }
        if let Some(report) = self.report(now) {
            return Some(report);
        }
        if !is_established {
            return None;
        }
        self.question(now).or_else(|| self.low(now))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    fn write(&mut self, bytes: u64) {
        self.stream.write(bytes);
    }

    fn finish(&mut self) {
        self.stream.finish();
        self.note_ends();
    }

    fn read(&mut self, bytes_max: u64) -> u64 {
        let (bytes, is_news) = self.assembly.read(bytes_max);
        self.announce_if(is_news);
        bytes
    }

    fn readable(&self) -> u64 {
        self.assembly.readable()
    }

    fn unsent(&self) -> u64 {
        self.stream.unsent()
    }

    fn abort(&mut self, now: Time) {
        self.hcm.abort(now);
    }

    fn probe(&self) -> Probe {
        let (hcm, low) = (self.hcm.probe(), self.lcm.counts());
        let sent = self.stream.nxt();
        Probe {
            flight: hcm.flight + self.lcm.flight(),
            sent,
            resent: (hcm.sent + hcm.resent + low.sent).saturating_sub(sent),
            acked: self.stream.una(),
            low_window: self.lcm.window().bytes(),
            low_sent: low.sent,
            low_lost: low.lost,
            low_mu: self.lcm.mu(),
            low_off_at: self.off_at,
            ..hcm
        }
    }
}

#[cfg(test)]
mod tests;
