//! The control tree: a random tree of bounded degree over which members join, meet and learn who
//! is there (Bullet §3.2). It carries no blocks.
//!
//! ```text
//!  joiner ── Join ─▶ any attached member ── Welcome(lineage) ─▶ attached
//!                         │ full: Redirect(random children)   │ itself without a parent: Busy
//! ```
//!
//! **Lineage.** Every member knows the root, its reign, the path of names from the root down to
//! its parent, and the root's successors; changes travel down at once. A member refuses a joiner
//! that is on its own path, and one that finds itself on its path leaves its parent, so no loop
//! lasts.
//!
//! **Succession.** Reachable children of the root, oldest first, are its successors. When the root
//! is lost, each of them tries the root, then the successors before it; the first that reaches
//! nobody rules with the next *reign* number, and the others join it. Roots that meet
//! compare (is the source, reign, name): the loser joins the winner's tree with its whole subtree.
//! A root that is not the source keeps looking for the source, which always takes its duty back.
//!
//! The paper leaves tree building to others (RandTree, Overcast); the protocol here is ours.

mod child;
mod parent;
mod root;

use crate::id::{LinkId, PeerId, PeerInfo};
use crate::overlay::directory::Directory;
use crate::random::{Rng, RngExt, shuffle};
use crate::time::{Duration, Time, earliest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Parameters; the defaults suit groups of 2 to 100,000 members.
#[derive(Clone, Debug)]
pub struct Config {
    /// Most children of a member. Default 6. Raised: a flatter tree, more control bytes per member.
    pub children_max: usize,
    /// Most children of the root at the start; the overlay may change it with
    /// [`Tree::set_root_children_max`]. Default 10 (the paper's initial number of receivers).
    pub root_children_max: usize,
    /// How long one place may take to answer a join. Default 4 s.
    pub join_timeout: Duration,
    /// The first pause after all places were tried in vain; it doubles up to 16 times as long.
    /// Default 200 ms.
    pub retry_pause: Duration,
    /// Rounds over all places after which a member that never was attached gives up. Default 6.
    pub rounds_max: u32,
    /// How long after the root is lost its first successor rules; each further one waits
    /// [`Config::takeover_step`] more. Default 0.5 s.
    pub takeover_first: Duration,
    /// Default 3 s: time for the one before to answer joins.
    pub takeover_step: Duration,
    /// How often a root that is not the source looks for the source and for other roots.
    /// Default 4 s.
    pub probe_interval: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            children_max: 6,
            root_children_max: 10,
            join_timeout: Duration::from_secs(4),
            retry_pause: Duration::from_millis(200),
            rounds_max: 6,
            takeover_first: Duration::from_millis(500),
            takeover_step: Duration::from_secs(3),
            probe_interval: Duration::from_secs(4),
        }
    }
}

/// The deepest path accepted; a longer one is a loop or an attack.
const PATH_MAX: usize = 64;
/// Successors the root names.
const SUCCESSORS_MAX: usize = 4;
/// Places a redirect names.
const REDIRECT_MAX: usize = 3;
/// Places remembered for joining.
const PLACES_MAX: usize = 64;

/// Where a member stands, as told by its parent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lineage {
    /// Numbers the roots one after the other; a later root has a higher one.
    pub reign: u64,
    /// The root.
    pub root: PeerInfo,
    /// Short names from the root to the teller.
    pub path: Vec<u64>,
    /// Who rules when the root is lost, in order.
    pub successors: Vec<PeerInfo>,
}

impl Lineage {
    fn is_valid(&self) -> bool {
        let contacts = self.successors.iter().chain([&self.root]);
        self.path.len() <= PATH_MAX
            && self.successors.len() <= SUCCESSORS_MAX
            && contacts.into_iter().all(|peer| peer.contact.is_valid())
    }
}

/// What tree neighbours tell each other.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// May I be your child?
    Join {
        /// The highest reign the joiner has heard of.
        reign_seen: u64,
    },
    /// You are my child.
    Welcome(Lineage),
    /// I am full: try these.
    Redirect {
        /// Members to try, best first.
        to: Vec<PeerInfo>,
    },
    /// I cannot take you now.
    Busy,
    /// Parent to child: where we stand has changed.
    Lineage(Lineage),
    /// Child to parent: I am your child no more.
    Part,
    /// Parent to child: I leave; join there.
    Leave {
        /// Members to try, best first.
        rejoin: Vec<PeerInfo>,
    },
    /// Whom I hold for the root.
    Claim {
        /// Its reign.
        reign: u64,
        /// The root.
        root: PeerInfo,
    },
    /// Root to member: become my child.
    Invite,
}

