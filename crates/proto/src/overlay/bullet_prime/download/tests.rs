use super::super::testing::{Surroundings, set};
use super::*;
use crate::time::Duration;

/// A receiving side with its surroundings; senders are strings of what they have.
struct Bench {
    download: Download,
    around: Surroundings,
}

const A: LinkId = LinkId(1);
const B: LinkId = LinkId(2);
const SOURCE: LinkId = LinkId(3);
const PROMPT: Header = Header { in_front: Some(1), wasted_us: 1 };

impl Bench {
    fn new(blocks: u32) -> Bench {
        Bench::with_config(blocks, Config::default())
    }

    fn with_config(blocks: u32, config: Config) -> Bench {
        let download = Download::new(config, blocks);
        Bench { download, around: Surroundings::new(blocks) }
    }

    fn with(&mut self, act: impl FnOnce(&mut Download, &mut Ctx<'_>, &mut Stats)) {
        let download = &mut self.download;
        self.around.run(|ctx, stats| act(download, ctx, stats));
        self.download.check_invariants(self.around.holdings.held()).unwrap();
    }

    fn sender(&mut self, link: LinkId, has: &str) {
        self.with(|download, ctx, stats| {
            download.add_sender(ctx.now, link, set(has), link == SOURCE);
            download.fill(ctx, stats, link);
        });
    }

    fn arrive(&mut self, link: LinkId, block: BlockIndex) {
        self.around.holdings.hold(block);
        self.with(|download, ctx, stats| {
            download.on_block(ctx, link, block, PROMPT);
            download.fill(ctx, stats, link);
        });
    }

    /// The blocks that `link` was asked to give back.
    fn called_back(&self, link: LinkId) -> Vec<BlockIndex> {
        let sent = self.around.sent.iter().filter(|(to, _)| *to == link);
        sent.filter_map(|(_, message)| match message {
            Message::Cancel { block } => Some(*block),
            _ => None,
        })
        .collect()
    }

    /// The blocks asked of `link` since the last look.
    fn asked(&mut self, link: LinkId) -> Vec<BlockIndex> {
        let mut blocks: Vec<BlockIndex> = self
            .around
            .sent
            .iter()
            .filter(|(to, _)| *to == link)
            .flat_map(|(_, message)| match message {
                Message::Request { blocks, .. } => blocks.clone(),
                _ => Vec::new(),
            })
            .collect();
        self.around
            .sent
            .retain(|(to, message)| *to != link || !matches!(message, Message::Request { .. }));
        blocks.sort_unstable();
        blocks
    }
}

#[test]
fn a_new_sender_is_asked_for_three_blocks_and_no_block_is_asked_of_two() {
    let mut bench = Bench::new(6);
    bench.sender(A, "111111");
    let of_a = bench.asked(A);
    assert_eq!(of_a.len(), 3);
    bench.sender(B, "111111");
    let of_b = bench.asked(B);
    assert_eq!(of_b.len(), 3);
    assert!(of_a.iter().all(|block| !of_b.contains(block)));
}

#[test]
fn what_a_lost_sender_owed_is_asked_of_others_at_once() {
    let mut bench = Bench::new(3);
    bench.sender(A, "111");
    assert_eq!(bench.asked(A), [0, 1, 2]);
    bench.sender(B, "111");
    assert_eq!(bench.asked(B), []);
    bench.with(|download, ctx, stats| {
        assert_eq!(download.remove_sender(A), 3);
        download.fill_all(ctx, stats);
    });
    assert_eq!(bench.asked(B), [0, 1, 2]);
}

#[test]
fn the_block_that_fewest_senders_have_is_asked_for_first() {
    let mut bench = Bench::new(8);
    bench.sender(LinkId(7), "00000000");
    for link in 10..14 {
        bench.sender(LinkId(link), "11111100");
    }
    bench.around.sent.clear();
    bench.around.holdings.hold(7);
    bench.sender(A, "11111111");
    assert!(bench.asked(A).contains(&6), "only this sender has it");
}

#[test]
fn a_diff_is_acted_on_and_news_are_asked_for_once() {
    let mut bench = Bench::new(4);
    bench.sender(A, "0000");
    let news = |bench: &Bench| {
        bench
            .around
            .sent
            .iter()
            .filter(|(_, m)| matches!(m, Message::Request { more: true, .. }))
            .count()
    };
    assert_eq!(news(&bench), 1);
    bench.with(|download, ctx, stats| download.fill(ctx, stats, A));
    assert_eq!(news(&bench), 1, "asked already");
    bench.around.sent.clear();
    bench.with(|download, ctx, stats| {
        download.on_diff(A, &[2]);
        download.fill(ctx, stats, A);
    });
    assert_eq!(news(&bench), 1);
    assert_eq!(bench.asked(A), [2]);
}

#[test]
fn a_withdrawn_block_goes_to_another_sender_and_a_refused_one_is_no_longer_expected() {
    let mut bench = Bench::new(2);
    bench.sender(A, "10");
    assert_eq!(bench.asked(A), [0]);
    bench.sender(B, "10");
    bench.with(|download, ctx, stats| {
        download.on_lacking(A, 0);
        assert_eq!(download.on_withdrawn(A, 0), Withdrawn::Refused);
        assert!(!download.is_available(A, 0));
        download.fill_all_but(ctx, stats, A);
    });
    assert_eq!(bench.asked(B), [0]);
    assert_eq!(bench.asked(A), []);
}

/// All is asked for, A has been slow for two seconds, B has nothing left to do.
fn at_the_end(config: Config) -> Bench {
    let mut bench = Bench::with_config(4, config);
    bench.sender(A, "1100");
    bench.sender(B, "1111");
    assert_eq!((bench.asked(A), bench.asked(B)), (vec![0, 1], vec![2, 3]));
    bench.around.now += Duration::from_millis(100);
    bench.arrive(B, 2);
    bench.around.now += Duration::from_millis(100);
    bench.arrive(B, 3);
    bench.around.now += Duration::from_secs(2);
    bench.with(|download, ctx, stats| download.rebalance(ctx, stats));
    bench
}

#[test]
fn a_block_held_up_at_the_end_is_asked_of_an_idle_sender_at_once_and_counted() {
    let mut bench = at_the_end(Config::default());
    let called = bench.called_back(A);
    assert_eq!(called.len(), 1);
    assert_eq!(bench.asked(B), called, "without waiting for it to be given back");
    assert_eq!(bench.around.stats.rerequests_endgame, 1);
    // Given back, it is owed by the other alone.
    bench.with(|download, _, _| {
        assert_eq!(download.on_withdrawn(A, called[0]), Withdrawn::CalledBack);
    });
    bench.arrive(B, called[0]);
    assert!(bench.download.is_waiting(), "for the other block");
}

#[test]
fn a_block_held_up_by_a_slow_sender_is_called_back_for_an_idle_one_without_a_duplicate() {
    let mut bench = at_the_end(Config { races_at_end: false, ..Config::default() });
    let called = bench.called_back(A);
    assert_eq!(called.len(), 1);
    assert_eq!(bench.asked(B), [], "not before it is given back");
    bench.with(|download, ctx, stats| {
        assert_eq!(download.on_withdrawn(A, called[0]), Withdrawn::CalledBack);
        download.fill_all_but(ctx, stats, A);
    });
    assert_eq!(bench.asked(B), called);
    let doubled = bench.around.stats.rerequests_slow + bench.around.stats.rerequests_endgame;
    assert_eq!(doubled, 0);
}

#[test]
fn a_hung_sender_is_passed_by_with_a_counted_second_request() {
    let mut bench = Bench::new(3);
    bench.sender(A, "100");
    bench.sender(B, "111");
    bench.around.now += Duration::from_millis(100);
    bench.arrive(B, 1);
    bench.arrive(B, 2);
    bench.around.sent.clear();
    for _ in 0..30 {
        bench.around.now += Duration::from_millis(250);
        bench.with(|download, ctx, stats| download.rebalance(ctx, stats));
    }
    assert_eq!(bench.asked(B), [0]);
    let stats = &bench.around.stats;
    assert_eq!((stats.rerequests_slow, stats.rerequests_endgame), (0, 1));
    // It comes from the other: the hung one is told, nothing is owed any more.
    bench.arrive(B, 0);
    assert!(!bench.download.is_waiting());
    assert!(bench.around.sent.contains(&(A, Message::Cancel { block: 0 })));
}

#[test]
fn a_source_is_asked_only_for_what_no_other_has_unless_it_is_much_faster() {
    let mut bench = Bench::new(12);
    bench.sender(A, "111111111100");
    assert_eq!(bench.asked(A).len(), 3);
    bench.sender(SOURCE, "111111111111");
    assert_eq!(bench.asked(SOURCE), [10, 11]);
    // A delivers a block in a second, the source in a tenth of that.
    bench.around.now += Duration::from_millis(100);
    bench.arrive(SOURCE, 10);
    bench.around.now += Duration::from_millis(900);
    let of_a = bench.download.senders()[&A].asks[0].block;
    bench.arrive(A, of_a);
    bench.arrive(SOURCE, 11);
    assert_eq!(bench.asked(SOURCE).len(), 3, "it has proved to be wider");
}
