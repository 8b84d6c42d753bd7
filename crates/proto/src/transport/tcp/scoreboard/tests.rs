use super::*;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// A board of ten-byte segments of which `sent` bytes are out.
fn board(sent: u64) -> Scoreboard {
    let mut board = Scoreboard::new(10, 3);
    board.sent(sent);
    board
}

fn range(start: u64, end: u64) -> Range {
    Range { start, end }
}

#[test]
fn three_segments_above_a_gap_make_it_lost_by_rfc_6675_4() {
    let mut board = board(100);
    assert_eq!(board.sack(range(10, 30)), 20);
    assert_eq!((board.find_lost(), board.pipe()), (0, 80));
    assert_eq!(board.sack(range(30, 31)), 1);
    assert_eq!((board.find_lost(), board.pipe()), (10, 69));
    board.check_invariants();
}

#[test]
fn three_blocks_above_a_gap_make_it_lost_however_short_they_are() {
    let mut board = board(100);
    for start in [12, 15, 18] {
        assert_eq!(board.find_lost(), 0);
        board.sack(range(start, start + 1));
    }
    assert_eq!((board.find_lost(), board.lost()), (12, 12));
    board.check_invariants();
}

#[test]
fn what_is_lost_is_resent_in_order_and_segment_by_segment_by_rule_1() {
    let mut board = board(100);
    board.sack(range(25, 40));
    board.sack(range(50, 80));
    assert_eq!(board.find_lost(), 35);
    let resent: Vec<Range> =
        std::iter::from_fn(|| board.resend_lost(Time::ZERO, false, &|_| u64::MAX)).collect();
    assert_eq!(resent, [range(0, 10), range(10, 20), range(20, 25), range(40, 50)]);
    assert_eq!((board.lost(), board.pipe()), (0, 55));
    board.check_invariants();
}

#[test]
fn a_gap_that_is_only_doubtful_is_resent_by_rule_3_and_the_tail_by_rule_4() {
    let mut board = board(100);
    board.sack(range(10, 15));
    assert_eq!(board.find_lost(), 0);
    assert_eq!(board.resend_doubtful(Time::ZERO, false, &|_| u64::MAX), Some(range(0, 10)));
    assert_eq!(board.resend_doubtful(Time::ZERO, false, &|_| u64::MAX), None);
    assert_eq!(board.last_segment(), Some(range(90, 100)));
    board.sack(range(20, 100));
    assert_eq!(board.last_segment(), Some(range(15, 20)));
    board.check_invariants();
}

#[test]
fn blocks_of_bytes_never_sent_or_already_acknowledged_are_no_news() {
    let mut board = board(100);
    board.advance(50);
    for block in [range(40, 60), range(90, 101), range(70, 70), range(80, 70), range(0, u64::MAX)] {
        assert_eq!(board.sack(block), 0, "{block:?}");
    }
    assert_eq!((board.sacked(), board.pipe()), (0, 50));
}

#[test]
fn acknowledging_in_order_counts_selective_bytes_once() {
    let mut board = board(100);
    board.sack(range(20, 60));
    board.sack(range(70, 80));
    assert_eq!(board.advance(75), 30);
    assert_eq!((board.una(), board.sacked(), board.pipe()), (75, 5, 20));
    board.check_invariants();
}

#[test]
fn after_a_time_out_every_gap_and_the_tail_are_lost() {
    let mut board = board(100);
    board.sack(range(20, 60));
    board.lose_all();
    assert_eq!((board.lost(), board.pipe(), board.sacked()), (60, 0, 40));
    board.check_invariants();
    board.unlose();
    assert_eq!((board.lost(), board.pipe()), (0, 60));
    assert_eq!(board.find_lost(), 20);
    board.check_invariants();
}

#[test]
fn blocks_that_the_receiver_takes_back_are_forgotten_at_a_time_out_by_rfc_2018_8() {
    let mut board = board(100);
    board.sack(range(20, 100));
    board.advance(20);
    board.lose_all();
    assert_eq!((board.lost(), board.sacked()), (80, 0));
    board.check_invariants();
}

#[test]
fn a_retransmission_passed_by_later_segments_is_lost_again() {
    let mut board = board(100);
    board.sack(range(10, 20));
    board.sack(range(30, 100));
    board.find_lost();
    assert_eq!(board.resend_lost(Time(1_000_000), true, &|_| u64::MAX), Some(range(0, 10)));
    assert_eq!(board.resend_lost(Time(2_000_000), true, &|_| u64::MAX), Some(range(20, 30)));
    assert_eq!(board.find_lost_resends(Time(1_000_000), Duration::ZERO), 0);
    assert_eq!(board.find_lost_resends(Time(3_000_000), MS), 10);
    assert_eq!(board.resend_lost(Time(4_000_000), true, &|_| u64::MAX), Some(range(0, 10)));
    board.check_invariants();
}