/// What the tree wants done, or tells the overlay.
#[derive(Clone, PartialEq, Debug)]
pub enum Out {
    /// Make a link to this peer.
    Connect(PeerInfo),
    /// Send a message.
    Send(LinkId, Message),
    /// This link leads to the parent now.
    Attached(LinkId),
    /// There is no parent now.
    Detached,
    /// This member is the root now.
    BecameRoot,
    /// A child joined.
    ChildJoined(LinkId),
    /// A child left.
    ChildLeft(LinkId),
    /// Nobody of the group could be reached.
    Unreachable,
}

/// The surroundings of one input.
pub struct Ctx<'a> {
    /// Now.
    pub now: Time,
    /// The member's generator.
    pub rng: &'a mut Rng,
    /// The member's links.
    pub directory: &'a Directory,
    /// Where outputs go.
    pub out: &'a mut Vec<Out>,
}

#[derive(Clone, PartialEq, Debug)]
enum State {
    Idle,
    Root,
    /// Asking `target`; `until` bounds it.
    Joining {
        target: PeerInfo,
        asked: Option<LinkId>,
        until: Time,
    },
    /// All places were tried; once more from `until` on.
    Pausing {
        until: Time,
    },
    Attached {
        parent: LinkId,
    },
}

/// One member of the control tree. See [the module](self).
#[derive(Debug)]
pub struct Tree {
    config: Config,
    me: PeerInfo,
    source: PeerId,
    bootstrap: Vec<PeerInfo>,
    state: State,
    lineage: Lineage,
    was_attached: bool,
    children: BTreeMap<LinkId, PeerInfo>,
    root_children_max: usize,
    places: VecDeque<PeerInfo>,
    rounds: u32,
    takeover_at: Option<Time>,
    probe_at: Option<Time>,
    probing: Option<PeerId>,
    inviting: Option<PeerId>,
}

impl Tree {
    /// A member that has not started. `bootstrap`: members to join through.
    pub fn new(config: Config, me: PeerInfo, source: PeerId, bootstrap: Vec<PeerInfo>) -> Tree {
        let root_children_max = config.root_children_max;
        let lineage = Lineage { reign: 0, root: me.clone(), path: vec![], successors: vec![] };
        Tree {
            config,
            me,
            source,
            bootstrap,
            state: State::Idle,
            lineage,
            was_attached: false,
            children: BTreeMap::new(),
            root_children_max,
            places: VecDeque::new(),
            rounds: 0,
            takeover_at: None,
            probe_at: None,
            probing: None,
            inviting: None,
        }
    }

    /// Begins: the source rules, everyone else joins.
    pub fn start(&mut self, ctx: &mut Ctx<'_>) {
        if self.is_source() {
            self.rule(ctx, 1);
        } else {
            self.fill_places();
            self.try_next(ctx);
        }
    }

    // ---- read-only views ----

    /// Whether this member is the root now.
    pub fn is_root(&self) -> bool {
        self.state == State::Root
    }

    /// The parent's link.
    pub fn parent(&self) -> Option<LinkId> {
        match self.state {
            State::Attached { parent } => Some(parent),
            _ => None,
        }
    }

    /// The children's links, oldest first.
    pub fn children(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.children.keys().copied()
    }

    /// Whether the tree uses this link, or is about to.
    pub fn uses(&self, link: LinkId) -> bool {
        let asked =
            matches!(&self.state, State::Joining { asked: Some(asked), .. } if *asked == link);
        asked || self.parent() == Some(link) || self.children.contains_key(&link)
    }

    /// Whether this member has its place in the tree, or is the root.
    pub fn is_in_place(&self) -> bool {
        matches!(self.state, State::Root | State::Attached { .. })
    }

    /// Where this member stands: the root, its successors, the path down to this member's parent.
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// Levels below the root.
    pub fn depth(&self) -> u32 {
        self.lineage.path.len() as u32
    }

    /// When [`Tree::handle_deadline`] is due.
    pub fn next_deadline(&self) -> Option<Time> {
        let state = match &self.state {
            State::Joining { until, .. } | State::Pausing { until } => Some(*until),
            _ => None,
        };
        earliest(state, self.probe_at)
    }

    /// Lets the root have so many children; it invites no one by itself.
    pub fn set_root_children_max(&mut self, max: usize) {
        self.root_children_max = max;
    }

    /// How many children the root may have.
    pub fn root_children_max(&self) -> usize {
        self.root_children_max
    }

    // ---- inputs ----

    /// The root asks a member to become its child.
    pub fn invite(&mut self, ctx: &mut Ctx<'_>, peer: PeerInfo) {
        match ctx.directory.link(&peer.id) {
            Some(link) => ctx.out.push(Out::Send(link, Message::Invite)),
            None => {
                self.inviting = Some(peer.id);
                ctx.out.push(Out::Connect(peer));
            }
        }
    }

