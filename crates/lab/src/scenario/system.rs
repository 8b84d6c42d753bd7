//! What a scenario compares: transports of connections, and overlays that bring a file.

use super::read::{Bytes, Reader};
use super::source::Fault;
use super::tree::{Node, Value};
use anabranch_proto::overlay::bittorrent::{self, Pipelining, Priority};
use anabranch_proto::overlay::bullet_prime::Config;
use anabranch_proto::overlay::bullet_prime::order::RequestOrder;
use anabranch_proto::time::Duration;
use anabranch_proto::transport::plt::lcm::sender::Initial;
use anabranch_proto::transport::plt::shutdown::{self, Detector};
use anabranch_proto::transport::plt::{self, Buffer};

/// A system under test.
#[derive(Clone, PartialEq, Debug)]
pub struct System {
    /// Its label.
    pub name: String,
    /// What it is.
    pub kind: SystemKind,
}

/// What a system is.
#[derive(Clone, PartialEq, Debug)]
pub enum SystemKind {
    /// It moves bytes between two hosts.
    Transport(Transport),
    /// It moves a file from one host to many.
    Overlay(Overlay),
}

/// A transport and its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Transport {
    /// Which.
    pub kind: TransportKind,
    /// Payload of a full packet, bytes. Default 1,000, as the thesis has it (§3.3).
    pub payload: u32,
    /// Headers of every packet with IP's, bytes; `None`: by the options that it has.
    pub header: Option<u16>,
    /// What a receiver buffers, bytes; `None`: it never binds.
    pub receive_window: Option<u64>,
    /// Window at the start, packets. Default 10 (RFC 6928).
    pub initial_window: u32,
    /// Whether a connection is set up with a SYN. Default true.
    pub handshake: bool,
    /// Whether every second packet is acknowledged. Default true.
    pub delayed_ack: bool,
}

/// Which transport.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TransportKind {
    /// TCP with SACK and this congestion control.
    Tcp(TcpControl),
    /// FAST (Wei et al. 2006).
    Fast {
        /// Packets each flow keeps queued.
        alpha: u32,
        /// Whether it starts with multiplicative increase.
        mi: bool,
    },
    /// XCP (Katabi et al. 2002).
    Xcp,
    /// PLT (thesis ch. 3).
    Plt(Plt),
}

/// PLT's parameters that a scenario can vary.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plt {
    /// The congestion control of its HCM.
    pub hcm: PltControl,
    /// µ; the one that does not move, or the tuner's least.
    pub mu: f64,
    /// Whether µ follows the loss that is there anyway.
    pub tuner: bool,
    /// The bandwidth-delay product that the LCM's initial window is a tenth of.
    pub bdp: Bdp,
    /// The receive window in bandwidth-delay products of the path; `None`: by `receive_window`.
    pub window_bdps: Option<f64>,
    /// PLT-Short: a middle class in slow start.
    pub short: bool,
    /// One LCM acknowledgement in so many at the high priority.
    pub high_acks: u32,
    /// Packets that one LCM acknowledgement is for.
    pub ack_every: u32,
    /// The HCM carries only what must get through.
    pub scavenger: bool,
    /// PLT-Shutdown.
    pub shutdown: PltShutdown,
    /// See [`plt::Config::copies`].
    pub copies: bool,
}

/// What is known of a bandwidth-delay product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bdp {
    /// Nothing.
    Unknown,
    /// Bytes.
    Given(u64),
    /// That of the path, which the topology tells.
    Path,
}

/// The congestion control of an HCM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PltControl {
    /// One of TCP's.
    Tcp(TcpControl),
    /// FAST.
    Fast {
        /// Packets each flow keeps queued.
        alpha: u32,
    },
}

/// Which detector of PLT-Shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PltShutdown {
    /// None.
    Off,
    /// The thesis's.
    Losses,
    /// By the order of arrival.
    Order,
}

