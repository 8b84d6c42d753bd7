use super::*;

/// A sender that has measured 100 ms, and sent 100..200 in ten segments at 100 ms.
fn measured(bytes: u64) -> Sender {
    let mut sender = sender(Config::default(), bytes);
    sender.on_edge(100, 100);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(100, &[], at(0)));
    assert!(pull(&mut sender, at(100)).starts_with(&[(100, 110)]));
    sender
}

#[test]
fn one_arrival_above_a_gap_is_enough_a_quarter_of_a_round_trip_later_by_rfc_8985_6_2() {
    let mut sender = measured(130);
    // 100..110 is lost, and only two segments follow it.
    sender.on_ack(at(200), &ack(100, &[(110, 130)], at(100)));
    assert_eq!(pull(&mut sender, at(200)), []);
    assert_eq!(sender.next_deadline(), Some(at(225)));
    assert!(sender.handle_deadline(at(225)));
    assert_eq!(pull(&mut sender, at(225)), [(100, 110)]);
    assert_eq!((sender.counts().recoveries, sender.counts().timeouts), (1, 0));
    sender.on_ack(at(325), &ack(130, &[], at(225)));
    assert_eq!((sender.phase, sender.next_deadline()), (Phase::Open, None));
}

#[test]
fn the_tail_is_probed_after_two_round_trips_and_what_is_missing_before_it_goes_again() {
    let mut sender = measured(130);
    // Nothing comes back. The probe is the last segment.
    assert_eq!(sender.next_deadline(), Some(at(300)));
    assert!(sender.handle_deadline(at(300)));
    assert_eq!(pull(&mut sender, at(300)), [(120, 130)]);
    assert!(
        sender.next_deadline().is_some_and(|at| at > self::at(500)),
        "the time-out starts anew"
    );
    sender.on_ack(at(400), &ack(100, &[(120, 130)], at(300)));
    assert_eq!(pull(&mut sender, at(400))[0], (100, 110));
    assert_eq!((sender.counts().probes, sender.counts().timeouts), (1, 0));
    assert_eq!(sender.counts().recoveries, 1);
}

#[test]
fn a_probe_is_new_data_when_there_is_some_whatever_the_window_says() {
    let mut sender = measured(10_000);
    let nxt = sender.board.nxt();
    assert!(sender.handle_deadline(sender.next_deadline().unwrap()));
    assert_eq!(pull(&mut sender, at(300)), [(nxt, nxt + 10)]);
}

#[test]
fn a_second_silence_is_the_time_outs_by_rfc_8985_7_3() {
    let mut sender = measured(130);
    assert!(sender.handle_deadline(at(300)));
    pull(&mut sender, at(300));
    let due = sender.next_deadline().unwrap();
    assert!(sender.handle_deadline(due));
    assert_eq!((sender.counts().probes, sender.counts().timeouts), (1, 1));
    assert_eq!(pull(&mut sender, due), [(100, 110)]);
}

#[test]
fn a_loss_that_a_probe_repaired_narrows_the_window_and_a_needless_probe_does_not() {
    for (blocks, narrows) in [(&[][..], true), (&[(120, 130)][..], false)] {
        let mut sender = measured(130);
        let window = sender.congestion.window();
        sender.handle_deadline(at(300));
        pull(&mut sender, at(300));
        sender.on_ack(at(400), &ack(130, blocks, at(300)));
        sender.write(30);
        pull(&mut sender, at(410));
        sender.on_ack(at(510), &ack(160, &[], at(410)));
        assert_eq!(sender.congestion.window() < window, narrows);
    }
}

#[test]
fn where_segments_come_out_of_order_three_blocks_are_no_loss_until_the_window_is_over() {
    let mut sender = measured(10_000);
    // 100..110 comes after 110..120: reordered, and filled by nothing that was resent.
    sender.on_ack(at(200), &ack(100, &[(110, 120)], at(100)));
    sender.on_ack(at(201), &ack(120, &[], at(100)));
    pull(&mut sender, at(201));
    sender.on_ack(at(202), &ack(120, &[(130, 180)], at(100)));
    assert_eq!(sender.counts().recoveries, 0);
    // The latest to arrive took 102 ms.
    assert!(sender.handle_deadline(at(227)));
    assert_eq!(sender.counts().recoveries, 1);
}

#[test]
fn without_rack_tlp_only_three_blocks_or_a_time_out_help() {
    let mut sender = sender(Config { rack_tlp: false, ..Config::default() }, 100);
    pull(&mut sender, at(0));
    sender.on_ack(at(100), &ack(70, &[(80, 100)], at(0)));
    assert_eq!(sender.next_deadline(), Some(at(100) + sender.rto.timeout()));
    assert!(sender.handle_deadline(sender.next_deadline().unwrap()));
    assert_eq!((sender.counts().probes, sender.counts().timeouts), (0, 1));
}
