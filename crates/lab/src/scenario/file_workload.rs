//! A file from one host to many: who starts when, who goes away, what breaks.

use super::read::{Bytes, PerSecond, Reader, Share};
use super::source::Fault;
use super::tree::{Node, Value};
use super::workload::{Hosts, hosts};
use anabranch_proto::time::Duration;

/// A file from one host to many.
#[derive(Clone, PartialEq, Debug)]
pub struct FileWorkload {
    /// Its label.
    pub name: String,
    /// The host that has it.
    pub source: Hosts,
    /// The receivers; the source is never one.
    pub to: Hosts,
    /// Bytes.
    pub size: u64,
    /// Bytes of a block.
    pub block: u32,
    /// When receivers start.
    pub joins: Joins,
    /// Most that a start is put off, at random.
    pub stagger: Duration,
    /// Who goes away.
    pub churn: Option<Churn>,
    /// What else happens.
    pub faults: Vec<FileFault>,
}

/// When receivers start.
#[derive(Clone, PartialEq, Debug)]
pub enum Joins {
    /// Shares of the receivers at given times; the shares add up to 1.
    At(Vec<(Duration, f64)>),
    /// As a Poisson process of so many per second.
    Poisson(f64),
}

/// Receivers that go away.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Churn {
    /// Mean of the exponential time that each stays.
    pub lifetime: Duration,
    /// How it goes.
    pub leave: Leave,
    /// Whether an empty host starts in its place.
    pub replace: bool,
}

/// How a host goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// Its machine is gone, without a word.
    Crash,
    /// Its program is killed; its links are reset.
    Kill,
    /// In good order.
    Leave,
}

/// Something that happens to hosts at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct FileFault {
    /// When.
    pub at: Duration,
    /// What.
    pub kind: FileFaultKind,
    /// To whom.
    pub hosts: Hosts,
    /// To which share of them, at random.
    pub share: f64,
}

/// What can happen to a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFaultKind {
    /// It goes.
    Gone(Leave),
    /// It starts again with what it holds.
    Restart,
    /// It accepts no more connections.
    Unreachable,
    /// Its blocks are wrong from now on.
    Corrupt,
}

const LEAVES: [(&str, Leave); 3] =
    [("crash", Leave::Crash), ("kill", Leave::Kill), ("leave", Leave::Leave)];

pub(super) fn read(mut reader: Reader<'_>) -> Result<FileWorkload, Fault> {
    let name = reader.or("name", "file".to_owned())?;
    let source = hosts(&mut reader, "source")?;
    let to = match reader.node("to") {
        Some(_) => hosts(&mut reader, "to")?,
        None => Hosts::all(reader.span()),
    };
    let Bytes(size) = reader.required("size")?;
    let Bytes(block) = reader.or("block", Bytes(16 * 1024))?;
    let block = match u32::try_from(block) {
        Ok(block @ 256..=8_388_608) => block,
        _ => return Err(Fault::new(&reader.span_of("block"), "`block` is from 256B to 8MiB")),
    };
    if size == 0 || size / u64::from(block) > BLOCKS_MAX {
        let text = format!("`size` is from 1B to {BLOCKS_MAX} blocks");
        return Err(Fault::new(&reader.span_of("size"), text));
    }
    let workload = FileWorkload {
        name,
        source,
        to,
        size,
        block,
        joins: read_joins(&mut reader)?,
        stagger: reader.or("stagger", Duration::ZERO)?,
        churn: read_churn(&mut reader)?,
        faults: read_faults(&mut reader)?,
    };
    reader.finish()?;
    Ok(workload)
}

fn read_joins(reader: &mut Reader<'_>) -> Result<Joins, Fault> {
    let arrivals: Option<PerSecond> = reader.optional("arrivals")?;
    let Some(node) = reader.node("join") else {
        return Ok(match arrivals {
            Some(PerSecond(0.0)) => {
                let text = "`arrivals` is above zero, or nobody would come";
                return Err(Fault::new(&reader.span_of("arrivals"), text));
            }
            Some(PerSecond(rate)) => Joins::Poisson(rate),
            None => Joins::At(vec![(Duration::ZERO, 1.0)]),
        });
    };
    if arrivals.is_some() {
        return Err(Fault::new(&node.span, "`join` and `arrivals` exclude each other"));
    }
    let mut waves = Vec::new();
    for item in items(node) {
        let mut reader = Reader::of(item, "`join`")?;
        let Share(share) = reader.required("share")?;
        waves.push((reader.or("at", Duration::ZERO)?, share));
        reader.finish()?;
    }
    let sum: f64 = waves.iter().map(|(_, share)| share).sum();
    if (sum - 1.0).abs() > 1e-9 {
        return Err(Fault::new(&node.span, format!("the shares of `join` add up to {sum}, not 1")));
    }
    Ok(Joins::At(waves))
}

fn read_churn(reader: &mut Reader<'_>) -> Result<Option<Churn>, Fault> {
    let lifetime: Option<Duration> = reader.optional("lifetime")?;
    let leave = reader.word("leave", &LEAVES)?.unwrap_or(Leave::Crash);
    let replace = reader.or("replace", false)?;
    if lifetime.is_some_and(|lifetime| lifetime < LIFETIME_MIN) {
        return Err(Fault::new(&reader.span_of("lifetime"), "`lifetime` is at least 1s"));
    }
    Ok(lifetime.map(|lifetime| Churn { lifetime, leave, replace }))
}

fn read_faults(reader: &mut Reader<'_>) -> Result<Vec<FileFault>, Fault> {
    let Some(node) = reader.node("fault") else { return Ok(Vec::new()) };
    let kinds = [
        ("crash", FileFaultKind::Gone(Leave::Crash)),
        ("kill", FileFaultKind::Gone(Leave::Kill)),
        ("leave", FileFaultKind::Gone(Leave::Leave)),
        ("restart", FileFaultKind::Restart),
        ("unreachable", FileFaultKind::Unreachable),
        ("corrupt", FileFaultKind::Corrupt),
    ];
    let read_fault = |item| {
        let mut reader = Reader::of(item, "`fault`")?;
        let kind = reader.word("kind", &kinds)?;
        let fault = FileFault {
            at: reader.required("at")?,
            kind: kind.ok_or_else(|| reader.fault("`fault` needs `kind`"))?,
            hosts: hosts(&mut reader, "hosts")?,
            share: reader.or("share", Share(1.0))?.0,
        };
        reader.finish()?;
        Ok(fault)
    };
    items(node).iter().map(read_fault).collect()
}

/// The members of a list, or a single one.
fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// Most blocks of a file: the simulator's bitmaps are per member.
const BLOCKS_MAX: u64 = 10_000_000;
const LIFETIME_MIN: Duration = Duration::from_secs(1);
