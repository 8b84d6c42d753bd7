//! `contest limits`: whether a limit holds over ten seconds, in wire bytes.

use crate::members::{LOOK, Member, Place, Swarm, rate};
use clap::Args;
use std::time::{Duration, Instant};

/// The span in seconds over which a limit must hold.
const SPAN_S: f64 = 10.0;
/// How long a run goes on after its first payload, and so how many spans are looked at.
const RUN_S: f64 = 12.5;
/// What a link takes to be up to its rate, which is no part of a span.
const RAMP_S: f64 = 1.0;

/// One file from one process to another with a limit on one of them.
///
/// Prints the least and the most wire bytes (TLS records, everything counted) of any ten seconds,
/// as parts of the limit; the process's own counters, at the times they are told.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The limits in MB/s (10⁶ bytes).
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 5.0, 20.0, 200.0])]
    rates_mb: Vec<f64>,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn measure(arguments: &Arguments) -> Result<(), String> {
    arguments.place.watch()?;
    println!("{:<14} {:>12} {:>8} {:>8}", "", "limit MB/s", "least", "most");
    for rate_mb in &arguments.rates_mb {
        for (option, counter) in [("--limit-up", "wire_up"), ("--limit-down", "wire_down")] {
            let samples = run(&arguments.place, rate_mb * 1e6, option, counter)?;
            let (least, most) = extremes(&samples, rate_mb * 1e6)
                .ok_or_else(|| format!("{option} {rate_mb} MB/s: it ended within ten seconds"))?;
            println!("{option:<14} {rate_mb:>12} {least:>8.4} {most:>8.4}");
        }
    }
    println!("(promised: within 5%)");
    Ok(())
}

/// The limited process's counter at times in seconds since its first payload.
fn run(
    place: &Place,
    rate_bytes: f64,
    option: &str,
    counter: &str,
) -> Result<Vec<(f64, f64)>, String> {
    let limit = [option.to_owned(), rate(rate_bytes)];
    let is_up = option == "--limit-up";
    let options = |is_mine: bool| if is_mine { &limit[..] } else { &[] };
    let len = (rate_bytes * (RUN_S + 2.0)) as u64;
    let (swarm, mut source) = Swarm::start(place, len, options(is_up))?;
    let mut receiver = swarm.receiver("receiver", options(!is_up))?;
    let limited: &mut Member = if is_up { &mut source } else { &mut receiver };
    let mut started = None;
    let mut samples = Vec::new();
    let deadline = Instant::now() + Duration::from_secs_f64(4.0 * RUN_S);
    while Instant::now() < deadline {
        for event in limited.events()? {
            let Some(bytes) = event[counter].as_f64().filter(|bytes| *bytes > 1e5) else {
                continue;
            };
            let at = started.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
            samples.push((at, bytes));
        }
        if samples.last().is_some_and(|(at, _)| *at >= RUN_S) {
            return Ok(samples);
        }
        std::thread::sleep(LOOK);
    }
    Err(format!("{option} {}: no progress was told of", rate(rate_bytes)))
}

/// The least and the most of the limit that any span of ten seconds after the ramp had.
fn extremes(samples: &[(f64, f64)], rate_bytes: f64) -> Option<(f64, f64)> {
    let parts: Vec<f64> = samples
        .iter()
        .filter(|(from, _)| *from >= RAMP_S)
        .filter_map(|(from, before)| {
            let (to, after) = samples.iter().find(|(to, _)| to - from >= SPAN_S)?;
            Some((after - before) / (to - from) / rate_bytes)
        })
        .collect();
    let least = parts.iter().copied().min_by(f64::total_cmp)?;
    Some((least, parts.iter().copied().max_by(f64::total_cmp)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_are_of_whole_spans_after_the_ramp() {
        // Nothing in the first second, then the limit, then for a second twice the limit.
        let mut samples: Vec<(f64, f64)> =
            (0..12).map(|second| (f64::from(second), f64::from(second.max(1) - 1) * 5.0)).collect();
        assert_eq!(extremes(&samples, 5.0), Some((1.0, 1.0)));
        samples.push((12.0, 60.0));
        assert_eq!(extremes(&samples, 5.0), Some((1.0, 1.1)));
        assert_eq!(extremes(&samples[..8], 5.0), None);
    }
}
