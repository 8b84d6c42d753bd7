//! What connections there are: groups that share a transport, flows of a group, and processes that
//! make flows as time goes by.

use crate::topology::NodeIx;
use anabranch_proto::random::{Rng, RngExt};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::congestion::{Choice, Start};
use anabranch_proto::transport::{Transport, plt, tcp, udp};

/// A group's number: its place in the order of [`add_group`](super::Flows::add_group).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupIx(pub u32);

/// A flow's number over all groups, in the order in which they were made; also `flow` of its
/// packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowIx(pub u32);

/// How the two ends of a flow are made.
#[expect(clippy::large_enum_variant, reason = "there is one per group, and it can be copied")]
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TransportSpec {
    /// A TCP pair; the source dials.
    Tcp(TcpSpec),
    /// A PLT pair; the source dials.
    Plt(PltSpec),
    /// A plain UDP source and a sink that counts. Its class is the configuration's.
    Udp(udp::Config),
}

/// A source and a sink of a byte stream.
pub(super) type Pair = (Box<dyn Transport>, Box<dyn Transport>);

/// A TCP pair, both ends configured alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpSpec {
    /// Its congestion control.
    pub congestion: Choice,
    /// Segments of the initial window. Default: 10 (RFC 6928).
    pub window_initial: u32,
    /// The initial slow-start threshold, bytes. Default: none.
    pub ssthresh: Option<u64>,
    /// Segment size, class, receive buffer, timers and the rest. Default: a host of today, but with
    /// a receive buffer of 2³² bytes, which does not bind.
    pub config: tcp::Config,
}

/// A receive buffer that does not bind.
const BUFFER: u64 = 1 << 32;

impl Default for TcpSpec {
    fn default() -> TcpSpec {
        let mut config = tcp::Config::default();
        config.receiving.buffer = BUFFER;
        TcpSpec { congestion: Choice::NewReno, window_initial: 10, ssthresh: None, config }
    }
}

impl TcpSpec {
    /// As ns-2 has it in the thesis (§3.3.1): [`tcp::Config::as_in_ns2`] with 1000 bytes of payload, and
    /// an initial window of two segments.
    pub fn ns2() -> TcpSpec {
        let mut config = tcp::Config::as_in_ns2(1000);
        config.receiving.buffer = BUFFER;
        TcpSpec { window_initial: 2, config, ..TcpSpec::default() }
    }

    /// Bytes of payload of a full segment.
    pub fn segment(&self) -> u32 {
        self.config.sending.mss
    }

    /// The source and the sink.
    pub(super) fn pair(&self) -> Pair {
        let (mss, window) = (self.segment(), self.window_initial);
        let start = Start { mss, window, ssthresh: self.ssthresh };
        let end = || Box::new(tcp::Endpoint::new(self.config, self.congestion.build(start)));
        (end(), end())
    }
}

/// A PLT pair, both ends configured alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PltSpec {
    /// The congestion control of its HCM.
    pub congestion: Choice,
    /// Segments of the HCM's initial window. Default: 10 (RFC 6928).
    pub window_initial: u32,
    /// Everything else. Default: [`plt::Config::default`].
    pub config: plt::Config,
}

impl Default for PltSpec {
    fn default() -> PltSpec {
        let config = plt::Config::default();
        PltSpec { congestion: Choice::NewReno, window_initial: 10, config }
    }
}

impl PltSpec {
    /// As in the thesis's simulations (§3.3.1): [`plt::Config::as_in_thesis`] with 1000 bytes of
    /// payload for a path of this bandwidth-delay product, bytes, and an initial window of two
    /// segments.
    pub fn thesis(bdp: u64) -> PltSpec {
        let config = plt::Config::as_in_thesis(1000, bdp);
        PltSpec { window_initial: 2, config, ..PltSpec::default() }
    }

    /// Bytes of payload of a full segment.
    pub fn segment(&self) -> u32 {
        self.config.mss()
    }

    /// The source and the sink.
    pub(super) fn pair(&self) -> Pair {
        let start = Start { mss: self.segment(), window: self.window_initial, ssthresh: None };
        let end = || Box::new(plt::Endpoint::new(self.config, self.congestion.build(start)));
        (end(), end())
    }
}

