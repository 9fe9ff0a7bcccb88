//! Output of commands as plain text, without what a terminal would act on or a model could not see.

use toolgate_proto::escape_invisible;

/// Converts output to plain text: invalid UTF-8 is replaced, terminal escape sequences are removed, a line that carriage
/// returns overwrote is shown as it ended, and other invisible characters are shown as escapes.
pub fn to_plain_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if line.contains(['\u{1b}', '\r', '\u{8}', '\u{9b}', '\u{9d}', '\u{90}']) {
            let line = remove_escapes(line);
            let shown = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
            out.push_str(&remove_backspaces(shown));
        } else {
            out.push_str(line);
        }
    }
    escape_invisible(&out)
}

/// Applies each backspace to the character before it, as a terminal does.
fn remove_backspaces(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if c == '\u{8}' {
            out.pop();
        } else {
            out.push(c);
        }
    }
    out
}

/// Removes control sequences (ECMA-48): CSI, OSC and the other strings, and two-character escapes.
fn remove_escapes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let kind = match c {
            '\u{1b}' => match chars.next() {
                Some(kind) => kind,
                None => break,
            },
            '\u{9b}' => '[',
            '\u{9d}' => ']',
            '\u{90}' => 'P',
            other => {
                out.push(other);
                continue;
            }
        };
        match kind {
            '[' => {
                while chars.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')).is_some() {}
                let _ = chars.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
            }
            ']' | 'P' | 'X' | '^' | '_' => {
                // The string ends with BEL or ST, or at the end of the line.
                while let Some(c) = chars.next() {
                    if c == '\u{7}' || c == '\u{9c}' {
                        break;
                    }
                    if c == '\u{1b}' {
                        let _ = chars.next_if_eq(&'\\');
                        break;
                    }
                }
            }
            '\u{20}'..='\u{2f}' => {
                let _ = chars.next();
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminal_escapes_are_removed() {
        for (raw, text) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("10%\r20%\r100%\ndone\r\n", "100%\ndone\n"),
            ("ab\u{8}c", "ac"),
            ("\u{1b}(Bx\u{1b}", "x"),
            ("a\u{202e}b\u{0}", "a\\u{202e}b\\u{0}"),
        ] {
            assert_eq!(to_plain_text(raw.as_bytes()), text, "{raw:?}");
        }
        assert_eq!(to_plain_text(b"a\xffb"), "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn any_bytes_give_text_without_control_characters(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = to_plain_text(&bytes);
            prop_assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }
    }
}
