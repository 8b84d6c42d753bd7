//! Progress for people: a line on stderr when that is a terminal, and nothing otherwise.

use crate::report::Reporter;
use crate::units::{show_rate, show_size, show_time};
use anabranch_node::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

const STYLE: &str = "{prefix} {bar:24} {percent:>3}% {msg}";
const STYLE_SERVING: &str = "{prefix} {msg}";

/// The progress line of one content.
pub(crate) struct View {
    bar: ProgressBar,
}

impl View {
    /// A line for the content called `name`, of `bytes_total` bytes.
    pub(crate) fn new(reporter: Reporter, name: &str, bytes_total: u64) -> View {
        View::styled(reporter, STYLE, name, bytes_total)
    }

    /// A line for somebody who only serves.
    pub(crate) fn serving(reporter: Reporter, name: &str) -> View {
        View::styled(reporter, STYLE_SERVING, name, 0)
    }

    fn styled(reporter: Reporter, style: &str, name: &str, bytes_total: u64) -> View {
        let is_shown = !reporter.quiet && std::io::stderr().is_terminal();
        let target =
            if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(bytes_total), target);
        bar.set_style(style_of(style));
        bar.set_prefix(printable(name));
        View { bar }
    }

    /// Shows how far hashing is.
    pub(crate) fn hashing(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(format!("hashing {}", show_size(total)));
    }

    /// Shows how far a receiver is.
    pub(crate) fn fetching(&self, progress: &Progress) {
        self.bar.set_length(progress.bytes_total);
        self.bar.set_position(progress.bytes_done);
        self.bar.set_message(describe(progress));
    }

    /// Shows what somebody who has everything gives to others.
    pub(crate) fn giving(&self, progress: &Progress, receivers_done: usize) {
        self.bar.set_message(format!(
            "serving: {}, {} sent, {}, {receivers_done} complete",
            show_rate(progress.rate_up),
            show_size(progress.uploaded),
            plural(u64::from(progress.peers), "peer"),
        ));
        self.bar.tick();
    }

    /// Says a sentence without disturbing the line.
    pub(crate) fn note(&self, reporter: Reporter, text: &str) {
        self.bar.suspend(|| reporter.note(text));
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A style of ours; the templates are constants that are tried by a test.
pub(crate) fn style_of(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// How far a receiver is, in a few words.
pub(crate) fn describe(progress: &Progress) -> String {
    let eta = progress.eta.map_or(String::new(), |eta| format!(", {} left", show_time(eta)));
    format!(
        "{}{eta}, {}{}",
        show_rate(progress.rate_down),
        plural(u64::from(progress.peers), "peer"),
        share(progress.from_source, progress.from_peers),
    )
}

fn share(from_source: u64, from_peers: u64) -> String {
    match from_source + from_peers {
        0 => String::new(),
        all => format!(", {}% from peers", from_peers * 100 / all),
    }
}

/// `1 peer`, `2 peers`.
pub(crate) fn plural(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// A name as it may be put on a terminal: control characters would move the cursor.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_templates_are_understood() {
        for template in [STYLE, STYLE_SERVING] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }

    #[test]
    fn a_receiver_is_described_with_rate_rest_peers_and_share() {
        let progress = Progress {
            rate_down: 12_300_000.0,
            peers: 1,
            from_source: 1,
            from_peers: 3,
            eta: Some(Duration::from_secs(2)),
            ..Progress::default()
        };
        assert_eq!(describe(&progress), "12.3 MB/s, 2.0 s left, 1 peer, 75% from peers");
        assert_eq!(describe(&Progress::default()), "0 B/s, 0 peers");
    }

    #[test]
    fn a_name_cannot_move_the_cursor() {
        assert_eq!(printable("a\x1b[2J\nb"), "a?[2J?b");
    }
}
