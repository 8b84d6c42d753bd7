//! When a wire has put a packet on: exact integers, nothing lost to rounding.
//!
//! Work is counted in nanobytes: a wire of r bytes per second does r of them in a nanosecond, and
//! a packet of n bytes is n·10⁹ of them. The whole nanoseconds are the time; what remains, less
//! than r, is carried on to the packet behind it.

use anabranch_proto::time::Time;

/// Nanobytes of a byte.
const NANO: u64 = 1_000_000_000;

/// Rates above this never bind, and would overflow the carried remainder: 1 PB/s.
const RATE_MAX: u64 = 1_000_000_000_000_000;

/// Until when a wire is busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Bytes per second.
    rate: u64,
    /// When all that was given to it is on the wire, rounded down to nanoseconds.
    free: u64,
    /// Nanobytes beyond that, less than `rate`.
    rest: u64,
    /// The length that was divided last, with its quotient and remainder: most packets of a link
    /// are equally long, and a division costs more than all else here.
    len: u32,
    whole: u64,
    part: u64,
}

impl Clock {
    pub(crate) fn new(rate: u64) -> Clock {
        Clock { rate: rate.clamp(1, RATE_MAX), free: 0, rest: 0, len: 0, whole: 0, part: 0 }
    }

    /// When a packet of `len` bytes that is given to the wire at `now` is on it.
    pub(crate) fn pass(&mut self, now: Time, len: u32) -> Time {
        if now.0 > self.free {
            (self.free, self.rest) = (now.0, 0);
        }
        if len != self.len {
            let work = u64::from(len) * NANO;
            (self.len, self.whole, self.part) = (len, work / self.rate, work % self.rate);
        }
        self.free = self.free.saturating_add(self.whole);
        self.rest += self.part;
        if self.rest >= self.rate {
            self.rest -= self.rate;
            self.free = self.free.saturating_add(1);
        }
        Time(self.free)
    }

    /// When the wire becomes, or became, idle.
    pub(crate) fn free(&self) -> Time {
        Time(self.free)
    }

    /// Bytes per second.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// Forgets all work: the wire is idle.
    pub(crate) fn clear(&mut self, now: Time) {
        (self.free, self.rest) = (now.0, 0);
    }

    /// Another rate from `now` on, which keeps the work that is left, all in one; returns that in
    /// nanobytes. The caller gives it back piece by piece with [`Clock::work`].
    pub(crate) fn change_rate(&mut self, now: Time, rate: u64) -> u128 {
        let left = match self.free.checked_sub(now.0) {
            Some(ns) => u128::from(ns) * u128::from(self.rate) + u128::from(self.rest),
            None => 0,
        };
        *self = Clock { free: now.0, ..Clock::new(rate) };
        left
    }

    /// When `nanobytes` more are on the wire.
    pub(crate) fn work(&mut self, nanobytes: u128) -> Time {
        let rate = u128::from(self.rate);
        let work = nanobytes + u128::from(self.rest);
        let ns = u64::try_from(work / rate).unwrap_or(u64::MAX);
        self.free = self.free.saturating_add(ns);
        self.rest = (work % rate) as u64;
        Time(self.free)
    }

    /// Takes back the last `nanobytes` of its work, none of which has been done.
    pub(crate) fn take_back(&mut self, nanobytes: u128) {
        let rate = u128::from(self.rate);
        let work = u128::from(self.free) * rate + u128::from(self.rest);
        let work = work.saturating_sub(nanobytes);
        (self.free, self.rest) = ((work / rate) as u64, (work % rate) as u64);
    }

    /// Nanobytes of `len` bytes.
    pub(crate) fn nanobytes(len: u32) -> u128 {
        u128::from(len) * u128::from(NANO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_to_rounding_over_a_long_busy_time() {
        // 7 bytes/s: a byte takes 142,857,142 6/7 ns.
        let mut clock = Clock::new(7);
        for n in 1..=7_000u64 {
            assert_eq!(clock.pass(Time::ZERO, 1), Time(n * NANO / 7));
        }
        assert_eq!(clock.free(), Time(1_000 * NANO));
    }

    #[test]
    fn an_idle_wire_starts_at_once_and_a_busy_one_behind_what_it_has() {
        let mut clock = Clock::new(1_000_000);
        assert_eq!(clock.pass(Time(5_000), 1_000), Time(1_005_000));
        assert_eq!(clock.pass(Time(6_000), 500), Time(1_505_000));
        assert_eq!(clock.pass(Time(2_000_000), 1), Time(2_001_000));
    }

    #[test]
    fn a_change_of_rate_keeps_the_work_that_is_left() {
        let mut clock = Clock::new(3);
        clock.pass(Time::ZERO, 10);
        // After 1 s 3 of 10 bytes are through; 7 are left at 14 bytes/s.
        let left = clock.change_rate(Time(NANO), 14);
        assert_eq!(left, Clock::nanobytes(7));
        assert_eq!(clock.work(left), Time(NANO + NANO / 2));
    }

    #[test]
    fn what_is_taken_back_was_never_there() {
        let mut clock = Clock::new(7);
        clock.pass(Time(3), 5);
        let before = (clock.free, clock.rest);
        clock.pass(Time(3), 11);
        clock.pass(Time(3), 4);
        clock.take_back(Clock::nanobytes(15));
        assert_eq!((clock.free, clock.rest), before);
    }

    #[test]
    fn the_fastest_and_the_slowest_rate_do_not_overflow() {
        let mut fast = Clock::new(u64::MAX);
        assert_eq!(fast.pass(Time(9), u32::MAX), Time(9 + 4_294));
        let mut slow = Clock::new(0);
        for _ in 0..10 {
            slow.pass(Time::ZERO, u32::MAX);
        }
        assert_eq!(slow.free(), Time::FAR);
    }
}
