//! Bullet′'s parameters.

use super::order::RequestOrder;
use crate::membership::{ransub, tree};
use crate::summary::SummaryKind;
use crate::time::Duration;

/// What a request finds in front of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InFront {
    /// The queued requests of its own receiver (the paper).
    Receiver,
    /// The queued requests of all receivers: they share the uplink.
    #[default]
    Uplink,
}

/// Bullet′'s parameters; the defaults are the paper's where it gives one, and suit groups of 2 to
/// 10,000 members on links from 100 kb/s to 10 Gb/s.
#[derive(Clone, Debug)]
pub struct Config {
    /// The control tree.
    pub tree: tree::Config,
    /// RanSub over it.
    pub ransub: ransub::Config,
    /// Which summary contents of more than 960 blocks get.
    pub summary: SummaryKind,
    /// In which order blocks are asked for. Default rarest-random.
    pub order: RequestOrder,
    /// Senders and receivers at the start. Default 10 (Bullet §4.2.3.2).
    pub peers_initial: usize,
    /// Fewest senders and receivers that adaptation leaves. Default 6.
    pub peers_min: usize,
    /// Most senders, and most receivers. Default 25.
    pub peers_max: usize,
    /// Most senders, when fewer than `peers_max` (Bullet §5.11 has 5). Default 25.
    pub senders_max: usize,
    /// In a group of at most so many members everybody starts with everybody as peer, when the mean
    /// round trip is longer than `long_path`. Default 25, as many as one may have; the paper's is 0.
    pub everybody_max: usize,
    /// See `everybody_max`. Default 100 ms.
    pub long_path: Duration,
    /// Whether the numbers of peers adapt (Fig. 5). Default true.
    pub peers_adapt: bool,
    /// How often peers are judged, and the span over which their bandwidth is compared; RanSub
    /// epochs shorter than this do not speed judgement up. Default 5 s.
    pub judge_interval: Duration,
    /// Peers this many standard deviations below the mean are dropped. Default 1.5.
    pub prune_sigma: f64,
    /// Requests outstanding per sender at the start. Default 3 (Bullet §4.3.3.2).
    pub outstanding_initial: u32,
    /// Most requests outstanding per sender. Default 50, the paper's largest fixed setting.
    pub outstanding_max: u32,
    /// Whether the number of outstanding requests adapts (Fig. 7). Default true.
    pub outstanding_adapt: bool,
    /// Whether a member that holds clearly less than its senders asks each for one block more.
    /// Default true (not in the paper).
    pub catch_up: bool,
    /// Whether a block that is long in coming at the end is asked of a second sender at once, and not
    /// only when the first has given it back. Default true (not in the paper).
    pub races_at_end: bool,
    /// Whether a source that is no faster than other senders is only asked for what no other has.
    /// Default true (not in the paper).
    pub spare_source: bool,
    /// What `in_front` counts. Default [`InFront::Uplink`]; the paper's is [`InFront::Receiver`].
    pub in_front: InFront,
    /// How many links one member may keep that neither tree nor peering uses, in time: they are
    /// closed after this long. Default 10 s.
    pub link_idle: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tree: tree::Config::default(),
            ransub: ransub::Config::default(),
            summary: SummaryKind::default(),
            order: RequestOrder::default(),
            peers_initial: 10,
            peers_min: 6,
            peers_max: 25,
            senders_max: 25,
            everybody_max: 25,
            long_path: Duration::from_millis(100),
            peers_adapt: true,
            judge_interval: Duration::from_secs(5),
            prune_sigma: 1.5,
            outstanding_initial: 3,
            outstanding_max: 50,
            outstanding_adapt: true,
            catch_up: true,
            races_at_end: true,
            spare_source: true,
            in_front: InFront::default(),
            link_idle: Duration::from_secs(10),
        }
    }
}
