mod timely;

use super::*;
use crate::transport::congestion::{NewReno, Start};
use crate::transport::packet::Segment;

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// A sender of ten-byte segments with a window of ten, and a stream of `bytes`.
fn sender(config: Config, bytes: u64) -> Sender {
    let control = NewReno::new(Start { mss: 10, window: 10, ssthresh: None });
    let mut sender = Sender::new(Config { mss: 10, ..config }, Box::new(control), 10_000);
    sender.write(bytes);
    sender
}

fn pull(sender: &mut Sender, now: Time) -> Vec<(u64, u64)> {
    let pulled = std::iter::from_fn(|| sender.poll_transmit(now, 0));
    pulled.map(|out| (out.range.start, out.range.end)).collect()
}

fn ack(ack: u64, blocks: &[(u64, u64)], echo: Time) -> Segment {
    let mut segment =
        Segment { has_ack: true, ack, window: 10_000, echo: Some(echo), ..Segment::default() };
    segment.sack_len = blocks.len() as u8;
    for (slot, &(start, end)) in segment.sack.iter_mut().zip(blocks) {
        *slot = Range { start, end };
    }
    segment
}

#[test]
fn the_window_and_then_acknowledgements_let_segments_go() {
    let mut sender = sender(Config::default(), 1_000);
    assert_eq!(pull(&mut sender, at(0)).len(), 10);
    sender.on_ack(at(100), &ack(20, &[], at(0)));
    // Two left and slow start opened the window by two.
    assert_eq!(pull(&mut sender, at(100)), [(100, 110), (110, 120), (120, 130), (130, 140)]);
    assert_eq!(sender.srtt(), 100 * MS);
}

#[test]
fn the_first_duplicates_let_new_segments_go_by_rfc_3042() {
    for (limited_transmit, gone) in [(true, 1), (false, 0)] {
        let mut sender = sender(Config { limited_transmit, ..Config::default() }, 1_000);
        pull(&mut sender, at(0));
        // In congestion avoidance, so that only what left the network makes room.
        sender.congestion.on_loss(at(0), 100);
        sender.on_ack(at(100), &ack(50, &[], at(0)));
        pull(&mut sender, at(100));
        sender.on_ack(at(101), &ack(50, &[(60, 70)], at(0)));
        assert_eq!(pull(&mut sender, at(101)).len(), gone);
        assert_eq!(sender.phase, Phase::Open);
    }
}

#[test]
fn recovery_resends_the_first_gap_at_once_and_the_others_as_the_pipe_drains() {
    let config = Config { proportional: false, ..Config::default() };
    let mut sender = sender(config, 10_000);
    pull(&mut sender, at(0));
    // Segments 0 and 1 are lost: no byte is acknowledged, three segments are.
    sender.on_ack(at(100), &ack(0, &[(20, 30)], at(0)));
    sender.on_ack(at(100), &ack(0, &[(20, 40)], at(0)));
    pull(&mut sender, at(100));
    let flight = sender.board.nxt();
    sender.on_ack(at(101), &ack(0, &[(20, 50)], at(0)));
    assert_eq!(sender.counts().recoveries, 1);
    assert_eq!(sender.congestion.window(), sender.congestion.ssthresh());
    assert!(sender.congestion.ssthresh() <= flight / 2);
    assert_eq!(pull(&mut sender, at(101)), [(0, 10)], "the first goes whatever the pipe says");
    // Each further arrival drains the pipe by one, until the second goes.
    let mut end = 50;
    while end < flight {
        end += 10;
        sender.on_ack(at(102), &ack(0, &[(20, end)], at(0)));
        let sent = pull(&mut sender, at(102));
        assert!(sender.board.pipe() <= sender.congestion.window() || sent.is_empty());
        if !sent.is_empty() {
            assert_eq!(sent[0], (10, 20));
            return;
        }
    }
    panic!("the second gap was never resent");
}

