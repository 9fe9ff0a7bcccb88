//! What is looked at before anything is parsed: length, and characters that deceive the eye.

use super::analysis::{CommandDoubt, DoubtKind};

/// Beyond this nobody reads a prompt, and peers have lost deny rules there.
const MAX_COMMAND_CHARS: usize = 10_000;

/// Finds reasons to doubt a text without reading it as a program.
pub(super) fn check_text(text: &str) -> Option<CommandDoubt> {
    if text.chars().nth(MAX_COMMAND_CHARS).is_some() {
        return Some(CommandDoubt {
            kind: DoubtKind::TooLong,
            text: format!("the command has more than {MAX_COMMAND_CHARS} characters"),
        });
    }
    let mut before = ' ';
    for character in text.chars() {
        if is_invisible(character, before) {
            return Some(CommandDoubt {
                kind: DoubtKind::InvisibleText,
                text: format!("the command holds the invisible character U+{:04X}", u32::from(character)),
            });
        }
        before = character;
    }
    None
}

/// Whether a prompt would not show this character as what it is.
fn is_invisible(character: char, before: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{a0}' => true,
        // Parts of emoji, invisible elsewhere.
        '\u{200d}' | '\u{fe0f}' => before.is_ascii() || before == '\u{200d}',
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' => true,
        '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' => true,
        '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<DoubtKind>) {
        assert_eq!(check_text(text).map(|doubt| doubt.kind), expected, "{text:?}");
    }

    #[test]
    fn text_that_shows_as_it_is_passes() {
        for text in
            ["ls -la", "echo 'héllo wörld'", "echo '🚀 done'", "echo 👨‍👩‍👧 ⚠️", "a\n\tb", "echo 漢字　x", ""]
        {
            check(text, None);
        }
    }

    #[test]
    fn text_that_deceives_the_eye_does_not() {
        for hidden in [
            "\r",
            "\0",
            "\x0b",
            "\x1b[2K",
            "\x7f",
            "\u{85}",
            "\u{a0}",
            "\u{200b}",
            "\u{202e}",
            "\u{2066}",
            "\u{2028}",
            "\u{feff}",
            "\u{e0061}",
            "\u{3164}",
            "\u{200d}",
            "\u{fe0f}",
        ] {
            check(&format!("echo a{hidden}b"), Some(DoubtKind::InvisibleText));
        }
    }

    #[test]
    fn a_line_that_nobody_reads_to_the_end_does_not() {
        check(&"é".repeat(MAX_COMMAND_CHARS), None);
        check(&"a".repeat(MAX_COMMAND_CHARS + 1), Some(DoubtKind::TooLong));
    }
}
