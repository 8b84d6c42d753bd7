//! The smallest BitTorrent tracker: everybody on 127.0.0.1, every peer told of every other.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Port of each peer, and whether it said that it lacks nothing.
type Peers = Arc<Mutex<BTreeMap<u16, bool>>>;

/// A tracker for one torrent, served until the process ends.
pub(crate) struct Tracker {
    port: u16,
    peers: Peers,
}

impl Tracker {
    /// Starts serving on a free port.
    pub(crate) fn start() -> io::Result<Tracker> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let peers = Peers::default();
        let shared = Arc::clone(&peers);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up half way announces again by itself.
                let _ = answer(stream, &shared);
            }
        });
        Ok(Tracker { port, peers })
    }

    /// The announce address to put into the torrent.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/announce", self.port)
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
    let body = announce(query.map_or("", |(_, query)| query), peers);
    let lines = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(lines.as_bytes())?;
    stream.write_all(&body)
}

fn announce(query: &str, peers: &Peers) -> Vec<u8> {
    let value = |name: &str| {
        query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
    };
    let port: u16 = value("port").and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
    let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
    if value("event").is_some_and(|(_, event)| event == "stopped") {
        peers.remove(&port);
    } else if port != 0 {
        peers.insert(port, value("left").is_some_and(|(_, left)| left == "0"));
    }
    let others: Vec<u16> = peers.keys().copied().filter(|other| *other != port).collect();
    let mut body =
        format!("d8:intervali20e12:min intervali5e5:peers{}:", others.len() * 6).into_bytes();
    for other in others {
        body.extend_from_slice(&[127, 0, 0, 1]);
        body.extend_from_slice(&other.to_be_bytes());
    }
    body.push(b'e');
    body
}
