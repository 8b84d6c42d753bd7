//! `contest`: one file from one host to many, by anabranch and by BitTorrent clients, on one
//! machine or between emulated hosts. Prints medians and ratios.

mod contender;
mod content;
mod floor;
mod interrupt;
mod job;
mod limits;
mod members;
mod onebox;
mod process;
mod seat;
mod slow;
mod swarm;
mod torrent;
mod tracker;

use clap::Parser;
use std::process::ExitCode;

/// One file from one host to many: anabranch beside other tools, beside limits, beside itself.
#[derive(Parser)]
enum Contest {
    Onebox(onebox::Arguments),
    Swarm(swarm::Arguments),
    Slow(slow::Arguments),
    Limits(limits::Arguments),
}

fn main() -> ExitCode {
    let result = match Contest::parse() {
        Contest::Onebox(arguments) => onebox::measure(&arguments),
        Contest::Swarm(arguments) => swarm::measure(&arguments),
        Contest::Slow(arguments) => slow::measure(&arguments),
        Contest::Limits(arguments) => limits::measure(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("contest: {why}");
            ExitCode::FAILURE
        }
    }
}
