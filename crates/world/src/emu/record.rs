//! What a run has made on this machine, written down before it is made, so that a later run can
//! remove what a killed one left.
//!
//! A record is a file under `/run/anabranch-emu`. Its run holds a lock on it for as long as it
//! lives, and the kernel releases that lock however the run ends: a record that can be locked has
//! no living run. Namespaces are made and removed under one further lock, so that two runs never
//! see each other half way.

use super::{EmuError, ip, processes};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, open};
use nix::sys::stat::Mode;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const RECORDS: &str = "/run/anabranch-emu";
/// Where `ip netns` looks for namespaces.
const NAMESPACES: &str = "/run/netns";
/// Where `ip netns exec` looks for files to put over those in `/etc`.
const FILES: &str = "/etc/netns";

/// How long a killed run is waited for.
const DYING_MAX: Duration = Duration::from_secs(10);

/// The path under which a namespace is known.
pub(super) fn namespace_path(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// The folder of a namespace's own files.
pub(super) fn files_path(name: &str) -> PathBuf {
    Path::new(FILES).join(name)
}

/// Held while namespaces are made or removed.
pub(super) struct Turn {
    _lock: Flock<OwnedFd>,
}

impl Turn {
    /// Waits until no other run makes or removes anything.
    pub(super) fn take() -> Result<Turn, EmuError> {
        let cannot = |error: &dyn std::fmt::Display| {
            EmuError::Failed(format!("cannot use {RECORDS}: {error}"))
        };
        std::fs::create_dir_all(RECORDS).map_err(|error| cannot(&error))?;
        let file = create(&Path::new(RECORDS).join("lock")).map_err(|error| cannot(&error))?;
        let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, e)| cannot(&e))?;
        Ok(Turn { _lock: lock })
    }
}

/// The record of a living run.
pub(super) struct Record {
    path: PathBuf,
    names: Vec<String>,
    _lock: Flock<OwnedFd>,
}

impl Record {
    /// Writes down what a run is going to make.
    pub(super) fn write(_turn: &Turn, names: Vec<String>) -> Result<Record, EmuError> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let (pid, run) = (std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(RECORDS).join(format!("{pid}-{run}.run"));
        let cannot = |error: &dyn std::fmt::Display| {
            EmuError::Failed(format!("cannot write {}: {error}", path.display()))
        };
        let file = create(&path).map_err(|error| cannot(&error))?;
        let lock =
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| cannot(&e))?;
        let mut text = format!("pid {pid}\n");
        for name in &names {
            let _ = writeln!(text, "namespace {name}");
        }
        std::fs::write(&path, text).map_err(|error| cannot(&error))?;
        Ok(Record { path, names, _lock: lock })
    }

    /// Removes everything that was made, and the record last.
    pub(super) fn remove(&self, _turn: &Turn) -> Result<(), EmuError> {
        remove_namespaces(&self.names)?;
        std::fs::remove_file(&self.path).map_err(|error| {
            EmuError::Failed(format!("cannot remove {}: {error}", self.path.display()))
        })
    }
}

/// Removes what runs that are no more have left. Tells the names of their namespaces.
pub(super) fn remove_leftovers(_turn: &Turn) -> Result<Vec<String>, EmuError> {
    let mut removed = Vec::new();
    let entries = std::fs::read_dir(RECORDS).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "run"));
    paths.sort();
    for path in paths {
        let Some(_lock) = lock_of_the_dead(&path)? else { continue };
        let names = names(&std::fs::read_to_string(&path).unwrap_or_default());
        remove_namespaces(&names)?;
        // Whoever else removed it did what we wanted.
        let _ = std::fs::remove_file(&path);
        removed.extend(names);
    }
    Ok(removed)
}

/// The lock on a record whose run is no more; `None` when the run lives.
fn lock_of_the_dead(path: &Path) -> Result<Option<Flock<OwnedFd>>, EmuError> {
    let Ok(mut file) = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()) else {
        return Ok(None);
    };
    let mut waited = Duration::ZERO;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Some(lock)),
            Err((back, Errno::EWOULDBLOCK)) => file = back,
            Err((_, error)) => {
                let text = format!("cannot lock {}: {error}", path.display());
                return Err(EmuError::Failed(text));
            }
        }
        if waited >= DYING_MAX || !is_dying(&std::fs::read_to_string(path).unwrap_or_default()) {
            return Ok(None);
        }
        processes::pause();
        waited += processes::PAUSE;
    }
}

/// Whether the run that wrote a record has been killed and the kernel is still taking it apart, which
/// takes a while per device.
fn is_dying(record: &str) -> bool {
    let pid = record.lines().find_map(|line| line.strip_prefix("pid ")?.parse::<u32>().ok());
    pid.is_some_and(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| processes::is_exiting(&stat).unwrap_or(false))
    })
}

/// The namespaces that a record names. Names that could lead elsewhere are passed over.
fn names(record: &str) -> Vec<String> {
    let names = record.lines().filter_map(|line| line.strip_prefix("namespace "));
    names.filter(|name| super::namespace::is_name(name)).map(str::to_owned).collect()
}

fn create(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_CLOEXEC;
    open(path, flags, Mode::S_IRUSR | Mode::S_IWUSR)
}

/// Ends what runs in the namespaces, then removes them and their files.
fn remove_namespaces(names: &[String]) -> Result<(), EmuError> {
    let there: Vec<&String> = names.iter().filter(|name| namespace_path(name).exists()).collect();
    if !there.is_empty() {
        let paths: Vec<PathBuf> = there.iter().map(|name| namespace_path(name)).collect();
        processes::end_all_in(&paths);
        let commands: String = there.iter().map(|name| format!("netns delete {name}\n")).collect();
        ip::ip(&commands, true)?;
    }
    for name in names {
        let folder = files_path(name);
        // It may not have been made yet when the run ended.
        let _ = std::fs::remove_file(folder.join("hosts"));
        let _ = std::fs::remove_dir(folder);
    }
    // Only an empty one is removed.
    let _ = std::fs::remove_dir(FILES);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_tampered_with_leads_nowhere_else() {
        let record = "pid 7\nnamespace r1\nnamespace ../../etc\nnamespace -all\nnamespace \nr2\n";
        assert_eq!(names(record), ["r1"]);
    }
}
