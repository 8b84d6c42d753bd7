use super::power_law::{BULLET_PRIME, HIGH, LOW, Losses, MEDIUM};
use super::*;
use crate::topology::{Changed, Limit, LossModel, NodeIx, QueueSpec, Routes, check::check};
use crate::units::{Rate, kbit, mbit, ms, s};
use anabranch_proto::time::Time;
use proptest::prelude::*;

fn names(net: &Topology) -> Vec<&str> {
    net.hosts().map(|host| net.nodes[host.0 as usize].name.as_str()).collect()
}

fn delay(net: &Topology, from: &str, to: &str) -> Option<Duration> {
    Routes::new(net).delay(net.find(from).unwrap(), net.find(to).unwrap())
}

/// The rates of the links that a packet takes.
fn rates(net: &Topology, from: &str, to: &str) -> Vec<Rate> {
    let mut routes = Routes::new(net);
    let path = routes.path(net.find(from).unwrap(), net.find(to).unwrap()).unwrap();
    path.iter().map(|link| net.links[link.0 as usize].rate).collect()
}

fn probability(link: &crate::topology::Link) -> f64 {
    match link.loss.map(|loss| loss.model) {
        Some(LossModel::Independent { probability }) => probability,
        None => 0.0,
        other => panic!("no generator makes {other:?}"),
    }
}

#[test]
fn a_dumbbell_has_its_pairs_its_bottleneck_and_its_round_trips() {
    let dumbbell = Dumbbell { pairs: 3, extra_delays: vec![ms(0), ms(10)], ..Dumbbell::default() };
    let net = dumbbell.build();
    assert_eq!(names(&net), ["left1", "left2", "left3", "right1", "right2", "right3"]);
    assert_eq!(net.links.len(), 2 * (1 + 6));
    assert_eq!(delay(&net, "left1", "right3"), Some(ms(40)));
    assert_eq!(delay(&net, "right1", "left2"), Some(ms(50)));
    assert_eq!(delay(&net, "left3", "right1"), Some(ms(40)));
    assert_eq!(rates(&net, "left1", "right1")[1], mbit(250));
    // One BDP of 250 Mb/s and 80 ms.
    assert_eq!(net.links[0].queue, QueueSpec::DropTail { limit: Limit::Bytes(2_500_000) });
    assert_eq!(check(&net), Ok(()));
}

#[test]
fn a_parking_lot_has_flows_over_all_and_over_each_bottleneck() {
    let net = ParkingLot::default().build();
    assert_eq!(net.hosts().count(), 2 * (3 + 3 * 3 + 1));
    assert_eq!(delay(&net, "left1", "right1"), Some(ms(40)));
    let bottlenecks =
        |from, to| rates(&net, from, to).iter().filter(|&&rate| rate == mbit(250)).count();
    assert_eq!(bottlenecks("left3", "right3"), 3);
    assert_eq!(bottlenecks("hop2-from1", "hop2-to1"), 1);
    assert_eq!(bottlenecks("cross2-from", "cross2-to"), 1);
    assert_eq!(net.find("cross1-from"), None);
    assert_eq!(check(&net), Ok(()));
}

#[test]
fn a_star_has_its_own_link_for_the_first() {
    let mut star = Star { nodes: 4, ..Star::default() };
    let mut first = star.access.clone();
    first.there.rate = mbit(1);
    star.first = Some(first);
    let net = star.build();
    assert_eq!(names(&net), ["n1", "n2", "n3", "n4"]);
    assert_eq!(rates(&net, "n1", "n2"), [mbit(1), mbit(10)]);
    assert_eq!(rates(&net, "n2", "n1"), [mbit(10), mbit(10)]);
    assert_eq!(delay(&net, "n2", "n3"), Some(ms(20)));
}

#[test]
fn a_mesh_leads_from_access_over_the_private_link_to_access() {
    let net = Mesh { nodes: 12, ..Mesh::default() }.build(3);
    assert_eq!(net.links.len(), 2 * 12 + 12 * 11);
    for (from, to) in [("n1", "n12"), ("n12", "n1"), ("n5", "n6")] {
        assert_eq!(rates(&net, from, to), [mbit(6), mbit(2), mbit(6)]);
        let delay = delay(&net, from, to).unwrap();
        assert!((ms(7)..=ms(202)).contains(&delay), "{delay:?}");
    }
    let core: Vec<_> = net.links.iter().filter(|link| link.label == "core").collect();
    assert!(core.iter().all(|link| (ms(5)..=ms(200)).contains(&link.delay)));
    assert!(core.iter().all(|link| (0.0..=0.03).contains(&probability(link))));
    let mean = core.iter().map(|link| probability(link)).sum::<f64>() / core.len() as f64;
    assert!((0.012..0.018).contains(&mean), "{mean}");
    assert_eq!(check(&net), Ok(()));
}

