//! The smallest BitTorrent tracker: every peer is told of every other.

use crate::seat::Seat;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where each peer listens, and whether it said that it lacks nothing.
type Peers = Arc<Mutex<BTreeMap<SocketAddrV4, bool>>>;

/// A tracker for one torrent, served until the process ends.
pub(crate) struct Tracker {
    address: SocketAddr,
    peers: Peers,
}

impl Tracker {
    /// Starts serving on a free port at `seat`.
    pub(crate) fn start(seat: &Seat) -> io::Result<Tracker> {
        let listener = seat.listen()?;
        let address = listener.local_addr()?;
        let peers = Peers::default();
        let shared = Arc::clone(&peers);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up half way announces again by itself.
                let _ = answer(stream, &shared);
            }
        });
        Ok(Tracker { address, peers })
    }

    /// The announce address to put into the torrent.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/announce", self.address)
    }

    /// Whether a peer that has everything has announced itself.
    pub(crate) fn has_seed(&self) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).values().any(|seed| *seed)
    }

    /// Forgets all peers, for the next run.
    pub(crate) fn clear(&self) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn answer(mut stream: TcpStream, peers: &Peers) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut request = [0; 4096];
    let mut len = 0;
    while len < request.len() && !request[..len].windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut request[len..])? {
            0 => break,
            n => len += n,
        }
    }
    let head = String::from_utf8_lossy(&request[..len]);
    let query = head.split(' ').nth(1).and_then(|target| target.split_once('?'));
    let SocketAddr::V4(from) = stream.peer_addr()? else { return Ok(()) };
    let body = announce(query.map_or("", |(_, query)| query), *from.ip(), peers);
    let lines = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(lines.as_bytes())?;
    stream.write_all(&body)
}

fn announce(query: &str, from: Ipv4Addr, peers: &Peers) -> Vec<u8> {
    let value = |name: &str| {
        query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
    };
    let port: u16 = value("port").and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
    let me = SocketAddrV4::new(from, port);
    let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
    if value("event").is_some_and(|(_, event)| event == "stopped") {
        peers.remove(&me);
    } else if port != 0 {
        peers.insert(me, value("left").is_some_and(|(_, left)| left == "0"));
    }
    let others: Vec<_> = peers.keys().copied().filter(|other| *other != me).collect();
    let mut body =
        format!("d8:intervali20e12:min intervali5e5:peers{}:", others.len() * 6).into_bytes();
    for other in others {
        body.extend_from_slice(&other.ip().octets());
        body.extend_from_slice(&other.port().to_be_bytes());
    }
    body.push(b'e');
    body
}
