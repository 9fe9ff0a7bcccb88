//! The rows of a prompt: the card of the question in colors, the rules that can be remembered, and the keys.
//!
//! The card lays itself out so that it fits on the screen together with the keys; see
//! [`ApprovalCard`].

use crate::cli::output::{paint, style, to_visible_json};
use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};
use toolgate::{ApprovalCard, CardLine, CardLineKind, CardSize, GrantScope, RuleWidth};
use toolgate_gate::QuestionPosition;
use toolgate_proto::{RiskLevel, RuleSuggestion, fit_line, wrap_columns};

/// How many characters of the next question are displayed.
const MAX_NEXT_CHARS: usize = 100;
/// Columns of the mark before the title, which the card leaves free.
const MIN_MARK_COLUMNS: usize = 2;
/// Rows of the screen beside the card and the keys: an empty one, the position in the queue, the cursor.
const MIN_OTHER_ROWS: usize = 3;

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

/// How a question is displayed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PromptLayout {
    /// Whether to use colors.
    pub(super) painter: ColorPainter,
    /// Columns of the screen.
    pub(super) columns: usize,
    /// Rows of the screen.
    pub(super) rows: usize,
    /// Which form of the rules is offered.
    pub(super) width: RuleWidth,
}

impl PromptLayout {
    /// The card, as large as the screen permits, and whether something was left out.
    pub(super) fn render_question(self, card: &ApprovalCard) -> (Vec<String>, bool) {
        let columns = self.columns.saturating_sub(MIN_MARK_COLUMNS);
        let keys = self.render_keys(card, true).len();
        let height = self.rows.saturating_sub(keys + MIN_OTHER_ROWS);
        let lines = card.render(CardSize { width: columns, height });
        let is_cut = lines.iter().any(|line| line.kind == CardLineKind::Omission);
        (self.paint_card(&lines), is_cut)
    }

    /// The whole card, however long it is, and its head again: what the question is about stays in view.
    pub(super) fn render_everything(self, card: &ApprovalCard) -> Vec<String> {
        let columns = self.columns.saturating_sub(MIN_MARK_COLUMNS);
        let mut rows = self.paint_card(&card.render(CardSize::unlimited(columns)));
        if rows.len() + MIN_OTHER_ROWS > self.rows {
            rows.extend(self.paint_card(&card.render_head(CardSize { width: columns, height: self.rows })));
        }
        rows
    }

    fn paint_card(self, lines: &[CardLine]) -> Vec<String> {
        let mut is_first = true;
        let mut rows = vec![String::new()];
        for line in lines {
            let text = self.painter.paint(line_style(line.kind), &line.text);
            rows.push(match line.kind {
                CardLineKind::Title => {
                    let mark = if is_first { self.painter.paint(style::ASK, "?") } else { " ".to_owned() };
                    is_first = false;
                    format!("{mark} {text}")
                }
                CardLineKind::Risk(_)
                | CardLineKind::Reason
                | CardLineKind::Warning
                | CardLineKind::Body
                | CardLineKind::DiffFile
                | CardLineKind::DiffHunk
                | CardLineKind::DiffAdded
                | CardLineKind::DiffRemoved
                | CardLineKind::DiffContext
                | CardLineKind::Omission => {
                    format!("{}{text}", self.painter.paint(style::FAINT, &line.prefix))
                }
            });
        }
        rows
    }

