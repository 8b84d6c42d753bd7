//! One source and several receivers.

use crate::stage::{Stage, assert_same, number};

const LEN: usize = 24 << 20;

#[test]
fn eight_receivers_get_the_same_bytes_and_most_of_them_from_each_other() {
    let stage = Stage::new();
    let file = stage.file("content", LEN);
    // A source slower than its receivers: what they can give each other, they must.
    let mut source = stage.send(&file, &["--until-complete", "8", "--limit-up", "12MB/s"]);
    let ticket = source.ticket();
    let names: Vec<String> = (0..8).map(|index| format!("r{index}")).collect();
    let mut receivers: Vec<_> = names.iter().map(|name| stage.get(name, &ticket, &[])).collect();
    for (receiver, name) in receivers.iter_mut().zip(&names) {
        receiver.verified();
        assert_same(&file, &stage.path(name).join("content"));
    }
    let end = source.end();
    assert_eq!((end.code, &end.last["event"]), (Some(0), &"result".into()), "{end:?}");
    let content = &end.last["contents"][0];
    assert_eq!(content["receivers"].as_array().unwrap().len(), 8);
    let uploaded = number(content, "uploaded");
    assert!(uploaded < 4 * LEN as u64, "the source sent {uploaded} bytes, half of all copies");
}

#[test]
fn a_late_joiner_gets_everything() {
    let stage = Stage::new();
    let file = stage.file("content", LEN);
    let mut source = stage.send(&file, &[]);
    let ticket = source.ticket();
    stage.get("early", &ticket, &["--linger", "0"]).verified();
    stage.get("late", &ticket, &[]).verified();
    assert_same(&file, &stage.path("late/content"));
}

#[test]
fn a_late_joiner_gets_everything_from_a_finished_receiver_when_the_source_is_gone() {
    let stage = Stage::new();
    let file = stage.file("content", LEN);
    let mut source = stage.send(&file, &[]);
    let mut first = stage.get("first", &source.ticket(), &[]);
    let ticket = first.verified()["ticket"].as_str().unwrap().to_owned();
    source.interrupt();
    assert_eq!(source.end().code, Some(130));
    let late = stage.get("late", &ticket, &["--linger", "0"]).end();
    assert_eq!(late.code, Some(0), "{late:?}");
    assert_eq!(number(&late.last, "from_source"), 0);
    assert_eq!(number(&late.last, "from_peers"), LEN as u64);
    assert_same(&file, &stage.path("late/content"));
}

#[test]
fn a_receiver_that_accepts_no_connections_gets_everything_and_serves_others() {
    let stage = Stage::new();
    let file = stage.file("content", LEN);
    // Slow enough that both are there while blocks still move.
    let mut source = stage.send(&file, &["--limit-up", "6MB/s"]);
    let ticket = source.ticket();
    let mut closed = stage.get("closed", &ticket, &["--no-listen"]);
    let mut open = stage.get("open", &ticket, &[]);
    closed.verified();
    open.verified();
    assert_same(&file, &stage.path("closed/content"));
    assert_same(&file, &stage.path("open/content"));
    closed.interrupt();
    let uploaded = number(&closed.end().last, "uploaded");
    assert!(uploaded > 0, "it gave nothing to the other receiver");
}

#[test]
fn two_contents_are_served_by_one_source() {
    let stage = Stage::new();
    let (a, b) = (stage.file("a", 100_000), stage.file("b", 200_000));
    let mut source = stage.send(&a, &["--until-complete", "1", b.to_str().unwrap()]);
    // The extra path stands before the first.
    let tickets = [source.ticket(), source.ticket()];
    for (index, ticket) in tickets.iter().enumerate() {
        stage.get(&format!("r{index}"), ticket, &["--linger", "2"]).verified();
    }
    assert_same(&b, &stage.path("r0/b"));
    assert_same(&a, &stage.path("r1/a"));
    assert_eq!(source.end().code, Some(0));
}

#[test]
fn a_star_serves_everybody_from_the_source_alone() {
    let stage = Stage::new();
    let file = stage.file("content", 4 << 20);
    let mut source = stage.send(&file, &["--system", "star", "--until-complete", "2"]);
    let ticket = source.ticket();
    for name in ["a", "b"] {
        let verified = stage.get(name, &ticket, &["--linger", "0"]).end();
        assert_eq!(verified.code, Some(0), "{verified:?}");
        assert_eq!(number(&verified.last, "from_peers"), 0);
        assert_same(&file, &stage.path(name).join("content"));
    }
    assert_eq!(source.end().code, Some(0));
}

#[test]
fn the_demo_delivers_equal_copies_and_cleans_up() {
    let stage = Stage::new();
    let temporary = stage.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = stage.command("demo");
    command.env("TMPDIR", &temporary).args(["demo", "--receivers", "3", "--size", "4MiB"]);
    let end = crate::stage::Program::start(command).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(end.last["event"], "result");
    let receivers = end.last["receivers"].as_array().unwrap();
    assert!(receivers.len() == 3 && receivers.iter().all(|r| r["is_same"] == true));
    let ratio = end.last["source_egress_ratio"].as_f64().unwrap();
    assert!((0.99..3.5).contains(&ratio), "{ratio}: {end:?}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}
