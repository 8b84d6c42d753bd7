use super::*;
use crate::transport::plt::header::{BLOCKS_MAX, Credit};

const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn range(start: u64, end: u64) -> Range {
    Range { start, end }
}

/// A sender of ten-byte packets with a window of `packets` and without bursts.
fn sender(packets: u32) -> Sender {
    let mut config = Config { initial: Initial::Packets(packets), ..Config::default() };
    config.pacer.burst = 1_000;
    Sender::new(config, 10)
}

/// Sends packets until the window or `most` is used up; gives how many.
fn fill(sender: &mut Sender, now: Time, most: u64) -> u64 {
    let mut count = 0;
    while count < most && sender.may_send(now, 10, RTT) {
        // Actual offsets run apart from the virtual ones.
        let actual = 1_000 + sender.next;
        sender.send(now, range(actual, actual + 10), false, RTT);
        count += 1;
    }
    sender.check_invariants();
    count
}

/// A report from packet `from` to packet `to`, of which `blocks` of packets came.
fn report(from: u64, to: u64, blocks: &[(u64, u64)], echo: Time) -> Report {
    let mut said = [Range::default(); BLOCKS_MAX];
    for (slot, (start, end)) in said.iter_mut().zip(blocks) {
        *slot = range(start * 10, end * 10);
    }
    Report {
        from: from * 10,
        to: to * 10,
        blocks: said,
        blocks_len: blocks.len() as u8,
        echo: Some(echo),
        credit: Credit::default(),
    }
}

fn hear(sender: &mut Sender, ms: u64, said: Report) -> Vec<(u64, u64)> {
    let mut lost = Ranges::default();
    sender.on_report(at(ms), &said, RTT, u64::MAX, &mut lost);
    sender.check_invariants();
    lost.iter().map(|range| (range.start, range.end)).collect()
}

#[test]
fn the_window_limits_and_reports_make_room() {
    let mut sender = sender(10);
    assert_eq!((fill(&mut sender, at(0), 99), sender.flight()), (10, 100));
    assert_eq!(hear(&mut sender, 100, report(0, 4, &[(0, 4)], at(0))), []);
    assert_eq!((sender.flight(), sender.unknown()), (60, 40));
    // Four left, and the window doubles at the start.
    assert_eq!(fill(&mut sender, at(100), 99), 8);
}

#[test]
fn a_gap_is_a_loss_when_three_later_packets_have_come_and_goes_to_the_retransmit_buffer() {
    let mut sender = sender(10);
    fill(&mut sender, at(0), 99);
    assert_eq!(hear(&mut sender, 100, report(0, 4, &[(0, 1), (2, 4)], at(0))), []);
    assert_eq!(sender.unknown(), 10, "the fate of the second is open");
    assert_eq!(hear(&mut sender, 101, report(0, 5, &[(0, 1), (2, 5)], at(0))), [(1_010, 1_020)]);
    assert_eq!((sender.unknown(), sender.counts().lost), (50, 10));
}

#[test]
fn with_no_reordering_to_bear_a_gap_is_taken_at_its_word() {
    let mut sender = sender(10);
    sender.config.reordering = 0;
    fill(&mut sender, at(0), 99);
    assert_eq!(hear(&mut sender, 100, report(0, 3, &[(0, 1), (2, 3)], at(0))), [(1_010, 1_020)]);
}

#[test]
fn reports_out_of_order_or_lost_leave_no_packet_behind() {
    let mut sender = sender(20);
    fill(&mut sender, at(0), 99);
    assert_eq!(hear(&mut sender, 100, report(10, 20, &[(10, 20)], at(0))), []);
    assert_eq!(sender.unknown(), 0);
    assert_eq!(hear(&mut sender, 101, report(0, 10, &[(0, 5), (6, 10)], at(0))), [(1_050, 1_060)]);
    assert_eq!((sender.unknown(), sender.flight()), (200, 0));
}

