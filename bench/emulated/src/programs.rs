//! Networks, and programs that run on their hosts.

use anabranch_world::emu::{Config, Emulator};
use anabranch_world::topology::Topology;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server has to be ready.
const READY_MAX: Duration = Duration::from_secs(10);

/// A topology from the text of a file.
pub(crate) fn topology(text: &str) -> Result<Topology, String> {
    Topology::parse(text, "bench.toml").map_err(|error| error.to_string())
}

/// A network that runs, its namespaces named with `prefix`.
pub(crate) fn emulate(topology: &Topology, prefix: &str) -> Result<Emulator, String> {
    let config = Config { prefix: format!("{prefix}{}-", std::process::id()), seed: 1 };
    Emulator::start(topology, &config).map_err(|error| error.to_string())
}

/// Starts a program on a host, its output kept.
pub(crate) fn start(emulator: &Emulator, host: usize, words: &[&str]) -> Result<Child, String> {
    let host = emulator.hosts().get(host).ok_or("there is no such host")?;
    // Before whatever else runs on this machine: a sender that waits for a processor sends a burst
    // afterwards, which small buffers do not forgive.
    let mut command = Command::new("nice");
    command.args(["-n", "-20", "ip", "netns", "exec", &host.namespace]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().map_err(|error| format!("cannot start {words:?}: {error}"))
}

/// Waits for a program's end; gives what it wrote.
pub(crate) fn output(child: Child) -> Result<String, String> {
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An iperf3 server for one test, listening.
pub(crate) fn server(emulator: &Emulator, host: usize) -> Result<Child, String> {
    let child = start(emulator, host, &["iperf3", "-s", "-1"])?;
    let table = format!("/proc/{}/net/tcp6", child.id());
    let deadline = Instant::now() + READY_MAX;
    // Port 5201, state listening.
    let listens = || {
        let text = std::fs::read_to_string(&table).unwrap_or_default();
        text.lines().any(|line| line.contains(":1451 ") && line.contains(" 0A "))
    };
    while !listens() {
        if Instant::now() > deadline {
            return Err("iperf3 does not listen; is it installed?".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(child)
}
