//! Reading a table's keys one by one: what was not asked for is unknown, and every mistake
//! becomes one sentence that names the key.

use super::item::{Entry, Item, Value};
use crate::units::{Rate, text};
use anabranch_proto::time::Duration;
use std::ops::{Range, RangeInclusive};
use thiserror::Error;

/// What is wrong with a document, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{what}")]
pub struct SpecError {
    /// The bytes of the document that are wrong.
    pub span: Range<usize>,
    /// One sentence.
    pub what: String,
}

impl SpecError {
    pub(crate) fn new(span: &Range<usize>, what: impl Into<String>) -> SpecError {
        SpecError { span: span.clone(), what: what.into() }
    }
}

pub(crate) type Read<T> = Result<T, SpecError>;

/// A table that is being read. Every way out must pass [`Fields::finish`].
pub(crate) struct Fields<'a> {
    /// Where the table stands.
    pub(crate) span: Range<usize>,
    what: &'static str,
    entries: &'a [Entry],
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// The fields of `item`, which is `what` (`"a link"`).
    pub(crate) fn of(item: &'a Item, what: &'static str) -> Read<Fields<'a>> {
        match &item.value {
            Value::Table(entries) => {
                Ok(Fields { span: item.span.clone(), what, entries, asked: Vec::new() })
            }
            other => {
                let kind = other.kind();
                Err(SpecError::new(&item.span, format!("{what} is a table, not {kind}")))
            }
        }
    }

    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'a Item> {
        self.asked.push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    pub(crate) fn need(&mut self, key: &'static str) -> Read<&'a Item> {
        if let Some(item) = self.get(key) {
            return Ok(item);
        }
        // A misspelt key says more than that the right one is missing.
        let unknown = self.entries.iter().find(|entry| {
            !self.asked.contains(&entry.key.as_str()) && strsim::jaro(&entry.key, key) > LIKE
        });
        Err(match unknown {
            Some(entry) => SpecError::new(&entry.span, unknown_key(&entry.key, self.what, &[key])),
            None => SpecError::new(&self.span, format!("{} needs `{key}`", self.what)),
        })
    }

    /// An error unless every key was asked for.
    pub(crate) fn finish(self) -> Read<()> {
        let is_known = |entry: &&Entry| self.asked.contains(&entry.key.as_str());
        let unknown = self.entries.iter().filter(|entry| !is_known(entry));
        match unknown.min_by_key(|entry| entry.span.start) {
            None => Ok(()),
            Some(entry) => {
                let what = unknown_key(&entry.key, self.what, &self.asked);
                Err(SpecError::new(&entry.span, what))
            }
        }
    }

    /// All entries, for tables whose keys are free.
    pub(crate) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    pub(crate) fn rate(&mut self, key: &'static str, default: Option<Rate>) -> Read<Rate> {
        self.read(key, default, rate)
    }

    pub(crate) fn time(&mut self, key: &'static str, default: Option<Duration>) -> Read<Duration> {
        self.read(key, default, time)
    }

    pub(crate) fn text(&mut self, key: &'static str, default: Option<&str>) -> Read<String> {
        self.read(key, default.map(str::to_owned), |item| Ok(plain_text(item)?.to_owned()))
    }

    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> Read<bool> {
        self.read(key, Some(default), |item| match item.value {
            Value::Flag(flag) => Ok(flag),
            ref other => Err(format!("this is {}, not true or false", other.kind())),
        })
    }

    pub(crate) fn count(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
        default: Option<u32>,
    ) -> Read<u32> {
        self.read(key, default, |item| count(item, &range))
    }

    pub(crate) fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
        default: Option<f64>,
    ) -> Read<f64> {
        self.read(key, default, |item| number(item, &range))
    }

    pub(crate) fn probability(&mut self, key: &'static str, default: Option<f64>) -> Read<f64> {
        self.read(key, default, probability)
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        default: Option<T>,
    ) -> Read<T> {
        if default.is_none() {
            self.need(key).map_err(|mut error| {
                if error.what.ends_with(&format!("needs `{key}`")) {
                    let words: Vec<&str> = words.iter().map(|word| word.0).collect();
                    error.what.push_str(&format!(": {}", list(&words)));
                }
                error
            })?;
        }
        self.read(key, default, |item| {
            let text = plain_text(item)?;
            words.iter().find(|word| word.0 == text).map(|word| word.1).ok_or_else(|| {
                let words: Vec<&str> = words.iter().map(|word| word.0).collect();
                format!("{text:?} is none of {}{}", list(&words), nearest(text, &words))
            })
        })
    }

    /// A pair `[least, most]` of what `one` reads.
    pub(crate) fn range<T: PartialOrd + Copy>(
        &mut self,
        key: &'static str,
        default: Option<(T, T)>,
        one: impl Fn(&Item) -> Result<T, String>,
    ) -> Read<(T, T)> {
        self.read(key, default, |item| {
            let Value::List(items) = &item.value else {
                let both = one(item)?;
                return Ok((both, both));
            };
            let [least, most] = items.as_slice() else {
                return Err("a range is [least, most]".to_owned());
            };
            let (least, most) = (one(least)?, one(most)?);
            if least > most {
                Err("a range is [least, most]".to_owned())
            } else {
                Ok((least, most))
            }
        })
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        default: Option<T>,
        read: impl FnOnce(&Item) -> Result<T, String>,
    ) -> Read<T> {
        let item = match default {
            Some(default) => match self.get(key) {
                Some(item) => item,
                None => return Ok(default),
            },
            None => self.need(key)?,
        };
        read(item).map_err(|what| SpecError::new(&item.span, format!("{key}: {what}")))
    }
}

