use super::*;
use crate::topology::{Limit, Link, Node, QueueSpec};
use crate::units::{mbit, ms};
use anabranch_proto::random::{Rng, RngExt, stream};

/// Nodes by name, hosts with a small letter; links as (from, to, delay in ms).
fn topology(names: &str, links: &[(char, char, u64)]) -> Topology {
    let place = |name: char| NodeIx(names.find(name).expect("a named node") as u32);
    let nodes = names.chars().map(|name| Node { name: name.into(), is_host: name.is_lowercase() });
    let links = links.iter().map(|&(from, to, delay)| Link {
        from: place(from),
        to: place(to),
        rate: mbit(10),
        delay: ms(delay),
        loss: None,
        mtu: 1500,
        queue: QueueSpec::DropTail { limit: Limit::Packets(100) },
        label: String::new(),
    });
    Topology { nodes: nodes.collect(), links: links.collect(), ..Topology::default() }
}

fn path(topology: &Topology, from: u32, to: u32) -> Option<Vec<u32>> {
    let mut routes = Routes::new(topology);
    let path = routes.path(NodeIx(from), NodeIx(to))?;
    Some(path.iter().map(|link| link.0).collect())
}

#[test]
fn the_path_with_the_least_delay_is_taken_though_it_has_more_hops() {
    let net = topology(
        "abXYZ",
        &[('a', 'X', 1), ('X', 'b', 9), ('X', 'Y', 2), ('Y', 'Z', 2), ('Z', 'b', 2)],
    );
    assert_eq!(path(&net, 0, 1), Some(vec![0, 2, 3, 4]));
}

#[test]
fn among_equal_delays_the_fewest_hops_win_then_the_lowest_link() {
    let links = [('a', 'X', 1), ('X', 'Y', 1), ('Y', 'b', 1), ('X', 'b', 2), ('X', 'b', 2)];
    assert_eq!(path(&topology("abXY", &links), 0, 1), Some(vec![0, 3]));
}

#[test]
fn hosts_do_not_forward_and_links_have_a_direction() {
    let net = topology("abc", &[('a', 'b', 1), ('b', 'c', 1)]);
    assert_eq!(path(&net, 0, 1), Some(vec![0]));
    assert_eq!(path(&net, 0, 2), None);
    assert_eq!(path(&net, 1, 0), None);
    assert_eq!(path(&net, 2, 2), Some(vec![]));
    assert_eq!(Routes::new(&net).unreachable_from(NodeIx(0)), Some(NodeIx(2)));
}

#[test]
fn a_router_can_be_asked_for_too() {
    let net = topology("aXY", &[('a', 'X', 1), ('X', 'Y', 0), ('Y', 'X', 0)]);
    assert_eq!(path(&net, 0, 2), Some(vec![0, 1]));
    let mut routes = Routes::new(&net);
    assert_eq!(routes.delay(NodeIx(0), NodeIx(2)), Some(ms(1)));
}

#[test]
fn paths_in_a_random_graph_are_as_short_as_an_exhaustive_relaxation_says() {
    let mut rng = stream(7, "routes", "test");
    let names: String = ('a'..='h').chain('A'..='Z').collect();
    let count = names.len() as u32;
    let letters: Vec<char> = names.chars().collect();
    let letter = |rng: &mut Rng| letters[rng.random_range(0..count) as usize];
    let links: Vec<_> =
        (0..150).map(|_| (letter(&mut rng), letter(&mut rng), rng.random_range(0..20))).collect();
    let net = topology(&names, &links);
    let mut routes = Routes::new(&net);
    for from in 0..8 {
        let mut delays = vec![None; count as usize];
        delays[from] = Some(ms(0));
        for _ in 0..count {
            for link in &net.links {
                let (a, b) = (link.from.0 as usize, link.to.0 as usize);
                let Some(known) = delays[a].filter(|_| a == from || !net.nodes[a].is_host) else {
                    continue;
                };
                let way = known + link.delay;
                delays[b] = Some(delays[b].map_or(way, |best| way.min(best)));
            }
        }
        for to in 0..count {
            let delay = routes.delay(NodeIx(from as u32), NodeIx(to));
            assert_eq!(delay, delays[to as usize], "{from} to {to}");
        }
    }
}
