//! Queues as files write them: `{ kind = "drop-tail", limit = "100 packets" }`.
//!
//! A limit may be stated in terms of the link's rate, which generators draw link by link. So what
//! is read is a form, and [`QueueForm::resolve`] makes the queue for a given link of it.

use super::fields::{Fields, Read, SpecError, list, nearest, plain_text, time};
use super::item::{Entry, Item, Value};
use crate::topology::{ClassMap, Limit, QueueSpec, RedSpec, XcpSpec};
use crate::units::{Rate, text};
use anabranch_proto::time::Duration;
use anabranch_proto::transport::Class;

/// How much a queue holds, perhaps in terms of the link's rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LimitForm {
    /// So many bytes.
    Bytes(u64),
    /// So many packets.
    Packets(u32),
    /// What the link sends in this time.
    Time(Duration),
    /// So many times what the link sends in a round trip.
    Bdp {
        /// How many.
        times: f64,
        /// The round-trip time.
        rtt: Duration,
    },
}

impl LimitForm {
    /// For a link of this rate; never less than one packet of `mtu` bytes.
    pub fn resolve(self, rate: Rate, mtu: u32) -> Limit {
        let bytes = match self {
            LimitForm::Packets(packets) => return Limit::Packets(packets),
            LimitForm::Bytes(bytes) => bytes,
            LimitForm::Time(time) => (rate.as_f64() * time.as_secs_f64()).round() as u64,
            LimitForm::Bdp { times, rtt } => {
                (rate.as_f64() * rtt.as_secs_f64() * times).round() as u64
            }
        };
        Limit::Bytes(bytes.max(u64::from(mtu)))
    }

    fn is_packets(self) -> bool {
        matches!(self, LimitForm::Packets(_))
    }
}

/// A queue before the link's rate is known.
#[derive(Clone, PartialEq, Debug)]
pub enum QueueForm {
    /// First in, first out.
    DropTail(LimitForm),
    /// Random early detection.
    Red {
        /// How much it holds at most.
        limit: LimitForm,
        /// Average below which nothing is dropped.
        min: LimitForm,
        /// Average at which `probability` is reached.
        max: LimitForm,
        /// Probability of a drop at `max`.
        probability: f64,
        /// Weight of a new sample in the average.
        weight: f64,
    },
    /// A buffer per class.
    Priority {
        /// The classes' queues, the highest first.
        classes: Vec<QueueForm>,
        /// Which packet belongs where.
        map: ClassMap,
    },
    /// One buffer for all classes.
    PushOut {
        /// How much all classes hold together.
        limit: LimitForm,
        /// How many classes there are.
        classes: u8,
        /// Which packet belongs where.
        map: ClassMap,
    },
    /// An XCP router's queue.
    Xcp {
        /// How much it holds at most.
        limit: LimitForm,
        /// Gain on spare bandwidth.
        alpha: f64,
        /// Gain on the persistent queue.
        beta: f64,
        /// Share of traffic that is shuffled.
        shuffle: f64,
    },
}

impl Default for QueueForm {
    /// Drop-tail of 100 packets.
    fn default() -> QueueForm {
        QueueForm::DropTail(LimitForm::Packets(100))
    }
}

impl QueueForm {
    /// Drop-tail of so many packets.
    pub fn packets(packets: u32) -> QueueForm {
        QueueForm::DropTail(LimitForm::Packets(packets))
    }

    /// The queue of a link.
    pub fn resolve(&self, rate: Rate, mtu: u32) -> QueueSpec {
        let limit = |form: &LimitForm| form.resolve(rate, mtu);
        match self {
            QueueForm::DropTail(form) => QueueSpec::DropTail { limit: limit(form) },
            QueueForm::Red { limit: most, min, max, probability, weight } => {
                QueueSpec::Red(RedSpec {
                    limit: limit(most),
                    min: amount(limit(min)),
                    max: amount(limit(max)),
                    probability_max: *probability,
                    weight: *weight,
                })
            }
            QueueForm::Priority { classes, map } => QueueSpec::Priority {
                classes: classes.iter().map(|class| class.resolve(rate, mtu)).collect(),
                map: map.clone(),
            },
            QueueForm::PushOut { limit: most, classes, map } => {
                QueueSpec::PushOut { limit: limit(most), classes: *classes, map: map.clone() }
            }
            QueueForm::Xcp { limit: most, alpha, beta, shuffle } => QueueSpec::Xcp(XcpSpec {
                limit: limit(most),
                alpha: *alpha,
                beta: *beta,
                shuffle: *shuffle,
            }),
        }
    }

    /// Reads a queue for packets of at most `mtu` bytes.
    pub(crate) fn read(item: &Item, mtu: u32) -> Read<QueueForm> {
        QueueForm::read_within(item, mtu, false)
    }

