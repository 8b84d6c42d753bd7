//! One process of the demo: this same program, its events read line by line.

use super::END_MAX;
use crate::failure::Failure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What a process says. `from` is the receiver's index, or `None` for the source.
pub(super) enum Message {
    /// An event, as in `docs/cli.md`.
    Event { from: Option<usize>, event: Value },
    /// It ended; `text` is its error when it gave one.
    Ended { from: Option<usize>, text: String, code: Option<u8> },
}

/// A running process; killed when dropped before [`Process::wait`].
pub(super) struct Process {
    child: Child,
    reading: JoinHandle<()>,
}

impl Process {
    /// Starts this program with `arguments` in the new directory `dir`, with state and
    /// configuration of its own.
    pub(super) fn start(
        from: Option<usize>,
        arguments: &[OsString],
        dir: &Path,
        messages: mpsc::Sender<Message>,
    ) -> Result<Process, Failure> {
        let cannot = |error| Failure::other(format!("cannot start a process: {error}"));
        std::fs::create_dir(dir).map_err(cannot)?;
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ANABRANCH_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .arg("--json")
            .args(arguments)
            .current_dir(dir)
            .env("XDG_STATE_HOME", dir.join(".state"))
            .env("XDG_CONFIG_HOME", dir.join(".config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A Ctrl-C on the terminal is the demo's to handle.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let stdout = child.stdout.take();
        let reading = tokio::spawn(async move {
            if let Some(stdout) = stdout {
                pass_on(stdout, from, messages).await;
            }
        });
        Ok(Process { child, reading })
    }

    /// Asks it to leave in good order.
    pub(super) fn ask_to_end(&self) {
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            // It may have ended by itself meanwhile.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
    }

    /// Waits until it has ended and all it said is passed on; kills it when that takes too long.
    pub(super) async fn wait(mut self) {
        if tokio::time::timeout(END_MAX, self.child.wait()).await.is_err() {
            // Killing fails only when it has ended after all.
            let _ = self.child.kill().await;
        }
        let _ = tokio::time::timeout(END_MAX, self.reading).await;
    }
}

/// The longest event: nothing that this program writes comes near it.
const LINE_LEN_MAX: u64 = 1 << 20;

async fn pass_on(
    stdout: impl AsyncRead + Unpin,
    from: Option<usize>,
    messages: mpsc::Sender<Message>,
) {
    let mut stdout = BufReader::new(stdout);
    let (mut text, mut code) = (String::new(), None);
    let mut line = String::new();
    loop {
        line.clear();
        match (&mut stdout).take(LINE_LEN_MAX).read_line(&mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
        if event["event"] == "error" {
            text = event["text"].as_str().unwrap_or_default().to_owned();
            code = event["code"].as_u64().and_then(|code| u8::try_from(code).ok());
        }
        if messages.send(Message::Event { from, event }).await.is_err() {
            return;
        }
    }
    // Nobody listens any more when the demo has ended.
    let _ = messages.send(Message::Ended { from, text, code }).await;
}
