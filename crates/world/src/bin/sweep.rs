//! Runs seeds until they fail: `cargo run -p anabranch-world --release --bin sweep -- --seeds
//! 0..2000 --system bullet-prime`. Exit code 1 when one failed.

use anabranch_proto::overlay::System;
use anabranch_world::flags::{Flags, wall_clock};
use anabranch_world::sweep::draw::Scenario;
use anabranch_world::sweep::{self, Subject};
use std::ops::Range;
use std::process::ExitCode;

const USAGE: &str = "usage: sweep [--seeds A..B] [--system bullet-prime|star|bittorrent]
    [--wire fluid|packet] [--threads N] [--show FAILURES] [--verbose]";

struct Options {
    seeds: Range<u64>,
    system: System,
    is_packet: bool,
    threads: usize,
    is_verbose: bool,
    show: usize,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let subject = Subject::of(options.system);
    let subject = if options.is_packet { subject.on_packets() } else { subject };
    if options.is_verbose {
        for seed in options.seeds.clone() {
            println!("{:#?}", Scenario::draw(seed, subject.survives_source));
        }
    }
    let started = wall_clock();
    let summary = sweep::run(&subject, options.seeds.clone(), options.threads);
    let wall = started.elapsed().as_secs_f64();
    for failed in summary.failed.iter().take(options.show) {
        println!("{failed}");
    }
    let seeds = options.seeds.end - options.seeds.start;
    println!(
        "{} of {seeds} seeds passed on {} (liveness due in {}, {} receivers started again), {} \
         events, {wall:.1} s, {:.1} ms per seed and thread",
        summary.passed,
        subject.name,
        summary.due,
        summary.retried,
        summary.events,
        wall * 1e3 * options.threads as f64 / seeds.max(1) as f64,
    );
    if summary.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> Result<Options, String> {
    let mut flags = Flags::from_env()?;
    let text: String = flags.take("seeds")?.unwrap_or_else(|| "0..200".into());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let options = Options {
        seeds: range(&text)?,
        system: flags.take("system")?.unwrap_or_default(),
        is_packet: is_packet(flags.take::<String>("wire")?.as_deref())?,
        threads: flags.take("threads")?.unwrap_or(cores),
        show: flags.take("show")?.unwrap_or(10),
        is_verbose: flags.take_switch("verbose"),
    };
    flags.finish()?;
    Ok(options)
}

fn is_packet(wire: Option<&str>) -> Result<bool, String> {
    match wire {
        None | Some("fluid") => Ok(false),
        Some("packet") => Ok(true),
        Some(other) => Err(format!("--wire {other}: fluid or packet is wanted")),
    }
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let parse = || {
        let (from, to) = text.split_once("..")?;
        let range = from.parse().ok()?..to.parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    parse().ok_or(format!("--seeds {text}: a range such as 0..200 is wanted"))
}
