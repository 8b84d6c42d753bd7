//! A link whose queue is asked at each departure.

use super::{Link, Path, Shared};
use crate::net::due::{Due, Kind};
use crate::net::packet::{Carried, Store, Unit};
use crate::net::queue::Queue;
use crate::net::stats::Count;
use anabranch_proto::time::Time;

/// The queue, and the packet in service.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) queue: Queue,
    /// The packet in service, its DSCP, and when it is on the wire.
    pub(super) serving: Option<(Unit, u8, Time)>,
}

impl Served {
    pub(crate) fn new(queue: Queue) -> Served {
        Served { queue, serving: None }
    }
}

impl Link {
    /// A packet that was let in comes to the queue.
    pub(super) fn take_served<B: Carried>(
        &mut self,
        now: Time,
        unit: Unit,
        shared: &mut Shared<'_, B>,
    ) {
        let Path::Served(served) = &mut self.path else { return };
        let before = shared.gone.len();
        let dscp = shared.store.dscp(unit.slot);
        served.queue.offer(now, unit, dscp, shared.store, shared.gone);
        let held = served.queue.held(unit.class.into());
        let is_idle = served.serving.is_none();
        for &(unit, cause) in &shared.gone[before..] {
            self.count(unit.class).drop(cause, unit.len);
        }
        let class = self.count(unit.class);
        class.peak = class.peak.max(held);
        if is_idle && let Some(due) = self.serve(now, shared.store) {
            shared.agenda.push(due);
        }
    }

    /// The packet in service is on the wire, and the next goes into service. Its event is the
    /// agenda's first, and is replaced.
    pub(crate) fn depart<B: Carried>(
        &mut self,
        now: Time,
        shared: &mut Shared<'_, B>,
    ) -> Option<Unit> {
        let Path::Served(served) = &mut self.path else { return None };
        let (unit, dscp, _) = served.serving.take()?;
        served.queue.done(now, unit, dscp);
        let next = self.serve(now, shared.store);
        shared.agenda.replace_first(next);
        self.lay(unit, now, shared.agenda);
        self.departed = self.ring.len();
        Some(unit)
    }

    /// The next packet goes into service, if one waits; returns the event of its departure.
    fn serve<B: Carried>(&mut self, now: Time, store: &mut Store<B>) -> Option<Due> {
        let Path::Served(served) = &mut self.path else { return None };
        let unit = served.queue.next(now, store)?;
        let departs = self.clock.pass(now, unit.len);
        served.serving = Some((unit, store.dscp(unit.slot), departs));
        Some(Due::new(departs, Kind::Departure, unit.serial, self.index))
    }

    /// The event of the packet in service.
    pub(crate) fn next_departure(&self) -> Option<Due> {
        let Path::Served(served) = &self.path else { return None };
        let (unit, _, departs) = served.serving?;
        Some(Due::new(departs, Kind::Departure, unit.serial, self.index))
    }

    /// What waits, the packet in service included, is taken out.
    pub(super) fn drain_served<B: Carried>(
        &mut self,
        now: Time,
        store: &mut Store<B>,
    ) -> Vec<Unit> {
        let Path::Served(served) = &mut self.path else { return Vec::new() };
        let mut drained = Vec::new();
        let mut next = served.serving.take().map(|(unit, ..)| unit);
        while let Some(unit) = next {
            served.queue.done(now, unit, store.dscp(unit.slot));
            drained.push(unit);
            next = served.queue.next(now, store);
        }
        debug_assert_eq!(served.queue.held_all(), Count::default());
        drained
    }
}
