//! What a TCP connection gets over a path, in closed form.
//!
//! Rates are payload bytes per second of a sender that always has data. `loss` is the chance that a
//! segment is lost (of the first in a window to be lost, for bursts), above 0 and below 1.

use crate::time::Duration;

/// A path as the formulas know it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Payload bytes of a segment.
    pub mss: f64,
    /// Mean round-trip time, queueing included.
    pub rtt: Duration,
    /// The chance that a segment is lost.
    pub loss: f64,
    /// Segments that one acknowledgement covers: 1, or 2 with delayed acknowledgements.
    pub per_ack: f64,
}

/// Mathis, Semke, Mahdavi and Ott (1997), eq. 3: `MSS/RTT · C/√p` with C = √(3/2) when every
/// segment is acknowledged and √(3/4) when every second is. Good for small losses without
/// time-outs.
pub fn mathis(path: &Path) -> f64 {
    let segments = (1.5 / (path.per_ack * path.loss)).sqrt();
    path.mss / path.rtt.as_secs_f64() * segments
}

/// Padhye, Firoiu, Towsley and Kurose (1998), approximate form (eq. 30), the throughput equation
/// of RFC 3448 and RFC 5348 §3.1. `rto` is the retransmission time-out; the RFCs suggest four
/// round-trip times.
pub fn padhye(path: &Path, rto: Duration) -> f64 {
    let (p, b) = (path.loss, path.per_ack);
    let in_recovery = path.rtt.as_secs_f64() * (2.0 * b * p / 3.0).sqrt();
    let first = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0);
    let in_timeouts = rto.as_secs_f64() * first * p * (1.0 + 32.0 * p * p);
    path.mss / (in_recovery + in_timeouts)
}

/// The same authors' full model (eq. 29 and 31), for a window of at most `window_max` segments.
pub fn padhye_full(path: &Path, rto: Duration, window_max: f64) -> f64 {
    let (p, b) = (path.loss, path.per_ack);
    let (rtt, rto) = (path.rtt.as_secs_f64(), rto.as_secs_f64());
    // The expected window at the end of a period between losses, without a limit (eq. 13).
    let shift = (2.0 + b) / (3.0 * b);
    let window_free = shift + (8.0 * (1.0 - p) / (3.0 * b * p) + shift * shift).sqrt();
    let is_free = window_free < window_max;
    let window = window_free.min(window_max).max(1.0);
    let timeout = timeout_share(p, window);
    let segments = (1.0 - p) / p + window + timeout / (1.0 - p);
    let rounds = if is_free {
        b / 2.0 * window + 1.0
    } else {
        b / 8.0 * window + (1.0 - p) / (p * window) + 2.0
    };
    let seconds = rtt * rounds + timeout * backed_off(p) * rto / (1.0 - p);
    path.mss * segments / seconds
}

/// Q̂: the chance that a loss in a window of `window` segments ends in a time-out (eq. 24).
fn timeout_share(p: f64, window: f64) -> f64 {
    let q = 1.0 - p;
    let q3 = q * q * q;
    let tail = 1.0 - libm::pow(q, (window - 3.0).max(0.0));
    let all = 1.0 - libm::pow(q, window);
    ((1.0 - q3) * (1.0 + q3 * tail) / all).min(1.0)
}

/// f(p): the mean length of a row of time-outs, in time-outs (eq. 28, up to 64 times the first).
fn backed_off(p: f64) -> f64 {
    1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(loss: f64) -> Path {
        Path { mss: 1460.0, rtt: Duration::from_millis(100), loss, per_ack: 1.0 }
    }

    fn close(a: f64, b: f64, share: f64) -> bool {
        (a / b - 1.0).abs() < share
    }

    #[test]
    fn mathis_gives_the_textbook_value() {
        // 1460 B / 0.1 s * 1.2247 / 0.01 = 1.788 MB/s.
        assert!(close(mathis(&path(1e-4)), 1_788_100.0, 1e-3), "{}", mathis(&path(1e-4)));
        let delayed = Path { per_ack: 2.0, ..path(1e-4) };
        assert!(close(mathis(&delayed) * 2f64.sqrt(), mathis(&path(1e-4)), 1e-9));
    }

    #[test]
    fn padhye_gives_the_value_of_rfc_5348s_equation() {
        // p = 1%, R = 0.1 s, t_RTO = 0.4 s: 0.1*0.08165 + 0.4*0.18371*0.01*1.0032 = 0.0089022.
        let rate = padhye(&path(0.01), Duration::from_millis(400));
        assert!(close(rate, 1460.0 / 0.008_902_2, 1e-4), "{rate}");
    }

    #[test]
    fn all_three_agree_where_losses_are_rare() {
        let (path, rto) = (path(1e-5), Duration::from_millis(400));
        assert!(close(padhye(&path, rto), mathis(&path), 0.01));
        assert!(close(padhye_full(&path, rto, 1e9), mathis(&path), 0.03));
    }

    #[test]
    fn a_limited_window_gives_a_window_per_round_trip() {
        let rate = padhye_full(&path(1e-7), Duration::from_millis(400), 20.0);
        assert!(close(rate, 20.0 * 1460.0 / 0.1, 0.01), "{rate}");
    }

    #[test]
    fn more_loss_never_gives_more() {
        let rto = Duration::from_millis(400);
        let rates: Vec<f64> =
            (1..90).map(|n| padhye_full(&path(f64::from(n) / 100.0), rto, 50.0)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
    }
}
