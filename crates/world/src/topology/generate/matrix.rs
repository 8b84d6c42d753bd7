//! What was measured between hosts: a rate for every pair, and perhaps a round-trip time.
//!
//! Built like a mesh: a private link per ordered pair with the measured rate, behind access links.

use crate::topology::Topology;
use crate::topology::build::Builder;
use crate::topology::check;
use crate::topology::file::fields::{Fields, Read, SpecError, number, plain_text};
use crate::topology::file::item::{Item, Value};
use crate::topology::file::queue::QueueForm;
use crate::topology::file::way::Way;
use crate::units::{Rate, ms, text};
use anabranch_proto::time::Duration;

/// A measured matrix.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// The hosts' names.
    pub names: Vec<String>,
    /// Rates from host to host, by sender, then receiver; those on the diagonal were measured
    /// within the host's own site.
    pub rates: Vec<Vec<Rate>>,
    /// Round-trip times by the same order; the delay of a link is half of it.
    pub rtts: Vec<Vec<Duration>>,
    /// Each host's access, both ways.
    pub access: Vec<Rate>,
    /// The queue of every link.
    pub queue: QueueForm,
    /// The largest packet in bytes.
    pub mtu: u32,
}

impl Matrix {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Read<Matrix> {
        let names = read_names(fields.need("names")?)?;
        let unit = fields.text("unit", None)?;
        let by_receiver = fields.word("rows", &[("senders", false), ("receivers", true)], None)?;
        let is_mirrored =
            fields.word("missing", &[("refuse", false), ("mirror", true)], Some(false))?;
        let item = fields.need("rates")?;
        let rate_of = |number: f64| {
            let rate = text::rate(&format!("{number}{unit}")).map_err(|error| error.to_string());
            rate.map(Rate::bytes_per_sec)
        };
        let mut known = read_square(item, "rates", names.len(), rate_of)?;
        if by_receiver {
            known = transposed(&known);
        }
        let rates = complete(&known, is_mirrored, &names)
            .map_err(|what| SpecError::new(&item.span, format!("rates: {what}")))?;
        let rtt = fields.time("rtt", Some(ms(60)))?;
        let rtts = match fields.get("rtts") {
            None => vec![vec![rtt; names.len()]; names.len()],
            Some(item) => {
                let to_time = |number: f64| Ok(Duration::from_nanos((number * 1e6) as u64));
                let mut rtts = read_square(item, "rtts", names.len(), to_time)?;
                if by_receiver {
                    rtts = transposed(&rtts);
                }
                let row = |row: Vec<Option<Duration>>| {
                    row.into_iter().map(|known| known.unwrap_or(rtt)).collect()
                };
                rtts.into_iter().map(row).collect()
            }
        };
        let access = match fields.get("access-rate") {
            Some(_) => vec![fields.rate("access-rate", None)?; names.len()],
            None => own_rates(&known, &rates),
        };
        let mtu = fields.count("mtu", 68..=65_535, Some(1500))?;
        let queue = match fields.get("queue") {
            Some(item) => QueueForm::read(item, mtu)?,
            None => QueueForm::default(),
        };
        Ok(Matrix { names, rates, rtts, access, queue, mtu })
    }

    /// The topology.
    pub fn build(&self) -> Topology {
        let mut builder = Builder::default();
        let hosts: Vec<_> = self.names.iter().map(|name| builder.host(name)).collect();
        let routers = |builder: &mut Builder, side: &str| -> Vec<_> {
            self.names.iter().map(|name| builder.router(format!("{name}.{side}"))).collect()
        };
        let (ups, downs) = (routers(&mut builder, "up"), routers(&mut builder, "down"));
        let way = |rate, delay, label| {
            let way = Way::new(rate, delay).queue(self.queue.clone()).label(label);
            Way { mtu: self.mtu, ..way }
        };
        for (place, &host) in hosts.iter().enumerate() {
            let access = way(self.access[place], Duration::ZERO, "access");
            builder.one_way(host, ups[place], &access);
            builder.one_way(downs[place], host, &access);
        }
        for (from, &up) in ups.iter().enumerate() {
            for (to, &down) in downs.iter().enumerate().filter(|&(to, _)| to != from) {
                let core = way(self.rates[from][to], self.rtts[from][to] / 2, "core");
                builder.one_way(up, down, &core);
            }
        }
        builder.finish()
    }
}

