//! Plain UDP: sources that send by the clock and listen to nobody, and a sink that counts.
//!
//! They are the cross traffic of the papers' experiments (thesis §3.3.7: exponential on-off, mean
//! on and off 50 ms) and the arrivals of queueing theory. A source is no [`Transport`]: it has no
//! stream, no set-up and no answer. Drain rule: at or after [`Source::next_deadline`], pull
//! [`Source::poll_transmit`] until it gives nothing.
//!
//! [`Transport`]: super::Transport

use super::packet::{Body, Class, IP_LEN, Packet};
use crate::random::{Rng, RngExt};
use crate::time::{Duration, Time};

/// Bytes of the IPv4 and UDP headers.
pub const HEADER_LEN: u16 = IP_LEN as u16 + 8;

/// When a source sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// At equal distances.
    Constant,
    /// At exponentially distributed distances: a Poisson process.
    Poisson,
    /// At equal distances during a burst of exponentially distributed length, then not at all for an
    /// exponentially distributed time. It begins with a burst, and a burst has at least a packet.
    OnOff {
        /// Mean length of a burst.
        on: Duration,
        /// Mean length of a pause.
        off: Duration,
    },
}

/// The parameters of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// When it sends.
    pub pattern: Pattern,
    /// Bytes per second on the wire, headers included; of a burst, in `OnOff`. Zero counts as one.
    pub rate: u64,
    /// Bytes of payload of each packet.
    pub payload: u32,
    /// The packets' class.
    pub class: Class,
}

impl Config {
    /// Bytes of a packet on the wire.
    pub fn packet_len(&self) -> u32 {
        self.payload + u32::from(HEADER_LEN)
    }

    /// Bytes per second in the long run.
    pub fn rate_mean(&self) -> f64 {
        match self.pattern {
            Pattern::Constant | Pattern::Poisson => self.rate as f64,
            Pattern::OnOff { on, off } => {
                let (on, off) = (on.as_secs_f64(), off.as_secs_f64());
                self.rate as f64 * on / (on + off)
            }
        }
    }
}

/// A source of datagrams. See [the module](self).
#[derive(Debug)]
pub struct Source {
    config: Config,
    rng: Rng,
    /// When the next packet is due.
    next: Time,
    /// Packets until the pause, in `OnOff`.
    burst: u64,
    /// Packets sent since `epoch`; distances are counted from there, so that none is rounded twice.
    step: u64,
    epoch: Time,
    sent: u64,
}

impl Source {
    /// A source that begins at `start`; `rng` is its own.
    pub fn new(config: Config, start: Time, rng: Rng) -> Source {
        let (next, epoch) = (start, start);
        let mut source = Source { config, rng, next, burst: 0, step: 0, epoch, sent: 0 };
        match config.pattern {
            Pattern::Constant => {}
            Pattern::Poisson => source.next = start + source.exponential(source.distance()),
            Pattern::OnOff { on, .. } => source.burst = source.burst_len(on),
        }
        source
    }

    /// When the next packet is due.
    pub fn next_deadline(&self) -> Time {
        self.next
    }

    /// The next packet, if it is due.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if now < self.next {
            return None;
        }
        let body = Body::Datagram { number: self.sent, sent: now };
        self.sent += 1;
        self.advance();
        Some(Packet {
            class: self.config.class,
            header_len: HEADER_LEN,
            payload_len: self.config.payload,
            xcp: None,
            body,
        })
    }

    /// Packets sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes of payload sent so far.
    pub fn sent_bytes(&self) -> u64 {
        self.sent.saturating_mul(u64::from(self.config.payload))
    }

    fn advance(&mut self) {
        match self.config.pattern {
            Pattern::Constant => self.step(),
            Pattern::Poisson => {
                let wait = self.exponential(self.distance());
                self.next += wait;
            }
            Pattern::OnOff { on, off } => {
                self.step();
                self.burst -= 1;
                if self.burst == 0 {
                    self.burst = self.burst_len(on);
                    self.epoch = self.next + self.exponential(off);
                    self.next = self.epoch;
                    self.step = 0;
                }
            }
        }
    }

    /// To the next place of an even grid.
    fn step(&mut self) {
        self.step += 1;
        let bytes = u128::from(self.step) * u128::from(self.config.packet_len());
        let nanos = bytes * 1_000_000_000 / u128::from(self.config.rate.max(1));
        self.next = self.epoch + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    }

    fn distance(&self) -> Duration {
        let nanos = u64::from(self.config.packet_len()) * 1_000_000_000;
        Duration::from_nanos(nanos / self.config.rate.max(1))
    }

    fn burst_len(&mut self, mean: Duration) -> u64 {
        let len = self.exponential(mean).as_secs_f64();
        let distance = f64::from(self.config.packet_len()) / self.config.rate.max(1) as f64;
        // Half is added so that it rounds; platform rounding is not needed.
        ((len / distance + 0.5) as u64).max(1)
    }

    fn exponential(&mut self, mean: Duration) -> Duration {
        exponential(&mut self.rng, mean)
    }
}

