//! The text of a prompt: what the call does, its effects and real paths, its commands, the risk, and why approval is
//! needed.
//!
//! The input comes from the model and may try to mislead the user. [`escape_invisible`] escapes characters that move
//! the cursor, reverse the text direction or are invisible. Padding is counted instead of printed, each field gets a
//! share of the lines, and the model's own description comes last and is short, so that no text can push the command
//! off the screen.

use crate::cli::output::{paint, style, to_one_line, to_visible_json};
use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};
use toolgate::ApprovalRequest;
use toolgate::render::escape_invisible;
use toolgate_proto::{RiskLevel, fit_line, fit_text};

/// How many lines of a diff or an input are displayed before the user asks for all of them.
pub(super) const MAX_SHORT_LINES: usize = 40;
/// How many lines each field of an input gets at least.
const MIN_FIELD_LINES: usize = 3;
/// How many characters one labelled line of a question has.
const MAX_PART_CHARS: usize = 1000;
/// How many characters of a line of an input are displayed before the user asks for all of it.
const MAX_SHORT_LINE_CHARS: usize = 400;
/// How many characters of the model's description are displayed.
const MAX_DESCRIPTION_CHARS: usize = 160;
/// The field in which a model describes its call. It has no effect on the call.
const DESCRIPTION_FIELD: &str = "description";

/// Added lines of a diff.
const ADDED: Style = AnsiColor::Green.on_default();
/// Removed lines of a diff.
const REMOVED: Style = AnsiColor::Red.on_default();
/// Hunk headers of a diff.
const HUNK: Style = AnsiColor::Cyan.on_default();

/// Adds styles to text, or not: the terminal is written directly, so no stream removes them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColorPainter(pub(super) bool);

impl ColorPainter {
    /// The text in a style, if colors are on.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.0 { paint(style, text) } else { text.to_owned() }
    }
}

/// How much of the input or diff is displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailLevel {
    /// So much that the question fits on a screen.
    Short,
    /// Everything.
    Full,
}

/// The question, without the keys.
pub(super) fn render_question(
    request: &ApprovalRequest,
    painter: ColorPainter,
    detail: DetailLevel,
) -> Vec<String> {
    let question = &request.question;
    let mut out = vec![String::new()];
    out.push(format!(
        "{} {}",
        painter.paint(style::ASK, "?"),
        painter.paint(
            style::BOLD,
            &format!(
                "{} wants to {}",
                to_one_line(question.tool.as_str()),
                fit_line(&question.description, MAX_PART_CHARS)
            )
        )
    ));
    let mut part = |name: &str, text: &str| {
        out.push(format!("  {} {text}", painter.paint(style::FAINT, &format!("{name:9}"))));
    };
    for (index, effect) in question.effects.iter().enumerate() {
        part(if index == 0 { "effects" } else { "" }, &fit_line(&effect.to_string(), MAX_PART_CHARS));
    }
    let shown: Vec<String> = question.effects.iter().map(|effect| effect.location()).collect();
    let elsewhere = question.locations.iter().filter(|location| !shown.contains(location));
    for (index, location) in elsewhere.enumerate() {
        part(if index == 0 { "real path" } else { "" }, &fit_line(location, MAX_PART_CHARS));
    }
    for (index, command) in request.parts.iter().enumerate() {
        part(
            if index == 0 { "commands" } else { "" },
            &format!("{}. {}", index + 1, fit_line(command, MAX_PART_CHARS)),
        );
    }
    let risk = match question.risk {
        RiskLevel::Low => style::FAINT,
        RiskLevel::Medium => style::ASK,
        RiskLevel::High | RiskLevel::Critical => style::BAD,
    };
    part("risk", &painter.paint(risk, &question.risk.to_string()));
    for warning in &question.warnings {
        part("warning", &painter.paint(style::ASK, &fit_line(&warning.text, MAX_PART_CHARS)));
    }
    part("reason", &fit_line(&question.reason.to_string(), MAX_PART_CHARS));
    out.extend(render_body(request, painter, detail));
    out
}

/// The diff if there is one, else the input.
fn render_body(request: &ApprovalRequest, painter: ColorPainter, detail: DetailLevel) -> Vec<String> {
    match &request.diff {
        Some(diff) => truncate_lines(render_diff(diff, painter), detail, MAX_SHORT_LINES),
        None => render_input(&request.input, painter, detail),
    }
}

/// The questions that wait for this one.
pub(super) fn render_waiting(others: &[String], painter: ColorPainter) -> Vec<String> {
    let line = |other: &String| {
        painter.paint(style::FAINT, &format!("  waiting   {}", fit_line(other, MAX_SHORT_LINE_CHARS)))
    };
    others.iter().map(line).collect()
}