    /// The rules that can be remembered, then the keys and their answers.
    pub(super) fn render_keys(self, card: &ApprovalCard, is_cut: bool) -> Vec<String> {
        let mut rows = self.render_rules(card);
        let yes = match card.risk {
            RiskLevel::Critical => "yes, once (critical: you have to type `yes`)",
            RiskLevel::Low | RiskLevel::Medium | RiskLevel::High => "yes, once",
        };
        rows.push(self.keys(&[("y", yes)]));
        let rule = if card.rules.len() == 1 { "the rule" } else { "the rules" };
        for scope in &card.scopes {
            let (key, text) = match scope {
                GrantScope::Session => ("s", format!("yes, and allow {rule} for this session")),
                GrantScope::Project => {
                    ("a", format!("yes, and always allow {rule} in this project (in your local settings)"))
                }
            };
            rows.push(self.keys(&[(key, &text)]));
        }
        if !card.scopes.is_empty() && card.has_wider_rules() {
            let other = match self.width {
                RuleWidth::Exact => "offer calls of this kind instead:",
                RuleWidth::Wider => "offer only this call:",
            };
            let changed: Vec<&RuleSuggestion> =
                card.rules.iter().filter(|suggestion| suggestion.wider.is_some()).collect();
            let rules = list_rules(card, changed.into_iter(), self.other_width());
            rows.extend(self.wrap_key("w", &format!("{other} {rules}")));
        }
        let mut last = vec![("n", "no"), ("m", "no, with a message"), ("e", "edit the input")];
        if is_cut {
            last.push(("d", "show all"));
        }
        rows.push(self.keys(&last));
        rows
    }

    /// The other form of the rules.
    pub(super) fn other_width(self) -> RuleWidth {
        match self.width {
            RuleWidth::Exact => RuleWidth::Wider,
            RuleWidth::Wider => RuleWidth::Exact,
        }
    }

    fn render_rules(self, card: &ApprovalCard) -> Vec<String> {
        if card.scopes.is_empty() {
            return Vec::new();
        }
        let label = if card.rules.len() == 1 { "rule" } else { "rules" };
        let rules = list_rules(card, card.rules.iter(), self.width);
        let indent = card.label_columns();
        let rows = wrap_columns(&rules, self.columns.saturating_sub(indent + MIN_MARK_COLUMNS));
        let label = |index| if index == 0 { label } else { "" };
        let row = |(index, text): (usize, String)| {
            let label = format!("  {:1$}", label(index), indent.saturating_sub(2));
            format!("{}{text}", self.painter.paint(style::FAINT, &label))
        };
        rows.into_iter().enumerate().map(row).collect()
    }

    /// Keys on one row.
    fn keys(self, keys: &[(&str, &str)]) -> String {
        let key = |(key, text): &(&str, &str)| {
            format!("{} {text}", self.painter.paint(style::BOLD, &format!("[{key}]")))
        };
        format!("  {}", keys.iter().map(key).collect::<Vec<_>>().join("   "))
    }

    /// One key whose text may take several rows.
    fn wrap_key(self, key: &str, text: &str) -> Vec<String> {
        let rows = wrap_columns(text, self.columns.saturating_sub(8));
        let row = |(index, text): (usize, String)| match index {
            0 => self.keys(&[(key, &text)]),
            _ => format!("      {text}"),
        };
        rows.into_iter().enumerate().map(row).collect()
    }

    /// A note below the keys, broken between words.
    pub(super) fn wrap_note(self, text: &str) -> Vec<String> {
        let rows = wrap_columns(text, self.columns.saturating_sub(MIN_MARK_COLUMNS + 1));
        rows.iter().map(|row| self.painter.paint(style::FAINT, &format!("  {}", row.trim_end()))).collect()
    }

    /// The place of the question among the open ones, and the next of them.
    pub(super) fn render_position(self, position: QuestionPosition, next: Option<&str>) -> Option<String> {
        if position.is_only() {
            return None;
        }
        let next = next.map(|next| format!("; next: {}", fit_line(next, MAX_NEXT_CHARS))).unwrap_or_default();
        let text = format!("  {position}{next}");
        let row = wrap_columns(&text, self.columns.saturating_sub(1)).into_iter().next().unwrap_or_default();
        Some(self.painter.paint(style::FAINT, &row))
    }
}

/// Rules in one form, as a list.
fn list_rules<'a>(
    card: &ApprovalCard,
    rules: impl Iterator<Item = &'a RuleSuggestion>,
    width: RuleWidth,
) -> String {
    let mut out: Vec<String> = Vec::new();
    for suggestion in rules {
        let rule = card.describe_rule(suggestion.rule_of_width(width));
        if !out.contains(&rule) {
            out.push(rule);
        }
    }
    out.join(", ")
}