impl Plt {
    /// The endpoint's configuration for a path of `bdp` bytes; what all transports have in common
    /// is left to the caller.
    pub fn config(&self, bdp: u64) -> plt::Config {
        let mut config = plt::Config::default();
        config.lcm.tuner.mu = self.mu;
        if !self.tuner {
            config.lcm.tuner.mu_max = None;
        }
        match self.bdp {
            Bdp::Unknown => {}
            Bdp::Given(bytes) => config.lcm.initial = Initial::Bdp(bytes),
            Bdp::Path => config.lcm.initial = Initial::Bdp(bdp),
        }
        if let Some(times) = self.window_bdps {
            config.buffer = Buffer::Fixed((times * bdp as f64) as u64);
        }
        config.reports.every = self.ack_every;
        config.copies = self.copies;
        config.shutdown = match self.shutdown {
            PltShutdown::Off => {
                shutdown::Config { detector: Detector::Never, ..shutdown::Config::default() }
            }
            PltShutdown::Losses => shutdown::Config::as_in_thesis(),
            PltShutdown::Order => shutdown::Config::default(),
        };
        let config = config.n_ack(self.high_acks);
        let config = if self.short { config.short() } else { config };
        if self.scavenger { config.scavenger() } else { config }
    }
}

/// A congestion control of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpControl {
    /// RFC 5681, RFC 6582.
    NewReno,
    /// RFC 9438.
    Cubic,
}

/// An overlay and its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum Overlay {
    /// Bullet′ (Bullet §3.2).
    BulletPrime(BulletPrime),
    /// The source sends everything to everyone.
    Star,
    /// BitTorrent.
    BitTorrent(BitTorrent),
}

/// BitTorrent's parameters that a scenario can vary.
#[derive(Clone, PartialEq, Debug)]
pub struct BitTorrent {
    /// What becomes of begun pieces.
    pub priority: Priority,
    /// Requests outstanding at one peer.
    pub pipelining: Pipelining,
    /// Peers that are unchoked at once.
    pub upload_slots: u32,
    /// Bytes of a piece.
    pub piece: u32,
}

impl BitTorrent {
    /// The member's configuration.
    pub fn config(&self) -> bittorrent::Config {
        bittorrent::Config {
            priority: self.priority,
            pipelining: self.pipelining,
            upload_slots: self.upload_slots as usize,
            piece_len: self.piece,
            ..bittorrent::Config::default()
        }
    }
}

/// Bullet′'s parameters that a scenario can vary.
#[derive(Clone, PartialEq, Debug)]
pub struct BulletPrime {
    /// The order of requests.
    pub order: RequestOrder,
    /// A fixed number of senders and receivers; `None`: it adapts.
    pub peers: Option<u32>,
    /// Most senders.
    pub senders_max: Option<u32>,
    /// A fixed number of requests outstanding per sender; `None`: it adapts.
    pub outstanding: Option<u32>,
    /// See [`Config::catch_up`].
    pub catch_up: bool,
    /// See [`Config::spare_source`].
    pub spare_source: bool,
}

impl BulletPrime {
    /// The member's configuration.
    pub fn config(&self) -> Config {
        let mut config = Config {
            order: self.order,
            catch_up: self.catch_up,
            spare_source: self.spare_source,
            ..Config::default()
        };
        if let Some(peers) = self.peers {
            let peers = peers as usize;
            (config.peers_initial, config.peers_min, config.peers_max) = (peers, peers, peers);
            config.peers_adapt = false;
        }
        if let Some(most) = self.senders_max {
            config.senders_max = most as usize;
        }
        if let Some(outstanding) = self.outstanding {
            config.outstanding_initial = outstanding;
            config.outstanding_max = config.outstanding_max.max(outstanding);
            config.outstanding_adapt = false;
        }
        config
    }
}

/// Reads one entry of `[[system]]`; `set` is left to the document.
pub(super) fn read(node: &Node) -> Result<System, Fault> {
    let mut reader = Reader::of(node, "[[system]]")?;
    let name: String = reader.required("name")?;
    let _ = reader.node("set");
    let is_transport = reader.node("transport").is_some();
    let is_overlay = reader.node("overlay").is_some();
    let kind = match (is_transport, is_overlay) {
        (true, false) => SystemKind::Transport(read_transport(&mut reader)?),
        (false, true) => SystemKind::Overlay(read_overlay(&mut reader)?),
        (true, true) => {
            return Err(reader.fault(format!(
                "the system {name:?} has a `transport` and an `overlay`; keep the one that is compared"
            )));
        }
        (false, false) => {
            return Err(reader.fault(format!(
                "the system {name:?} needs `transport` (for connections) or `overlay` (for a file)"
            )));
        }
    };
    reader.finish()?;
    Ok(System { name, kind })
}

