use super::super::testing::Surroundings;
use super::*;
use crate::time::Duration;

const A: LinkId = LinkId(1);
const B: LinkId = LinkId(2);

/// A sender that holds everything but the last block, with receivers A and B accepted.
fn sender(in_front: InFront) -> (Upload, Surroundings) {
    let mut around = Surroundings::new(10);
    (0..9).for_each(|block| {
        around.holdings.hold(block);
    });
    let mut upload = Upload::new(in_front);
    for link in [A, B] {
        around.run(|ctx, _| upload.accept(ctx, link));
        assert!(matches!(around.sent_to(link)[..], [Message::PeerAccept { .. }]));
    }
    (upload, around)
}

fn request(upload: &mut Upload, around: &mut Surroundings, link: LinkId, blocks: &[u32]) {
    around.run(|ctx, stats| upload.on_request(ctx, stats, link, blocks, false));
    upload.check_invariants().unwrap();
}

fn room(upload: &mut Upload, around: &mut Surroundings, link: LinkId) {
    around.links.room.insert(link, 1);
    around.run(|ctx, stats| upload.on_room(ctx, stats, link));
    upload.check_invariants().unwrap();
}

fn served(around: &Surroundings, link: LinkId) -> Vec<(u32, Option<u32>)> {
    let of = around.links.blocks.iter().filter(|(to, ..)| *to == link);
    of.map(|(_, block, header)| (*block, Header::decode(header).in_front)).collect()
}

#[test]
fn a_receivers_requests_are_served_first_in_first_out() {
    let (mut upload, mut around) = sender(InFront::Receiver);
    request(&mut upload, &mut around, A, &[7, 2, 5]);
    (0..3).for_each(|_| room(&mut upload, &mut around, A));
    assert_eq!(served(&around, A), [(7, Some(0)), (2, Some(1)), (5, Some(2))]);
}

#[test]
fn in_front_counts_ones_own_requests_or_all_that_share_the_uplink() {
    for (in_front, of_b) in [(InFront::Receiver, 0), (InFront::Uplink, 2)] {
        let (mut upload, mut around) = sender(in_front);
        request(&mut upload, &mut around, A, &[1, 2]);
        request(&mut upload, &mut around, B, &[3]);
        room(&mut upload, &mut around, B);
        assert_eq!(served(&around, B), [(3, Some(of_b))]);
    }
}

#[test]
fn a_full_pipe_holds_up_its_own_receiver_only() {
    let (mut upload, mut around) = sender(InFront::default());
    request(&mut upload, &mut around, A, &[1]);
    around.links.room.insert(B, 1);
    request(&mut upload, &mut around, B, &[2]);
    assert_eq!((served(&around, A).len(), served(&around, B).len()), (0, 1));
}

#[test]
fn wasted_says_how_long_the_pipe_idled_or_the_request_waited() {
    let (mut upload, mut around) = sender(InFront::Receiver);
    around.advance(Duration::from_millis(300));
    around.links.room.insert(A, 1);
    request(&mut upload, &mut around, A, &[1, 2]);
    around.advance(Duration::from_millis(40));
    room(&mut upload, &mut around, A);
    let wasted: Vec<i64> =
        around.links.blocks.iter().map(|(.., header)| Header::decode(header).wasted_us).collect();
    assert_eq!(wasted, [-300_000, 40_000]);
}

#[test]
fn a_request_whose_pipe_idled_says_so_whatever_waits_for_other_pipes() {
    let (mut upload, mut around) = sender(InFront::Uplink);
    around.links.room.insert(B, 1);
    request(&mut upload, &mut around, A, &[1, 2]);
    around.advance(Duration::from_millis(300));
    request(&mut upload, &mut around, B, &[3]);
    let header = Header::decode(&around.links.blocks.last().unwrap().2);
    assert_eq!((header.in_front, header.wasted_us), (Some(0), -300_000));
}

#[test]
fn a_new_block_is_told_once_to_those_that_lack_it_when_they_have_nothing_requested() {
    let (mut upload, mut around) = sender(InFront::default());
    // A wanted news when it was accepted; B has a request waiting and has been told before.
    request(&mut upload, &mut around, B, &[1]);
    around.run(|ctx, _| upload.on_held(ctx, 9, |_| false));
    assert_eq!(around.sent_to(A), [Message::Diff { blocks: vec![9] }]);
    assert_eq!(around.sent_to(B), [Message::Diff { blocks: vec![9] }]);
    around.run(|ctx, _| upload.on_held(ctx, 8, |_| false));
    assert_eq!(around.sent_to(A), [Message::Diff { blocks: vec![8] }]);
    assert_eq!(around.sent_to(B), [], "it has a request waiting and did not ask again");
    room(&mut upload, &mut around, B);
    assert_eq!(around.sent_to(B), [Message::Diff { blocks: vec![8] }]);
    room(&mut upload, &mut around, B);
    assert_eq!(around.sent_to(B), [], "nothing is told twice");
    around.run(|ctx, _| upload.on_held(ctx, 7, |link| link == A));
    assert_eq!(around.sent_to(A), [], "it has it already");
}

#[test]
fn a_block_that_is_not_held_and_requests_beyond_the_bound_are_given_back() {
    let (mut upload, mut around) = sender(InFront::default());
    request(&mut upload, &mut around, A, &[9]);
    assert_eq!(around.sent_to(A), [Message::Withdrawn { block: 9 }]);
    request(&mut upload, &mut around, A, &vec![1; QUEUE_MAX + 3]);
    assert_eq!(around.sent_to(A).len(), 3);
    request(&mut upload, &mut around, LinkId(99), &[1]);
    assert_eq!(around.sent_to(LinkId(99)), [Message::Withdrawn { block: 1 }]);
}

#[test]
fn a_cancelled_request_is_given_back_unless_it_is_on_its_way() {
    let (mut upload, mut around) = sender(InFront::default());
    around.links.room.insert(A, 1);
    request(&mut upload, &mut around, A, &[1, 2]);
    for block in [1, 2] {
        around.run(|ctx, _| upload.on_cancel(ctx, A, block));
    }
    assert_eq!(around.sent_to(A), [Message::Withdrawn { block: 2 }]);
}

#[test]
fn a_receiver_that_goes_gets_back_what_it_still_waits_for() {
    let (mut upload, mut around) = sender(InFront::default());
    around.links.room.insert(A, 1);
    request(&mut upload, &mut around, A, &[1, 2, 3]);
    around.run(|ctx, _| {
        assert!(upload.remove(ctx, A));
        assert!(!upload.remove(ctx, A));
    });
    let back = [2, 3].map(|block| Message::Withdrawn { block });
    assert_eq!(around.sent_to(A), back);
}