/// An exponentially distributed time with this mean; at most 37 times the mean.
pub fn exponential(rng: &mut Rng, mean: Duration) -> Duration {
    let uniform: f64 = rng.random();
    // 1 - u is above 0, as u is below 1.
    Duration::from_nanos((-libm::log(1.0 - uniform) * mean.as_secs_f64() * 1e9) as u64)
}

/// What arrived of a source's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sink {
    /// Packets that arrived.
    pub packets: u64,
    /// Bytes of payload that arrived.
    pub bytes: u64,
    /// One more than the highest number that arrived: what the source is known to have sent.
    pub sent: u64,
    /// Packets that arrived behind one with a higher number.
    pub reordered: u64,
    /// All packets' one-way delays together.
    pub delay_sum: Duration,
    /// The longest one-way delay.
    pub delay_max: Duration,
}

impl Sink {
    /// Counts a packet that arrived; packets other than datagrams are left alone.
    pub fn handle(&mut self, now: Time, packet: &Packet) {
        let Body::Datagram { number, sent } = packet.body else {
            return;
        };
        let delay = now.since(sent);
        self.packets += 1;
        self.bytes += u64::from(packet.payload_len);
        self.reordered += u64::from(number < self.sent);
        self.sent = self.sent.max(number.saturating_add(1));
        self.delay_sum = self.delay_sum.saturating_add(delay);
        self.delay_max = self.delay_max.max(delay);
    }

    /// Packets that are known to be missing.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.packets)
    }

    /// The mean one-way delay; zero when nothing arrived.
    pub fn delay_mean(&self) -> Duration {
        match u128::from(self.packets) {
            0 => Duration::ZERO,
            n => Duration::from_nanos((self.delay_sum.as_nanos() / n) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    const START: Time = Time(1_000_000_000);

    fn config(pattern: Pattern) -> Config {
        Config { pattern, rate: 1_250_000, payload: 972, class: Class::BEST_EFFORT }
    }

    fn times(config: Config, seconds: u64) -> Vec<Time> {
        let mut source = Source::new(config, START, stream(1, "udp", "test"));
        let mut times = Vec::new();
        while source.next_deadline() < START + Duration::from_secs(seconds) {
            let now = source.next_deadline();
            assert!(source.poll_transmit(now - Duration::from_nanos(1)).is_none());
            let packet = source.poll_transmit(now).unwrap();
            assert_eq!(packet.len(), 1000);
            times.push(now);
        }
        times
    }

    #[test]
    fn a_constant_source_never_drifts_from_its_rate() {
        let odd = Config { rate: 1_234_567, ..config(Pattern::Constant) };
        let times = times(odd, 100);
        assert_eq!(times.len(), 123_457);
        for (n, time) in times.iter().enumerate() {
            let nanos = n as u64 * 1000 * 1_000_000_000 / 1_234_567;
            assert_eq!(*time, START + Duration::from_nanos(nanos));
        }
    }

    #[test]
    fn poisson_distances_have_the_mean_and_the_variance_of_the_exponential() {
        let times = times(config(Pattern::Poisson), 200);
        let gaps: Vec<f64> =
            times.windows(2).map(|t| t[1].since(t[0]).as_secs_f64() / 0.0008).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let variance = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn an_on_off_source_sends_at_its_rate_in_bursts_and_has_its_mean_in_the_long_run() {
        let ms = Duration::from_millis;
        let config = config(Pattern::OnOff { on: ms(50), off: ms(50) });
        let times = times(config, 2000);
        let within = Duration::from_micros(801);
        let gaps: Vec<Duration> = times.windows(2).map(|t| t[1].since(t[0])).collect();
        assert!(gaps.iter().all(|gap| *gap >= Duration::from_micros(799)));
        let bursts = gaps.iter().filter(|gap| **gap > within).count();
        assert!((19_000..21_000).contains(&bursts), "{bursts}");
        let rate = times.len() as f64 * 1000.0 / 2000.0;
        assert!((rate / config.rate_mean() - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn a_sink_tells_what_is_missing_late_and_out_of_order() {
        let mut sink = Sink::default();
        let mut source = Source::new(config(Pattern::Constant), Time::ZERO, stream(1, "a", "b"));
        let packets: Vec<Packet> =
            (0..5).map(|_| source.poll_transmit(source.next_deadline()).unwrap()).collect();
        for (n, millis) in [(0, 10), (3, 20), (2, 21)] {
            sink.handle(Time(millis * 1_000_000), &packets[n]);
        }
        assert_eq!((sink.packets, sink.bytes, sink.sent), (3, 3 * 972, 4));
        assert_eq!((sink.lost(), sink.reordered), (1, 1));
        assert_eq!(sink.delay_max, Duration::from_nanos(21_000_000 - 2 * 800_000));
        assert_eq!(sink.delay_mean(), Duration::from_nanos((51_000_000 - 5 * 800_000) / 3));
    }
}
