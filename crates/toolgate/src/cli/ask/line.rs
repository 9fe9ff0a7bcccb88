//! A line that is typed and edited, as a value; drawing it is the prompt's business.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A line under edit.
#[derive(Debug, Default, Clone)]
pub(super) struct Line {
    before: Vec<char>,
    /// What follows the cursor, last character first.
    after: Vec<char>,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// The line may look different.
    Changed,
    /// The line is finished.
    Entered,
    /// The person wants out of it.
    Left,
}

impl Line {
    pub(super) fn with(text: &str) -> Self {
        Self { before: text.chars().collect(), after: Vec::new() }
    }

    pub(super) fn text(&self) -> String {
        self.before.iter().chain(self.after.iter().rev()).collect()
    }

    /// How many characters stand before the cursor, and how many there are.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.before.len(), self.before.len() + self.after.len())
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.before.extend(text.chars().filter(|c| !c.is_control()));
    }

    pub(super) fn press(&mut self, key: &KeyEvent) -> Typed {
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Enter, _) => return Typed::Entered,
            (KeyCode::Esc, _) => return Typed::Left,
            (KeyCode::Char('a'), true) | (KeyCode::Home, _) => while self.back() {},
            (KeyCode::Char('e'), true) | (KeyCode::End, _) => while self.forth() {},
            (KeyCode::Char('u'), true) => self.before.clear(),
            (KeyCode::Char('k'), true) => self.after.clear(),
            (KeyCode::Char(c), false) => self.before.push(c),
            (KeyCode::Backspace, _) => drop(self.before.pop()),
            (KeyCode::Delete, _) => drop(self.after.pop()),
            (KeyCode::Left, _) => drop(self.back()),
            (KeyCode::Right, _) => drop(self.forth()),
            _ => {}
        }
        Typed::Changed
    }

    fn back(&mut self) -> bool {
        self.before.pop().map(|c| self.after.push(c)).is_some()
    }

    fn forth(&mut self) -> bool {
        self.after.pop().map(|c| self.before.push(c)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_in_the_middle() {
        let mut line = Line::with("abd");
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        line.press(&key(KeyCode::Left));
        line.press(&key(KeyCode::Char('c')));
        assert_eq!((line.text().as_str(), line.place()), ("abcd", (3, 4)));
        line.press(&key(KeyCode::Home));
        line.press(&key(KeyCode::Delete));
        line.press(&key(KeyCode::End));
        line.press(&key(KeyCode::Backspace));
        assert_eq!(line.text(), "bc");
        assert_eq!(line.press(&key(KeyCode::Enter)), Typed::Entered);
        assert_eq!(line.press(&key(KeyCode::Esc)), Typed::Left);
    }
}
