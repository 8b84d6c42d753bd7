//! `anabranch demo`: a source and receivers as processes of their own on this machine, watched.
//!
//! Nothing is staged: each process is this same program with `send` or `get`, a real ticket, real
//! sockets, and a directory of its own. What is shown is what they say in their JSON events; the
//! copies are hashed again here when all are complete.

mod check;
mod process;
mod view;

use crate::args::DemoArguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::{plural, printable};
use crate::report::{Line, Reporter};
use crate::units::show_size;
use anabranch_node::{ErrorKind, System};
use check::Tree;
use process::{Message, Process};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use view::View;

/// What the demo measured.
#[derive(Serialize, Clone)]
pub(crate) struct Summary {
    /// Size of the content in bytes.
    pub(crate) bytes_total: u64,
    /// From the start of the first receiver until the last was complete.
    pub(crate) elapsed_s: f64,
    /// Content bytes that the source sent.
    pub(crate) source_uploaded: u64,
    /// Those as a multiple of the content: 1 is the least possible.
    pub(crate) source_egress_ratio: f64,
    /// Each receiver.
    pub(crate) receivers: Vec<Receiver>,
}

/// One receiver of the demo.
#[derive(Serialize, Clone, Default)]
pub(crate) struct Receiver {
    /// Content bytes it has.
    pub(crate) bytes_done: u64,
    /// New content bytes per second at present.
    pub(crate) rate_down: u64,
    /// Content bytes from the source.
    pub(crate) from_source: u64,
    /// Content bytes from other receivers.
    pub(crate) from_peers: u64,
    /// When it had everything; absent until then.
    pub(crate) elapsed_s: Option<f64>,
    /// Whether its copy, hashed again independently, is the source's; absent until then.
    pub(crate) is_same: Option<bool>,
}

/// Runs the command.
pub(crate) async fn run(
    arguments: DemoArguments,
    reporter: Reporter,
    mut interrupt: Interrupt,
) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("anabranch-demo-").tempdir().map_err(|error| {
        Failure::storage(format!("cannot make a temporary directory: {error}; set TMPDIR"))
    })?;
    let staged = tokio::select! {
        summary = stage(&arguments, dir.path(), reporter) => summary,
        () = interrupt.wait() => Err(Failure::interrupted("interrupted; the demo is cleaned up")),
    };
    // Dropping the directory says nothing when something could not be removed.
    dir.close().map_err(|error| {
        Failure::storage(format!("cannot clean up: {error}; remove it by hand"))
    })?;
    let summary = staged?;
    view::print_table(&summary, reporter);
    if summary.receivers.iter().any(|receiver| receiver.is_same != Some(true)) {
        return Err(Failure::new(
            ErrorKind::Integrity,
            "a copy differs from what was sent; this is a fault of anabranch, please report it",
        ));
    }
    reporter.emit(&Line::DemoResult(summary));
    Ok(())
}

async fn stage(
    arguments: &DemoArguments,
    dir: &Path,
    reporter: Reporter,
) -> Result<Summary, Failure> {
    let (content, original) = prepare(arguments, dir, reporter).await?;
    let (sender, mut messages) = mpsc::channel(1024);
    let source = start_source(&content, arguments.system, dir, &sender)?;
    let ready = wait_for_ticket(&mut messages).await?;
    let name = ready["name"].as_str().unwrap_or_default().to_owned();
    let count = arguments.receivers as usize;
    let sending = format!("sending {} to {}", printable(&name), plural(count as u64, "receiver"));
    reporter.note(&format!("{sending}, each a process of its own"));

    let ticket = ready["ticket"].as_str().unwrap_or_default();
    let started = Instant::now();
    let receivers = (0..count)
        .map(|index| start_receiver(index, ticket, dir, &sender))
        .collect::<Result<Vec<Process>, Failure>>()?;
    let mut summary = Summary {
        bytes_total: ready["bytes_total"].as_u64().unwrap_or_default(),
        elapsed_s: 0.0,
        source_uploaded: 0,
        source_egress_ratio: 0.0,
        receivers: vec![Receiver::default(); count],
    };
    watch(&mut summary, &mut messages, started, reporter).await?;
    summary.elapsed_s = started.elapsed().as_secs_f64();
    end(source, receivers, &mut summary, &mut messages).await;
    compare(&mut summary, &original, dir, reporter).await;
    Ok(summary)
}

/// The path to send, and the hashes of all its files.
async fn prepare(
    arguments: &DemoArguments,
    dir: &Path,
    reporter: Reporter,
) -> Result<(PathBuf, Tree), Failure> {
    let (path, dir) = (arguments.path.clone(), dir.to_owned());
    let (size, copies) = (arguments.size, u64::from(arguments.receivers));
    if path.is_none() {
        reporter.note(&format!("making {} of random bytes", show_size(size)));
    }
    let prepare = move || match path {
        Some(path) => {
            let path = std::path::absolute(&path).unwrap_or(path);
            let tree = Tree::read(&path).map_err(|error| {
                Failure::storage(format!("cannot read {}: {error}; check it", path.display()))
            })?;
            check::has_room(&dir, tree.len().saturating_mul(copies))?;
            Ok((path, tree))
        }
        None => {
            check::has_room(&dir, size.saturating_mul(copies + 1))?;
            let path = dir.join("demo.bin");
            let tree = check::write_random(&path, size).and_then(|()| Tree::read(&path));
            let tree = tree.map_err(|error| {
                Failure::storage(format!("cannot write {}: {error}", path.display()))
            })?;
            Ok((path, tree))
        }
    };
    let panicked = |_| Failure::other("preparing the content failed without a reason");
    tokio::task::spawn_blocking(prepare).await.map_err(panicked)?
}

