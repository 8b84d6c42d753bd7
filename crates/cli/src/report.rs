//! What a command says: events as JSON lines on stdout, or sentences on stderr, and the result.

use crate::failure::Failure;
use anabranch_node::{Event, Outcome, Progress};
use anabranch_world::emu::{Host, Report};
use serde::Serialize;
use std::io::Write;

/// The version of the JSON schema, described in `docs/cli.md`.
const SCHEMA: u32 = 1;

/// One line of `--json` output. The last of a run is `complete`, `result` or `error`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    /// The source reads its content.
    Hashing { path: &'a str, bytes_done: u64, bytes_total: u64 },
    /// The source can be reached.
    Ready { name: &'a str, ticket: String, bytes_total: u64 },
    /// A receiver knows what it fetches.
    Joined { name: &'a str, bytes_total: u64, bytes_before: u64 },
    /// How far it is.
    Progress(ProgressLine<'a>),
    /// A peer is linked.
    PeerUp { name: &'a str, peer: String },
    /// A peer is no longer linked.
    PeerDown { name: &'a str, peer: String, reason: String },
    /// A peer sent corrupt data and is not linked again.
    PeerBanned { name: &'a str, peer: String },
    /// A receiver has everything; it may go on serving.
    Verified { name: &'a str, path: &'a str, elapsed_s: f64, ticket: String },
    /// The source heard that a receiver has everything.
    Outcome {
        name: &'a str,
        #[serde(flatten)]
        receiver: OutcomeLine,
    },
    /// Something the user should know.
    Warning { text: &'a str },
    /// The last line of `get`.
    Complete {
        name: &'a str,
        path: &'a str,
        elapsed_s: f64,
        bytes_total: u64,
        bytes_before: u64,
        from_source: u64,
        from_peers: u64,
        uploaded: u64,
        duplicates: u64,
    },
    /// The last line of `send`.
    Result { contents: Vec<ContentLine> },
    /// The last line of `demo`.
    #[serde(rename = "result")]
    DemoResult(crate::demo::Summary),
    /// Programs can run on the hosts of an emulated network.
    Emulating { hosts: &'a [Host] },
    /// The last line of `emu`.
    #[serde(rename = "result")]
    EmuResult {
        #[serde(flatten)]
        report: &'a Report,
        command_code: Option<u8>,
    },
    /// A claim was judged.
    Claim { elapsed_s: f64, claim: serde_json::Value },
    /// The last line of `lab claims --list`.
    #[serde(rename = "result")]
    ClaimsListed { ids: Vec<String> },
    /// The last line of `lab claims` when all hold.
    #[serde(rename = "result")]
    ClaimsResult { holds: usize, report: String },
    /// The last line of a command that failed.
    Error { code: u8, text: String },
    /// What `lab` says.
    #[serde(untagged)]
    Lab(crate::lab::LabLine),
}

/// How far a group is.
#[derive(Serialize)]
pub(crate) struct ProgressLine<'a> {
    name: &'a str,
    bytes_total: u64,
    bytes_done: u64,
    bytes_before: u64,
    rate_down: u64,
    rate_up: u64,
    peers: u32,
    from_source: u64,
    from_peers: u64,
    uploaded: u64,
    duplicates: u64,
    wire_down: u64,
    wire_up: u64,
    eta_s: Option<f64>,
}

impl<'a> ProgressLine<'a> {
    pub(crate) fn new(name: &'a str, progress: &Progress) -> ProgressLine<'a> {
        ProgressLine {
            name,
            bytes_total: progress.bytes_total,
            bytes_done: progress.bytes_done,
            bytes_before: progress.bytes_before,
            rate_down: progress.rate_down as u64,
            rate_up: progress.rate_up as u64,
            peers: progress.peers,
            from_source: progress.from_source,
            from_peers: progress.from_peers,
            uploaded: progress.uploaded,
            duplicates: progress.duplicates,
            wire_down: progress.wire_down,
            wire_up: progress.wire_up,
            eta_s: progress.eta.map(|eta| eta.as_secs_f64()),
        }
    }
}

/// What one receiver told the source.
#[derive(Serialize, Clone)]
pub(crate) struct OutcomeLine {
    pub(crate) peer: String,
    pub(crate) elapsed_s: f64,
    pub(crate) from_source: u64,
    pub(crate) from_peers: u64,
    pub(crate) bytes_before: u64,
}

impl OutcomeLine {
    pub(crate) fn new(outcome: &Outcome) -> OutcomeLine {
        OutcomeLine {
            peer: outcome.peer.to_string(),
            elapsed_s: outcome.elapsed_ms as f64 / 1e3,
            from_source: outcome.bytes_from_source,
            from_peers: outcome.bytes_from_peers,
            bytes_before: outcome.bytes_before,
        }
    }
}

/// What became of one content that was sent.
#[derive(Serialize)]
pub(crate) struct ContentLine {
    pub(crate) name: String,
    pub(crate) bytes_total: u64,
    pub(crate) uploaded: u64,
    pub(crate) receivers: Vec<OutcomeLine>,
}

#[derive(Serialize)]
struct Versioned<'a> {
    v: u32,
    #[serde(flatten)]
    line: &'a Line<'a>,
}

/// Where a command's words go.
#[derive(Clone, Copy)]
pub(crate) struct Reporter {
    /// Events on stdout.
    pub(crate) json: bool,
    /// Only errors on stderr.
    pub(crate) quiet: bool,
}

impl Reporter {
    /// Writes an event when events are wanted. A reader that went away does not stop the work.
    pub(crate) fn emit(self, line: &Line<'_>) {
        if self.json
            && let Ok(text) = serde_json::to_string(&Versioned { v: SCHEMA, line })
        {
            print_line(&text);
        }
    }

    /// Writes a result for scripts to stdout, unless events go there.
    pub(crate) fn print(self, text: &str) {
        if !self.json {
            print_line(text);
        }
    }

    /// Tells the user something on stderr.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            // Nobody may be reading, which is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Tells why the command failed.
    pub(crate) fn fail(self, failure: &Failure) {
        let _ = writeln!(std::io::stderr(), "anabranch: {failure}");
        self.emit(&Line::Error { code: failure.code, text: failure.to_string() });
    }

    /// Passes on an event of the group that is called `name`; those that end a command are the
    /// command's own to report.
    pub(crate) fn event(self, name: &str, event: &Event) {
        match event {
            Event::Progress(progress) => {
                self.emit(&Line::Progress(ProgressLine::new(name, progress)));
            }
            Event::PeerUp { peer } => self.emit(&Line::PeerUp { name, peer: peer.to_string() }),
            Event::PeerDown { peer, reason } => {
                let reason = format!("{reason:?}").to_ascii_lowercase();
                self.emit(&Line::PeerDown { name, peer: peer.to_string(), reason });
            }
            Event::PeerBanned { peer } => {
                self.note(&format!("peer {peer} sent corrupt data and is not used any more"));
                self.emit(&Line::PeerBanned { name, peer: peer.to_string() });
            }
            Event::Outcome(outcome) => {
                self.emit(&Line::Outcome { name, receiver: OutcomeLine::new(outcome) });
            }
            Event::Warning { text } => {
                self.note(&format!("warning: {text}"));
                self.emit(&Line::Warning { text });
            }
            Event::Ready { .. }
            | Event::Joined { .. }
            | Event::Complete { .. }
            | Event::Failed { .. } => {}
        }
    }
}

fn print_line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_says_its_version_and_event() {
        let line = Line::Error { code: 3, text: "no".into() };
        let text = serde_json::to_string(&Versioned { v: SCHEMA, line: &line }).unwrap();
        assert_eq!(text, r#"{"v":1,"event":"error","code":3,"text":"no"}"#);
    }

    #[test]
    fn an_outcome_is_one_flat_object() {
        let receiver = OutcomeLine {
            peer: "ab".into(),
            elapsed_s: 1.5,
            from_source: 1,
            from_peers: 2,
            bytes_before: 3,
        };
        let line = Line::Outcome { name: "x", receiver };
        let value = serde_json::to_value(Versioned { v: SCHEMA, line: &line }).unwrap();
        assert_eq!(value["event"], "outcome");
        assert_eq!(value["from_peers"], 2);
    }
}
