//! `anabranch emu`: hosts as network namespaces, joined by emulated links, under real programs.

use crate::args::EmuArguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::plural;
use crate::report::{Line, Reporter};
use anabranch_world::emu::{Config, Emulator, Host, LinkReport, Report};
use anabranch_world::topology::Topology;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;

/// How long the command has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(3);
/// Links that the summary for people names at most; the statistics name all.
const LINKS_SHOWN: usize = 12;

/// Runs the command. Gives the exit code of the program it ran.
pub(crate) async fn run(
    arguments: EmuArguments,
    reporter: Reporter,
    mut interrupt: Interrupt,
) -> Result<u8, Failure> {
    let topology = read(&arguments.topology, arguments.seed)?;
    let stats = arguments.stats.as_deref().map(create).transpose()?;
    let config = Config { prefix: arguments.prefix.clone(), seed: arguments.seed };
    let emulator = blocking(move || Emulator::start(&topology, &config)).await??;
    announce(&emulator, &arguments, reporter);
    let ended = match arguments.command.split_first() {
        Some((program, rest)) => {
            let hosts = emulator.hosts();
            execute(program, rest, hosts, &arguments.prefix, reporter, &mut interrupt).await
        }
        None => {
            interrupt.wait().await;
            Ok(Ended::Interrupted)
        }
    };
    let report = blocking(move || emulator.finish()).await??;
    tell(&report, reporter);
    if let Some((mut file, path)) = stats.zip(arguments.stats) {
        write(&mut file, &report).map_err(|error| cannot_write(&path, &error))?;
    }
    let ended = ended?;
    if matches!(ended, Ended::Interrupted) && !arguments.command.is_empty() {
        return Err(Failure::interrupted("interrupted; everything is removed again"));
    }
    let code = match ended {
        Ended::Code(code) => Some(code),
        Ended::Interrupted => None,
    };
    reporter.emit(&Line::EmuResult { report: &report, command_code: code });
    Ok(code.unwrap_or(0))
}

/// How it came to an end.
enum Ended {
    /// The command ended.
    Code(u8),
    /// The user wanted it.
    Interrupted,
}

fn read(path: &Path, seed: u64) -> Result<Topology, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the topology {name}: {error}")))?;
    Topology::parse_seeded(&text, &name, seed).map_err(|error| Failure::usage(error.to_string()))
}

/// Made before anything else is, so that what cannot be written is known at once.
fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let shown = path.display();
    Failure::storage(format!("cannot write the statistics to {shown}: {error}; name another file"))
}

fn write(file: &mut File, report: &Report) -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(report).map_err(std::io::Error::from)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(run).await.map_err(|error| Failure::other(format!("the emulator: {error}")))
}

fn announce(emulator: &Emulator, arguments: &EmuArguments, reporter: Reporter) {
    if !emulator.leftovers().is_empty() {
        let count = plural(emulator.leftovers().len() as u64, "namespace");
        reporter.note(&format!("removed {count} that a killed run had left"));
    }
    reporter.emit(&Line::Emulating { hosts: emulator.hosts() });
    let hosts = plural(emulator.hosts().len() as u64, "host");
    match (emulator.hosts(), arguments.command.is_empty()) {
        ([first, .., last], true) => reporter.note(&format!(
            "{hosts} up until Ctrl-C; on each, as: ip netns exec {} ping {}",
            first.namespace, last.name
        )),
        _ => reporter.note(&format!("{hosts} up")),
    }
}

/// Runs the program to its end, or asks it to end when the user wants that.
async fn execute(
    program: &OsString,
    arguments: &[OsString],
    hosts: &[Host],
    prefix: &str,
    reporter: Reporter,
    interrupt: &mut Interrupt,
) -> Result<Ended, Failure> {
    let names: Vec<String> =
        hosts.iter().map(|host| format!("{}={}", host.name, host.address)).collect();
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    Emulator::bind(command.as_std_mut());
    command.env("ANABRANCH_EMU_HOSTS", names.join(" ")).env("ANABRANCH_EMU_PREFIX", prefix);
    if reporter.json {
        // Events have stdout for themselves.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
        command.stdout(stderr.unwrap_or_else(|_| Stdio::null()));
    }
    let mut child = command.spawn().map_err(|error| {
        let program = program.to_string_lossy();
        Failure::usage(format!("cannot run {program:?}: {error}; check its name and path"))
    })?;
    tokio::select! {
        status = child.wait() => status.map(|status| Ended::Code(code(status))).map_err(lost),
        () = interrupt.wait() => {
            end(&mut child).await;
            Ok(Ended::Interrupted)
        }
    }
}

fn lost(error: std::io::Error) -> Failure {
    Failure::other(format!("the command cannot be waited for: {error}"))
}

/// Its exit code, or as shells tell a signal, 128 and the signal's number.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

async fn end(child: &mut Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        // It may have ended by itself meanwhile.
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        // Killing fails only when it has ended after all.
        let _ = child.kill().await;
    }
}

/// Says what happened to people: the verdict, whatever else they asked for, and the busiest links.
fn tell(report: &Report, reporter: Reporter) {
    for why in &report.invalid_because {
        // Not to be missed, so it is told like an error even when nothing else is.
        let _ = writeln!(std::io::stderr(), "anabranch: this run is invalid: {why}");
    }
    for text in &report.warnings {
        reporter.note(&format!("warning: {text}"));
        reporter.emit(&Line::Warning { text });
    }
    let (emulator, late) = (&report.emulator, &report.emulator.lateness_us);
    reporter.note(&format!(
        "{:.1} s, {} delivered, late by {:.2} ms at the 99th percentile and {:.2} ms at most",
        report.seconds,
        plural(emulator.packets_delivered, "packet"),
        late.p99 / 1e3,
        late.max / 1e3
    ));
    let mut links: Vec<&LinkReport> = report.links.iter().filter(|link| sent(link) > 0).collect();
    links.sort_by(|a, b| b.utilization.total_cmp(&a.utilization));
    for link in links.iter().take(LINKS_SHOWN) {
        let dropped: u64 =
            link.classes.iter().flat_map(|c| c.dropped.values()).map(|count| count.packets).sum();
        reporter.note(&format!(
            "  {} -> {}: {:.1}% used, {} sent, {dropped} dropped",
            link.from,
            link.to,
            link.utilization * 100.0,
            plural(sent(link), "packet"),
        ));
    }
    if links.len() > LINKS_SHOWN {
        reporter.note(&format!(
            "  and {} with less",
            plural((links.len() - LINKS_SHOWN) as u64, "link")
        ));
    }
}

fn sent(link: &LinkReport) -> u64 {
    link.classes.iter().map(|class| class.sent.packets).sum()
}