    fn read_within(item: &Item, mtu: u32, is_class: bool) -> Read<QueueForm> {
        let mut fields = Fields::of(item, "a queue")?;
        let rtt = fields.get("rtt");
        let kinds = [("drop-tail", 0), ("red", 1), ("priority", 2), ("push-out", 3), ("xcp", 4)];
        let queue = match fields.word("kind", &kinds, None)? {
            0 => QueueForm::DropTail(read_limit(fields.need("limit")?, rtt, mtu)?),
            1 => read_red(&mut fields, rtt, mtu)?,
            2 if is_class => {
                let what = "a class of a priority queue cannot have classes of its own";
                return Err(SpecError::new(&item.span, what));
            }
            2 => read_priority(&mut fields, mtu)?,
            3 => {
                let limit = read_limit(fields.need("limit")?, rtt, mtu)?;
                let classes = fields.count("classes", 2..=3, Some(2))? as u8;
                let map = read_map(fields.get("map"), classes)?;
                QueueForm::PushOut { limit, classes, map }
            }
            _ => QueueForm::Xcp {
                limit: read_limit(fields.need("limit")?, rtt, mtu)?,
                alpha: fields.number("alpha", 0.0..=10.0, Some(0.4))?,
                beta: fields.number("beta", 0.0..=10.0, Some(0.226))?,
                shuffle: fields.probability("shuffle", Some(0.1))?,
            },
        };
        fields.finish()?;
        Ok(queue)
    }
}

fn amount(limit: Limit) -> f64 {
    match limit {
        Limit::Bytes(bytes) => bytes as f64,
        Limit::Packets(packets) => f64::from(packets),
    }
}

fn read_red(fields: &mut Fields<'_>, rtt: Option<&Item>, mtu: u32) -> Read<QueueForm> {
    let limit = read_limit(fields.need("limit")?, rtt, mtu)?;
    let (low, high) = (fields.need("min")?, fields.need("max")?);
    let (min, max) = (read_limit(low, rtt, 0)?, read_limit(high, rtt, 0)?);
    for (item, form) in [(low, min), (high, max)] {
        if form.is_packets() != limit.is_packets() {
            let what = "`limit`, `min` and `max` of a RED queue are all in packets, or none is";
            return Err(SpecError::new(&item.span, what));
        }
    }
    // Any rate serves to compare two thresholds.
    let at = |form: LimitForm| amount(form.resolve(Rate::bytes_per_sec(1_000_000_000), 0));
    if at(min) >= at(max) || at(max) > at(limit) {
        let what = "a RED queue needs `min` below `max`, and `max` not above `limit`";
        return Err(SpecError::new(&high.span, what));
    }
    let probability = fields.probability("probability", Some(0.1))?;
    let weight = fields.number("weight", 1e-6..=1.0, Some(0.002))?;
    Ok(QueueForm::Red { limit, min, max, probability, weight })
}

fn read_priority(fields: &mut Fields<'_>, mtu: u32) -> Read<QueueForm> {
    // A limit for all classes stands for as many drop-tail queues.
    if let Some(limit) = fields.get("limit") {
        let limit = read_limit(limit, fields.get("rtt"), mtu)?;
        let classes = fields.count("classes", 2..=3, Some(2))? as u8;
        let map = read_map(fields.get("map"), classes)?;
        let classes = vec![QueueForm::DropTail(limit); usize::from(classes)];
        return Ok(QueueForm::Priority { classes, map });
    }
    let item = fields.need("classes")?;
    let queues = match &item.value {
        Value::List(queues) if (2..=3).contains(&queues.len()) => queues,
        _ => {
            let what = "classes: a list of two or three queues, the highest class first";
            return Err(SpecError::new(&item.span, what));
        }
    };
    let read = |queue| QueueForm::read_within(queue, mtu, true);
    let classes: Vec<QueueForm> = queues.iter().map(read).collect::<Read<_>>()?;
    let map = read_map(fields.get("map"), classes.len() as u8)?;
    Ok(QueueForm::Priority { classes, map })
}

