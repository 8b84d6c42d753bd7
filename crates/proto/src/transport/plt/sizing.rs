//! How large a receive window PLT needs (thesis §3.2.5), from the bandwidth b, the round-trip time
//! τ, the bottleneck's buffer B and the LCM's threshold µ. Bytes; the thesis counts packets.

/// What the bounds are about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// b·τ, bytes.
    pub bdp: u64,
    /// B, bytes.
    pub buffer: u64,
    /// Bytes of a packet.
    pub packet: u32,
}

/// Eq. 3.1: below this a lost packet of the LCM holds the window back: one round trip until the
/// sender knows, up to one until the HCM sends it, and one for that.
pub fn window_for_losses(path: Path) -> u64 {
    3 * path.bdp
}

/// Eq. 3.2: what a time-out of `rtts` round-trip times needs, at least and at most.
pub fn window_for_timeouts(path: Path, rtts: f64) -> (u64, u64) {
    let times = |n: f64| (n * path.bdp as f64) as u64;
    (times(rtts + 1.0), times(rtts + 2.0))
}

/// Eq. 3.7: the largest window of the LCM when the HCM's is `high`: what the HCM leaves of pipe and
/// buffer, and the losses that the LCM bears.
pub fn low_window_max(path: Path, high: u64, mu: f64) -> u64 {
    let left = (path.bdp + path.buffer).saturating_sub(high);
    (left as f64 / (1.0 - mu.clamp(0.0, 0.99))) as u64
}

/// Eq. 3.10: the window of the HCM from which on it can send all that the LCM loses within a
/// round trip.
pub fn high_window_min(path: Path, mu: f64) -> u64 {
    let two = 2 * u64::from(path.packet);
    let all = (path.bdp + path.buffer + two) as f64 * mu.clamp(0.0, 1.0);
    (all as u64).saturating_sub(two)
}

/// Eq. 3.3: whether an HCM with this window can send so many lost bytes within a round trip. The
/// LCM resends by itself when it cannot.
pub fn can_resend(high: u64, lost: u64, packet: u32) -> bool {
    high.saturating_add(2 * u64::from(packet)) >= lost
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { bdp: 2_500_000, buffer: 250_000, packet: 1_000 };

    #[test]
    fn the_bounds_are_those_of_the_thesis() {
        assert_eq!(window_for_losses(PATH), 7_500_000);
        assert_eq!(window_for_timeouts(PATH, 3.0), (10_000_000, 12_500_000));
        assert_eq!(low_window_max(PATH, 2_750_000, 0.05), 0);
        assert_eq!(low_window_max(PATH, 850_000, 0.05), 2_000_000);
        assert_eq!(high_window_min(PATH, 0.05), (2_752_000 / 20) - 2_000);
    }

    /// At the least window of eq. 3.10, what the LCM loses by eq. 3.4 fits by eq. 3.3.
    #[test]
    fn the_least_window_of_the_hcm_is_where_its_losses_just_fit() {
        let high = high_window_min(PATH, 0.05);
        let low = low_window_max(PATH, high, 0.05);
        let lost = high + low - (PATH.bdp + PATH.buffer);
        assert!(can_resend(high + 2, lost, PATH.packet));
        let (less, low) = (high - 4_000, low_window_max(PATH, high - 4_000, 0.05));
        assert!(!can_resend(less, less + low - (PATH.bdp + PATH.buffer), PATH.packet));
    }
}
