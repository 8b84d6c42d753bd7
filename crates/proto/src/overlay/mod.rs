//! One member of one group: who sends which block to whom.
//!
//! **The contract.** A driver hands a member one [`Input`] at a time with a [`Ctx`], drains
//! `ctx.out` afterwards, and calls [`Overlay::handle`] with [`Input::Deadline`] no earlier than
//! [`Overlay::next_deadline`] (late is normal, early harmless). Time never goes back. A member
//! names blocks and never sees their bytes: the driver moves, checks and stores them, so nothing
//! that was not verified can be forwarded.
//!
//! **Sending a block** is the one call that answers at once: [`Ctx::try_send_block`] says
//! accepted (and the link never refuses that block later) or no room; after a refusal exactly one
//! [`Input::Room`] follows for that link. That is ROMA's forward-when-feasible, Bullet's
//! non-blocking send and Bullet′'s one block in front of the socket.
//!
//! Which systems fit, walked through on paper: `docs/architecture.md`.

pub mod bittorrent;
pub mod bullet_prime;
pub mod directory;
pub mod star;

use crate::id::{BlockIndex, Contact, LinkClass, LinkId, PeerId, PeerInfo};
use crate::random::Rng;
use crate::summary::Bitmap;
use crate::time::{Duration, Time};
use serde::{Deserialize, Serialize};

/// What a member is told when it is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// This member.
    pub me: PeerInfo,
    /// Who made the content: the member with this key is the source.
    pub source: PeerId,
    /// Members to join through, most promising first; the ticket's contacts. A source that returns
    /// names the members it knew.
    pub bootstrap: Vec<PeerInfo>,
}

impl Setup {
    /// Whether this member is the source.
    pub fn is_source(&self) -> bool {
        self.me.id == self.source
    }
}

/// The systems a group can run; a group's is fixed in its signed parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum System {
    /// A mesh in which receivers pull from each other (Bullet §3.2).
    #[default]
    BulletPrime,
    /// The source sends everything to everyone: the unicast baseline.
    Star,
    /// Pieces asked of many peers, rarest first, served tit for tat (Cohen 2003): a rival.
    BitTorrent,
}

impl System {
    /// A new member of this system, with the system's default parameters.
    pub fn member(self, setup: Setup) -> Box<dyn Overlay + Send> {
        match self {
            System::BulletPrime => {
                Box::new(bullet_prime::BulletPrime::new(setup, bullet_prime::Config::default()))
            }
            System::Star => Box::new(star::Star::new(setup)),
            System::BitTorrent => {
                Box::new(bittorrent::BitTorrent::new(setup, bittorrent::Config::default()))
            }
        }
    }

    /// All systems.
    pub const ALL: [System; 3] = [System::BulletPrime, System::Star, System::BitTorrent];

    /// Its name, as `--system` takes it and `FromStr` reads it.
    pub fn name(self) -> &'static str {
        match self {
            System::BulletPrime => "bullet-prime",
            System::Star => "star",
            System::BitTorrent => "bittorrent",
        }
    }

    /// Whether it is offered for real transfers; the others are rivals in the simulator only.
    pub fn is_offered(self) -> bool {
        self != System::BitTorrent
    }
}

impl std::str::FromStr for System {
    type Err = String;
    fn from_str(name: &str) -> Result<System, String> {
        System::ALL
            .into_iter()
            .find(|system| system.name() == name)
            .ok_or_else(|| format!("unknown system {name:?}: bullet-prime, star or bittorrent"))
    }
}

/// A member of a group: a state machine over [`Input`]s.
pub trait Overlay {
    /// Handles one input; what it wants done is appended to `ctx.out`.
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input);

    /// When the member next wants [`Input::Deadline`]; `None` when it waits for other input only.
    fn next_deadline(&self) -> Option<Time>;

    /// What the member has counted so far.
    fn stats(&self) -> &Stats;

    /// Checks what must hold between inputs; the sentence says what does not.
    fn check_invariants(&self, holdings: &Holdings) -> Result<(), String>;

    /// Live members that a new ticket may name, best first: the join point and known peers.
    fn contacts(&self) -> Vec<PeerInfo>;
}

