//! `./x test`: all tests by rung, each with a time budget, and the tests that could not run here.

use crate::run::{Failure, cargo, root, show};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Some tests, and how long they may take from cold on two cores.
struct Rung {
    name: &'static str,
    budget: Duration,
    command: Command,
}

/// Seeds that the sweep tries on every run; `./x fuzz` tries more.
const SWEEP_SEEDS: &str = "0..2000";
/// Those on the packet wire, some 20 ms each.
const PACKET_SEEDS: &str = "0..200";

/// Runs all rungs, or those whose names are given.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let rungs = rungs();
    if let Some(unknown) = arguments.iter().find(|name| rungs.iter().all(|r| r.name != **name)) {
        let names: Vec<&str> = rungs.iter().map(|rung| rung.name).collect();
        return Err(Failure::usage(format!("no rung {unknown:?}: {}", names.join(", "))));
    }
    let (mut skips, mut failed) = (Vec::new(), Vec::new());
    for mut rung in rungs {
        if !arguments.is_empty() && !arguments.iter().any(|name| name == rung.name) {
            continue;
        }
        let started = Instant::now();
        let passed = run_and_watch(&mut rung.command, &mut skips)?;
        let (took, budget) = (started.elapsed().as_secs(), rung.budget.as_secs());
        let over = if took > budget { ", OVER BUDGET" } else { "" };
        println!("rung {}: {took} s of {budget} s{over}", rung.name);
        if !passed {
            failed.push(rung.name);
        }
    }
    if arguments.is_empty() || arguments.iter().any(|name| name == "sweep") {
        match compare_profiles() {
            Ok(trace) => println!("debug and release build give the same trace, {trace}"),
            Err(why) => {
                println!("{why}");
                failed.push("profiles");
            }
        }
    }
    for skip in &skips {
        println!("{skip}");
    }
    println!("skipped in all: {}", skips.len());
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("tests failed in: {}", failed.join(", ")))),
    }
}

/// All rungs. Every one builds the whole workspace, so that nothing is built twice for want of a
/// feature.
fn rungs() -> Vec<Rung> {
    let rung = |name, minutes: u64, command| Rung {
        name,
        budget: Duration::from_secs(minutes * 60),
        command,
    };
    let mut rungs = vec![
        rung("unit", 6, cargo(&["test", "--workspace", "--lib", "--bins"])),
        rung("doc", 1, cargo(&["test", "--workspace", "--doc"])),
    ];
    for (name, folder, minutes) in [
        ("stories", "crates/world/tests", 2),
        ("links", "crates/node/tests", 2),
        ("lab", "crates/lab/tests", 3),
        ("processes", "crates/cli/tests", 3),
    ] {
        let targets = test_targets(folder);
        if !targets.is_empty() {
            let mut command = cargo(&["test", "--workspace"]);
            command.args(targets.iter().flat_map(|target| ["--test", target.as_str()]));
            rungs.push(rung(name, minutes, command));
        }
    }
    if root().join("crates/world/src/bin/sweep.rs").exists() {
        let arguments =
            ["run", "--quiet", "--release", "-p", "anabranch-world", "--bin", "sweep", "--"];
        let mut command = cargo(&arguments);
        command.args(["--seeds", SWEEP_SEEDS]);
        rungs.push(rung("sweep", 2, command));
        let mut command = cargo(&arguments);
        command.args(["--seeds", PACKET_SEEDS, "--wire", "packet"]);
        rungs.push(rung("sweep-packets", 1, command));
    }
    rungs
}

/// Runs one simulation built both ways; the traces must not differ by a bit.
fn compare_profiles() -> Result<String, String> {
    let trace = |profile: &[&str]| {
        let mut command = cargo(&["run", "--quiet"]);
        command.args(profile).args(["-p", "anabranch-world", "--bin", "simulate", "--"]);
        command.args(["--nodes", "12", "--size", "3000000", "--seed", "3"]);
        let output =
            command.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("trace"));
        line.map(|hash| hash.trim().to_owned()).ok_or(format!("no trace in:\n{text}"))
    };
    let (debug, release) = (trace(&[])?, trace(&["--release"])?);
    match debug == release {
        true => Ok(debug),
        false => Err(format!("debug gives trace {debug}, release {release}")),
    }
}

/// The integration tests in a folder, by name, in order.
fn test_targets(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.to_owned();
            let is_folder = entry.path().join("main.rs").exists();
            if is_folder { Some(name) } else { Some(name.strip_suffix(".rs")?.to_owned()) }
        })
        .collect();
    names.sort();
    names
}

/// Runs a command, passes its output on as it comes and keeps the lines that say "skipped:".
/// True when it succeeded.
fn run_and_watch(command: &mut Command, skips: &mut Vec<String>) -> Result<bool, Failure> {
    println!("$ {}", show(command));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::missing(format!("cargo could not be started: {error}")))?;
    let found = Arc::new(Mutex::new(Vec::new()));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(|| pass_on(out, &found, |line| println!("{line}")));
        scope.spawn(|| pass_on(err, &found, |line| eprintln!("{line}")));
    });
    skips.append(&mut found.lock().unwrap_or_else(PoisonError::into_inner));
    let status = child
        .wait()
        .map_err(|error| Failure::new(format!("cargo could not be waited for: {error}")))?;
    Ok(status.success())
}

fn pass_on(stream: Option<impl Read>, found: &Mutex<Vec<String>>, show: impl Fn(&str)) {
    let Some(stream) = stream else { return };
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        // The harness writes "test name ... " first, so the words need not begin the line.
        if let Some(at) = line.find("skipped: ") {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(line[at..].to_owned());
        }
        show(&line);
    }
}
