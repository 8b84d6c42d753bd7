//! What somebody who speaks the protocol badly, or without the right, achieves.

use super::*;
use crate::ErrorKind;
use crate::link::hello::{self, Membership};
use crate::tls::handshake::Secured;
use crate::tls::record::{HEAD_LEN, PLAIN_LEN_MAX, TAIL_LEN};
use anabranch_proto::id::PeerInfo;
use anabranch_proto::link::frame::Frame;
use anabranch_proto::link::handshake::{JoinSecret, Side, group_tag};
use anabranch_proto::overlay::System;
use std::future::Future;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

async fn within<T>(test: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(40), test).await.expect("the test must end in time")
}

/// A source on loopback that shares a file of `len` bytes in blocks of 16 KiB.
async fn source(dir: &TempDir, len: usize, limit_up: Option<u64>) -> (Node, Group) {
    source_of(System::Star, dir, len, limit_up).await
}

async fn source_of(
    system: System,
    dir: &TempDir,
    len: usize,
    limit_up: Option<u64>,
) -> (Node, Group) {
    let path = dir.path().join("file");
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    let node = node(dir, limit_up).await;
    let options = ShareOptions { system, block_size: Some(16 * 1024), ..ShareOptions::default() };
    let group = node.share(&path, options).await.unwrap();
    (node, group)
}

async fn node(dir: &TempDir, limit_up: Option<u64>) -> Node {
    let mut config = NodeConfig::new(dir.path().join("state"));
    config.listen = Some("127.0.0.1:0".parse().unwrap());
    config.limit_up = limit_up;
    Node::bind(config).await.unwrap()
}

/// A TLS connection to `peer` with a new key.
async fn connect(peer: &PeerInfo) -> Secured {
    connect_as(peer, &Identity::generate().unwrap()).await
}

async fn connect_as(peer: &PeerInfo, identity: &Identity) -> Secured {
    let address = address::addresses(&peer.contact)[0];
    let stream = TcpStream::connect(address).await.unwrap();
    let config = tls::client_config(tls::certified_key(identity).unwrap(), peer.id).unwrap();
    tls::handshake::dial(stream, config, &peer.id).await.unwrap()
}

fn membership(ticket: &Ticket, secret: JoinSecret) -> Membership {
    Membership { tag: group_tag(&ticket.root, &secret), secret }
}

/// Seals and sends plaintext of any length.
async fn send(secured: &mut Secured, plain: &[u8]) -> io::Result<()> {
    for chunk in plain.chunks(PLAIN_LEN_MAX) {
        let mut record = vec![0; HEAD_LEN];
        record.extend_from_slice(chunk);
        record.resize(record.len() + TAIL_LEN, 0);
        secured.seal.seal(&mut record).unwrap();
        secured.stream.write_all(&record).await?;
    }
    Ok(())
}

