//! Processes that are measured: started with their output in a file, ended by id.

use crate::interrupt;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a process gets to leave in good order.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// A running process; ended when dropped.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts `command` with stdout in `dir/out` and stderr in `dir/err`.
    pub(crate) fn start(command: &mut Command, dir: &Path) -> io::Result<Process> {
        let child = interrupt::spawn(
            command
                .current_dir(dir)
                .stdin(Stdio::null())
                .stdout(File::create(dir.join("out"))?)
                .stderr(File::create(dir.join("err"))?),
        )?;
        interrupt::note(child.id());
        Ok(Process { child })
    }

    /// CPU seconds used so far, user and system, by all its threads. It works for a process that
    /// has ended too, as long as nobody has waited for it.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let ticks = stat.ok().and_then(|stat| {
            // Fields are counted after the name, which may contain spaces: utime is the 12th.
            let (_, fields) = stat.rsplit_once(')')?;
            let mut fields = fields.split_whitespace().skip(11);
            let user: u64 = fields.next()?.parse().ok()?;
            let system: u64 = fields.next()?.parse().ok()?;
            Some(user + system)
        });
        ticks.unwrap_or(0) as f64 / TICKS_PER_SECOND
    }

    fn ask_to_end(&self) {
        // It may be gone already, and then there is nothing to end.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
    }

    /// Whether it has ended, found without waiting for it.
    pub(crate) fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        stat.map_or(true, |stat| {
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
        })
    }
}

/// Ends processes together: some clients take seconds to leave.
pub(crate) fn end(processes: Vec<Process>) {
    processes.iter().for_each(Process::ask_to_end);
    drop(processes);
}

impl Drop for Process {
    fn drop(&mut self) {
        interrupt::forget(self.child.id());
        self.ask_to_end();
        let deadline = Instant::now() + LEAVE_MAX;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The unit of `/proc/PID/stat`, fixed at 100 for programs on Linux.
const TICKS_PER_SECOND: f64 = 100.0;
