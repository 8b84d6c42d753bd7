//! The packet wire: the same members over pairs of TCP endpoints, queues and loss.

use anabranch_proto::overlay::System;
use anabranch_proto::time::{Duration, Time};
use anabranch_world::sim::{Fault, HostId, Life, SimError};
use anabranch_world::story::Story;
use anabranch_world::terrain::Terrain;
use anabranch_world::topology::{Changed, LinkIx, NodeIx, Topology};
use anabranch_world::units::{Rate, Size, mbit, ms, s};

/// Hosts `n1`, the source, `n2`, … around a hub, with 8 Mb/s and 10 ms each, and what `more` says
/// of their links.
fn star(system: System, nodes: u32, more: &str) -> Story {
    let text = format!(
        "[generate]\nkind = \"star\"\nnodes = {nodes}\n\
         access = {{ rate = \"8mbit\", delay = \"10ms\", queue = {{ kind = \"drop-tail\", \
         limit = \"50ms\" }}{more} }}\n"
    );
    over(system, &text, nodes)
}

/// Links that lose packets independently, both ways.
fn lossy(probability: f64) -> String {
    format!(", loss = {{ probability = {probability}, side = \"after\", direction = \"both\" }}")
}

fn over(system: System, text: &str, nodes: u32) -> Story {
    let topology = Topology::parse(text, "test.toml").expect("a good topology");
    let members: Vec<NodeIx> = (0..nodes).map(NodeIx).collect();
    let terrain = Terrain::new(&topology, &members).expect("members are hosts");
    Story::new(3, system)
        .file(2.mb(), 16.kib())
        .packets(topology, terrain)
        .configure(|config| config.check = true)
}

#[test]
fn one_receiver_gets_the_rate_less_headers_after_the_set_up() {
    let end = star(System::Star, 2, "").file(10.mb(), 64.kib()).run_until_complete(s(60)).unwrap();
    // Segments of 1448 bytes in packets of 1500, four round trips before the first of them.
    let expected = 10e6 / (1e6 * 1448.0 / 1500.0) + 4.0 * 0.04;
    let last = end.completion_last().as_secs_f64();
    assert!((expected..expected * 1.02).contains(&last), "{last} s, expected {expected} s");
    let sent = end.traffic("n1");
    assert_eq!(sent.payload_out, 10.mb());
    assert!(sent.overhead_out > 52 * 10_000_000 / 1448);
}

#[test]
fn every_system_completes_through_a_loss_of_one_percent() {
    for system in System::ALL {
        let story = star(system, 8, &lossy(0.01));
        let end = story.run_until_complete(s(200)).unwrap();
        end.assert_all_complete();
        let network = end.sim().network().unwrap();
        assert!(network.hops() > 7 * 2 * 2_000_000 / 1500, "{}", network.hops());
    }
}

#[test]
fn one_path_with_loss_is_slower_than_one_without() {
    let time = |more: &str| {
        let story = star(System::Star, 2, more).file(4.mb(), 64.kib());
        story.run_until_complete(s(200)).unwrap().completion_last().as_secs_f64()
    };
    let (clean, lossy) = (time(""), time(&lossy(0.03)));
    assert!(lossy > 1.5 * clean, "{clean} s, with loss {lossy} s");
}

#[test]
fn a_killed_peer_is_noticed_by_its_reset_and_a_crashed_one_by_its_silence() {
    let links = |fault: Fault, after: Duration| {
        let mut story = star(System::Star, 3, "").file(20.mb(), 64.kib());
        story.at(s(2)).fault(fault);
        let mut sim = story.build();
        sim.run(Time::ZERO + after, |_| false).unwrap();
        sim.links(HostId(0))
    };
    assert_eq!(links(Fault::Kill(HostId(1)), ms(1_990)), 2);
    assert_eq!(links(Fault::Kill(HostId(1)), ms(2_300)), 1);
    assert_eq!(links(Fault::Crash(HostId(1)), s(8)), 2);
    assert_eq!(links(Fault::Crash(HostId(1)), s(12)), 1);
}

