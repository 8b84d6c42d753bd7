//! `./x bench`: the figures that are promised, measured; never part of a timed test.

use crate::run::{Failure, cargo, check, show, target_dir};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const USAGE: &str = "which benchmark?
  limit    100 simulated nodes beside the bound
  scale    the last of 16 simulated receivers beside the last of 4
  slow     what one slow receiver costs the others, simulated and on sockets
  limits   rate limits on sockets
  onebox   one file on this machine, beside other tools
  swarm    one file to emulated hosts, beside other tools (needs root)
  emu      what the emulator carries, and how exactly (needs root)
  kernel   the simulator's TCP beside the kernel's through the emulator (needs root)
  net      packet-hops per second of the simulated network alone
  latency  a hundred thousand chattering hosts on the latency wire, beside real time
  ns3      the dumbbell beside ns-3";

/// The common setting of the simulated ones; what follows on the command line comes on top.
const SETTING: [&str; 8] =
    ["--rate-mbit", "6", "--rtt-ms", "50", "--block", "65536", "--size", "100000000"];

/// Runs one benchmark; what follows its name is passed on.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else { return Err(Failure::usage(USAGE)) };
    match name.as_str() {
        "emu" => emulated("capacity", rest),
        "kernel" => emulated("kernel", rest),
        "limit" => simulate(&["--nodes", "100"], rest).map(|_| ()),
        "scale" => scale(rest),
        "net" => net(rest),
        "latency" => latency(rest),
        "slow" => slow(rest),
        "limits" => contest("limits", rest),
        "ns3" => crate::ns3::run(rest),
        "onebox" => onebox(rest),
        "swarm" => swarm(rest),
        _ => Err(Failure::usage(USAGE)),
    }
}

/// A measurement over the emulator.
fn emulated(name: &str, rest: &[String]) -> Result<(), Failure> {
    check(&mut cargo(&["build", "--quiet", "--release", "-p", "emulated"]))?;
    check(Command::new(target_dir().join("release/emulated")).arg(name).args(rest))
}

/// 100,000 hosts with ten messages a second each, beside real time.
fn latency(rest: &[String]) -> Result<(), Failure> {
    let mut command = cargo(&[
        "run",
        "--quiet",
        "--release",
        "-p",
        "anabranch-world",
        "--bin",
        "latencybench",
        "--",
    ]);
    if std::env::var_os("GLIBC_TUNABLES").is_none() {
        // Half a gigabyte of state in small pieces: with small pages much time goes into addresses.
        command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
    }
    check(command.args(rest))
}

/// The last of 16 receivers beside the last of 4: what size costs.
fn scale(rest: &[String]) -> Result<(), Failure> {
    let few = completion(&simulate(&["--nodes", "5"], rest)?, "last")?;
    let many = completion(&simulate(&["--nodes", "17"], rest)?, "last")?;
    println!("last of 16 receivers / last of 4     {:.3} (promised: within 10%)", many / few);
    Ok(())
}

/// The others' 95th percentile with one receiver at 1% of their rate beside that without. With
/// 100 nodes the slow one is the last of 99, beyond the percentile. Then the same on sockets.
fn slow(rest: &[String]) -> Result<(), Failure> {
    let equal = completion(&simulate(&["--nodes", "100"], rest)?, "95th percentile")?;
    let slow = simulate(&["--nodes", "100", "--slow", "1"], rest)?;
    let slow = completion(&slow, "95th percentile")?;
    println!("95th percentile, one slow / all equal {:.3} (promised: within 5%)", slow / equal);
    contest("slow", &[])
}

/// A measurement with processes of their own.
fn contest(name: &str, rest: &[String]) -> Result<(), Failure> {
    build_contest()?;
    check(Command::new(target_dir().join("release/contest")).arg(name).args(rest))
}

/// Both settings, unless one is named.
fn swarm(rest: &[String]) -> Result<(), Failure> {
    if rest.first().is_some_and(|first| !first.starts_with('-')) {
        return contest("swarm", rest);
    }
    for setting in ["mesh", "lan"] {
        contest("swarm", &[&[setting.to_owned()], rest].concat())?;
    }
    Ok(())
}

/// The packet-level network alone.
fn net(rest: &[String]) -> Result<(), Failure> {
    let mut command =
        cargo(&["run", "--quiet", "--release", "-p", "anabranch-world", "--bin", "netbench", "--"]);
    check(command.args(rest))
}

/// Runs the simulator, shows its table and gives it back.
fn simulate(setting: &[&str], rest: &[String]) -> Result<String, Failure> {
    let mut command =
        cargo(&["run", "--quiet", "--release", "-p", "anabranch-world", "--bin", "simulate", "--"]);
    command.args(SETTING).args(setting).args(rest).stdout(Stdio::piped());
    let shown = show(&command);
    let output = command
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| Failure::missing(format!("cargo could not be started: {error}")))?;
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("$ {shown}\n{table}");
    match output.status.success() {
        true => Ok(table),
        false => Err(Failure::new(format!("`{shown}` failed ({})", output.status))),
    }
}

/// The seconds of a row such as `completion, last    12.3 s   1.02 of the bound`.
fn completion(table: &str, quantile: &str) -> Result<f64, Failure> {
    let label = format!("completion, {quantile}");
    table
        .lines()
        .find_map(|line| line.strip_prefix(&label)?.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Failure::new(format!("the simulator's table has no row {label:?}")))
}

fn build_contest() -> Result<(), Failure> {
    check(&mut cargo(&["build", "--quiet", "--release", "-p", "contest", "-p", "anabranch"]))
}

fn onebox(rest: &[String]) -> Result<(), Failure> {
    build_contest()?;
    let mut command = Command::new(target_dir().join("release/contest"));
    command.arg("onebox");
    match rqbit() {
        Ok(program) => {
            command.arg("--rqbit").arg(program);
        }
        Err(why) => eprintln!("x: rqbit takes no part: {why}"),
    }
    check(command.args(rest))
}

/// rqbit, built from its published package when it is not there.
fn rqbit() -> Result<PathBuf, Failure> {
    let root = target_dir().join("rivals");
    let program = root.join("bin/rqbit");
    if !program.exists() {
        let mut install = cargo(&["install", "--quiet", "rqbit", "--locked", "--root"]);
        // Without its data base and web pages, which play no part. OpenSSL's SHA-1 is the faster
        // one of its two.
        install.arg(&root).args(["--no-default-features", "--features", "default-tls"]);
        check(&mut install)?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_is_found_in_the_table() {
        let table = "bound    9 s\ncompletion, last               12.500 s   1.1 of the bound\n";
        assert_eq!(completion(table, "last").unwrap(), 12.5);
        assert!(completion(table, "median").is_err());
    }
}
