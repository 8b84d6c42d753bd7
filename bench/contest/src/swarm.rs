//! `contest swarm`: one file to real programs on emulated hosts, beside the fluid limit.

use crate::contender::{Contender, able, all};
use crate::job::{self, Figures, Job};
use crate::members::median;
use crate::seat::Seat;
use crate::{content, interrupt, torrent, tracker};
use anabranch_world::bounds::kumar_ross;
use anabranch_world::units::{Rate, mbit};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the emulator tells its command: `NAME=ADDRESS`, with spaces between, in the topology's order.
const HOSTS: &str = "ANABRANCH_EMU_HOSTS";
/// TCP payload and the whole packet, of a full segment with timestamps: rates are net of headers.
const PAYLOAD_LEN: u64 = 1448;
const PACKET_LEN: u64 = 1500;

/// One file to programs on emulated hosts, by anabranch and by BitTorrent clients.
///
/// Needs root. Each run has an emulated network of its own; tools take turns within a round.
/// Figures are medians over the rounds, as ratios to the time that the hosts' access rates leave
/// (Kumar & Ross). A run that the emulator calls invalid is marked so.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The network.
    #[arg(value_enum, default_value = "mesh")]
    setting: Setting,
    /// Another topology file than the setting's own; its first host is the source.
    #[arg(long)]
    topology: Option<PathBuf>,
    /// The file's length in MB (10⁶ bytes; default: the setting's).
    #[arg(long)]
    size_mb: Option<u64>,
    /// How many rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these: anabranch, aria2, libtorrent.
    #[arg(long, value_delimiter = ',', default_value = "anabranch,aria2,libtorrent")]
    only: Vec<String>,
    /// Where the files go; it should be in memory.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// The anabranch program (default: the one built beside this one).
    #[arg(long)]
    anabranch: Option<PathBuf>,
    /// Leaves the files of all runs where they are.
    #[arg(long)]
    keep: bool,
    /// Runs one tool on the hosts that are there, as the emulator's command.
    #[arg(long, hide = true)]
    inside: bool,
}

/// The networks that figures are promised for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Setting {
    /// 20 receivers: access 6 Mb/s each way, 2 Mb/s per pair, 5 to 200 ms, loss 0 to 3%; 20 MB.
    Mesh,
    /// 16 receivers: 40 Mb/s each way, 5 ms, no loss; 100 MB.
    Lan,
}

impl Setting {
    fn name(self) -> &'static str {
        match self {
            Setting::Mesh => "mesh",
            Setting::Lan => "lan",
        }
    }

    fn topology(self) -> &'static str {
        match self {
            Setting::Mesh => include_str!("../../../topologies/swarm-mesh.toml"),
            Setting::Lan => include_str!("../../../topologies/swarm-star.toml"),
        }
    }

    fn size_mb(self) -> u64 {
        match self {
            Setting::Mesh => 20,
            Setting::Lan => 100,
        }
    }

    /// The least time in seconds in which `len` bytes can reach everybody.
    fn bound_s(self, len: u64, receivers: usize) -> f64 {
        let gross = match self {
            Setting::Mesh => mbit(6),
            Setting::Lan => mbit(40),
        };
        let net = Rate::bytes_per_sec(gross.bytes() * PAYLOAD_LEN / PACKET_LEN);
        kumar_ross(len, net, &vec![(net, net); receivers])
    }
}

/// One run as its emulator and its programs tell it.
#[derive(Clone, Debug)]
struct Run {
    last_s: f64,
    median_s: f64,
    source_copies: f64,
    receivers: usize,
    invalid: Option<String>,
}

pub(crate) fn measure(arguments: &Arguments) -> Result<(), String> {
    if arguments.inside {
        return run_inside(arguments);
    }
    let dir = arguments.dir.join(format!("anabranch-contest-{}", std::process::id()));
    interrupt::watch(dir.clone()).map_err(|error| format!("signals: {error}"))?;
    std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let result = measure_in(arguments, &dir);
    if !arguments.keep {
        // Nothing is lost when it is not there.
        let _ = std::fs::remove_dir_all(&dir);
    }
    result
}

fn measure_in(arguments: &Arguments, dir: &Path) -> Result<(), String> {
    let names: Vec<&str> = contenders(arguments).map(|contender| contender.name()).collect();
    if names.is_empty() {
        return Err("nobody is left to measure: see --only in `contest swarm --help`".into());
    }
    let len = size_mb(arguments) * 1_000_000;
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); names.len()];
    for round in 1..=arguments.rounds {
        for (name, runs) in names.iter().zip(&mut runs) {
            let run = emulate(arguments, name, &dir.join(format!("{name}-{round}")))?;
            let ratio = run.last_s / arguments.setting.bound_s(len, run.receivers);
            let note =
                run.invalid.as_ref().map_or(String::new(), |why| format!("; INVALID: {why}"));
            eprintln!(
                "round {round}: {name:<10} last {:7.2} s, {ratio:.2} of the limit{note}",
                run.last_s
            );
            runs.push(run);
        }
    }
    print_table(arguments, len, &names, &runs);
    Ok(())
}

fn size_mb(arguments: &Arguments) -> u64 {
    arguments.size_mb.unwrap_or(arguments.setting.size_mb())
}

fn contenders(arguments: &Arguments) -> impl Iterator<Item = Box<dyn Contender>> {
    let wanted = arguments.only.clone();
    able(
        all(arguments.anabranch.clone(), None)
            .into_iter()
            .filter(move |contender| wanted.iter().any(|name| name == contender.name())),
    )
}

