//! A line that is typed and edited, as a value; drawing it is the prompt's business.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A line under edit.
#[derive(Debug, Default, Clone)]
pub(super) struct LineEditor {
    before: Vec<char>,
    /// What follows the cursor, last character first.
    after: Vec<char>,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineEditResult {
    /// The line may look different.
    Changed,
    /// The line is finished.
    Entered,
    /// The person wants out of it.
    Cancelled,
}

impl LineEditor {
    pub(super) fn with_text(text: &str) -> Self {
        Self { before: text.chars().collect(), after: Vec::new() }
    }

    pub(super) fn text(&self) -> String {
        self.before.iter().chain(self.after.iter().rev()).collect()
    }

    /// How many characters stand before the cursor, and how many there are.
    pub(super) fn cursor_and_len(&self) -> (usize, usize) {
        (self.before.len(), self.before.len() + self.after.len())
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.before.extend(text.chars().filter(|c| !c.is_control()));
    }

    pub(super) fn handle_key(&mut self, key: &KeyEvent) -> LineEditResult {
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Enter, _) => return LineEditResult::Entered,
            (KeyCode::Esc, _) => return LineEditResult::Cancelled,
            (KeyCode::Char('a'), true) | (KeyCode::Home, _) => while self.move_left() {},
            (KeyCode::Char('e'), true) | (KeyCode::End, _) => while self.move_right() {},
            (KeyCode::Char('u'), true) => self.before.clear(),
            (KeyCode::Char('k'), true) => self.after.clear(),
            (KeyCode::Char(c), false) => self.before.push(c),
            (KeyCode::Backspace, _) => drop(self.before.pop()),
            (KeyCode::Delete, _) => drop(self.after.pop()),
            (KeyCode::Left, _) => drop(self.move_left()),
            (KeyCode::Right, _) => drop(self.move_right()),
            _ => {}
        }
        LineEditResult::Changed
    }

    fn move_left(&mut self) -> bool {
        self.before.pop().map(|c| self.after.push(c)).is_some()
    }

    fn move_right(&mut self) -> bool {
        self.after.pop().map(|c| self.before.push(c)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_in_the_middle() {
        let mut line = LineEditor::with_text("abd");
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        line.handle_key(&key(KeyCode::Left));
        line.handle_key(&key(KeyCode::Char('c')));
        assert_eq!((line.text().as_str(), line.cursor_and_len()), ("abcd", (3, 4)));
        line.handle_key(&key(KeyCode::Home));
        line.handle_key(&key(KeyCode::Delete));
        line.handle_key(&key(KeyCode::End));
        line.handle_key(&key(KeyCode::Backspace));
        assert_eq!(line.text(), "bc");
        assert_eq!(line.handle_key(&key(KeyCode::Enter)), LineEditResult::Entered);
        assert_eq!(line.handle_key(&key(KeyCode::Esc)), LineEditResult::Cancelled);
    }
}
