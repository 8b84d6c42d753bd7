//! `./x lint`: formatting, clippy, documentation and tidiness; nothing is changed.

use crate::run::{Failure, cargo, check};
use crate::tidy;

/// Runs every check, the quick ones first.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let Some(argument) = arguments.first() {
        return Err(Failure::usage(format!("lint takes no arguments, not {argument:?}")));
    }
    tidy::run()?;
    check(&mut cargo(&["fmt", "--all", "--check"]))?;
    check(&mut cargo(&[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut doc =
        cargo(&["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
    check(doc.env("RUSTDOCFLAGS", "-D warnings"))
}
