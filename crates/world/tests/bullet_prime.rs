//! Whole distributions with Bullet′: what it promises, and what goes wrong around it.

use anabranch_proto::overlay::System;
use anabranch_proto::time::Time;
use anabranch_world::bounds::kumar_ross;
use anabranch_world::story::{End, Story};
use anabranch_world::units::{Size, kbit, mbit, ms, s};

fn mesh(receivers: usize) -> Story {
    Story::new(11, System::BulletPrime)
        .file(5.mb(), 32.kib())
        .hosts(receivers + 1)
        .up(mbit(8))
        .down(mbit(8))
        .delay(ms(15))
        .configure(|config| config.check = true)
}

/// The fluid limit of `bytes` to equal receivers at 8 Mb/s.
fn limit(bytes: u64, receivers: usize) -> f64 {
    kumar_ross(bytes, mbit(8), &vec![(mbit(8), mbit(8)); receivers])
}

fn last(end: &End) -> f64 {
    end.completion_last().as_secs_f64()
}

/// The time by which `share` of the named receivers are complete.
fn quantile(end: &End, names: impl Iterator<Item = usize>, share: f64) -> f64 {
    let mut times: Vec<f64> = names
        .map(|number| end.completion(&format!("r{number}")).expect("complete").as_secs_f64())
        .collect();
    times.sort_by(f64::total_cmp);
    times[((times.len() as f64 * share).ceil() as usize).max(1) - 1]
}

#[test]
fn receivers_feed_each_other_and_the_source_sends_little_more_than_one_copy() {
    let end = mesh(24).run_until_complete(s(100)).unwrap();
    end.assert_all_complete();
    let source = end.traffic("source").payload_out as f64 / 5e6;
    assert!(source < 1.8, "the source sent {source} copies to 24 receivers");
    assert!(last(&end) < 1.8 * limit(5.mb(), 24), "{} s", last(&end));
    let all = end.traffic_sum();
    assert!(all.duplicate_in as f64 <= 0.005 * all.payload_in as f64);
}

#[test]
fn four_times_the_receivers_take_about_as_long() {
    let time = |receivers| {
        last(&mesh(receivers).file(20.mb(), 64.kib()).run_until_complete(s(200)).unwrap())
    };
    let (few, many) = (time(4), time(16));
    assert!((many / few - 1.0).abs() < 0.10, "4: {few} s, 16: {many} s");
}

#[test]
fn over_long_paths_a_small_group_is_a_full_mesh_and_over_short_ones_it_is_not() {
    // Four seconds: before any adaptation, which needs five. Nobody joins at the same moment.
    let peers = |least, step, receivers, seconds| {
        let delay = move |a: u32, b: u32| ms(least + step * u64::from(a + b));
        let story = mesh(receivers).file(50.mb(), 32.kib()).delays(delay);
        let end = story.run_for(s(seconds)).unwrap();
        let of = |number| end.stats(&format!("r{number}"));
        let senders: Vec<u32> = (1..=receivers).map(|number| of(number).senders_now).collect();
        (senders, (1..=receivers).filter(|&number| of(number).depth_now == 1).count())
    };
    // All but oneself and the source, which is no peer while it pushes, and pushes to all.
    assert_eq!(peers(60, 3, 16, 4), (vec![15; 16], 16));
    let (senders, children) = peers(2, 1, 16, 4);
    assert!(senders.iter().all(|&count| count <= 10), "{senders:?}");
    assert_eq!(children, 10);
    // One that turns out to be larger is none any more, and those that came later have peers too.
    let (senders, _) = peers(60, 1, 40, 10);
    assert!(senders.iter().all(|count| (6..=14).contains(count)), "{senders:?}");
}

#[test]
fn one_receiver_at_a_hundredth_of_the_rate_does_not_hold_the_others_up() {
    let p95 = |slow: bool| {
        let mut story = mesh(20).file(10.mb(), 32.kib());
        if slow {
            story = story.rates("r20", mbit(8).percent(1), mbit(8).percent(1));
        }
        let end = story.run_for(s(60)).unwrap();
        quantile(&end, 1..=19, 0.95)
    };
    let (without, with) = (p95(false), p95(true));
    assert!(with < without * 1.05, "{without} s, with a slow one {with} s");
}

#[test]
fn a_transfer_of_a_second_does_not_wait_for_an_epoch_of_five() {
    let story = mesh(8).file(20.mb(), 128.kib()).up(mbit(400)).down(mbit(400)).delay(ms(1));
    let end = story.run_until_complete(s(30)).unwrap();
    assert!(last(&end) < 1.5, "{} s", last(&end));
}

#[test]
fn a_late_joiner_gets_everything_also_after_the_source_has_left() {
    let mut story = mesh(6).starts("r6", s(40));
    story.at(s(30)).leave("source");
    story.at(s(40)).start_with_ticket_of("r6", "r3");
    let end = story.run_until_complete(s(90)).unwrap();
    end.assert_all_complete();
    assert_eq!(end.stats("r6").bytes_from_source, 0);
}