type Known<T> = Vec<Vec<Option<T>>>;

fn transposed<T: Copy>(rows: &Known<T>) -> Known<T> {
    (0..rows.len()).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
}

/// Fills what was not measured with the way back's rate, or refuses.
fn complete(
    known: &Known<Rate>,
    is_mirrored: bool,
    names: &[String],
) -> Result<Vec<Vec<Rate>>, String> {
    let rate = |from: usize, to: usize| {
        let back = known[to][from].filter(|_| is_mirrored);
        // A host's link to itself does not exist.
        let own = (from == to).then_some(Rate::UNLIMITED);
        known[from][to].or(back).or(own).ok_or_else(|| {
            let hint = match is_mirrored {
                true => "nor on the way back",
                false => "`missing = \"mirror\"` takes the way back's rate",
            };
            format!("from {} to {} nothing was measured; {hint}", names[from], names[to])
        })
    };
    let row = |from| (0..known.len()).map(|to| rate(from, to)).collect();
    (0..known.len()).map(row).collect()
}

/// Each host's own rate: what was measured within its site, else the best of its other rates.
fn own_rates(known: &Known<Rate>, rates: &[Vec<Rate>]) -> Vec<Rate> {
    let best = |host: usize| {
        let others = (0..rates.len()).filter(move |&other| other != host);
        others.flat_map(move |other| [rates[host][other], rates[other][host]]).max()
    };
    let own = |host: usize| known[host][host].or_else(|| best(host)).unwrap_or(Rate::UNLIMITED);
    (0..rates.len()).map(own).collect()
}

fn read_names(item: &Item) -> Read<Vec<String>> {
    let fail = |span, what: String| SpecError::new(span, format!("names: {what}"));
    let items = match &item.value {
        Value::List(items) if (2..=1000).contains(&items.len()) => items,
        _ => return Err(fail(&item.span, "a list of 2 to 1000 names".to_owned())),
    };
    let mut names: Vec<String> = Vec::new();
    for item in items {
        let name = plain_text(item).map_err(|what| fail(&item.span, what))?;
        check::name(name).map_err(|what| fail(&item.span, what))?;
        if names.iter().any(|known| known == name) {
            return Err(fail(&item.span, format!("{name:?} is there already")));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Rows of as many numbers as there are names; `"-"` where nothing was measured.
fn read_square<T: Copy>(
    item: &Item,
    key: &str,
    count: usize,
    make: impl Fn(f64) -> Result<T, String>,
) -> Read<Known<T>> {
    let fail = |item: &Item, what: String| SpecError::new(&item.span, format!("{key}: {what}"));
    let Value::List(rows) = &item.value else {
        return Err(fail(item, "a list of rows".to_owned()));
    };
    if rows.len() != count {
        return Err(fail(item, format!("{} rows for {count} names", rows.len())));
    }
    let cell = |item: &Item| match plain_text(item) {
        Ok("-") => Ok(None),
        _ => {
            let value = number(item, &(0.0..=1e12)).and_then(&make).map(Some);
            value.map_err(|what| fail(item, what))
        }
    };
    let row = |row: &Item| match &row.value {
        Value::List(cells) if cells.len() == count => cells.iter().map(cell).collect(),
        Value::List(cells) => {
            Err(fail(row, format!("{} numbers in a row for {count} names", cells.len())))
        }
        other => Err(fail(row, format!("a row is a list, not {}", other.kind()))),
    };
    rows.iter().map(row).collect()
}
