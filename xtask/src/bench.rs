//! `./x bench`: the figures that are promised, measured; never part of a timed test.

use crate::run::{Failure, cargo, check, target_dir};
use std::path::PathBuf;
use std::process::Command;

const USAGE: &str = "which benchmark? limit, scale or slow (simulated), onebox (this machine \
                     beside other tools; onebox --help)";

/// Runs one benchmark; what follows its name is passed on.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else { return Err(Failure::usage(USAGE)) };
    match name.as_str() {
        "limit" | "scale" | "slow" => simulate(name, rest),
        "onebox" => onebox(rest),
        _ => Err(Failure::usage(USAGE)),
    }
}

fn simulate(name: &str, rest: &[String]) -> Result<(), Failure> {
    let arguments =
        ["run", "--quiet", "--release", "-p", "anabranch-world", "--bin", "simulate", "--", name];
    check(cargo(&arguments).args(rest))
}

fn onebox(rest: &[String]) -> Result<(), Failure> {
    check(&mut cargo(&["build", "--quiet", "--release", "-p", "onebox", "-p", "anabranch"]))?;
    let mut command = Command::new(target_dir().join("release/onebox"));
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
        // Without its data base and web pages, which play no part; its SHA-1 is aws-lc's.
        install.arg(&root).args(["--no-default-features", "--features", "rust-tls"]);
        check(&mut install)?;
    }
    Ok(program)
}