#[test]
fn another_host_in_the_mesh_changes_no_link_that_was_there() {
    let links = |nodes, from, to| {
        let net = Mesh { nodes, ..Mesh::default() }.build(3);
        let (a, b) = (net.find(from).unwrap(), net.find(to).unwrap());
        let link = net.links_between(a, b).next().unwrap();
        (net.links[link.0 as usize].delay, net.links[link.0 as usize].loss)
    };
    assert_eq!(links(5, "n2.up", "n4.down"), links(6, "n2.up", "n4.down"));
}

#[test]
fn the_mesh_that_changes_halves_a_quarter_of_its_links_each_period_for_good() {
    let mesh = Mesh { nodes: 20, dynamic: Some(Dynamic::default()), ..Mesh::default() };
    let net = mesh.build(1);
    // Half of 20 hosts, half of the 19 others of each, 30 periods until 600 s.
    assert_eq!(net.changes.len(), 10 * 10 * 30);
    assert_eq!(net.changes[0].at, Time::ZERO + s(20));
    let mut rates: Vec<f64> = net.links.iter().map(|link| link.rate.as_f64()).collect();
    for change in &net.changes {
        let link = change.link.0 as usize;
        assert_eq!(net.links[link].label, "core");
        let Changed::Rate(rate) = change.to else { panic!("{change:?}") };
        assert!((rate.as_f64() - rates[link] / 2.0).abs() <= 1.0, "half of what it was");
        rates[link] = rate.as_f64();
    }
    // A chosen host loses from others: in one round its links share the end.
    let first: Vec<NodeIx> =
        net.changes[..100].iter().map(|change| net.links[change.link.0 as usize].to).collect();
    let mut ends = first.clone();
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), 10);
}

#[test]
fn the_power_law_graph_is_connected_and_its_degrees_follow_the_law() {
    let graph = PowerLaw { nodes: 4000, clients: 200, ..PowerLaw::default() };
    let net = graph.build(5);
    assert_eq!(net.hosts().count(), 200);
    assert_eq!(check(&net), Ok(()));
    let mut degrees = vec![0u32; net.nodes.len()];
    for link in net.links.iter().filter(|link| link.label != "client-stub") {
        degrees[link.from.0 as usize] += 1;
    }
    let routers = &degrees[200..];
    let least = |degree| routers.iter().filter(|&&of| of >= degree).count() as f64;
    assert!((0.29..0.32).contains(&(1.0 - least(2) / 4000.0)), "{}", least(2));
    // Of the others, a share of (d / 2)^-1.2 has at least d links.
    for degree in [4, 8, 16, 32] {
        let law = 0.7 * 4000.0 * libm::pow(f64::from(degree) / 2.0, -1.2);
        let found = least(degree);
        assert!((found / law - 1.0).abs() < 0.25, "{degree}: {found} of {law}");
    }
    assert!(routers[0] >= 300, "the largest has {} links", routers[0]);
}

#[test]
fn clients_hang_at_routers_with_one_link_and_are_130_ms_apart() {
    let graph = PowerLaw { nodes: 1500, clients: 150, ..PowerLaw::default() };
    let net = graph.build(2);
    let degree = |node: NodeIx| {
        net.links.iter().filter(|link| link.from == node && link.label != "client-stub").count()
    };
    let access = net.links.iter().filter(|link| link.label == "client-stub");
    for link in access.filter(|link| net.nodes[link.from.0 as usize].is_host) {
        assert_eq!(degree(link.to), 1);
    }
    let mut routes = Routes::new(&net);
    let hosts: Vec<NodeIx> = net.hosts().collect();
    let mut total = 0.0;
    for &from in &hosts {
        for &to in hosts.iter().filter(|&&to| to != from) {
            total += 2.0 * routes.delay(from, to).unwrap().as_secs_f64();
        }
    }
    let mean = total / (150.0 * 149.0);
    assert!((mean - 0.130).abs() < 0.005, "{mean}");
}

