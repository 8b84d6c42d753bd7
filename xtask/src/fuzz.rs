//! `./x fuzz [SECONDS] [TARGET…]`: a longer seed sweep, then every fuzz target for so long.

use crate::run::{Failure, cargo, check, root};
use std::process::{Command, Stdio};

const SECONDS_DEFAULT: u64 = 60;
/// Seeds of the sweep: fifty times those of the short one.
const SWEEP_SEEDS: &str = "0..100000";
/// Those on the packet wire.
const PACKET_SEEDS: &str = "0..5000";

/// Runs the sweep (unless targets are named) and the fuzz targets.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let (seconds, names) = match arguments.split_first() {
        Some((first, rest)) if first.parse::<u64>().is_ok() => {
            (first.parse().unwrap_or(SECONDS_DEFAULT), rest)
        }
        _ => (SECONDS_DEFAULT, arguments),
    };
    let targets = targets();
    if let Some(unknown) = names.iter().find(|name| !targets.contains(name)) {
        return Err(Failure::usage(format!("no fuzz target {unknown:?}: {}", targets.join(", "))));
    }
    if names.is_empty() {
        let arguments =
            ["run", "--quiet", "--release", "-p", "anabranch-world", "--bin", "sweep", "--"];
        check(cargo(&arguments).args(["--seeds", SWEEP_SEEDS]))?;
        check(cargo(&arguments).args(["--seeds", PACKET_SEEDS, "--wire", "packet"]))?;
    }
    install_fuzzer()?;
    for target in targets.iter().filter(|target| names.is_empty() || names.contains(target)) {
        let mut fuzz = Command::new("cargo");
        fuzz.args(["+nightly", "fuzz", "run", target, "--"])
            .arg(format!("-max_total_time={seconds}"))
            .current_dir(root());
        check(&mut fuzz)?;
    }
    Ok(())
}

/// The fuzz targets by name, in order.
fn targets() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("fuzz/fuzz_targets")).into_iter().flatten();
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// The nightly compiler and cargo-fuzz, which sanitizers need.
fn install_fuzzer() -> Result<(), Failure> {
    let works = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !works(&["+nightly", "--version"]) {
        let mut install = Command::new("rustup");
        check(install.args(["toolchain", "install", "nightly", "--profile", "minimal"]))?;
    }
    if !works(&["fuzz", "--version"]) {
        check(&mut cargo(&["install", "--quiet", "cargo-fuzz", "--locked"]))?;
    }
    Ok(())
}