#[test]
fn a_source_killed_once_every_block_is_out_is_not_missed() {
    let mut story = mesh(12);
    // One copy takes five seconds.
    story.at(ms(6_200)).kill("source");
    let end = story.run_until_complete(s(60)).unwrap();
    end.assert_all_complete();
}

#[test]
fn a_source_killed_in_the_middle_of_its_push_goes_on_when_it_is_back() {
    let mut story = mesh(12);
    story.at(s(2)).kill("source");
    story.at(s(12)).restart("source");
    let end = story.run_until_complete(s(120)).unwrap();
    end.assert_all_complete();
    let sent = end.traffic("source").payload_out as f64 / 5e6;
    assert!(sent < 2.5, "what was out was pushed again: {sent} copies");
}

#[test]
fn a_third_of_the_receivers_dying_without_a_word_does_not_stop_the_rest() {
    let mut story = mesh(15);
    for number in [2, 5, 7, 11, 14] {
        story.at(s(3)).crash(&format!("r{number}"));
    }
    let end = story.run_for(s(60)).unwrap();
    for number in [1, 3, 4, 6, 8, 9, 10, 12, 13, 15] {
        assert!(end.completion(&format!("r{number}")).is_some(), "r{number}");
    }
}

#[test]
fn a_peer_that_sends_corrupt_blocks_is_dropped_and_everybody_completes() {
    let end = mesh(10).corrupt("r4").run_for(s(60)).unwrap();
    let honest = (1..=10).filter(|number| *number != 4);
    let mut blamed = 0;
    for number in honest {
        let name = format!("r{number}");
        assert!(end.completion(&name).is_some(), "{name}");
        blamed += end.stats(&name).corrupt;
    }
    assert!(blamed > 0, "nobody ever met the corrupt one");
}

#[test]
fn a_receiver_that_accepts_no_connection_completes_and_serves() {
    let end = mesh(10).unreachable("r3").unreachable("r7").run_until_complete(s(60)).unwrap();
    end.assert_all_complete();
    for name in ["r3", "r7"] {
        assert!(end.traffic(name).payload_out > 100_000, "{name} served nobody");
    }
}

#[test]
fn a_partition_delays_those_cut_off_and_nobody_else() {
    let mut story = mesh(12).file(10.mb(), 64.kib());
    story.at(s(3)).partition(&["r10", "r11", "r12"]);
    story.at(s(40)).heal_all();
    let end = story.run_until_complete(s(150)).unwrap();
    end.assert_all_complete();
    assert!(quantile(&end, 1..=9, 1.0) < 40.0);
}

#[test]
fn a_receiver_that_restarts_fetches_only_what_it_lacks() {
    let mut story = mesh(6);
    story.at(s(4)).kill("r2");
    story.at(s(5)).restart("r2");
    let end = story.run_until_complete(s(60)).unwrap();
    end.assert_all_complete();
    let came = end.traffic("r2").payload_in as f64 / 5e6;
    assert!(came < 1.1, "{came} copies came");
}

#[test]
fn the_root_hears_every_outcome_once() {
    let end = mesh(9).run_until_complete(s(60)).unwrap().linger(s(10)).unwrap();
    let mut peers: Vec<_> = end.outcomes().iter().map(|outcome| outcome.peer).collect();
    assert_eq!(peers.len(), 9);
    peers.sort();
    peers.dedup();
    assert_eq!(peers.len(), 9);
    let total = |o: &&anabranch_proto::overlay::Outcome| o.bytes_from_source + o.bytes_from_peers;
    assert!(end.outcomes().iter().all(|outcome| total(outcome) == 5.mb()));
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let hash = || mesh(7).run_until_complete(s(60)).unwrap().trace_hash();
    assert_eq!(hash(), hash());
}

#[test]
fn contents_of_no_block_and_of_one_are_complete_too() {
    for bytes in [0, 1] {
        let end = mesh(3).file(bytes, 32.kib()).run_until_complete(s(20)).unwrap();
        end.assert_all_complete();
    }
}

#[test]
fn the_sources_fan_out_grows_when_paths_are_too_slow_to_fill_its_uplink() {
    // Ten children at 300 kb/s use 3 of the source's 8 Mb/s; all paths are that slow.
    let run = |receivers: usize| {
        let mut story = mesh(receivers).file(60.mb(), 64.kib());
        for number in 1..=receivers {
            story.at(ms(0)).path_rate("source", &format!("r{number}"), kbit(300));
        }
        story.run_for(s(150)).unwrap()
    };
    let end = run(24);
    let sent = end.meter("source").payload_out.bytes_until(Time::from_secs_f64(80.0)) as f64;
    let ten_children = 80.0 * 10.0 * 37_500.0;
    assert!(sent > 1.2 * ten_children, "{} of what ten children take", sent / ten_children);
}
