//! What a run writes down beside its scalars.

use super::nearest::{list, suggest};
use super::read::Reader;
use super::source::Fault;
use super::tree::{Node, Span};
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
    /// Blocks held.
    Progress,
    /// When blocks arrive.
    Blocks,
}

const SERIES: [(&str, Series); 5] = [
    ("throughput", Series::Throughput),
    ("queue", Series::Queue),
    ("window", Series::Window),
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
        span: node.span.clone(),
    };
    if measure.interval.is_some_and(|interval| interval < INTERVAL_MIN) {
        return Err(Fault::new(&reader.span_of("interval"), "`interval` is at least 1ms"));
    }
    reader.finish()?;
    Ok(measure)
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
