use super::*;

fn receiver() -> Receiver {
    Receiver::new(Config { mss: 10, buffer: 1_000, ..Config::default() })
}

fn segment(seq: u64, sent: u64) -> Segment {
    Segment { seq, sent: Time(sent), ..Segment::default() }
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn fill(receiver: &mut Receiver) -> Segment {
    let mut segment = Segment::default();
    receiver.fill(&mut segment, u32::MAX);
    segment
}

fn range(start: u64, end: u64) -> Range {
    Range { start, end }
}

#[test]
fn every_second_segment_is_acknowledged_and_one_alone_after_the_delay_by_rfc_5681_4_2() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &segment(0, 7), 10, None);
    assert!(!receiver.is_due());
    assert_eq!(receiver.next_deadline(), Some(at(40)));
    receiver.on_segment(at(1), &segment(10, 8), 10, None);
    assert!(receiver.is_due());
    // The echo is of the segment that waited longest (RFC 7323 §4.3).
    assert_eq!((fill(&mut receiver).ack, receiver.next_deadline()), (20, None));
    receiver.on_segment(at(50), &segment(20, 9), 10, None);
    receiver.handle_deadline(at(89));
    assert!(!receiver.is_due());
    receiver.handle_deadline(at(90));
    assert!(receiver.is_due());
    assert_eq!(fill(&mut receiver).echo, Some(Time(9)));
}

#[test]
fn segments_out_of_order_or_in_a_gap_are_acknowledged_at_once() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &segment(20, 1), 10, None);
    assert!(receiver.is_due());
    let ack = fill(&mut receiver);
    assert_eq!((ack.ack, ack.blocks()), (0, &[range(20, 30)][..]));
    assert_eq!(receiver.on_segment(at(0), &segment(0, 2), 10, None), 10);
    assert!(receiver.is_due());
    fill(&mut receiver);
    assert_eq!(receiver.on_segment(at(0), &segment(10, 3), 10, None), 20);
    assert!(receiver.is_due());
    let ack = fill(&mut receiver);
    assert_eq!((ack.ack, ack.sack_len, ack.echo), (30, 0, Some(Time(3))));
}

#[test]
fn the_latest_range_is_reported_first_and_then_those_before_it_by_rfc_2018_4() {
    let mut receiver = receiver();
    for seq in [20, 40, 60, 80] {
        receiver.on_segment(at(0), &segment(seq, 0), 10, None);
    }
    assert_eq!(fill(&mut receiver).blocks(), [range(80, 90), range(60, 70), range(40, 50)]);
    receiver.on_segment(at(0), &segment(50, 0), 10, None);
    assert_eq!(fill(&mut receiver).blocks(), [range(40, 70), range(80, 90)]);
}

#[test]
fn a_segment_that_came_twice_is_reported_first_by_rfc_2883() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &segment(0, 0), 10, None);
    receiver.on_segment(at(0), &segment(20, 0), 10, None);
    fill(&mut receiver);
    receiver.on_segment(at(0), &segment(0, 0), 10, None);
    assert!(receiver.is_due());
    assert_eq!(fill(&mut receiver).blocks(), [range(0, 10), range(20, 30)]);
    receiver.on_segment(at(0), &segment(20, 0), 10, None);
    assert_eq!(fill(&mut receiver).blocks(), [range(20, 30), range(20, 30)]);
}

#[test]
fn what_is_not_read_narrows_the_window_and_reading_it_tells_the_peer() {
    let mut receiver = receiver();
    for seq in 0..100 {
        receiver.on_segment(at(0), &segment(10 * seq, 0), 10, None);
    }
    assert_eq!((receiver.readable(), fill(&mut receiver).window), (1_000, 0));
    assert_eq!(receiver.on_segment(at(0), &segment(1_000, 0), 10, None), 0);
    fill(&mut receiver);
    assert_eq!(receiver.read(9), 9);
    assert!(!receiver.is_due(), "less than a segment is not worth telling");
    receiver.read(1);
    assert!(receiver.is_due());
    assert_eq!(fill(&mut receiver).window, 10);
}

#[test]
fn the_end_is_known_when_all_before_it_is_here() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &Segment { fin: true, ..segment(10, 0) }, 10, None);
    assert!(!receiver.is_finished());
    receiver.on_segment(at(0), &segment(0, 0), 10, None);
    assert!(receiver.is_finished() && fill(&mut receiver).fin_acked);
    assert_eq!(receiver.on_segment(at(0), &segment(20, 0), 10, None), 0, "nothing lies behind it");
}

#[test]
fn without_window_scaling_the_window_is_64_kib_at_most() {
    let config = Config { window_scaling: false, ..Config::default() };
    let mut receiver = Receiver::new(config);
    assert_eq!(fill(&mut receiver).window, 65_535);
}

#[test]
fn xcp_feedback_of_the_segments_acknowledged_together_is_summed() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &segment(0, 0), 10, Some(1.5));
    receiver.on_segment(at(0), &segment(10, 0), 10, Some(-4.0));
    assert_eq!(fill(&mut receiver).feedback, Some(-2.5));
    assert_eq!(fill(&mut receiver).feedback, None);
}

#[test]
fn hostile_segments_make_a_bounded_number_of_ranges() {
    let mut receiver = Receiver::new(Config { mss: 1_000, buffer: 1 << 20, ..Config::default() });
    for n in 0..500_000 {
        receiver.on_segment(at(0), &segment(2 * n + 1, 0), 1, None);
    }
    assert!(receiver.ranges.len() <= 2_100, "{}", receiver.ranges.len());
}
