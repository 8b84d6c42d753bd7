//! anabranch itself: `anabranch send` and `anabranch get`, as any user runs them.

use super::{Contender, version_line};
use crate::job::Job;
use crate::process::Process;
use crate::seat::Seat;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The built program.
pub(crate) struct Anabranch {
    program: PathBuf,
}

impl Anabranch {
    /// `program` as given, else the one built beside this one.
    pub(crate) fn new(program: Option<PathBuf>) -> Anabranch {
        let built = || Some(std::env::current_exe().ok()?.parent()?.join("anabranch"));
        Anabranch { program: program.or_else(built).unwrap_or_else(|| "anabranch".into()) }
    }

    /// The program with state and configuration of its own, and everything else as it comes.
    fn command(&self, seat: &Seat, dir: &Path) -> Command {
        let mut command = seat.command(&self.program);
        command.env("XDG_STATE_HOME", dir.join("state")).env("XDG_CONFIG_HOME", dir.join("config"));
        command
    }
}

/// The port that the program takes where it is free.
const PORT: u16 = 27182;

fn ticket_file(job: &Job) -> PathBuf {
    job.dir.join("ticket")
}

impl Contender for Anabranch {
    fn name(&self) -> &'static str {
        "anabranch"
    }

    fn version(&self) -> Result<String, String> {
        version_line(&self.program, "--version", "cargo build --release")
    }

    fn start_source(&mut self, job: &Job, dir: &Path) -> io::Result<Process> {
        // A ticket of an earlier run must not pass for this one's.
        match std::fs::remove_file(ticket_file(job)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut command = self.command(job.source_seat(), dir);
        command.arg("send").arg(&job.content).arg("--ticket-file").arg(ticket_file(job));
        if let Some(address) = job.source_seat().own_address() {
            command.arg("--advertise").arg(format!("{address}:{PORT}"));
        }
        Process::start(&mut command, dir)
    }

    fn source_is_ready(&mut self, job: &Job, _dir: &Path) -> bool {
        std::fs::read_to_string(ticket_file(job)).is_ok_and(|ticket| ticket.ends_with('\n'))
    }

    fn start_receiver(&mut self, job: &Job, index: usize, dir: &Path) -> io::Result<Process> {
        let mut command = self.command(job.receiver_seat(index), dir);
        command
            .arg("get")
            .arg(format!("@{}", ticket_file(job).display()))
            .args(["--linger", "600s", "-o"])
            .arg(dir);
        Process::start(&mut command, dir)
    }

    fn has_finished(&mut self, _job: &Job, _index: usize, dir: &Path) -> bool {
        // The name appears only when everything is there and verified.
        dir.join("content").exists()
    }
}