#[test]
fn recovery_ends_when_all_is_acknowledged_that_was_out_at_its_start() {
    let mut sender = sender(Config::default(), 100);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(0, &[(10, 40)], at(0)));
    assert_eq!(pull(&mut sender, at(100)), [(0, 10)]);
    sender.on_ack(at(200), &ack(40, &[], at(100)));
    assert!(matches!(sender.phase, Phase::Recovery { point: 100 }));
    sender.on_ack(at(210), &ack(100, &[], at(0)));
    assert_eq!(sender.phase, Phase::Open);
}

#[test]
fn a_time_out_sends_the_first_segment_and_then_fills_the_gaps_in_slow_start() {
    let mut sender = sender(Config { rack_tlp: false, ..Config::default() }, 100);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(0, &[(30, 50)], at(0)));
    let due = sender.next_deadline().unwrap();
    assert!(sender.handle_deadline(due));
    assert_eq!((sender.congestion.window(), sender.counts().timeouts), (10, 1));
    assert_eq!(pull(&mut sender, due), [(0, 10)]);
    sender.on_ack(due + 100 * MS, &ack(10, &[(30, 50)], due));
    assert_eq!(pull(&mut sender, due + 100 * MS), [(10, 20), (20, 30)]);
    sender.on_ack(due + 200 * MS, &ack(50, &[], due + 100 * MS));
    assert_eq!(pull(&mut sender, due + 200 * MS)[0], (50, 60), "what arrived is not sent again");
}

#[test]
fn the_timer_restarts_with_progress_and_stops_with_the_last_byte_by_rfc_6298_5() {
    let mut sender = sender(Config::default(), 100);
    pull(&mut sender, at(0));
    assert_eq!(sender.next_deadline(), Some(at(1_000)));
    sender.on_ack(at(100), &ack(50, &[], at(0)));
    let first = sender.next_deadline().unwrap();
    sender.on_ack(at(150), &ack(50, &[], at(0)));
    assert_eq!(sender.next_deadline(), Some(first), "no progress, no restart");
    sender.on_ack(at(160), &ack(100, &[], at(0)));
    assert_eq!(sender.next_deadline(), None);
}

#[test]
fn a_peer_that_never_answers_is_given_up_after_the_allowed_time_outs() {
    let mut sender = sender(Config { timeouts_max: 4, rack_tlp: false, ..Config::default() }, 100);
    pull(&mut sender, at(0));
    let mut waits = Vec::new();
    let mut now = at(0);
    loop {
        let due = sender.next_deadline().unwrap();
        waits.push(due.since(now).as_secs());
        now = due;
        if !sender.handle_deadline(now) {
            break;
        }
        assert_eq!(pull(&mut sender, now), [(0, 10)]);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16]);
    assert_eq!(sender.next_deadline(), None);
}

#[test]
fn a_time_out_that_the_echo_shows_to_be_needless_is_undone_by_rfc_3522() {
    let mut sender = sender(Config { rack_tlp: false, ..Config::default() }, 1_000);
    pull(&mut sender, at(0));
    assert!(sender.handle_deadline(at(1_000)));
    assert_eq!(pull(&mut sender, at(1_000)), [(0, 10)]);
    sender.on_ack(at(1_010), &ack(10, &[], at(0)));
    assert_eq!(sender.counts().undone, 1);
    assert!(sender.congestion.window() >= 100);
    assert!(pull(&mut sender, at(1_010)).iter().all(|sent| sent.0 >= 100), "nothing is resent");
}

#[test]
fn a_recovery_whose_segments_all_arrived_twice_is_undone_by_rfc_3708() {
    let mut sender = sender(Config::default(), 100);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(0, &[(10, 40)], at(0)));
    assert_eq!(pull(&mut sender, at(100)), [(0, 10)]);
    sender.on_ack(at(120), &ack(100, &[], at(100)));
    assert_eq!(sender.counts().undone, 0);
    sender.on_ack(at(200), &ack(100, &[(0, 10)], at(100)));
    assert_eq!(sender.counts().undone, 1);
    assert!(sender.congestion.window() >= 100);
}

