//! One member of one group: what applications hold, and the task that drives it.
//!
//! ```text
//!  Group (handle) ── Leave ──▶ ┌───────────────┐ ◀── LinkEvent ── link tasks (one per peer)
//!         ◀── Event, Progress ─│ actor: member │ ◀── Ready ────── listener, dials
//!                              │ of the overlay│ ── Session ────▶ link tasks
//!                              └───────────────┘ ── flush, finish ▶ store (blocking threads)
//! ```
//!
//! The actor hands the overlay's member one input at a time, in the order in which things
//! happened, and does what it says ([`anabranch_proto::overlay`]). It moves no payload.

mod actor;
mod join;
pub(crate) mod links;
mod messages;
mod pages;
mod progress;

pub(crate) use actor::{Actor, Start};
pub(crate) use join::join;
pub(crate) use progress::Counters;

use crate::error::GroupError;
use crate::event::{Event, Progress};
use crate::identity::Identity;
use crate::link::LinkEvent;
use crate::link::hello::Membership;
use crate::node::Core;
use crate::store::{FinishError, StorageError, Store};
use crate::ticket::{CONTACTS_MAX, Ticket};
use crate::tls::handshake::Secured;
use anabranch_proto::id::{Contact, LinkId, PeerId, PeerInfo};
use rustls::sign::CertifiedKey;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, watch};

/// Links of one group at once.
const LINKS_MAX: usize = 256;
/// Inputs that wait for the actor; link tasks stop reading when it is full.
const INBOX_LEN: usize = 256;
/// Events that a slow reader may lag behind.
const EVENTS_LEN: usize = 256;
/// How long leaving may take, flushes included.
const LEAVE_WAIT: Duration = Duration::from_secs(4);

/// A handle to one group; cheap to clone. The group goes on until it is left, its node is closed
/// or the process ends.
#[derive(Clone)]
pub struct Group {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({:?})", self.ticket())
    }
}

impl Group {
    pub(crate) fn new(shared: Arc<Shared>) -> Group {
        Group { shared }
    }

    /// A ticket that lets others join: through this member, the source and known live peers.
    pub fn ticket(&self) -> Ticket {
        self.shared.ticket()
    }

    /// What happens. The first caller gets everything from the beginning, later ones what happens
    /// from now on. A slow reader misses the oldest events
    /// ([`broadcast::error::RecvError::Lagged`]); the channel closes when the group has ended.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        let mut events = lock(&self.shared.events);
        if let Some(first) = events.first.take() {
            return first;
        }
        match &events.sender {
            Some(sender) => sender.subscribe(),
            None => broadcast::channel(1).1,
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let mut progress = lock(&self.shared.view).progress.clone();
        // Totals as they are now: the snapshot is up to half a second old.
        let counters = &self.shared.counters;
        progress.uploaded = counters.uploaded.load(Ordering::Relaxed);
        progress.wire_down = counters.wire_down.load(Ordering::Relaxed);
        progress.wire_up = counters.wire_up.load(Ordering::Relaxed);
        progress
    }

    /// The name of the content: its file's or directory's; a name that is not UTF-8 is shown with
    /// replacement characters.
    pub fn name(&self) -> String {
        self.shared.name.get().cloned().unwrap_or_default()
    }

    /// Waits until everything is here, verified and at its final path, or until the group failed.
    /// At the source: at once, with the path that is shared.
    pub async fn wait_complete(&self) -> Result<PathBuf, GroupError> {
        let mut outcome = self.shared.outcome.subscribe();
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(GroupError::Left)),
            Err(_) => Err(GroupError::Left),
        }
    }

    /// Leaves in good order: tells the peers, flushes links and files; at most about four seconds.
    pub async fn leave(&self) {
        self.shared.leave().await;
    }
}

/// What a group's handles, actor and link tasks share.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) identity: Identity,
    /// The identity, as handshakes want it.
    pub(crate) key: Arc<CertifiedKey>,
    /// Root, source and secret of the group, and contacts to fall back on.
    base: Ticket,
    pub(crate) membership: Membership,
    /// The signed parameters, once known.
    signed: OnceLock<Vec<u8>>,
    /// From when the parameters are known until the group has ended.
    store: Mutex<Option<Arc<Store>>>,
    name: OnceLock<String>,
    pub(crate) inbox: mpsc::Sender<Inbound>,
    /// Bytes of blocks in memory that cannot be verified yet.
    pub(crate) held_bytes: AtomicU64,
    pub(crate) counters: Counters,
    links_now: AtomicUsize,
    banned: Mutex<BTreeSet<PeerId>>,
    events: Mutex<Events>,
    view: Mutex<View>,
    outcome: watch::Sender<Option<Result<PathBuf, GroupError>>>,
    ended: watch::Sender<bool>,
}

struct Events {
    /// `None` when the group has ended.
    sender: Option<broadcast::Sender<Event>>,
    first: Option<broadcast::Receiver<Event>>,
}

/// What handles see; the actor brings it up to date.
#[derive(Default)]
struct View {
    progress: Progress,
    contacts: Vec<PeerInfo>,
}