    /// A link is up.
    pub fn handle_link_up(&mut self, ctx: &mut Ctx<'_>, link: LinkId, peer: &PeerInfo) {
        if let State::Joining { target, asked, .. } = &mut self.state
            && target.id == peer.id
            && asked.is_none()
        {
            *asked = Some(link);
            let reign_seen = self.lineage.reign;
            ctx.out.push(Out::Send(link, Message::Join { reign_seen }));
        }
        if self.probing == Some(peer.id) {
            self.probing = None;
            self.claim(ctx, link);
        }
        if self.inviting == Some(peer.id) {
            self.inviting = None;
            ctx.out.push(Out::Send(link, Message::Invite));
        }
    }

    /// A link is gone.
    pub fn handle_link_down(&mut self, ctx: &mut Ctx<'_>, link: LinkId) {
        self.drop_child(ctx, link);
        match &self.state {
            State::Attached { parent } if *parent == link => self.lose_parent(ctx, Vec::new()),
            State::Joining { asked: Some(asked), .. } if *asked == link => self.try_next(ctx),
            _ => {}
        }
    }

    /// A connection could not be made.
    pub fn handle_connect_failed(&mut self, ctx: &mut Ctx<'_>, peer: &PeerId) {
        self.probing = self.probing.filter(|probed| probed != peer);
        self.inviting = self.inviting.filter(|invited| invited != peer);
        if matches!(&self.state, State::Joining { target, asked: None, .. } if target.id == *peer) {
            self.try_next(ctx);
        }
    }

    /// A message came.
    pub fn handle_message(&mut self, ctx: &mut Ctx<'_>, link: LinkId, message: Message) {
        match message {
            Message::Join { reign_seen } => self.on_join(ctx, link, reign_seen),
            Message::Welcome(lineage) => self.on_welcome(ctx, link, lineage),
            Message::Redirect { to } if self.is_asking(link) => {
                for place in to.into_iter().take(REDIRECT_MAX).rev() {
                    self.add_place_first(place);
                }
                self.try_next(ctx);
            }
            Message::Busy if self.is_asking(link) => self.try_next(ctx),
            Message::Lineage(lineage) if self.parent() == Some(link) => {
                self.on_lineage(ctx, lineage);
            }
            Message::Part => self.drop_child(ctx, link),
            Message::Leave { rejoin } if self.parent() == Some(link) => {
                self.on_parent_leaves(ctx, rejoin);
            }
            Message::Claim { reign, root } => self.on_claim(ctx, link, reign, root),
            Message::Invite => self.on_invite(ctx, link),
            Message::Redirect { .. }
            | Message::Busy
            | Message::Lineage(_)
            | Message::Leave { .. } => {}
        }
    }

    /// The deadline has passed.
    pub fn handle_deadline(&mut self, ctx: &mut Ctx<'_>) {
        match &self.state {
            State::Joining { until, .. } if ctx.now >= *until => self.try_next(ctx),
            State::Pausing { until } if ctx.now >= *until => {
                self.fill_places();
                self.try_next(ctx);
            }
            _ => {}
        }
        if self.probe_at.is_some_and(|at| ctx.now >= at) {
            self.probe(ctx);
        }
    }

    /// Leaves in good order: children are told where to go, the parent that we are gone.
    pub fn leave(&mut self, ctx: &mut Ctx<'_>) {
        let mut rejoin = self.lineage.successors.clone();
        if !self.is_root() {
            rejoin.insert(0, self.lineage.root.clone());
            let parent = self.parent().and_then(|link| ctx.directory.peer(link));
            rejoin.splice(0..0, parent.cloned());
        }
        rejoin.retain(|peer| peer.id != self.me.id);
        rejoin.truncate(REDIRECT_MAX);
        for link in self.children.keys() {
            ctx.out.push(Out::Send(*link, Message::Leave { rejoin: rejoin.clone() }));
        }
        if let Some(parent) = self.parent() {
            ctx.out.push(Out::Send(parent, Message::Part));
        }
        self.children.clear();
        self.state = State::Idle;
        self.probe_at = None;
    }

    /// What must hold between inputs.
    pub fn check_invariants(&self) -> Result<(), String> {
        let max = self.config.children_max.max(self.root_children_max).max(25);
        if self.children.len() > max {
            return Err(format!("{} children, at most {max}", self.children.len()));
        }
        if self.parent().is_some_and(|parent| self.children.contains_key(&parent)) {
            return Err("a link leads to parent and child at once".into());
        }
        if self.is_in_place() && self.lineage.path.contains(&self.me.id.short()) {
            return Err("a member is on its own path".into());
        }
        if self.is_root() != (self.is_in_place() && self.lineage.root.id == self.me.id) {
            return Err("root by state and by lineage differ".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
