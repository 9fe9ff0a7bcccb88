//! The state of one question at the terminal: the row under the cursor, what is chosen, the text that is typed.
//!
//! It draws nothing and reads no terminal: keys go in, lines and an answer come out.

use super::line_editor::{LineEditResult, LineEditor};
use super::render::ColorPainter;
use crate::cli::output::style;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::BTreeSet;
use toolgate::render::escape_invisible;
use toolgate::{QuestionAnswer, UserQuestion};
use toolgate_proto::shorten_text;

/// Lines of a preview that are shown.
const MAX_PREVIEW_LINES: usize = 12;

/// The menu of one question.
pub(super) struct QuestionMenu<'q> {
    question: &'q UserQuestion,
    /// The row under the cursor; the one after the options is for the user's own words.
    at: usize,
    /// The rows that are chosen, where several may be.
    chosen: BTreeSet<usize>,
    /// The user's own words, where several answers may be given.
    text: Option<String>,
    /// The line that is typed now.
    typing: Option<LineEditor>,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MenuResult {
    /// Draw the menu again.
    Changed,
    /// The question is answered.
    Answered(QuestionAnswer),
    /// The user does not answer.
    Declined,
}

impl<'q> QuestionMenu<'q> {
    pub(super) fn new(question: &'q UserQuestion) -> Self {
        Self { question, at: 0, chosen: BTreeSet::new(), text: None, typing: None }
    }

    /// Inserts pasted text where a line is typed; elsewhere it has no effect.
    pub(super) fn paste(&mut self, text: &str) {
        if let Some(line) = &mut self.typing {
            line.insert(text);
        }
    }

    pub(super) fn handle_key(&mut self, key: &KeyEvent) -> MenuResult {
        if let Some(line) = &mut self.typing {
            return match line.handle_key(key) {
                LineEditResult::Changed => MenuResult::Changed,
                LineEditResult::Cancelled => {
                    self.typing = None;
                    MenuResult::Changed
                }
                LineEditResult::Entered => self.enter_text(),
            };
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return MenuResult::Changed;
        }
        let own_words = self.question.options.len();
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.at = (self.at + 1).min(own_words),
            KeyCode::Char(digit @ '1'..='9') => {
                let row = digit.to_digit(10).map_or(0, |digit| digit as usize) - 1;
                if row <= own_words {
                    self.at = row;
                    return self.select_row();
                }
            }
            KeyCode::Char(' ') => return self.select_row(),
            KeyCode::Enter if self.question.multi_select && (self.at < own_words || self.text.is_some()) => {
                return self.submit();
            }
            KeyCode::Enter => return self.select_row(),
            KeyCode::Esc => return MenuResult::Declined,
            _ => {}
        }
        MenuResult::Changed
    }

    /// Chooses the row under the cursor, or begins to type.
    fn select_row(&mut self) -> MenuResult {
        let Some(option) = self.question.options.get(self.at) else {
            self.typing = Some(LineEditor::with_text(self.text.as_deref().unwrap_or_default()));
            return MenuResult::Changed;
        };
        if !self.question.multi_select {
            return MenuResult::Answered(QuestionAnswer::new(vec![option.label.clone()]));
        }
        if !self.chosen.remove(&self.at) {
            self.chosen.insert(self.at);
        }
        MenuResult::Changed
    }

    /// Takes the typed line: it is the answer, or one of several.
    fn enter_text(&mut self) -> MenuResult {
        let typed = self.typing.take().map(|line| line.text().trim().to_owned());
        let typed = typed.filter(|text| !text.is_empty());
        if self.question.multi_select {
            self.text = typed;
            return MenuResult::Changed;
        }
        match typed {
            Some(text) => MenuResult::Answered(QuestionAnswer::new(Vec::new()).with_text(text)),
            None => MenuResult::Changed,
        }
    }

    /// Answers with all that is chosen; nothing chosen is no answer yet.
    fn submit(&self) -> MenuResult {
        if self.chosen.is_empty() && self.text.is_none() {
            return MenuResult::Changed;
        }
        let chosen = self.question.options.iter().enumerate().filter(|(row, _)| self.chosen.contains(row));
        let chosen = chosen.map(|(_, option)| option.label.clone()).collect();
        MenuResult::Answered(QuestionAnswer::new(chosen).with_text(self.text.clone()))
    }

    /// The lines to show, each on one row of the terminal.
    pub(super) fn render(&self, painter: ColorPainter, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let own = match &self.text {
            Some(text) => format!("Other: {text}"),
            None => "Other (type an answer)".to_owned(),
        };
        let options =
            self.question.options.iter().map(|option| (option.label.clone(), option.description.as_str()));
        for (row, (label, description)) in options.chain([(own, "")]).enumerate() {
            let cursor = if row == self.at { ">" } else { " " };
            let mark = match (self.question.multi_select, self.is_marked(row)) {
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
                (false, _) => "",
            };
            let head = fit(&format!("{cursor} {}. {mark}{label}", row + 1), width);
            let left = width.saturating_sub(head.chars().count() + 2);
            let description = if left > 8 { fit(description, left) } else { String::new() };
            let head = if row == self.at { painter.paint(style::BOLD, &head) } else { head };
            lines.push(format!("{head}  {}", painter.paint(style::FAINT, &description)));
        }
        if let Some(line) = &self.typing {
            lines.push(fit(&format!("  answer: {}_", line.text()), width));
        } else {
            let preview = self.question.options.get(self.at).and_then(|option| option.preview.as_ref());
            let shown = preview.iter().flat_map(|text| text.lines()).take(MAX_PREVIEW_LINES);
            lines.extend(shown.map(|line| painter.paint(style::FAINT, &fit(&format!("  | {line}"), width))));
        }
        let keys = match (self.typing.is_some(), self.question.multi_select) {
            (true, _) => "  Enter: done   Esc: back",
            (false, true) => "  arrows: move   Space: choose   Enter: done   Esc: do not answer",
            (false, false) => "  arrows: move   Enter: choose   Esc: do not answer",
        };
        lines.push(painter.paint(style::FAINT, &fit(keys, width)));
        lines
    }

    fn is_marked(&self, row: usize) -> bool {
        self.chosen.contains(&row) || row == self.question.options.len() && self.text.is_some()
    }
}