/// How many bytes the far end still sends before it hangs up, soon.
async fn heard_until_closed(secured: &mut Secured) -> usize {
    let mut heard = Vec::new();
    let read = secured.stream.read_to_end(&mut heard);
    // A reset is as good an end as another.
    let _ = timeout(Duration::from_secs(7), read).await.expect("the far end must hang up");
    heard.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_told_to_one_who_does_not_prove_the_secret() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 100_000, None).await;
        let ticket = group.ticket();
        let right = membership(&ticket, ticket.secret);
        let wrong = JoinSecret([9; 16]);
        let half = Membership { tag: right.tag, secret: wrong };
        for (member, side) in [
            (membership(&ticket, wrong), Side::Dialler),
            (half, Side::Dialler),
            (right, Side::Listener),
        ] {
            let mut secured = connect(&ticket.contacts[0]).await;
            hello::say(&mut secured, side, &member, Contact::default()).await.unwrap();
            assert_eq!(heard_until_closed(&mut secured).await, 0);
        }
        let garbage: [&[u8]; 3] = [b"garbage", &[1, 0xff, 0xff, 0xff], &[0; 3000]];
        for garbage in garbage {
            let mut secured = connect(&ticket.contacts[0]).await;
            send(&mut secured, garbage).await.unwrap();
            assert_eq!(heard_until_closed(&mut secured).await, 0);
        }
        let mut silent = connect(&ticket.contacts[0]).await;
        assert_eq!(heard_until_closed(&mut silent).await, 0);
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hello_of_another_connection_proves_nothing() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 100_000, None).await;
        let ticket = group.ticket();
        let right = membership(&ticket, ticket.secret);
        let mut first = connect(&ticket.contacts[0]).await;
        let mut second = connect(&ticket.contacts[0]).await;
        assert_ne!(first.exporter, second.exporter);
        second.exporter = first.exporter;
        hello::say(&mut second, Side::Dialler, &right, Contact::default()).await.unwrap();
        assert_eq!(heard_until_closed(&mut second).await, 0);
        assert!(hello::offer(&mut first, &right, Contact::default()).await.is_ok());
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_breaks_the_protocol_is_hung_up_on_and_others_are_served() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 100_000, None).await;
        let ticket = group.ticket();
        let right = membership(&ticket, ticket.secret);
        let mut start = Vec::new();
        Frame::BlockStart { block: 0, len: 16_384, header: vec![], proof: vec![] }
            .encode(&mut start);
        let breaches: [Vec<u8>; 5] = [
            vec![4, 1, 0, 0, 7],           // a fragment of no block
            vec![1, 1, 0, 1],              // a message longer than allowed
            vec![99, 0xff, 0xff, 0xff],    // any frame longer than allowed
            vec![6, 1, 0, 0, 5],           // a ping of the wrong length
            [&start[..], &start].concat(), // a block inside a block
        ];
        for breach in breaches {
            let mut secured = connect(&ticket.contacts[0]).await;
            hello::offer(&mut secured, &right, Contact::default()).await.unwrap();
            send(&mut secured, &breach).await.unwrap();
            heard_until_closed(&mut secured).await;
        }
        // A record that is not sealed right.
        let mut secured = connect(&ticket.contacts[0]).await;
        hello::offer(&mut secured, &right, Contact::default()).await.unwrap();
        secured.stream.write_all(&[23, 3, 3, 0, 40]).await.unwrap();
        secured.stream.write_all(&[0; 40]).await.unwrap();
        heard_until_closed(&mut secured).await;

        let receiver = self::node(&dir, None).await;
        let fetched = receiver.fetch(ticket, FetchOptions::new(dir.path().join("out"))).await;
        fetched.unwrap().wait_complete().await.unwrap();
        receiver.close().await;
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_a_corrupt_block_is_banned_and_the_download_completes() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 600_000, Some(300_000)).await;
        let ticket = group.ticket();
        let receiver = self::node(&dir, None).await;
        let out = FetchOptions::new(dir.path().join("out"));
        let fetch = receiver.fetch(ticket.clone(), out).await.unwrap();
        let mut events = fetch.events();
        let target = fetch.ticket().contacts[0].clone();
        assert_ne!(target.id, ticket.source);

        let (poisoner, right) = (Identity::generate().unwrap(), membership(&ticket, ticket.secret));
        let mut secured = connect_as(&target, &poisoner).await;
        hello::offer(&mut secured, &right, Contact::default()).await.unwrap();
        let mut poison = Vec::new();
        Frame::BlockStart { block: 35, len: 16_384, header: vec![], proof: vec![] }
            .encode(&mut poison);
        Frame::Fragment { len: 16_384 }.encode(&mut poison);
        poison.resize(poison.len() + 16_384, 0x55);
        send(&mut secured, &poison).await.unwrap();
        heard_until_closed(&mut secured).await;

        let mut again = connect_as(&target, &poisoner).await;
        assert!(hello::offer(&mut again, &right, Contact::default()).await.is_err());
        let path = fetch.wait_complete().await.unwrap();
        let (came, shared) = (std::fs::read(path).unwrap(), std::fs::read(dir.path().join("file")));
        assert!(came == shared.unwrap());
        let mut banned = false;
        while let Ok(event) = events.try_recv() {
            banned |= matches!(event, Event::PeerBanned { peer } if peer == poisoner.id());
        }
        assert!(banned);
        receiver.close().await;
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_pings_and_never_reads_is_given_up() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 100_000, None).await;
        let ticket = group.ticket();
        let mut secured = connect(&ticket.contacts[0]).await;
        let right = membership(&ticket, ticket.secret);
        hello::offer(&mut secured, &right, Contact::default()).await.unwrap();
        let mut pings = Vec::new();
        (0..10_000).for_each(|nonce| Frame::Ping { nonce }.encode(&mut pings));
        // The kernels on both sides buffer some megabytes of pongs; then the source must act.
        let flood = async { while send(&mut secured, &pings).await.is_ok() {} };
        timeout(Duration::from_secs(20), flood).await.expect("the flood must be cut off");
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_connects_again_is_linked_by_its_newer_connection_only() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 100_000, None).await;
        let ticket = group.ticket();
        let (member, right) = (Identity::generate().unwrap(), membership(&ticket, ticket.secret));
        let mut older = connect_as(&ticket.contacts[0], &member).await;
        hello::offer(&mut older, &right, Contact::default()).await.unwrap();
        let mut newer = connect_as(&ticket.contacts[0], &member).await;
        hello::offer(&mut newer, &right, Contact::default()).await.unwrap();
        heard_until_closed(&mut older).await;
        let mut byte = [0; 6];
        newer.stream.read_exact(&mut byte).await.unwrap();
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_a_node_takes_no_longer_than_its_peers_that_do_not_answer() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 100_000, None).await;
        let ticket = group.ticket();
        let right = membership(&ticket, ticket.secret);
        let mut mute = connect(&ticket.contacts[0]).await;
        hello::offer(&mut mute, &right, Contact::default()).await.unwrap();
        let mut events = group.events();
        let begun = std::time::Instant::now();
        node.close().await;
        assert!(begun.elapsed() < Duration::from_secs(4));
        while let Ok(event) = events.recv().await {
            assert!(!matches!(event, Event::Failed { .. }));
        }
        assert_eq!(group.events().recv().await.unwrap_err(), RecvError::Closed);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_falls_silent_is_pinged_and_given_up_within_seconds() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (node, group) = source(&dir, 100_000, None).await;
        let ticket = group.ticket();
        let right = membership(&ticket, ticket.secret);
        let mut mute = connect(&ticket.contacts[0]).await;
        hello::offer(&mut mute, &right, Contact::default()).await.unwrap();
        let begun = std::time::Instant::now();
        let mut heard = Vec::new();
        let read = mute.stream.read_to_end(&mut heard);
        // The connection may end with a reset.
        let _ = timeout(Duration::from_secs(11), read).await.expect("it must be given up");
        assert!(begun.elapsed() >= Duration::from_secs(7));
        let ping = HEAD_LEN + 12 + TAIL_LEN;
        assert!(heard.len() >= 3 * ping, "{}", heard.len());
        node.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_a_system_that_only_the_simulator_runs_is_refused_and_nothing_is_created() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let (sharing, group) = source_of(System::BitTorrent, &dir, 100_000, None).await;
        let other = tempfile::tempdir().unwrap();
        let fetching = node(&other, None).await;
        let into = other.path().join("received");
        let options = FetchOptions::new(into.clone());
        let error = fetching.fetch(group.ticket(), options).await.expect_err("is refused");
        assert_eq!(error.kind(), ErrorKind::Capability);
        assert_eq!(error.kind().exit_code(), 8);
        assert!(error.to_string().starts_with("this group runs bittorrent, which is"), "{error}");
        assert!(!into.exists());
        fetching.close().await;
        sharing.close().await;
    })
    .await;
}
