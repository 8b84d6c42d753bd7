//! `./x bench ns3`: the same dumbbells in ns-3 and in our packet-level simulator, side by side.
//!
//! ns-3 comes from the system's packages (Debian: `ns3`, `libns3-dev`) with its own optimization
//! and assertions. Both run on one core, one after the other; speeds are by processor
//! time, so that a busy machine matters less.

use crate::run::{Failure, cargo, check, root, show, target_dir};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: [&str; 6] =
    ["applications", "internet", "point-to-point", "traffic-control", "network", "core"];

/// 100 Mb/s and 40 ms are 333 packets of 1500 bytes: buffers of all of it and of a tenth.
const BUFFERS: [u32; 2] = [333, 33];

/// Builds both and runs every scenario; what follows on the command line goes to both.
pub(crate) fn run(rest: &[String]) -> Result<(), Failure> {
    let theirs = build()?;
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "-p",
        "anabranch-world",
        "--bin",
        "dumbbell",
    ]))?;
    let ours = target_dir().join("release/dumbbell");
    println!(
        "100 Mb/s, 40 ms, 1448-byte segments, goodput over 20 s after 10 s; ns-3 {}",
        version()
    );
    println!(
        "{:9} {:>5} {:>6} | {:>17} | {:>11} | {:>13} | {:>21} |",
        "", "flows", "buffer", "goodput Mb/s", "Jain", "drops", "1000 packet-hops/s"
    );
    println!("{:23} {} ratio", "", "|   ours     ns-3   ".repeat(4));
    for congestion in ["newreno", "cubic"] {
        for flows in [1, 10] {
            for buffer in BUFFERS {
                compare(&theirs, &ours, congestion, flows, buffer, rest)?;
            }
        }
    }
    Ok(())
}

fn compare(
    theirs: &Path,
    ours: &Path,
    congestion: &str,
    flows: u32,
    buffer: u32,
    rest: &[String],
) -> Result<(), Failure> {
    let setting = [
        ("congestion", congestion.to_owned()),
        ("flows", flows.to_string()),
        ("buffer", buffer.to_string()),
        ("seconds", "30".to_owned()),
        ("warm-up", "10".to_owned()),
    ];
    // ns-3 takes `--key=value`, ours `--key value`.
    let mut their = Command::new(theirs);
    their.args(setting.iter().map(|(key, value)| format!("--{key}={value}")));
    their.args(rest.chunks(2).map(|pair| pair.join("=")));
    let mut our = Command::new(ours);
    our.args(setting.iter().flat_map(|(key, value)| [format!("--{key}"), value.clone()]));
    our.args(rest);
    let (our, their) = (measure(&mut our)?, measure(&mut their)?);
    let pair =
        |key: &str| -> Result<(f64, f64), Failure> { Ok((value(&our, key)?, value(&their, key)?)) };
    let (goodput, jain, drops) = (pair("goodput_mbit")?, pair("jain")?, pair("drops")?);
    let (hops, secs) = (pair("hops")?, pair("secs")?);
    let speed = (hops.0 / secs.0 / 1e3, hops.1 / secs.1 / 1e3);
    println!(
        "{congestion:9} {flows:5} {buffer:6} | {:8.2} {:8.2} | {:5.3} {:5.3} | {:6.0} {:6.0} | \
         {:10.0} {:10.0} | {:5.1}",
        goodput.0,
        goodput.1,
        jain.0,
        jain.1,
        drops.0,
        drops.1,
        speed.0,
        speed.1,
        speed.0 / speed.1,
    );
    Ok(())
}

/// Compiles the ns-3 program, when it is older than its source.
fn build() -> Result<PathBuf, Failure> {
    let source = root().join("bench/ns3/dumbbell.cc");
    let program = target_dir().join("ns3/dumbbell");
    let changed = |path: &Path| std::fs::metadata(path).and_then(|of| of.modified()).ok();
    if changed(&program) > changed(&source) {
        return Ok(program);
    }
    std::fs::create_dir_all(target_dir().join("ns3"))
        .map_err(|error| Failure::new(format!("{}: {error}", target_dir().display())))?;
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-std=c++17", "-o"]).arg(&program).arg(&source);
    compiler.args(LIBRARIES.map(|name| format!("-lns3-{name}")));
    check(&mut compiler).map_err(|error| {
        Failure::missing(format!("{error}; ns-3 is needed (Debian: ns3, libns3-dev, g++)"))
    })?;
    Ok(program)
}

/// The installed package's version.
fn version() -> String {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${Version}", "libns3-dev"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "of unknown version".to_owned())
}

/// Runs a program and reads its line of `key=value` pairs.
fn measure(command: &mut Command) -> Result<BTreeMap<String, f64>, Failure> {
    let shown = show(command);
    let output = command
        .output()
        .map_err(|error| Failure::missing(format!("`{shown}` could not be started: {error}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::new(format!("`{shown}` failed: {why}")));
    }
    Ok(values(&String::from_utf8_lossy(&output.stdout)))
}

fn values(line: &str) -> BTreeMap<String, f64> {
    let pair = |word: &str| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), value.parse().ok()?))
    };
    line.split_whitespace().filter_map(pair).collect()
}

fn value(values: &BTreeMap<String, f64>, key: &str) -> Result<f64, Failure> {
    let missing = || Failure::new(format!("a simulator's line has no {key}"));
    values.get(key).copied().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_pairs_is_read_and_what_it_lacks_is_an_error() {
        let values = values("goodput_mbit=96.5 drops=12 secs=0.25\n");
        assert_eq!(value(&values, "secs").ok(), Some(0.25));
        assert!(value(&values, "hops").is_err());
    }
}
