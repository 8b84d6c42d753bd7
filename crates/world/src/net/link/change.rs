//! Links change while packets are on them: what has been computed ahead is laid anew.

use super::{Flying, Link, Path, Served, Shared};
use crate::net::clock::Clock;
use crate::net::due::{Agenda, Due};
use crate::net::loss::Dice;
use crate::net::nanoseconds;
use crate::net::packet::{Carried, Unit};
use crate::net::queue::{Buffer, Gate, Queue};
use crate::net::stats::{Cause, Count};
use crate::topology::{Changed, Limit, Loss, Side};
use anabranch_proto::random::Rng;
use anabranch_proto::time::Time;

impl Link {
    /// Something about the link changes at `now`. `rng` makes the generator of a link that had
    /// no loss before.
    pub(crate) fn change<B: Carried>(
        &mut self,
        now: Time,
        to: Changed,
        rng: impl FnOnce() -> Rng,
        shared: &mut Shared<'_, B>,
    ) {
        self.look(now);
        let events = self.events();
        match to {
            Changed::Rate(rate) => self.change_rate(now, rate.bytes()),
            Changed::Delay(delay) => {
                self.delay_ns = nanoseconds(delay);
                let waiting = self.waiting();
                self.lay_again(waiting);
            }
            Changed::Loss(loss) => self.change_loss(loss, rng),
            Changed::Down => self.go_down(now, shared),
            Changed::Up => self.is_up = true,
        }
        self.reschedule(events, shared.agenda);
    }

    /// The link's events: the departure of the packet in service, the arrival of the first.
    fn events(&self) -> [Option<Due>; 2] {
        [self.next_departure(), self.next_arrival()]
    }

    /// Gives the link the events that it has now, in the place of those that it had.
    fn reschedule(&self, before: [Option<Due>; 2], agenda: &mut Agenda) {
        let events = self.events();
        if events == before {
            return;
        }
        if before.iter().any(Option::is_some) {
            agenda.forget(self.index);
        }
        events.into_iter().flatten().for_each(|due| agenda.push(due));
    }

    /// Takes those that wait out of the ring.
    fn waiting(&mut self) -> Vec<Flying> {
        self.ring.drain(self.departed..).collect()
    }

    /// Lays those that wait with the link's delay as it is now.
    fn lay_again(&mut self, waiting: Vec<Flying>) {
        for flying in waiting {
            let arrives = Time(flying.departs.0.saturating_add(self.delay_ns));
            let arrives = self.ring.back().map_or(arrives, |front| arrives.max(front.arrives));
            self.ring.push_back(Flying { arrives, ..flying });
        }
    }

    /// What is left of the packet in service goes on at the new rate, and all behind it.
    fn change_rate(&mut self, now: Time, rate: u64) {
        let left = self.clock.change_rate(now, rate);
        match &mut self.path {
            Path::Ring(gate) => gate.set_rate(self.clock.rate()),
            Path::Served(served) => served.queue.set_rate(self.clock.rate()),
        }
        let mut waiting = self.waiting();
        let behind: u128 = waiting.iter().skip(1).map(|one| Clock::nanobytes(one.unit.len)).sum();
        let departs = self.clock.work(left.saturating_sub(behind));
        if let Path::Served(served) = &mut self.path
            && let Some(serving) = &mut served.serving
        {
            serving.2 = departs;
        }
        for (place, flying) in waiting.iter_mut().enumerate() {
            flying.departs = match place {
                0 => departs,
                _ => self.clock.work(Clock::nanobytes(flying.unit.len)),
            };
        }
        self.lay_again(waiting);
    }

    /// Who has departed was subject to the loss until now, and who has not to the new one.
    fn change_loss(&mut self, loss: Option<Loss>, rng: impl FnOnce() -> Rng) {
        for place in 0..self.departed {
            if self.ring[place].is_lost.is_none() {
                let is_lost = self.roll(Side::After);
                self.ring[place].is_lost = Some(is_lost);
            }
        }
        match (&mut self.dice, loss) {
            (Some(dice), loss) => dice.change(loss),
            (None, Some(loss)) => self.dice = Some(Box::new(Dice::new(loss, rng()))),
            (None, None) => {}
        }
    }

    /// All that waits or is under way is lost.
    fn go_down<B: Carried>(&mut self, now: Time, shared: &mut Shared<'_, B>) {
        self.is_up = false;
        self.clock.clear(now);
        for unit in self.drain_served(now, shared.store) {
            self.lose(unit, Cause::Down, shared.gone);
        }
        for (place, flying) in std::mem::take(&mut self.ring).into_iter().enumerate() {
            let cause = if place < self.departed { Cause::Cut } else { Cause::Down };
            // Whom loss had struck already was no longer there to be cut.
            let cause = if flying.is_lost == Some(true) { Cause::LossAfter } else { cause };
            self.lose(flying.unit, cause, shared.gone);
        }
        self.departed = 0;
        self.held = Count::default();
    }

    /// From now on departures are events, so that they can be observed.
    pub(crate) fn serve_by_events<B: Carried>(&mut self, now: Time, shared: &mut Shared<'_, B>) {
        if matches!(self.path, Path::Served(_)) {
            return;
        }
        self.look(now);
        let events = self.events();
        let idle_since = self.clock.free();
        let waiting = self.waiting();
        self.held = Count::default();
        let none = Path::Ring(Gate::DropTail(Limit::Packets(0)));
        let Path::Ring(gate) = std::mem::replace(&mut self.path, none) else { return };
        let mut buffer = Buffer::new(gate, None);
        let serving = waiting.first().map(|first| (first.unit, first.departs));
        let behind = || waiting.iter().skip(1).map(|flying| flying.unit);
        buffer.resume(idle_since, serving.map(|serving| serving.0), behind());
        // The clock has passed all that waits; served, it passes one at a time.
        self.clock.take_back(behind().map(|unit: Unit| Clock::nanobytes(unit.len)).sum());
        let mut served = Served::new(Queue::Buffer(buffer));
        served.serving =
            serving.map(|(unit, departs)| (unit, shared.store.dscp(unit.slot), departs));
        self.path = Path::Served(Box::new(served));
        self.reschedule(events, shared.agenda);
    }
}
