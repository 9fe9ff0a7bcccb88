//! Paths of search results: relative to the working directory where possible, and always on one line.

use std::fmt::Write;
use toolgate_gate::Cleared;
use toolgate_proto::AbsPath;

/// Formats paths that are relative to the start of a search.
pub(crate) struct PathFormatter {
    /// The start of the search as shown; empty if it is the working directory.
    start: String,
}

impl PathFormatter {
    /// The formatter for results of a search that starts at `requested`.
    pub(crate) fn for_search(cleared: &Cleared, requested: &AbsPath, absolute: bool) -> Self {
        // A start with `..` in it would be repeated in every result; the real path is shorter.
        let real =
            if requested.lexical() == *requested { None } else { cleared.files().real_path(requested).ok() };
        Self::new(real.as_ref().unwrap_or(requested), &cleared.context().workspace.cwd, absolute)
    }

    /// `absolute` shows absolute paths even below the working directory.
    fn new(start: &AbsPath, cwd: &AbsPath, absolute: bool) -> Self {
        let shown = match start.as_path().strip_prefix(cwd) {
            Ok(below) if !absolute => below,
            _ => start.as_path(),
        };
        Self { start: escape_name(shown.as_os_str().as_encoded_bytes()) }
    }

    /// The path of an entry below the start; an empty relative path is the start itself.
    pub(crate) fn format_path(&self, relative: &[u8]) -> String {
        let relative = escape_name(relative);
        match (self.start.is_empty(), relative.is_empty()) {
            (true, true) => ".".to_owned(),
            (true, false) => relative,
            (false, true) => self.start.clone(),
            (false, false) if self.start.ends_with('/') => format!("{}{relative}", self.start),
            (false, false) => format!("{}/{relative}", self.start),
        }
    }
}

/// A file name as text on one line. Control characters and invalid UTF-8 are escaped, so that a name cannot look like
/// two results and no two names look the same.
pub(crate) fn escape_name(name: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(name)
        && !text.chars().any(char::is_control)
    {
        return text.to_owned();
    }
    let mut escaped = String::new();
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                escaped.extend(character.escape_default());
            } else {
                escaped.push(character);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(escaped, "\\x{byte:02x}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_working_directory_are_relative_to_it() {
        let path = |path: &str| AbsPath::new(path).unwrap();
        let check = |start: &str, relative: &[u8], absolute, expected: &str| {
            let formatter = PathFormatter::new(&path(start), &path("/ws"), absolute);
            assert_eq!(formatter.format_path(relative), expected);
        };
        check("/ws", b"a/b", false, "a/b");
        check("/ws/src", b"a/b", false, "src/a/b");
        check("/ws/src/f.rs", b"", false, "src/f.rs");
        check("/ws", b"", false, ".");
        check("/ws", b"a", true, "/ws/a");
        check("/wsx", b"a", false, "/wsx/a");
        check("/", b"a", false, "/a");
        check("/ws", b"a\nb\xff\x1b", false, "a\\nb\\xff\\u{1b}");
    }
}
