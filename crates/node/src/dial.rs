//! Dialling a peer: every address of its contact, a little apart, the first that answers wins.

use crate::address;
use crate::group::{Connection, Shared};
use crate::link::hello;
use crate::node::Core;
use crate::tls::{self, handshake::HandshakeError};
use anabranch_proto::id::PeerInfo;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::debug;

/// How long one address may take to connect.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// How long the handshake and the hello may take after that.
const JOIN_WAIT: Duration = Duration::from_secs(5);
/// How long an address has before the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);

/// Why a peer was not reached.
#[derive(Clone, Debug, Error)]
pub(crate) enum DialError {
    /// No address answers.
    #[error("{0}")]
    Unreachable(String),
    /// It answers, and does not accept this member, or is not who it should be.
    #[error("refused")]
    Refused,
}

/// Connects to `peer` and joins it in `group`.
///
/// The addresses race for a TCP connection only: a peer that is joined twice would have to close
/// one of the two.
pub(crate) async fn dial(group: Arc<Shared>, peer: PeerInfo) -> Result<Connection, DialError> {
    let addresses = address::addresses(&peer.contact);
    if addresses.is_empty() || peer.id == group.identity.id() {
        return Err(DialError::Unreachable(format!("{} has no address", peer.id)));
    }
    let mut attempts = JoinSet::new();
    let mut failures = Vec::new();
    let mut rest = addresses.into_iter();
    let mut next = rest.next();
    loop {
        if let Some(address) = next.take() {
            attempts.spawn(connect(group.core.clone(), address));
        }
        let more = rest.len() > 0;
        tokio::select! {
            connected = attempts.join_next() => match connected {
                Some(Ok(Ok(stream))) => match join(&group, &peer, stream).await {
                    Ok(connection) => return Ok(connection),
                    Err(error) => failures.push(error),
                },
                Some(Ok(Err(error))) => failures.push(error),
                Some(Err(_)) => {}
                None if more => {}
                None => return Err(worst(failures)),
            },
            () = tokio::time::sleep(STAGGER), if more => {}
        }
        next = rest.next();
    }
}

/// A refusal says more than an address that does not answer.
fn worst(failures: Vec<DialError>) -> DialError {
    let refused = failures.iter().any(|error| matches!(error, DialError::Refused));
    match failures.into_iter().next() {
        Some(first) if !refused => first,
        _ => DialError::Refused,
    }
}

async fn join(group: &Shared, peer: &PeerInfo, stream: TcpStream) -> Result<Connection, DialError> {
    match timeout(JOIN_WAIT, shake_hands(group, peer, stream)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(None)) => Err(DialError::Refused),
        Ok(Err(Some(error))) => Err(DialError::Unreachable(format!("{}: {error}", peer.id))),
        Err(_) => Err(DialError::Unreachable(format!("{}: no answer to the handshake", peer.id))),
    }
}

/// Handshake and hello. The error is what the network said, `None` for a refusal.
async fn shake_hands(
    group: &Shared,
    peer: &PeerInfo,
    stream: TcpStream,
) -> Result<Connection, Option<io::Error>> {
    let config = tls::client_config(group.key.clone(), peer.id)
        .map_err(|error| Some(io::Error::other(error)))?;
    let mut secured =
        tls::handshake::dial(stream, config, &peer.id).await.map_err(|error| match error {
            HandshakeError::Io(error) => Some(error),
            HandshakeError::Refused(error) => {
                debug!(peer = %peer.id, %error, "TLS handshake refused");
                None
            }
        })?;
    match hello::offer(&mut secured, &group.membership, group.contact()).await {
        Ok(contact) => Ok(Connection { secured, contact, dialled: true }),
        // A listener that is not convinced closes without a word.
        Err(error) => {
            debug!(peer = %peer.id, %error, "join proof refused");
            Err(None)
        }
    }
}

async fn connect(core: Arc<Core>, to: SocketAddr) -> Result<TcpStream, DialError> {
    let unreachable = |error: io::Error| DialError::Unreachable(format!("{to}: {error}"));
    let socket = match to {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(unreachable)?;
    core.tune(&socket2::SockRef::from(&socket)).map_err(unreachable)?;
    match timeout(CONNECT_WAIT, socket.connect(to)).await {
        Ok(connected) => connected.map_err(unreachable),
        Err(_) => Err(DialError::Unreachable(format!("{to}: no answer"))),
    }
}
