//! Checks the text of a command before it is parsed: its length, and invisible characters.
//!
//! A user approves what a prompt displays. Characters that a terminal hides, reorders or overwrites would make that
//! something else than what runs. The same characters are legitimate in few commands, so that a question is cheap.

use crate::analysis::{CommandDoubt, DoubtKind};

/// The length up to which a command is analysed. A longer one is not read in a prompt, and other agents have failed to
/// apply deny rules beyond such a length.
const MAX_COMMAND_CHARS: usize = 10_000;

/// Finds a reason to doubt a text that needs no parsing.
///
/// The length is checked first, because the other checks look at every character.
pub(crate) fn check_text(text: &str) -> Option<CommandDoubt> {
    if text.chars().nth(MAX_COMMAND_CHARS).is_some() {
        return Some(CommandDoubt {
            kind: DoubtKind::TooLong,
            text: format!("it has more than {MAX_COMMAND_CHARS} characters"),
        });
    }
    let mut before = ' ';
    for character in text.chars() {
        if is_invisible(character, before) {
            return Some(CommandDoubt {
                kind: DoubtKind::InvisibleText,
                text: format!("the command contains the invisible character U+{:04X}", u32::from(character)),
            });
        }
        before = character;
    }
    None
}

/// Whether a prompt does not display a character as it is: control, bidirectional, zero-width and blank characters.
fn is_invisible(character: char, before: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{a0}' => true,
        // The joiner and the variation selector are parts of emoji, and invisible elsewhere.
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
    fn visible_text_passes() {
        for text in
            ["ls -la", "echo 'héllo wörld'", "echo '🚀 done'", "echo 👨‍👩‍👧 ⚠️", "a\n\tb", "echo 漢字　x", ""]
        {
            check(text, None);
        }
    }

    #[test]
    fn invisible_characters_are_doubted() {
        for invisible in [
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
            check(&format!("echo a{invisible}b"), Some(DoubtKind::InvisibleText));
        }
    }

    #[test]
    fn a_long_command_is_doubted() {
        check(&"é".repeat(MAX_COMMAND_CHARS), None);
        check(&"a".repeat(MAX_COMMAND_CHARS + 1), Some(DoubtKind::TooLong));
    }
}