/// A workload's own transport, when it names one.
pub(super) fn read_own_transport(reader: &mut Reader<'_>) -> Result<Option<Transport>, Fault> {
    match reader.node("transport") {
        Some(_) => read_transport(reader).map(Some),
        None => Ok(None),
    }
}

#[derive(Clone, Copy)]
enum TransportWord {
    Tcp,
    Fast,
    Xcp,
    Plt,
}

fn read_transport(reader: &mut Reader<'_>) -> Result<Transport, Fault> {
    let words = [
        ("tcp", TransportWord::Tcp),
        ("fast", TransportWord::Fast),
        ("xcp", TransportWord::Xcp),
        ("plt", TransportWord::Plt),
    ];
    let kind = match reader.word("transport", &words)?.unwrap_or(TransportWord::Tcp) {
        TransportWord::Tcp => {
            let controls = [("newreno", TcpControl::NewReno), ("cubic", TcpControl::Cubic)];
            let control = reader.word("congestion", &controls)?;
            TransportKind::Tcp(control.unwrap_or(TcpControl::NewReno))
        }
        TransportWord::Fast => TransportKind::Fast {
            alpha: within(reader, "alpha", 100, 1, 1_000_000)?,
            mi: reader.or("mi", false)?,
        },
        TransportWord::Xcp => TransportKind::Xcp,
        TransportWord::Plt => TransportKind::Plt(read_plt(reader)?),
    };
    let Bytes(payload) = reader.or("payload", Bytes(1000))?;
    let payload = u32::try_from(payload).unwrap_or(u32::MAX);
    if !(40..=9000).contains(&payload) {
        return Err(Fault::new(&reader.span_of("payload"), "`payload` is from 40B to 9000B"));
    }
    let header: Option<Bytes> = reader.optional("header")?;
    let header = header.map(|Bytes(bytes)| bytes.clamp(20, 200) as u16);
    Ok(Transport {
        kind,
        payload,
        header,
        receive_window: reader.optional("receive_window")?.map(|Bytes(bytes)| bytes),
        initial_window: within(reader, "initial_window", 10, 1, 100)?,
        handshake: reader.or("handshake", true)?,
        delayed_ack: reader.or("delayed_ack", true)?,
    })
}

fn read_plt(reader: &mut Reader<'_>) -> Result<Plt, Fault> {
    let controls = [("newreno", 0), ("cubic", 1), ("fast", 2)];
    let hcm = match reader.word("hcm", &controls)?.unwrap_or(0) {
        0 => PltControl::Tcp(TcpControl::NewReno),
        1 => PltControl::Tcp(TcpControl::Cubic),
        _ => PltControl::Fast { alpha: within(reader, "alpha", 100, 1, 1_000_000)? },
    };
    let mu: f64 = reader.or("mu", 0.05)?;
    if !(0.0..=0.5).contains(&mu) {
        return Err(Fault::new(&reader.span_of("mu"), "`mu` is a share from 0 to 0.5"));
    }
    let window_bdps: Option<f64> = reader.optional("window_bdps")?;
    if window_bdps.is_some_and(|times| !(0.1..=1000.0).contains(&times)) {
        let text = "`window_bdps` is a number from 0.1 to 1000";
        return Err(Fault::new(&reader.span_of("window_bdps"), text));
    }
    let detectors =
        [("off", PltShutdown::Off), ("losses", PltShutdown::Losses), ("order", PltShutdown::Order)];
    Ok(Plt {
        hcm,
        mu,
        tuner: reader.or("tuner", true)?,
        bdp: match reader.node("bdp").map(|node| &node.value) {
            Some(Value::Text(text)) if text == "path" => Bdp::Path,
            _ => reader.optional("bdp")?.map_or(Bdp::Unknown, |Bytes(bytes)| Bdp::Given(bytes)),
        },
        window_bdps,
        short: reader.or("short", false)?,
        high_acks: within(reader, "high_acks", 5, 1, 1_000_000)?,
        ack_every: within(reader, "ack_every", 1, 1, 100)?,
        scavenger: reader.or("scavenger", false)?,
        shutdown: reader.word("shutdown", &detectors)?.unwrap_or(PltShutdown::Order),
        copies: reader.or("copies", true)?,
    })
}

