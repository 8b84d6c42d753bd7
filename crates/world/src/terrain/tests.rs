use super::*;
use crate::sim::{SimError, Wire};
use crate::story::{End, Story};
use crate::topology::generate::{Dumbbell, Mesh, PowerLaw, TransitStub};
use crate::topology::{LossModel, Side};
use crate::units::{Size, mbit, ms, s};
use anabranch_proto::overlay::System;

/// A mesh without losses, all core delays alike.
fn mesh(nodes: u32) -> Topology {
    Mesh { nodes, delays: (ms(20), ms(20)), losses: (0.0, 0.0), ..Mesh::default() }.build(1)
}

fn terrain(topology: &Topology) -> Terrain {
    let members: Vec<NodeIx> = topology.hosts().collect();
    Terrain::new(topology, &members).unwrap()
}

/// A file of 1 MB from `n1` to all others.
fn run(terrain: Terrain, system: System) -> Result<End, SimError> {
    Story::new(1, system).file(1.mb(), 16.kib()).terrain(terrain).run_until_complete(s(100))
}

fn seconds(end: &End, host: &str) -> f64 {
    end.completion(host).unwrap().as_secs_f64()
}

#[test]
fn a_transfer_takes_the_private_links_time_and_no_less() {
    let end = run(terrain(&mesh(2)), System::Star).unwrap();
    // 8 Mb at 2 Mb/s, two round trips and a half of 44 ms to set up, requests and frames.
    let took = seconds(&end, "n2");
    assert!((4.0..4.4).contains(&took), "{took}");
}

#[test]
fn access_is_shared_by_all_paths_and_core_links_are_not() {
    let end = run(terrain(&mesh(7)), System::Star).unwrap();
    // Six receivers at 2 Mb/s each would need 12 Mb/s; n1 sends 6.
    for host in ["n2", "n5", "n7"] {
        let took = seconds(&end, host);
        assert!((7.5..8.9).contains(&took), "{host}: {took}");
    }
}

#[test]
fn bullet_prime_runs_on_the_papers_mesh() {
    let net = Mesh { nodes: 10, ..Mesh::default() }.build(2);
    let end = run(terrain(&net).tcp(Tcp::default()), System::BulletPrime).unwrap();
    end.assert_all_complete();
}

#[test]
fn loss_caps_a_path_at_what_tcp_gets_over_it() {
    let net = Mesh { nodes: 3, losses: (0.02, 0.02), delays: (ms(50), ms(50)), ..Mesh::default() };
    let net = net.build(1);
    let rate = formula::padhye(
        &formula::Path { mss: 1460.0, rtt: ms(104), loss: 0.02, per_ack: 2.0 },
        ms(416),
    );
    assert!(rate < mbit(2).as_f64());
    let capped = terrain(&net).tcp(Tcp::default());
    assert!((capped.cap(0, 1) / rate - 1.0).abs() < 1e-9, "{} {rate}", capped.cap(0, 1));
    assert_eq!(terrain(&net).cap(0, 1), mbit(2).as_f64());
}

#[test]
fn bursty_loss_counts_by_its_mean() {
    let model =
        LossModel::GilbertElliott { to_bad: 0.01, to_good: 0.09, loss_good: 0.0, loss_bad: 0.5 };
    let loss = mean_loss(Some(Loss { model, side: Side::After }));
    assert!((loss - 0.05).abs() < 1e-12);
}

