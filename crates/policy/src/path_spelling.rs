//! Paths that say one thing to a checker and another to some file system.
//!
//! Such a path is never allowed without a person looking at it, whichever platform runs here.

use std::path::Component;
use toolgate_proto::AbsPath;

/// What is odd about the way a path is spelled, if anything is.
pub(crate) fn spelling_problem(path: &AbsPath) -> Option<String> {
    // Nearly every path is plain; this look keeps the rest off the common way.
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b'@' | b'+');
    let text = path.as_path().to_str()?;
    let dotted = text.ends_with('.') || text.contains("./");
    if !dotted && text.bytes().all(plain) {
        return None;
    }
    let on_drive = text.as_bytes().get(2) == Some(&b':');
    path.as_path().components().find_map(|component| match component {
        Component::Normal(name) => match name.to_str() {
            Some(name) => component_problem(name, on_drive).map(|why| format!("`{name}` {why}")),
            None => Some("a name is not valid text".to_owned()),
        },
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    })
}

/// Paths that are not valid text are odd as well; [`oddity`] cannot look at them.
pub(crate) fn is_not_utf8(path: &AbsPath) -> bool {
    path.as_path().to_str().is_none()
}

fn component_problem(name: &str, on_drive: bool) -> Option<&'static str> {
    if name.chars().any(char::is_control) {
        return Some("holds control characters");
    }
    if name
        .chars()
        .any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}'))
    {
        return Some("holds characters that change how it is shown");
    }
    if name.contains('\\') {
        return Some("holds a backslash, which separates names on other platforms");
    }
    if name.contains("::") || name.contains(":$") || (on_drive && name.len() != 2 && name.contains(':')) {
        return Some("names a stream of a file");
    }
    if name.ends_with(':') && !(on_drive && name.len() == 2) {
        return Some("looks like the start of an address or of a drive");
    }
    let dots_only = name.chars().all(|c| c == '.');
    if (!dots_only || on_drive) && name.ends_with(|c: char| c == '.' || c.is_whitespace()) {
        return Some("ends in a dot or a blank, which other platforms drop");
    }
    if is_dos_short_name(name) {
        return Some("looks like the short form of another name");
    }
    if matches!(name, "?" | "??") {
        return Some("is a prefix with a meaning of its own");
    }
    if on_drive && is_dos_device_name(name) {
        return Some("is the name of a device");
    }
    None
}

/// `GIT~1`: at most six characters, a tilde, digits, and an extension of at most three.
fn is_dos_short_name(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let Some((head, digits)) = stem.rsplit_once('~') else { return false };
    !head.is_empty()
        && stem.len() <= 8
        && extension.len() <= 3
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_dos_device_name(name: &str) -> bool {
    let stem = name.split(['.', ':']).next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let port = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.chars().count() == 1 && rest.chars().all(char::is_numeric))
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || port("COM")
        || port("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_spellings_are_seen_and_ordinary_ones_are_not() {
        for odd in [
            "/ws/a\u{0}b",
            "/ws/a\nb",
            "/ws/a\\..\\b",
            "/C:/ws/a.txt::$DATA",
            "/C:/ws/.git/config.",
            "/ws/x ",
            "/ws/.env\u{a0}",
            "/C:/ws/GIT~1/config",
            "/C:/ws/CON",
            "/C:/ws/nul.txt",
            "/??/UNC/evil",
            "/ws/a\u{202e}b",
            "/C:/ws/com1",
            "/C:/ws/a:b",
            "/ws/a../b",
            "/ws/file:/etc/passwd",
            "/ws/C:/x",
        ] {
            assert!(spelling_problem(&AbsPath::new(odd).unwrap()).is_some(), "{odd:?}");
        }
        for plain in [
            "/ws/src/a.rs",
            "/ws/...",
            "/ws/a..b/c...txt",
            "/ws/日本語.md",
            "/ws/café/x",
            "/ws/100%/x",
            "/ws/a,b;c&d (1).txt",
            "/ws/-rf",
            "/ws/aux.rs",
            "/ws/a:b",
            "/ws/notes~",
            "/C:/ws/a..b/c.txt",
            "/ws/..",
            "/",
        ] {
            assert_eq!(spelling_problem(&AbsPath::new(plain).unwrap()), None, "{plain:?}");
        }
    }
}
