//! Processes that are killed or interrupted, and what is left of their work.

use crate::stage::{Program, Stage, assert_same, number};

const LEN: usize = 24 << 20;
const BLOCK: u64 = 64 << 10;

#[test]
fn a_receiver_killed_half_way_continues_and_fetches_little_again() {
    let stage = Stage::new();
    let file = stage.file("content", LEN);
    let mut source = stage.send(&file, &["--block-size", "64KiB"]);
    let ticket = source.ticket();
    let mut killed = stage.get("r", &ticket, &["--limit-down", "6MB/s"]);
    let half = |event: &serde_json::Value| {
        event["event"] == "progress" && number(event, "bytes_done") > LEN as u64 / 2
    };
    let had = number(&killed.wait_for(half), "bytes_done");
    killed.kill();
    assert!(!stage.path("r/content").exists(), "the name appears only when all is there");

    let end = stage.get("r", &ticket, &["--linger", "0"]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    let kept = number(&end.last, "bytes_before");
    let came = number(&end.last, "from_source") + number(&end.last, "from_peers");
    assert_eq!(kept + came, LEN as u64);
    let lost = had.saturating_sub(kept);
    assert!(lost <= IN_FLIGHT_MAX, "of {had} bytes {lost} were fetched again");
    let sent_before = std::cell::Cell::new(0);
    let all_is_sent = |event: &serde_json::Value| {
        event["event"] == "progress" && {
            let sent = number(event, "uploaded");
            sent_before.replace(sent) == sent && sent >= LEN as u64
        }
    };
    let sent = number(&source.wait_for(all_is_sent), "uploaded");
    let twice = sent.saturating_sub(LEN as u64);
    assert!(twice <= IN_FLIGHT_MAX, "{twice} bytes were sent twice");
    assert_same(&file, &stage.path("r/content"));
}

/// As many blocks as may be under way to a receiver at once.
const IN_FLIGHT_MAX: u64 = 25 * BLOCK;

#[test]
fn a_receiver_interrupted_half_way_says_so_and_continues() {
    let stage = Stage::new();
    let file = stage.file("content", LEN);
    let mut source = stage.send(&file, &[]);
    let ticket = source.ticket();
    let mut receiver = stage.get("r", &ticket, &["--limit-down", "6MB/s"]);
    let some = |event: &serde_json::Value| {
        event["event"] == "progress" && number(event, "bytes_done") > LEN as u64 / 4
    };
    let had = number(&receiver.wait_for(some), "bytes_done");
    receiver.interrupt();
    let end = receiver.end();
    assert_eq!((end.code, &end.last["code"]), (Some(130), &130.into()), "{end:?}");
    assert!(end.stderr.contains("run the same command again to continue"), "{}", end.stderr);
    let end = stage.get("r", &ticket, &["--linger", "0"]).end();
    assert!(number(&end.last, "bytes_before") >= had, "{end:?}: all of {had} bytes was recorded");
    assert_same(&file, &stage.path("r/content"));
}

#[test]
fn a_source_killed_when_one_copy_is_out_is_not_missed_and_comes_back() {
    let stage = Stage::new();
    let file = stage.file("content", LEN);
    let listen = free_address();
    let mut source = stage.send_on(&listen, &file, &[]);
    let ticket = source.ticket();
    let mut slow = stage.get("slow", &ticket, &["--limit-down", "6MB/s"]);
    let mut fast = stage.get("fast", &ticket, &[]);
    fast.verified();
    source.kill();
    slow.verified();
    assert_same(&file, &stage.path("slow/content"));

    let mut source = stage.send_on(&listen, &file, &[]);
    assert_eq!(root_of(&source.ticket()), root_of(&ticket));
    let mut late = stage.get("late", &ticket, &[]);
    late.verified();
    assert_same(&file, &stage.path("late/content"));
}

/// What an old ticket and a new one of the same content have in common, beside the addresses.
fn root_of(ticket: &str) -> ([u8; 32], [u8; 32], [u8; 16]) {
    let ticket: anabranch_node::Ticket = ticket.parse().unwrap();
    (ticket.root, ticket.source.0, ticket.secret.0)
}

#[test]
fn an_interrupted_source_that_was_to_serve_more_receivers_ends_as_partial() {
    let stage = Stage::new();
    let file = stage.file("content", 1 << 20);
    let mut source = stage.send(&file, &["--until-complete", "2"]);
    let ticket = source.ticket();
    let mut receiver = stage.get("r", &ticket, &[]);
    receiver.verified();
    source.event("outcome");
    source.interrupt();
    let end = source.end();
    assert_eq!(end.code, Some(7), "{end:?}");
    assert!(end.stderr.contains("1 of 2 receivers"), "{}", end.stderr);
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let stage = Stage::new();
    let mut source: Program = stage.send(&stage.file("content", 1 << 20), &[]);
    source.ticket();
    source.interrupt();
    std::thread::sleep(std::time::Duration::from_millis(20));
    source.interrupt();
    assert_eq!(source.end().code, Some(130));
}

/// An address that a source can have again after it was killed.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
