//! What systems have to do: long flows, flows that come and go, cross traffic, a file.

use super::file_workload::{self, FileWorkload};
use super::nearest::list;
use super::read::{Bytes, PerSecond, RateOrSilence, Reader};
use super::source::Fault;
use super::system::{Transport, read_own_transport};
use super::tree::{Node, Span, Value};
use anabranch_proto::time::Duration;
use std::ops::Range;

/// Everything a run has to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Connections between hosts.
    Connections(Vec<Workload>),
    /// A file from one host to many.
    File(FileWorkload),
}

/// Connections of one kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Its label in tables; unique.
    pub name: String,
    /// Where flows begin: patterns over host names.
    pub from: Hosts,
    /// Where they end.
    pub to: Hosts,
    /// When it begins, and ends; the whole run if not given.
    pub active: (Duration, Option<Duration>),
    /// What flows.
    pub kind: WorkloadKind,
}

/// What flows.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkloadKind {
    /// Long flows.
    Bulk {
        /// How many; `None`: one per host they come from.
        count: Option<u32>,
        /// Bytes of each; `None`: they do not end.
        size: Option<u64>,
        /// Time between starts.
        stagger: Duration,
        /// Most that a start is put off, at random.
        jitter: Duration,
        /// A transport of its own; `None`: the system's.
        transport: Option<Transport>,
    },
    /// Poisson arrivals of flows with Pareto sizes.
    Mice {
        /// Arrivals per second.
        rate: f64,
        /// Mean size, bytes.
        mean: u64,
        /// Pareto's shape, above 1.
        shape: f64,
        /// Where sizes are cut off, bytes.
        largest: u64,
        /// A transport of its own; `None`: the system's.
        transport: Option<Transport>,
    },
    /// UDP at one rate, or in bursts.
    Udp {
        /// How many sources; `None`: one per host they come from.
        count: Option<u32>,
        /// Bytes per second while on, headers included.
        rate: f64,
        /// Mean times on and off, exponential; `None`: always on.
        on_off: Option<(Duration, Duration)>,
        /// Payload of a packet, bytes.
        packet: u32,
        /// DSCP.
        class: u8,
    },
}

/// Host names, with `*` for any run of characters.
#[derive(Clone, PartialEq, Debug)]
pub struct Hosts {
    /// The patterns.
    pub patterns: Vec<String>,
    /// Where they stand.
    pub(crate) span: Range<usize>,
}

/// The kinds of workloads, as they are written.
#[derive(Clone, Copy, PartialEq)]
enum KindWord {
    Bulk,
    Mice,
    OnOff,
    Constant,
    File,
}

const KINDS: [(&str, KindWord); 5] = [
    ("bulk", KindWord::Bulk),
    ("mice", KindWord::Mice),
    ("on-off", KindWord::OnOff),
    ("constant", KindWord::Constant),
    ("file", KindWord::File),
];

/// Reads all entries of `[[workload]]`.
pub(super) fn read_all(nodes: &[Node]) -> Result<Work, Fault> {
    let mut connections: Vec<Workload> = Vec::new();
    let mut file = None;
    for node in nodes {
        let mut reader = Reader::of(node, "[[workload]]")?;
        let kind = reader.word("kind", &KINDS)?.ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
            reader.fault(format!("[[workload]] needs `kind`: {}", list(&known)))
        })?;
        if kind == KindWord::File {
            if file.replace(file_workload::read(reader)?).is_some() {
                return Err(Fault::new(
                    &node.span,
                    "there can be one workload of kind \"file\" only",
                ));
            }
            continue;
        }
        let workload = read(reader, kind)?;
        if connections.iter().any(|other| other.name == workload.name) {
            let text = format!("two workloads are called {:?}; give each a `name`", workload.name);
            return Err(Fault::new(&node.span, text));
        }
        connections.push(workload);
    }
    match (file, connections.is_empty()) {
        (Some(file), true) => Ok(Work::File(file)),
        (None, _) => Ok(Work::Connections(connections)),
        (Some(_), false) => Err(Fault::new(
            &nodes.last().map_or(0..0, |node| node.span.clone()),
            "a workload of kind \"file\" stands alone: connections beside it are another scenario",
        )),
    }
}

fn read(mut reader: Reader<'_>, kind: KindWord) -> Result<Workload, Fault> {
    let word = KINDS.iter().find(|(_, other)| *other == kind).map_or("", |(word, _)| *word);
    let name = reader.optional("name")?.unwrap_or_else(|| word.to_owned());
    let from = hosts(&mut reader, "from")?;
    let to = hosts(&mut reader, "to")?;
    let active = (reader.or("start", Duration::ZERO)?, reader.optional("stop")?);
    if active.1.is_some_and(|stop| stop <= active.0) {
        return Err(Fault::new(&reader.span_of("stop"), "`stop` is not after `start`"));
    }
    let kind = match kind {
        KindWord::Bulk => read_bulk(&mut reader)?,
        KindWord::Mice => read_mice(&mut reader)?,
        other => read_udp(&mut reader, other == KindWord::OnOff)?,
    };
    reader.finish()?;
    Ok(Workload { name, from, to, active, kind })
}

fn read_bulk(reader: &mut Reader<'_>) -> Result<WorkloadKind, Fault> {
    let size = match reader.node("size").map(|node| &node.value) {
        Some(Value::Text(text)) if text == "endless" => None,
        _ => reader.optional("size")?.map(|Bytes(bytes)| bytes),
    };
    if size == Some(0) {
        let text = "`size` is above zero; a flow without an end is \"endless\"";
        return Err(Fault::new(&reader.span_of("size"), text));
    }
    Ok(WorkloadKind::Bulk {
        count: count(reader)?,
        size,
        stagger: reader.or("stagger", Duration::ZERO)?,
        jitter: reader.or("jitter", Duration::ZERO)?,
        transport: read_own_transport(reader)?,
    })
}