#[test]
fn a_rate_that_changes_is_followed_on_inner_links_and_on_access() {
    let mut net = mesh(2);
    let core = net.links.iter().position(|link| link.label == "core").unwrap() as u32;
    let change = |at, link, to| Change { at: Time::ZERO + at, link: LinkIx(link), to };
    let without = seconds(&run(terrain(&net), System::Star).unwrap(), "n2");
    // What is left after 2 s takes twice as long: n1's core link is the first.
    net.changes = vec![change(s(2), core, Changed::Rate(mbit(1)))];
    let took = seconds(&run(terrain(&net), System::Star).unwrap(), "n2");
    assert!((took - (2.0 * without - 2.0)).abs() < 0.05, "{without} {took}");
    // The same by n1's access (its first link).
    net.changes = vec![change(s(2), 0, Changed::Rate(mbit(1)))];
    let took = seconds(&run(terrain(&net), System::Star).unwrap(), "n2");
    assert!((took - (2.0 * without - 2.0)).abs() < 0.05, "{without} {took}");
}

#[test]
fn a_link_that_is_down_for_a_while_stops_the_transfer_for_as_long() {
    let mut net = mesh(2);
    let core = net.links.iter().position(|link| link.label == "core").unwrap() as u32;
    let change = |at, to| Change { at: Time::ZERO + at, link: LinkIx(core), to };
    let without = seconds(&run(terrain(&net), System::Star).unwrap(), "n2");
    net.changes = vec![change(s(2), Changed::Down), change(s(5), Changed::Up)];
    let with = seconds(&run(terrain(&net), System::Star).unwrap(), "n2");
    assert!((with - without - 3.0).abs() < 0.2, "{without} {with}");
}

#[test]
fn rows_of_delays_say_what_the_paths_add_up_to() {
    let dumbbell = Dumbbell { pairs: 4, extra_delays: vec![ms(0), ms(7)], ..Dumbbell::default() };
    let law = PowerLaw { nodes: 300, clients: 30, ..PowerLaw::default() };
    for net in [law.build(1), dumbbell.build(), mesh(5)] {
        let exact = terrain(&net);
        let mut rows = terrain(&net);
        rows.delays_only();
        for a in 0..exact.hosts.len() as u32 {
            for b in (0..exact.hosts.len() as u32).filter(|&b| b != a) {
                let (exact, row) = (exact.delay(a, b), rows.delay(a, b));
                assert!(exact.abs_diff(row) <= Duration::from_nanos(100), "{exact:?} {row:?}");
            }
        }
    }
}

#[test]
fn the_latency_wire_has_the_graphs_delays() {
    let net = TransitStub { members: 300, ..TransitStub::default() }.build(1);
    let terrain = terrain(&net);
    // n2's dial, its request, and then a block, which this wire refuses: when, tells the delay.
    let delay = terrain.delay(1, 0);
    let mut two = Terrain::new(&net, &[NodeIx(0), NodeIx(1)]).unwrap();
    two.delays_only();
    let told = Story::new(1, System::Star)
        .file(64.kib(), 16.kib())
        .terrain(two)
        .configure(|config| config.wire = Wire::Latency)
        .run_for(s(60));
    let Err(SimError::BulkOnLatencyWire { time, .. }) = told else { panic!("no block was sent") };
    let round_trips = time.as_secs_f64() / (2.0 * delay.as_secs_f64());
    assert!((round_trips - 3.5).abs() < 0.01, "{round_trips}");
}

#[test]
fn members_are_hosts_and_each_is_there_once() {
    let net = mesh(3);
    let what = |members: &[u32]| {
        let members: Vec<NodeIx> = members.iter().map(|&node| NodeIx(node)).collect();
        Terrain::new(&net, &members).unwrap_err().to_string()
    };
    assert_eq!(what(&[0, 3]), "\"n1.up\" is a router, no host");
    assert_eq!(what(&[0, 1, 0]), "\"n1\" is there twice");
    assert_eq!(what(&[0, 99]), "the topology has no node 99");
}

#[test]
fn the_same_terrain_gives_the_same_run() {
    let net = Mesh { nodes: 6, dynamic: Some(Default::default()), ..Mesh::default() }.build(4);
    let hash = || run(terrain(&net).tcp(Tcp::default()), System::BulletPrime).unwrap().trace_hash();
    assert_eq!(hash(), hash());
}
