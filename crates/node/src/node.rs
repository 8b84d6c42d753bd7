//! A node: one listener, many groups.

mod bind;

use crate::address;
use crate::clock;
use crate::config::{FetchOptions, NodeConfig, ShareOptions};
use crate::content::{GroupInfo, Scan, ScanError, ScanOptions};
use crate::error::{BindError, FetchError, ShareError};
use crate::event::Event;
use crate::group::links::Links;
use crate::group::{self, Actor, Group, Shared, Start};
use crate::identity::Identity;
use crate::limit::Limit;
use crate::listen;
use crate::registry::Registry;
use crate::state::{ShareState, StateError};
use crate::store::{OpenError, Store};
use crate::ticket::Ticket;
use crate::tls;
use anabranch_proto::id::Contact;
use bind::Advertised;
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Sent bytes may stay unacknowledged for so long before the kernel gives the connection up.
const USER_TIMEOUT: Duration = Duration::from_secs(10);

/// One listener and any number of groups.
pub struct Node {
    core: Arc<Core>,
    listeners: Mutex<Vec<JoinHandle<()>>>,
}

/// What all groups and links of a node share.
pub(crate) struct Core {
    config: NodeConfig,
    pub(crate) up: Limit,
    pub(crate) down: Limit,
    pub(crate) registry: Arc<Registry>,
    pub(crate) server_config: Arc<rustls::ServerConfig>,
    advertised: Mutex<Advertised>,
}

impl Core {
    /// How others reach this node.
    pub(crate) fn contact(&self) -> Contact {
        let advertised = self.advertised.lock().unwrap_or_else(PoisonError::into_inner);
        address::contact(&advertised.addresses, !advertised.addresses.is_empty())
    }

    fn port(&self) -> Option<u16> {
        self.advertised.lock().unwrap_or_else(PoisonError::into_inner).port
    }

    /// Sets a connection's socket options.
    pub(crate) fn tune(&self, socket: &SockRef<'_>) -> io::Result<()> {
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
        if let Some(name) = &self.config.congestion {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        if let Some(rate) = self.down.rate() {
            // The kernel takes in at full speed what fits its buffer, so it must be small beside
            // the limit.
            let len = usize::try_from(rate / 16).unwrap_or(usize::MAX);
            socket.set_recv_buffer_size(len.clamp(32 * 1024, 4 * 1024 * 1024))?;
        }
        Ok(())
    }
}

impl Node {
    /// Opens the listener. Must be called within a tokio runtime.
    pub async fn bind(config: NodeConfig) -> Result<Node, BindError> {
        if let Some(name) = &config.congestion {
            bind::check_congestion(name)?;
        }
        let (sockets, advertised) = bind::bind(&config).await?;
        let registry = Arc::new(Registry::default());
        let server_config = tls::server_config(registry.clone()).map_err(BindError::Tls)?;
        let core = Arc::new(Core {
            up: Limit::new(config.limit_up),
            down: Limit::new(config.limit_down),
            config,
            registry,
            server_config,
            advertised: Mutex::new(advertised),
        });
        let serve = |socket| tokio::spawn(listen::serve(core.clone(), socket));
        let listeners = Mutex::new(sockets.into_iter().map(serve).collect());
        Ok(Node { core, listeners })
    }

    /// The address the node listens on; `None` when it does not.
    pub fn listen_port(&self) -> Option<u16> {
        self.core.port()
    }

    /// The addresses that tickets of this node name.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        address::addresses(&self.core.contact())
    }

    /// Makes a file or a directory available: hashes it (or finds that it has before) and serves
    /// it. A content shared before keeps its key, secret and port, so its old tickets work.
    pub async fn share(&self, path: &Path, options: ShareOptions) -> Result<Group, ShareError> {
        let started = clock::now();
        let system = options.system;
        let scan = scan(path.to_path_buf(), options, &self.core.config).await?;
        let unsigned = scan.info(system, anabranch_proto::id::PeerId([0; 32]));
        let mut state = ShareState::open(&self.core.config.state_dir, &unsigned)?;
        let identity = state.identity().map_err(ShareError::Key)?;
        let info = kept_info(&state, &identity, &unsigned.root)
            .unwrap_or_else(|| scan.info(system, identity.id()));
        let signed = info.sign(identity.pair());
        let warning = self.reuse_port(state.port()).await;
        state.keep(self.core.port(), &signed)?;
        let base = Ticket {
            root: info.root,
            source: identity.id(),
            secret: state.secret(),
            contacts: Vec::new(),
        };
        let key = tls::certified_key(&identity).map_err(ShareError::Tls)?;
        let (shared, inbox) = Shared::new(self.core.clone(), identity, key, base);
        let store = Store::source(scan, info);
        shared.begin(signed, store.clone());
        if !self.core.registry.add(shared.clone()) {
            return Err(ShareError::SharedAlready);
        }
        if let Some(text) = warning {
            shared.tell(Event::Warning { text });
        }
        let bootstrap = state.peers().to_vec();
        let links = Links::new(shared.clone());
        let group = Group::new(shared.clone());
        let state = Some(Arc::new(Mutex::new(state)));
        let start = Start { shared, inbox, links, store, bootstrap, started, state };
        tokio::spawn(Actor::new(start).run());
        Ok(group)
    }

