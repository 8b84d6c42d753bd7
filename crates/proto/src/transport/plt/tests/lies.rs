//! Receivers that lie gain nothing and crash nothing.

use super::*;
use crate::transport::packet::Segment;
use header::BLOCKS_MAX;

/// A source at work after half a second, with its path.
fn busy() -> Path<Endpoint> {
    let mut path = path(config(), way(), way());
    send(&mut path, 50_000_000);
    path.run(0.5);
    path
}

fn report(from: u64, to: u64, blocks: &[(u64, u64)], credit: Credit) -> Packet {
    let mut said = [Range::default(); BLOCKS_MAX];
    for (slot, (start, end)) in said.iter_mut().zip(blocks) {
        *slot = Range { start: *start, end: *end };
    }
    let report =
        Report { from, to, blocks: said, blocks_len: blocks.len() as u8, echo: None, credit };
    let body = Body::Plt(Header::Report(report));
    Packet { class: Class::BEST_EFFORT, header_len: 64, payload_len: 0, xcp: None, body }
}

fn high(segment: Segment, credit: Credit) -> Packet {
    let header = High { segment, actual: 0, end: None, credit, is_full: false, asks: false };
    let body = Body::Plt(Header::High(header));
    Packet { class: Class::BEST_EFFORT, header_len: 60, payload_len: 0, xcp: None, body }
}

#[test]
fn acknowledgements_of_what_was_never_sent_change_nothing() {
    let mut path = busy();
    let before = path.ends[0].probe();
    let (now, far) = (path.now, 1 << 50);
    let credit = Credit { ack: far, window: far, is_low_off: false };
    let source = &mut path.ends[0];
    source.handle(now, report(0, far, &[(0, far)], credit));
    let segment = Segment { has_ack: true, ack: far, window: far, ..Segment::default() };
    source.handle(now, high(segment, credit));
    assert_eq!(source.probe(), before);
    source.check_invariants();
}

/// A receiver that says that it has what it has not gets less than an honest one, since nobody
/// sends that again.
#[test]
fn an_optimistic_receiver_never_gets_its_bytes() {
    let lossy = || way().faulty(|n, _| if n % 20 == 19 { Fate::IsDropped } else { Fate::Passes });
    let mut path = path(config(), lossy(), wide());
    send(&mut path, 2_000_000);
    for tick in 1..400 {
        path.run(f64::from(tick) * 0.01);
        let (virt, actual) = {
            let source = &path.ends[0];
            (source.lcm().unknown() + source.lcm().flight(), source.stream().nxt())
        };
        let credit = Credit { ack: actual, window: 1 << 20, is_low_off: false };
        let now = path.now;
        path.ends[0].handle(now, report(0, virt, &[(0, virt.max(1))], credit));
        path.drain(0);
    }
    assert!(path.read[1] < 2_000_000, "{}", path.read[1]);
    assert_eq!(path.told(1, Event::Finished), None);
}

#[test]
fn invented_losses_make_the_sender_slower() {
    let run_for = |lies: bool| {
        let mut path = path(config(), way(), way());
        send(&mut path, 1 << 40);
        for tick in 1..300 {
            path.run(f64::from(tick) * 0.02);
            let source = &mut path.ends[0];
            let (from, to) = (source.lcm().unknown(), source.lcm().sent_to());
            if lies && to > from + 20 {
                let said = report(from, to, &[(to - 1, to)], Credit::default());
                source.handle(path.now, said);
                path.drain(0);
            }
            path.ends[0].check_invariants();
        }
        path.read[1]
    };
    let (honest, liar) = (run_for(false), run_for(true));
    assert!(liar < honest, "{liar} {honest}");
}

/// A window that shrinks, ranges that make no sense, data that was never agreed on: any packet at
/// any time.
fn any_packet() -> impl Strategy<Value = Packet> {
    let number = || prop_oneof![0_u64..200_000, Just(0), Just(u64::MAX), any::<u64>()];
    let credit = (number(), number(), any::<bool>()).prop_map(|(ack, window, is_low_off)| Credit {
        ack,
        window,
        is_low_off,
    });
    let body = (0_u8..3, (number(), number(), number(), number()), credit, any::<u8>());
    (body, 0_u32..2_000).prop_map(|((kind, (a, b, c, d), credit, bits), payload_len)| {
        let flag = |bit: u8| bits >> bit & 1 == 1;
        let sack = [Range { start: a, end: b }, Range { start: c, end: d }, Range::default()];
        let header = match kind {
            0 => Header::High(High {
                segment: Segment {
                    syn: flag(0),
                    has_ack: flag(1),
                    fin: flag(2),
                    seq: a,
                    ack: b,
                    window: c,
                    sack,
                    sack_len: bits >> 6,
                    sent: Time(d),
                    echo: flag(3).then_some(Time(c)),
                    ..Segment::default()
                },
                actual: d,
                end: flag(4).then_some(c),
                credit,
                is_full: flag(5),
                asks: flag(3),
            }),
            1 => Header::Low(Low {
                seq: a,
                actual: b,
                unknown: c,
                end: flag(0).then_some(d),
                is_full: flag(1),
                sent: Time(d),
            }),
            _ => Header::Report(Report {
                from: a,
                to: b,
                blocks: sack,
                blocks_len: bits >> 6,
                echo: flag(0).then_some(Time(d)),
                credit,
            }),
        };
        let body = Body::Plt(header);
        Packet { class: Class::BEST_EFFORT, header_len: 60, payload_len, xcp: None, body }
    })
}

proptest! {
    #[test]
    fn no_packet_crashes_an_end(
        packets in proptest::collection::vec((0_usize..2, any_packet()), 1..60)
    ) {
        let mut path = path(config(), way(), way());
        path.ends[1].write(300_000);
        send(&mut path, 300_000);
        for (tick, (to, packet)) in packets.into_iter().enumerate() {
            path.run(tick as f64 * 0.004);
            let now = path.now;
            path.ends[to].handle(now, packet);
            path.drain(to);
        }
        let mut steps = 0;
        while steps < 20_000 && path.step(Time::from_secs_f64(20.0)) {
            steps += 1;
        }
    }
}