#[test]
fn what_nobody_responds_to_times_out_after_a_little_over_three_round_trips() {
    let mut sender = sender(10);
    fill(&mut sender, at(0), 99);
    assert_eq!(sender.next_deadline(RTT), Some(at(325)));
    let mut lost = Ranges::default();
    sender.expire(at(324), RTT, 0, &mut lost);
    assert!(lost.is_empty());
    sender.expire(at(325), RTT, 0, &mut lost);
    assert_eq!((lost.bytes(), sender.flight(), sender.window().bytes()), (100, 0, 75));
    assert_eq!((sender.counts().timeouts, sender.next_deadline(RTT)), (1, None));
}

#[test]
fn a_packet_that_the_stream_is_known_to_have_is_not_lost_though_its_report_was() {
    let mut sender = sender(4);
    fill(&mut sender, at(0), 99);
    let mut lost = Ranges::default();
    sender.expire(at(325), RTT, 1_025, &mut lost);
    assert_eq!(lost.iter().copied().collect::<Vec<_>>(), [range(1_025, 1_040)]);
}

#[test]
fn below_one_packet_it_probes_once_per_round_trip_and_an_answer_wakes_it() {
    let mut sender = sender(1);
    fill(&mut sender, at(0), 99);
    let mut lost = Ranges::default();
    sender.expire(at(325), RTT, 0, &mut lost);
    assert!(sender.window().is_starved());
    assert_eq!(fill(&mut sender, at(326), 99), 1);
    assert_eq!((fill(&mut sender, at(327), 99), sender.next_deadline(RTT)), (0, Some(at(426))));
    assert_eq!(fill(&mut sender, at(426), 99), 1);
    hear(&mut sender, 430, report(1, 2, &[(1, 2)], at(326)));
    assert_eq!(sender.window().bytes(), 20);
}

#[test]
fn nobody_sends_a_lost_copy_again() {
    let mut sender = sender(10);
    sender.send(at(0), range(0, 10), true, RTT);
    fill(&mut sender, at(0), 4);
    assert_eq!(hear(&mut sender, 100, report(0, 5, &[(1, 5)], at(0))), []);
    assert_eq!((sender.counts().copies, sender.counts().lost), (10, 10));
}

#[test]
fn bursts_are_bounded() {
    let mut sender =
        Sender::new(Config { initial: Initial::Packets(100), ..Config::default() }, 10);
    assert_eq!(fill(&mut sender, at(0), 999), 16);
    let next = sender.next_deadline(RTT).unwrap();
    assert!(next > at(0) && next < at(10), "{next:?}");
    assert_eq!(fill(&mut sender, next, 999), 8);
}

#[test]
fn a_known_path_begins_with_a_tenth_of_its_bandwidth_delay_product() {
    let config = Config { initial: Initial::Bdp(10_000), ..Config::default() };
    assert_eq!(Sender::new(config, 10).window().bytes(), 1_000);
}

#[test]
fn silenced_it_sends_nothing_and_begins_anew_when_it_may_speak() {
    let mut sender = sender(10);
    sender.set_off(true);
    assert_eq!((fill(&mut sender, at(0), 99), sender.next_deadline(RTT)), (0, None));
    sender.set_off(false);
    assert_eq!(fill(&mut sender, at(0), 99), 10);
}

#[test]
fn lies_are_ignored() {
    let mut sender = sender(10);
    fill(&mut sender, at(0), 99);
    for lie in [
        report(0, 11, &[(0, 11)], at(0)),
        report(5, 8, &[(7, 8), (5, 6)], at(0)),
        report(5, 8, &[(4, 6)], at(0)),
        report(9, 3, &[], at(0)),
        report(0, u64::MAX / 10, &[], at(0)),
    ] {
        assert_eq!(hear(&mut sender, 100, lie), []);
        assert_eq!((sender.flight(), sender.unknown()), (100, 0));
    }
    // An echo from the future measures nothing.
    hear(&mut sender, 100, report(0, 1, &[(0, 1)], at(500)));
    assert_eq!(sender.srtt, None);
}