/// Untrusted text on one row: control characters escaped, what is too long left out.
pub(super) fn fit(text: &str, width: usize) -> String {
    shorten_text(&escape_invisible(text).replace(['\n', '\t'], " "), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate::QuestionOption;

    fn question(multi_select: bool) -> UserQuestion {
        let option = |label: &str| {
            QuestionOption::new(label, "means\n\u{1b}[2Jsomething").with_preview("code".to_owned())
        };
        UserQuestion::new("Which?", "Choice", vec![option("a"), option("b"), option("c")])
            .with_multi_select(multi_select)
    }

    fn press(menu: &mut QuestionMenu<'_>, keys: &[KeyCode]) -> MenuResult {
        let mut result = MenuResult::Changed;
        for code in keys {
            assert_eq!(result, MenuResult::Changed, "a key came after the answer");
            result = menu.handle_key(&KeyEvent::new(*code, KeyModifiers::NONE));
        }
        result
    }

    fn answer(chosen: &[&str], text: Option<&str>) -> MenuResult {
        MenuResult::Answered(
            QuestionAnswer::new(chosen.iter().map(|label| (*label).to_owned()).collect())
                .with_text(text.map(str::to_owned)),
        )
    }

    #[test]
    fn one_answer_is_chosen_with_arrows_a_digit_or_words() {
        let one = question(false);
        let menu = || QuestionMenu::new(&one);
        assert_eq!(press(&mut menu(), &[KeyCode::Down, KeyCode::Enter]), answer(&["b"], None));
        assert_eq!(press(&mut menu(), &[KeyCode::Char('3')]), answer(&["c"], None));
        assert_eq!(press(&mut menu(), &[KeyCode::Up, KeyCode::Enter]), answer(&["a"], None));
        let words = [KeyCode::Char('4'), KeyCode::Char('m'), KeyCode::Char('e'), KeyCode::Enter];
        assert_eq!(press(&mut menu(), &words), answer(&[], Some("me")));
        // No words are no answer, and Escape leaves the line before it leaves the question.
        let back = [KeyCode::Char('4'), KeyCode::Enter, KeyCode::Char('4'), KeyCode::Esc, KeyCode::Esc];
        assert_eq!(press(&mut menu(), &back), MenuResult::Declined);
    }

    #[test]
    fn several_answers_are_chosen_with_space() {
        let many = question(true);
        let mut menu = QuestionMenu::new(&many);
        assert_eq!(press(&mut menu, &[KeyCode::Enter]), MenuResult::Changed, "nothing is chosen yet");
        let keys = [KeyCode::Char(' '), KeyCode::Char('2'), KeyCode::Char('2'), KeyCode::Char('3')];
        press(&mut menu, &keys);
        assert!(menu.render(ColorPainter(false), 60).iter().any(|line| line.starts_with("> 3. [x] c")));
        assert_eq!(press(&mut menu, &[KeyCode::Enter]), answer(&["a", "c"], None));
        // After own words were entered, Enter is the end here as on every other row.
        let mut menu = QuestionMenu::new(&many);
        let keys =
            [KeyCode::Char('1'), KeyCode::Char('4'), KeyCode::Char('z'), KeyCode::Enter, KeyCode::Enter];
        assert_eq!(press(&mut menu, &keys), answer(&["a"], Some("z")));
    }

    #[test]
    fn lines_fit_and_cannot_control_the_terminal() {
        let one = question(false);
        for width in [20, 40, 200] {
            for line in QuestionMenu::new(&one).render(ColorPainter(false), width) {
                assert!(line.trim_end().chars().count() <= width, "{width}: {line}");
                assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
            }
        }
    }
}
