//! What PLT's packets carry besides their bytes.
//!
//! Offsets are of three spaces: the *actual* stream, and the virtual streams of the HCM and the LCM
//! (thesis §3.2). A data packet names its place in its virtual stream and in the actual one; an
//! acknowledgement names places of the virtual stream that it is for (thesis §3.2).
//!
//! Deviation: every acknowledgement also tells what has arrived of the actual stream in order and
//! how much more may come. The receive window needs it, and an acknowledgement of one sub-flow makes
//! good for lost ones of the other.

use crate::time::Time;
use crate::transport::packet::{IP_LEN, Range, Segment};

/// The most blocks of an LCM acknowledgement: what the options of a TCP header have space for
/// beside a timestamp (thesis §3.2.4).
pub const BLOCKS_MAX: usize = 3;

/// The header of a PLT packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Header {
    /// HCM: a TCP segment in its virtual stream; data, acknowledgement or both.
    High(High),
    /// LCM: data.
    Low(Low),
    /// LCM: an acknowledgement.
    Report(Report),
}

/// What the receiver of a stream tells its sender with every acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Credit {
    /// All actual bytes before it have arrived.
    pub ack: u64,
    /// Actual bytes behind `ack` that may be sent.
    pub window: u64,
    /// The LCM must be silent: routers do not tell priorities apart (PLT-Shutdown).
    pub is_low_off: bool,
}

/// A packet of the HCM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct High {
    /// Its TCP segment. `seq`, `ack` and blocks are of the HCM's virtual stream.
    pub segment: Segment,
    /// The actual offset of the payload.
    pub actual: u64,
    /// The length of the actual stream, when the application has finished.
    pub end: Option<u64>,
    /// What the acknowledgement says of the actual stream of the other direction.
    pub credit: Credit,
    /// Whether the receive window ends behind the payload, or less than a packet later.
    pub is_full: bool,
    /// Whether the sender wants an answer at once: its window is closed and nothing is on its way.
    pub asks: bool,
}

/// A data packet of the LCM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Low {
    /// The offset of the payload in the LCM's virtual stream.
    pub seq: u64,
    /// The actual offset of the payload.
    pub actual: u64,
    /// `lseq`: the first virtual offset whose fate the sender does not know (thesis §3.2.2).
    pub unknown: u64,
    /// The length of the actual stream, when the application has finished.
    pub end: Option<u64>,
    /// Whether the receive window ends behind the payload, or less than a packet later.
    pub is_full: bool,
    /// When it was sent.
    pub sent: Time,
}

/// An acknowledgement of the LCM: of the virtual bytes from `from` to `to`, those in `blocks` have
/// arrived and the others have not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Report {
    /// Where it begins.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// What has arrived, sorted, without gaps in between that are not meant; `blocks_len` are meant.
    pub blocks: [Range; BLOCKS_MAX],
    /// How many of `blocks` are meant.
    pub blocks_len: u8,
    /// `sent` of the packet that it answers.
    pub echo: Option<Time>,
    /// What it says of the actual stream.
    pub credit: Credit,
}

impl Report {
    /// The blocks that are meant.
    pub fn blocks(&self) -> &[Range] {
        &self.blocks[..usize::from(self.blocks_len).min(BLOCKS_MAX)]
    }

    /// Whether it makes sense: blocks sorted, apart and within its bounds.
    pub fn is_sound(&self) -> bool {
        let mut at = self.from;
        let sorted = self.blocks().iter().all(|block| {
            let fits = block.start >= at && !block.is_empty();
            at = block.end;
            fits
        });
        sorted && at <= self.to
    }
}

/// PLT's option in an HCM packet: kind, length, actual offset of the payload or of the
/// acknowledgement, padding. The window is TCP's.
pub(super) const HIGH_OPTION_LEN: u16 = 8;
/// A TCP header with timestamps, and an option with actual offset and `lseq`.
pub(super) const LOW_LEN: u16 = IP_LEN as u16 + 20 + 12 + 12;
/// A TCP header with timestamps; `from` is its sequence number, `ack` and window are its own.
const REPORT_LEN: u16 = IP_LEN as u16 + 20 + 12;

/// The headers of an LCM acknowledgement with so many blocks.
pub(super) fn report_len(blocks: u8) -> u16 {
    REPORT_LEN + 4 + 8 * u16::from(blocks)
}
