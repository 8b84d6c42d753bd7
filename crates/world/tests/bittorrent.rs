//! Whole distributions with BitTorrent: what it does well, and what its rules are for.

use anabranch_proto::overlay::System;
use anabranch_proto::overlay::bittorrent::{BitTorrent, Config};
use anabranch_world::bounds::kumar_ross;
use anabranch_world::story::{End, Story};
use anabranch_world::units::{Size, mbit, ms, s};

/// Receivers at 8 Mb/s each way; 10 MB in sub-pieces of 16 KiB and pieces of 64 KiB.
fn swarm(receivers: usize) -> Story {
    with(receivers, |_, _| {})
}

/// The same, with parameters by host name.
fn with(receivers: usize, change: impl Fn(&str, &mut Config) + Send + 'static) -> Story {
    let names: Vec<_> = (0..=receivers)
        .map(|number| if number == 0 { "source".into() } else { format!("r{number}") })
        .map(|name| (anabranch_proto::id::PeerId::of_name(&name), name))
        .collect();
    Story::new(11, System::BitTorrent)
        .members(move |setup| {
            let mut config = Config { piece_len: 64 * 1024, ..Config::default() };
            let name = names.iter().find(|(id, _)| *id == setup.me.id).map(|(_, name)| name);
            change(name.expect("a host of the story"), &mut config);
            Box::new(BitTorrent::new(setup, config))
        })
        .file(10.mb(), 16.kib())
        .hosts(receivers + 1)
        .up(mbit(8))
        .down(mbit(8))
        .delay(ms(15))
        .configure(|config| config.check = true)
}

fn secs(end: &End, name: &str) -> f64 {
    end.completion(name).unwrap_or_else(|| panic!("{name} is not complete")).as_secs_f64()
}

#[test]
fn a_swarm_finishes_within_half_again_of_the_bound_and_the_source_does_not_serve_everyone() {
    let end = swarm(24).run_until_complete(s(100)).unwrap();
    end.assert_all_complete();
    let bound = kumar_ross(10.mb(), mbit(8), &[(mbit(8), mbit(8)); 24]);
    let last = end.completion_last().as_secs_f64();
    assert!(last < 1.5 * bound, "{last} s of {bound} s");
    let copies = end.traffic("source").payload_out as f64 / 10e6;
    assert!(copies < 2.0, "the source sent {copies} copies to 24 receivers");
}

#[test]
fn the_endgame_asks_twice_and_yet_few_blocks_come_twice() {
    let end = swarm(24).run_until_complete(s(100)).unwrap();
    for number in 1..=24 {
        let stats = end.stats(&format!("r{number}"));
        // Two rounds of what four peers may owe at once.
        assert!(stats.duplicates <= 40, "r{number} had {} blocks twice", stats.duplicates);
    }
    let again: u64 =
        (1..=24).map(|number| end.stats(&format!("r{number}")).rerequests_endgame).sum();
    assert!(again > 0);
}

#[test]
fn a_free_rider_is_served_later_than_those_who_serve() {
    let is_rider = |name: &str| name == "r17" || name == "r18";
    let end = with(24, move |name, config| {
        if is_rider(name) {
            config.upload_slots = 0;
        }
    })
    .file(30.mb(), 16.kib())
    .run_until_complete(s(300))
    .unwrap();
    let mut honest: Vec<f64> = (1..=24)
        .map(|number| format!("r{number}"))
        .filter(|name| !is_rider(name))
        .map(|name| secs(&end, &name))
        .collect();
    honest.sort_by(f64::total_cmp);
    for rider in ["r17", "r18"] {
        assert_eq!(end.traffic(rider).payload_out, 0);
        let late = secs(&end, rider);
        assert!(late > 1.1 * honest[11], "{rider} after {late} s, others after {honest:?}");
    }
}

#[test]
fn the_swarm_goes_on_when_the_source_and_its_tracker_leave_after_one_copy() {
    let mut story = swarm(12);
    // One copy takes ten seconds at the source's rate; some pieces go out twice.
    story.at(s(14)).leave("source");
    let end = story.run_until_complete(s(100)).unwrap();
    end.assert_all_complete();
    let copies = end.traffic("source").payload_out as f64 / 10e6;
    assert!(copies < 1.5, "the source sent {copies} copies before it left");
}

#[test]
fn a_late_joiner_finds_the_swarm_through_a_member_when_the_tracker_is_gone() {
    let mut story = swarm(6)
        .starts("r6", s(60))
        .host("r6", |host| host.ticket_of = Some(anabranch_world::sim::HostId(3)));
    story.at(s(50)).leave("source");
    let end = story.run_until_complete(s(120)).unwrap();
    end.assert_all_complete();
    assert_eq!(end.stats("r6").bytes_from_source, 0);
    assert!(secs(&end, "r6") < 90.0);
}

#[test]
fn a_third_of_the_receivers_dying_without_a_word_does_not_stop_the_rest() {
    let mut story = swarm(15);
    for number in [2, 5, 7, 11, 14] {
        story.at(s(3)).crash(&format!("r{number}"));
    }
    let end = story.run_for(s(90)).unwrap();
    for number in [1, 3, 4, 6, 8, 9, 10, 12, 13, 15] {
        assert!(end.completion(&format!("r{number}")).is_some(), "r{number}");
    }
}

#[test]
fn every_receiver_reports_its_outcome_to_the_tracker() {
    let end = swarm(6).run_until_complete(s(100)).unwrap().linger(s(20)).unwrap();
    let outcomes = end.outcomes();
    assert_eq!(outcomes.len(), 6);
    for outcome in outcomes {
        assert_eq!(outcome.bytes_from_source + outcome.bytes_from_peers, 10.mb());
    }
}
