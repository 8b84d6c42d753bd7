//! Changes of links that are still to come.

use super::due::{Agenda, Due, Kind};
use crate::topology::{Change, Changed, LinkIx};
use anabranch_proto::time::Time;
use std::collections::VecDeque;

/// Changes by time, then in the order in which they were given. The first has an event.
#[derive(Debug)]
pub(crate) struct Schedule {
    changes: VecDeque<Change>,
}

impl Schedule {
    pub(crate) fn new(changes: &[Change]) -> Schedule {
        let mut changes = changes.to_vec();
        changes.sort_by_key(|change| change.at);
        Schedule { changes: changes.into() }
    }

    /// Adds a change, behind those of the same time.
    pub(crate) fn insert(&mut self, at: Time, link: LinkIx, to: Changed) {
        let place = self.changes.partition_point(|change| change.at <= at);
        self.changes.insert(place, Change { at, link, to });
    }

    /// Sees to it that the first has its event.
    pub(crate) fn announce(&self, agenda: &mut Agenda) {
        agenda.forget_change();
        if let Some(first) = self.changes.front() {
            agenda.push(Due::new(first.at, Kind::Change, 0, 0));
        }
    }

    /// Takes the first.
    pub(crate) fn take(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }
}