#[test]
fn a_closed_window_is_probed_with_one_byte_for_as_long_as_the_peer_answers() {
    let mut sender = sender(Config { timeouts_max: 3, ..Config::default() }, 1_000);
    sender.edge = 30;
    assert_eq!(pull(&mut sender, at(0)).len(), 3);
    let shut = Segment { window: 0, ..ack(30, &[], at(0)) };
    sender.on_ack(at(100), &shut);
    assert_eq!(pull(&mut sender, at(100)), []);
    for _ in 0..10 {
        let due = sender.next_deadline().unwrap();
        assert!(sender.handle_deadline(due));
        assert_eq!(pull(&mut sender, due), [(30, 31)]);
        sender.on_ack(due + 10 * MS, &shut);
    }
    let counts = sender.counts();
    assert_eq!((counts.timeouts, counts.recoveries), (0, 0), "a shut window is no congestion");
    let now = sender.next_deadline().unwrap() - 100 * MS;
    sender.on_ack(now, &Segment { window: 100, echo: None, ..ack(30, &[], now) });
    assert_eq!(pull(&mut sender, now)[..2], [(30, 31), (31, 41)], "and at once when it opens");
}

#[test]
fn a_burst_is_bounded_when_that_is_asked_for() {
    let mut sender = sender(Config { burst_max: Some(4), ..Config::default() }, 1_000);
    assert_eq!(pull(&mut sender, at(0)).len(), 4);
    sender.on_ack(at(1), &ack(10, &[], at(0)));
    assert_eq!(pull(&mut sender, at(1)).len(), 4);
}

#[test]
fn acknowledgements_of_bytes_never_sent_change_nothing() {
    let mut sender = sender(Config::default(), 1_000);
    pull(&mut sender, at(0));
    let before = format!("{sender:?}");
    sender.on_ack(at(1), &ack(101, &[(0, 10)], at(0)));
    sender.on_ack(at(1), &ack(u64::MAX, &[(500, u64::MAX)], at(0)));
    assert_eq!(format!("{sender:?}"), before);
}

#[test]
fn the_last_segment_is_rescued_without_a_time_out_by_rule_4() {
    let mut sender = sender(Config::default(), 100);
    pull(&mut sender, at(0));
    // The first and the last two are lost: the tail has nothing above it.
    sender.on_ack(at(100), &ack(0, &[(10, 80)], at(0)));
    assert_eq!(pull(&mut sender, at(100)), [(0, 10), (90, 100)]);
    assert_eq!(pull(&mut sender, at(100)), [], "once per recovery");
}

#[test]
fn duplicates_of_what_was_resent_before_a_recovery_do_not_undo_it() {
    let mut sender = sender(Config::default(), 1_000);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(50, &[(60, 90)], at(0)));
    assert_eq!(pull(&mut sender, at(100))[0], (50, 60));
    sender.on_ack(at(101), &ack(50, &[(10, 20), (60, 90)], at(0)));
    assert_eq!((sender.counts().recoveries, sender.counts().undone), (1, 0));
}

#[test]
fn an_undone_recovery_stays_undone_while_other_late_segments_come() {
    let mut sender = sender(Config::default(), 1_000);
    pull(&mut sender, at(0));
    // The segments at 0 and 20 are late, not lost; both are resent.
    sender.on_ack(at(100), &ack(0, &[(30, 90), (10, 20)], at(0)));
    assert_eq!(pull(&mut sender, at(100))[..1], [(0, 10)]);
    sender.on_ack(at(101), &ack(0, &[(30, 100), (10, 20)], at(0)));
    pull(&mut sender, at(101));
    sender.on_ack(at(102), &ack(20, &[(30, 100)], at(0)));
    assert_eq!((sender.counts().recoveries, sender.counts().undone), (1, 1));
    sender.on_ack(at(103), &ack(100, &[], at(0)));
    assert_eq!((sender.counts().recoveries, sender.counts().undone), (1, 1));
}

