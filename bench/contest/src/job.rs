//! The job every contender gets, and the run of one contender.

use crate::contender::Contender;
use crate::content;
use crate::process::{self, Process};
use crate::seat::Seat;
use crate::tracker::Tracker;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a source may take to be ready, and a run to end.
const SOURCE_MAX: Duration = Duration::from_secs(60);
const RUN_MAX: Duration = Duration::from_secs(600);
/// How often the receivers are looked at: the resolution of the times.
const LOOK: Duration = Duration::from_millis(10);

/// One file to some receivers on this machine.
pub(crate) struct Job {
    /// Everything is under it.
    pub(crate) dir: PathBuf,
    /// The file that is sent; it is called `content`.
    pub(crate) content: PathBuf,
    /// Its length in bytes.
    pub(crate) len: u64,
    /// Its BLAKE3 hash.
    pub(crate) hash: blake3::Hash,
    /// Where its processes run: the source's first, then every receiver's.
    pub(crate) seats: Vec<Seat>,
    /// Its torrent.
    pub(crate) torrent: PathBuf,
    /// The tracker that torrent names.
    pub(crate) tracker: Tracker,
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// From the start of the first receiver until the last has everything, verified.
    pub(crate) wall_s: f64,
    /// The same until the median receiver has.
    pub(crate) median_s: f64,
    /// CPU time of all processes meanwhile, user and system.
    pub(crate) cpu_s: f64,
}

impl Job {
    /// How many processes receive it.
    pub(crate) fn receivers(&self) -> usize {
        self.seats.len() - 1
    }

    /// Where the source runs.
    pub(crate) fn source_seat(&self) -> &Seat {
        &self.seats[0]
    }

    /// Where receiver number `index` runs.
    pub(crate) fn receiver_seat(&self, index: usize) -> &Seat {
        &self.seats[index + 1]
    }

    /// An empty directory for one receiver's files.
    pub(crate) fn receiver_dir(&self, contender: &str, index: usize) -> io::Result<PathBuf> {
        self.fresh_dir(&format!("{contender}-{index}"))
    }

    fn fresh_dir(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.dir.join(name);
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir(&dir)?,
        }
        Ok(dir)
    }

    /// Bytes delivered in a run, in units of 10⁹.
    pub(crate) fn delivered_gb(&self) -> f64 {
        self.len as f64 * self.receivers() as f64 / 1e9
    }
}

/// Runs one contender: a source, then all receivers at once, until the last has everything.
pub(crate) fn run(job: &Job, contender: &mut dyn Contender) -> Result<Figures, String> {
    let name = contender.name();
    let failed = |error: io::Error| format!("{name} could not be run: {error}");
    job.tracker.clear();
    let source_dir = job.fresh_dir(&format!("{name}-source")).map_err(failed)?;
    let source = contender.start_source(job, &source_dir).map_err(failed)?;
    wait(SOURCE_MAX, || contender.source_is_ready(job, &source_dir), &[&source])
        .map_err(|why| format!("{name}'s source {why}: see {}", source_dir.display()))?;
    let dirs: Vec<PathBuf> = (0..job.receivers())
        .map(|index| job.receiver_dir(name, index))
        .collect::<io::Result<_>>()
        .map_err(failed)?;

    let cpu_before = source.cpu_seconds();
    let started = Instant::now();
    let receivers: Vec<Process> = dirs
        .iter()
        .enumerate()
        .map(|(index, dir)| contender.start_receiver(job, index, dir))
        .collect::<io::Result<_>>()
        .map_err(failed)?;
    let mut left: Vec<usize> = (0..job.receivers()).collect();
    let mut median_s = 0.0;
    let all_done = || {
        left.retain(|index| !contender.has_finished(job, *index, &dirs[*index]));
        if left.len() > job.receivers() / 2 {
            median_s = started.elapsed().as_secs_f64();
        }
        left.is_empty()
    };
    let watched: Vec<&Process> = receivers.iter().collect();
    wait(RUN_MAX, all_done, &watched)
        .map_err(|why| format!("a receiver of {name} {why}: see {}", job.dir.display()))?;
    let wall_s = started.elapsed().as_secs_f64();
    let cpu_receivers: f64 = receivers.iter().map(Process::cpu_seconds).sum();
    let cpu_s = source.cpu_seconds() - cpu_before + cpu_receivers;

    let mut processes = receivers;
    processes.push(source);
    process::end(processes);
    for dir in dirs {
        let hash = content::hash(&dir.join("content")).map_err(failed)?;
        if hash != job.hash {
            return Err(format!("{name} delivered wrong bytes to {}", dir.display()));
        }
        std::fs::remove_dir_all(dir).map_err(failed)?;
    }
    Ok(Figures { wall_s, median_s, cpu_s })
}

fn wait(
    limit: Duration,
    mut is_done: impl FnMut() -> bool,
    processes: &[&Process],
) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    loop {
        // All stay when they are done; one that ended has failed.
        let ended = processes.iter().any(|process| process.has_ended());
        if is_done() {
            return Ok(());
        }
        if ended {
            return Err("ended too early".into());
        }
        if Instant::now() >= deadline {
            return Err(format!("was not done after {} s", limit.as_secs()));
        }
        std::thread::sleep(LOOK);
    }
}
