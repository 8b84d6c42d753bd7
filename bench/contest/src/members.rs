//! anabranch processes with options of their own, whose events are read as they come.

use crate::content;
use crate::interrupt;
use crate::process::Process;
use clap::Args;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How often events are looked for: the resolution of the times.
pub(crate) const LOOK: Duration = Duration::from_millis(5);
/// How long a source may take to be ready, and a run to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where a measurement runs, and of what.
#[derive(Args)]
pub(crate) struct Place {
    /// Where the files go; it should be in memory.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// The anabranch program (default: the one built beside this one).
    #[arg(long)]
    anabranch: Option<PathBuf>,
}

impl Place {
    /// The directory of this process's runs.
    fn swarm_dir(&self) -> PathBuf {
        self.dir.join(format!("anabranch-swarm-{}", std::process::id()))
    }

    /// Ends and removes everything when a signal comes.
    pub(crate) fn watch(&self) -> Result<(), String> {
        interrupt::watch(self.swarm_dir()).map_err(|error| format!("signals: {error}"))
    }
}

/// One source and its receivers on loopback, in a directory of their own; removed when dropped.
pub(crate) struct Swarm {
    program: PathBuf,
    dir: PathBuf,
    ticket: String,
    hash: blake3::Hash,
}

/// A running process and its events.
pub(crate) struct Member {
    process: Process,
    dir: PathBuf,
    out: File,
    /// A line that is not whole yet.
    rest: Vec<u8>,
}

impl Swarm {
    /// A source, ready, of `len` bytes; `options` are those of `anabranch send`.
    pub(crate) fn start(
        place: &Place,
        len: u64,
        options: &[String],
    ) -> Result<(Swarm, Member), String> {
        let dir = place.swarm_dir();
        let built = || Some(std::env::current_exe().ok()?.parent()?.join("anabranch"));
        let program = place.anabranch.clone().or_else(built).unwrap_or_else(|| "anabranch".into());
        std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        // From here on the directory is removed whatever happens.
        let mut swarm = Swarm { program, dir, ticket: String::new(), hash: blake3::hash(b"") };
        let content = swarm.dir.join("content");
        swarm.hash = content::write_random(&content, len)
            .and_then(|()| content::hash(&content))
            .map_err(|error| format!("{}: {error}", content.display()))?;
        let mut source = swarm.member("source", |command| {
            command.arg("send").args(options).arg(&content);
        })?;
        let ready = source.wait_for("ready")?;
        swarm.ticket = ready["ticket"].as_str().unwrap_or_default().to_owned();
        Ok((swarm, source))
    }

    /// A receiver, started; `options` are those of `anabranch get`.
    pub(crate) fn receiver(&self, name: &str, options: &[String]) -> Result<Member, String> {
        let dir = self.dir.join(name);
        self.member(name, |command| {
            command.arg("get").args(["--linger", "600s", "-o"]).arg(dir).args(options);
            command.arg(&self.ticket);
        })
    }

    /// Asserts that a receiver's copy is right.
    pub(crate) fn check(&self, receiver: &Member) -> Result<(), String> {
        let path = receiver.dir.join("content");
        match content::hash(&path) {
            Ok(hash) if hash == self.hash => Ok(()),
            Ok(_) => Err(format!("{} is not what was sent", path.display())),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn member(&self, name: &str, arguments: impl FnOnce(&mut Command)) -> Result<Member, String> {
        let dir = self.dir.join(name);
        let start = || -> io::Result<Member> {
            std::fs::create_dir(&dir)?;
            let mut command = Command::new(&self.program);
            command.env("XDG_STATE_HOME", dir.join("state"));
            command.env("XDG_CONFIG_HOME", dir.join("config"));
            command.arg("--json");
            arguments(&mut command);
            command.args(["--listen", "127.0.0.1:0"]);
            let process = Process::start(&mut command, &dir)?;
            let out = File::open(dir.join("out"))?;
            Ok(Member { process, dir: dir.clone(), out, rest: Vec::new() })
        };
        start().map_err(|error| format!("{} {name}: {error}", self.program.display()))
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        // What is left of it is in memory and in nobody's way.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Member {
    /// The events since the last call.
    pub(crate) fn events(&mut self) -> Result<Vec<Value>, String> {
        let has_ended = self.process.has_ended();
        self.out.read_to_end(&mut self.rest).map_err(|error| error.to_string())?;
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        if has_ended && lines.is_empty() {
            return Err(format!("a process ended too early: {}", self.complaint()));
        }
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).map_err(|e| e.to_string())).collect()
    }

    /// Waits for an event by its name.
    pub(crate) fn wait_for(&mut self, name: &str) -> Result<Value, String> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(event) = self.events()?.into_iter().find(|event| event["event"] == name) {
                return Ok(event);
            }
            std::thread::sleep(LOOK);
        }
        Err(format!("{} said nothing of {name} in {} s", self.dir.display(), PATIENCE.as_secs()))
    }

    fn complaint(&self) -> String {
        let path: &Path = &self.dir.join("err");
        std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    }
}

/// A rate as the program's options take it.
pub(crate) fn rate(bytes_per_s: f64) -> String {
    format!("{}kB/s", bytes_per_s / 1e3)
}

/// The median; of an even number, the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}
