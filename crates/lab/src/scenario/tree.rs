//! A parsed file as a tree that remembers where everything stood, and in which single parameters
//! can be set by a dotted path.

use super::nearest::suggest;
use super::source::Fault;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A place in the sources.
pub(crate) type Span = Range<usize>;

/// A table.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Tree {
    entries: BTreeMap<String, Entry>,
}

/// A key of a table with its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// A value and its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Tree),
}

impl Tree {
    pub(crate) fn new(table: &DeTable<'_>, base: usize) -> Result<Tree, Fault> {
        let entry = |key: &Spanned<_>, value| {
            let node = Node::new(value, base)?;
            Ok(Entry { key_span: shift(key.span(), base), node })
        };
        let entries = table.iter().map(|(key, value)| {
            entry(key, value).map(|entry| (key.get_ref().clone().into_owned(), entry))
        });
        Ok(Tree { entries: entries.collect::<Result<_, Fault>>()? })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(crate) fn insert(&mut self, key: &str, entry: Entry) {
        self.entries.insert(key.to_owned(), entry);
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Entry> {
        self.entries.remove(key)
    }

    /// Keys and values in the order of the file.
    pub(crate) fn in_order(&self) -> Vec<(&str, &Entry)> {
        let mut entries: Vec<_> =
            self.entries.iter().map(|(key, entry)| (key.as_str(), entry)).collect();
        entries.sort_by_key(|(_, entry)| entry.key_span.start);
        entries
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

impl Node {
    fn new(value: &Spanned<DeValue<'_>>, base: usize) -> Result<Node, Fault> {
        let span = shift(value.span(), base);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(is) => Value::Bool(*is),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                let too_large = |_| Fault::new(&span, format!("{number} is too large"));
                Value::Integer(parsed.map_err(too_large)?)
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(parsed) if parsed.is_finite() => Value::Float(parsed),
                _ => return Err(Fault::new(&span, format!("{number} is not a finite number"))),
            },
            DeValue::Datetime(_) => {
                return Err(Fault::new(&span, "a date has no meaning in a scenario"));
            }
            DeValue::Array(items) => {
                let items = items.iter().map(|item| Node::new(item, base));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Table(Tree::new(table, base)?),
        };
        Ok(Node { span, value })
    }

    /// Sets the parameter at a dotted path. All but its last part must be there; members of lists
    /// are called by their `name` or `kind`, or by their number from 0.
    pub(crate) fn set(&mut self, path: &str, at: &Span, node: Node) -> Result<(), Fault> {
        let (head, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut place = self;
        for part in head.split('.').filter(|_| !head.is_empty()) {
            place =
                place.child(part).map_err(|text| Fault::new(at, format!("{path:?}: {text}")))?;
        }
        match &mut place.value {
            // The place of the path is the key's: an unknown key is reported where it was set.
            Value::Table(table) if !key.is_empty() => {
                table.insert(key, Entry { key_span: at.clone(), node });
                Ok(())
            }
            _ => Err(Fault::new(at, format!("{path:?} does not name a parameter of the file"))),
        }
    }

    fn child(&mut self, part: &str) -> Result<&mut Node, String> {
        match &mut self.value {
            Value::Table(table) => {
                let hint = suggest(part, table.keys());
                let found = table.entries.get_mut(part).map(|entry| &mut entry.node);
                found.ok_or_else(|| format!("there is no {part:?}{hint}"))
            }
            Value::List(items) => {
                let hint = suggest(part, items.iter().filter_map(Node::label));
                let found = position(items, part).and_then(|at| items.get_mut(at));
                found.ok_or_else(|| format!("nothing is called {part:?}{hint}"))
            }
            _ => Err(format!("what stands before {part:?} is a value, not a table")),
        }
    }

    /// A value from outside any file.
    pub(crate) fn from_toml(value: &toml::Value) -> Node {
        let entry = |value| Entry { key_span: 0..0, node: Node::from_toml(value) };
        let value = match value {
            toml::Value::String(text) => Value::Text(text.clone()),
            toml::Value::Integer(number) => Value::Integer(*number),
            toml::Value::Float(number) => Value::Float(*number),
            toml::Value::Boolean(is) => Value::Bool(*is),
            toml::Value::Datetime(date) => Value::Text(date.to_string()),
            toml::Value::Array(items) => Value::List(items.iter().map(Node::from_toml).collect()),
            toml::Value::Table(table) => {
                let entries = table.iter().map(|(key, value)| (key.clone(), entry(value)));
                Value::Table(Tree { entries: entries.collect() })
            }
        };
        Node { span: 0..0, value }
    }

    /// What a list's member is called: its `name`, or else its `kind`.
    pub(crate) fn label(&self) -> Option<&str> {
        let Value::Table(table) = &self.value else { return None };
        let text = |key| match &table.get(key)?.node.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        text("name").or_else(|| text("kind"))
    }
}

fn shift(span: Span, base: usize) -> Span {
    span.start + base..span.end + base
}

/// The member of a list called so: by name, by kind when only one is of it, or by number.
fn position(items: &[Node], part: &str) -> Option<usize> {
    let mut named = (0..items.len()).filter(|at| items[*at].label() == Some(part));
    match (named.next(), named.next()) {
        (Some(only), None) => Some(only),
        _ => part.parse().ok(),
    }
}
