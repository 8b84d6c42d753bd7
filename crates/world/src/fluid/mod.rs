//! The fluid wire: flows that share the ports of hosts max-min fairly.
//!
//! A flow is one direction of a link. It serves one parcel (a few frames, at most about one
//! fragment) at a time at a rate that [`maxmin`] gives it; a parcel that is sent arrives one
//! propagation delay later, which the simulator sees to.
//!
//! **Quantum.** Rates are made anew at most once per quantum, on a grid, and only while flows are
//! active. Inside a quantum a parcel's completion is exact at the flow's rate; a flow that becomes
//! active takes what both its ports have to spare at once, or waits for the boundary; a flow that
//! stops returns its rate to spare. With quantum zero every change is followed by new rates
//! (exact, and slow with many flows).
//!
//! **Express.** A short parcel of messages on an otherwise idle flow would hold a fair share for
//! the rest of the quantum to send fifty bytes. It is instead sent at the rate of the slowest port
//! it crosses, as fair queueing treats a sparse flow, and its bytes are charged to both ports:
//! against what they have to spare, and beyond it against the next quantum. A port owes at most
//! one quantum's bytes, so none carries more than its rate over any longer span.

mod maxmin;

use crate::event::{Event, Queue};
use anabranch_proto::time::{Duration, Time};
use maxmin::{Demand, MaxMin};

const IDLE: u32 = u32::MAX;
const EXPRESS: u32 = u32::MAX - 1;

#[derive(Debug)]
struct Flow {
    up: u32,
    down: u32,
    /// Bytes per second that the path allows; zero while it is cut.
    cap: f64,
    /// Position among the active flows, or `IDLE`, or `EXPRESS`.
    place: u32,
    /// Bytes of the parcel in service that were unsent at `at`.
    remaining: f64,
    rate: f64,
    at: Time,
    /// When the parcel in service began.
    since: Time,
    /// Completions scheduled for an earlier turn are void.
    turn: u32,
    is_serving: bool,
    is_scheduled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Port {
    /// Bytes per second.
    capacity: f64,
    /// Bytes per second that no flow has this quantum.
    spare: f64,
    /// Express bytes sent beyond what was to spare.
    debt: f64,
}

/// All flows and ports. See [the module](self).
#[derive(Debug)]
pub(crate) struct Fluid {
    quantum: Duration,
    flows: Vec<Flow>,
    active: Vec<u32>,
    up: Vec<Port>,
    down: Vec<Port>,
    boundary_at: Option<Time>,
    is_dirty: bool,
    maxmin: MaxMin,
    demands: Vec<Demand>,
    capacity_up: Vec<f64>,
    capacity_down: Vec<f64>,
}

impl Fluid {
    pub(crate) fn new(quantum: Duration) -> Fluid {
        Fluid {
            quantum,
            flows: Vec::new(),
            active: Vec::new(),
            up: Vec::new(),
            down: Vec::new(),
            boundary_at: None,
            is_dirty: false,
            maxmin: MaxMin::default(),
            demands: Vec::new(),
            capacity_up: Vec::new(),
            capacity_down: Vec::new(),
        }
    }

    /// Whether rates follow every change.
    pub(crate) fn is_exact(&self) -> bool {
        self.quantum.is_zero()
    }

    pub(crate) fn set_quantum(&mut self, quantum: Duration) {
        self.quantum = quantum;
    }

    /// Adds a host's two ports, in bytes per second.
    pub(crate) fn add_host(&mut self, up: f64, down: f64) {
        let port = |capacity| Port { capacity, spare: capacity, debt: 0.0 };
        self.up.push(port(up));
        self.down.push(port(down));
    }

    /// Adds a flow from host `up` to host `down`; its number is the count of flows before it.
    pub(crate) fn add_flow(&mut self, up: u32, down: u32, cap: f64) {
        self.flows.push(Flow {
            up,
            down,
            cap,
            place: IDLE,
            remaining: 0.0,
            rate: 0.0,
            at: Time::ZERO,
            since: Time::ZERO,
            turn: 0,
            is_serving: false,
            is_scheduled: false,
        });
    }

    pub(crate) fn set_host(&mut self, now: Time, host: u32, up: f64, down: f64, queue: &mut Queue) {
        self.up[host as usize].capacity = up;
        self.down[host as usize].capacity = down;
        self.changed(now, queue);
    }

    pub(crate) fn set_cap(&mut self, now: Time, flow: u32, cap: f64, queue: &mut Queue) {
        self.flows[flow as usize].cap = cap;
        self.changed(now, queue);
    }

