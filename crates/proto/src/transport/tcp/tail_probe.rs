//! Tail loss probes (RFC 8985 §7).
//!
//! When the last segments of a flight are lost, nothing arrives behind them, and without more only
//! the time-out helps: at least 200 ms, and a window of one. So when no acknowledgement came for about two
//! round trips, one segment is sent as a probe. What it sets off at the receiver tells of the
//! losses before it, which are repaired as any others.

use crate::time::{Duration, Time};
use crate::transport::packet::Range;

/// What an acknowledgement may take longer when it is delayed (§7.2, *TLP.max_ack_delay*).
const ACK_DELAY_MAX: Duration = Duration::from_millis(200);

/// *TLP_calc_PTO* without a sample (§7.2).
const UNMEASURED: Duration = Duration::from_secs(1);

/// A probe that is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    /// *TLP.end_seq*.
    end: u64,
    /// *TLP.is_retrans*.
    is_resent: bool,
}

/// See [the module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    /// When to send one.
    due: Option<Time>,
    /// It is to go as soon as something may be sent.
    is_wanted: bool,
    out: Option<Probe>,
}

impl TailProbe {
    /// When a probe is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Sets or stops the timer. `is_quiet`: nothing is lost, in recovery or acknowledged out of
    /// order, and something is on its way; `resend`: when the time-out comes (§7.2).
    pub(super) fn schedule(
        &mut self,
        now: Time,
        is_quiet: bool,
        srtt: Duration,
        is_single: bool,
        resend: Option<Time>,
    ) {
        let wait = match srtt {
            Duration::ZERO => UNMEASURED,
            srtt if is_single => 2 * srtt + ACK_DELAY_MAX,
            srtt => 2 * srtt,
        };
        let at = resend.map(|resend| resend.min(now + wait));
        self.due = at.filter(|_| is_quiet && self.out.is_none() && !self.is_wanted);
    }

    /// Whether the timer ran out; then a probe is to go.
    pub(super) fn run_out(&mut self, now: Time) -> bool {
        let has = self.due.is_some_and(|at| at <= now);
        if has {
            (self.due, self.is_wanted) = (None, true);
        }
        has
    }

    /// Whether a probe is to go now; asked once.
    pub(super) fn take_wanted(&mut self) -> bool {
        std::mem::take(&mut self.is_wanted)
    }

    /// The probe went; `end` is the end of all that was sent.
    pub(super) fn sent(&mut self, end: u64, is_resent: bool) {
        self.out = Some(Probe { end, is_resent });
    }

    /// A time-out takes over.
    pub(super) fn stop(&mut self) {
        *self = TailProbe::default();
    }

    /// *TLP_process_ack* (§7.4.2): whether the probe repaired a loss, to which the control has to
    /// react. `twice`: what arrived twice, as the receiver says; `is_plain`: neither progress nor a block.
    pub(super) fn has_repaired(&mut self, ack: u64, twice: Option<Range>, is_plain: bool) -> bool {
        let Some(probe) = self.out.filter(|probe| ack >= probe.end) else { return false };
        let is_twice = twice.is_some_and(|twice| twice.end == probe.end);
        let arrived_twice = is_twice || (is_plain && ack == probe.end);
        if !probe.is_resent || arrived_twice || ack > probe.end {
            self.out = None;
        }
        probe.is_resent && !arrived_twice && ack > probe.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn a_probe_is_due_after_two_round_trips_and_never_behind_the_time_out_by_rfc_8985_7_2() {
        let due = |srtt, is_single, resend| {
            let mut tail = TailProbe::default();
            tail.schedule(at(10), true, srtt, is_single, Some(resend));
            tail.due()
        };
        assert_eq!(due(50 * MS, false, at(300)), Some(at(110)));
        assert_eq!(due(50 * MS, true, at(900)), Some(at(310)));
        assert_eq!(due(50 * MS, true, at(260)), Some(at(260)));
        assert_eq!(due(Duration::ZERO, false, at(3_000)), Some(at(1_010)));
    }

    #[test]
    fn no_probe_is_due_in_recovery_or_while_one_is_out() {
        let mut tail = TailProbe::default();
        tail.schedule(at(0), false, 50 * MS, false, Some(at(300)));
        assert_eq!(tail.due(), None);
        tail.sent(100, true);
        tail.schedule(at(0), true, 50 * MS, false, Some(at(300)));
        assert_eq!(tail.due(), None);
    }

    #[test]
    fn a_probe_that_repaired_a_loss_is_told_from_one_that_was_needless_by_rfc_8985_7_4() {
        let tell = |is_resent, ack, twice: Option<(u64, u64)>, is_plain| {
            let mut tail = TailProbe::default();
            tail.sent(100, is_resent);
            let twice = twice.map(|(start, end)| Range { start, end });
            (tail.has_repaired(ack, twice, is_plain), tail.out.is_some())
        };
        assert_eq!(tell(true, 90, None, true), (false, true), "not there yet");
        assert_eq!(tell(false, 100, None, false), (false, false), "new data");
        assert_eq!(tell(true, 100, Some((90, 100)), false), (false, false), "both arrived");
        assert_eq!(tell(true, 100, None, true), (false, false), "both arrived, no blocks");
        assert_eq!(tell(true, 100, None, false), (false, true), "either may have arrived");
        assert_eq!(tell(true, 110, None, false), (true, false), "one was lost");
    }
}