#[test]
fn rates_and_losses_lie_in_the_ranges_of_their_classes() {
    let classes = ["client-stub", "stub-stub", "transit-stub", "transit-transit"];
    for (rates, losses) in [
        (LOW, Losses::NONE),
        (MEDIUM, Losses::LOSSY),
        (HIGH, Losses::NONE),
        (BULLET_PRIME, Losses::BULLET_PRIME),
    ] {
        let graph = PowerLaw { nodes: 800, clients: 100, rates, losses, ..PowerLaw::default() };
        let net = graph.build(1);
        let mut overloaded = 0;
        for link in &net.links {
            let class = classes.iter().position(|class| *class == link.label).unwrap();
            assert!((rates[class].0..=rates[class].1).contains(&link.rate), "{link:?}");
            let range = losses.by_class[class];
            let loss = probability(link);
            let is_overloaded = losses.overloaded_share > 0.0 && loss >= 0.05;
            overloaded += usize::from(is_overloaded);
            assert!(is_overloaded || (range.0..=range.1).contains(&loss), "{link:?}");
        }
        let share = overloaded as f64 / net.links.len() as f64;
        assert!((share - losses.overloaded_share).abs() < 0.015, "{share}");
    }
}

#[test]
fn table_ii_is_as_printed() {
    assert_eq!(LOW[0], (kbit(300), kbit(600)));
    assert_eq!(MEDIUM[3], (kbit(5000), kbit(10_000)));
    assert_eq!(HIGH[1], (kbit(2000), kbit(8000)));
}

#[test]
fn the_transit_stub_graph_has_5050_routers_and_its_median() {
    let graph = TransitStub { members: 400, ..TransitStub::default() };
    let net = graph.build(1);
    assert_eq!(net.nodes.len() - 400, 5050);
    assert_eq!(check(&net), Ok(()));
    let mut routes = Routes::new(&net);
    let hosts: Vec<NodeIx> = net.hosts().collect();
    let mut delays = Vec::new();
    for &from in hosts.iter().step_by(4) {
        let others = hosts.iter().filter(|&&to| to != from);
        delays.extend(others.map(|&to| routes.delay(from, to).unwrap()));
    }
    delays.sort();
    let median = delays[delays.len() / 2];
    assert!((ms(385)..=ms(415)).contains(&median), "{median:?}");
    let most = *delays.last().unwrap();
    println!("longest delay {most:?}");
    assert!((ms(550)..=ms(850)).contains(&most), "{most:?}");
}

#[test]
fn a_measured_matrix_keeps_its_directions() {
    let text = r#"
[generate]
kind = "matrix"
names = ["BU", "UTK", "UW"]
unit = "mbit"
rows = "receivers"
missing = "mirror"
rtt = "50ms"
rates = [[64.1, 19.0, 8.7], [47.0, 98.0, 12.8], ["-", "-", "-"]]
rtts = [[0, 30, 70], [30, 0, 80], [70, 80, 0]]
"#;
    let net = Topology::parse(text, "test.toml").unwrap();
    assert_eq!(rates(&net, "BU", "UTK"), [kbit(64_100), mbit(47), mbit(98)]);
    assert_eq!(rates(&net, "UTK", "BU")[1], mbit(19));
    assert_eq!(rates(&net, "BU", "UW"), [kbit(64_100), kbit(8700), kbit(12_800)]);
    assert_eq!(delay(&net, "UW", "UTK"), Some(ms(40)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_generator_makes_the_same_connected_graph_of_the_same_seed(
        seed: u64, a in 1u32..8, b in 1u32..6, c in 2u32..12, hosts in 2u32..20,
    ) {
        let stub = TransitStub {
            domains: a, transit: b, stubs: a, stub: c, members: hosts, ..TransitStub::default()
        };
        let law = PowerLaw {
            nodes: 10 + a * b * c, clients: hosts, losses: Losses::LOSSY, ..PowerLaw::default()
        };
        let mesh = Mesh { nodes: hosts, dynamic: Some(Dynamic::default()), ..Mesh::default() };
        let lot = ParkingLot { hops: a, through: b, per_hop: c, cross: vec![a], ..ParkingLot::default() };
        let nets = || [stub.build(seed), law.build(seed), mesh.build(seed), lot.build()];
        for (net, again) in nets().into_iter().zip(nets()) {
            prop_assert_eq!(check(&net), Ok(()));
            prop_assert!(net == again);
            let mut names: Vec<&str> = net.nodes.iter().map(|node| node.name.as_str()).collect();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), net.nodes.len());
            prop_assert!(net.changes.is_sorted_by_key(|change| change.at));
            prop_assert!(net.links.iter().all(|link| link.from != link.to));
        }
        if hosts > 2 {
            prop_assert!(mesh.build(seed) != mesh.build(seed ^ 1));
        }
    }
}
