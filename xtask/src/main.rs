//! The project's own chores, called by `./x`: lint, tests by rung, benchmarks, fuzzing.

mod bench;
mod fuzz;
mod lint;
mod ns3;
mod run;
mod test;
mod tidy;

use run::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        return complain(&Failure::usage("which chore? lint, test, bench or fuzz"));
    };
    let result = match command.as_str() {
        "lint" => lint::run(rest),
        "test" => test::run(rest),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        other => {
            Err(Failure::usage(format!("no chore is called {other:?}: lint, test, bench, fuzz")))
        }
    };
    result.map_or_else(|failure| complain(&failure), |()| ExitCode::SUCCESS)
}

fn complain(failure: &Failure) -> ExitCode {
    eprintln!("x: {failure}");
    ExitCode::from(failure.code)
}