fn line_style(kind: CardLineKind) -> Style {
    match kind {
        CardLineKind::Title | CardLineKind::DiffFile => style::BOLD,
        CardLineKind::Risk(RiskLevel::Low) | CardLineKind::Omission => style::FAINT,
        CardLineKind::Risk(RiskLevel::Medium) | CardLineKind::Warning => style::ASK,
        CardLineKind::Risk(RiskLevel::High | RiskLevel::Critical) => style::BAD,
        CardLineKind::DiffHunk => HUNK,
        CardLineKind::DiffAdded => ADDED,
        CardLineKind::DiffRemoved => REMOVED,
        CardLineKind::Reason | CardLineKind::Body | CardLineKind::DiffContext => Style::new(),
    }
}

/// The input as JSON text in which invisible characters are escapes, so that what the user edits is what is used.
pub(super) fn editable_json(input: &Map<String, Value>) -> String {
    to_visible_json(&Value::Object(input.clone()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate::{ApprovalQuestion, Code};
    use toolgate_proto::{CardContent, VerdictReason};

    #[test]
    fn a_note_is_broken_between_words() {
        let layout =
            PromptLayout { painter: ColorPainter(false), columns: 40, rows: 24, width: RuleWidth::Exact };
        let text = "that key has no meaning here: press a letter in brackets; Ctrl-C cancels the call";
        let rows = layout.wrap_note(text);
        assert!(rows.len() > 1 && rows.iter().all(|row| row.len() < 40), "{rows:?}");
        let words: Vec<&str> = rows.iter().flat_map(|row| row.split_whitespace()).collect();
        assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn editable_json_escapes_invisible_characters_and_parses_back() {
        let input = serde_json::json!({ "command": "a\u{202e}b\u{1b}[2J\u{e0041}ü" });
        let text = editable_json(input.as_object().unwrap());
        assert_eq!(text, r#"{"command":"a\u202eb\u001b[2J\udb40\udc41ü"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), input);
    }

    proptest::proptest! {
        /// The question and its keys are on the screen together, whatever the call and its rules contain.
        #[test]
        fn question_and_keys_fit_on_the_screen(
            text in ".{0,60}", lines in 0usize..500, rules in 0usize..6, columns in 80usize..160, rows in 24usize..60,
            diff in proptest::bool::ANY, critical in proptest::bool::ANY,
        ) {
            let risk = if critical { RiskLevel::Critical } else { RiskLevel::High };
            let reason = VerdictReason::new(Code::ApprovalUnavailable, format!("because {text}"));
            let mut question = ApprovalQuestion::new("Write".into(), format!("write {text}"), risk, reason);
            let rule = |n: usize| RuleSuggestion::new(format!("Bash(npm run {n})")).with_wider(Some("Bash(npm run *)".to_owned()));
            question.suggestions = (0..rules).map(rule).collect();
            let input = serde_json::json!({ "content": format!("{text}\n").repeat(lines) });
            let diff = diff.then(|| format!("+{text}\n").repeat(lines));
            let scopes = [GrantScope::Session, GrantScope::Project];
            let content = CardContent::new(input.as_object().unwrap(), &scopes).with_diff(diff.as_deref());
            let card = ApprovalCard::new(&question, content);
            let layout = PromptLayout { painter: ColorPainter(false), columns, rows, width: RuleWidth::Exact };
            let (shown, is_cut) = layout.render_question(&card);
            let keys = layout.render_keys(&card, is_cut);
            proptest::prop_assert!(shown.len() + keys.len() + 2 <= rows, "{} and {}", shown.len(), keys.len());
            let all = shown.join("\n");
            proptest::prop_assert!(all.contains("Write wants to") && all.contains("risk ") && all.contains("because"));
            proptest::prop_assert!(keys.last().unwrap().contains("[n] no"));
        }
    }
}
