//! What the tests stand on: topology files, and runs of the emulator.

use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// One test's files and names. Only one exists at a time, since tests that measure would disturb
/// each other.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
    /// Begins the names of this test's namespaces.
    pub(crate) prefix: String,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    /// `None`, after saying why, where the emulator or the tools cannot run.
    pub(crate) fn new(tools: &[&str]) -> Option<Stage> {
        static ALONE: Mutex<()> = Mutex::new(());
        static STAGES: AtomicU32 = AtomicU32::new(0);
        if let Some(why) = why_not(tools) {
            let text = format!("skipped: the emulator is not tried: {why}\n");
            // In one piece, past the harness, which hides what passing tests print.
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("t{}-{number}-", std::process::id());
        Some(Stage { dir: tempfile::tempdir().unwrap(), prefix, _alone: alone })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn topology(&self, text: &str) -> PathBuf {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let path = self.path(&format!("{}.toml", FILES.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `anabranch emu`, to which `-- CMD` may be added.
    pub(crate) fn emu(&self, topology: &str) -> Command {
        self.emu_with_prefix(&self.prefix, topology)
    }

    pub(crate) fn emu_with_prefix(&self, prefix: &str, topology: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.arg("emu").arg(self.topology(topology)).args(["--prefix", prefix]);
        command.arg("--stats").arg(self.path("stats.json")).current_dir(self.dir.path());
        command
    }

    /// Runs a shell script in the network to its end. `NAME:` before a command becomes
    /// `ip netns exec`, so `left1: ping right1` is run on `left1`. Gives its output and the
    /// statistics.
    pub(crate) fn run(&self, topology: &str, script: &str) -> (String, Value) {
        let output = self.output(topology, script);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        (String::from_utf8_lossy(&output.stdout).into_owned(), self.stats())
    }

    /// The same, however it ends.
    pub(crate) fn output(&self, topology: &str, script: &str) -> Output {
        let mut command = self.emu(topology);
        command.args(["--", "sh", "-c", &self.script(script)]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().unwrap() }.output()
    }

    pub(crate) fn script(&self, script: &str) -> String {
        let mut text = String::new();
        for word in script.split_inclusive(char::is_whitespace) {
            match word.trim_end().strip_suffix(':') {
                Some(host) => text.push_str(&format!("ip netns exec {}{host} ", self.prefix)),
                None => text.push_str(word),
            }
        }
        text
    }

    pub(crate) fn stats(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path("stats.json")).unwrap()).unwrap()
    }

    /// What is left of this test's namespaces: names under either folder.
    pub(crate) fn traces(&self) -> Vec<String> {
        let list = |folder| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = list("/run/netns").chain(list("/etc/netns"));
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(&self.prefix)).collect()
    }
}

fn why_not(tools: &[&str]) -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("it needs root".into());
    }
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".into());
    }
    let lacks = |tool: &&str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&paths).any(|folder| folder.join(tool).exists())
    };
    ["ip", "tc"]
        .iter()
        .chain(tools)
        .find(|tool| lacks(tool))
        .map(|tool| format!("no `{tool}` here"))
}

/// A running emulator; killed when dropped.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().unwrap() }
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let id = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(id, signal).unwrap();
    }

    /// `kill -9`. What its command ran goes on, with its ends of the pipes.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has ended. Its output must fit a pipe.
    pub(crate) fn output(mut self) -> Output {
        wait_until("the end of the emulator", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let read = |from: Option<&mut dyn std::io::Read>, to: &mut Vec<u8>| {
            from.map(|from| from.read_to_end(to).unwrap())
        };
        read(self.child.stdout.as_mut().map(|from| from as &mut dyn std::io::Read), &mut stdout);
        read(self.child.stderr.as_mut().map(|from| from as &mut dyn std::io::Read), &mut stderr);
        Output { status, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already when the test waited for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The counters of one direction of a link.
pub(crate) fn link<'a>(stats: &'a Value, from: &str, to: &str) -> &'a Value {
    let links = stats["links"].as_array().unwrap();
    links.iter().find(|link| link["from"] == from && link["to"] == to).unwrap()
}

/// A number of a report, by path: `classes.0.sent.packets`.
#[track_caller]
pub(crate) fn number(value: &Value, path: &str) -> f64 {
    let at = path.split('.').fold(value, |value, key| match key.parse::<usize>() {
        Ok(index) => &value[index],
        Err(_) => &value[key],
    });
    at.as_f64().unwrap_or_else(|| panic!("no number at {path} in {value}"))
}

/// The lines of `dumbbell`'s and other topologies' bottleneck that tests vary.
pub(crate) fn dumbbell(pairs: u32, bottleneck: &str) -> String {
    format!(
        "congestion = \"cubic\"\n[generate]\nkind = \"dumbbell\"\npairs = {pairs}\n\
         [generate.bottleneck]\n{bottleneck}\n"
    )
}