#[derive(Clone, Copy)]
enum OverlayWord {
    BulletPrime,
    Star,
    BitTorrent,
}

fn read_overlay(reader: &mut Reader<'_>) -> Result<Overlay, Fault> {
    let words = [
        ("bullet-prime", OverlayWord::BulletPrime),
        ("star", OverlayWord::Star),
        ("bittorrent", OverlayWord::BitTorrent),
    ];
    Ok(match reader.word("overlay", &words)?.unwrap_or(OverlayWord::BulletPrime) {
        OverlayWord::Star => Overlay::Star,
        OverlayWord::BitTorrent => Overlay::BitTorrent(read_bittorrent(reader)?),
        OverlayWord::BulletPrime => Overlay::BulletPrime(read_bullet_prime(reader)?),
    })
}

fn read_bullet_prime(reader: &mut Reader<'_>) -> Result<BulletPrime, Fault> {
    let orders = [
        ("rarest-random", RequestOrder::RarestRandom),
        ("rarest", RequestOrder::Rarest),
        ("random", RequestOrder::Random),
        ("first", RequestOrder::FirstEncountered),
    ];
    Ok(BulletPrime {
        order: reader.word("request", &orders)?.unwrap_or_default(),
        peers: number_or_dynamic(reader, "peers", MOST)?,
        senders_max: match reader.optional::<u32>("senders_max")? {
            Some(0) => {
                return Err(Fault::new(
                    &reader.span_of("senders_max"),
                    "`senders_max` is at least 1",
                ));
            }
            most => most,
        },
        outstanding: number_or_dynamic(reader, "outstanding", MOST)?,
        catch_up: reader.or("catch_up", true)?,
        spare_source: reader.or("spare_source", true)?,
    })
}

fn read_bittorrent(reader: &mut Reader<'_>) -> Result<BitTorrent, Fault> {
    let default = bittorrent::Config::default();
    let priorities = [("rarest", Priority::Rarity), ("strict", Priority::Strict)];
    let outstanding = match reader.node("outstanding") {
        None => default.pipelining,
        Some(_) => match number_or_dynamic(reader, "outstanding", Pipelining::MOST as u32)? {
            Some(count) => Pipelining::Fixed(count as usize),
            None => Pipelining::Adaptive(PIPELINE),
        },
    };
    let slots = within(reader, "upload_slots", default.upload_slots as u32, 0, 1000)?;
    let Bytes(piece) = reader.or("piece", Bytes(u64::from(default.piece_len)))?;
    if !(PIECE_MIN..=PIECE_MAX).contains(&piece) {
        return Err(Fault::new(&reader.span_of("piece"), "`piece` is from 1KiB to 16MiB"));
    }
    Ok(BitTorrent {
        priority: reader.word("priority", &priorities)?.unwrap_or(default.priority),
        pipelining: outstanding,
        upload_slots: slots,
        piece: piece as u32,
    })
}

/// `"dynamic"`, or a number from 1 to `most`.
fn number_or_dynamic(
    reader: &mut Reader<'_>,
    key: &'static str,
    most: u32,
) -> Result<Option<u32>, Fault> {
    let Some(node) = reader.node(key) else { return Ok(None) };
    match &node.value {
        Value::Text(text) if text == "dynamic" => Ok(None),
        Value::Integer(number) if (1..=i64::from(most)).contains(number) => {
            Ok(Some(*number as u32))
        }
        other => Err(Fault::new(
            &node.span,
            format!("`{key}` is \"dynamic\" or a number from 1 to {most}, not {}", other.what()),
        )),
    }
}

/// A whole number within bounds.
fn within(
    reader: &mut Reader<'_>,
    key: &'static str,
    default: u32,
    least: u32,
    most: u32,
) -> Result<u32, Fault> {
    let number = reader.or(key, default)?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        let text = format!("`{key}` is {number}, and must be from {least} to {most}");
        Err(Fault::new(&reader.span_of(key), text))
    }
}

/// Most peers, and most requests outstanding, of Bullet′.
const MOST: u32 = 1000;
/// What BitTorrent's dynamic number of requests covers, as in clients of today.
const PIPELINE: Duration = Duration::from_secs(3);
const PIECE_MIN: u64 = 1024;
const PIECE_MAX: u64 = 16 * 1024 * 1024;