fn start_source(
    content: &Path,
    system: System,
    dir: &Path,
    messages: &mpsc::Sender<Message>,
) -> Result<Process, Failure> {
    let arguments = ["send", "--listen", "127.0.0.1:0", "--system", system.name(), "--"];
    let mut arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    arguments.push(content.as_os_str().to_owned());
    Process::start(None, &arguments, &dir.join("source"), messages.clone())
}

fn start_receiver(
    index: usize,
    ticket: &str,
    dir: &Path,
    messages: &mpsc::Sender<Message>,
) -> Result<Process, Failure> {
    let dir = dir.join(format!("receiver-{index}"));
    let arguments = ["get", ticket, "--listen", "127.0.0.1:0", "--linger", "1h", "-o", "out"];
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    Process::start(Some(index), &arguments, &dir, messages.clone())
}

async fn wait_for_ticket(messages: &mut mpsc::Receiver<Message>) -> Result<Value, Failure> {
    loop {
        match messages.recv().await {
            Some(Message::Event { event, .. }) if event["event"] == "ready" => return Ok(event),
            Some(Message::Event { .. }) => {}
            Some(Message::Ended { text, code, .. }) => return Err(ended("source", text, code)),
            None => return Err(ended("source", String::new(), None)),
        }
    }
}

/// Follows what the processes say until every receiver has everything.
async fn watch(
    summary: &mut Summary,
    messages: &mut mpsc::Receiver<Message>,
    started: Instant,
    reporter: Reporter,
) -> Result<(), Failure> {
    let view = View::new(summary, reporter);
    while summary.receivers.iter().any(|receiver| receiver.elapsed_s.is_none()) {
        match messages.recv().await {
            Some(Message::Event { from, event }) => {
                note(summary, from, &event, started);
                view.draw(summary, from);
            }
            Some(Message::Ended { from, text, code }) => {
                let who = from.map_or("source".into(), |index| format!("receiver {}", index + 1));
                return Err(ended(&who, text, code));
            }
            None => return Err(ended("demo", String::new(), None)),
        }
    }
    Ok(())
}

/// Takes what a process said into the summary.
fn note(summary: &mut Summary, from: Option<usize>, event: &Value, started: Instant) {
    let number = |key: &str| event[key].as_u64();
    let Some(index) = from else {
        summary.source_uploaded = number("uploaded").unwrap_or(summary.source_uploaded);
        return;
    };
    let Some(receiver) = summary.receivers.get_mut(index) else { return };
    receiver.bytes_done = number("bytes_done").unwrap_or(receiver.bytes_done);
    receiver.rate_down = number("rate_down").unwrap_or(receiver.rate_down);
    receiver.from_source = number("from_source").unwrap_or(receiver.from_source);
    receiver.from_peers = number("from_peers").unwrap_or(receiver.from_peers);
    if event["event"] == "verified" {
        receiver.bytes_done = summary.bytes_total;
        receiver.elapsed_s = Some(started.elapsed().as_secs_f64());
    }
}

/// Ends all processes in good order, the receivers first, and takes down their last words: the
/// exact numbers are in them.
async fn end(
    source: Process,
    receivers: Vec<Process>,
    summary: &mut Summary,
    messages: &mut mpsc::Receiver<Message>,
) {
    let started = Instant::now();
    receivers.iter().for_each(Process::ask_to_end);
    for process in receivers {
        process.wait().await;
    }
    source.ask_to_end();
    source.wait().await;
    while let Ok(message) = messages.try_recv() {
        if let Message::Event { from, event } = message {
            note(summary, from, &event, started);
        }
    }
    summary.source_egress_ratio =
        summary.source_uploaded as f64 / (summary.bytes_total.max(1)) as f64;
}

/// Hashes every copy: whatever is in a receiver's output directory, and nothing beside it.
async fn compare(summary: &mut Summary, original: &Tree, dir: &Path, reporter: Reporter) {
    reporter.note("all are complete; hashing every copy again");
    for (index, receiver) in summary.receivers.iter_mut().enumerate() {
        let out = dir.join(format!("receiver-{index}/out"));
        let tree = tokio::task::spawn_blocking(move || Tree::read(&check::only_entry(&out)?)).await;
        receiver.is_same = Some(tree.is_ok_and(|tree| tree.is_ok_and(|tree| tree == *original)));
    }
}

fn ended(who: &str, text: String, code: Option<u8>) -> Failure {
    let text = if text.is_empty() { "it said nothing about it".to_owned() } else { text };
    let mut failure = Failure::other(format!("the {who} ended too early: {text}"));
    failure.code = code.unwrap_or(failure.code);
    failure
}

/// How long a process gets to end in good order.
const END_MAX: Duration = Duration::from_secs(6);
