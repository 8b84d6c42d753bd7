//! Reading a table key by key: whoever reads asks for the keys there may be, and [`Reader::finish`]
//! refuses what nobody asked for, with the nearest key that was.

use super::nearest::{is_near, list, suggest};
use super::quantity;
use super::source::Fault;
use super::tree::{Node, Span, Tree, Value};
use anabranch_proto::time::Duration;
use anabranch_world::units::Rate;

/// A table that is being read.
pub(crate) struct Reader<'a> {
    tree: &'a Tree,
    /// Where faults of the whole table point.
    span: Span,
    /// The table's name, for messages: `[measure]`.
    what: String,
    asked: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(tree: &'a Tree, span: &Span, what: impl Into<String>) -> Reader<'a> {
        Reader { tree, span: span.clone(), what: what.into(), asked: Vec::new() }
    }

    /// A reader of a node, which must be a table.
    pub(crate) fn of(node: &'a Node, what: impl Into<String>) -> Result<Reader<'a>, Fault> {
        let what = what.into();
        match &node.value {
            Value::Table(tree) => Ok(Reader::new(tree, &node.span, what)),
            other => {
                Err(Fault::new(&node.span, format!("{what} is a table, not {}", other.what())))
            }
        }
    }

    /// The place of the table.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The place of a key's value, or else of the table.
    pub(crate) fn span_of(&self, key: &str) -> Span {
        self.tree.get(key).map_or(self.span.clone(), |entry| entry.node.span.clone())
    }

    /// The value of a key, if it is there.
    pub(crate) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        self.tree.get(key).map(|entry| &entry.node)
    }

    /// The value of a key, if it is there and makes sense.
    pub(crate) fn optional<T: FromNode>(&mut self, key: &'static str) -> Result<Option<T>, Fault> {
        self.node(key).map(|node| from_node(key, node)).transpose()
    }

    /// The value of a key, or else `default`.
    pub(crate) fn or<T: FromNode>(&mut self, key: &'static str, default: T) -> Result<T, Fault> {
        Ok(self.optional(key)?.unwrap_or(default))
    }

    /// The value of a key that must be there.
    pub(crate) fn required<T: FromNode>(&mut self, key: &'static str) -> Result<T, Fault> {
        let found = self.optional(key)?;
        found.ok_or_else(|| self.missing(key))
    }

    /// A key that must be there is not; perhaps it was misspelled.
    fn missing(&self, key: &str) -> Fault {
        let is_slip = |other: &str| !self.asked.contains(&other) && is_near(other, key);
        match self.tree.in_order().into_iter().find(|(other, _)| is_slip(other)) {
            Some((other, entry)) => Fault::new(
                &entry.key_span,
                format!("{} has no key {other:?}; did you mean {key:?}?", self.what),
            ),
            None => self.fault(format!("{} needs `{key}`", self.what)),
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Fault> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let Value::Text(text) = &node.value else {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            return Err(Fault::new(&node.span, format!("`{key}` is {}", list(&known))));
        };
        match words.iter().find(|(word, _)| word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let hint = suggest(text, words.iter().map(|(word, _)| *word));
                Err(Fault::new(&node.span, format!("`{key}` cannot be {text:?}{hint}")))
            }
        }
    }

    /// A fault of the whole table.
    pub(crate) fn fault(&self, text: impl Into<String>) -> Fault {
        Fault::new(&self.span, text)
    }

    /// Refuses keys that nobody asked for.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        let unknown = self.tree.in_order().into_iter().find(|(key, _)| !self.asked.contains(key));
        match unknown {
            None => Ok(()),
            Some((key, entry)) => {
                let hint = suggest(key, self.asked.iter().copied());
                let text = format!("{} has no key {key:?}{hint}", self.what);
                Err(Fault::new(&entry.key_span, text))
            }
        }
    }
}

/// Something that a value can mean.
pub(crate) trait FromNode: Sized {
    /// The meaning of `node`; the text of a fault is about the value only.
    fn from_node(node: &Node) -> Result<Self, Fault>;
}

/// The meaning of a key's value.
pub(crate) fn from_node<T: FromNode>(key: &str, node: &Node) -> Result<T, Fault> {
    T::from_node(node).map_err(|fault| Fault { text: format!("`{key}`: {}", fault.text), ..fault })
}

