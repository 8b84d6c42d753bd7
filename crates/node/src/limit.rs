//! The node's rate limits: wire bytes of all its links together.

use crate::clock;
use anabranch_proto::link::bucket::Bucket;
use anabranch_proto::time::Time;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a burst at the limit may last: short enough to keep any ten seconds within a few
/// per cent, long enough to bridge the runtime's timer steps.
const BURST: Duration = Duration::from_millis(50);

/// One direction's limit, shared by all links.
#[derive(Debug)]
pub(crate) struct Limit {
    bucket: Option<Mutex<Bucket>>,
    rate: u64,
}

impl Limit {
    /// A limit of `rate` bytes per second, or none.
    pub(crate) fn new(rate: Option<u64>) -> Limit {
        let bucket = rate.map(|rate| Mutex::new(Bucket::new(rate, BURST, clock::now())));
        Limit { bucket, rate: rate.unwrap_or(u64::MAX) }
    }

    /// When bytes may pass: `None` for now.
    pub(crate) fn opens_at(&self, now: Time) -> Option<Time> {
        let mut bucket = self.bucket.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        (!bucket.is_open(now)).then(|| bucket.opens_at(now))
    }

    /// Bytes passed.
    pub(crate) fn spend(&self, now: Time, bytes: usize) {
        if let Some(bucket) = &self.bucket {
            bucket.lock().unwrap_or_else(PoisonError::into_inner).spend(now, bytes as u64);
        }
    }

    /// The most bytes to pass at once, so that a piece never overdraws by more than 50 ms.
    pub(crate) fn piece_max(&self, len: usize) -> usize {
        len.min(usize::try_from(self.rate / 20).unwrap_or(usize::MAX).max(1024))
    }

    /// The limit in bytes per second.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.bucket.as_ref().map(|_| self.rate)
    }
}
