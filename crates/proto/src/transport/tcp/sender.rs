//! The sending half: what may be sent, what must be sent again, and when.
//!
//! It works on offsets in a stream and knows nothing of an application, of set-up, or of what
//! travels the other way, so it also serves a virtual sequence space (PLT's HCM). The window is the
//! business of any [`CongestionControl`]; which bytes are lost that of the [`Scoreboard`].
//!
//! ```text
//!          DupThresh blocks above a gap            una ≥ point
//!   Open ------------------------------> Recovery -------------> Open
//!     \------- retransmission time-out -----|
//!                                           v      una ≥ point
//!                                          Loss ---------------> Open
//! ```
//!
//! *Recovery* is RFC 6675 §5: the window is set once, and the pipe says when to send. In *Loss*
//! (RFC 6675 §5.1) all that is not acknowledged selectively counts as lost and is sent again in
//! slow start. A recovery or time-out whose first resent segment turns out to have arrived before
//! it was resent is undone: by its echoed timestamp (Eifel, RFC 3522) or by reports that all that
//! was resent arrived twice (RFC 3708).

mod acknowledged;
mod timely;

use super::rack::Rack;
use super::rto::{Limits, Rto};
use super::scoreboard::Scoreboard;
use super::tail_probe::TailProbe;
use crate::time::{Duration, Time, earliest};
use crate::transport::CongestionControl;
use crate::transport::packet::{Range, XcpHeader};

/// What shapes a sender. The defaults are those of a host of today on any path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload bytes of a full segment. Default 1448: an MTU of 1500 with timestamps.
    pub mss: u32,
    /// *DupThresh*: blocks, or segments, above a gap that make it a loss. Default 3 (RFC 6675 §2).
    /// Raised, more reordering is borne, and losses are found later.
    pub loss_threshold: u32,
    /// Whether segments that left the network before a loss is found let new ones go (RFC 3042).
    /// Default yes.
    pub limited_transmit: bool,
    /// Whether the loss of a retransmission is found by later arrivals (as in RFC 8985) and not by
    /// a time-out alone, as RFC 6675 leaves it. Default yes.
    pub finds_lost_resends: bool,
    /// Whether a recovery sends in proportion to what arrives until the window is as small as it
    /// has to be (RFC 6937, with slow start as its bound), as Linux does. RFC 6675 and ns-2 send
    /// nothing until the pipe has drained. Default yes.
    pub proportional: bool,
    /// Whether the last segment of a window is resent once when nothing else may be (RFC 6675 §4,
    /// rule 4). Default yes.
    pub rescues: bool,
    /// Whether losses are found by time too, and the end of a flight is probed (RFC 8985), as in
    /// Linux. Default yes.
    pub rack_tlp: bool,
    /// Whether reactions to losses that were none are undone (RFC 3522, RFC 3708). Default yes.
    pub undoes: bool,
    /// Whether the control is told when the sender was idle for a time-out (RFC 5681 §4.1).
    /// Default yes.
    pub idle_restart: bool,
    /// Segments that one acknowledgement may let go. Default none: the window limits.
    pub burst_max: Option<u32>,
    /// Limits of the retransmission time-out.
    pub rto: Limits,
    /// Time-outs in a row without anything new acknowledged before the connection fails. Default
    /// 15, as in Linux.
    pub timeouts_max: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1448,
            loss_threshold: 3,
            limited_transmit: true,
            finds_lost_resends: true,
            proportional: true,
            rescues: true,
            rack_tlp: true,
            undoes: true,
            idle_restart: true,
            burst_max: None,
            rto: Limits::default(),
            timeouts_max: 15,
        }
    }
}

/// A segment to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outgoing {
    /// Its payload.
    pub range: Range,
    /// Whether the stream ends behind it.
    pub fin: bool,
    /// Whether its payload was sent before.
    pub is_resent: bool,
    /// What the control writes to the routers.
    pub xcp: Option<XcpHeader>,
}

/// What a sender counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Bytes resent.
    pub resent: u64,
    /// Recoveries begun.
    pub recoveries: u64,
    /// Time-outs.
    pub timeouts: u64,
    /// Recoveries and time-outs undone.
    pub undone: u64,
    /// Tail loss probes.
    pub probes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    Recovery { point: u64 },
    Loss { point: u64 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    None,
    Wanted,
    Sent,
    Acked,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timer {
    Off,
    /// Something is unacknowledged.
    Resend(Time),
    /// The peer's window keeps everything back (RFC 9293 §3.8.6.1).
    Persist(Time),
}

impl Timer {
    fn at(self) -> Option<Time> {
        match self {
            Timer::Off => None,
            Timer::Resend(at) | Timer::Persist(at) => Some(at),
        }
    }
}

/// What tells whether the last reaction was a mistake.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// `una` when the reaction began.
    from: u64,
    /// When the first segment was resent.
    since: Option<Time>,
    /// Bytes resent since, less those that arrived twice.
    unconfirmed: u64,
}

