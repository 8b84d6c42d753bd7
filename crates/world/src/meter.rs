//! What hosts sent and received, in all and over time.

use anabranch_proto::time::{Duration, Time};

/// Frame bytes of one host. Payload is the bytes of blocks; control is everything else: messages,
/// pings, and the heads of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Payload bytes that left the host.
    pub payload_out: u64,
    /// Payload bytes that arrived.
    pub payload_in: u64,
    /// Control bytes that left the host.
    pub control_out: u64,
    /// Control bytes that arrived.
    pub control_in: u64,
    /// Payload bytes of blocks that arrived whole although they were held.
    pub duplicate_in: u64,
    /// Bytes that lower layers added to what left the host, when they are counted.
    pub overhead_out: u64,
}

impl Traffic {
    /// The sum of two.
    pub fn plus(self, other: Traffic) -> Traffic {
        Traffic {
            payload_out: self.payload_out + other.payload_out,
            payload_in: self.payload_in + other.payload_in,
            control_out: self.control_out + other.control_out,
            control_in: self.control_in + other.control_in,
            duplicate_in: self.duplicate_in + other.duplicate_in,
            overhead_out: self.overhead_out + other.overhead_out,
        }
    }
}

/// Bytes per interval since the start of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    interval: Duration,
    bins: Vec<u64>,
}

impl Series {
    pub(crate) fn new(interval: Duration) -> Series {
        Series { interval: interval.max(Duration::from_millis(1)), bins: Vec::new() }
    }

    pub(crate) fn add(&mut self, now: Time, bytes: u64) {
        let bin = (now.0 / self.interval.as_nanos() as u64) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes;
    }

    /// The length of an interval.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Bytes in each interval, from the first; intervals after the last byte are left out.
    pub fn bytes(&self) -> &[u64] {
        &self.bins
    }

    /// Bytes up to `at`, with those of the interval it falls into spread evenly.
    pub fn bytes_until(&self, at: Time) -> u64 {
        let interval = self.interval.as_nanos() as u64;
        let whole = ((at.0 / interval) as usize).min(self.bins.len());
        let sum: u64 = self.bins[..whole].iter().sum();
        let part = self.bins.get(whole).map_or(0, |&bytes| {
            (u128::from(bytes) * u128::from(at.0 % interval) / u128::from(interval)) as u64
        });
        sum + part
    }

    /// Bytes per second in the interval that `at` falls into.
    pub fn rate_at(&self, at: Time) -> f64 {
        let bin = (at.0 / self.interval.as_nanos() as u64) as usize;
        self.bins.get(bin).map_or(0.0, |&bytes| bytes as f64 / self.interval.as_secs_f64())
    }
}

/// One host's counts; the sums first, in memory too.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Meter {
    /// In all.
    pub total: Traffic,
    /// Payload that left, over time.
    pub payload_out: Series,
    /// Payload that arrived, over time.
    pub payload_in: Series,
}

impl Meter {
    pub(crate) fn new(interval: Duration) -> Meter {
        let series = Series::new(interval);
        Meter { total: Traffic::default(), payload_out: series.clone(), payload_in: series }
    }

    pub(crate) fn sent(&mut self, now: Time, payload: u64, control: u64, overhead: u64) {
        self.total.payload_out += payload;
        self.total.control_out += control;
        self.total.overhead_out += overhead;
        if payload > 0 {
            self.payload_out.add(now, payload);
        }
    }

    pub(crate) fn received(&mut self, now: Time, payload: u64, control: u64) {
        self.total.payload_in += payload;
        self.total.control_in += control;
        if payload > 0 {
            self.payload_in.add(now, payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_sums_up_to_any_time_and_gives_the_rate_of_each_interval() {
        let mut series = Series::new(Duration::from_secs(1));
        series.add(Time::from_secs_f64(0.2), 100);
        series.add(Time::from_secs_f64(2.9), 300);
        assert_eq!(series.bytes(), [100, 0, 300]);
        assert_eq!(series.bytes_until(Time::from_secs_f64(0.5)), 50);
        assert_eq!(series.bytes_until(Time::from_secs_f64(2.0)), 100);
        assert_eq!(series.bytes_until(Time::FAR), 400);
        assert_eq!(series.rate_at(Time::from_secs_f64(2.5)), 300.0);
        assert_eq!(series.rate_at(Time::from_secs_f64(9.0)), 0.0);
    }
}
