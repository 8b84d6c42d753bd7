use super::*;
use crate::random::stream;

/// Three pieces of four blocks of 1,000 bytes; blocks whose digit is 1 are held.
fn holdings(held: &str) -> Holdings {
    let mut holdings = Holdings::uniform(1_000, held.len() as u64 * 1_000);
    held.bytes().zip(0..).filter(|(digit, _)| *digit == b'1').for_each(|(_, block)| {
        holdings.hold(block);
    });
    holdings
}

fn picker(holdings: &Holdings, config: Config) -> Picker {
    Picker::new(Pieces::new(holdings.blocks(), 1_000, 4_000), &config, holdings)
}

fn set(pieces: &str) -> Bitmap {
    let mut set = Bitmap::new(pieces.len() as u32);
    pieces.bytes().zip(0..).filter(|(digit, _)| *digit == b'1').for_each(|(_, piece)| {
        set.insert(piece);
    });
    set
}

fn rarest() -> Config {
    Config { random_first: 0, ..Config::default() }
}

#[test]
fn the_rarest_piece_is_begun_first_and_its_blocks_are_asked_for_in_order() {
    let holdings = holdings("000000000000");
    let mut picker = picker(&holdings, rarest());
    for have in ["111", "110", "100"] {
        picker.add_peer(&set(have));
    }
    let mut rng = stream(1, "p", "t");
    let asked: Vec<BlockIndex> = (0..6)
        .map(|_| {
            let block = picker.choose(&mut rng, &holdings, &set("111"), &[]).unwrap();
            assert!(!picker.on_ask(holdings.held(), block));
            block
        })
        .collect();
    assert_eq!(asked, [8, 9, 10, 11, 4, 5]);
    // A peer without the rarest helps with what it has.
    assert_eq!(picker.choose(&mut rng, &holdings, &set("100"), &[]), Some(0));
}

#[test]
fn among_equally_rare_pieces_each_is_begun_first_as_often() {
    let holdings = holdings("000000000000");
    let picker = picker(&holdings, rarest());
    let mut rng = stream(1, "p", "t");
    let mut begun = [0; 3];
    for _ in 0..600 {
        let block = picker.choose(&mut rng, &holdings, &set("111"), &[]).unwrap();
        begun[(block / 4) as usize] += 1;
    }
    assert!(begun.iter().all(|&times| (150..=250).contains(&times)), "{begun:?}");
}

#[test]
fn the_first_pieces_are_drawn_at_random_whatever_their_rarity() {
    let (empty, one) = (holdings("000000000000"), holdings("111100000000"));
    let config = Config { random_first: 1, ..Config::default() };
    let begins_with_rarest = |holdings: &Holdings| {
        let mut picker = picker(holdings, config.clone());
        picker.add_peer(&set("110"));
        let mut rng = stream(1, "p", "t");
        let draws = (0..300).map(|_| picker.choose(&mut rng, holdings, &set("111"), &[]).unwrap());
        draws.filter(|block| *block == 8).count()
    };
    assert!((70..130).contains(&begins_with_rarest(&empty)));
    assert_eq!(begins_with_rarest(&one), 300);
}

#[test]
fn a_begun_piece_comes_before_rarer_ones_only_when_priority_is_strict() {
    // One block of piece 0 is held; piece 1 is rarer.
    let holdings = holdings("100000000000");
    let next = |priority| {
        let mut picker = picker(&holdings, Config { priority, ..rarest() });
        picker.add_peer(&set("101"));
        picker.add_peer(&set("111"));
        picker.choose(&mut stream(1, "p", "t"), &holdings, &set("111"), &[])
    };
    assert_eq!(next(Priority::Strict), Some(1));
    assert_eq!(next(Priority::Rarity), Some(4));
}

#[test]
fn a_block_is_asked_for_twice_only_when_all_are_asked_for_and_the_least_asked_first() {
    let holdings = holdings("111111111100");
    let mut picker = picker(&holdings, rarest());
    let mut rng = stream(1, "p", "t");
    assert!(!picker.on_ask(holdings.held(), 10));
    assert!(!picker.is_endgame());
    assert_eq!(picker.choose(&mut rng, &holdings, &set("001"), &[]), Some(11));
    assert!(!picker.on_ask(holdings.held(), 11));
    assert!(picker.is_endgame());
    assert!(picker.on_ask(holdings.held(), 10));
    assert_eq!(picker.choose(&mut rng, &holdings, &set("001"), &[]), Some(11));
    assert_eq!(picker.choose(&mut rng, &holdings, &set("001"), &[11]), Some(10));
    assert_eq!(picker.choose(&mut rng, &holdings, &set("001"), &[10, 11]), None);
    picker.on_release(holdings.held(), 11);
    assert!(!picker.is_endgame());
}

#[test]
fn a_piece_is_whole_with_its_last_block_and_the_counts_hold_all_along() {
    let mut holdings = holdings("0000000000");
    let mut picker = picker(&holdings, rarest());
    for block in [0, 1, 2] {
        picker.on_ask(holdings.held(), block);
        holdings.hold(block);
        assert_eq!(picker.on_held(holdings.held(), block), None);
        picker.on_release(holdings.held(), block);
        picker.check_invariants(holdings.held(), std::iter::empty()).unwrap();
    }
    // Not asked for: it came late from somewhere.
    holdings.hold(3);
    assert_eq!(picker.on_held(holdings.held(), 3), Some(0));
    assert_eq!(picker.have(), &set("100"));
    picker.check_invariants(holdings.held(), std::iter::empty()).unwrap();
    let theirs = set("111");
    assert!(
        picker.check_invariants(holdings.held(), [(&theirs, &[][..])].into_iter()).is_err(),
        "a peer that nobody counted is found"
    );
}

#[test]
fn what_cannot_be_verified_yet_is_not_asked_for() {
    let mut holdings = Holdings::table(vec![1_000; 8]);
    let picker = Picker::new(Pieces::new(8, 1_000, 4_000), &rarest(), &holdings);
    let mut rng = stream(1, "p", "t");
    assert_eq!(picker.choose(&mut rng, &holdings, &set("11"), &[]), None);
    holdings.learn(5, 6);
    assert_eq!(picker.choose(&mut rng, &holdings, &set("11"), &[]), Some(5));
}
