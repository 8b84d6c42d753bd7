//! What a run writes down beside its scalars.

use super::document::Wire;
use super::nearest::{list, suggest};
use super::read::{Bytes, Reader};
use super::source::Fault;
use super::tree::{Node, Span};
use super::workload::Work;
use anabranch_proto::time::Duration;
use std::collections::BTreeSet;

/// What a run writes down beside its scalars.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// Step of the series; by default 100 ms for connections and 1 s for a file.
    pub interval: Option<Duration>,
    /// Which series.
    pub series: BTreeSet<Series>,
    /// Links that are followed: `"a>b"` or labels; none: the bottleneck.
    pub links: Vec<String>,
    /// The link that goodput is compared with; `None`: the busiest.
    pub bottleneck: Option<String>,
    /// Of how many flows windows are written.
    pub flows_shown: u32,
    /// Links whose packets are captured, named as `links`.
    pub pcap: Vec<String>,
    /// Whether what happens at `links` is traced.
    pub trace: bool,
    /// Most bytes of a run's capture, and of its trace.
    pub file_limit: u64,
    pub(crate) span: Span,
}

/// Something that is written over time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Series {
    /// Bytes per interval, per flow or receiver.
    Throughput,
    /// What waits in front of links.
    Queue,
    /// Congestion windows.
    Window,
    /// Smoothed round-trip times, as the senders see them.
    Rtt,
    /// Blocks held.
    Progress,
    /// When blocks arrive.
    Blocks,
}

const SERIES: [(&str, Series); 6] = [
    ("throughput", Series::Throughput),
    ("queue", Series::Queue),
    ("window", Series::Window),
    ("rtt", Series::Rtt),
    ("progress", Series::Progress),
    ("blocks", Series::Blocks),
];

impl Default for Measure {
    fn default() -> Measure {
        Measure {
            interval: None,
            series: BTreeSet::new(),
            links: Vec::new(),
            bottleneck: None,
            flows_shown: 10,
            pcap: Vec::new(),
            trace: false,
            file_limit: FILE_LIMIT,
            span: 0..0,
        }
    }
}

pub(super) fn read(node: &Node) -> Result<Measure, Fault> {
    let mut reader = Reader::of(node, "[measure]")?;
    let default = Measure::default();
    let words: Vec<String> = reader.or("series", Vec::new())?;
    let measure = Measure {
        interval: reader.optional("interval")?,
        series: words
            .iter()
            .map(|word| series(word).map_err(|text| Fault::new(&reader.span_of("series"), text)))
            .collect::<Result<_, _>>()?,
        links: reader.or("links", Vec::new())?,
        bottleneck: reader.optional("bottleneck")?,
        flows_shown: reader.or("flows_shown", default.flows_shown)?,
        pcap: reader.or("pcap", Vec::new())?,
        trace: reader.or("trace", false)?,
        file_limit: reader.optional("file_limit")?.map_or(FILE_LIMIT, |Bytes(bytes)| bytes),
        span: node.span.clone(),
    };
    if measure.interval.is_some_and(|interval| interval < INTERVAL_MIN) {
        return Err(Fault::new(&reader.span_of("interval"), "`interval` is at least 1ms"));
    }
    if !(FILE_LIMIT_MIN..=FILE_LIMIT_MAX).contains(&measure.file_limit) {
        let text = "`file_limit` is from 1kB to 100GB";
        return Err(Fault::new(&reader.span_of("file_limit"), text));
    }
    reader.finish()?;
    Ok(measure)
}

impl Measure {
    /// Whether something is asked for that this work does not have.
    pub(super) fn check(&self, work: &Work, wire: Wire) -> Result<(), Fault> {
        let fault = |text: String| Err(Fault::new(&self.span, text));
        let has: &[Series] = match work {
            Work::Connections(_) => {
                &[Series::Throughput, Series::Queue, Series::Window, Series::Rtt]
            }
            Work::File(_) => &[Series::Throughput, Series::Queue, Series::Progress, Series::Blocks],
        };
        let name = |series: &Series| {
            SERIES.iter().find(|(_, known)| known == series).map_or("", |(name, _)| name)
        };
        if let Some(other) = self.series.iter().find(|series| !has.contains(series)) {
            let whose = match work {
                Work::Connections(_) => "connections",
                Work::File(_) => "a file",
            };
            let known: Vec<&str> = has.iter().map(name).collect();
            let text =
                format!("{whose} have no `series` {:?}; there are {}", name(other), list(&known));
            return fault(text.replace("a file have", "a file has"));
        }
        let packets = [
            (!self.pcap.is_empty(), "`pcap`"),
            (self.trace, "`trace`"),
            (self.series.contains(&Series::Queue), "the series \"queue\""),
        ];
        match packets.iter().find(|(is_asked, _)| *is_asked) {
            Some((_, what)) if matches!(work, Work::File(_)) && wire != Wire::Packet => {
                fault(format!("{what} needs packets: set wire = \"packet\" at the top of the file"))
            }
            _ => Ok(()),
        }
    }
}

fn series(word: &str) -> Result<Series, String> {
    let found = SERIES.iter().find(|(known, _)| *known == word);
    found.map(|(_, series)| *series).ok_or_else(|| {
        let known: Vec<&str> = SERIES.iter().map(|(known, _)| *known).collect();
        let hint = suggest(word, known.iter().copied());
        format!("`series` has no {word:?}{hint} ({})", list(&known))
    })
}

/// Series of a long run stay readable, and of a sensible size.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// A capture of a million packets, or a trace of a few hundred thousand steps.
const FILE_LIMIT: u64 = 100_000_000;
const FILE_LIMIT_MIN: u64 = 1_000;
const FILE_LIMIT_MAX: u64 = 100_000_000_000;
