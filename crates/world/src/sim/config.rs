//! What a run is made of, beside its hosts.

use anabranch_proto::link::LinkConfig;
use anabranch_proto::overlay::{Overlay, Setup};
use anabranch_proto::time::Duration;

/// Makes a member: how a scenario chooses the system and its parameters.
pub type Factory = Box<dyn Fn(Setup) -> Box<dyn Overlay + Send> + Send>;

/// How frames travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wire {
    /// Max-min fair shares of host and path rates, then the path's delay.
    #[default]
    Fluid,
    /// The path's delay only, for control planes: a block on it fails the run.
    Latency,
    /// A pair of TCP endpoints over a packet-level network: see `Sim::over_packets`.
    Packet,
}

/// The congestion control of the packet wire's endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Congestion {
    /// CUBIC with HyStart, as hosts of today.
    #[default]
    Cubic,
    /// NewReno.
    NewReno,
}

impl std::str::FromStr for Congestion {
    type Err = String;
    fn from_str(name: &str) -> Result<Congestion, String> {
        match name {
            "cubic" => Ok(Congestion::Cubic),
            "newreno" => Ok(Congestion::NewReno),
            _ => Err(format!("unknown congestion control {name:?}: cubic or newreno")),
        }
    }
}

/// How often the fluid wire makes its rates anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quantum {
    /// A quarter of the time a fragment takes at the fastest host rate, within 50 µs and 5 ms.
    #[default]
    Adaptive,
    /// This long.
    Every(Duration),
    /// At every change: exact, slow with many flows.
    Exact,
}

/// Bytes that lower layers add to what a host sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overhead {
    /// None: rates are net of headers, as the bounds are.
    #[default]
    None,
    /// TLS records (22 bytes per 16 KiB begun) and TCP/IP headers (40 bytes per 1,460 begun). On the
    /// packet wire only the former: headers are there anyway.
    TlsTcp,
}

impl Overhead {
    /// For a parcel of so many frame bytes.
    pub(super) fn bytes(self, frame_bytes: u64) -> u64 {
        match self {
            Overhead::None => 0,
            Overhead::TlsTcp => {
                let sealed = frame_bytes + 22 * frame_bytes.div_ceil(16 * 1024);
                sealed - frame_bytes + 40 * sealed.div_ceil(1460)
            }
        }
    }
}

/// What a run is made of, beside its hosts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Everything random comes from it.
    pub seed: u64,
    /// Length of the content in bytes.
    pub content_len: u64,
    /// Length of a block in bytes.
    pub block_len: u32,
    /// How frames travel. Default fluid.
    pub wire: Wire,
    /// How often rates are made anew. Default adaptive; longer is faster and coarser.
    pub quantum: Quantum,
    /// What lower layers add. Default nothing.
    pub overhead: Overhead,
    /// On the packet wire: the congestion control. Default CUBIC.
    pub congestion: Congestion,
    /// The sessions' parameters.
    pub link: LinkConfig,
    /// A dial that meets silence fails after this long. Default 3 s.
    pub dial_timeout: Duration,
    /// Least time between two deadlines of one member: a timer's granularity. Default 50 µs.
    pub timer_step: Duration,
    /// Whether invariants are checked at every event. Default: in debug builds.
    pub check: bool,
    /// The interval of the series over time. Default 1 s.
    pub interval: Duration,
    /// Whether every host's arrivals of blocks are kept, 24 bytes each. Default no.
    pub arrivals: bool,
}

impl Config {
    /// The defaults for a content of `content_len` bytes in blocks of `block_len`.
    pub fn new(seed: u64, content_len: u64, block_len: u32) -> Config {
        Config {
            seed,
            content_len,
            block_len,
            wire: Wire::Fluid,
            quantum: Quantum::Adaptive,
            overhead: Overhead::None,
            congestion: Congestion::Cubic,
            link: LinkConfig::default(),
            dial_timeout: Duration::from_secs(3),
            timer_step: Duration::from_micros(50),
            check: cfg!(debug_assertions),
            interval: Duration::from_secs(1),
            arrivals: false,
        }
    }
}
