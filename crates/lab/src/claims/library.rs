//! The claims that come with the program.

use super::{Check, Claim};

/// Why no claim can be read or found.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A claim's file is wrong.
    #[error("claim file {file}: {error}")]
    Broken {
        /// The file.
        file: String,
        /// What is wrong, with the line.
        error: String,
    },
    /// Nothing is called so.
    #[error("there is no claim {wanted:?}{hint}; `anabranch lab claims --list` shows them all")]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// The nearest name.
        hint: String,
    },
}

impl Claim {
    /// Reads a claim.
    ///
    /// # Errors
    /// When the text is no claim: unknown keys, missing ones, a check without bounds, a run that
    /// does not exist.
    pub fn from_toml(file: &str, text: &str) -> Result<Claim, LibraryError> {
        let broken = |error| LibraryError::Broken { file: file.to_owned(), error };
        let claim: Claim = toml::from_str(text).map_err(|error| broken(error.to_string()))?;
        claim.verify().map_err(broken)?;
        Ok(claim)
    }

    /// The family: what is before the first dot of the id.
    pub fn family(&self) -> &str {
        self.id.split_once('.').map_or(self.id.as_str(), |(family, _)| family)
    }

    /// The run that is meant where none is named.
    pub(super) fn first_run(&self) -> &str {
        self.runs.first().map_or("", |run| run.name.as_str())
    }

    /// The check that the broken variant must fail.
    pub(super) fn broken_check(&self) -> Option<&Check> {
        let wanted = &self.broken.as_ref()?.check;
        self.checks.iter().find(|check| &check.what == wanted)
    }

    fn verify(&self) -> Result<(), String> {
        let is_run = |run: &Option<String>| {
            run.as_ref().is_none_or(|name| self.runs.iter().any(|run| &run.name == name))
        };
        let unknown = |what: &str| Err(format!("{what:?} names a run that does not exist"));
        for figure in &self.figures {
            if !is_run(&figure.run) {
                return unknown(&figure.name);
            }
        }
        for check in &self.checks {
            let other = check.against.as_ref().and_then(|against| against.run.clone());
            if !is_run(&check.run) || !is_run(&other) {
                return unknown(&check.what);
            }
            if check.min.is_none() && check.max.is_none() {
                return Err(format!("the check {:?} has neither min nor max", check.what));
            }
        }
        match &self.broken {
            Some(broken) if self.broken_check().is_none() => Err(format!(
                "the broken variant names a check that does not exist: {:?}",
                broken.check
            )),
            _ => Ok(()),
        }
    }
}

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../claims/", $name, ".toml")))),*]
    };
}

/// Every claim whose systems exist, by family, in the order of the papers.
const FILES: &[(&str, &str)] = embedded![
    "plt.loss",
    "plt.flows",
    "plt.bdp",
    "plt.fairness",
    "plt.mice",
    "plt.tcp-friendly",
    "plt.hcm-independence",
    "plt.rwnd",
    "plt.real.shutdown",
    "bp.static",
    "bp.dynamic",
    "bp.requests",
    "bp.peers",
    "bp.outstanding",
    "bp.last-block",
    "bp.scale",
    "bp.startup",
    "bp.overhead",
];

/// Every claim.
///
/// # Errors
/// When a file is wrong, which a test excludes for those that come with the program.
pub fn all() -> Result<Vec<Claim>, LibraryError> {
    FILES.iter().map(|(name, text)| Claim::from_toml(&format!("{name}.toml"), text)).collect()
}

/// The claims that `wanted` names: an id, or a prefix that ends where a part of an id ends
/// (`plt`). Nothing wanted is everything. Each comes once, in the library's order.
///
/// # Errors
/// When a name fits no claim.
pub fn find(wanted: &[String]) -> Result<Vec<Claim>, LibraryError> {
    let claims = all()?;
    for name in wanted {
        if !claims.iter().any(|claim| is_named(claim, name)) {
            let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
            let hint = nearest(name, &ids).map(|id| format!(", but {id:?}")).unwrap_or_default();
            return Err(LibraryError::Unknown { wanted: name.clone(), hint });
        }
    }
    let is_wanted =
        |claim: &Claim| wanted.is_empty() || wanted.iter().any(|name| is_named(claim, name));
    Ok(claims.into_iter().filter(is_wanted).collect())
}

fn is_named(claim: &Claim, name: &str) -> bool {
    let name = name.trim_end_matches(['.', '*']);
    !name.is_empty()
        && claim
            .id
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

/// The id that is spelt most like `name`, if any is near.
fn nearest<'a>(name: &str, ids: &[&'a str]) -> Option<&'a str> {
    let similarity = |id: &str| strsim::jaro_winkler(name, id);
    let best = ids.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    (similarity(best) > 0.8).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        find(&wanted).unwrap().into_iter().map(|claim| claim.id).collect()
    }

    #[test]
    fn every_claim_file_is_read_and_is_named_as_its_id() {
        let claims = all().unwrap();
        for (claim, (name, _)) in claims.iter().zip(FILES) {
            assert_eq!(&claim.id, name);
            assert!(!claim.checks.is_empty() && !claim.figures.is_empty(), "{name}");
        }
    }

    #[test]
    fn each_family_has_a_broken_variant() {
        let claims = all().unwrap();
        let families: std::collections::BTreeSet<&str> =
            claims.iter().map(|claim| claim.family()).collect();
        for family in families {
            let mut of_family = claims.iter().filter(|claim| claim.family() == family);
            assert!(of_family.any(|claim| claim.broken.is_some()), "{family}");
        }
    }

    #[test]
    fn a_prefix_names_a_family_and_half_a_word_names_nothing() {
        assert_eq!(ids(&["plt"])[..3], ["plt.loss", "plt.flows", "plt.bdp"]);
        assert_eq!(ids(&["plt.bdp", "plt.loss", "plt.bdp"]), ["plt.loss", "plt.bdp"]);
        assert_eq!(ids(&[]).len(), FILES.len());
        let error = find(&["plt.los".into()]).unwrap_err().to_string();
        assert!(error.contains("plt.loss"), "{error}");
    }

    #[test]
    fn a_check_without_bounds_and_a_run_that_does_not_exist_are_refused() {
        let text = FILES[2].1;
        assert!(text.contains("min = 0.94\n"));
        let error = Claim::from_toml("x", &text.replace("min = 0.94\n", "")).unwrap_err();
        assert!(error.to_string().contains("neither min nor max"), "{error}");
        let unknown = text.replacen("[[check]]", "[[check]]\nrun = \"nowhere\"", 1);
        let error = Claim::from_toml("x", &unknown).unwrap_err();
        assert!(error.to_string().contains("a run that does not exist"), "{error}");
        let misspelt = text.replacen("metric =", "metrics =", 1);
        assert!(Claim::from_toml("x", &misspelt).unwrap_err().to_string().contains("metrics"));
    }
}
