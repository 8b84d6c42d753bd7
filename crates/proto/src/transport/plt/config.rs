//! What shapes a PLT endpoint, and the thesis's variants.

use super::assembly::Buffer;
use super::lcm::{receiver, sender, window};
use super::shutdown;
use crate::transport::packet::Class;
use crate::transport::tcp;

/// What shapes an endpoint. Both ends of a connection are configured alike. The defaults suit any
/// path; [`Config::as_in_thesis`] is for reproductions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The HCM: a TCP, with the class of its packets, the packet size, timers and set-up. Of its
    /// receiving half only delayed acknowledgements matter.
    pub hcm: tcp::Config,
    /// The LCM's sender.
    pub lcm: sender::Config,
    /// The LCM's reports.
    pub reports: receiver::Config,
    /// What the LCM's packets are to routers. Default lower effort.
    pub low_class: Class,
    /// PLT-Short: what they are while the HCM is in slow start (thesis §3.3.6). Default none: as
    /// always.
    pub slow_start_class: Option<Class>,
    /// The receive buffer.
    pub buffer: Buffer,
    /// Without a set-up: the window that the peer is taken to show, bytes. Default none: as large
    /// as the own one.
    pub peer_window: Option<u64>,
    /// Whether the LCM sends what it lost by itself while the HCM's window is too small for it
    /// (thesis §3.2.1, and eq. 3.3 for "very small"). Default yes.
    pub resends: bool,
    /// Whether the LCM sends copies of what the HCM is slow to bring over while the whole stream
    /// waits for it. Not in the thesis. Default yes.
    pub copies: bool,
    /// Scavenger: the most packets of the HCM on their way, which then carries only what the LCM
    /// lost, or cannot send at all. Default none: the HCM is a TCP like others.
    pub scavenger: Option<u32>,
    /// PLT-Shutdown.
    pub shutdown: shutdown::Config,
}

/// Payload of a full packet: an MTU of 1500 less the LCM's headers.
pub const MSS: u32 = 1436;

impl Default for Config {
    fn default() -> Config {
        let mut hcm = tcp::Config::default();
        hcm.sending.mss = MSS;
        Config {
            hcm,
            lcm: sender::Config::default(),
            reports: receiver::Config::default(),
            low_class: Class::LOWER_EFFORT,
            slow_start_class: None,
            buffer: Buffer::Auto { initial: 1 << 20, max: 64 << 20 },
            peer_window: None,
            resends: true,
            copies: true,
            scavenger: None,
            shutdown: shutdown::Config::default(),
        }
    }
}

impl Config {
    /// PLT as in the simulations of the thesis (§3.3.1): µ of 5% that does not move, an initial
    /// window of a tenth of the bandwidth-delay product, three of it as receive window, an HCM as in
    /// ns-2, no detector. The initial window of the HCM to go with it is two packets.
    pub fn as_in_thesis(mss: u32, bdp: u64) -> Config {
        let mut config = Config {
            hcm: tcp::Config::as_in_ns2(mss),
            buffer: Buffer::Fixed(3 * bdp),
            copies: true,
            ..Config::default()
        };
        config.lcm.initial = sender::Initial::Bdp(bdp);
        config.lcm.tuner.mu_max = None;
        config.lcm.window = window::Config::default();
        config.shutdown.detector = shutdown::Detector::Never;
        config
    }

    /// PLT-U: a receive window of 20 bandwidth-delay products (thesis §3.3.1).
    pub fn unlimited(mut self, bdp: u64) -> Config {
        self.buffer = Buffer::Fixed(20 * bdp);
        self
    }

    /// PLT-Short: three classes (thesis §3.3.6).
    pub fn short(mut self) -> Config {
        self.slow_start_class = Some(Class::MIDDLE);
        self
    }

    /// PLT-n-ACK: one LCM acknowledgement in `n` at the HCM's priority (thesis §3.3.1).
    pub fn n_ack(mut self, n: u32) -> Config {
        self.reports.high_every = n;
        self
    }

    /// For transfers that must not compete at all: the HCM has two packets on their way at most.
    pub fn scavenger(mut self) -> Config {
        self.scavenger = Some(2);
        self
    }

    /// Payload of a full packet, bytes.
    pub fn mss(&self) -> u32 {
        self.hcm.sending.mss
    }
}
