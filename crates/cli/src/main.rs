//! The `anabranch` program: the command line over the libraries `anabranch-node` and
//! `anabranch-lab`, and nothing else.

mod args;
mod demo;
mod emu;
mod failure;
mod get;
mod interrupt;
mod lab;
mod progress;
mod report;
mod send;
mod settings;
mod units;

use anabranch_node::ErrorKind;
use args::{Arguments, Command, Common};
use clap::{CommandFactory, Parser};
use failure::Failure;
use interrupt::Interrupt;
use report::{Line, Reporter};
use std::io::Write;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| refuse(&error));
    let reporter = Reporter { json: arguments.common.json, quiet: arguments.common.quiet };
    log_to_stderr(&arguments.common);
    match run(arguments, reporter) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            reporter.fail(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// Runs a command; its exit code is that of a program it ran, or 0.
fn run(arguments: Arguments, reporter: Reporter) -> Result<u8, Failure> {
    let common = arguments.common;
    if let Command::Completions { shell } = arguments.command {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Arguments::command(), "anabranch", &mut text);
        // Whoever stops reading half way has what they wanted.
        let _ = std::io::stdout().write_all(&text);
        return Ok(0);
    }
    let cannot = |error| Failure::other(format!("cannot start: {error}; free some memory"));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(cannot)?;
    let result = runtime.block_on(async {
        let interrupt = Interrupt::listen().map_err(cannot)?;
        match arguments.command {
            Command::Send(arguments) => send::run(arguments, &common, reporter, interrupt).await?,
            Command::Get(arguments) => get::run(arguments, &common, reporter, interrupt).await?,
            Command::Demo(arguments) => demo::run(arguments, reporter, interrupt).await?,
            Command::Emu(arguments) => return emu::run(arguments, reporter, interrupt).await,
            Command::Lab(arguments) => lab::run(arguments, reporter, interrupt).await?,
            Command::Completions { .. } => {}
        }
        Ok(0)
    });
    // What is still being hashed or written when the user interrupts is not waited for.
    runtime.shutdown_background();
    result
}

/// Ends the program after a wrong command line, or after help was asked for.
fn refuse(error: &clap::Error) -> ! {
    let is_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && is_json {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let reporter = Reporter { json: true, quiet: true };
        reporter.emit(&Line::Error { code: ErrorKind::Usage.exit_code(), text: text.to_owned() });
    }
    error.exit()
}

/// Logs go to stderr; `ANABRANCH_LOG` chooses what (as `node=debug`), else `-v`.
fn log_to_stderr(common: &Common) {
    let level = match common.verbose {
        0 => "error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("ANABRANCH_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