impl TransportSpec {
    /// A TCP pair by the name of its congestion control, all else as in `tcp`; `None` for a name
    /// that is not in [`Choice::NAMES`]. UDP sources need a rate and so have no name.
    pub fn named(name: &str, tcp: TcpSpec) -> Option<TransportSpec> {
        let congestion = Choice::named(name)?;
        Some(TransportSpec::Tcp(TcpSpec { congestion, ..tcp }))
    }

    /// Its name in tables.
    pub fn name(&self) -> &'static str {
        match self {
            TransportSpec::Tcp(tcp) => tcp.congestion.name(),
            TransportSpec::Plt(_) => "plt",
            TransportSpec::Udp(_) => "udp",
        }
    }
}

/// Flows that share a transport and a name.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Its name: with a flow's number in the group it seeds what is random about the flow.
    pub name: String,
    /// Its flows' transport.
    pub transport: TransportSpec,
    /// Whether its flows are sampled, when anything is.
    pub is_sampled: bool,
}

/// One flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowSpec {
    /// The host that sends.
    pub from: NodeIx,
    /// The host that receives.
    pub to: NodeIx,
    /// When it begins.
    pub start: Time,
    /// When it is given up, finished or not: both ends vanish.
    pub stop: Option<Time>,
    /// Bytes of payload; `None`: without end. Not used by UDP sources, which send until `stop`.
    pub bytes: Option<u64>,
}

/// Several like flows.
#[derive(Clone, PartialEq, Debug)]
pub struct Bulk {
    /// How many.
    pub count: u32,
    /// From whom to whom: flow n takes entry n modulo their number.
    pub pairs: Vec<(NodeIx, NodeIx)>,
    /// When the first begins.
    pub start: Time,
    /// How much later each begins than the one before.
    pub stagger: Duration,
    /// When all are given up.
    pub stop: Option<Time>,
    /// Bytes of payload of each; `None`: without end.
    pub bytes: Option<u64>,
}

/// Flows that arrive as a Poisson process with Pareto sizes: the papers' mice (thesis §3.3.5).
///
/// Of a UDP group each flow sends for as long as its size takes at its mean rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrivals {
    /// From whom to whom: each flow draws one uniformly.
    pub pairs: Vec<(NodeIx, NodeIx)>,
    /// Flows per second in the mean.
    pub rate: f64,
    /// How large they are.
    pub size: Sizes,
    /// When the process begins.
    pub start: Time,
    /// When it ends; flows that have begun go on.
    pub stop: Time,
}

/// Pareto sizes in packets of a full segment: `minimum · u^(-1/shape)`, rounded, at least 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sizes {
    /// The mean, in packets. Thesis: 25.
    pub mean: f64,
    /// The shape, above 1. The thesis does not say; web traffic has about 1.2 (Crovella, Bestavros
    /// 1997), ns-2's default is 1.5. Lower: a heavier tail.
    pub shape: f64,
    /// The most packets of a flow; cuts the tail, and so the mean.
    pub max: u64,
}

impl Sizes {
    /// Sizes of this mean and shape without a bound that matters: 10⁹ packets.
    pub fn new(mean: f64, shape: f64) -> Sizes {
        Sizes { mean, shape, max: 1_000_000_000 }
    }

    /// The least size, before rounding.
    pub fn minimum(&self) -> f64 {
        self.mean * (self.shape - 1.0) / self.shape
    }

    /// Draws a size, in packets.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let uniform: f64 = rng.random();
        let size = self.minimum() * libm::pow(1.0 - uniform, -1.0 / self.shape);
        ((size + 0.5) as u64).clamp(1, self.max.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::random::stream;

    #[test]
    fn sizes_have_the_mean_and_the_tail_of_their_pareto_distribution() {
        let sizes = Sizes::new(25.0, 2.5);
        let mut rng = stream(1, "mice", "sizes");
        let drawn: Vec<u64> = (0..400_000).map(|_| sizes.draw(&mut rng)).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        assert!((mean - 25.0).abs() < 0.3, "{mean}");
        assert_eq!(drawn.iter().min(), Some(&15)); // 25 · 1.5 / 2.5
        let beyond = drawn.iter().filter(|&&size| size >= 150).count() as f64;
        let expected = libm::pow(149.5 / 15.0, -2.5) * drawn.len() as f64;
        assert!((beyond / expected - 1.0).abs() < 0.1, "{beyond} of {expected}");
    }
}
