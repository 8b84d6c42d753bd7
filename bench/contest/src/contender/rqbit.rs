//! rqbit: `rqbit download` for the source too, which checks the file first and then serves it.

use super::{Contender, version_line};
use crate::job::Job;
use crate::process::Process;
use crate::seat::free_port;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How often one process is asked for its state; asking costs it a little.
const ASK: Duration = Duration::from_millis(50);

/// rqbit, asked through its HTTP interface.
pub(crate) struct Rqbit {
    program: PathBuf,
    /// Where each process answers, and when it was asked last; the source's index is `None`.
    interfaces: BTreeMap<Option<usize>, (SocketAddr, Instant)>,
}

impl Rqbit {
    /// `program` as given, else `rqbit` from the search path.
    pub(crate) fn new(program: Option<PathBuf>) -> Rqbit {
        let program = program.unwrap_or_else(|| PathBuf::from("rqbit"));
        Rqbit { program, interfaces: BTreeMap::new() }
    }

    fn start(
        &mut self,
        job: &Job,
        index: Option<usize>,
        to: &Path,
        dir: &Path,
    ) -> io::Result<Process> {
        let interface = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        self.interfaces.insert(index, (interface, Instant::now()));
        let port = free_port()?.to_string();
        let mut command = Command::new(&self.program);
        command
            .env("XDG_CACHE_HOME", dir)
            .args(["--disable-dht", "--disable-lsd", "--disable-upnp-port-forward"])
            .args(["-v", "error", "--listen-ip", "127.0.0.1", "--ipv4-only"])
            // Told apart, because it announces no port of its own when it listens on loopback.
            .args(["--listen-port", &port, "--announce-port", &port])
            .args(["--http-api-listen-addr", &interface.to_string()])
            .args(["download", "--overwrite", "-o"])
            .arg(to)
            .arg(&job.torrent);
        Process::start(&mut command, dir)
    }

    fn is_finished(&mut self, index: Option<usize>) -> bool {
        let Some((interface, asked)) = self.interfaces.get_mut(&index) else { return false };
        if asked.elapsed() < ASK {
            return false;
        }
        *asked = Instant::now();
        stats(*interface).is_ok_and(|stats| stats["finished"] == true && stats["state"] == "live")
    }
}

impl Contender for Rqbit {
    fn name(&self) -> &'static str {
        "rqbit"
    }

    fn version(&self) -> Result<String, String> {
        version_line(&self.program, "--version", "cargo install rqbit")
    }

    fn start_source(&mut self, job: &Job, dir: &Path) -> io::Result<Process> {
        self.start(job, None, &job.dir.clone(), dir)
    }

    fn source_is_ready(&mut self, job: &Job, _dir: &Path) -> bool {
        self.is_finished(None) && job.tracker.has_seed()
    }

    fn start_receiver(&mut self, job: &Job, index: usize, dir: &Path) -> io::Result<Process> {
        self.start(job, Some(index), dir, dir)
    }

    fn has_finished(&mut self, _job: &Job, index: usize, _dir: &Path) -> bool {
        self.is_finished(Some(index))
    }
}

fn stats(interface: SocketAddr) -> io::Result<serde_json::Value> {
    let mut stream = TcpStream::connect_timeout(&interface, ASK)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"GET /torrents/0/stats/v1 HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    serde_json::from_str(body).map_err(io::Error::from)
}
