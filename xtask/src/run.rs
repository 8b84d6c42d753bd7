//! Running other programs in the project's root.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a chore failed, and the exit code that says so.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One sentence.
    text: String,
    /// As in docs/cli.md: 1 other, 2 usage, 8 missing capability.
    pub(crate) code: u8,
}

impl Failure {
    /// Something did not hold.
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: 1 }
    }

    /// A wrong argument.
    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: 2 }
    }

    /// The machine lacks something.
    pub(crate) fn missing(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: 8 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The directory of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// cargo with these arguments, in the root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command to its end; an exit code other than zero is a failure.
pub(crate) fn check(command: &mut Command) -> Result<(), Failure> {
    let shown = show(command);
    let status = command
        .status()
        .map_err(|error| Failure::missing(format!("`{shown}` could not be started: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{shown}` failed ({status})")))
}

/// A command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
