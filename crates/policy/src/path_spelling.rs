//! Paths that a checker and some file system may read differently.
//!
//! Such a path always asks, whichever platform toolgate runs on: the workspace may be mounted from, or copied to, one
//! where the spelling names another file.

use std::path::Component;
use toolgate_proto::AbsPath;

/// What is unusual about the spelling of a path, if anything is.
pub(crate) fn path_spelling_problem(path: &AbsPath) -> Option<String> {
    // Nearly every path is plain ASCII; this test spares it the slow path.
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b'@' | b'+');
    let text = path.as_path().to_str()?;
    let has_final_dot = text.ends_with('.') || text.contains("./");
    if !has_final_dot && text.bytes().all(is_plain) {
        return None;
    }
    let on_drive = text.as_bytes().get(2) == Some(&b':');
    path.as_path().components().find_map(|component| match component {
        Component::Normal(name) => match name.to_str() {
            Some(name) => component_problem(name, on_drive).map(|problem| format!("`{name}` {problem}")),
            None => Some("a name in the path is not valid UTF-8".to_owned()),
        },
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    })
}

/// Whether a path is not valid UTF-8, which [`path_spelling_problem`] cannot examine.
pub(crate) fn is_not_utf8(path: &AbsPath) -> bool {
    path.as_path().to_str().is_none()
}

/// What is unusual about one name. `on_drive` means that the path begins with a Windows drive letter.
fn component_problem(name: &str, on_drive: bool) -> Option<&'static str> {
    if name.chars().any(char::is_control) {
        return Some("contains control characters");
    }
    if name
        .chars()
        .any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}'))
    {
        return Some("contains invisible characters that change how it is displayed");
    }
    if name.contains('\\') {
        return Some("contains a backslash, which separates names on Windows");
    }
    if name.contains("::") || name.contains(":$") || (on_drive && name.len() != 2 && name.contains(':')) {
        return Some("names an alternate data stream of a file");
    }
    if name.ends_with(':') && !(on_drive && name.len() == 2) {
        return Some("looks like the start of a URL or a drive letter");
    }
    let dots_only = name.chars().all(|c| c == '.');
    if (!dots_only || on_drive) && name.ends_with(|c: char| c == '.' || c.is_whitespace()) {
        return Some("ends in a dot or a space, which Windows drops");
    }
    if is_dos_short_name(name) {
        return Some("looks like the DOS short form of another name");
    }
    if matches!(name, "?" | "??") {
        return Some("is a path prefix with a special meaning on Windows");
    }
    if on_drive && is_dos_device_name(name) {
        return Some("is the name of a device on Windows");
    }
    None
}

/// A name such as `GIT~1`: at most six characters, a tilde, digits, and an extension of at most three.
fn is_dos_short_name(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let Some((head, digits)) = stem.rsplit_once('~') else { return false };
    !head.is_empty()
        && stem.len() <= 8
        && extension.len() <= 3
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A name such as `NUL` or `COM1.txt`, which Windows opens as a device in every directory.
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
    fn unusual_spellings_are_detected_and_ordinary_ones_are_not() {
        for unusual in [
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
            assert!(path_spelling_problem(&AbsPath::new(unusual).unwrap()).is_some(), "{unusual:?}");
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
            assert_eq!(path_spelling_problem(&AbsPath::new(plain).unwrap()), None, "{plain:?}");
        }
    }
}
