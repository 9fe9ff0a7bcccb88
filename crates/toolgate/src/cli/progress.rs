//! The progress line of long calls. It is written only to a terminal, and erased before a result or a question.

use super::args::GlobalArgs;
use anstyle::Style;
use std::io::Write;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use toolgate::render::escape_invisible;
use toolgate::{Event, Stage};
use toolgate_process::{StandardStream, is_terminal};

/// Calls that end sooner display no progress.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);
/// The line must not wrap, because only one line is erased.
const MAX_LINE_WIDTH: usize = 78;
/// Width of the bar, for tools that report a fraction.
const BAR_WIDTH: usize = 20;
/// Returns to the first column and erases the line.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Whether to display progress: standard error is a terminal, and neither `--quiet` nor `--json` is given.
pub(crate) fn is_wanted(global: &GlobalArgs) -> bool {
    !global.quiet && !global.json && is_terminal(StandardStream::Stderr)
}

/// Displays progress until so many calls have ended.
pub(crate) async fn show(mut events: Receiver<Event>, mut calls: usize) {
    let started = Instant::now();
    let mut ticks = interval_at(started + PROGRESS_DELAY, Duration::from_millis(200));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut shown = ProgressLine::default();
    let mut err = std::io::stderr();
    let mut dirty = false;
    while calls > 0 {
        tokio::select! {
            event = events.recv() => match event {
                Ok(Event::Closed { .. }) => calls -= 1,
                Err(RecvError::Closed) => break,
                Ok(event) => shown.update(&event),
                Err(RecvError::Lagged(_)) => {}
            },
            _ = ticks.tick() => {
                if let Some(line) = shown.render(started.elapsed()) {
                    dirty = true;
                    // Standard error may be closed; missing progress is no reason to fail.
                    let _ = write!(err, "{CLEAR_LINE}{}{line}{}", Style::new().dimmed(), anstyle::Reset);
                    let _ = err.flush();
                }
            }
        }
    }
    if dirty {
        let _ = write!(err, "{CLEAR_LINE}");
        let _ = err.flush();
    }
}

/// The state that the line is rendered from.
#[derive(Debug, Default)]
struct ProgressLine {
    /// The last line that a tool reported.
    last: String,
    /// How much is done, from 0 to 1.
    fraction: Option<f64>,
    /// An approval prompt is open, which the line would overwrite.
    asking: bool,
}

impl ProgressLine {
    /// Applies an event.
    fn update(&mut self, event: &Event) {
        match event {
            Event::Progress { text, fraction, .. } => {
                if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                    line.trim().clone_into(&mut self.last);
                }
                self.fraction = fraction.or(self.fraction);
            }
            Event::Asked { .. } => self.asking = true,
            Event::Passed { stage: Stage::Settle, .. } => self.asking = false,
            _ => {}
        }
    }

    /// The line, or `None` while nothing may be displayed.
    fn render(&self, elapsed: Duration) -> Option<String> {
        if self.asking || elapsed < PROGRESS_DELAY {
            return None;
        }
        let mut line = format!("{:>3} s ", elapsed.as_secs());
        if let Some(fraction) = self.fraction {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1")]
            let (done, percent) = ((fraction * BAR_WIDTH as f64) as usize, (fraction * 100.0) as u8);
            let done = done.min(BAR_WIDTH);
            line.push_str(&format!("[{}{}] {percent:>3} % ", "#".repeat(done), " ".repeat(BAR_WIDTH - done)));
        }
        let left = MAX_LINE_WIDTH.saturating_sub(line.chars().count());
        line.extend(escape_invisible(&self.last).chars().take(left));
        Some(line.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reports: &[(&str, Option<f64>)], seconds: u64, wanted: Option<&str>) {
        let mut line = ProgressLine::default();
        for (text, fraction) in reports {
            line.update(&Event::Progress { call: "c".into(), text: (*text).to_owned(), fraction: *fraction });
        }
        assert_eq!(line.render(Duration::from_secs(seconds)).as_deref(), wanted);
    }

    #[test]
    fn a_line_has_elapsed_time_fraction_and_last_report() {
        check(&[("quick", None)], 0, None);
        check(&[], 3, Some("  3 s"));
        check(&[("one\ntwo\n\n", None)], 12, Some(" 12 s two"));
        check(&[("a", Some(0.5)), ("b", None)], 2, Some("  2 s [##########          ]  50 % b"));
        check(&[("", Some(1.0))], 2, Some("  2 s [####################] 100 %"));
        let long = "x".repeat(200);
        check(&[(&long, None)], 1, Some(&format!("  1 s {}", "x".repeat(72))));
    }

    #[test]
    fn control_characters_in_a_report_are_escaped() {
        let mut line = ProgressLine { last: "\u{1b}[2J\u{7}".to_owned(), ..ProgressLine::default() };
        assert!(!line.render(PROGRESS_DELAY).unwrap().contains(['\u{1b}', '\u{7}']));
        line.asking = true;
        assert_eq!(line.render(PROGRESS_DELAY), None, "an open prompt is not overwritten");
    }
}
