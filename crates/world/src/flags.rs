//! `--name value` flags for this crate's programs, and the wall clock they report.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Instant;

/// Flags of a command line; each is taken once, and none may be left over.
#[derive(Debug, Default)]
pub struct Flags {
    values: BTreeMap<String, Option<String>>,
}

impl Flags {
    /// This program's flags.
    pub fn from_env() -> Result<Flags, String> {
        Flags::parse(std::env::args().skip(1))
    }

    /// Reads `--name value` pairs and `--name` switches.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Flags, String> {
        let mut values = BTreeMap::new();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                return Err(format!("{word:?} is not a flag"));
            };
            let value = words.next_if(|next| !next.starts_with("--"));
            if values.insert(name.to_owned(), value).is_some() {
                return Err(format!("--{name} is given twice"));
            }
        }
        Ok(Flags { values })
    }

    /// The value of `--name`, when it is given.
    pub fn take<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        match self.values.remove(name) {
            None => Ok(None),
            Some(None) => Err(format!("--{name} needs a value")),
            Some(Some(text)) => match text.parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(format!("--{name} {text}: not understood")),
            },
        }
    }

    /// Whether the switch `--name` is given.
    pub fn take_switch(&mut self, name: &str) -> bool {
        self.values.remove(name).is_some()
    }

    /// Refuses flags that nobody took.
    pub fn finish(self) -> Result<(), String> {
        match self.values.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("unknown flag --{name}")),
        }
    }
}

/// Now, for programs that report how long a run took; nothing simulated may see it.
#[expect(clippy::disallowed_methods, reason = "the run's own duration, outside the simulation")]
pub fn wall_clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Result<Flags, String> {
        Flags::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_are_taken_once_and_none_may_be_left_over() {
        let mut flags = flags("--nodes 7 --check --rate 1.5").unwrap();
        assert_eq!(flags.take("nodes"), Ok(Some(7)));
        assert_eq!(flags.take::<u32>("nodes"), Ok(None));
        assert!(flags.take_switch("check"));
        assert_eq!(flags.finish(), Err("unknown flag --rate".into()));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(flags("nodes").unwrap_err(), "\"nodes\" is not a flag");
        assert_eq!(flags("--a 1 --a 2").unwrap_err(), "--a is given twice");
        assert_eq!(flags("--a").unwrap().take::<u8>("a"), Err("--a needs a value".into()));
        assert_eq!(flags("--a x").unwrap().take::<u8>("a"), Err("--a x: not understood".into()));
    }
}
