//! When a receiver could have the file over TCP at best: the second computed line of Bullet §5.8
//! (Fig. 13), "accounting for the inherent delay required for nodes to achieve maximum download
//! rate". The paper does not say how it was estimated; here a receiver needs
//!
//! - the least time until its first block, over whatever other members (Dijkstra), where each hop
//!   takes a round trip to connect, one for the request, one more per doubling of TCP's window
//!   until the block is through, and the block's time at the hop's rate;
//! - the rest of the file at the lesser of its access rate and the sum of what one TCP connection
//!   gets from each other member: the path's rate, that member's access, and Padhye's rate at the
//!   path's loss and round trip.
//!
//! All on the topology as it is at the start, with all hosts there, and net of headers. It is an
//! estimate and no bound: Padhye's formula is NewReno's, and CUBIC may get more.

use anabranch_proto::time::Duration;
use anabranch_world::terrain::{Tcp, Terrain};
use anabranch_world::topology::{NodeIx, Topology};

/// Seconds per member, the source (0 for it) first; empty when there are too many members, or
/// something is wrong with the topology. `share` of a link's rate is payload.
pub(super) fn times(
    topology: &Topology,
    places: &[(String, NodeIx)],
    (file, block): (u64, u32),
    share: f64,
) -> Vec<f64> {
    if places.len() > MEMBERS_MAX {
        return Vec::new();
    }
    let Ok(plain) = Terrain::places(topology, places) else { return Vec::new() };
    let tcp = plain.clone().tcp(Tcp { header: HEADER, ..Tcp::default() });
    let (file, block) = (file as f64, f64::from(block).min(file as f64));
    let up = |at: usize| plain.hosts[at].up.as_f64() * share;
    let down = |at: usize| plain.hosts[at].down.as_f64() * share;
    let path = |from: usize, to: usize| {
        let (from, to) = (from as u32, to as u32);
        let rate = (plain.cap(from, to) * share).min(tcp.cap(from, to));
        let rtt = plain.delay(from, to) + plain.delay(to, from);
        (rate.min(up(from as usize)), rtt)
    };
    let hop = |from: usize, to: usize| {
        let (rate, rtt) = path(from, to);
        block_over(block, rate.min(down(to)), rtt)
    };
    let firsts = earliest(places.len(), hop);
    let rest = |to: usize| {
        let others = (0..places.len()).filter(|from| *from != to);
        let sum: f64 = others.map(|from| path(from, to).0).sum();
        (file - block) / sum.min(down(to))
    };
    let time = |(at, first): (usize, f64)| if at == 0 { 0.0 } else { first + rest(at) };
    firsts.into_iter().enumerate().map(time).collect()
}

/// Seconds from dialling until a block has come over a new connection of this rate: slow start from
/// ten segments (RFC 6928).
fn block_over(block: f64, rate: f64, rtt: Duration) -> f64 {
    let (mut sent, mut window, mut rounds) = (WINDOW_INITIAL, WINDOW_INITIAL, 0.0);
    while sent < block && rounds < DOUBLINGS_MAX {
        window *= 2.0;
        sent += window;
        rounds += 1.0;
    }
    (2.0 + rounds) * rtt.as_secs_f64() + block / rate
}

/// The least sum of hops from member 0 to each.
fn earliest(members: usize, hop: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut times = vec![f64::INFINITY; members];
    let mut is_done = vec![false; members];
    if let Some(first) = times.first_mut() {
        *first = 0.0;
    }
    for _ in 0..members {
        let open = (0..members).filter(|at| !is_done[*at]);
        let Some(next) = open.min_by(|a, b| times[*a].total_cmp(&times[*b])) else { break };
        is_done[next] = true;
        for to in 0..members {
            if !is_done[to] {
                times[to] = times[to].min(times[next] + hop(next, to));
            }
        }
    }
    times
}

/// Headers of a segment: IP and TCP with timestamps.
const HEADER: u32 = 52;
/// Ten segments of 1,448 bytes.
const WINDOW_INITIAL: f64 = 14_480.0;
const DOUBLINGS_MAX: f64 = 40.0;
/// Every pair of members is looked at.
const MEMBERS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    const MESH: &str = r#"
[generate]
kind = "mesh"
nodes = 4
access = { rate = "6mbit" }
core = { rate = "1mbit", delay = "20ms", loss = 0 }
"#;

    fn of(text: &str, file: u64) -> Vec<f64> {
        let topology = Topology::parse(text, "t.toml").unwrap();
        let hosts = topology.nodes.iter().zip(0..).filter(|(node, _)| node.is_host);
        let places: Vec<_> = hosts.map(|(node, at)| (node.name.clone(), NodeIx(at))).collect();
        times(&topology, &places, (file, 16_384), 1.0)
    }

    #[test]
    fn the_file_comes_at_what_all_others_can_send_after_the_first_block() {
        // Three others with 1 Mb/s each: 375,000 bytes per second together.
        let times = of(MESH, 3_766_384);
        assert_eq!(times.len(), 4);
        assert_eq!(times[0], 0.0);
        for time in &times[1..] {
            assert!((10.2..10.6).contains(time), "{time}");
        }
    }

    #[test]
    fn no_faster_than_the_access_link_and_slower_with_loss() {
        let wide = of(&MESH.replace("1mbit", "100mbit"), 7_516_384);
        assert!((10.0..10.4).contains(&wide[1]), "{}", wide[1]);
        let lossy = of(&MESH.replace("loss = 0", "loss = 0.1"), 3_766_384);
        assert!(lossy[1] > 12.0, "{}", lossy[1]);
    }
}