/// Proportional rate reduction (RFC 6937 §3). Bytes.
#[derive(Clone, Copy, Debug)]
struct Proportion {
    /// *RecoverFS*: sent and not acknowledged in order when the recovery began.
    flight: u64,
    /// *prr_delivered*: known to have arrived since.
    delivered: u64,
    /// *prr_out*: sent since.
    out: u64,
    /// *sndcnt*: may go now.
    budget: u64,
}

impl Proportion {
    /// `news` bytes arrived; `pipe` are on their way and the window is to be `window`.
    fn update(&mut self, news: u64, pipe: u64, window: u64, mss: u64) {
        self.delivered += news;
        self.budget = if pipe > window {
            let share = u128::from(self.delivered) * u128::from(window);
            let due = share.div_ceil(u128::from(self.flight.max(1)));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            (window - pipe).min(self.delivered.saturating_sub(self.out).max(news) + mss)
        };
    }
}

/// See [the module](self).
#[derive(Debug)]
pub struct Sender {
    config: Config,
    congestion: Box<dyn CongestionControl>,
    board: Scoreboard,
    rto: Rto,
    /// The length of the stream so far.
    limit: u64,
    /// The peer lets go up to here.
    edge: u64,
    /// The largest window that the peer has shown.
    peer_window_max: u64,
    phase: Phase,
    fin: Fin,
    timer: Timer,
    /// The first segment of a recovery goes whatever the pipe says (RFC 6675 §5 step 4.3).
    must_resend: bool,
    must_probe: bool,
    /// A byte was sent into a closed window.
    is_probing: bool,
    rescued: bool,
    /// Acknowledgements that only brought blocks, since `una` moved.
    duplicates: u32,
    /// `nxt` when the window last kept something back.
    limited_at: u64,
    burst_left: u32,
    doubt: Option<Doubt>,
    /// In a recovery, unless the pipe alone rules.
    proportion: Option<Proportion>,
    last_sent: Time,
    rack: Rack,
    tail: TailProbe,
    counts: Counts,
}

impl Sender {
    /// A sender of an empty stream to a peer that lets `peer_window` bytes go.
    pub fn new(config: Config, congestion: Box<dyn CongestionControl>, peer_window: u64) -> Sender {
        Sender {
            board: Scoreboard::new(config.mss, config.loss_threshold),
            rto: Rto::new(config.rto),
            congestion,
            limit: 0,
            edge: peer_window,
            peer_window_max: peer_window,
            phase: Phase::Open,
            fin: Fin::None,
            timer: Timer::Off,
            must_resend: false,
            must_probe: false,
            is_probing: false,
            rescued: false,
            duplicates: 0,
            limited_at: 0,
            burst_left: config.burst_max.unwrap_or(u32::MAX),
            doubt: None,
            proportion: None,
            last_sent: Time::ZERO,
            rack: Rack::default(),
            tail: TailProbe::default(),
            counts: Counts::default(),
            config,
        }
    }

    /// Appends `bytes` to the stream.
    pub fn write(&mut self, bytes: u64) {
        if self.fin == Fin::None {
            self.limit = self.limit.saturating_add(bytes);
        }
    }

    /// The stream ends here.
    pub fn finish(&mut self) {
        if self.fin == Fin::None {
            self.fin = Fin::Wanted;
        }
    }

    /// The control, to look at.
    pub fn congestion(&self) -> &dyn CongestionControl {
        &*self.congestion
    }

    /// Bytes of the longest segment, options beside the timestamps included.
    pub fn mss(&self) -> u32 {
        self.config.mss
    }

    /// What is known of the bytes on their way.
    pub fn board(&self) -> &Scoreboard {
        &self.board
    }

    /// The timer's state, for the smoothed round-trip time, and for the set-up.
    pub fn rto(&mut self) -> &mut Rto {
        &mut self.rto
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.rto.srtt()
    }

    /// The retransmission time-out now.
    pub fn timeout(&self) -> Duration {
        self.rto.timeout()
    }

    /// What it counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes written and not sent even once.
    pub fn unsent(&self) -> u64 {
        self.limit - self.board.nxt()
    }

    /// Whether all that was written is acknowledged and no more will be.
    pub fn is_delivered(&self) -> bool {
        self.fin != Fin::None && self.board.una() == self.limit
    }

