//! The state of a line editor: text, cursor and key bindings. The prompt draws it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A line with a cursor. Two stacks make every edit at the cursor a push or a pop.
#[derive(Debug, Default, Clone)]
pub(super) struct LineEditor {
    /// The characters before the cursor.
    before: Vec<char>,
    /// The characters after the cursor, the last one first.
    after: Vec<char>,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineEditResult {
    /// The text or the cursor may have changed; draw the line again.
    Changed,
    /// Enter: the line is complete.
    Entered,
    /// Escape: the line is discarded.
    Cancelled,
}

impl LineEditor {
    /// A line with this text and the cursor at its end.
    pub(super) fn with_text(text: &str) -> Self {
        Self { before: text.chars().collect(), after: Vec::new() }
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        self.before.iter().chain(self.after.iter().rev()).collect()
    }

    /// The position of the cursor and the length of the text, in characters.
    pub(super) fn cursor_and_len(&self) -> (usize, usize) {
        (self.before.len(), self.before.len() + self.after.len())
    }

    /// Inserts pasted text without its control characters, so that a line break in it does not enter the line.
    pub(super) fn insert(&mut self, text: &str) {
        self.before.extend(text.chars().filter(|c| !c.is_control()));
    }

    /// Applies a key, with the bindings of Emacs for start, end and deletion.
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

    /// Moves the cursor left; false at the start.
    fn move_left(&mut self) -> bool {
        self.before.pop().map(|c| self.after.push(c)).is_some()
    }

    /// Moves the cursor right; false at the end.
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
