//! The process's clock: protocols get nanoseconds since the process began.

use anabranch_proto::time::Time;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

static START: OnceLock<Instant> = OnceLock::new();

fn start() -> Instant {
    *START.get_or_init(Instant::now)
}

/// Now.
pub(crate) fn now() -> Time {
    Time(u64::try_from(start().elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The runtime's instant at `time`; at most a day ahead.
pub(crate) fn instant(time: Time) -> tokio::time::Instant {
    let ahead = time.since(now()).min(Duration::from_secs(86_400));
    tokio::time::Instant::now() + ahead
}
