//! Looking on: captures, traces and probes see each packet at each link.

use super::packet::{Packet, Store, Unit};
use super::stats::Cause;
use crate::topology::{Changed, LinkIx};
use anabranch_proto::time::Time;

/// What happens to a packet at a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It came, and waits or is in service.
    Queued,
    /// It is gone.
    Dropped(Cause),
    /// Its last bit is on the wire.
    Sent,
    /// It is at the link's end.
    Arrived {
        /// Whether this is where it wanted to be.
        is_last: bool,
    },
}

/// Who looks on.
pub trait Observer<B>: std::fmt::Debug + Send {
    /// Whether it wants to see a link; asked at every step, so a look-up.
    fn wants(&self, link: LinkIx) -> bool;

    /// Something happens to a packet at a link; in the order of time.
    fn see(&mut self, at: Time, link: LinkIx, step: Step, packet: &Packet<B>);

    /// A link has changed.
    fn changed(&mut self, _at: Time, _link: LinkIx, _to: Changed) {}

    /// Nothing more comes. What failed on the way is told here.
    fn finish(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The observers of a network.
#[derive(Debug)]
pub(crate) struct Observers<B>(Vec<Box<dyn Observer<B>>>);

impl<B> Default for Observers<B> {
    fn default() -> Self {
        Observers(Vec::new())
    }
}

impl<B> Observers<B> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, observer: Box<dyn Observer<B>>) {
        self.0.push(observer);
    }

    pub(crate) fn see(&mut self, at: Time, link: u32, step: Step, store: &Store<B>, unit: Unit) {
        if self.0.is_empty() {
            return;
        }
        let Some(packet) = store.get(unit.slot) else { return };
        let link = LinkIx(link);
        for observer in self.0.iter_mut().filter(|observer| observer.wants(link)) {
            observer.see(at, link, step, packet);
        }
    }

    pub(crate) fn changed(&mut self, at: Time, link: LinkIx, to: Changed) {
        for observer in self.0.iter_mut().filter(|observer| observer.wants(link)) {
            observer.changed(at, link, to);
        }
    }

    /// Finishes all and forgets them; the first failure.
    pub(crate) fn finish(&mut self) -> std::io::Result<()> {
        let mut first = Ok(());
        for mut observer in self.0.drain(..) {
            first = first.and(observer.finish());
        }
        first
    }
}
