//! What a run of the emulator was like, to be written as JSON: what each link did, and whether the
//! emulator kept up.

use super::Host;
use super::engine::{LATE, Outcome};
use super::lateness::Histogram;
use super::machine::Shares;
use super::namespace::Counted;
use crate::net::{Cause, ClassStats, Count, LinkStats};
use crate::topology::{Link, NodeIx, Topology};
use serde::Serialize;
use std::collections::BTreeMap;

/// The share of packets over a millisecond late above which a run is invalid.
pub const LATE_SHARE_MAX: f64 = 0.001;

/// Share of busy time above which programs are likely to have waited for a processor.
const BUSY: f64 = 0.9;
/// Share of stolen time that is worth a word.
const STOLEN: f64 = 0.05;

/// A run. Times are in the unit that a field's name ends with; bytes are those of IP packets.
#[derive(Serialize, Clone, Debug)]
pub struct Report {
    /// Whether the emulator kept up, so that the run says something about the network described.
    pub valid: bool,
    /// Why it is not valid, one sentence each.
    pub invalid_because: Vec<String>,
    /// What else to know before believing it, one sentence each.
    pub warnings: Vec<String>,
    /// From the first packet that could be sent to the end.
    pub seconds: f64,
    /// The emulator itself.
    pub emulator: Health,
    /// Hosts in the order of the topology.
    pub hosts: Vec<HostReport>,
    /// Links in the order of the topology.
    pub links: Vec<LinkReport>,
}

/// How the emulator fared.
#[derive(Serialize, Clone, Debug)]
pub struct Health {
    /// Whether it had real-time priority.
    pub real_time: bool,
    /// Packets taken from hosts.
    pub packets_read: u64,
    /// Packets given to hosts.
    pub packets_delivered: u64,
    /// How late packets were: the wait in the sender's device (at most) and the delivery after its
    /// time.
    pub lateness_us: Quantiles,
    /// Share of delivered packets that were more than a millisecond late.
    pub late_share: f64,
    /// How late timers woke the emulator: what the machine's scheduler did to it.
    pub wake_us: Quantiles,
    /// Share of one processor that it used, the kernel's work for it included.
    pub processor_share: f64,
    /// Share of the time of all processors in which they were busy, with whatever.
    pub machine_busy_share: f64,
    /// Share of it that the host of a virtual machine took away.
    pub machine_stolen_share: f64,
    /// Packets to no host (multicast, other addresses), which are dropped.
    pub packets_elsewhere: u64,
    /// Packets that the kernel refused at a host's device.
    pub packets_refused: u64,
    /// Packets dropped for want of memory.
    pub packets_without_memory: u64,
    /// The most packets under way at once.
    pub packets_under_way_peak: usize,
}

/// Quantiles of a time.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 90 of 100 are not above this.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// The largest.
    pub max: f64,
}

/// One host.
#[derive(Serialize, Clone, Debug)]
pub struct HostReport {
    /// Its name in the topology, namespace and addresses.
    #[serde(flatten)]
    pub host: Host,
    /// Packets it sent.
    pub packets_sent: u64,
    /// Packets it was given.
    pub packets_received: u64,
    /// Packets that its device dropped because the emulator did not read them in time.
    pub device_dropped_out: u64,
    /// Packets that the kernel dropped on their way into the host.
    pub device_dropped_in: u64,
}

/// One direction of a link.
#[derive(Serialize, Clone, Debug)]
pub struct LinkReport {
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// What kind of link it is.
    pub label: String,
    /// Its rate at the start.
    pub rate_bits_per_s: u64,
    /// Its propagation delay at the start.
    pub delay_ms: f64,
    /// Bytes sent, as a share of what the rate at the start carries in the time of the run.
    pub utilization: f64,
    /// Classes of its queue, the highest first; one when the queue has none.
    pub classes: Vec<ClassReport>,
}

/// One class of a link's queue.
#[derive(Serialize, Clone, Debug)]
pub struct ClassReport {
    /// Came to the link.
    pub offered: Amount,
    /// Used its wire.
    pub sent: Amount,
    /// Reached its end.
    pub arrived: Amount,
    /// Dropped, by cause; causes that did not occur are left out.
    pub dropped: BTreeMap<&'static str, Amount>,
    /// The most that waited at once, the packet in service included.
    pub queue_peak: Amount,
}

/// Packets and their bytes.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl From<Count> for Amount {
    fn from(count: Count) -> Amount {
        Amount { packets: count.packets, bytes: count.bytes }
    }
}

impl From<&Histogram> for Quantiles {
    fn from(histogram: &Histogram) -> Quantiles {
        let at = |share| histogram.quantile(share) as f64 / 1e3;
        let (p50, p90, p99, p999) = (at(0.5), at(0.9), at(0.99), at(0.999));
        Quantiles { p50, p90, p99, p999, max: histogram.max() as f64 / 1e3 }
    }
}

