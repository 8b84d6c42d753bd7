//! libtorrent-rasterbar, through its Python binding: the work itself is all in the library.

use super::Contender;
use crate::job::Job;
use crate::process::Process;
use crate::seat::Seat;
use std::io;
use std::path::Path;
use std::process::Command;

/// The system's Python: that is where the Debian package puts the binding.
const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = include_str!("../../libtorrent_peer.py");

/// libtorrent with its own preset for fast seeding.
pub(crate) struct Libtorrent;

impl Libtorrent {
    fn start(job: &Job, seat: &Seat, folder: &Path, dir: &Path) -> io::Result<Process> {
        let mut command = seat.command(PYTHON);
        command
            .args(["-c", SCRIPT])
            .arg(&job.torrent)
            .arg(folder)
            .arg(format!("{}:{}", seat.address(), seat.port()?))
            .arg(dir.join("done"));
        Process::start(&mut command, dir)
    }
}

impl Contender for Libtorrent {
    fn name(&self) -> &'static str {
        "libtorrent"
    }

    fn version(&self) -> Result<String, String> {
        let missing = || "there is no libtorrent (apt-get install python3-libtorrent)".to_owned();
        let script = "import libtorrent; print('libtorrent', libtorrent.__version__)";
        let output = Command::new(PYTHON).args(["-c", script]).output().map_err(|_| missing())?;
        if !output.status.success() {
            return Err(missing());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn start_source(&mut self, job: &Job, dir: &Path) -> io::Result<Process> {
        Libtorrent::start(job, job.source_seat(), &job.dir, dir)
    }

    fn source_is_ready(&mut self, job: &Job, dir: &Path) -> bool {
        job.tracker.has_seed() && dir.join("done").exists()
    }

    fn start_receiver(&mut self, job: &Job, index: usize, dir: &Path) -> io::Result<Process> {
        Libtorrent::start(job, job.receiver_seat(index), dir, dir)
    }

    fn has_finished(&mut self, _job: &Job, _index: usize, dir: &Path) -> bool {
        dir.join("done").exists()
    }
}
