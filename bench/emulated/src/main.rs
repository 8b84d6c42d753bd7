//! What runs over the emulator to measure it, or to measure against it. Needs root, iproute2, ping
//! and iperf3; nothing else is touched but namespaces of its own.

mod capacity;
mod kernel;
mod programs;

use std::process::ExitCode;

const USAGE: &str = "which benchmark? capacity, or kernel [SECONDS [PARALLEL]]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse().ok());
    let result = match arguments.first().map(String::as_str) {
        Some("capacity") => capacity::run(),
        Some("kernel") => kernel::run(number(1).unwrap_or(30), number(2).unwrap_or(2)),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("emulated: {why}");
            ExitCode::FAILURE
        }
    }
}
