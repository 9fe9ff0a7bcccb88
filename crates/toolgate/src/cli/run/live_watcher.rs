//! Text and calls of a turn, shown at a terminal as they come.

use super::super::output::{paint, style, to_one_line};
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolgate::agent::provider::ModelEvent;
use toolgate::agent::{AgentEvent, AgentLoop, AgentObserver, AgentOrigin, TurnReport};
use toolgate::render;
use toolgate_proto::{format_count, main_argument, shorten_text};

/// How many characters of a call's input a line shows.
const MAX_SHOWN_CHARS: usize = 100;
/// How many lines of a diff, or of the output of a call that failed, are shown.
const MAX_SHOWN_LINES: usize = 12;
/// A model that answers sooner is not waited for.
const PROGRESS_DELAY: Duration = Duration::from_secs(2);
/// How often the line about waiting is written again.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// Returns to the first column and erases the line.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Shows text and calls at a terminal as they come.
pub(super) struct LiveWatcher {
    /// The terminal. A mutex, because the observer receives events through a shared reference.
    state: Mutex<LiveOutputState>,
}

/// The terminal, and where the cursor is.
struct LiveOutputState {
    /// Standard output, which drops escape sequences if colors are off.
    stdout: anstream::AutoStream<std::io::Stdout>,
    /// The cursor is inside a line of text.
    in_line: bool,
    /// Since when the model has been asked and has not answered.
    waiting_since: Option<Instant>,
    /// The line about waiting is on the screen.
    has_progress: bool,
}

impl LiveWatcher {
    /// A watcher, with or without colors.
    pub(super) fn new(is_colorful: bool) -> Self {
        let choice = if is_colorful { anstream::ColorChoice::Auto } else { anstream::ColorChoice::Never };
        let stdout = anstream::AutoStream::new(std::io::stdout(), choice);
        let state = LiveOutputState { stdout, in_line: false, waiting_since: None, has_progress: false };
        Self { state: Mutex::new(state) }
    }

    /// Says how long the model has been waited for, until the watcher is gone. Without colors there is no way to erase a
    /// line, so nothing is printed.
    pub(super) fn start_progress(self: &Arc<Self>, is_colorful: bool) {
        if !is_colorful {
            return;
        }
        let watcher = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PROGRESS_INTERVAL).await;
                let Some(watcher) = watcher.upgrade() else { return };
                watcher.state.lock().unwrap_or_else(PoisonError::into_inner).write_progress();
            }
        });
    }

    /// Writes a line of its own.
    pub(super) fn write_line(&self, line: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).write_line(line);
    }

    /// Asks for the next prompt.
    pub(super) fn write_prompt(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write_text("\n> ");
        state.in_line = false;
    }

    /// Shows how a turn ended, and what it cost.
    pub(super) fn print_end(&self, agent: &AgentLoop, report: &TurnReport) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = report.ending.message() {
            state.write_line(&paint(style::BAD, &render::escape_invisible(&message)));
        }
        let usage = report.usage;
        let summary = format!(
            "{} {}, {} {}, {} tokens in, {} out, ${:.4}, {:.1} s",
            report.num_turns,
            if report.num_turns == 1 { "request" } else { "requests" },
            report.tool_uses,
            if report.tool_uses == 1 { "call" } else { "calls" },
            usage.context_tokens(),
            usage.output_tokens,
            agent.meter().total_cost_usd(),
            report.duration.as_secs_f64()
        );
        state.write_line(&paint(style::FAINT, &summary));
    }
}

impl LiveOutputState {
    /// Writes how long the model has been waited for, if that is long.
    fn write_progress(&mut self) {
        let waited = self.waiting_since.map(|since| since.elapsed()).unwrap_or_default();
        if waited < PROGRESS_DELAY || self.in_line {
            return;
        }
        let text = paint(style::FAINT, &format!("  waiting for the model, {} s", waited.as_secs()));
        let _ = write!(self.stdout, "{CLEAR_LINE}{text}");
        let _ = self.stdout.flush();
        self.has_progress = true;
    }

    /// Erases the line about waiting.
    fn clear_progress(&mut self) {
        if std::mem::take(&mut self.has_progress) {
            let _ = write!(self.stdout, "{CLEAR_LINE}");
        }
    }

    /// Writes lines below a call, and how many more there are.
    fn write_block(&mut self, lines: &[String], left_out: usize) {
        for line in lines {
            self.write_line(&paint(
                style::FAINT,
                &format!("    {}", shorten_text(&to_one_line(line), MAX_SHOWN_CHARS)),
            ));
        }
        if left_out > 0 {
            let more = format_count(left_out as u64, "more line", "more lines");
            self.write_line(&paint(style::FAINT, &format!("    … {more}")));
        }
    }