impl Value {
    /// What it is, for messages.
    pub(crate) fn what(&self) -> String {
        match self {
            Value::Text(text) => format!("the text {text:?}"),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Bool(is) => is.to_string(),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }
}

impl Node {
    fn fault(&self, expected: &str) -> Fault {
        Fault::new(&self.span, format!("{} stands where {expected} is meant", self.value.what()))
    }

    /// A quantity with a unit, by `parse`.
    fn quantity<T>(
        &self,
        dimension: quantity::Dimension,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Fault> {
        let example = dimension.example();
        match &self.value {
            Value::Text(text) => parse(text).map_err(|text| Fault::new(&self.span, text)),
            Value::Integer(_) | Value::Float(_) => {
                let text = format!("{} has no unit; write it like {example}", self.value.what());
                Err(Fault::new(&self.span, text))
            }
            _ => Err(self.fault(&format!("a text like {example}"))),
        }
    }
}

impl FromNode for String {
    fn from_node(node: &Node) -> Result<String, Fault> {
        match &node.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(node.fault("a text")),
        }
    }
}

impl FromNode for bool {
    fn from_node(node: &Node) -> Result<bool, Fault> {
        match node.value {
            Value::Bool(is) => Ok(is),
            _ => Err(node.fault("true or false")),
        }
    }
}

impl FromNode for f64 {
    fn from_node(node: &Node) -> Result<f64, Fault> {
        match node.value {
            Value::Integer(number) => Ok(number as f64),
            Value::Float(number) => Ok(number),
            _ => Err(node.fault("a number")),
        }
    }
}

impl FromNode for u32 {
    fn from_node(node: &Node) -> Result<u32, Fault> {
        match node.value {
            Value::Integer(number) => u32::try_from(number).map_err(|_| {
                Fault::new(
                    &node.span,
                    format!("{number} is not a whole number from 0 to 4294967295"),
                )
            }),
            _ => Err(node.fault("a whole number")),
        }
    }
}

impl FromNode for u64 {
    fn from_node(node: &Node) -> Result<u64, Fault> {
        match node.value {
            Value::Integer(number) => u64::try_from(number)
                .map_err(|_| Fault::new(&node.span, format!("{number} is negative"))),
            _ => Err(node.fault("a whole number")),
        }
    }
}

impl FromNode for Duration {
    fn from_node(node: &Node) -> Result<Duration, Fault> {
        node.quantity(quantity::Dimension::Time, quantity::time)
    }
}

impl FromNode for Rate {
    fn from_node(node: &Node) -> Result<Rate, Fault> {
        node.quantity(quantity::Dimension::Rate, quantity::rate)
    }
}

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

impl FromNode for Bytes {
    fn from_node(node: &Node) -> Result<Bytes, Fault> {
        node.quantity(quantity::Dimension::Size, quantity::size).map(Bytes)
    }
}

/// Bytes per second, perhaps none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RateOrSilence(pub(crate) f64);

impl FromNode for RateOrSilence {
    fn from_node(node: &Node) -> Result<RateOrSilence, Fault> {
        let rate = quantity::Dimension::Rate;
        node.quantity(rate, |text| rate.parse(text)).map(RateOrSilence)
    }
}

/// Arrivals per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PerSecond(pub(crate) f64);

impl FromNode for PerSecond {
    fn from_node(node: &Node) -> Result<PerSecond, Fault> {
        let arrivals = quantity::Dimension::Arrivals;
        node.quantity(arrivals, |text| arrivals.parse(text)).map(PerSecond)
    }
}

/// A share or probability.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Share(pub(crate) f64);

impl FromNode for Share {
    fn from_node(node: &Node) -> Result<Share, Fault> {
        let number = f64::from_node(node)?;
        if (0.0..=1.0).contains(&number) {
            Ok(Share(number))
        } else {
            Err(Fault::new(&node.span, format!("{number} is not between 0 and 1")))
        }
    }
}

/// One, or a list.
impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: &Node) -> Result<Vec<T>, Fault> {
        match &node.value {
            Value::List(items) => items.iter().map(T::from_node).collect(),
            _ => T::from_node(node).map(|only| vec![only]),
        }
    }
}
