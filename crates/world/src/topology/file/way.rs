//! Links as files write them: what each direction is like.

use super::fields::{Fields, Read, SpecError, count, size};
use super::item::{Item, Value};
use super::queue::{QueueForm, is_none};
use crate::topology::{Link, Loss, LossModel, NodeIx, Side};
use crate::units::Rate;
use anabranch_proto::time::Duration;

/// One direction of a link, without its ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Way {
    /// What it carries.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Random loss.
    pub loss: Option<Loss>,
    /// The largest packet in bytes, headers included.
    pub mtu: u32,
    /// What waits for the wire.
    pub queue: QueueForm,
    /// What kind of link it is.
    pub label: String,
}

impl Way {
    /// Without loss, with packets of up to 1500 bytes and a drop-tail queue of 100 of them.
    pub fn new(rate: Rate, delay: Duration) -> Way {
        let (queue, label) = (QueueForm::default(), String::new());
        Way { rate, delay, loss: None, mtu: 1500, queue, label }
    }

    /// With this queue.
    pub fn queue(mut self, queue: QueueForm) -> Way {
        self.queue = queue;
        self
    }

    /// With this label.
    pub fn label(mut self, label: &str) -> Way {
        self.label = label.to_owned();
        self
    }

    /// The link between two nodes.
    pub(crate) fn link(&self, from: NodeIx, to: NodeIx) -> Link {
        Link {
            from,
            to,
            rate: self.rate,
            delay: self.delay,
            loss: self.loss,
            mtu: self.mtu,
            queue: self.queue.resolve(self.rate, self.mtu),
            label: self.label.clone(),
        }
    }

    fn read(fields: &mut Fields<'_>, default: Option<&Way>, loss: LossFor) -> Read<(Way, Way)> {
        let rate = fields.rate("rate", default.map(|way| way.rate))?;
        let delay = fields.time("delay", default.map(|way| way.delay))?;
        let mtu = match fields.get("mtu") {
            Some(item) => read_mtu(item)?,
            None => default.map_or(1500, |way| way.mtu),
        };
        let label = fields.text("label", Some(default.map_or("", |way| &way.label)))?;
        let queue = match fields.get("queue") {
            Some(item) => QueueForm::read(item, mtu)?,
            None => default.map_or_else(QueueForm::default, |way| way.queue.clone()),
        };
        let (there, back) = match fields.get("loss") {
            Some(item) => read_loss(item, loss)?,
            None => (default.and_then(|way| way.loss), None),
        };
        let way = |loss| Way { rate, delay, loss, mtu, queue: queue.clone(), label: label.clone() };
        Ok((way(there), way(back)))
    }
}

/// A link in both directions.
#[derive(Clone, PartialEq, Debug)]
pub struct Ways {
    /// The way there.
    pub there: Way,
    /// The way back.
    pub back: Way,
}

impl Ways {
    /// Alike in both directions.
    pub fn same(way: Way) -> Ways {
        Ways { there: way.clone(), back: way }
    }

    /// Reads a table of link attributes; what it does not say is as in `default`.
    pub(crate) fn read(fields: &mut Fields<'_>, default: Option<&Ways>) -> Read<Ways> {
        let (there, mut back) = Way::read(fields, default.map(|ways| &ways.there), LossFor::Two)?;
        if let Some(default) = default {
            // What is stated holds for both directions; what is not keeps each direction's own.
            if fields.get("rate").is_none() {
                back.rate = default.back.rate;
            }
            if fields.get("delay").is_none() {
                back.delay = default.back.delay;
            }
            if fields.get("queue").is_none() {
                back.queue = default.back.queue.clone();
            }
            if fields.get("loss").is_none() {
                back.loss = default.back.loss;
            }
        }
        if let Some(item) = fields.get("reverse") {
            let mut reverse = Fields::of(item, "the way back (`reverse`)")?;
            back = Way::read(&mut reverse, Some(&back), LossFor::One)?.0;
            reverse.finish()?;
        }
        Ok(Ways { there, back })
    }

    /// Reads the way of a link with `one-way = true`.
    pub(crate) fn read_one_way(fields: &mut Fields<'_>) -> Read<Way> {
        let way = Way::read(fields, None, LossFor::One)?.0;
        match fields.get("reverse") {
            None => Ok(way),
            Some(item) => {
                Err(SpecError::new(&item.span, "a link with `one-way = true` has no `reverse`"))
            }
        }
    }

    /// Reads the table under `key`, if there is one, on top of `default`.
    pub(crate) fn read_at(fields: &mut Fields<'_>, key: &'static str, default: Ways) -> Read<Ways> {
        let Some(item) = fields.get(key) else { return Ok(default) };
        let mut inner = Fields::of(item, key)?;
        let ways = Ways::read(&mut inner, Some(&default))?;
        inner.finish()?;
        Ok(ways)
    }
}

/// How many directions a loss is stated for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossFor {
    /// The one that it stands with.
    One,
    /// Two: it must say which.
    Two,
}

/// `{ probability = 0.01, side = "after" }`, or the bursty form; for the way there and back.
pub(crate) fn read_loss(item: &Item, ways: LossFor) -> Read<(Option<Loss>, Option<Loss>)> {
    if is_none(item) {
        return Ok((None, None));
    }
    let mut fields = Fields::of(item, "a loss").map_err(|mut error| {
        error.what.push_str("; write it like { probability = 0.01, side = \"after\" }");
        error
    })?;
    let model = match fields.get("probability") {
        Some(_) => LossModel::Independent { probability: fields.probability("probability", None)? },
        None if fields.entries().iter().any(|entry| BURSTY.contains(&entry.key.as_str())) => {
            LossModel::GilbertElliott {
                to_bad: fields.probability("to-bad", None)?,
                to_good: fields.probability("to-good", None)?,
                loss_good: fields.probability("loss-good", Some(0.0))?,
                loss_bad: fields.probability("loss-bad", Some(1.0))?,
            }
        }
        None => {
            fields.need("probability")?;
            return fields.finish().map(|()| (None, None));
        }
    };
    let side = fields.word("side", &SIDES, None)?;
    let loss = Some(Loss { model, side });
    let both = if ways == LossFor::Two {
        let directions = [("there", (loss, None)), ("back", (None, loss)), ("both", (loss, loss))];
        fields.word("direction", &directions, None)?
    } else {
        (loss, None)
    };
    fields.finish()?;
    Ok(both)
}

const BURSTY: [&str; 4] = ["to-bad", "to-good", "loss-good", "loss-bad"];

/// Sides of a link's queue, as files name them.
pub(crate) const SIDES: [(&str, Side); 2] = [("before", Side::Before), ("after", Side::After)];

/// Bytes, with or without the unit: an MTU has no other.
fn read_mtu(item: &Item) -> Read<u32> {
    let range = 68..=65_535;
    let fail = |what| SpecError::new(&item.span, format!("mtu: {what}"));
    if matches!(item.value, Value::Integer(_)) {
        return count(item, &range).map_err(fail);
    }
    let bytes = size(item).map_err(fail)?;
    u32::try_from(bytes)
        .ok()
        .filter(|mtu| range.contains(mtu))
        .ok_or_else(|| fail(format!("{bytes} is not between 68 and 65535 bytes")))
}