    /// Joins the group of `ticket` and begins to fetch its content, continuing where an earlier
    /// fetch into the same directory ended. Ready when the group's parameters are known and the
    /// files are open. Dropping the future gives the fetch up.
    pub async fn fetch(&self, ticket: Ticket, options: FetchOptions) -> Result<Group, FetchError> {
        let started = clock::now();
        let identity = match &options.identity {
            Some(path) => Identity::load_or_create(path)
                .map_err(|error| FetchError::Identity { path: path.clone(), error })?,
            None => Identity::generate().map_err(FetchError::Key)?,
        };
        let key = tls::certified_key(&identity).map_err(FetchError::Tls)?;
        let bootstrap = ticket.contacts.clone();
        let (shared, mut inbox) = Shared::new(self.core.clone(), identity, key, ticket);
        if !self.core.registry.add(shared.clone()) {
            return Err(FetchError::Already);
        }
        let mut guard = Unregister(Some(shared.clone()));
        let mut links = Links::new(shared.clone());
        let info = group::join(&shared, &mut inbox, &mut links).await?;
        if !info.system.is_offered() {
            return Err(FetchError::NotOffered { system: info.system });
        }
        let store = receive(info, options).await?;
        shared.begin_store(store.clone());
        guard.0 = None;
        let group = Group::new(shared.clone());
        let start = Start { shared, inbox, links, store, bootstrap, started, state: None };
        tokio::spawn(Actor::new(start).run());
        Ok(group)
    }

    /// Leaves every group in good order, within about four seconds.
    pub async fn close(self) {
        let listeners =
            std::mem::take(&mut *self.listeners.lock().unwrap_or_else(PoisonError::into_inner));
        listeners.iter().for_each(JoinHandle::abort);
        let mut leaving = tokio::task::JoinSet::new();
        for group in self.core.registry.groups() {
            leaving.spawn(async move { group.leave().await });
        }
        while leaving.join_next().await.is_some() {}
    }

    /// Listens on the port that a content's old tickets name too, when nobody chose another. The
    /// sentence says why old tickets will not work.
    async fn reuse_port(&self, port: Option<u16>) -> Option<String> {
        let port = port.filter(|&port| self.core.port().is_some_and(|bound| bound != port))?;
        if self.core.config.listen.is_some() {
            return Some(format!("this content had port {port} before: older tickets name it"));
        }
        match bind::bind_everywhere(port) {
            Ok(sockets) => {
                let serve = |socket| tokio::spawn(listen::serve(self.core.clone(), socket));
                let more = sockets.into_iter().map(serve);
                self.listeners.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
                let mut advertised =
                    self.core.advertised.lock().unwrap_or_else(PoisonError::into_inner);
                advertised.change_port(port);
                None
            }
            Err(error) => Some(format!(
                "port {port}, which older tickets of this content name, cannot be used: {error}"
            )),
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({:?})", self.addresses())
    }
}

/// Takes a fetch that failed or was dropped out of the registry.
struct Unregister(Option<Arc<Shared>>);

impl Drop for Unregister {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.core.registry.remove(&shared.membership.tag);
        }
    }
}

/// The parameters that an earlier run signed: they never change for one group.
fn kept_info(state: &ShareState, identity: &Identity, root: &[u8; 32]) -> Option<GroupInfo> {
    let signed = Some(state.signed()).filter(|signed| !signed.is_empty())?;
    GroupInfo::open(signed, &identity.id(), root).ok()
}

async fn scan(
    path: PathBuf,
    options: ShareOptions,
    config: &NodeConfig,
) -> Result<Scan, ShareError> {
    let state_dir = Some(config.state_dir.clone());
    let scan_options = ScanOptions { block_size: options.block_size, state_dir };
    let hashing = options.hashing;
    let scanned = tokio::task::spawn_blocking(move || {
        let progress = |done, total| {
            if let Some(hashing) = &hashing {
                hashing(done, total);
            }
            ControlFlow::Continue(())
        };
        Scan::run(&path, &scan_options, &progress)
    });
    Ok(scanned.await.map_err(|_| ScanError::Cancelled)??)
}

async fn receive(info: GroupInfo, options: FetchOptions) -> Result<Arc<Store>, FetchError> {
    let opened = tokio::task::spawn_blocking(move || {
        let progress = |_, _| ControlFlow::Continue(());
        Store::receive(info, &options.dir, options.overwrite, &progress)
    });
    Ok(opened.await.map_err(|_| OpenError::Cancelled)??)
}

impl From<StateError> for ShareError {
    fn from(error: StateError) -> ShareError {
        match error {
            StateError::Locked => ShareError::SharedAlready,
            StateError::Io(path, error) => ShareError::State { path, error },
        }
    }
}

#[cfg(test)]
mod tests;