/// What can happen to a member.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// The member may begin.
    Start,
    /// A link is ready in both directions, whoever dialled.
    LinkUp {
        /// The new link.
        link: LinkId,
        /// Who is at its far end (proved, not claimed).
        peer: PeerId,
        /// How to reach that peer by a new connection, as it says itself.
        contact: Contact,
        /// How the link treats blocks.
        class: LinkClass,
        /// Whether this member dialled it.
        dialled: bool,
    },
    /// A link is gone, with everything accepted on it and not yet delivered.
    LinkDown {
        /// The link; it is never heard of again.
        link: LinkId,
        /// Why.
        reason: DownReason,
    },
    /// A connection asked for with [`Output::Connect`] could not be made.
    ConnectFailed {
        /// The peer that was not reached.
        peer: PeerId,
    },
    /// A message of this overlay's own kind arrived.
    Message {
        /// The link it came over.
        link: LinkId,
        /// Its bytes, at most [`crate::link::MESSAGE_LEN_MAX`].
        bytes: Vec<u8>,
    },
    /// A block arrived, was verified and is now held. Also given for a block held already, when
    /// it arrives again.
    Block {
        /// The link it came over.
        link: LinkId,
        /// Which block.
        block: BlockIndex,
        /// The sender's per-hop header.
        header: Vec<u8>,
        /// Whether it was held already: a duplicate.
        duplicate: bool,
    },
    /// A block arrived that is not what the source made, or that the sender gave up half way. It
    /// was not stored.
    BadBlock {
        /// The link to blame.
        link: LinkId,
        /// Which block it claimed to be.
        block: BlockIndex,
        /// True when the bytes were wrong, false when the sender said it cannot serve the block.
        corrupt: bool,
    },
    /// The link that refused a block has room again.
    Room {
        /// The link.
        link: LinkId,
    },
    /// The live source made a block: it is held now.
    Produced {
        /// Which block.
        block: BlockIndex,
    },
    /// The window moved: blocks below this number are no longer held nor wanted.
    Evicted {
        /// The first block still wanted.
        below: BlockIndex,
    },
    /// [`Holdings::verifiable`] grew: more blocks may be asked for.
    Learned,
    /// The deadline asked for has passed.
    Deadline,
    /// The application wants something.
    Command(Command),
}

/// What the application can ask of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Leave the group in good order; [`Output::Left`] follows when the farewells are queued.
    Leave,
}

/// Why a link went down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DownReason {
    /// This side closed it.
    Local,
    /// The far side closed it in good order.
    Remote,
    /// Nothing was heard for too long.
    Silent,
    /// The pipe broke, or the far side broke the protocol.
    Broken,
}

/// What a member wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// Make a link to `peer`; [`Input::LinkUp`] or [`Input::ConnectFailed`] follows. A link that
    /// exists already (or a dial under way) is not made twice.
    Connect {
        /// Whom to reach.
        peer: PeerInfo,
        /// Which kind of link.
        class: LinkClass,
    },
    /// Close a link once what is queued on it has gone out; [`Input::LinkDown`] follows.
    Disconnect {
        /// The link.
        link: LinkId,
    },
    /// Send a message, in order with the other messages of this link.
    Message {
        /// The link.
        link: LinkId,
        /// Its bytes, at most [`crate::link::MESSAGE_LEN_MAX`].
        bytes: Vec<u8>,
    },
    /// Every block is held.
    Done,
    /// The member cannot go on (no peers, refused); the driver tells the user.
    Failed {
        /// Why.
        reason: FailReason,
    },
    /// The member has said good-bye: the driver flushes its links and ends.
    Left,
    /// At the root: a receiver reports that it has everything.
    Outcome(Outcome),
}

/// Why a member gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailReason {
    /// Nobody of the group could be reached.
    Unreachable,
}

/// What a receiver tells the root when it has verified everything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Who.
    pub peer: PeerId,
    /// From its start to its last block, in milliseconds.
    pub elapsed_ms: u64,
    /// Block bytes it had from the source itself.
    pub bytes_from_source: u64,
    /// Block bytes it had from other receivers.
    pub bytes_from_peers: u64,
    /// Block bytes it held when it started (resumed).
    pub bytes_before: u64,
}

/// What a link has measured about itself; zero or `None` where nothing is known yet.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Measured {
    /// Smoothed round-trip time, queueing in the pipe included.
    pub rtt: Option<Duration>,
    /// Block bytes that arrived in all.
    pub block_bytes_in: u64,
    /// Block bytes that the pipe took in all.
    pub block_bytes_out: u64,
    /// Accepted block bytes that the pipe has not taken yet.
    pub unsent: u64,
}

/// The links as a member may use them; implemented by each driver over
/// [`crate::link::Session`].
pub trait Links {
    /// Offers a block to a link: see [`Ctx::try_send_block`].
    fn try_send_block(
        &mut self,
        link: LinkId,
        block: BlockIndex,
        len: u32,
        header: Vec<u8>,
    ) -> bool;
    /// Asks for one [`Input::Room`] when the link next takes a block, at once when it does now.
    fn want_room(&mut self, link: LinkId);
    /// What the link has measured; all unknown for a link that is gone.
    fn measured(&self, link: LinkId) -> Measured;
}

/// What a handler is given beside its input.
pub struct Ctx<'a> {
    /// The member's own clock (it may drift against the others').
    pub now: Time,
    /// The member's own generator.
    pub rng: &'a mut Rng,
    /// What the store holds. The driver updates it before it hands in the input.
    pub holdings: &'a Holdings,
    /// The links.
    pub links: &'a mut dyn Links,
    /// Where outputs go.
    pub out: &'a mut Vec<Output>,
}

