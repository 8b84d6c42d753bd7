//! The listener: lets strangers shake hands within bounds, and brings members to their groups.

use crate::group::{Connection, Inbound};
use crate::link::hello::{self, JoinError};
use crate::node::Core;
use crate::tls::{self, handshake::HandshakeError};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tracing::debug;

/// How long a stranger has to prove that it belongs to a group.
const JOIN_WAIT: Duration = Duration::from_secs(5);
/// Strangers at once, and of these from one address. Beyond, the one that has waited longest of
/// the address with the most gives way: who means it is through in milliseconds.
const STRANGERS_MAX: usize = 64;
const STRANGERS_PER_ADDRESS_MAX: usize = 16;

/// Accepts connections until the task is aborted.
pub(crate) async fn serve(core: Arc<Core>, listener: TcpListener) {
    let strangers = Arc::new(Strangers::default());
    loop {
        match listener.accept().await {
            Ok((stream, from)) => admit(&core, &strangers, stream, from),
            Err(error) => {
                // Out of descriptors, or the connection is gone already: neither is for ever.
                debug!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn admit(core: &Arc<Core>, strangers: &Arc<Strangers>, stream: TcpStream, from: SocketAddr) {
    let ip = from.ip().to_canonical();
    let (core, guests) = (core.clone(), strangers.clone());
    let task = tokio::spawn(async move {
        let welcomed = timeout(JOIN_WAIT, welcome(core, stream)).await;
        guests.leave(ip, tokio::task::id());
        match welcomed {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%from, %error, "a connection did not join"),
            Err(_) => debug!(%from, "a connection said nothing"),
        }
    });
    strangers.enter(ip, task.abort_handle());
}

/// Handshake and hello; any error closes the connection without a word.
async fn welcome(core: Arc<Core>, stream: TcpStream) -> Result<(), WelcomeError> {
    core.tune(&socket2::SockRef::from(&stream))?;
    let mut secured = tls::handshake::accept(stream, core.server_config.clone()).await?;
    let (name, peer) = (secured.server_name.clone(), secured.peer);
    let find = |tag: &_| {
        let group = core.registry.find(tag, &name)?;
        let membership = group.membership.clone();
        let contact = group.contact();
        group.welcomes(&peer).then_some((group, membership, contact))
    };
    let (group, contact) = hello::accept(&mut secured, find).await?;
    let connection = Connection { secured, contact, dialled: false };
    let ready = Inbound::Ready(Box::new(connection));
    group.inbox.send(ready).await.map_err(|_| WelcomeError::Ended)
}

/// Why a stranger was not let in.
#[derive(Debug, Error)]
enum WelcomeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("the group has ended")]
    Ended,
}

/// Connections that have not proved anything yet.
#[derive(Default)]
struct Strangers {
    waiting: Mutex<BTreeMap<IpAddr, VecDeque<AbortHandle>>>,
}

impl Strangers {
    fn enter(&self, ip: IpAddr, task: AbortHandle) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, queue| {
            queue.retain(|task| !task.is_finished());
            !queue.is_empty()
        });
        let queue = waiting.entry(ip).or_default();
        if !task.is_finished() {
            queue.push_back(task);
        }
        if queue.len() > STRANGERS_PER_ADDRESS_MAX {
            give_way(queue);
        }
        if waiting.values().map(VecDeque::len).sum::<usize>() > STRANGERS_MAX
            && let Some(queue) = waiting.values_mut().max_by_key(|queue| queue.len())
        {
            give_way(queue);
        }
    }

    fn leave(&self, ip: IpAddr, id: tokio::task::Id) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = waiting.get_mut(&ip) {
            queue.retain(|task| task.id() != id);
            if queue.is_empty() {
                waiting.remove(&ip);
            }
        }
    }
}

fn give_way(queue: &mut VecDeque<AbortHandle>) {
    if let Some(longest) = queue.pop_front() {
        longest.abort();
    }
}
