//! A host's own clock: it starts somewhere and drifts, as real ones do.

use anabranch_proto::time::{Duration, Time};

/// Local time = `offset` + t · (1 + `drift_ppb` / 10⁹), in integers, so that it never goes back
/// and is the same everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// What the clock shows when the run starts.
    pub offset: Duration,
    /// How much it gains, in parts per 10⁹; at least −10⁹/2. Real crystals stay within ±100,000.
    pub drift_ppb: i64,
}

impl Clock {
    /// What the clock shows at `now`.
    pub fn local(&self, now: Time) -> Time {
        if *self == Clock::default() {
            return now;
        }
        let gained = i128::from(now.0) * i128::from(self.drift_ppb) / 1_000_000_000;
        let shown = i128::from(now.0) + gained + self.offset.as_nanos() as i128;
        Time(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// The earliest time at which the clock shows `local` or later.
    pub fn global(&self, local: Time) -> Time {
        if *self == Clock::default() || local == Time::FAR {
            return local;
        }
        let span = i128::from(local.0) - self.offset.as_nanos() as i128;
        let rate = 1_000_000_000 + i128::from(self.drift_ppb);
        let guess = u64::try_from((span * 1_000_000_000 / rate).max(0)).unwrap_or(u64::MAX);
        // The division above rounds; two steps at most lead to the first time that fits.
        let mut at = Time(guess.saturating_sub(2));
        while self.local(at) < local {
            at = Time(at.0 + 1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn global_is_the_first_time_at_which_the_clock_shows_local(
            offset in 0u64..10_000_000_000, drift_ppb in -200_000_000i64..200_000_000,
            now in 0u64..1_000_000_000_000,
        ) {
            let clock = Clock { offset: Duration::from_nanos(offset), drift_ppb };
            let local = clock.local(Time(now));
            let back = clock.global(local);
            prop_assert!(back.0 <= now);
            prop_assert!(clock.local(back) >= local);
            prop_assert!(back.0 == 0 || clock.local(Time(back.0 - 1)) < local);
        }
    }
}
