//! What the tests stand on: directories, and processes of the program whose events are read.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory for one test, with a home for each process.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of `len` bytes that cannot be compressed.
    pub(crate) fn file(&self, name: &str, len: usize) -> PathBuf {
        let path = self.path(name);
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The program with `--json`, a home called `home`, and nothing of the user's environment.
    pub(crate) fn command(&self, home: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.env_clear().env("HOME", self.path(home)).current_dir(self.dir.path()).arg("--json");
        command
    }

    /// A source, ready.
    pub(crate) fn send(&self, path: &Path, options: &[&str]) -> Program {
        self.send_on("127.0.0.1:0", path, options)
    }

    /// A source on a port of its own, ready.
    pub(crate) fn send_on(&self, listen: &str, path: &Path, options: &[&str]) -> Program {
        let mut command = self.command("source");
        command.args(["send", "--listen", listen]).args(options).arg(path);
        Program::start(command)
    }

    /// A receiver that fetches into the directory `name` and stays for a minute.
    pub(crate) fn get(&self, name: &str, ticket: &str, options: &[&str]) -> Program {
        let mut command = self.command(name);
        command.arg("get").args(options);
        if !options.contains(&"--linger") {
            command.args(["--linger", "60"]);
        }
        if !options.contains(&"--no-listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.arg("-o").arg(self.path(name)).arg(ticket);
        Program::start(command)
    }
}

/// A running process of the program; killed when dropped.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<Value>,
    stderr: Option<std::thread::JoinHandle<String>>,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) last: Value,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn start(mut command: Command) -> Program {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        Program { child, lines, stderr: Some(stderr) }
    }

    /// Reads events until one is `wanted`.
    pub(crate) fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(event) if wanted(&event) => return event,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("it did not come within {PATIENCE:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    let stderr = self.stderr.take().map(|thread| thread.join().unwrap());
                    panic!("the process ended before that: {stderr:?}");
                }
            }
        }
    }

    /// Waits for an event by its name.
    pub(crate) fn event(&mut self, name: &str) -> Value {
        self.wait_for(|event| event["event"] == name)
    }

    /// The ticket of a source, when it is ready.
    pub(crate) fn ticket(&mut self) -> String {
        self.event("ready")["ticket"].as_str().unwrap().to_owned()
    }

    /// Waits until a receiver has everything.
    pub(crate) fn verified(&mut self) -> Value {
        self.event("verified")
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ctrl-C, once.
    pub(crate) fn interrupt(&self) {
        let id = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    }

    /// Waits until the process has ended.
    pub(crate) fn end(mut self) -> End {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it did not end within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(10));
        };
        let last = self.lines.iter().last().unwrap_or_default();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        End { code: status.code(), last, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already when the test waited for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asserts that two files have the same bytes, by their hashes.
#[track_caller]
pub(crate) fn assert_same(a: &Path, b: &Path) {
    let hash = |path: &Path| blake3::hash(&std::fs::read(path).unwrap());
    assert_eq!(hash(a), hash(b), "{} and {} differ", a.display(), b.display());
}

/// A number of an event.
#[track_caller]
pub(crate) fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_else(|| panic!("{event} has no number {key:?}"))
}

/// Says that a test cannot run here, past the harness, which hides what passing tests print.
pub(crate) fn skip(why: &str) {
    // Written in one piece, so that other tests' lines do not come between.
    std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes()).unwrap();
}

/// Whether this is root.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
