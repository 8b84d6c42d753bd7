//! Calls of iproute2's programs, many commands in one, since starting a process costs more than a
//! command.

use super::EmuError;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Carries out commands of `ip`, in order, in the namespace of the calling thread. With `force` it
/// goes on after one that failed.
pub(super) fn ip(commands: &str, force: bool) -> Result<(), EmuError> {
    batch("ip", commands, force)
}

/// Carries out commands of `tc` alike.
pub(super) fn tc(commands: &str) -> Result<(), EmuError> {
    batch("tc", commands, false)
}

fn batch(program: &str, commands: &str, force: bool) -> Result<(), EmuError> {
    let mut command = Command::new(program);
    if force {
        command.arg("-force");
    }
    let output = feed(command.args(["-batch", "-"]), commands);
    let output = output.map_err(|error| missing(program, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    let text = format!("`{program}` failed: {}", said.trim());
    Err(match said.contains("not permitted") {
        true => EmuError::Missing(format!("{text}; run as root with the right to make namespaces")),
        false => EmuError::Failed(text),
    })
}

fn feed(command: &mut Command, input: &str) -> std::io::Result<Output> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended early says why on its stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

fn missing(program: &str, error: &std::io::Error) -> EmuError {
    EmuError::Missing(format!("`{program}` cannot be started ({error}); install iproute2"))
}

/// Whether `ip` is there.
pub(super) fn check() -> Result<(), EmuError> {
    let output = Command::new("ip").arg("-Version").output();
    output.map(drop).map_err(|error| missing("ip", &error))
}