impl Report {
    pub(super) fn new(
        topology: &Topology,
        hosts: &[Host],
        outcome: &Outcome,
        counted: &[Counted],
        machine: Shares,
    ) -> Report {
        let seconds = outcome.ran.as_secs_f64();
        let emulator = health(outcome, seconds, machine);
        let hosts: Vec<HostReport> = (0..)
            .zip(hosts)
            .map(|(index, host)| HostReport {
                host: host.clone(),
                packets_sent: outcome.read.get(index).copied().unwrap_or(0),
                packets_received: outcome.written.get(index).copied().unwrap_or(0),
                device_dropped_out: counted.get(index).map_or(0, |counted| counted.from_host),
                device_dropped_in: counted.get(index).map_or(0, |counted| counted.to_host),
            })
            .collect();
        let links = topology.links.iter().zip(&outcome.links);
        let links =
            links.map(|(link, stats)| link_report(topology, link, stats, seconds)).collect();
        let invalid_because = faults(&emulator, &hosts);
        let valid = invalid_because.is_empty();
        let warnings = warnings(outcome, machine, seconds);
        Report { valid, invalid_because, warnings, seconds, emulator, hosts, links }
    }
}

fn health(outcome: &Outcome, seconds: f64, machine: Shares) -> Health {
    let delivered = outcome.lateness.count();
    Health {
        real_time: outcome.not_real_time.is_none(),
        packets_read: outcome.read.iter().sum(),
        packets_delivered: outcome.written.iter().sum(),
        lateness_us: Quantiles::from(&outcome.lateness),
        late_share: outcome.late as f64 / delivered.max(1) as f64,
        wake_us: Quantiles::from(&outcome.wakes),
        processor_share: outcome.worked.as_secs_f64() / seconds.max(1e-9),
        machine_busy_share: machine.busy,
        machine_stolen_share: machine.stolen,
        packets_elsewhere: outcome.elsewhere,
        packets_refused: outcome.refused,
        packets_without_memory: outcome.without_memory,
        packets_under_way_peak: outcome.buffers,
    }
}

/// What makes the run say nothing about the network that was described.
fn faults(emulator: &Health, hosts: &[HostReport]) -> Vec<String> {
    let mut faults = Vec::new();
    if emulator.late_share > LATE_SHARE_MAX {
        faults.push(format!(
            "{:.2}% of the packets were more than {} ms late (at most {}% may be): this machine is \
             too slow or too busy for the topology; the emulator used {:.0}% of a processor",
            emulator.late_share * 100.0,
            LATE / 1_000_000,
            LATE_SHARE_MAX * 100.0,
            emulator.processor_share * 100.0,
        ));
    }
    for host in hosts {
        let name = &host.host.name;
        if host.device_dropped_out > 0 {
            let count = host.device_dropped_out;
            faults.push(format!("the device of {name} dropped {count} packets before their link"));
        }
        if host.device_dropped_in > 0 {
            let count = host.device_dropped_in;
            faults.push(format!("the kernel dropped {count} packets on their way into {name}"));
        }
    }
    for (count, what) in [
        (emulator.packets_refused, "were not taken by the kernel at a host's device"),
        (emulator.packets_without_memory, "were dropped for want of memory"),
    ] {
        if count > 0 {
            faults.push(format!("{count} packets {what}"));
        }
    }
    faults
}

/// What does not spoil a run by itself.
fn warnings(outcome: &Outcome, machine: Shares, seconds: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(why) = &outcome.not_real_time {
        warnings.push(format!(
            "the emulator had no real-time priority ({why}); give it CAP_SYS_NICE where other \
             programs run beside it"
        ));
    }
    // A second has a hundred ticks of each processor, and shorter runs say little.
    if seconds < 1.0 {
        return warnings;
    }
    if machine.busy > BUSY {
        warnings.push(format!(
            "the machine's processors were {:.0}% busy: programs in the network may have been \
             slowed by want of processor time, not by the links",
            machine.busy * 100.0
        ));
    }
    if machine.stolen > STOLEN {
        warnings.push(format!(
            "{:.0}% of the processors' time was taken by the host of this virtual machine",
            machine.stolen * 100.0
        ));
    }
    warnings
}

fn link_report(topology: &Topology, link: &Link, stats: &LinkStats, seconds: f64) -> LinkReport {
    let name = |node: NodeIx| {
        topology.nodes.get(node.0 as usize).map_or_else(String::new, |node| node.name.clone())
    };
    LinkReport {
        from: name(link.from),
        to: name(link.to),
        label: link.label.clone(),
        rate_bits_per_s: link.rate.bytes() * 8,
        delay_ms: link.delay.as_secs_f64() * 1e3,
        utilization: stats.sent().bytes as f64 / (link.rate.as_f64() * seconds.max(1e-9)),
        classes: stats.classes().iter().map(class_report).collect(),
    }
}

fn class_report(class: &ClassStats) -> ClassReport {
    let causes = Cause::ALL.iter().map(|&cause| (cause.name(), class.dropped(cause)));
    let causes = causes.filter(|(_, count)| count.packets > 0);
    ClassReport {
        offered: class.offered.into(),
        sent: class.sent.into(),
        arrived: class.arrived.into(),
        dropped: causes.map(|(name, count)| (name, Amount::from(count))).collect(),
        queue_peak: class.peak.into(),
    }
}