#[test]
fn a_reset_that_is_lost_is_repeated_when_the_peer_sends_again() {
    // What n2 sends is lost for a second, its reset too.
    let out = LinkIx(2);
    let mut story = star(System::Star, 2, "").file(20.mb(), 64.kib());
    story.at(ms(1_990)).fault(Fault::Links(vec![(out, Changed::Down)]));
    story.at(s(2)).fault(Fault::Kill(HostId(1)));
    story.at(ms(3_000)).fault(Fault::Links(vec![(out, Changed::Up)]));
    let mut sim = story.build();
    sim.run(Time::ZERO + ms(2_900), |_| false).unwrap();
    assert_eq!(sim.links(HostId(0)), 1);
    // Resent after a time-out, and answered: long before eight seconds of silence.
    sim.run(Time::ZERO + s(7), |_| false).unwrap();
    assert_eq!(sim.links(HostId(0)), 0);
}

#[test]
fn a_short_cut_is_survived_by_the_same_link_and_a_long_one_by_a_new_one() {
    for (secs, more) in [(4, 0), (20, 1)] {
        let mut story = star(System::Star, 2, "").file(6.mb(), 64.kib());
        story.at(s(2)).cut("n1", "n2");
        story.at(s(2 + secs)).heal("n1", "n2");
        let end = story.run_until_complete(s(100)).unwrap();
        end.assert_all_complete();
        let again = end.traffic("n1").payload_out - 6.mb();
        // A new link begins with blocks that were under way on the old one.
        assert_eq!(u64::from(again > 0), more, "{again} bytes again after a cut of {secs} s");
    }
}

#[test]
fn a_host_that_leaves_says_so_and_what_it_queued_arrives() {
    let mut story = star(System::Star, 3, "");
    story.at(s(20)).leave("n2");
    let end = story.run_for(s(21)).unwrap();
    assert_eq!(end.sim().life(HostId(1)), Life::Left);
    assert_eq!(end.sim().links(HostId(0)), 1);
    assert_eq!(end.outcomes().len(), 2);
}

#[test]
fn bullet_prime_goes_on_when_a_third_of_its_members_crash_and_come_back() {
    let mut story = star(System::BulletPrime, 10, &lossy(0.005));
    for name in ["n3", "n6", "n9"] {
        story.at(s(2)).crash(name);
        story.at(s(20)).restart(name);
    }
    let end = story.run_until_complete(s(100)).unwrap();
    end.assert_all_complete();
}

#[test]
fn a_slow_host_is_slow_and_the_same_run_is_the_same_again() {
    let run = |slow: bool, seed: u64| {
        let mut story = star(System::BulletPrime, 6, &lossy(0.01));
        story = story.configure(|config| config.seed = seed);
        if slow {
            story.at(ms(500)).rates("n4", mbit(8), Rate::bits_per_sec(400_000));
        }
        let end = story.run_until_complete(s(200)).unwrap();
        (end.completion("n4").unwrap().as_secs_f64(), end.trace_hash().value())
    };
    assert_eq!(run(false, 3), run(false, 3));
    assert_ne!(run(false, 3).1, run(false, 4).1);
    assert!(run(true, 3).0 > 30.0);
}

#[test]
fn what_the_packet_wire_cannot_do_is_refused_in_a_sentence() {
    let mut story = star(System::Star, 2, "");
    story.at(s(1)).path_rate("n1", "n2", mbit(1));
    let refused = story.run_for(s(5)).err().unwrap();
    assert!(matches!(refused, SimError::NotOnPackets { .. }));
    assert!(refused.to_string().contains("change the topology's links"), "{refused}");
    let bare = Story::new(1, System::Star)
        .configure(|config| config.wire = anabranch_world::sim::Wire::Packet);
    assert!(bare.run_for(s(1)).err().unwrap().to_string().contains("needs a topology"));
}

#[test]
fn members_do_not_notice_which_wire_they_are_on_but_by_time() {
    let text = "[generate]\nkind = \"star\"\nnodes = 8\n\
                access = { rate = \"8mbit\", delay = \"10ms\" }\n";
    let packets = over(System::BulletPrime, text, 8).file(8.mb(), 64.kib());
    let topology = Topology::parse(text, "test.toml").unwrap();
    let members: Vec<NodeIx> = (0..8).map(NodeIx).collect();
    let fluid = Story::new(3, System::BulletPrime)
        .file(8.mb(), 64.kib())
        .terrain(Terrain::new(&topology, &members).unwrap());
    let packets = packets.run_until_complete(s(100)).unwrap();
    let fluid = fluid.run_until_complete(s(100)).unwrap();
    let ratio = packets.completion_last().as_secs_f64() / fluid.completion_last().as_secs_f64();
    assert!((1.0..1.6).contains(&ratio), "{ratio}");
}
