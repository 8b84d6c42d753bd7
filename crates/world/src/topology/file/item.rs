//! A piece of TOML that knows where it stands, so that what is wrong with it can be pointed at.
//!
//! [`Item`] is deserialized by serde wherever TOML is: in a file of its own, or in a table of a
//! larger document (a scenario). Its spans are bytes of the document that was parsed.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::ops::Range;
use toml::Spanned;

/// A value and the bytes of the document where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// Where it stands.
    pub span: Range<usize>,
    /// What it is.
    pub value: Value,
}

/// A key and its value. Tables come in the order of their keys.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Where the key stands.
    pub span: Range<usize>,
    /// The key.
    pub key: String,
    /// What it is set to.
    pub item: Item,
}

/// What a document's item can be.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// Items one after another.
    List(Vec<Item>),
    /// Items by key.
    Table(Vec<Entry>),
}

impl Value {
    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Item, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Item { span: spanned.span(), value: spanned.into_inner() })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a text, a number, true or false, a list or a table")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Float(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Item>()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let (span, key) = (key.span(), key.into_inner());
            table.push(Entry { span, key, item: entries.next_value()? });
        }
        Ok(Value::Table(table))
    }
}

impl Item {
    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.value, Value::Table(_))
    }

    /// An item that stands where `span` says, from a value that has no place of its own.
    pub fn placed(value: toml::Value, span: Range<usize>) -> Item {
        let value = match value {
            toml::Value::String(text) => Value::Text(text),
            toml::Value::Integer(number) => Value::Integer(number),
            toml::Value::Float(number) => Value::Float(number),
            toml::Value::Boolean(flag) => Value::Flag(flag),
            toml::Value::Datetime(time) => Value::Text(time.to_string()),
            toml::Value::Array(items) => {
                let place = |item| Item::placed(item, span.clone());
                Value::List(items.into_iter().map(place).collect())
            }
            toml::Value::Table(entries) => {
                let place = |(key, item)| {
                    let item = Item::placed(item, span.clone());
                    Entry { span: span.clone(), key, item }
                };
                Value::Table(entries.into_iter().map(place).collect())
            }
        };
        Item { span, value }
    }

    /// Sets what `path` (keys with dots between) names, making tables on the way.
    ///
    /// # Errors
    ///
    /// The key that is not a table, when one on the way is something else.
    pub fn set(&mut self, path: &str, value: toml::Value) -> Result<(), String> {
        let span = self.span.clone();
        let mut item = self;
        for key in path.split('.') {
            let kind = item.value.kind();
            let Value::Table(entries) = &mut item.value else {
                return Err(format!("{path}: `{key}` would be set in {kind}"));
            };
            let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
                let item = Item { span: span.clone(), value: Value::Table(Vec::new()) };
                entries.push(Entry { span: span.clone(), key: key.to_owned(), item });
                entries.len() - 1
            });
            item = &mut entries[at].item;
        }
        *item = Item::placed(value, item.span.clone());
        Ok(())
    }
}
