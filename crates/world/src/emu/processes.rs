//! Ends the processes that run in namespaces that are about to go.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process has between being asked and being killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long a look at what others do is apart from the next.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// What tells one namespace from another: device and inode.
type Identity = (u64, u64);

/// Asks every process in these namespaces to end, and kills those that do not.
pub(super) fn end_all_in(namespaces: &[PathBuf]) {
    let wanted: BTreeSet<Identity> = namespaces.iter().filter_map(|path| identity(path)).collect();
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut waited = Duration::ZERO;
        loop {
            let found = processes_in(&wanted);
            if found.is_empty() {
                return;
            }
            if waited.is_zero() {
                // One that has ended meanwhile needs no signal.
                for pid in &found {
                    let _ = kill(*pid, signal);
                }
            }
            if waited >= GRACE {
                break;
            }
            pause();
            waited += PAUSE;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the emulator waits for real processes")]
pub(super) fn pause() {
    std::thread::sleep(PAUSE);
}

/// Whether the text of `/proc/PID/stat` is of a process that has been ended and not yet taken apart:
/// a zombie, or one with the kernel's flag for exiting (proc_pid_stat(5), fields 3 and 9).
pub(super) fn is_exiting(stat: &str) -> Option<bool> {
    const PF_EXITING: u64 = 4;
    // The second field is a name in brackets, which may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let flags: u64 = fields.nth(5)?.parse().ok()?;
    Some(matches!(state, "Z" | "X") || flags & PF_EXITING != 0)
}

fn identity(path: &Path) -> Option<Identity> {
    // Links under /proc lead to the namespace itself.
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn processes_in(wanted: &BTreeSet<Identity>) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_in = |pid: &i32| {
        identity(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|id| wanted.contains(&id))
    };
    pids.filter(is_in).map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_being_taken_apart_is_told_from_one_that_runs() {
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert_eq!(is_exiting(&own), Some(false));
        let exiting = "7 (a) b) D 1 7 7 0 -1 4228 0 0 0";
        assert_eq!(is_exiting(exiting), Some(true));
        assert_eq!(is_exiting("7 (a) Z 1 7 7 0 -1 0 0"), Some(true));
        assert_eq!(is_exiting("nonsense"), None);
    }
}
