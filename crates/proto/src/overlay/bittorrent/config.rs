//! BitTorrent's parameters.

use crate::time::Duration;

/// How many requests are outstanding at one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pipelining {
    /// Always so many sub-pieces (BEP 3: "five is a good default"; Cohen §2.3).
    Fixed(usize),
    /// As many sub-pieces as the peer delivers in this time, at least five and at most
    /// [`Pipelining::MOST`]: how clients since about 2010 fill long paths (theirs is 3 s).
    Adaptive(Duration),
}

impl Pipelining {
    /// The most requests outstanding at one peer.
    pub const MOST: usize = 500;
    /// The number of the paper, and the least of the adaptive kind.
    pub const FIVE: usize = 5;

    /// How many for a peer that delivers `rate` bytes per second in sub-pieces of `len` bytes.
    pub(super) fn limit(self, rate: f64, len: u32) -> usize {
        match self {
            Pipelining::Fixed(count) => count.clamp(1, Pipelining::MOST),
            Pipelining::Adaptive(span) => {
                let delivered = rate * span.as_secs_f64() / f64::from(len.max(1));
                (delivered as usize).clamp(Pipelining::FIVE, Pipelining::MOST)
            }
        }
    }
}

/// What becomes of pieces that are begun while rarer ones are to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// Begun pieces come before all others (Cohen §2.4.1).
    Strict,
    /// Begun pieces come before others that are as rare (libtorrent's order): a peer that alone has
    /// a piece is not asked for what many have.
    #[default]
    Rarity,
}

/// Whom a member that has everything unchokes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SeedUnchoke {
    /// Those that take most (BEP 3).
    Fastest,
    /// In turn: the longest unchoked makes room, in two rounds of three for one drawn at random
    /// (mainline since 4.0; Legout et al. 2006, §II.C.2).
    #[default]
    RoundRobin,
}

/// BitTorrent's parameters. The defaults are those of the mainline client of the paper's time
/// (Cohen 2003; Legout et al. 2006, §II and Table of parameters), except where a field says so.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of a piece, rounded to whole blocks: the unit that is announced and served. Default
    /// 256 KiB. Raised: less control, later sharing.
    pub piece_len: u32,
    /// Requests outstanding at one peer. Default five.
    pub pipelining: Pipelining,
    /// What becomes of begun pieces. Default rarity.
    pub priority: Priority,
    /// Whole pieces held before pieces are chosen by rarity instead of at random. Default 4.
    pub random_first: u32,
    /// Interested peers that are unchoked at once, the optimistic one among them. Default 4; zero
    /// makes a free rider.
    pub upload_slots: usize,
    /// How often chokes are decided. Default 10 s.
    pub choke_interval: Duration,
    /// After so many decisions the optimistic unchoke moves on. Default 3 (30 s).
    pub optimistic_rounds: u32,
    /// A peer that delivers nothing for so long has snubbed us. Default 60 s.
    pub snub_after: Duration,
    /// Whom a seed unchokes. Default round robin.
    pub seed_unchoke: SeedUnchoke,
    /// Most peers. Default 80.
    pub peers_max: usize,
    /// Peers beyond which none is dialled, so that others find room. Default 40.
    pub peers_dialled: usize,
    /// Fewer peers than this, and the tracker is asked again early. Default 20.
    pub peers_min: usize,
    /// Most peers that the tracker names at once. Default 50.
    pub peers_told: usize,
    /// How often a member announces itself. Default 30 min.
    pub announce_interval: Duration,
    /// How soon it announces itself again when it has few peers. Default 60 s (mainline waited
    /// five minutes: longer than most runs here).
    pub announce_early: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            piece_len: 256 * 1024,
            pipelining: Pipelining::Fixed(Pipelining::FIVE),
            priority: Priority::default(),
            random_first: 4,
            upload_slots: 4,
            choke_interval: Duration::from_secs(10),
            optimistic_rounds: 3,
            snub_after: Duration::from_secs(60),
            seed_unchoke: SeedUnchoke::default(),
            peers_max: 80,
            peers_dialled: 40,
            peers_min: 20,
            peers_told: 50,
            announce_interval: Duration::from_secs(30 * 60),
            announce_early: Duration::from_secs(60),
        }
    }
}
