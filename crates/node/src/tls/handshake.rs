//! The TLS handshake over a TCP connection, record by record, within small bounds.

use super::record::{HEAD_LEN, Keys};
use super::{peer_of, server_name};
use anabranch_proto::id::PeerId;
use anabranch_proto::link::handshake::Side;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::io;
use std::sync::Arc;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The most bytes buffered for a stranger: a handshake record, or a hello.
pub(crate) const STRANGER_LEN_MAX: usize = 4096;

const JOIN_LABEL: &[u8] = b"EXPORTER-anabranch-join";
const CHAIN_LABEL: &[u8] = b"EXPORTER-anabranch-record-keys";

/// A connection whose far end has proved its key.
pub(crate) struct Secured {
    pub(crate) stream: TcpStream,
    /// Who is there.
    pub(crate) peer: PeerId,
    /// Which of this node's keys was shown; a listener may have several.
    pub(crate) server_name: String,
    /// This connection's own value, which join proofs are bound to.
    pub(crate) exporter: [u8; 32],
    pub(crate) seal: Keys,
    pub(crate) open: Keys,
}

/// Why there is no secure connection.
#[derive(Debug, Error)]
pub(crate) enum HandshakeError {
    /// The network failed or the far end went away.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// One end did not accept the other: wrong key, unknown name, or not this protocol.
    #[error(transparent)]
    Refused(#[from] rustls::Error),
}

/// The handshake of the end that dialled.
pub(crate) async fn dial(
    stream: TcpStream,
    config: Arc<ClientConfig>,
    peer: &PeerId,
) -> Result<Secured, HandshakeError> {
    let name = server_name(peer);
    let server = ServerName::try_from(name.clone()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(config, server)?;
    run(stream, Connection::Client(connection), Side::Dialler, name).await
}

/// The handshake of the end that was dialled.
pub(crate) async fn accept(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> Result<Secured, HandshakeError> {
    let connection = ServerConnection::new(config)?;
    run(stream, Connection::Server(connection), Side::Listener, String::new()).await
}

async fn run(
    mut stream: TcpStream,
    mut connection: Connection,
    side: Side,
    mut server_name: String,
) -> Result<Secured, HandshakeError> {
    let mut record = Vec::new();
    loop {
        flush(&mut stream, &mut connection).await?;
        if !connection.is_handshaking() {
            break;
        }
        // Only whole records are given to rustls, so nothing that belongs to the session that
        // follows is left inside of it.
        read_record(&mut stream, &mut record).await?;
        connection.read_tls(&mut record.as_slice())?;
        if let Err(error) = connection.process_new_packets() {
            // The alert tells the far end why; that it may not arrive does not matter.
            let _ = flush(&mut stream, &mut connection).await;
            return Err(HandshakeError::Refused(error));
        }
    }
    if let Connection::Server(server) = &connection {
        server_name = server.server_name().unwrap_or_default().to_string();
    }
    Ok(secured(stream, connection, side, server_name)?)
}

fn secured(
    stream: TcpStream,
    connection: Connection,
    side: Side,
    server_name: String,
) -> Result<Secured, rustls::Error> {
    let certificates = connection.peer_certificates().unwrap_or_default();
    let key = certificates.first().ok_or(rustls::Error::NoCertificatesPresented)?;
    let peer = peer_of(key)?;
    let export = |label: &[u8], context: &[u8]| {
        connection.export_keying_material([0; 32], label, Some(context))
    };
    let exporter = export(JOIN_LABEL, b"")?;
    let (from_dialler, from_listener) =
        (export(CHAIN_LABEL, b"dialler")?, export(CHAIN_LABEL, b"listener")?);
    let (near, far) = match side {
        Side::Dialler => (from_dialler, from_listener),
        Side::Listener => (from_listener, from_dialler),
    };
    let secrets = match connection {
        Connection::Client(connection) => connection.dangerous_extract_secrets()?,
        Connection::Server(connection) => connection.dangerous_extract_secrets()?,
    };
    let general = |error: io::Error| rustls::Error::General(error.to_string());
    let seal = Keys::new(secrets.tx, near).map_err(general)?;
    let open = Keys::new(secrets.rx, far).map_err(general)?;
    Ok(Secured { stream, peer, server_name, exporter, seal, open })
}

async fn flush(stream: &mut TcpStream, connection: &mut Connection) -> io::Result<()> {
    let mut out = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut out)?;
    }
    stream.write_all(&out).await
}

/// Reads exactly one record, at most [`STRANGER_LEN_MAX`] bytes of it.
pub(crate) async fn read_record(stream: &mut TcpStream, record: &mut Vec<u8>) -> io::Result<()> {
    let mut head = [0; HEAD_LEN];
    stream.read_exact(&mut head).await?;
    let len = usize::from(u16::from_be_bytes([head[3], head[4]]));
    if !(20..=23).contains(&head[0]) || head[1] != 3 || len > STRANGER_LEN_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a TLS handshake"));
    }
    record.clear();
    record.extend_from_slice(&head);
    record.resize(HEAD_LEN + len, 0);
    stream.read_exact(&mut record[HEAD_LEN..]).await?;
    Ok(())
}