    /// Serves a parcel of `bytes` on `flow`, which has none in service; [`Event::Served`] follows.
    pub(crate) fn serve(
        &mut self,
        now: Time,
        flow: u32,
        bytes: u64,
        is_control: bool,
        queue: &mut Queue,
    ) {
        let state = &mut self.flows[flow as usize];
        state.remaining = bytes as f64;
        (state.at, state.since) = (now, now);
        state.is_serving = true;
        if state.place < EXPRESS {
            return self.schedule(flow, queue);
        }
        if is_control && self.serve_express(now, flow, queue) {
            return;
        }
        let state = &mut self.flows[flow as usize];
        state.place = self.active.len() as u32;
        state.rate = 0.0;
        self.active.push(flow);
        self.changed(now, queue);
        if !self.is_exact() {
            self.take_spare(flow);
            self.schedule(flow, queue);
        }
    }

    /// Whether a [`Event::Served`] still holds; the flow then waits for its next parcel.
    pub(crate) fn take_served(&mut self, flow: u32, turn: u32) -> bool {
        let state = &mut self.flows[flow as usize];
        let holds = state.is_scheduled && state.turn == turn;
        if holds {
            state.is_scheduled = false;
            state.is_serving = false;
        }
        holds
    }

    /// Whether the flow has been sending its parcel since before `then`.
    pub(crate) fn is_flowing(&self, flow: u32, then: Time) -> bool {
        let state = &self.flows[flow as usize];
        state.is_serving && state.rate > 0.0 && state.since < then
    }

    /// The flow has no parcel now: its rate is free.
    pub(crate) fn stop(&mut self, now: Time, flow: u32, queue: &mut Queue) {
        let state = &mut self.flows[flow as usize];
        let place = std::mem::replace(&mut state.place, IDLE);
        state.turn = state.turn.wrapping_add(1);
        state.is_scheduled = false;
        state.is_serving = false;
        if place >= EXPRESS {
            return;
        }
        let (up, down, rate) = (state.up as usize, state.down as usize, state.rate);
        self.up[up].spare += rate;
        self.down[down].spare += rate;
        self.active.swap_remove(place as usize);
        if let Some(&moved) = self.active.get(place as usize) {
            self.flows[moved as usize].place = place;
        }
        self.changed(now, queue);
    }

    /// At [`Event::Boundary`], and in exact mode whenever [`Fluid::needs_rates`]: new rates.
    pub(crate) fn rebalance(&mut self, now: Time, queue: &mut Queue) {
        self.boundary_at = None;
        self.settle(now);
        let owed = self.pay_debts();
        if self.is_dirty || owed {
            self.is_dirty = false;
            self.allocate();
        }
        let is_exact = self.is_exact();
        if !is_exact && (owed || !self.active.is_empty()) {
            self.ensure_boundary(now, queue);
        }
        for at in 0..self.active.len() {
            let flow = self.active[at];
            if !is_exact || !self.flows[flow as usize].is_scheduled {
                self.schedule(flow, queue);
            }
        }
        // After a quantum in which express took from spare, the spare must be made anew.
        self.is_dirty = owed;
    }

    /// Whether something changed that only [`Fluid::rebalance`] takes into account.
    pub(crate) fn needs_rates(&self) -> bool {
        self.is_exact() && self.is_dirty
    }

    /// Checks that no port carries more than its rate.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut load = vec![[0.0; 2]; self.up.len()];
        for &flow in &self.active {
            let flow = &self.flows[flow as usize];
            load[flow.up as usize][0] += flow.rate;
            load[flow.down as usize][1] += flow.rate;
        }
        for (host, load) in load.iter().enumerate() {
            let capacity = [self.up[host].capacity, self.down[host].capacity];
            for side in 0..2 {
                // A rate that was lowered inside a quantum binds from the next boundary.
                if !self.is_dirty && load[side] > capacity[side] * (1.0 + 1e-6) {
                    return Err(format!(
                        "host {host} carries {} B/s of {}",
                        load[side], capacity[side]
                    ));
                }
            }
        }
        Ok(())
    }

    fn changed(&mut self, now: Time, queue: &mut Queue) {
        self.is_dirty = true;
        if !self.is_exact() {
            self.ensure_boundary(now, queue);
        }
    }

    fn ensure_boundary(&mut self, now: Time, queue: &mut Queue) {
        if self.boundary_at.is_none() {
            let quantum = self.quantum.as_nanos() as u64;
            let at = Time((now.0 / quantum + 1) * quantum);
            self.boundary_at = Some(at);
            queue.push(at, Event::Boundary);
        }
    }