/// Runs one tool in an emulated network of its own.
fn emulate(arguments: &Arguments, name: &str, dir: &Path) -> Result<Run, String> {
    let failed = |error: io::Error| format!("{name} in the emulator: {error}");
    std::fs::create_dir(dir).map_err(failed)?;
    let own = std::env::current_exe().map_err(failed)?;
    let beside = own.with_file_name("anabranch");
    let anabranch = arguments.anabranch.clone().unwrap_or(beside);
    let topology = match &arguments.topology {
        Some(path) => path.clone(),
        None => {
            let path = dir.join("topology.toml");
            std::fs::write(&path, arguments.setting.topology()).map_err(failed)?;
            path
        }
    };
    let stats = dir.join("stats.json");
    let mut command = Command::new(&anabranch);
    command.arg("emu").arg(topology).arg("--stats").arg(&stats).arg("--").arg(own);
    command.args(["swarm", arguments.setting.name(), "--inside", "--only", name, "--dir"]).arg(dir);
    command.arg("--size-mb").arg(size_mb(arguments).to_string());
    command.arg("--anabranch").arg(&anabranch);
    let log = std::fs::File::create(dir.join("log")).map_err(failed)?;
    let child = interrupt::spawn(command.stdout(Stdio::piped()).stderr(log)).map_err(failed)?;
    interrupt::note(child.id());
    let id = child.id();
    let output = child.wait_with_output().map_err(failed)?;
    interrupt::forget(id);
    let told = String::from_utf8_lossy(&output.stdout);
    let figures: Option<Value> =
        told.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    let complaint = || std::fs::read_to_string(dir.join("log")).unwrap_or_default();
    let figures = figures.filter(|_| output.status.success()).ok_or_else(|| {
        format!("{name} in the emulator ({}): {}", output.status, complaint().trim())
    })?;
    let stats = std::fs::read_to_string(&stats).map_err(failed)?;
    let stats: Value = serde_json::from_str(&stats).map_err(|error| error.to_string())?;
    Ok(read_run(arguments, &figures, &stats))
}

fn read_run(arguments: &Arguments, figures: &Value, stats: &Value) -> Run {
    let number = |name: &str| figures[name].as_f64().unwrap_or(f64::NAN);
    let source = figures["source"].as_str().unwrap_or_default();
    let links = stats["links"].as_array().cloned().unwrap_or_default();
    let sent: f64 = links
        .iter()
        .filter(|link| link["from"] == source)
        .flat_map(|link| link["classes"].as_array().cloned().unwrap_or_default())
        .filter_map(|class| class["sent"]["bytes"].as_f64())
        .sum();
    let is_valid = stats["valid"].as_bool().unwrap_or(false);
    Run {
        last_s: number("last_s"),
        median_s: number("median_s"),
        source_copies: sent / (size_mb(arguments) as f64 * 1e6),
        receivers: figures["receivers"].as_u64().unwrap_or(0) as usize,
        invalid: (!is_valid).then(|| stats["invalid_because"].to_string()),
    }
}

/// The emulator's command: one tool on the hosts that are there.
fn run_inside(arguments: &Arguments) -> Result<(), String> {
    let hosts = std::env::var(HOSTS).map_err(|_| format!("{HOSTS} is not set"))?;
    let seats = hosts.split_whitespace().map(seat).collect::<Result<Vec<_>, _>>()?;
    let source = hosts.split('=').next().unwrap_or_default().to_owned();
    let mut contender = contenders(arguments).next().ok_or("the tool is not there")?;
    let job = prepare(arguments, seats).map_err(|error| error.to_string())?;
    let Figures { wall_s, median_s, .. } = job::run(&job, contender.as_mut())?;
    let receivers = job.receivers();
    println!(
        "{}",
        json!({"last_s": wall_s, "median_s": median_s, "receivers": receivers, "source": source})
    );
    Ok(())
}

fn seat(entry: &str) -> Result<Seat, String> {
    let parsed = entry.split_once('=').and_then(|(name, address)| {
        let address: Ipv4Addr = address.parse().ok()?;
        Some(Seat::host(name, address))
    });
    parsed.ok_or_else(|| format!("{HOSTS}: {entry:?} is not NAME=ADDRESS"))
}

fn prepare(arguments: &Arguments, seats: Vec<Seat>) -> io::Result<Job> {
    let dir = arguments.dir.clone();
    let content = dir.join("content");
    let len = size_mb(arguments) * 1_000_000;
    content::write_random(&content, len)?;
    let tracker = tracker::Tracker::start(&seats[0])?;
    let torrent_path = dir.join("content.torrent");
    std::fs::write(&torrent_path, torrent::describe(&content, "content", &tracker.url())?)?;
    let hash = content::hash(&content)?;
    Ok(Job { dir, hash, content, len, seats, torrent: torrent_path, tracker })
}

fn print_table(arguments: &Arguments, len: u64, names: &[&str], runs: &[Vec<Run>]) {
    let receivers = runs.iter().flatten().map(|run| run.receivers).next().unwrap_or(0);
    let bound = arguments.setting.bound_s(len, receivers);
    println!(
        "{}: {} MB to {receivers} emulated hosts, medians of {} rounds; the limit is {bound:.2} s",
        arguments.setting.name(),
        len / 1_000_000,
        arguments.rounds
    );
    println!(
        "{:<10} {:>9} {:>9} {:>9} {:>14} {:>8}",
        "", "last s", "x limit", "median x", "source copies", "invalid"
    );
    for (name, runs) in names.iter().zip(runs) {
        let of = |value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        let (last, middle) = (of(|run| run.last_s), of(|run| run.median_s));
        let copies = of(|run| run.source_copies);
        let invalid = runs.iter().filter(|run| run.invalid.is_some()).count();
        println!(
            "{name:<10} {last:>9.2} {:>9.2} {:>9.2} {copies:>14.2} {invalid:>8}",
            last / bound,
            middle / bound
        );
    }
}
