//! Ctrl-C and SIGTERM: the processes are ended and the files removed, which may be most of the
//! machine's memory.

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// The processes that run now.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Watches for signals from now on. Must be called before any other thread is started.
pub(crate) fn watch(dir: PathBuf) -> nix::Result<()> {
    let signals = watched();
    signals.thread_block()?;
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
            for id in running.iter() {
                // It may have ended by itself meanwhile.
                let _ = kill(Pid::from_raw(*id as i32), Signal::SIGKILL);
            }
            // Nothing more can be done when that fails.
            let _ = std::fs::remove_dir_all(&dir);
            std::process::exit(130);
        }
    });
    Ok(())
}

fn watched() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals
}

/// Starts a process that hears the signals watched here: it inherits what is blocked, and could
/// then be ended by force only.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let signals = watched();
    signals.thread_unblock()?;
    let child = command.spawn();
    signals.thread_block()?;
    child
}

/// A process was started.
pub(crate) fn note(id: u32) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
}

/// A process is about to be ended.
pub(crate) fn forget(id: u32) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
}
