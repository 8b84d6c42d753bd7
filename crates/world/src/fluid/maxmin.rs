//! Max-min fair rates by water-filling.
//!
//! A flow crosses its sender's up port and its receiver's down port and may have a cap of its
//! own. An allocation is max-min fair when no flow can have more without taking from one that has
//! no more than it (Bertsekas & Gallager, *Data Networks*, §6.5.2).
//!
//! The textbook fills the tightest port first, one per round. Here every *locally* tightest port
//! is filled in the same round: a port whose equal share is no more than that of any other port
//! its flows cross. Filling raises the shares of other ports and never lowers them, so such a
//! port's flows get in the end exactly what they get now, and a few rounds do.

/// One flow as the allocation sees it: indices into the ports, a cap, and the rate it is given
/// (bytes per second).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) up: u32,
    pub(crate) down: u32,
    pub(crate) cap: f64,
    pub(crate) rate: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    left: f64,
    flows: u32,
    share: f64,
    is_tightest: bool,
}

/// Working space, kept between calls so that nothing is allocated in the steady state.
#[derive(Default, Debug)]
pub(crate) struct MaxMin {
    up: Vec<Port>,
    down: Vec<Port>,
    open: Vec<(u32, Demand)>,
}

/// Shares this close count as equal: otherwise rounding would make a chain of rounds out of
/// ports that are alike.
const NEARLY: f64 = 1.0 + 1e-9;

impl MaxMin {
    /// Sets every demand's rate, given what each up and down port can carry.
    pub(crate) fn allocate(&mut self, up: &[f64], down: &[f64], demands: &mut [Demand]) {
        fill_ports(&mut self.up, up);
        fill_ports(&mut self.down, down);
        for demand in demands.iter() {
            self.up[demand.up as usize].flows += 1;
            self.down[demand.down as usize].flows += 1;
        }
        self.open.clear();
        self.open.extend(demands.iter().enumerate().map(|(at, demand)| (at as u32, *demand)));
        while !self.open.is_empty() {
            self.find_tightest();
            self.settle(demands);
        }
    }

    fn find_tightest(&mut self) {
        for port in self.up.iter_mut().chain(&mut self.down).filter(|port| port.flows > 0) {
            port.share = port.left.max(0.0) / f64::from(port.flows);
            port.is_tightest = true;
        }
        for (_, demand) in &self.open {
            let up = &mut self.up[demand.up as usize];
            let down = &mut self.down[demand.down as usize];
            let least = up.share.min(down.share).min(demand.cap) * NEARLY;
            up.is_tightest &= up.share <= least;
            down.is_tightest &= down.share <= least;
        }
    }

    fn settle(&mut self, demands: &mut [Demand]) {
        let (ups, downs) = (&mut self.up, &mut self.down);
        self.open.retain(|(at, demand)| {
            let up = &mut ups[demand.up as usize];
            let down = &mut downs[demand.down as usize];
            let least = up.share.min(down.share);
            if !up.is_tightest && !down.is_tightest && demand.cap > least * NEARLY {
                return true;
            }
            let rate = least.min(demand.cap);
            demands[*at as usize].rate = rate;
            for port in [up, down] {
                port.left -= rate;
                port.flows -= 1;
            }
            false
        });
    }
}

fn fill_ports(ports: &mut Vec<Port>, capacities: &[f64]) {
    ports.clear();
    ports.extend(capacities.iter().map(|&left| Port { left, ..Port::default() }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates(up: &[f64], down: &[f64], flows: &[(u32, u32, f64)]) -> Vec<f64> {
        let mut demands: Vec<Demand> =
            flows.iter().map(|&(up, down, cap)| Demand { up, down, cap, rate: f64::NAN }).collect();
        MaxMin::default().allocate(up, down, &mut demands);
        demands.iter().map(|demand| demand.rate).collect()
    }

    const FREE: f64 = f64::INFINITY;

    #[test]
    fn k_flows_share_the_port_they_all_cross_equally() {
        let flows: Vec<_> = (0..5).map(|to| (0, to, FREE)).collect();
        assert_eq!(rates(&[100.0], &[1e3; 5], &flows), [20.0; 5]);
    }

    #[test]
    fn what_a_flow_cannot_use_goes_to_the_others() {
        assert_eq!(rates(&[90.0], &[10.0, 1e3], &[(0, 0, FREE), (0, 1, FREE)]), [10.0, 80.0]);
        assert_eq!(rates(&[90.0], &[1e3, 1e3], &[(0, 0, 5.0), (0, 1, FREE)]), [5.0, 85.0]);
    }

    #[test]
    fn two_bottlenecks_give_the_textbook_rates() {
        // Sender 0 (12) feeds receivers 0, 1, 2; senders 1, 2, 3 (100) feed receiver 2 (8) too.
        let flows =
            [(0, 0, FREE), (0, 1, FREE), (0, 2, FREE), (1, 2, FREE), (2, 2, FREE), (3, 2, FREE)];
        let up = [12.0, 100.0, 100.0, 100.0];
        assert_eq!(rates(&up, &[100.0, 100.0, 8.0], &flows), [5.0, 5.0, 2.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn a_stalled_flow_takes_nothing() {
        assert_eq!(rates(&[90.0], &[1e3, 1e3], &[(0, 0, 0.0), (0, 1, FREE)]), [0.0, 90.0]);
    }

    proptest! {
        #[test]
        fn every_flow_has_a_full_port_on_which_none_has_more_and_no_port_is_overfull(
            up in prop::collection::vec(1.0f64..1e6, 1..8),
            down in prop::collection::vec(1.0f64..1e6, 1..8),
            flows in prop::collection::vec((0u32..8, 0u32..8, prop_oneof![Just(FREE), 0.0f64..1e6]), 1..60),
        ) {
            let flows: Vec<_> = flows
                .into_iter()
                .map(|(a, b, cap)| (a % up.len() as u32, b % down.len() as u32, cap))
                .collect();
            let rates = rates(&up, &down, &flows);
            let on = |is_up: bool, port: u32| -> Vec<f64> {
                let crosses = |f: &(u32, u32, f64)| if is_up { f.0 == port } else { f.1 == port };
                flows.iter().zip(&rates).filter(|(f, _)| crosses(f)).map(|(_, r)| *r).collect()
            };
            let is_bottleneck = |is_up: bool, port: u32, capacity: f64, rate: f64| {
                let rates = on(is_up, port);
                let full = rates.iter().sum::<f64>() >= capacity * (1.0 - 1e-6);
                full && rates.iter().all(|other| *other <= rate * (1.0 + 1e-6))
            };
            for (at, capacity) in up.iter().enumerate() {
                prop_assert!(on(true, at as u32).iter().sum::<f64>() <= capacity * (1.0 + 1e-6));
            }
            for (at, capacity) in down.iter().enumerate() {
                prop_assert!(on(false, at as u32).iter().sum::<f64>() <= capacity * (1.0 + 1e-6));
            }
            for (&(a, b, cap), &rate) in flows.iter().zip(&rates) {
                let bound = rate >= cap * (1.0 - 1e-6)
                    || is_bottleneck(true, a, up[a as usize], rate)
                    || is_bottleneck(false, b, down[b as usize], rate);
                prop_assert!(bound, "flow {a}->{b} cap {cap} rate {rate}");
            }
        }
    }
}
