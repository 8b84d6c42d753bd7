//! Ends the processes that run in namespaces that are about to go.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process has between being asked and being killed.
const GRACE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

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
            sleep();
            waited += STEP;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the emulator waits for real processes")]
fn sleep() {
    std::thread::sleep(STEP);
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
