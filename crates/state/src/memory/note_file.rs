//! The file of a note: its name, and its text with a head that has the key.
//!
//! ```text
//! ---
//! key: "build command"
//! ---
//! cargo xtask ci
//! ```
//!
//! The key is a JSON string, which is YAML as well. One line break after the value is part of the form: editors add it,
//! and so does [`format_note_file`]. A file without a head is a note whose key is the name of the file.

use toolgate_files::ContentHash;

/// Characters of a key that its file name shows.
const MAX_SLUG_CHARS: usize = 40;

/// Characters of the hash in a file name.
const HASH_CHARS: usize = 16;

/// The start of a head.
const HEAD_START: &str = "---\n";
/// The end of a head.
const HEAD_END: &str = "\n---\n";

/// The name of the file of a key; further attempts give other names. The hash keeps keys apart that look alike or differ in case only.
pub(super) fn file_name_of(key: &str, attempt: u32) -> String {
    let mut slug = String::new();
    for c in key.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() >= MAX_SLUG_CHARS {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    let hash: String = ContentHash::of(key.as_bytes()).to_string().chars().take(HASH_CHARS).collect();
    let attempt = if attempt == 0 { String::new() } else { format!("-{attempt}") };
    format!("{slug}{}{hash}{attempt}.md", if slug.is_empty() { "" } else { "-" })
}

/// The text of the file of a note.
pub(super) fn format_note_file(key: &str, value: &str) -> String {
    format!("{HEAD_START}key: {}{HEAD_END}{value}\n", serde_json::Value::from(key))
}

/// The key and the value in a file of this name.
pub(super) fn parse_note_file(file_name: &str, text: &str) -> (String, String) {
    let by_name = || file_name.strip_suffix(".md").unwrap_or(file_name).to_owned();
    let head = text.strip_prefix(HEAD_START).and_then(|rest| rest.split_once(HEAD_END));
    let (key, body) = match head {
        Some((head, body)) => (head.lines().find_map(parse_key_line).unwrap_or_else(by_name), body),
        None => (by_name(), text),
    };
    (key, body.strip_suffix('\n').unwrap_or(body).to_owned())
}

/// The key in a line of a head: a JSON string, or plain text as the user would write it.
fn parse_key_line(line: &str) -> Option<String> {
    let given = line.strip_prefix("key:")?.trim();
    let key = serde_json::from_str(given).unwrap_or_else(|_| given.to_owned());
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_user_wrote_is_a_note() {
        assert_eq!(parse_note_file("style.md", "tabs\n"), ("style".to_owned(), "tabs".to_owned()));
        let text = "---\nname: x\nkey: my key\n---\nline\n\n";
        assert_eq!(parse_note_file("a.md", text), ("my key".to_owned(), "line\n".to_owned()));
        assert_eq!(parse_note_file("a.md", "---\nno end"), ("a".to_owned(), "---\nno end".to_owned()));
    }

    #[test]
    fn names_are_safe_and_differ() {
        for key in ["", "..", "/etc/passwd", "a\u{0}b", "Ä", "CON", &"x".repeat(600)] {
            let name = file_name_of(key, 0);
            assert!(name.len() < 80 && !name.starts_with('.') && !name.contains('/'), "{name}");
        }
        assert_ne!(file_name_of("Key", 0), file_name_of("key", 0));
    }
}
