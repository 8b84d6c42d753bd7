//! `contest onebox`: one file from one process to N others over loopback, beside what the work
//! costs at the least on this machine.

use crate::contender::{Contender, able, all};
use crate::job::{self, Figures, Job};
use crate::seat::Seat;
use crate::{content, floor, interrupt, members, torrent, tracker};
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};

/// One file to many processes on this machine, beside other tools and the floor.
///
/// Every tool moves the same file from one process to all others over loopback, with its
/// receivers serving each other and verifying every piece. The files are in memory, which is
/// touched before anything is measured. Tools take turns within a round, so that a busy moment of
/// the machine does not hit one alone; figures are medians over the rounds.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The file's length in MB (10⁶ bytes).
    #[arg(long, default_value_t = 1000)]
    size_mb: u64,
    /// How many processes receive it.
    #[arg(long, default_value_t = 8)]
    receivers: usize,
    /// How many rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these: floor, anabranch, aria2, libtorrent, rqbit.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the files go; it should be in memory.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// The anabranch program (default: the one built beside this one).
    #[arg(long)]
    anabranch: Option<PathBuf>,
    /// The rqbit program (default: from the search path).
    #[arg(long)]
    rqbit: Option<PathBuf>,
    /// Leaves the files of failed runs where they are.
    #[arg(long)]
    keep: bool,
}

/// Who is measured, in which way.
enum Entry {
    Floor,
    Program(Box<dyn Contender>),
}

impl Entry {
    fn name(&self) -> &'static str {
        match self {
            Entry::Floor => "floor",
            Entry::Program(contender) => contender.name(),
        }
    }

    fn run(&mut self, job: &Job) -> Result<Figures, String> {
        match self {
            Entry::Floor => floor::run(job),
            Entry::Program(contender) => job::run(job, contender.as_mut()),
        }
    }
}

pub(crate) fn measure(arguments: &Arguments) -> Result<(), String> {
    let dir = arguments.dir.join(format!("anabranch-onebox-{}", std::process::id()));
    let result = measure_in(arguments, &dir);
    if !(arguments.keep && result.is_err()) {
        // Nothing is lost when it is not there.
        let _ = std::fs::remove_dir_all(&dir);
    }
    result
}

fn measure_in(arguments: &Arguments, dir: &Path) -> Result<(), String> {
    let mut entries = entries(arguments)?;
    has_room(arguments)?;
    interrupt::watch(dir.to_owned()).map_err(|error| format!("signals: {error}"))?;
    let job = prepare(arguments, dir)
        .map_err(|error| format!("{} could not be prepared: {error}", dir.display()))?;
    let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); entries.len()];
    for round in 1..=arguments.rounds {
        for (entry, figures) in entries.iter_mut().zip(&mut figures) {
            let taken = entry.run(&job)?;
            eprintln!(
                "round {round}: {:<10} {:6.2} s wall, {:5.2} CPU-s per GB",
                entry.name(),
                taken.wall_s,
                taken.cpu_s / job.delivered_gb()
            );
            figures.push(taken);
        }
    }
    print_table(&job, &entries, &figures);
    Ok(())
}

/// Those that were asked for and can run; says who cannot, and why.
fn entries(arguments: &Arguments) -> Result<Vec<Entry>, String> {
    let contenders = all(arguments.anabranch.clone(), arguments.rqbit.clone());
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|o| o == name);
    let mut entries = Vec::new();
    if wanted("floor") {
        entries.push(Entry::Floor);
    }
    let asked = contenders.into_iter().filter(|contender| wanted(contender.name()));
    entries.extend(able(asked).map(Entry::Program));
    if entries.is_empty() {
        return Err("nobody is left to measure: see --only in `contest onebox --help`".into());
    }
    Ok(entries)
}

/// Refuses what would fill the machine's memory: the files, and as much again per process as a
/// client may want.
fn has_room(arguments: &Arguments) -> Result<(), String> {
    let copies = arguments.receivers as u64 + 1;
    let needed = copies * (arguments.size_mb * 1_000_000 + 100_000_000);
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo.lines().find_map(|line| {
        let kib = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim();
        Some(kib.parse::<u64>().ok()? * 1024)
    });
    match available {
        Some(available) if available < needed => Err(format!(
            "{} MB of memory are needed and {} MB available; choose a smaller --size-mb",
            needed / 1_000_000,
            available / 1_000_000
        )),
        _ => Ok(()),
    }
}

fn prepare(arguments: &Arguments, dir: &Path) -> io::Result<Job> {
    std::fs::create_dir(dir)?;
    let content = dir.join("content");
    let len = arguments.size_mb * 1_000_000;
    content::write_random(&content, len)?;
    content::touch_memory(dir, len * arguments.receivers as u64)?;
    let tracker = tracker::Tracker::start(&Seat::loopback())?;
    let torrent = torrent::describe(&content, "content", &tracker.url())?;
    let torrent_path = dir.join("content.torrent");
    std::fs::write(&torrent_path, torrent)?;
    Ok(Job {
        dir: dir.to_owned(),
        hash: content::hash(&content)?,
        content,
        len,
        seats: vec![Seat::loopback(); arguments.receivers + 1],
        torrent: torrent_path,
        tracker,
    })
}

fn print_table(job: &Job, entries: &[Entry], figures: &[Vec<Figures>]) {
    let median = |figures: &[Figures], value: fn(&Figures) -> f64| {
        members::median(figures.iter().map(value).collect())
    };
    let rows: Vec<(&str, f64, f64)> = entries
        .iter()
        .zip(figures)
        .filter(|(_, figures)| !figures.is_empty())
        .map(|(entry, figures)| {
            let cpu = median(figures, |f| f.cpu_s) / job.delivered_gb();
            (entry.name(), median(figures, |f| f.wall_s), cpu)
        })
        .collect();
    let floor = rows.iter().find(|(name, ..)| *name == "floor").copied();
    let rival = rows.iter().filter(|(name, ..)| !["floor", "anabranch"].contains(name));
    let fastest = rival.map(|(_, wall, _)| *wall).min_by(f64::total_cmp);
    println!(
        "{} MB to {} receivers on {} cores, medians of {} rounds",
        job.len / 1_000_000,
        job.receivers(),
        std::thread::available_parallelism().map_or(0, usize::from),
        figures.first().map_or(0, Vec::len)
    );
    println!(
        "{:<10} {:>8} {:>11} {:>9} {:>9} {:>10}",
        "", "wall s", "CPU-s/GB", "x floor", "x floor", "x fastest"
    );
    println!("{:<10} {:>8} {:>11} {:>9} {:>9} {:>10}", "", "", "", "wall", "CPU", "rival");
    for (name, wall, cpu) in rows {
        let ratio = |value: f64, base: Option<f64>| {
            base.map_or("-".to_owned(), |base| format!("{:.2}", value / base))
        };
        println!(
            "{name:<10} {wall:>8.2} {cpu:>11.2} {:>9} {:>9} {:>10}",
            ratio(wall, floor.map(|f| f.1)),
            ratio(cpu, floor.map(|f| f.2)),
            ratio(wall, fastest)
        );
    }
}