impl Ctx<'_> {
    /// Offers a held block to a link, with this overlay's per-hop `header` (at most
    /// [`crate::link::HEADER_LEN_MAX`] bytes). True: accepted, it will be sent (unless the link
    /// goes down). False: no room; exactly one [`Input::Room`] follows for this link.
    pub fn try_send_block(&mut self, link: LinkId, block: BlockIndex, header: Vec<u8>) -> bool {
        debug_assert!(self.holdings.held().contains(block), "only held blocks are sent");
        self.links.try_send_block(link, block, self.holdings.block_len(block), header)
    }

    /// Queues a message on a link.
    pub fn send(&mut self, link: LinkId, bytes: Vec<u8>) {
        self.out.push(Output::Message { link, bytes });
    }
}

/// The blocks of a content: how many, how long, which are held, which could be verified if they
/// came. Kept by the driver, read by the member.
#[derive(Clone, Debug)]
pub struct Holdings {
    lengths: Lengths,
    held: Bitmap,
    verifiable: Bitmap,
}

/// Block lengths in bytes.
#[derive(Clone, Debug)]
enum Lengths {
    Uniform { block: u32, total: u64 },
    Table(Vec<u32>),
}

impl Holdings {
    /// Nothing held of `total` bytes in blocks of `block` bytes (the last may be shorter), all
    /// verifiable.
    pub fn uniform(block: u32, total: u64) -> Holdings {
        let blocks = u32::try_from(total.div_ceil(u64::from(block))).unwrap_or(u32::MAX);
        Holdings {
            lengths: Lengths::Uniform { block, total },
            held: Bitmap::new(blocks),
            verifiable: Bitmap::full(blocks),
        }
    }

    /// Nothing held of blocks with these lengths, none verifiable yet. Lengths may be corrected
    /// with [`Holdings::set_block_len`] until the block is verifiable.
    pub fn table(lengths: Vec<u32>) -> Holdings {
        let blocks = u32::try_from(lengths.len()).unwrap_or(u32::MAX);
        Holdings {
            lengths: Lengths::Table(lengths),
            held: Bitmap::new(blocks),
            verifiable: Bitmap::new(blocks),
        }
    }

    /// How many blocks the content has.
    pub fn blocks(&self) -> u32 {
        self.held.len()
    }

    /// The length of a block in bytes; zero beyond the end.
    pub fn block_len(&self, block: BlockIndex) -> u32 {
        match &self.lengths {
            Lengths::Uniform { block: size, total } => {
                let start = u64::from(block) * u64::from(*size);
                total.saturating_sub(start).min(u64::from(*size)) as u32
            }
            Lengths::Table(lengths) => lengths.get(block as usize).copied().unwrap_or(0),
        }
    }

    /// The longest block in bytes: what estimates use for "a block".
    pub fn block_len_typical(&self) -> u32 {
        match &self.lengths {
            Lengths::Uniform { block, total } => (*total).min(u64::from(*block)) as u32,
            Lengths::Table(lengths) => lengths.iter().copied().max().unwrap_or(0),
        }
        .max(1)
    }

    /// The blocks held.
    pub fn held(&self) -> &Bitmap {
        &self.held
    }

    /// The blocks that can be verified when they come (the hash is known).
    pub fn verifiable(&self) -> &Bitmap {
        &self.verifiable
    }

    /// Whether every block is held.
    pub fn is_complete(&self) -> bool {
        self.held.is_full()
    }

    /// Marks a block as held; returns whether it was new.
    pub fn hold(&mut self, block: BlockIndex) -> bool {
        self.verifiable.insert(block);
        self.held.insert(block)
    }

    /// Marks blocks `from..to` as verifiable.
    pub fn learn(&mut self, from: BlockIndex, to: BlockIndex) {
        self.verifiable.insert_range(from, to);
    }

    /// Sets a block's length, for contents whose layout is learned (a directory's manifest).
    pub fn set_block_len(&mut self, block: BlockIndex, len: u32) {
        if let Lengths::Table(lengths) = &mut self.lengths
            && let Some(slot) = lengths.get_mut(block as usize)
        {
            *slot = len;
        }
    }
}

/// What a member counts; every field is a running total unless its name says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Blocks that arrived and were new.
    pub blocks_received: u64,
    /// Block bytes that arrived and were new, from the source itself.
    pub bytes_from_source: u64,
    /// Block bytes that arrived and were new, from other members.
    pub bytes_from_peers: u64,
    /// Blocks that arrived although they were held.
    pub duplicates: u64,
    /// Blocks that arrived corrupt.
    pub corrupt: u64,
    /// Blocks this member's links accepted from it.
    pub blocks_sent: u64,
    /// Requests sent, in blocks.
    pub requests: u64,
    /// Requests repeated because the link that had them went down.
    pub rerequests_lost: u64,
    /// Requests repeated because the sender was too slow.
    pub rerequests_slow: u64,
    /// Requests repeated because the block came corrupt or was refused.
    pub rerequests_bad: u64,
    /// Requests made a second time in the endgame.
    pub rerequests_endgame: u64,
    /// Messages dropped because they could not be decoded or made no sense.
    pub messages_bad: u64,
    /// Peers this member receives from now.
    pub senders_now: u32,
    /// Peers this member sends to now.
    pub receivers_now: u32,
    /// Depth in the control tree now: 0 at the root.
    pub depth_now: u32,
}
