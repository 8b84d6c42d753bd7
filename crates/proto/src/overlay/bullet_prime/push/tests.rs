use super::super::testing::{Surroundings, set};
use super::*;

const A: LinkId = LinkId(1);
const B: LinkId = LinkId(2);

fn source(blocks: u32) -> (Push, Surroundings) {
    let mut around = Surroundings::new(blocks);
    (0..blocks).for_each(|block| {
        around.holdings.hold(block);
    });
    (Push::new(blocks, 10), around)
}

fn pump(push: &mut Push, around: &mut Surroundings) {
    around.run(|ctx, stats| push.pump(ctx, stats));
}

fn pushed(around: &Surroundings, link: LinkId) -> Vec<BlockIndex> {
    let to = around.links.blocks.iter().filter(|(to, ..)| *to == link);
    to.map(|(_, block, _)| *block).collect()
}

#[test]
fn every_block_is_pushed_once_round_robin() {
    let (mut push, mut around) = source(6);
    for link in [A, B] {
        push.on_ready(link, &set("000000"));
        around.links.room.insert(link, 10);
    }
    pump(&mut push, &mut around);
    assert!(push.is_finished());
    assert_eq!((pushed(&around, A), pushed(&around, B)), (vec![1, 3, 5], vec![0, 2, 4]));
}

#[test]
fn a_child_without_room_is_passed_over_and_the_push_waits_when_none_has_any() {
    let (mut push, mut around) = source(6);
    push.on_ready(A, &set("000000"));
    push.on_ready(B, &set("000000"));
    around.links.room.insert(A, 1);
    around.links.room.insert(B, 3);
    pump(&mut push, &mut around);
    assert_eq!((pushed(&around, A).len(), pushed(&around, B).len()), (1, 3));
    around.links.room.insert(A, 9);
    pump(&mut push, &mut around);
    assert!(!push.is_finished(), "nobody has said that there is room");
    push.on_room(A);
    pump(&mut push, &mut around);
    assert!(push.is_finished());
    assert_eq!(around.links.blocks.len(), 6);
}

#[test]
fn what_a_child_holds_is_out_already() {
    let (mut push, mut around) = source(6);
    push.on_ready(A, &set("111100"));
    around.links.room.insert(A, 10);
    pump(&mut push, &mut around);
    assert_eq!(pushed(&around, A), [4, 5]);
    let (mut push, _) = source(3);
    push.on_ready(B, &set("111"));
    assert!(push.is_finished());
}

#[test]
fn a_child_that_is_gone_is_not_pushed_to() {
    let (mut push, mut around) = source(4);
    push.on_ready(A, &set("0000"));
    push.on_ready(B, &set("0000"));
    push.on_gone(A);
    around.links.room.insert(A, 9);
    around.links.room.insert(B, 9);
    pump(&mut push, &mut around);
    assert_eq!((pushed(&around, A).len(), pushed(&around, B).len()), (0, 4));
}

#[test]
fn no_more_children_are_pushed_to_than_the_fan_out_says() {
    let (mut push, mut around) = source(6);
    for link in [A, B] {
        push.on_ready(link, &set("000000"));
        around.links.room.insert(link, 2);
    }
    push.set_fan_out(1);
    pump(&mut push, &mut around);
    assert_eq!((pushed(&around, A).len(), pushed(&around, B).len()), (2, 0));
    push.set_fan_out(2);
    pump(&mut push, &mut around);
    assert_eq!(pushed(&around, B).len(), 2);
}