pub(crate) fn plain_text(item: &Item) -> Result<&str, String> {
    match &item.value {
        Value::Text(text) => Ok(text),
        other => Err(format!("this is {}, not a text", other.kind())),
    }
}

/// A quantity's text; a bare number is handed on, so that the missing unit is what is said.
fn quantity(item: &Item) -> Result<String, String> {
    let text = match &item.value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        other => return Err(format!("this is {}, not a quantity", other.kind())),
    };
    if text.trim_start().starts_with('-') {
        return Err(format!("{text:?} is negative"));
    }
    Ok(text)
}

pub(crate) fn rate(item: &Item) -> Result<Rate, String> {
    let text = quantity(item)?;
    let bytes = text::rate(&text).map_err(|error| match error {
        text::UnitError::Number(..) if text.starts_with('0') => {
            format!("{text:?} carries nothing; a link that is down is a change with `down = true`")
        }
        error => error.to_string(),
    })?;
    Ok(Rate::bytes_per_sec(bytes))
}

pub(crate) fn time(item: &Item) -> Result<Duration, String> {
    let time = text::time(&quantity(item)?).map_err(|error| error.to_string())?;
    // A run's clock counts nanoseconds in 64 bits; three years is beyond any experiment.
    if time > TIME_MAX { Err("longer than a thousand days".to_owned()) } else { Ok(time) }
}

pub(crate) fn size(item: &Item) -> Result<u64, String> {
    text::size(&quantity(item)?).map_err(|error| error.to_string())
}

pub(crate) fn number(item: &Item, range: &RangeInclusive<f64>) -> Result<f64, String> {
    let number = match item.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        ref other => return Err(format!("this is {}, not a number", other.kind())),
    };
    if range.contains(&number) {
        return Ok(number);
    }
    Err(format!("{number} is not between {} and {}", range.start(), range.end()))
}

pub(crate) fn probability(item: &Item) -> Result<f64, String> {
    number(item, &(0.0..=1.0)).map_err(|what| match item.value {
        Value::Integer(_) | Value::Float(_) => format!("{what}, as a probability is"),
        _ => what,
    })
}

pub(crate) fn count(item: &Item, range: &RangeInclusive<u32>) -> Result<u32, String> {
    let Value::Integer(number) = item.value else {
        return Err(format!("this is {}, not a whole number", item.value.kind()));
    };
    u32::try_from(number)
        .ok()
        .filter(|count| range.contains(count))
        .ok_or_else(|| format!("{number} is not between {} and {}", range.start(), range.end()))
}

/// `` unknown key `rat` in a link: did you mean `rate`? ``
fn unknown_key(key: &str, what: &str, known: &[&str]) -> String {
    let guess = nearest(key, known);
    if guess.is_empty() {
        // A key that was asked for twice is named once.
        let first = |at: &usize| !known[..*at].contains(&known[*at]);
        let named: Vec<&str> = (0..known.len()).filter(first).map(|at| known[at]).collect();
        return format!("unknown key `{key}` in {what}, which knows {}", list(&named));
    }
    format!("unknown key `{key}` in {what}{guess}")
}

/// `: did you mean …?`, when one of `known` is like `text`.
pub(crate) fn nearest(text: &str, known: &[&str]) -> String {
    let likeness = |word: &&&str| strsim::jaro(&text.to_lowercase(), &word.to_lowercase());
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|word| likeness(word) > LIKE)
        .map_or(String::new(), |word| format!(": did you mean `{word}`?"))
}

/// `a, b and c`.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// From here on two spellings are like each other (Jaro's measure).
const LIKE: f64 = 0.7;
const TIME_MAX: Duration = Duration::from_secs(1000 * 86_400);
