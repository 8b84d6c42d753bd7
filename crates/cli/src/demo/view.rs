//! What the demo shows: a line per receiver while it runs, and a table at the end.

use super::{Receiver, Summary};
use crate::progress::style_of;
use crate::report::Reporter;
use crate::units::{show_rate, show_size, show_time};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use std::io::IsTerminal;
use std::time::Duration;

const STYLE: &str = "receiver {prefix:>2} {bar:32} {percent:>3}%  {msg}";

/// The live view, on a terminal.
pub(super) struct View {
    bars: Vec<ProgressBar>,
}

impl View {
    pub(super) fn new(summary: &Summary, reporter: Reporter) -> View {
        let is_shown = !reporter.quiet && std::io::stderr().is_terminal();
        let target =
            if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let bars = (1..=summary.receivers.len())
            .map(|number| {
                let bar = all.add(ProgressBar::new(summary.bytes_total));
                bar.set_style(style_of(STYLE));
                bar.set_prefix(number.to_string());
                bar
            })
            .collect();
        View { bars }
    }

    /// Draws what is known of one receiver.
    pub(super) fn draw(&self, summary: &Summary, from: Option<usize>) {
        let Some(index) = from else { return };
        let (Some(bar), Some(receiver)) = (self.bars.get(index), summary.receivers.get(index))
        else {
            return;
        };
        bar.set_position(receiver.bytes_done);
        bar.set_message(match receiver.elapsed_s {
            Some(seconds) => {
                let time = show_time(Duration::from_secs_f64(seconds));
                format!("verified after {time}, {} from peers", peer_share(receiver))
            }
            None => {
                let rate = show_rate(receiver.rate_down as f64);
                format!("{rate}, {} from peers", peer_share(receiver))
            }
        });
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // The last picture stays above the table.
        self.bars.iter().for_each(ProgressBar::abandon);
    }
}

fn peer_share(receiver: &Receiver) -> String {
    match receiver.from_source + receiver.from_peers {
        0 => "0%".into(),
        all => format!("{}%", receiver.from_peers * 100 / all),
    }
}

/// Prints the table; on stdout, since it is what the command is for.
pub(super) fn print_table(summary: &Summary, reporter: Reporter) {
    reporter.print("receiver      time        rate  from source  from peers  hash");
    for (index, receiver) in summary.receivers.iter().enumerate() {
        let seconds = receiver.elapsed_s.unwrap_or_default();
        let rate = summary.bytes_total as f64 / seconds.max(1e-3);
        reporter.print(&format!(
            "{:>8}  {:>8}  {:>10}  {:>11}  {:>10}  {}",
            index + 1,
            show_time(Duration::from_secs_f64(seconds)),
            show_rate(rate),
            show_size(receiver.from_source),
            show_size(receiver.from_peers),
            if receiver.is_same == Some(true) { "same" } else { "DIFFERS" },
        ));
    }
    let slowest = Duration::from_secs_f64(summary.elapsed_s);
    reporter.print(&format!(
        "{} to {} receivers in {}: {} delivered; the source sent {}, {:.2} times the content",
        show_size(summary.bytes_total),
        summary.receivers.len(),
        show_time(slowest),
        show_rate(
            summary.bytes_total as f64 * summary.receivers.len() as f64
                / summary.elapsed_s.max(1e-3)
        ),
        show_size(summary.source_uploaded),
        summary.source_egress_ratio,
    ));
}
