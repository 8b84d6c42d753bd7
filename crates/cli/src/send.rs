//! `anabranch send`: make files and directories available and print their tickets.

use crate::args::{Common, SendArguments};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::{View, plural, printable};
use crate::report::{ContentLine, Line, OutcomeLine, Reporter};
use crate::settings::File;
use crate::units::{show_size, show_time};
use anabranch_node::{ErrorKind, Event, Group, Node, ShareOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

/// How often the progress line is drawn.
const DRAW: Duration = Duration::from_millis(500);

/// A content that is being sent, and who has it.
struct Content {
    name: String,
    group: Group,
    /// Until they are merged with those of the other contents.
    events: Option<broadcast::Receiver<Event>>,
    receivers: Vec<OutcomeLine>,
}

/// Runs the command.
pub(crate) async fn run(
    arguments: SendArguments,
    common: &Common,
    reporter: Reporter,
    mut interrupt: Interrupt,
) -> Result<(), Failure> {
    let file = File::read()?;
    let node = Node::bind(file.node_config(common, &arguments.network)?).await?;
    let result = tokio::select! {
        contents = share_all(&node, &arguments, reporter) => contents,
        () = interrupt.wait() => Err(Failure::interrupted("interrupted before it was ready")),
    };
    let mut contents = match result {
        Ok(contents) => contents,
        Err(failure) => {
            node.close().await;
            return Err(failure);
        }
    };
    let ended = serve(&mut contents, &arguments, reporter, &mut interrupt).await;
    contents.iter().for_each(|content| content.emit_progress(reporter));
    let result = Line::Result { contents: contents.iter().map(Content::line).collect() };
    node.close().await;
    print_outcomes(&contents, reporter);
    ended?;
    reporter.emit(&result);
    Ok(())
}

impl Content {
    /// The last word on what was sent, however the command ends.
    fn emit_progress(&self, reporter: Reporter) {
        reporter.event(&self.name, &Event::Progress(self.group.progress()));
    }

    fn line(&self) -> ContentLine {
        let progress = self.group.progress();
        ContentLine {
            name: self.name.clone(),
            bytes_total: progress.bytes_total,
            uploaded: progress.uploaded,
            receivers: self.receivers.clone(),
        }
    }

    /// Notes an outcome; a receiver that reports twice counts once.
    fn note(&mut self, receiver: OutcomeLine) {
        self.receivers.retain(|known| known.peer != receiver.peer);
        self.receivers.push(receiver);
    }
}

async fn share_all(
    node: &Node,
    arguments: &SendArguments,
    reporter: Reporter,
) -> Result<Vec<Content>, Failure> {
    let mut contents = Vec::new();
    for path in &arguments.paths {
        let group = share(node, path, arguments, reporter).await?;
        let mut events = group.events();
        // The first event says that it can be reached, and then all is known about it.
        while !matches!(events.recv().await, Ok(Event::Ready { .. }) | Err(RecvError::Closed)) {}
        let name = group.name();
        contents.push(Content { name, group, events: Some(events), receivers: Vec::new() });
    }
    let tickets: Vec<String> = contents.iter().map(|c| c.group.ticket().to_string()).collect();
    if let Some(path) = &arguments.ticket_file {
        write_tickets(path, &tickets)?;
    }
    for (content, ticket) in contents.iter().zip(tickets) {
        let bytes_total = content.group.progress().bytes_total;
        let (name, size) = (printable(&content.name), show_size(bytes_total));
        reporter.print(&ticket);
        reporter.note(&format!("{name} ({size}) can be fetched: anabranch get TICKET"));
        reporter.emit(&Line::Ready { name: &content.name, ticket, bytes_total });
    }
    Ok(contents)
}

async fn share(
    node: &Node,
    path: &Path,
    arguments: &SendArguments,
    reporter: Reporter,
) -> Result<Group, Failure> {
    let shown = path.to_string_lossy().into_owned();
    let view = Arc::new(View::new(reporter, &shown, 0));
    let hashing = {
        let (view, told) = (Arc::clone(&view), Mutex::new(None::<Instant>));
        move |bytes_done, bytes_total| {
            view.hashing(bytes_done, bytes_total);
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if bytes_done == bytes_total || told.is_none_or(|told| told.elapsed() >= DRAW) {
                *told = Some(Instant::now());
                reporter.emit(&Line::Hashing { path: &shown, bytes_done, bytes_total });
            }
        }
    };
    let options = ShareOptions {
        system: arguments.system,
        block_size: arguments.block_size,
        hashing: Some(Arc::new(hashing)),
    };
    let group = node.share(path, options).await;
    view.clear();
    Ok(group?)
}

/// Serves until enough receivers have everything, or until the user ends it.
async fn serve(
    contents: &mut [Content],
    arguments: &SendArguments,
    reporter: Reporter,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    let mut events = merge(contents);
    let names: Vec<&str> = contents.iter().map(|content| content.name.as_str()).collect();
    let view = View::serving(reporter, &names.join(", "));
    let mut draw = tokio::time::interval(DRAW);
    let wanted = arguments.until_complete.map_or(usize::MAX, |count| count as usize);
    let result = loop {
        if contents.iter().all(|content| content.receivers.len() >= wanted) {
            break Ok(());
        }
        tokio::select! {
            event = events.recv() => match event {
                Some((index, event)) => {
                    if let Err(failure) = on_event(&mut contents[index], &event, reporter, &view) {
                        break Err(failure);
                    }
                }
                None => break Err(Failure::other("nothing is being sent any more")),
            },
            _ = draw.tick() => draw_all(contents, &view),
            () = interrupt.wait() => break Err(interrupted(contents, arguments.until_complete)),
        }
    };
    view.clear();
    result
}

fn on_event(
    content: &mut Content,
    event: &Event,
    reporter: Reporter,
    view: &View,
) -> Result<(), Failure> {
    reporter.event(&content.name, event);
    match event {
        Event::Outcome(outcome) => {
            let receiver = OutcomeLine::new(outcome);
            let (peer, time) = (&receiver.peer, Duration::from_secs_f64(receiver.elapsed_s));
            view.note(reporter, &format!("receiver {peer} is complete after {}", show_time(time)));
            content.note(receiver);
            Ok(())
        }
        Event::Failed { text } => Err(Failure::other(text.clone())),
        _ => Ok(()),
    }
}

/// All events of all groups, with the number of the group.
fn merge(contents: &mut [Content]) -> mpsc::Receiver<(usize, Event)> {
    let (sender, receiver) = mpsc::channel(256);
    for (index, content) in contents.iter_mut().enumerate() {
        let Some(mut events) = content.events.take() else { continue };
        let sender = sender.clone();
        tokio::spawn(async move {
            loop {
                let event = match events.recv().await {
                    Ok(event) => event,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                };
                if sender.send((index, event)).await.is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

fn draw_all(contents: &[Content], view: &View) {
    let mut sum = anabranch_node::Progress::default();
    for progress in contents.iter().map(|content| content.group.progress()) {
        sum.rate_up += progress.rate_up;
        sum.uploaded += progress.uploaded;
        sum.peers += progress.peers;
    }
    view.giving(&sum, contents.iter().map(|content| content.receivers.len()).sum());
}

fn interrupted(contents: &[Content], wanted: Option<u32>) -> Failure {
    let Some(wanted) = wanted else {
        return Failure::interrupted("interrupted; no longer serving");
    };
    let done = contents.iter().map(|content| content.receivers.len()).min().unwrap_or(0);
    Failure::new(
        ErrorKind::Partial,
        format!(
            "interrupted when {done} of {wanted} receivers were complete; send it again and the \
             rest continue with the same ticket"
        ),
    )
}

/// Who has what, how long it took, from whom it came.
fn print_outcomes(contents: &[Content], reporter: Reporter) {
    for content in contents {
        let progress = content.group.progress();
        reporter.note(&format!(
            "{}: {} complete, {} sent for {} of content",
            printable(&content.name),
            plural(content.receivers.len() as u64, "receiver"),
            show_size(progress.uploaded),
            show_size(progress.bytes_total),
        ));
        for receiver in &content.receivers {
            reporter.note(&format!(
                "  {}  {:>10}  {:>9} from source  {:>9} from peers  {:>9} before",
                receiver.peer,
                show_time(Duration::from_secs_f64(receiver.elapsed_s)),
                show_size(receiver.from_source),
                show_size(receiver.from_peers),
                show_size(receiver.bytes_before),
            ));
        }
    }
}

/// Writes the tickets so that only the user can read them, and a reader never sees a part.
fn write_tickets(path: &Path, tickets: &[String]) -> Result<(), Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let partial = PathBuf::from(name);
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all((tickets.join("\n") + "\n").as_bytes())?;
        std::fs::rename(&partial, path)
    };
    write().map_err(|error| {
        let path = path.display();
        Failure::storage(format!("cannot write {path}: {error}; choose another --ticket-file"))
    })
}