/// What comes to a group's actor.
pub(crate) enum Inbound {
    /// A connection whose far end has proved itself.
    Ready(Box<Connection>),
    /// A dial that failed.
    DialFailed { peer: PeerId, error: crate::dial::DialError },
    /// From a link's task.
    Link(LinkId, LinkEvent),
    /// A flush has ended.
    Flushed(Result<(), StorageError>),
    /// The content was complete: it has its final name, or cannot have it.
    Finished(Result<PathBuf, FinishError>),
    /// The application wants to leave.
    Leave,
}

/// A connection that is ready for a session.
pub(crate) struct Connection {
    pub(crate) secured: Secured,
    pub(crate) contact: Contact,
    pub(crate) dialled: bool,
}

impl Shared {
    /// A group that does not run yet, and where its actor will hear.
    pub(crate) fn new(
        core: Arc<Core>,
        identity: Identity,
        key: Arc<CertifiedKey>,
        base: Ticket,
    ) -> (Arc<Shared>, mpsc::Receiver<Inbound>) {
        let (inbox, received) = mpsc::channel(INBOX_LEN);
        let (sender, first) = broadcast::channel(EVENTS_LEN);
        let tag = anabranch_proto::link::handshake::group_tag(&base.root, &base.secret);
        let shared = Arc::new(Shared {
            core,
            identity,
            key,
            membership: Membership { tag, secret: base.secret },
            base,
            signed: OnceLock::new(),
            store: Mutex::default(),
            name: OnceLock::new(),
            inbox,
            held_bytes: AtomicU64::new(0),
            counters: Counters::default(),
            links_now: AtomicUsize::new(0),
            banned: Mutex::default(),
            events: Mutex::new(Events { sender: Some(sender), first: Some(first) }),
            view: Mutex::default(),
            outcome: watch::Sender::new(None),
            ended: watch::Sender::new(false),
        });
        (shared, received)
    }

    /// The source knows everything from the beginning.
    pub(crate) fn begin(&self, signed: Vec<u8>, store: Arc<Store>) {
        self.signed.get_or_init(|| signed);
        self.begin_store(store);
    }

    /// From now on blocks can come and go.
    pub(crate) fn begin_store(&self, store: Arc<Store>) {
        self.name.get_or_init(|| store.info().name().to_string_lossy().into_owned());
        *lock(&self.store) = Some(store);
    }

    /// Where the blocks are; `None` before the parameters are known and after the end.
    pub(crate) fn store(&self) -> Option<Arc<Store>> {
        lock(&self.store).clone()
    }

    /// Whether this member made the content.
    pub(crate) fn is_source(&self) -> bool {
        self.identity.id() == self.base.source
    }

    /// How others reach this member.
    pub(crate) fn contact(&self) -> Contact {
        self.core.contact()
    }

    /// This member, as others name it.
    fn me(&self) -> PeerInfo {
        PeerInfo { id: self.identity.id(), contact: self.contact() }
    }

    /// Whether a member with this key may link now.
    pub(crate) fn welcomes(&self, peer: &PeerId) -> bool {
        let room = self.links_now.load(Ordering::Relaxed) < LINKS_MAX;
        room && *peer != self.identity.id() && !self.is_banned(peer)
    }

    fn is_banned(&self, peer: &PeerId) -> bool {
        lock(&self.banned).contains(peer)
    }

    fn ban(&self, peer: PeerId) -> bool {
        lock(&self.banned).insert(peer)
    }

    pub(crate) fn tell(&self, event: Event) {
        if let Some(sender) = &lock(&self.events).sender {
            // Nobody has to listen.
            let _ = sender.send(event);
        }
    }

    /// Blocks of `len` bytes are no longer kept in memory.
    pub(crate) fn release(&self, len: u32) {
        self.held_bytes.fetch_sub(u64::from(len), Ordering::Relaxed);
    }

    fn ticket(&self) -> Ticket {
        let known = lock(&self.view).contacts.clone();
        let me = Some(self.me()).filter(|me| me.contact.reachable);
        let mut named = BTreeSet::new();
        let mut contacts: Vec<PeerInfo> = me
            .into_iter()
            .chain(known)
            .chain(self.base.contacts.iter().cloned())
            .filter(|peer| peer.contact.reachable && !self.is_banned(&peer.id))
            .filter(|peer| named.insert(peer.id))
            .collect();
        contacts.truncate(CONTACTS_MAX);
        Ticket { contacts, ..self.base.clone() }
    }

    /// The group has ended: handles are told, with `error` if it was not complete.
    fn close(&self, error: GroupError) {
        self.outcome.send_if_modified(|outcome| {
            let open = !matches!(outcome, Some(Ok(_)));
            if open {
                *outcome = Some(Err(error));
            }
            open
        });
        // Handles may outlive the group; the files must not stay locked with them.
        *lock(&self.store) = None;
        lock(&self.events).sender = None;
        self.ended.send_replace(true);
    }

    /// Ends the group, in good order when it still can.
    pub(crate) async fn leave(&self) {
        let mut ended = self.ended.subscribe();
        let leaving = async {
            if self.inbox.send(Inbound::Leave).await.is_ok() {
                let _ = ended.wait_for(|ended| *ended).await;
            }
        };
        let _ = tokio::time::timeout(LEAVE_WAIT, leaving).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
