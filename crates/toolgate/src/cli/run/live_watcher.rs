//! Text and calls of a turn, shown at a terminal as they come.

use super::super::output::{paint, style, to_one_line};
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use toolgate::agent::provider::ModelEvent;
use toolgate::agent::{AgentEvent, AgentLoop, AgentObserver, AgentOrigin, TurnReport};
use toolgate::render;

/// How many characters of a call's input a line shows.
const MAX_SHOWN_CHARS: usize = 100;

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
}

impl LiveWatcher {
    /// A watcher, with or without colors.
    pub(super) fn new(is_colorful: bool) -> Self {
        let choice = if is_colorful { anstream::ColorChoice::Auto } else { anstream::ColorChoice::Never };
        let stdout = anstream::AutoStream::new(std::io::stdout(), choice);
        Self { state: Mutex::new(LiveOutputState { stdout, in_line: false }) }
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
            "{} requests, {} calls, {} tokens in, {} out, ${:.4}, {:.1} s",
            report.num_turns,
            report.tool_uses,
            usage.context_tokens(),
            usage.output_tokens,
            agent.meter().total_cost_usd(),
            report.duration.as_secs_f64()
        );
        state.write_line(&paint(style::FAINT, &summary));
    }
}

impl LiveOutputState {
    /// Writes a complete line and first ends the line of streamed text, if the cursor is inside one.
    fn write_line(&mut self, line: &str) {
        let start = if std::mem::take(&mut self.in_line) { "\n" } else { "" };
        // A closed terminal is no reason to end the work.
        let _ = writeln!(self.stdout, "{start}{line}");
    }

    /// Writes text as it comes.
    fn write_text(&mut self, text: &str) {
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
        match event {
            AgentEvent::Streamed(ModelEvent::BlockDelta { delta, .. }) if origin.agent_id.is_none() => {
                if let Some(text) = delta.get("text").and_then(Value::as_str) {
                    state.write_text(text);
                }
            }
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
                    state.write_line(&paint(style::FAINT, &format!("  {}", shorten(&to_one_line(first)))));
                }
                Err(refusal) => {
                    state.write_line(&paint(style::BAD, &format!("  {}", to_one_line(&refusal.to_string()))));
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

/// The most telling field of an input, on one line.
fn describe_input(input: &Map<String, Value>) -> String {
    const TELLING_FIELDS: [&str; 8] =
        ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];
    let told = TELLING_FIELDS.iter().find_map(|key| input.get(*key).and_then(Value::as_str));
    shorten(&to_one_line(&told.map_or_else(|| Value::Object(input.clone()).to_string(), str::to_owned)))
}

/// The start of a text that is too long for a line.
fn shorten(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
