//! Rates, sizes and spans as scenarios write them: `mbit(6)`, `100.mb()`, `ms(25)` in Rust,
//! `"6mbit"`, `"100MB"`, `"25ms"` in text (see [`text`]).

pub mod text;

use anabranch_proto::time::Duration;

/// A data rate in bytes per second, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// So fast that it never binds: 1 TB/s.
    pub const UNLIMITED: Rate = Rate(1_000_000_000_000);

    /// `bytes` per second; zero counts as one.
    pub const fn bytes_per_sec(bytes: u64) -> Rate {
        Rate(if bytes == 0 { 1 } else { bytes })
    }

    /// `bits` per second, rounded down to whole bytes.
    pub const fn bits_per_sec(bits: u64) -> Rate {
        Rate::bytes_per_sec(bits / 8)
    }

    /// In bytes per second.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// In bytes per second.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// How long `bytes` take at this rate, in seconds.
    pub fn secs_for(self, bytes: u64) -> f64 {
        bytes as f64 / self.as_f64()
    }

    /// This rate times `percent` / 100.
    pub const fn percent(self, percent: u64) -> Rate {
        Rate::bytes_per_sec(self.0.saturating_mul(percent) / 100)
    }
}

impl std::fmt::Debug for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} kb/s", self.0 as f64 * 8.0 / 1e3)
    }
}

/// `n` kilobits per second.
pub const fn kbit(n: u64) -> Rate {
    Rate::bits_per_sec(n * 1_000)
}

/// `n` megabits per second.
pub const fn mbit(n: u64) -> Rate {
    Rate::bits_per_sec(n * 1_000_000)
}

/// `n` seconds.
pub const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// `n` milliseconds.
pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// `n` microseconds.
pub const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Sizes in bytes: `64.kib()`, `100.mb()`.
pub trait Size {
    /// Thousands.
    fn kb(self) -> u64;
    /// Millions.
    fn mb(self) -> u64;
    /// Units of 1,024.
    fn kib(self) -> u64;
    /// Units of 1,048,576.
    fn mib(self) -> u64;
}

impl Size for u64 {
    fn kb(self) -> u64 {
        self * 1_000
    }
    fn mb(self) -> u64 {
        self * 1_000_000
    }
    fn kib(self) -> u64 {
        self * 1_024
    }
    fn mib(self) -> u64 {
        self * 1_048_576
    }
}
