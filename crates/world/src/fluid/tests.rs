use super::*;
use crate::units::us;

const PARCEL: u64 = 16 * 1024;

/// Flows on a wire of their own, each with parcels to send.
struct Rig {
    fluid: Fluid,
    queue: Queue,
    now: Time,
    /// Parcels each flow still has, their length, and whether they are control.
    waiting: Vec<(u32, u64, bool)>,
    /// Bytes sent and the time of the last parcel's end, by flow.
    sent: Vec<u64>,
    ended: Vec<Time>,
}

impl Rig {
    fn new(quantum: Duration, hosts: &[(f64, f64)], flows: &[(u32, u32)]) -> Rig {
        let mut fluid = Fluid::new(quantum);
        hosts.iter().for_each(|&(up, down)| fluid.add_host(up, down));
        flows.iter().for_each(|&(up, down)| fluid.add_flow(up, down, f64::INFINITY));
        let count = flows.len();
        Rig {
            fluid,
            queue: Queue::default(),
            now: Time::ZERO,
            waiting: vec![(0, 0, false); count],
            sent: vec![0; count],
            ended: vec![Time::ZERO; count],
        }
    }

    fn start(&mut self, flow: u32, parcels: u32, bytes: u64, is_control: bool) {
        self.waiting[flow as usize] = (parcels - 1, bytes, is_control);
        self.fluid.serve(self.now, flow, bytes, is_control, &mut self.queue);
        self.settle();
    }

    fn run(&mut self, limit: Duration) {
        let limit = Time::ZERO + limit;
        while let Some((time, event)) = self.queue.pop_until(limit) {
            self.now = time;
            match event {
                Event::Boundary => self.fluid.rebalance(time, &mut self.queue),
                Event::Served { flow, turn } => self.on_served(flow, turn),
                other => panic!("{other:?}"),
            }
            self.settle();
            self.fluid.check().unwrap();
        }
        self.now = limit;
    }

    fn on_served(&mut self, flow: u32, turn: u32) {
        if !self.fluid.take_served(flow, turn) {
            return;
        }
        let (parcels, bytes, is_control) = &mut self.waiting[flow as usize];
        self.sent[flow as usize] += *bytes;
        self.ended[flow as usize] = self.now;
        if *parcels == 0 {
            return self.fluid.stop(self.now, flow, &mut self.queue);
        }
        *parcels -= 1;
        self.fluid.serve(self.now, flow, *bytes, *is_control, &mut self.queue);
    }

    fn settle(&mut self) {
        if self.fluid.needs_rates() {
            self.fluid.rebalance(self.now, &mut self.queue);
        }
    }

    fn secs(&self, flow: usize) -> f64 {
        self.ended[flow].as_secs_f64()
    }
}

const EXACT: Duration = Duration::ZERO;

#[test]
fn one_flow_takes_its_bytes_over_the_slower_port() {
    for quantum in [EXACT, us(5_000)] {
        let mut rig = Rig::new(quantum, &[(2e6, 2e6), (2e6, 1e6)], &[(0, 1)]);
        rig.start(0, 100, PARCEL, false);
        rig.run(Duration::from_secs(10));
        assert!((rig.secs(0) - 1.638_4).abs() < 1e-6, "{quantum:?}: {}", rig.secs(0));
    }
}

