//! Finished runs, one file each, named by all that their result depends on.

use crate::engine::Outcome;
use crate::table::{Table, Value};
use serde_json::{Value as Json, json};
use std::io;
use std::path::PathBuf;

/// Where finished runs are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A cache in `folder`, which is made when the first run is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// The outcome of the run named by `key`, if it is there and whole.
    pub fn load(&self, key: &str) -> Option<Outcome> {
        let text = std::fs::read_to_string(self.path(key)).ok()?;
        from_json(&serde_json::from_str(&text).ok()?)
    }

    /// Keeps an outcome; it appears complete or not at all.
    ///
    /// # Errors
    ///
    /// When the disk does not take it.
    pub fn store(&self, key: &str, outcome: &Outcome) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let (path, text) = (self.path(key), to_json(outcome).to_string());
        let partial = path.with_extension("partial");
        std::fs::write(&partial, text)?;
        std::fs::rename(partial, path)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

fn to_json(outcome: &Outcome) -> Json {
    let scalars: Vec<Json> =
        outcome.scalars.iter().map(|(name, value)| json!([name, value])).collect();
    let tables: Vec<Json> = outcome.tables.iter().map(table_to_json).collect();
    json!({ "v": VERSION, "scalars": scalars, "tables": tables })
}

fn table_to_json(table: &Table) -> Json {
    let cell = |value: &Value| match value {
        Value::Number(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Missing => Json::Null,
    };
    let rows: Vec<Json> =
        table.rows.iter().map(|row| Json::Array(row.iter().map(cell).collect())).collect();
    json!({ "name": table.name, "columns": table.columns, "rows": rows })
}

fn from_json(json: &Json) -> Option<Outcome> {
    if json["v"] != VERSION {
        return None;
    }
    let scalar = |pair: &Json| Some((pair[0].as_str()?.to_owned(), pair[1].as_f64()?));
    let scalars = json["scalars"].as_array()?.iter().map(scalar).collect::<Option<_>>()?;
    let tables = json["tables"].as_array()?.iter().map(table_from_json).collect::<Option<_>>()?;
    Some(Outcome { scalars, tables })
}

fn table_from_json(json: &Json) -> Option<Table> {
    let cell = |value: &Json| match value {
        Json::Null => Some(Value::Missing),
        Json::String(text) => Some(Value::Text(text.clone())),
        other => other.as_f64().map(Value::Number),
    };
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let row = |row: &Json| row.as_array()?.iter().map(cell).collect::<Option<Vec<_>>>();
    Some(Table {
        name: text(&json["name"])?,
        columns: json["columns"].as_array()?.iter().map(text).collect::<Option<_>>()?,
        rows: json["rows"].as_array()?.iter().map(row).collect::<Option<_>>()?,
    })
}

/// The form of these files.
const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outcome(numbers: &[f64]) -> Outcome {
        let mut table = Table::new("flows", &["flow", "rate"]);
        for number in numbers {
            table.push(vec!["a \"flow\"\n".into(), Value::Number(*number)]);
            table.push(vec![Value::Missing]);
        }
        let scalars = numbers.iter().map(|number| ("x".to_owned(), *number)).collect();
        Outcome { scalars, tables: vec![table] }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_read_back_to_the_last_bit(
            numbers in prop::collection::vec(-1e300..1e300, 0..20),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let cache = Cache::new(folder.path().join("runs"));
            let outcome = outcome(&numbers);
            cache.store("k", &outcome).unwrap();
            prop_assert_eq!(cache.load("k"), Some(outcome));
        }
    }

    #[test]
    fn a_file_that_is_cut_off_or_of_another_form_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        assert_eq!(cache.load("k"), None);
        cache.store("k", &outcome(&[1.0, 2.0])).unwrap();
        let text = std::fs::read_to_string(folder.path().join("k.json")).unwrap();
        for broken in [&text[..text.len() / 2], "", "[]", &text.replace("\"v\":1", "\"v\":0")] {
            std::fs::write(folder.path().join("k.json"), broken).unwrap();
            assert_eq!(cache.load("k"), None, "{broken}");
        }
    }
}
