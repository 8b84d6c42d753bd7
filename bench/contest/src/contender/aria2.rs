//! aria2c, with everything off that would look beyond the tracker.

use super::{Contender, version_line};
use crate::job::Job;
use crate::process::Process;
use crate::seat::Seat;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// aria2's own BitTorrent client.
pub(crate) struct Aria2;

impl Aria2 {
    fn command(job: &Job, seat: &Seat) -> io::Result<Command> {
        let mut command = seat.command("aria2c");
        command
            .args(["--no-conf", "--quiet", "--async-dns=false", "--seed-ratio=0.0"])
            .args(["--enable-dht=false", "--enable-dht6=false", "--bt-enable-lpd=false"])
            .args(["--bt-min-crypto-level=plain", "--bt-require-crypto=false"])
            .args(["--file-allocation=falloc", "--bt-max-peers=0"])
            .arg(format!("--listen-port={}", seat.port()?))
            .arg(format!("--torrent-file={}", job.torrent.display()));
        Ok(command)
    }
}

impl Contender for Aria2 {
    fn name(&self) -> &'static str {
        "aria2"
    }

    fn version(&self) -> Result<String, String> {
        version_line(Path::new("aria2c"), "--version", "apt-get install aria2")
    }

    fn start_source(&mut self, job: &Job, dir: &Path) -> io::Result<Process> {
        let mut command = Aria2::command(job, job.source_seat())?;
        command.arg(format!("--dir={}", job.dir.display())).arg("--bt-seed-unverified=true");
        Process::start(&mut command, dir)
    }

    fn source_is_ready(&mut self, job: &Job, _dir: &Path) -> bool {
        job.tracker.has_seed()
    }

    fn start_receiver(&mut self, job: &Job, index: usize, dir: &Path) -> io::Result<Process> {
        let hook = dir.join("hook");
        std::fs::write(&hook, format!("#!/bin/sh\n: > '{}/done'\n", dir.display()))?;
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o700))?;
        let mut command = Aria2::command(job, job.receiver_seat(index))?;
        command
            .arg(format!("--dir={}", dir.display()))
            .arg(format!("--on-bt-download-complete={}", hook.display()));
        Process::start(&mut command, dir)
    }

    fn has_finished(&mut self, _job: &Job, _index: usize, dir: &Path) -> bool {
        dir.join("done").exists()
    }
}
