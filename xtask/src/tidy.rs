//! What no compiler checks: lengths of files, arrows between crates, words that do not belong.

use crate::run::{Failure, root};
use std::path::Path;
use std::process::Command;

/// Lines of a source file's production part: a warning above the first, a failure above the other.
const LINES_REVIEW: usize = 600;
const LINES_MAX: usize = 1000;

/// What each crate of ours may depend on, outside its tests.
const ARROWS: [(&str, &[&str]); 5] = [
    ("proto", &[]),
    ("world", &["anabranch-proto"]),
    ("node", &["anabranch-proto"]),
    ("lab", &["anabranch-proto", "anabranch-world"]),
    ("cli", &["anabranch-proto", "anabranch-node", "anabranch-world", "anabranch-lab"]),
];

/// Text that must not be in any tracked file; written in two parts, since this file is tracked.
const FORBIDDEN: [(&str, &str); 6] = [
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/tmp/", "wt"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("../sha", "red"), "a path outside the project"),
    (concat!("TO", "DO"), "open work belongs into an issue"),
    (concat!("FIX", "ME"), "open work belongs into an issue"),
];

/// Checks everything, prints every finding, fails when one is more than a warning.
pub(crate) fn run() -> Result<(), Failure> {
    let mut findings = Vec::new();
    for path in tracked()? {
        // A tracked file may be deleted, and pictures are no text.
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        findings.extend(in_text(&path, &text));
        if path.ends_with(".rs") {
            findings.extend(in_source(&path, &text));
        }
        if path == "Cargo.lock" {
            findings.extend(in_lock(&text));
        }
    }
    for (name, allowed) in ARROWS {
        let path = format!("crates/{name}/Cargo.toml");
        let manifest = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        findings.extend(in_manifest(&path, &manifest, allowed));
    }
    findings.iter().for_each(|finding| eprintln!("tidy: {finding}"));
    match findings.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} untidy places, listed above"))),
    }
}

/// The files under version control, as paths from the root.
fn tracked() -> Result<Vec<String>, Failure> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .map_err(|error| Failure::missing(format!("git could not be started: {error}")))?;
    if !output.status.success() {
        return Err(Failure::missing("`git ls-files` failed: this must be a git checkout"));
    }
    let list = String::from_utf8_lossy(&output.stdout);
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn in_text(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (word, why) in FORBIDDEN {
            if line.contains(word) {
                findings.push(format!("{path}:{}: {word:?}: {why}", index + 1));
            }
        }
        if line.ends_with([' ', '\t']) {
            findings.push(format!("{path}:{}: white space at the end of the line", index + 1));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(format!("{path}: the last line does not end"));
    }
    findings
}

fn in_source(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let is_test = path.ends_with("_tests.rs")
        || Path::new(path).iter().any(|part| part == "tests" || part == "tests.rs");
    if !is_test {
        let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let lines = text[..tests].lines().count();
        if lines > LINES_MAX {
            findings.push(format!("{path}: {lines} lines, at most {LINES_MAX}: split it"));
        } else if lines > LINES_REVIEW {
            eprintln!("tidy: {path}: {lines} lines; above {LINES_REVIEW} it should be split");
        }
    }
    let has_doc = text.trim_start().starts_with("//!");
    if path.starts_with("crates/") && path.contains("/src/") && !has_doc && !is_test {
        findings.push(format!("{path}: no module documentation at its top"));
    }
    findings
}

/// Whoever builds from the lock file gets the same packages, whatever mirror wrote it.
fn in_lock(text: &str) -> Vec<String> {
    let foreign = text.lines().filter(|line| line.starts_with("source = "));
    foreign
        .filter(|line| !line.contains("\"registry+https://github.com/rust-lang/"))
        .map(|line| format!("Cargo.lock: {line}: not the public registry"))
        .collect()
}

fn in_manifest(path: &str, manifest: &str, allowed: &[&str]) -> Vec<String> {
    let mut section = "";
    let mut findings = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_ours = name.starts_with("anabranch-");
        if section == "[dependencies]" && is_ours && !allowed.contains(&name) {
            findings.push(format!("{path}: must not depend on {name}"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_points_upwards_is_found() {
        let manifest = "[dependencies]\nanabranch-node.workspace = true\nserde = \"1\"\n";
        assert_eq!(in_manifest("p", manifest, &["anabranch-proto"]).len(), 1);
        assert!(in_manifest("p", manifest, &["anabranch-node"]).is_empty());
        let tests_only = "[dependencies]\n[dev-dependencies]\nanabranch-node.workspace = true\n";
        assert!(in_manifest("p", tests_only, &[]).is_empty());
    }

    #[test]
    fn a_file_is_measured_without_its_inline_tests() {
        let code = "//! Doc.\n".to_owned() + &"fn f() {}\n".repeat(LINES_MAX);
        assert_eq!(in_source("crates/a/src/b.rs", &code).len(), 1);
        assert!(in_source("crates/a/src/b/tests.rs", &code).is_empty());
        let short = "//! Doc.\n#[cfg(test)]\nmod tests {\n".to_owned() + &"\n".repeat(LINES_MAX);
        assert!(in_source("crates/a/src/b.rs", &short).is_empty());
    }

    #[test]
    fn a_path_of_one_machine_and_a_ragged_line_are_found() {
        let line = format!("see {}notes \n", FORBIDDEN[0].0);
        assert_eq!(in_text("a.md", &line).len(), 2);
        assert_eq!(in_text("a.md", "fine").len(), 1, "the last line must end");
    }

    #[test]
    fn a_lock_file_that_names_a_mirror_is_found() {
        let fine = "source = \"registry+https://github.com/rust-lang/index\"\n";
        assert!(in_lock(fine).is_empty());
        assert_eq!(in_lock("source = \"registry+https://mirror.example/index\"\n").len(), 1);
    }
}