fn read_mice(reader: &mut Reader<'_>) -> Result<WorkloadKind, Fault> {
    let PerSecond(rate) = reader.required("rate")?;
    let Bytes(mean) = reader.required("mean")?;
    let shape: f64 = reader.or("shape", 1.2)?;
    if shape <= 1.0 {
        let text = format!("`shape` is {shape}: a Pareto law has a mean above 1 only");
        return Err(Fault::new(&reader.span_of("shape"), text));
    }
    let Bytes(largest) = reader.or("largest", Bytes(mean.saturating_mul(1000)))?;
    if mean == 0 || largest < mean {
        let text = "`mean` is above zero, and `largest` no less than it";
        return Err(Fault::new(&reader.span_of("mean"), text));
    }
    let transport = read_own_transport(reader)?;
    Ok(WorkloadKind::Mice { rate, mean, shape, largest, transport })
}

fn read_udp(reader: &mut Reader<'_>, is_on_off: bool) -> Result<WorkloadKind, Fault> {
    let RateOrSilence(rate) = reader.required("rate")?;
    let on_off = match is_on_off {
        true => Some((above_zero(reader, "on")?, above_zero(reader, "off")?)),
        false => None,
    };
    let Bytes(packet) = reader.or("packet", Bytes(1000))?;
    let packet = match u32::try_from(packet) {
        Ok(packet @ 1..=9000) => packet,
        _ => return Err(Fault::new(&reader.span_of("packet"), "`packet` is from 1B to 9000B")),
    };
    Ok(WorkloadKind::Udp { count: count(reader)?, rate, on_off, packet, class: class(reader)? })
}

fn above_zero(reader: &mut Reader<'_>, key: &'static str) -> Result<Duration, Fault> {
    let time: Duration = reader.required(key)?;
    if time.is_zero() {
        return Err(Fault::new(&reader.span_of(key), format!("`{key}` is above zero")));
    }
    Ok(time)
}

fn count(reader: &mut Reader<'_>) -> Result<Option<u32>, Fault> {
    match reader.optional("count")? {
        Some(0) => {
            let text = "`count` is 0, and no flow measures nothing; leave the workload out";
            Err(Fault::new(&reader.span_of("count"), text))
        }
        Some(count) if count > FLOWS_MAX => {
            let text = format!("`count` is {count}, and at most {FLOWS_MAX} flows are possible");
            Err(Fault::new(&reader.span_of("count"), text))
        }
        count => Ok(count),
    }
}

fn class(reader: &mut Reader<'_>) -> Result<u8, Fault> {
    if let Some(Node { value: Value::Integer(dscp @ 0..=63), .. }) = reader.node("class") {
        return Ok(*dscp as u8);
    }
    let words = [("best-effort", 0), ("lower-effort", 1), ("middle", 4)];
    Ok(reader.word("class", &words)?.unwrap_or(0))
}

/// Hosts by patterns.
pub(super) fn hosts(reader: &mut Reader<'_>, key: &'static str) -> Result<Hosts, Fault> {
    let patterns = reader.required(key)?;
    Ok(Hosts { patterns, span: reader.span_of(key) })
}

impl Hosts {
    /// Every host but these: for a file's receivers by default.
    pub(super) fn all(span: &Span) -> Hosts {
        Hosts { patterns: vec!["*".into()], span: span.clone() }
    }

    /// The hosts that fit, in the order of `names`; a pattern that fits none is a fault.
    pub(crate) fn select(&self, names: &[String]) -> Result<Vec<usize>, Fault> {
        let mut chosen: Vec<usize> = Vec::new();
        for pattern in &self.patterns {
            let fitting: Vec<usize> =
                (0..names.len()).filter(|at| fits(pattern, &names[*at])).collect();
            if fitting.is_empty() {
                let hint = super::nearest::suggest(pattern, names.iter().map(String::as_str));
                let text = format!("the topology has no host {pattern:?}{hint}");
                return Err(Fault::new(&self.span, text));
            }
            chosen.extend(fitting);
        }
        let mut seen = std::collections::BTreeSet::new();
        chosen.retain(|host| seen.insert(*host));
        Ok(chosen)
    }
}

/// Whether a name fits a pattern in which `*` stands for any run of characters.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(head) else { return false };
    let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.into_iter().any(|at| fits(tail, &rest[at..]))
}

/// Most flows of one workload.
const FLOWS_MAX: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, name, is) in [
            ("left*", "left1", true),
            ("left*", "left", true),
            ("left*", "right1", false),
            ("*", "anything", true),
            ("r*2", "r12", true),
            ("r*2", "r21", false),
            ("a*b*c", "aXbYc", true),
            ("a", "ab", false),
        ] {
            assert_eq!(fits(pattern, name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn hosts_are_chosen_once_and_in_the_topologys_order_per_pattern() {
        let names: Vec<String> = ["a1", "b1", "a2"].map(String::from).to_vec();
        let hosts = |patterns: &[&str]| Hosts {
            patterns: patterns.iter().map(|p| p.to_string()).collect(),
            span: 0..0,
        };
        assert_eq!(hosts(&["b1", "a*", "*"]).select(&names), Ok(vec![1, 0, 2]));
        let fault = hosts(&["c1"]).select(&names).unwrap_err();
        assert!(fault.text.contains("no host \"c1\"; did you mean"), "{}", fault.text);
    }
}
