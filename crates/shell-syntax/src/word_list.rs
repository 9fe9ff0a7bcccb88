//! Lists of names in one string.

/// Names separated by white space.
///
/// The tables of this crate hold hundreds of program, option and variable names. One string per table keeps related
/// names on one line; a slice of strings would take one line each. A lookup scans the string, which is short enough
/// that a hash set would not pay for itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordList(pub(crate) &'static str);

impl WordList {
    /// Whether `name` is in the list.
    pub(crate) fn contains(self, name: &str) -> bool {
        self.iter().any(|word| word == name)
    }

    /// Whether the list has no name.
    pub(crate) fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// The names in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }
}
