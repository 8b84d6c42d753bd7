//! `anabranch get`: fetch what a ticket names, and serve it to others meanwhile.

use crate::args::{Common, GetArguments};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::{View, printable};
use crate::report::{Line, Reporter};
use crate::settings::File;
use crate::units::{show_rate, show_size, show_time};
use anabranch_node::{Event, FetchOptions, Group, Node, Progress, Ticket};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;

/// No ticket is longer: what is read from a file or stdin.
const TICKET_LEN_MAX: u64 = 64 * 1024;
/// How often the progress line is drawn.
const DRAW: Duration = Duration::from_millis(200);

/// Runs the command.
pub(crate) async fn run(
    arguments: GetArguments,
    common: &Common,
    reporter: Reporter,
    mut interrupt: Interrupt,
) -> Result<(), Failure> {
    let ticket: Ticket = read_ticket(&arguments.ticket)?.parse()?;
    let file = File::read()?;
    let linger = file.linger_or(arguments.linger);
    let mut config = file.node_config(common, &arguments.network)?;
    config.accept_inbound = !arguments.no_listen;
    make_dir(&arguments.output)?;
    let mut options = FetchOptions::new(arguments.output.clone());
    options.overwrite = arguments.overwrite;
    options.identity = arguments.identity;

    let node = Node::bind(config).await?;
    let fetched = tokio::select! {
        group = node.fetch(ticket, options) => group.map_err(Failure::from),
        () = interrupt.wait() => Err(Failure::interrupted("interrupted before anything had come")),
    };
    let result = match fetched {
        Ok(group) => follow(&group, reporter, linger, &mut interrupt).await,
        Err(failure) => Err(failure),
    };
    node.close().await;
    let done = result?;
    reporter.emit(&done.line());
    Ok(())
}

/// What a finished fetch has to say.
struct Done {
    name: String,
    /// As the library gave it.
    path: PathBuf,
    /// The absolute path for people and JSON, which need not be UTF-8 on the disk.
    path_shown: String,
    elapsed: Duration,
    progress: Progress,
}

impl Done {
    fn line(&self) -> Line<'_> {
        Line::Complete {
            name: &self.name,
            path: &self.path_shown,
            elapsed_s: self.elapsed.as_secs_f64(),
            bytes_total: self.progress.bytes_total,
            bytes_before: self.progress.bytes_before,
            from_source: self.progress.from_source,
            from_peers: self.progress.from_peers,
            uploaded: self.progress.uploaded,
            duplicates: self.progress.duplicates,
        }
    }
}

/// Follows the group until everything is here, and for as long after as it shall serve.
async fn follow(
    group: &Group,
    reporter: Reporter,
    linger: Option<Duration>,
    interrupt: &mut Interrupt,
) -> Result<Done, Failure> {
    let started = Instant::now();
    let name = group.name();
    let progress = group.progress();
    reporter.emit(&Line::Joined {
        name: &name,
        bytes_total: progress.bytes_total,
        bytes_before: progress.bytes_before,
    });
    let view = View::new(reporter, &name, progress.bytes_total);
    // The events end when the group does, and then the first branch has the result.
    let shown = async {
        show(group, &name, reporter, &view, false).await;
        std::future::pending::<std::convert::Infallible>().await
    };
    let path = tokio::select! {
        path = group.wait_complete() => path.map_err(Failure::from),
        never = shown => match never {},
        () = interrupt.wait() => Err(Failure::interrupted(
            "interrupted; what came is kept, run the same command again to continue",
        )),
    };
    view.clear();
    let path = path?;
    let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    let path_shown = absolute.to_string_lossy().into_owned();
    let (elapsed, progress) = (started.elapsed(), group.progress());
    let done = Done { name, path, path_shown, elapsed, progress };
    announce(&done, group, reporter);
    stay(group, &done, reporter, linger, interrupt).await;
    Ok(Done { progress: group.progress(), ..done })
}

/// Says that everything is here.
fn announce(done: &Done, group: &Group, reporter: Reporter) {
    reporter.emit(&Line::Verified {
        name: &done.name,
        path: &done.path_shown,
        elapsed_s: done.elapsed.as_secs_f64(),
        ticket: group.ticket().to_string(),
    });
    print_path(reporter, &done.path);
    let came = done.progress.from_source + done.progress.from_peers;
    let share = match came {
        0 => String::new(),
        _ => format!(", {}% of it from peers", done.progress.from_peers * 100 / came),
    };
    reporter.note(&format!(
        "{}: {} verified in {} ({}){share}",
        printable(&done.name),
        show_size(done.progress.bytes_total),
        show_time(done.elapsed),
        show_rate(came as f64 / done.elapsed.as_secs_f64().max(1e-3)),
    ));
}

/// The path as its own bytes: a name need not be UTF-8.
fn print_path(reporter: Reporter, path: &Path) {
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;
    if !reporter.json {
        let mut line = path.as_os_str().as_bytes().to_vec();
        line.push(b'\n');
        // A reader that went away does not stop the work.
        let _ = std::io::stdout().write_all(&line);
    }
}

/// Serves others for as long as asked.
async fn stay(
    group: &Group,
    done: &Done,
    reporter: Reporter,
    linger: Option<Duration>,
    interrupt: &mut Interrupt,
) {
    let is_watched = std::io::stderr().is_terminal() && std::io::stdin().is_terminal();
    let linger = match linger {
        None if is_watched => None,
        None => Some(Duration::ZERO),
        chosen => chosen,
    };
    if linger == Some(Duration::ZERO) {
        return;
    }
    let until = linger.map_or("Ctrl-C".to_owned(), |time| format!("{} are over", show_time(time)));
    reporter.note(&format!("serving others until {until}; their ticket: {}", group.ticket()));
    let view = View::serving(reporter, &done.name);
    let time_is_over = async {
        match linger {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = time_is_over => {}
        () = show(group, &done.name, reporter, &view, true) => {}
        () = interrupt.wait() => {}
    }
    view.clear();
}

/// Passes events on and draws progress until the group ends.
async fn show(group: &Group, name: &str, reporter: Reporter, view: &View, is_serving: bool) {
    let mut events = group.events();
    let mut draw = tokio::time::interval(DRAW);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(Event::Failed { .. }) | Err(RecvError::Closed) => return,
                Ok(event) => reporter.event(name, &event),
                Err(RecvError::Lagged(_)) => {}
            },
            _ = draw.tick() => match is_serving {
                true => view.giving(&group.progress(), 0),
                false => view.fetching(&group.progress()),
            },
        }
    }
}

/// The ticket as text: given itself, in a file or on stdin.
fn read_ticket(argument: &str) -> Result<String, Failure> {
    let (what, read) = match argument.strip_prefix('@') {
        Some(path) => (path, std::fs::File::open(path).and_then(read_bounded)),
        None if argument == "-" => ("stdin", read_bounded(std::io::stdin())),
        None => return Ok(argument.to_owned()),
    };
    let text = read.map_err(|error| {
        Failure::usage(format!("cannot read a ticket from {what}: {error}; check the name"))
    })?;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    match (lines.next(), lines.next()) {
        (Some(ticket), None) => Ok(ticket.to_owned()),
        (None, _) => Err(Failure::usage(format!("there is no ticket in {what}: it is empty"))),
        _ => Err(Failure::usage(format!("{what} has more than one line; give one ticket"))),
    }
}

fn read_bounded(stream: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    stream.take(TICKET_LEN_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn make_dir(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|error| {
        let dir = dir.display();
        Failure::storage(format!(
            "cannot make the directory {dir}: {error}; choose another with -o"
        ))
    })
}
