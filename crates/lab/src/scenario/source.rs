//! Where a scenario's parts came from, so that an error can point at the line.
//!
//! A scenario may take in a second file, its topology. All places are offsets in one run of
//! text: the files end to end.

use super::tree::Tree;
use std::ops::Range;
use thiserror::Error;
use toml::de::DeTable;

/// What is wrong with a scenario: one sentence that says what, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}:{line}: {text}")]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What, and what to do.
    pub text: String,
}

/// A fault at a place; becomes a [`ScenarioError`] with the texts at hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(span: &Range<usize>, text: impl Into<String>) -> Fault {
        Fault { span: span.clone(), text: text.into() }
    }
}

/// The files of a scenario, end to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    files: Vec<Source>,
}

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
    base: usize,
}

impl Sources {
    /// Takes in a file and parses it; the places in the tree are offsets in all files.
    pub(crate) fn add(&mut self, name: &str, text: &str) -> Result<Tree, ScenarioError> {
        let base = self.files.last().map_or(0, |last| last.base + last.text.len() + 1);
        self.files.push(Source { name: name.to_owned(), text: text.to_owned(), base });
        let parsed = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.error(&Fault {
                span: span.start + base..span.end + base,
                text: one_line(error.message()),
            })
        })?;
        Tree::new(parsed.get_ref(), base).map_err(|fault| self.error(&fault))
    }

    /// The fault with its file and line.
    pub(crate) fn error(&self, fault: &Fault) -> ScenarioError {
        let at = fault.span.start;
        let source = self.files.iter().rev().find(|source| source.base <= at);
        let (file, line) = source.map_or((String::new(), 1), |source| {
            let end = (at - source.base).min(source.text.len());
            let before = source.text.as_bytes()[..end].iter();
            (source.name.clone(), 1 + before.filter(|byte| **byte == b'\n').count())
        });
        ScenarioError { file, line, text: fault.text.clone() }
    }
}

/// A parser's message as one sentence.
pub(crate) fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(": ")
}
