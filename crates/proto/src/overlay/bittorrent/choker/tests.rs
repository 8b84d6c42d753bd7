use super::*;
use crate::random::stream;

fn peer(number: u32, rate: f64) -> Candidate {
    Candidate {
        link: LinkId(number),
        is_interested: true,
        is_snubbing: false,
        unchoked_at: None,
        is_waiting: false,
        rate,
    }
}

fn in_order(count: u32) -> Choker {
    Choker { order: (0..count).map(LinkId).collect(), rounds: 0 }
}

fn links(numbers: &[u32]) -> BTreeSet<LinkId> {
    numbers.iter().copied().map(LinkId).collect()
}

#[test]
fn the_three_that_give_most_and_the_first_of_the_order_are_served() {
    let mut peers: Vec<Candidate> = (0..8).map(|n| peer(n, f64::from(n))).collect();
    let choker = in_order(8);
    assert_eq!(choker.choose(&Config::default(), &peers), links(&[5, 6, 7, 0]));
    peers[7].is_interested = false;
    peers[0].is_interested = false;
    assert_eq!(choker.choose(&Config::default(), &peers), links(&[4, 5, 6, 1]));
}

#[test]
fn a_peer_that_snubs_us_is_served_in_its_turn_only() {
    let mut peers: Vec<Candidate> = (0..8).map(|n| peer(n, f64::from(n))).collect();
    peers[7].is_snubbing = true;
    peers[6].is_snubbing = true;
    let mut choker = in_order(8);
    assert_eq!(choker.choose(&Config::default(), &peers), links(&[3, 4, 5, 0]));
    choker.order.rotate_left(7);
    assert_eq!(choker.choose(&Config::default(), &peers), links(&[3, 4, 5, 7]));
}

#[test]
fn free_slots_are_filled_and_a_member_without_slots_serves_nobody() {
    let peers: Vec<Candidate> = (0..3).map(|n| peer(n, 0.0)).collect();
    let choker = in_order(3);
    assert_eq!(choker.choose(&Config::default(), &peers), links(&[0, 1, 2]));
    let rider = Config { upload_slots: 0, ..Config::default() };
    assert!(choker.choose(&rider, &peers).is_empty());
    let rng = &mut stream(1, "c", "t");
    assert!(choker.choose_as_seed(&rider, rng, Time::ZERO, &peers, true).is_empty());
}

#[test]
fn the_optimistic_unchoke_moves_to_the_next_choked_peer_every_third_round() {
    let config = Config::default();
    let mut choker = in_order(8);
    let mut peers: Vec<Candidate> = (0..8).map(|n| peer(n, f64::from(n))).collect();
    let mut seen = Vec::new();
    for _ in 0..12 {
        choker.next_round(&config, &peers);
        let unchoked = choker.choose(&config, &peers);
        for peer in &mut peers {
            peer.unchoked_at = unchoked.contains(&peer.link).then_some(Time::ZERO);
        }
        seen.push(*unchoked.iter().next().unwrap());
    }
    let turns: Vec<u32> = seen.into_iter().map(|link| link.0).collect();
    assert_eq!(turns, [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]);
}

#[test]
fn a_newcomer_is_first_three_times_as_often_as_elsewhere() {
    let mut firsts = 0;
    for seed in 0..1_000 {
        let mut choker = in_order(7);
        choker.add(&mut stream(seed, "c", "t"), LinkId(99));
        firsts += u32::from(choker.order[0] == LinkId(99));
    }
    // Three chances of ten.
    assert!((250..350).contains(&firsts), "{firsts}");
}

#[test]
fn a_seed_serves_everybody_in_turn() {
    let config = Config::default();
    let (mut choker, rng) = (in_order(12), &mut stream(1, "c", "t"));
    let mut peers: Vec<Candidate> = (0..12).map(|n| peer(n, f64::from(n))).collect();
    let mut served = BTreeSet::new();
    for round in 0..60 {
        let now = Time::ZERO + Duration::from_secs(10 * round);
        choker.next_round(&config, &peers);
        let unchoked = choker.choose_as_seed(&config, rng, now, &peers, true);
        assert_eq!(unchoked.len(), 4);
        for peer in &mut peers {
            let since = peer.unchoked_at.unwrap_or(now);
            peer.unchoked_at = unchoked.contains(&peer.link).then_some(since);
        }
        served.extend(unchoked);
    }
    assert_eq!(served.len(), 12);
    // Between rounds nobody loses its slot.
    let before: BTreeSet<LinkId> =
        peers.iter().filter(|p| p.unchoked_at.is_some()).map(|p| p.link).collect();
    let now = Time::ZERO + Duration::from_secs(605);
    assert_eq!(choker.choose_as_seed(&config, rng, now, &peers, false), before);
}

#[test]
fn a_seed_of_the_old_kind_serves_those_that_take_most() {
    let config = Config { seed_unchoke: SeedUnchoke::Fastest, ..Config::default() };
    let peers: Vec<Candidate> = (0..8).map(|n| peer(n, f64::from(n))).collect();
    let rng = &mut stream(1, "c", "t");
    let unchoked = in_order(8).choose_as_seed(&config, rng, Time::ZERO, &peers, true);
    assert_eq!(unchoked, links(&[5, 6, 7, 0]));
}
