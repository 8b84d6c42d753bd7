//! Changes of links that are still to come.

use super::due::{Agenda, Due, Kind};
use crate::topology::Change;
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
    pub(crate) fn insert(&mut self, change: Change, agenda: &mut Agenda) {
        let place = self.changes.partition_point(|other| other.at <= change.at);
        self.changes.insert(place, change);
        agenda.forget_change();
        self.announce(agenda);
    }

    /// Gives the first its event; none must have one.
    pub(crate) fn announce(&self, agenda: &mut Agenda) {
        if let Some(first) = self.changes.front() {
            agenda.push(Due::new(first.at, Kind::Change, 0, 0));
        }
    }

    /// Takes the first.
    pub(crate) fn take(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }
}
