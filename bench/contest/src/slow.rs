//! `contest slow`: what one slow receiver costs the others, on real sockets.

use crate::members::{Place, Swarm, median, rate};
use clap::Args;

/// One source and equal receivers on loopback, all limited so that their limits bind, beside the
/// same with one more receiver that is slow.
///
/// Runs with and without it take turns; figures are medians over the rounds.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many equal receivers.
    #[arg(long, default_value_t = 7)]
    receivers: usize,
    /// Every process's limit in MB/s (10⁶ bytes), up and down.
    #[arg(long, default_value_t = 8.0)]
    rate_mb: f64,
    /// The slow one's limit down, in per cent of that.
    #[arg(long, default_value_t = 1.0)]
    slow_percent: f64,
    /// The file's length in MB.
    #[arg(long, default_value_t = 80)]
    size_mb: u64,
    /// How many rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn measure(arguments: &Arguments) -> Result<(), String> {
    arguments.place.watch()?;
    let (mut equal, mut slow, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=arguments.rounds.max(1) {
        let without = run(arguments, false)?;
        let with = run(arguments, true)?;
        eprintln!("round {round}: {without:.3} s without the slow one, {with:.3} s with it");
        equal.push(without);
        slow.push(with);
        ratios.push(with / without);
    }
    println!(
        "{} MB to {} receivers at {} MB/s each way, medians of {} rounds",
        arguments.size_mb, arguments.receivers, arguments.rate_mb, arguments.rounds
    );
    println!("95th percentile, all equal            {:.3} s", median(equal));
    println!("95th percentile, one more that is slow {:.3} s", median(slow));
    println!("with / without                        {:.3} (promised: within 5%)", median(ratios));
    Ok(())
}

/// The equal receivers' 95th percentile in seconds, by nearest rank: up to 19, the last of them.
fn run(arguments: &Arguments, has_slow: bool) -> Result<f64, String> {
    let limit = rate(arguments.rate_mb * 1e6);
    let limits = |down: &str| ["--limit-up", &limit, "--limit-down", down].map(str::to_owned);
    let (swarm, _source) =
        Swarm::start(&arguments.place, arguments.size_mb * 1_000_000, &limits(&limit))?;
    // The first one, so that it is part of the swarm before the others.
    let slow = rate(arguments.rate_mb * 1e4 * arguments.slow_percent);
    let slow = has_slow.then(|| swarm.receiver("slow", &limits(&slow))).transpose()?;
    let mut receivers = (0..arguments.receivers)
        .map(|index| swarm.receiver(&format!("r{index}"), &limits(&limit)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut seconds = Vec::new();
    for receiver in &mut receivers {
        let verified = receiver.wait_for("verified")?;
        seconds.push(verified["elapsed_s"].as_f64().ok_or("a time is missing")?);
    }
    // It must have been there, and slow, to the end.
    if let Some(mut slow) = slow
        && slow.events()?.iter().any(|event| event["event"] == "verified")
    {
        return Err("the slow receiver was not slower than the others".into());
    }
    receivers.iter().try_for_each(|receiver| swarm.check(receiver))?;
    seconds.sort_by(f64::total_cmp);
    let rank = (seconds.len() * 95).div_ceil(100);
    seconds.get(rank.saturating_sub(1)).copied().ok_or_else(|| "there are no receivers".into())
}
