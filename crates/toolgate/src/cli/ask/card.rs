//! What a person is shown: words first, then each effect, where it really leads, the risk, and why they are asked.
//!
//! Text of the model's passes through [`visible`], so that nothing in it can move the cursor, turn the writing
//! direction or hide.

use crate::cli::out::{paint, style};
use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};
use toolgate::ApprovalRequest;
use toolgate::render::visible;
use toolgate_proto::Severity;

/// Lines of a diff or an input that are shown without asking for more.
pub(super) const SHORT: usize = 40;

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();

/// Text in a style, where colour is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Painter(pub(super) bool);

impl Painter {
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.0 { paint(style, text) } else { text.to_owned() }
    }
}

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    Whole,
}

/// The question as lines.
pub(super) fn lines(request: &ApprovalRequest, painter: Painter, length: Length) -> Vec<String> {
    let question = &request.question;
    let mut out = vec![String::new()];
    out.push(format!(
        "{} {}",
        painter.paint(style::ASK, "?"),
        painter.paint(
            style::BOLD,
            &format!("{} wants to {}", one_line(question.tool.as_str()), one_line(&question.description))
        )
    ));
    let mut part = |name: &str, text: &str| {
        out.push(format!("  {} {text}", painter.paint(style::FAINT, &format!("{name:9}"))));
    };
    for (index, effect) in question.effects.iter().enumerate() {
        part(if index == 0 { "effects" } else { "" }, &one_line(&effect.to_string()));
    }
    let shown: Vec<String> = question.effects.iter().map(|effect| effect.location()).collect();
    let elsewhere = question.locations.iter().filter(|location| !shown.contains(location));
    for (index, location) in elsewhere.enumerate() {
        part(if index == 0 { "leads to" } else { "" }, &one_line(location));
    }
    for (index, command) in request.parts.iter().enumerate() {
        part(if index == 0 { "commands" } else { "" }, &format!("{}. {}", index + 1, one_line(command)));
    }
    let risk = match question.risk {
        Severity::Low => style::FAINT,
        Severity::Medium => style::ASK,
        Severity::High | Severity::Critical => style::BAD,
    };
    part("risk", &painter.paint(risk, &question.risk.to_string()));
    for warning in &question.warnings {
        part("warning", &painter.paint(style::ASK, &one_line(&warning.text)));
    }
    part("because", &one_line(&question.reason.to_string()));
    match &request.diff {
        Some(diff) => out.extend(cut(diff_lines(diff, painter), length)),
        None => out.extend(cut(input_lines(&request.input, painter), length)),
    }
    out
}

/// Questions that wait behind this one.
pub(super) fn waiting(others: &[String], painter: Painter) -> Vec<String> {
    let line = |other: &String| painter.paint(style::FAINT, &format!("  waiting   {}", one_line(other)));
    others.iter().map(line).collect()
}

/// The answers there are.
pub(super) fn keys(request: &ApprovalRequest, painter: Painter, length: Length) -> Vec<String> {
    let key = |key: &str, text: &str| format!("{} {text}", painter.paint(style::BOLD, &format!("[{key}]")));
    let mut out = Vec::new();
    let yes = match request.question.risk {
        Severity::Critical => "yes, once (you will be asked to type it)",
        Severity::Low | Severity::Medium | Severity::High => "yes, once",
    };
    out.push(format!("  {}", key("y", yes)));
    let rules: Vec<String> =
        request.question.suggestions.iter().map(|rule| format!("`{}`", one_line(&rule.rule))).collect();
    if !rules.is_empty() {
        let rules = rules.join(", ");
        out.push(format!("  {}", key("s", &format!("yes, and {rules} for this session"))));
        out.push(format!(
            "  {}",
            key("a", &format!("yes, and {rules} always (written to the local settings)"))
        ));
    }
    out.push(format!(
        "  {}   {}   {}",
        key("n", "no"),
        key("m", "no, with a message to the model"),
        key("e", "edit the input")
    ));
    let whole = request
        .diff
        .as_deref()
        .map_or_else(|| input_lines(&request.input, Painter(false)).len(), |diff| diff.lines().count());
    if length == Length::Short && whole > SHORT {
        out.push(format!("  {}", key("d", "show all of it")));
    }
    out
}

fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

fn diff_lines(diff: &str, painter: Painter) -> Vec<String> {
    diff.lines()
        .map(|line| {
            let text = visible(line);
            match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => painter.paint(style::BOLD, &text),
                [b'+', ..] => painter.paint(ADDED, &text),
                [b'-', ..] => painter.paint(REMOVED, &text),
                [b'@', ..] => painter.paint(HUNK, &text),
                _ => text,
            }
        })
        .map(|line| format!("    {line}"))
        .collect()
}

/// The input, one field a line; text with several lines keeps them.
fn input_lines(input: &Map<String, Value>, painter: Painter) -> Vec<String> {
    let mut out = Vec::new();
    for (name, value) in input {
        let text = match value {
            Value::String(text) => visible(text),
            other => visible(&other.to_string()),
        };
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default().to_owned();
        out.push(format!("  {} {first}", painter.paint(style::FAINT, &format!("{:9}", one_line(name)))));
        out.extend(lines.map(|line| format!("            {line}")));
    }
    out
}

fn cut(mut lines: Vec<String>, length: Length) -> Vec<String> {
    if length == Length::Short && lines.len() > SHORT {
        let more = lines.len() - SHORT;
        lines.truncate(SHORT);
        lines.push(format!("    … {more} more lines"));
    }
    lines
}

/// JSON text in which characters that could fool the eye are escapes, so that it can be shown and edited as it is.
pub(super) fn editable(input: &Map<String, Value>) -> String {
    let text = Value::Object(input.clone()).to_string();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut buffer = [0; 4];
        let shown: &str = c.encode_utf8(&mut buffer);
        if visible(shown) == shown {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_edited_reads_back_and_hides_nothing() {
        let input = serde_json::json!({ "command": "a\u{202e}b\u{1b}[2J\u{e0041}ü" });
        let text = editable(input.as_object().unwrap());
        assert_eq!(text, r#"{"command":"a\u202eb\u001b[2J\udb40\udc41ü"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), input);
    }

    #[test]
    fn a_diff_is_coloured_and_cut() {
        let diff = format!("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n{}", " z\n".repeat(60));
        let lines = diff_lines(&diff, Painter(true));
        assert!(lines[3].contains("\u{1b}[31m-x") && lines[4].contains("\u{1b}[32m+y"));
        let cut = cut(lines, Length::Short);
        assert_eq!((cut.len(), cut.last().unwrap().as_str()), (SHORT + 1, "    … 25 more lines"));
    }
}