#[test]
fn a_loss_behind_the_point_of_a_recovery_is_a_reaction_of_its_own() {
    let mut sender = sender(Config { rack_tlp: false, ..Config::default() }, 1_000);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(0, &[(10, 90)], at(0)));
    let sent = pull(&mut sender, at(100));
    assert_eq!((sent[0], sent[1]), ((0, 10), (100, 110)));
    let end = sent.last().unwrap().1;
    // The segment at 100 is lost too, and resent before the first recovery is over.
    sender.on_ack(at(199), &ack(0, &[(110, end), (10, 100)], at(100)));
    let end = pull(&mut sender, at(199)).last().unwrap().1;
    sender.on_ack(at(200), &ack(0, &[(110, end), (10, 100)], at(100)));
    assert_eq!(pull(&mut sender, at(200))[0], (100, 110));
    assert_eq!(sender.counts().recoveries, 1);
    sender.on_ack(at(201), &ack(100, &[(110, end)], at(100)));
    assert_eq!(sender.counts().recoveries, 2);
}

#[test]
fn a_recovery_sends_one_for_two_that_arrive_by_rfc_6937_until_the_window_is_halved() {
    let mut sender = sender(Config::default(), 10_000);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(0, &[(10, 40)], at(0)));
    // Three of ten arrived, so that two segments may go for a window of five: one is the resent.
    assert_eq!(pull(&mut sender, at(100)), [(0, 10)]);
    let mut sent = 0;
    for end in 5..=10 {
        sender.on_ack(at(100 + end), &ack(0, &[(10, 10 * end)], at(0)));
        sent += pull(&mut sender, at(100 + end)).len();
    }
    assert_eq!((sent, sender.board.pipe()), (4, 50));
    assert_eq!(sender.congestion.window(), 50);
}

#[test]
fn a_sender_tells_how_many_bytes_would_go_at_once_if_they_were_written() {
    let mut sender = sender(Config::default(), 0);
    assert_eq!(sender.room(), 100);
    sender.write(30);
    assert_eq!(sender.room(), 70);
    pull(&mut sender, at(0));
    assert_eq!(sender.room(), 70);
    sender.write(100);
    assert_eq!(sender.room(), 0);
    assert_eq!(pull(&mut sender, at(0)).len(), 7);
    sender.on_ack(at(100), &ack(0, &[(10, 50)], at(0)));
    assert_eq!(sender.room(), 0, "what is lost goes first");
}

#[test]
fn what_a_recovery_resent_does_not_undo_the_next_one() {
    let mut sender = sender(Config::default(), 2_000);
    sender.congestion = Box::new(NewReno::new(Start { mss: 10, window: 40, ssthresh: None }));
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(0, &[(10, 400)], at(0)));
    let second = 400;
    let end = pull(&mut sender, at(100)).last().unwrap().1;
    // The segment behind the first recovery's point is lost and resent in it.
    sender.on_ack(at(199), &ack(0, &[(second + 10, end), (10, second)], at(100)));
    assert_eq!(pull(&mut sender, at(199))[0], (second, second + 10));
    sender.on_ack(at(200), &ack(second, &[(second + 10, end)], at(100)));
    assert_eq!(sender.counts().recoveries, 2);
    let third = sender.board.nxt();
    sender.on_ack(at(201), &ack(second, &[(second + 10, third)], at(101)));
    assert!(pull(&mut sender, at(201)).len() > 4);
    let end = sender.board.nxt();
    sender.on_ack(at(298), &ack(second, &[(third + 10, end), (second + 10, third)], at(201)));
    assert_eq!(pull(&mut sender, at(298))[0], (third, third + 10));
    sender.on_ack(at(299), &ack(third, &[(third + 10, end)], at(199)));
    assert_eq!(sender.counts().undone, 0);
}