    /// Writes a complete line and first ends the line of streamed text, if the cursor is inside one.
    fn write_line(&mut self, line: &str) {
        self.clear_progress();
        let start = if std::mem::take(&mut self.in_line) { "\n" } else { "" };
        // A closed terminal is no reason to end the work.
        let _ = writeln!(self.stdout, "{start}{line}");
    }

    /// Writes the text of events; what arrived together is written together.
    fn write_stream(&mut self, events: &[ModelEvent]) {
        let pieces = events.iter().filter_map(|event| match event {
            ModelEvent::BlockDelta { delta, .. } => delta.text(),
            _ => None,
        });
        let text: String = pieces.collect();
        if !text.is_empty() {
            self.write_text(&text);
        }
    }

    /// Writes text as it comes.
    fn write_text(&mut self, text: &str) {
        self.clear_progress();
        let shown = render::escape_invisible(text);
        let _ = write!(self.stdout, "{shown}");
        let _ = self.stdout.flush();
        self.in_line = !shown.ends_with('\n');
    }
}

impl AgentObserver for LiveWatcher {
    /// Shows streamed text of the main agent only, and calls of all agents: text of parallel subagents would
    /// interleave.
    fn observe(&self, origin: &AgentOrigin, event: &AgentEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A hook may be one of a background agent, beside which the main one waits for its model.
        let is_of_hook = matches!(event, AgentEvent::HookStarted(_) | AgentEvent::HookEnded { .. });
        if origin.agent_id.is_none() && !is_of_hook {
            state.waiting_since = matches!(event, AgentEvent::Requested { .. }).then(Instant::now);
            if state.waiting_since.is_none() {
                state.clear_progress();
            }
        }
        match event {
            AgentEvent::Streamed(events) if origin.agent_id.is_none() => state.write_stream(events),
            AgentEvent::BlockFinished { block, .. } => {
                if let (Some("tool_use"), Some(name)) =
                    (block.get("type").and_then(Value::as_str), block.get("name").and_then(Value::as_str))
                {
                    let input = block.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
                    state.write_line(&format!("{} {}", paint(style::BOLD, name), describe_input(&input)));
                }
            }
            AgentEvent::CallFinished(call) => match &call.outcome.result {
                Ok(output) => {
                    let text = output.display_text();
                    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("done");
                    state.write_line(&paint(
                        style::FAINT,
                        &format!("  {}", shorten_text(&to_one_line(first), MAX_SHOWN_CHARS)),
                    ));
                    // Who was asked has seen the change in the question.
                    if call.outcome.record.approval.is_none() {
                        let diff = diff_lines(output.structured.as_ref());
                        let left_out = diff.len().saturating_sub(MAX_SHOWN_LINES);
                        state.write_block(diff.get(..MAX_SHOWN_LINES).unwrap_or(&diff), left_out);
                    }
                }
                Err(refusal) => {
                    state.write_line(&paint(style::BAD, &format!("  {}", to_one_line(&refusal.to_string()))));
                    // The end of the output says most about what went wrong.
                    let text =
                        refusal.partial.as_ref().map(|partial| partial.display_text()).unwrap_or_default();
                    let lines: Vec<String> =
                        text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
                    let first = lines.len().saturating_sub(MAX_SHOWN_LINES);
                    state.write_block(lines.get(first..).unwrap_or_default(), 0);
                }
            },
            AgentEvent::Noticed(text) => state.write_line(&paint(style::ASK, &to_one_line(text))),
            AgentEvent::Retrying(notice) => {
                let line = format!("{}; trying again in {:.1} s", notice.error, notice.delay.as_secs_f64());
                state.write_line(&paint(style::ASK, &to_one_line(&line)));
            }
            _ => {}
        }
    }
}

/// The changed lines of a call that wrote a file.
fn diff_lines(structured: Option<&Value>) -> Vec<String> {
    let patch = structured.and_then(|value| value.get("structuredPatch")).and_then(Value::as_array);
    let lines = patch.into_iter().flatten().filter_map(|hunk| hunk.get("lines")?.as_array()).flatten();
    lines.filter_map(Value::as_str).filter(|line| line.starts_with(['+', '-'])).map(str::to_owned).collect()
}

/// The main argument of a call, on one line; the whole input if it has none.
fn describe_input(input: &Map<String, Value>) -> String {
    let text = main_argument(input);
    let text = text.map_or_else(|| Value::Object(input.clone()).to_string(), str::to_owned);
    shorten_text(&to_one_line(&text), MAX_SHOWN_CHARS)
}