    fn serve_express(&mut self, now: Time, flow: u32, queue: &mut Queue) -> bool {
        let state = &self.flows[flow as usize];
        let (up, down) = (state.up as usize, state.down as usize);
        let bytes = state.remaining;
        let rate = state.cap.min(self.up[up].capacity).min(self.down[down].capacity);
        let quantum = self.quantum.as_secs_f64();
        let fits = |port: &Port| port.debt + bytes <= port.capacity * quantum;
        if self.is_exact() || rate <= 0.0 || !fits(&self.up[up]) || !fits(&self.down[down]) {
            return false;
        }
        self.changed(now, queue);
        let left = self.boundary_at.map_or(quantum, |at| at.since(now).as_secs_f64());
        for port in [&mut self.up[up], &mut self.down[down]] {
            let paid = (port.spare * left).clamp(0.0, bytes);
            if paid > 0.0 {
                port.spare -= paid / left;
            }
            port.debt += bytes - paid;
        }
        let state = &mut self.flows[flow as usize];
        state.place = EXPRESS;
        state.turn = state.turn.wrapping_add(1);
        state.is_scheduled = true;
        queue.push(now + nanos_for(bytes, rate), Event::Served { flow, turn: state.turn });
        true
    }

    fn take_spare(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let (up, down) = (&mut self.up[state.up as usize], &mut self.down[state.down as usize]);
        state.rate = up.spare.min(down.spare).min(state.cap).max(0.0);
        up.spare -= state.rate;
        down.spare -= state.rate;
    }

    /// Schedules the completion of the parcel in service when it falls before the next boundary.
    fn schedule(&mut self, flow: u32, queue: &mut Queue) {
        let state = &mut self.flows[flow as usize];
        state.is_scheduled = false;
        if !state.is_serving || state.rate <= 0.0 {
            return;
        }
        let at = state.at + nanos_for(state.remaining, state.rate);
        if self.boundary_at.is_none_or(|boundary| at <= boundary) {
            state.turn = state.turn.wrapping_add(1);
            state.is_scheduled = true;
            queue.push(at, Event::Served { flow, turn: state.turn });
        }
    }

    /// Brings every parcel in service up to date.
    fn settle(&mut self, now: Time) {
        for &flow in &self.active {
            let state = &mut self.flows[flow as usize];
            let sent = state.rate * now.since(state.at).as_secs_f64();
            state.remaining = (state.remaining - sent).max(0.0);
            state.at = now;
        }
    }

    /// Takes the debts out of what the ports can carry until the next boundary; true when there
    /// were any.
    fn pay_debts(&mut self) -> bool {
        let quantum = self.quantum.as_secs_f64();
        let mut owed = false;
        let mut pay = |ports: &mut [Port], capacity: &mut Vec<f64>| {
            capacity.clear();
            for port in ports {
                let mut carries = port.capacity;
                if port.debt > 0.0 {
                    owed = true;
                    let paid = port.debt.min(port.capacity * quantum);
                    carries = (port.capacity - paid / quantum).max(0.0);
                    port.debt -= paid;
                }
                capacity.push(carries);
            }
        };
        pay(&mut self.up, &mut self.capacity_up);
        pay(&mut self.down, &mut self.capacity_down);
        owed
    }

    fn allocate(&mut self) {
        self.demands.clear();
        self.demands.extend(self.active.iter().map(|&flow| {
            let flow = &self.flows[flow as usize];
            Demand { up: flow.up, down: flow.down, cap: flow.cap, rate: 0.0 }
        }));
        self.maxmin.allocate(&self.capacity_up, &self.capacity_down, &mut self.demands);
        for (ports, capacity) in
            [(&mut self.up, &self.capacity_up), (&mut self.down, &self.capacity_down)]
        {
            ports.iter_mut().zip(capacity).for_each(|(port, &carries)| port.spare = carries);
        }
        for (&flow, demand) in self.active.iter().zip(&self.demands) {
            let state = &mut self.flows[flow as usize];
            state.is_scheduled &= state.rate == demand.rate;
            state.rate = demand.rate;
            self.up[demand.up as usize].spare -= demand.rate;
            self.down[demand.down as usize].spare -= demand.rate;
        }
    }
}

/// Rounded up to whole nanoseconds, so that no flow is ever faster than its rate.
fn nanos_for(bytes: f64, rate: f64) -> Duration {
    Duration::from_nanos((bytes / rate * 1e9).ceil() as u64)
}

#[cfg(test)]
mod tests;