#[test]
fn a_doubtful_segment_that_was_resent_can_be_lost_too() {
    let mut board = board(100);
    board.sack(range(10, 15));
    assert_eq!(board.resend_doubtful(Time(1), true, &|_| u64::MAX), Some(range(0, 10)));
    assert_eq!(board.find_lost_resends(Time(3), Duration::from_nanos(1)), 10);
    assert_eq!(board.resend_lost(Time(4), true, &|_| u64::MAX), Some(range(0, 10)));
    board.check_invariants();
}

#[test]
fn retransmissions_that_are_never_echoed_are_forgotten_when_they_are_acknowledged() {
    let mut board = board(0);
    for start in (0..10_000).step_by(100) {
        board.sent(100);
        board.sack(range(start + 10, start + 100));
        board.find_lost();
        assert!(board.resend_lost(Time::ZERO, true, &|_| u64::MAX).is_some());
        board.advance(start + 100);
    }
    assert!(board.resends.is_empty());
}

#[test]
fn hostile_blocks_make_a_bounded_number_of_runs() {
    let mut board = board(100_000);
    for n in 0..49_999 {
        board.sack(range(2 * n + 1, 2 * n + 2));
    }
    assert!(board.runs.len() <= 2 * 10_000 + RUNS_SPARE);
    board.check_invariants();
}

/// RFC 6675 §4 word by word, byte by byte.
struct Model {
    una: usize,
    sacked: Vec<bool>,
    /// Lost at some time, since what is lost stays so.
    lost: Vec<bool>,
    resent: Vec<bool>,
}

impl Model {
    fn is_lost(&self, at: usize) -> bool {
        let above = &self.sacked[at..];
        let bytes = above.iter().filter(|sacked| **sacked).count();
        let blocks = (0..above.len()).filter(|&n| above[n] && (n == 0 || !above[n - 1])).count();
        blocks >= 3 || bytes > 20
    }

    fn update(&mut self) {
        for at in self.una..self.sacked.len() {
            self.lost[at] |= !self.sacked[at] && self.is_lost(at);
        }
    }

    fn count(&self, lost: bool) -> u64 {
        let open = (self.una..self.sacked.len()).filter(|&at| !self.sacked[at]);
        open.filter(|&at| (self.lost[at] && !self.resent[at]) == lost).count() as u64
    }
}

proptest! {
    #[test]
    fn the_board_agrees_with_rfc_6675_counted_byte_by_byte(
        steps in prop::collection::vec((0..10u8, 0..200u64, 1..40u64), 1..80)
    ) {
        let mut board = Scoreboard::new(10, 3);
        let mut model = Model { una: 0, sacked: vec![], lost: vec![], resent: vec![] };
        for (kind, a, b) in steps {
            let (una, nxt) = (board.una(), board.nxt());
            match kind {
                0..=1 => {
                    board.sent(b);
                    let len = model.sacked.len() + b as usize;
                    for list in [&mut model.sacked, &mut model.lost, &mut model.resent] {
                        list.resize(len, false);
                    }
                }
                2..=6 => {
                    let start = (una + a).min(nxt);
                    let end = (start + b).min(nxt);
                    let news = board.sack(range(start, end));
                    let part = &mut model.sacked[start as usize..end as usize];
                    let fresh = part.iter().filter(|sacked| !**sacked).count();
                    prop_assert_eq!(news, fresh as u64);
                    part.fill(true);
                    board.find_lost();
                    model.update();
                }
                7 => {
                    let ack = (una + b).min(nxt);
                    let part = &model.sacked[una as usize..ack as usize];
                    let fresh = part.iter().filter(|sacked| !**sacked).count();
                    prop_assert_eq!(board.advance(ack), fresh as u64);
                    model.una = ack as usize;
                }
                _ => {
                    let first = (una as usize..model.sacked.len())
                        .find(|&at| !model.sacked[at] && model.lost[at] && !model.resent[at]);
                    let range = board.resend_lost(Time::ZERO, false, &|_| u64::MAX);
                    prop_assert_eq!(range.map(|range| range.start as usize), first);
                    if let Some(range) = range {
                        model.resent[range.start as usize..range.end as usize].fill(true);
                    }
                }
            }
            board.check_invariants();
            prop_assert_eq!(board.lost(), model.count(true));
            prop_assert_eq!(board.pipe(), model.count(false));
        }
    }
}