    /// Bytes that could be written now and would go at once. What hands out virtual sequence
    /// numbers asks this before it does.
    pub fn room(&self) -> u64 {
        let window = match &self.proportion {
            Some(proportion) => proportion.budget,
            None => self.congestion.window().saturating_sub(self.in_flight()),
        };
        let edge = self.edge.saturating_sub(self.board.nxt());
        if self.board.lost() > 0 { 0 } else { window.min(edge).saturating_sub(self.unsent()) }
    }

    /// When [`Sender::handle_deadline`] wants to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        earliest(self.timer.at(), self.timely_deadline())
    }

    // ---- the timer ----

    fn is_waiting(&self) -> bool {
        self.board.una() < self.board.nxt() || self.fin == Fin::Sent
    }

    fn restart_timer(&mut self, now: Time) {
        self.timer =
            if self.is_waiting() { Timer::Resend(now + self.rto.timeout()) } else { Timer::Off };
    }

    /// The deadline came, or an early call. Gives `false` when the peer is to be taken for gone.
    pub fn handle_deadline(&mut self, now: Time) -> bool {
        self.handle_timely(now);
        if self.timer.at().is_none_or(|at| now < at) {
            return true;
        }
        if self.rto.backoffs() >= self.config.timeouts_max {
            self.timer = Timer::Off;
            return false;
        }
        self.rto.back_off();
        self.burst_left = self.config.burst_max.unwrap_or(u32::MAX);
        match self.timer {
            Timer::Persist(_) => self.must_probe = true,
            _ if self.is_probing => self.send_all_again(),
            _ => self.time_out(now),
        }
        self.timer = Timer::Off;
        true
    }

    /// What is out has to go again, without a word to the control.
    fn send_all_again(&mut self) {
        self.board.lose_all();
        self.rack.rest();
        self.tail.stop();
        self.phase = Phase::Loss { point: self.board.nxt() };
        self.proportion = None;
        self.must_resend = true;
    }

    fn time_out(&mut self, now: Time) {
        let out = self.board.nxt() - self.board.una();
        self.counts.timeouts += 1;
        if out == 0 {
            // Only the end of the stream is missing.
            self.fin = Fin::Wanted;
            return;
        }
        self.send_all_again();
        self.duplicates = 0;
        // Later time-outs keep the question that the first one raised.
        let doubt = Doubt { from: self.board.una(), since: None, unconfirmed: 0 };
        self.doubt = match self.doubt {
            Some(doubt) if self.rto.backoffs() > 1 => Some(doubt),
            _ => self.config.undoes.then_some(doubt),
        };
        // A segment that times out again leaves the threshold alone (RFC 5681 §3.1).
        if self.rto.backoffs() <= 1 || self.congestion.window() > u64::from(self.config.mss) {
            self.congestion.on_timeout(now, out);
        }
    }

    // ---- sending ----

    /// The next segment, of at most `mss` less `options` bytes, if any may go now.
    pub fn poll_transmit(&mut self, now: Time, options: u32) -> Option<Outgoing> {
        self.poll_transmit_cut(now, options, |_| u64::MAX)
    }

    /// The next segment, for a stream whose bytes cannot share a segment everywhere: a segment that
    /// begins at an offset ends at `cut(offset)` at the latest, which lies behind the offset.
    pub fn poll_transmit_cut(
        &mut self,
        now: Time,
        options: u32,
        cut: impl Fn(u64) -> u64,
    ) -> Option<Outgoing> {
        if self.is_waiting() || self.unsent() > 0 || self.fin == Fin::Wanted {
            let (range, is_resent) = self.next_segment(now, options, &cut)?;
            return Some(self.send(now, range, is_resent));
        }
        None
    }

    /// What hands out bytes by [`Sender::room`] had more: the window limits.
    pub fn note_limited(&mut self) {
        self.limited_at = self.board.nxt().max(1);
    }

    /// *NextSeg* (RFC 6675 §4).
    fn next_segment(
        &mut self,
        now: Time,
        options: u32,
        cut: &impl Fn(u64) -> u64,
    ) -> Option<(Range, bool)> {
        let mss = u64::from(self.config.mss);
        let new_max = u64::from(self.config.mss.saturating_sub(options).max(1));
        if let Some(probe) = self.next_probe(new_max, cut) {
            return Some(probe);
        }
        let fits = self.fits(mss);
        let watched = self.config.finds_lost_resends;
        if self.board.lost() > 0 {
            if !(self.must_resend || (fits && self.burst_left > 0)) {
                self.limited_at = self.board.nxt();
                return None;
            }
            return self.board.resend_lost(now, watched, cut).map(|range| (range, true));
        }
        if let Some(range) = self.next_new(now, new_max, cut) {
            return Some((range, false));
        }
        if !matches!(self.phase, Phase::Recovery { .. }) || !fits || self.unsent() > 0 {
            return None;
        }
        if let Some(range) = self.board.resend_doubtful(now, watched, cut) {
            return Some((range, true));
        }
        if self.rescued || !self.config.rescues {
            return None;
        }
        self.rescued = true;
        self.last_segment(cut).map(|last| (last, true))
    }

    /// The last segment that is not acknowledged.
    fn last_segment(&self, cut: &impl Fn(u64) -> u64) -> Option<Range> {
        let mut last = self.board.last_segment()?;
        while cut(last.start) < last.end {
            last.start = cut(last.start);
        }
        Some(last)
    }

    /// The next bytes that were never sent, as far as both windows let them go.
    fn next_new(&mut self, now: Time, len_max: u64, cut: &impl Fn(u64) -> u64) -> Option<Range> {
        let nxt = self.board.nxt();
        let unsent = self.limit - nxt;
        if unsent == 0 {
            let is_end = self.fin == Fin::Wanted;
            return is_end.then_some(Range { start: nxt, end: nxt });
        }
        let len_max = len_max.min(cut(nxt).saturating_sub(nxt)).max(1);
        if std::mem::take(&mut self.must_probe) {
            // What fits, however little, or one byte beyond.
            self.is_probing = nxt >= self.edge;
            let end = self.edge.max(nxt + 1).min(nxt + len_max.min(unsent));
            return Some(Range { start: nxt, end });
        }
        let open = self.edge.saturating_sub(nxt);
        let len = len_max.min(unsent).min(open);
        // The sender's share of avoiding silly windows (RFC 9293 §3.8.6.2.1).
        let is_silly = len < len_max.min(unsent) && len < self.peer_window_max / 2;
        if len == 0 || is_silly {
            self.persist(now);
            return None;
        }
        self.restart_when_idle(now);
        if !self.fits(len) || self.burst_left == 0 {
            self.limited_at = nxt.max(1);
            return None;
        }
        Some(Range { start: nxt, end: nxt + len })
    }

    /// Nothing may go: without anything on its way, only the timer gets out of that.
    fn persist(&mut self, now: Time) {
        if !self.is_waiting() && self.timer == Timer::Off {
            self.timer = Timer::Persist(now + self.rto.timeout());
        }
    }

    fn restart_when_idle(&mut self, now: Time) {
        let idle = now.since(self.last_sent);
        if self.config.idle_restart
            && !self.is_waiting()
            && self.board.nxt() > 0
            && idle > self.rto.timeout()
        {
            self.congestion.on_idle(now, idle);
        }
    }

    /// Whether the window lets `len` bytes go.
    fn fits(&self, len: u64) -> bool {
        match &self.proportion {
            Some(proportion) => len <= proportion.budget,
            None => self.in_flight() + len <= self.congestion.window(),
        }
    }

    fn in_flight(&self) -> u64 {
        let keeps_sacked = !self.config.limited_transmit && self.phase == Phase::Open;
        self.board.pipe() + if keeps_sacked { self.board.sacked() } else { 0 }
    }

    fn send(&mut self, now: Time, range: Range, is_resent: bool) -> Outgoing {
        let len = range.end - range.start;
        let fin = self.fin != Fin::None && range.end == self.limit;
        if fin && self.fin == Fin::Wanted {
            self.fin = Fin::Sent;
        }
        if is_resent {
            self.counts.resent += len;
            if let Some(doubt) = &mut self.doubt {
                doubt.since.get_or_insert(now);
                doubt.unconfirmed += len;
            }
        } else {
            self.board.sent(len);
            if self.config.rack_tlp {
                self.rack.sent(now, range.end);
            }
        }
        // Deviation: resending the first segment restarts the timer, as in Linux. It would run out
        // in the midst of a recovery that goes well.
        let is_first = is_resent && range.start == self.board.una();
        if is_first || !matches!(self.timer, Timer::Resend(_)) {
            self.timer = Timer::Resend(now + self.rto.timeout());
        }
        if let Some(proportion) = &mut self.proportion {
            proportion.out += len;
            proportion.budget = proportion.budget.saturating_sub(len);
        }
        self.must_resend = false;
        self.burst_left = self.burst_left.saturating_sub(1);
        self.last_sent = now;
        self.schedule_probe(now);
        Outgoing { range, fin, is_resent, xcp: self.congestion.stamp(now, self.rto.srtt()) }
    }
}

#[cfg(test)]
mod tests;