#[test]
fn k_flows_that_share_a_port_end_together_after_k_times_as_long() {
    // A flow that is first has the port to itself until the next boundary: five times its share.
    for (quantum, early, late) in [(EXACT, 1e-6, 1e-6), (us(2_000), 0.01, 0.002)] {
        let hosts = [(1e6, 1e6); 6];
        let mut rig = Rig::new(quantum, &hosts, &[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
        (0..5).for_each(|flow| rig.start(flow, 20, PARCEL, false));
        rig.run(Duration::from_secs(10));
        for flow in 0..5 {
            let off = rig.secs(flow) - 1.638_4;
            assert!((-early..=late).contains(&off), "{quantum:?} {flow}: {off}");
        }
        let last = (0..5).map(|flow| rig.secs(flow)).fold(0.0, f64::max) - 1.638_4;
        assert!(last.abs() <= late, "the port is hardly ever idle, {quantum:?}: {last}");
    }
}

#[test]
fn two_bottlenecks_give_each_flow_its_max_min_fair_share() {
    // Host 0 (9) sends to 1 (which takes 1), 2 and 3 (10 each): 1, 4, 4.
    for (quantum, tolerance) in [(EXACT, 1e-6), (us(1_000), 0.002)] {
        let hosts = [(9e5, 9e5), (1e5, 1e5), (1e6, 1e6), (1e6, 1e6)];
        let mut rig = Rig::new(quantum, &hosts, &[(0, 1), (0, 2), (0, 3)]);
        rig.start(0, 10, 10_000, false);
        rig.start(1, 40, 10_000, false);
        rig.start(2, 40, 10_000, false);
        rig.run(Duration::from_secs(10));
        for flow in 0..3 {
            let off = rig.secs(flow) - 1.0;
            assert!(off.abs() <= tolerance, "{quantum:?} {flow}: {off}");
        }
    }
}

#[test]
fn what_one_flow_leaves_goes_to_the_other_from_the_next_boundary() {
    // Alone from 0.5 s on: 250 kB at half of 1 MB/s, then 750 kB at all of it, is 1.25 s.
    for (quantum, tolerance) in [(EXACT, 1e-6), (us(5_000), 0.005)] {
        let mut rig = Rig::new(quantum, &[(1e6, 1e6); 3], &[(0, 1), (0, 2)]);
        rig.start(0, 25, 10_000, false);
        rig.start(1, 100, 10_000, false);
        rig.run(Duration::from_secs(10));
        let late = rig.secs(1) - 1.25;
        assert!((-1e-6..=tolerance).contains(&late), "{quantum:?}: {late}");
    }
}

#[test]
fn a_flow_that_begins_inside_a_quantum_has_at_once_what_is_to_spare() {
    let mut rig = Rig::new(us(5_000), &[(1e6, 1e6), (4e5, 4e5), (1e6, 1e6)], &[(0, 1), (0, 2)]);
    rig.start(0, 100, 10_000, false);
    rig.run(us(11_000));
    rig.start(1, 1, 600, false);
    rig.run(us(14_000));
    // 600 bytes at the 600 kB/s that flow 0 cannot use take 1 ms: no boundary in between.
    assert_eq!(rig.ended[1], Time::ZERO + us(12_000));
}

#[test]
fn a_flow_that_finds_nothing_to_spare_waits_for_the_boundary() {
    let mut rig = Rig::new(us(5_000), &[(1e6, 1e6); 3], &[(0, 1), (0, 2)]);
    rig.start(0, 100, 10_000, false);
    rig.run(us(11_000));
    rig.start(1, 1, 500, false);
    rig.run(us(30_000));
    assert_eq!(rig.ended[1], Time::ZERO + us(16_000), "half of 1 MB/s from 15 ms on");
}

#[test]
fn express_messages_overtake_bulk_and_are_paid_by_it() {
    // A 100-byte message on flow 1 every millisecond, against bulk on flow 0.
    let mut rig = Rig::new(us(5_000), &[(1e6, 1e6); 3], &[(0, 1), (0, 2)]);
    rig.start(0, 1_000, 1_000, false);
    for message in 0..500u64 {
        rig.run(us(1_000 * message + 300));
        rig.start(1, 1, 100, true);
        rig.run(us(1_000 * message + 900));
        let at = Time::ZERO + us(1_000 * message + 400);
        assert_eq!(rig.ended[1], at, "100 bytes at 1 MB/s take 0.1 ms");
    }
    rig.run(us(500_000));
    let bytes = rig.sent[0] + rig.sent[1];
    assert_eq!(rig.sent[1], 50_000);
    let quantum = 5_000;
    assert!(bytes <= 500_000 + quantum, "{bytes} bytes through a port that carries 500,000");
    assert!(bytes >= 500_000 - 2 * quantum, "{bytes}: express must not waste the port");
}

#[test]
fn express_beyond_a_quantum_of_debt_is_served_like_bulk() {
    let flows: Vec<(u32, u32)> = (1..=40).map(|to| (0, to)).collect();
    let mut rig = Rig::new(us(5_000), &[(1e6, 1e6); 41], &flows);
    (0..40).for_each(|flow| rig.start(flow, 50, 1_000, true));
    for step in 1..=60u64 {
        rig.run(us(step * 10_000));
        let bytes: u64 = rig.sent.iter().sum();
        assert!(bytes <= step * 10_000 + 5_000, "{bytes} by {step}0 ms");
    }
    rig.run(us(2_100_000));
    let last = (0..40).map(|flow| rig.secs(flow)).fold(0.0, f64::max);
    assert_eq!(rig.sent.iter().sum::<u64>(), 2_000_000);
    assert!((1.995..2.02).contains(&last), "and hardly anything is wasted: {last}");
}

#[test]
fn a_cut_stalls_a_flow_and_its_end_lets_it_go_on() {
    for quantum in [EXACT, us(1_000)] {
        let mut rig = Rig::new(quantum, &[(1e6, 1e6); 2], &[(0, 1)]);
        rig.start(0, 100, 10_000, false);
        rig.run(us(300_000));
        rig.fluid.set_cap(rig.now, 0, 0.0, &mut rig.queue);
        rig.settle();
        rig.run(us(800_000));
        assert!(rig.sent[0] <= 301_000, "{}", rig.sent[0]);
        rig.fluid.set_cap(rig.now, 0, f64::INFINITY, &mut rig.queue);
        rig.settle();
        rig.run(us(2_000_000));
        assert!((rig.secs(0) - 1.5).abs() <= 0.002, "{quantum:?}: {}", rig.secs(0));
    }
}

#[test]
fn a_host_that_slows_down_slows_its_flows() {
    for quantum in [EXACT, us(1_000)] {
        let mut rig = Rig::new(quantum, &[(1e6, 1e6); 2], &[(0, 1)]);
        rig.start(0, 100, 10_000, false);
        rig.run(us(500_000));
        rig.fluid.set_host(rig.now, 0, 1e5, 1e6, &mut rig.queue);
        rig.settle();
        rig.run(us(8_000_000));
        assert!((rig.secs(0) - 5.5).abs() <= 0.01, "{quantum:?}: {}", rig.secs(0));
    }
}

#[test]
fn nothing_happens_on_an_idle_wire() {
    let mut rig = Rig::new(us(1_000), &[(1e6, 1e6); 2], &[(0, 1)]);
    rig.start(0, 3, 100, true);
    rig.run(us(10_000));
    assert_eq!(rig.queue.len(), 0);
    rig.start(0, 3, 10_000, false);
    rig.run(us(100_000));
    assert_eq!(rig.queue.len(), 0);
}
