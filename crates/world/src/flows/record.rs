//! What came of the flows: one record each, and what was sampled.

use super::spec::{FlowIx, GroupIx};
use crate::topology::{LinkIx, NodeIx};
use anabranch_proto::time::{Duration, Time};
use anabranch_proto::transport::udp::Sink;
use anabranch_proto::transport::{Failure, Probe};

/// What came of one flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record {
    /// Its group.
    pub group: GroupIx,
    /// Its number in the group, from 0.
    pub number: u32,
    /// The host that sends.
    pub from: NodeIx,
    /// The host that receives.
    pub to: NodeIx,
    /// When it was to begin.
    pub start: Time,
    /// When it was to be given up.
    pub stop: Option<Time>,
    /// Bytes of payload it was to carry; `None`: without end.
    pub bytes: Option<u64>,
    /// Propagation delay of the way there and back, without queues and serialization.
    pub rtt_base: Duration,
    /// When all bytes had arrived in order at the sink.
    pub arrived: Option<Time>,
    /// When the source knew that.
    pub acknowledged: Option<Time>,
    /// Why the connection was given up by an end, if it was.
    pub failed: Option<Failure>,
    /// Bytes of payload that had arrived in order, at the end of the run or of the flow.
    pub delivered: u64,
    /// Of these, before the warm-up ended.
    pub delivered_before: u64,
    /// What arrived at a UDP sink: packets, delays, what is missing; all zero for TCP.
    pub sink: Sink,
    /// What the source last showed of itself; of a UDP source the payload it has sent.
    pub source: Probe,
}

impl Record {
    /// From the start until all bytes had arrived.
    pub fn completion(&self) -> Option<Duration> {
        self.arrived.map(|at| at.since(self.start))
    }

    /// [`completion`](Record::completion) in base round-trip times.
    pub fn completion_rtts(&self) -> Option<f64> {
        let rtt = self.rtt_base.as_secs_f64();
        self.completion().filter(|_| rtt > 0.0).map(|took| took.as_secs_f64() / rtt)
    }
}

/// A flow at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowSample {
    /// When.
    pub at: Time,
    /// Which.
    pub flow: FlowIx,
    /// Bytes of payload that have arrived in order so far.
    pub delivered: u64,
    /// What its source shows of itself; all zero for UDP.
    pub source: Probe,
}

/// A link at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSample {
    /// When.
    pub at: Time,
    /// Which.
    pub link: LinkIx,
    /// Packets that wait, the one in service included.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes sent so far.
    pub sent: u64,
    /// Packets dropped so far, for whatever cause.
    pub dropped: u64,
}

/// Jain's index of fairness of some rates: from 1/n, one has all, to 1, all have the same. 1 when
/// there are none or all are zero.
pub fn jain(rates: impl IntoIterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for rate in rates {
        n += 1.0;
        sum += rate;
        squares += rate * rate;
    }
    if squares == 0.0 { 1.0 } else { sum * sum / (n * squares) }
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jains_index_is_one_for_equals_and_one_over_n_for_one_who_has_all() {
        assert_eq!(jain([3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain([1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain([]), 1.0);
    }
}