/// `"300KB"`, `"100 packets"`, `"100ms"` or `"0.1 bdp"`.
fn read_limit(item: &Item, rtt: Option<&Item>, mtu: u32) -> Read<LimitForm> {
    let fail = |what: String| SpecError::new(&item.span, what);
    let text = match &item.value {
        Value::Text(text) => text.trim(),
        other => {
            let example = "write it like \"100 packets\", \"300KB\", \"100ms\" or \"0.1 bdp\"";
            return Err(fail(format!("a limit is a text with a unit, not {}; {example}", {
                other.kind()
            })));
        }
    };
    if text.starts_with('-') {
        return Err(fail(format!("limit: {text:?} is negative")));
    }
    let counted = |unit: &str| text.strip_suffix(unit).map(str::trim);
    if let Some(number) = counted("packets").or_else(|| counted("packet")) {
        let packets = number.parse().ok().filter(|&packets: &u32| packets > 0);
        return packets.map(LimitForm::Packets).ok_or_else(|| {
            fail(format!("limit: {text:?} is no number of packets; a link needs at least one"))
        });
    }
    if let Some(number) = counted("bdp").or_else(|| counted("BDP")) {
        let times = number.parse().ok().filter(|&times: &f64| times > 0.0 && times < 1e6);
        let times = times.ok_or_else(|| fail(format!("limit: {text:?} is no share of a BDP")))?;
        let rtt = rtt.ok_or_else(|| {
            fail(format!("limit: {text:?} needs `rtt` beside it, such as rtt = \"80ms\""))
        })?;
        let rtt = time(rtt).map_err(|what| SpecError::new(&rtt.span, format!("rtt: {what}")))?;
        return Ok(LimitForm::Bdp { times, rtt });
    }
    let form = match (text::size(text), text::time(text)) {
        (Ok(bytes), _) if bytes < u64::from(mtu) => {
            return Err(fail(format!("limit: {text:?} holds no packet of {mtu} bytes")));
        }
        (Ok(bytes), _) => LimitForm::Bytes(bytes),
        (_, Ok(time)) => LimitForm::Time(time),
        _ => {
            return Err(fail(format!(
                "limit: {text:?} has no unit that a queue knows; write it like \"100 packets\", \
                 \"300KB\", \"100ms\" (of the link's rate) or \"0.1 bdp\""
            )));
        }
    };
    Ok(form)
}

/// `{ ef = 0, 10 = 1, other = 1 }`: from DSCP (number or name) to class, 0 the highest. Without one
/// lower effort is the lowest class, PLT's middle class comes before it, and all else is the highest.
fn read_map(item: Option<&Item>, classes: u8) -> Read<ClassMap> {
    let Some(item) = item else {
        let entries = [(Class::LOWER_EFFORT, classes - 1), (Class::MIDDLE, classes - 2)];
        let entries = entries.map(|(class, at)| (class.0, at)).to_vec();
        return Ok(ClassMap { entries, other: 0 });
    };
    let mut fields = Fields::of(item, "a class map")?;
    let last = u32::from(classes) - 1;
    let other = fields.count("other", 0..=last, Some(last))? as u8;
    let mut entries = Vec::new();
    for Entry { span, key, item } in fields.entries().iter().filter(|entry| entry.key != "other") {
        let dscp = dscp(key).map_err(|what| SpecError::new(span, what))?;
        if entries.iter().any(|entry: &(u8, u8)| entry.0 == dscp) {
            return Err(SpecError::new(span, format!("DSCP {dscp} has a class already")));
        }
        let class = super::fields::count(item, &(0..=last))
            .map_err(|what| SpecError::new(&item.span, format!("the class of {key}: {what}")))?;
        entries.push((dscp, class as u8));
    }
    entries.sort_unstable();
    Ok(ClassMap { entries, other })
}

/// A DSCP by its number or its name (RFC 2474, 2597, 3246, 5865, 8622).
///
/// # Errors
///
/// A sentence with the names that there are.
pub fn dscp(text: &str) -> Result<u8, String> {
    let lower = text.to_ascii_lowercase();
    if let Ok(number) = lower.parse::<u8>() {
        let range = || format!("{number} is no DSCP: they are from 0 to 63");
        return if number < 64 { Ok(number) } else { Err(range()) };
    }
    let mut names: Vec<(String, u8)> = (0..8).map(|n| (format!("cs{n}"), n * 8)).collect();
    for class in 1..=4u8 {
        names.extend((1..=3u8).map(|drop| (format!("af{class}{drop}"), class * 8 + drop * 2)));
    }
    let others = [("be", 0), ("default", 0), ("le", 1), ("voice-admit", 44), ("ef", 46)];
    names.extend(others.map(|(name, dscp)| (name.to_owned(), dscp)));
    names.iter().find(|name| name.0 == lower).map(|name| name.1).ok_or_else(|| {
        let words: Vec<&str> = names.iter().map(|name| name.0.as_str()).collect();
        format!("{text:?} is no DSCP: a number from 0 to 63, or {}{}", list(&words), {
            nearest(text, &words)
        })
    })
}

/// A loss or queue may be taken away by a word.
pub(crate) fn is_none(item: &Item) -> bool {
    plain_text(item) == Ok("none")
}