/// The keys and their answers.
pub(super) fn render_keys(
    request: &ApprovalRequest,
    painter: ColorPainter,
    detail: DetailLevel,
) -> Vec<String> {
    let key = |key: &str, text: &str| format!("{} {text}", painter.paint(style::BOLD, &format!("[{key}]")));
    let mut out = Vec::new();
    let yes = match request.question.risk {
        RiskLevel::Critical => "yes, once (critical: you have to type `yes`)",
        RiskLevel::Low | RiskLevel::Medium | RiskLevel::High => "yes, once",
    };
    out.push(format!("  {}", key("y", yes)));
    let rules: Vec<String> =
        request.question.suggestions.iter().map(|rule| format!("`{}`", to_one_line(&rule.rule))).collect();
    if !rules.is_empty() {
        let rules = rules.join(", ");
        out.push(format!("  {}", key("s", &format!("yes, and allow {rules} for this session"))));
        out.push(format!(
            "  {}",
            key(
                "a",
                &format!("yes, and always allow {rules} in this project (saved in your local settings)")
            )
        ));
    }
    out.push(format!(
        "  {}   {}   {}",
        key("n", "no"),
        key("m", "no, with a message to the model"),
        key("e", "edit the input")
    ));
    let plain = ColorPainter(false);
    if detail == DetailLevel::Short
        && render_body(request, plain, DetailLevel::Short) != render_body(request, plain, DetailLevel::Full)
    {
        out.push(format!("  {}", key("d", "show everything")));
    }
    out
}

/// A diff with the usual colors.
fn render_diff(diff: &str, painter: ColorPainter) -> Vec<String> {
    diff.lines()
        .map(|line| {
            let text = escape_invisible(line);
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

/// The input, one field after the other; line breaks in a value are kept.
fn render_input(input: &Map<String, Value>, painter: ColorPainter, detail: DetailLevel) -> Vec<String> {
    let share = (MAX_SHORT_LINES / input.len().max(1)).max(MIN_FIELD_LINES);
    let (description, others): (Vec<_>, Vec<_>) =
        input.iter().partition(|(name, _)| *name == DESCRIPTION_FIELD);
    let mut out = Vec::new();
    for (name, value) in others.into_iter().chain(description) {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = if name == DESCRIPTION_FIELD {
            fit_line(&text, MAX_DESCRIPTION_CHARS)
        } else {
            // Shortens only runs of blanks and empty lines; the lines are limited below.
            fit_text(&text, usize::MAX)
        };
        let columns = if detail == DetailLevel::Short { MAX_SHORT_LINE_CHARS } else { usize::MAX };
        let mut lines = text.lines().map(|line| fit_text(line, columns));
        let first = lines.next().unwrap_or_default();
        let name = fit_line(name, MAX_DESCRIPTION_CHARS);
        let mut field = vec![format!("  {} {first}", painter.paint(style::FAINT, &format!("{name:9}")))];
        field.extend(lines.map(|line| format!("            {line}")));
        out.extend(truncate_lines(field, detail, share));
    }
    out
}

/// The first lines, and how many more there are.
fn truncate_lines(mut lines: Vec<String>, detail: DetailLevel, max_lines: usize) -> Vec<String> {
    if detail == DetailLevel::Short && lines.len() > max_lines {
        let more = lines.len() - max_lines;
        lines.truncate(max_lines);
        lines.push(format!("    … {more} more lines"));
    }
    lines
}

/// The input as JSON text in which invisible characters are escapes, so that what the user edits is what is used.
pub(super) fn editable_json(input: &Map<String, Value>) -> String {
    to_visible_json(&Value::Object(input.clone()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editable_json_escapes_invisible_characters_and_parses_back() {
        let input = serde_json::json!({ "command": "a\u{202e}b\u{1b}[2J\u{e0041}ü" });
        let text = editable_json(input.as_object().unwrap());
        assert_eq!(text, r#"{"command":"a\u202eb\u001b[2J\udb40\udc41ü"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), input);
    }

    #[test]
    fn a_diff_is_colored_and_truncated() {
        let diff = format!("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n{}", " z\n".repeat(60));
        let lines = render_diff(&diff, ColorPainter(true));
        assert!(lines[3].contains("\u{1b}[31m-x") && lines[4].contains("\u{1b}[32m+y"));
        let short = truncate_lines(lines, DetailLevel::Short, MAX_SHORT_LINES);
        assert_eq!(
            (short.len(), short.last().unwrap().as_str()),
            (MAX_SHORT_LINES + 1, "    … 25 more lines")
        );
    }

    proptest::proptest! {
        /// The whole command is displayed before the model's description, whatever padding the other fields contain.
        #[test]
        fn padding_does_not_move_the_command_off_the_screen(
            blank in "[ \t\n\u{a0}\u{3000}\r\u{2800}]", count in 0usize..3000, lines in 0usize..200, text in ".{0,40}",
        ) {
            let padding = format!("{}{}", blank.repeat(count), format!("{text}\n").repeat(lines));
            let input = serde_json::json!({
                "description": format!("harmless{padding}"),
                "note": padding,
                "command": format!("ls{}; rm -rf target", blank.repeat(count)),
            });
            let shown = render_input(input.as_object().unwrap(), ColorPainter(false), DetailLevel::Short);
            let all = shown.join("\n");
            proptest::prop_assert!(shown.len() <= MAX_SHORT_LINES + 3, "{}", shown.len());
            let at = |text: &str| all.find(text);
            proptest::prop_assert!(at("; rm -rf target").is_some(), "{}", all);
            proptest::prop_assert!(at("; rm -rf target") < at("harmless"));
            proptest::prop_assert!(!all.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        }
    }
}
