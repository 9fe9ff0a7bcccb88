//! Untrusted text for terminals and prompts: nothing in it may control the terminal, look like something else, or push
//! something else out of view.

/// Escapes control characters, bidirectional overrides, invisible characters, variation selectors and tag characters.
/// Newlines, tabs, blanks and the selector of emoji (U+FE0F) stay.
pub fn escape_invisible(text: &str) -> String {
    let is_invisible = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c,
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{00ad}' | '\u{061c}' | '\u{180b}'..='\u{180f}' | '\u{fff0}'..='\u{fffb}'
                | '\u{034f}' | '\u{17b4}' | '\u{17b5}'
                | '\u{fe00}'..='\u{fe0e}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}')
    };
    if !text.contains(is_invisible) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_invisible(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A longer run of blanks is replaced by its length.
const MAX_BLANKS: usize = 32;
/// A longer run of newlines is replaced by the number of empty lines.
const MAX_LINE_ENDS: usize = 3;

/// Prepares untrusted text for a prompt: escaped by [`escape_invisible`] and at most about `max_chars` long.
///
/// Long runs of blanks and empty lines are replaced by their length, and a text that is too long loses its middle: the
/// dangerous part of a command is often at its end, and padding must not push it out of the user's view.
pub fn fit_text(text: &str, max_chars: usize) -> String {
    let text = escape_invisible(text);
    let mut out = String::new();
    let mut run = String::new();
    for c in text.chars() {
        if is_blank(c) {
            run.push(c);
        } else {
            flush_blanks(&mut run, &mut out);
            out.push(c);
        }
    }
    flush_blanks(&mut run, &mut out);
    let count = out.chars().count();
    if count <= max_chars {
        return out;
    }
    let tail = max_chars / 4;
    let head = max_chars - tail;
    let first: String = out.chars().take(head).collect();
    let last: String = out.chars().skip(count - tail).collect();
    format!("{first} …⟨{} characters left out⟩… {last}", count - max_chars)
}

/// The same as [`fit_text`], on one line: newlines and tabs are escaped.
pub fn fit_line(text: &str, max_chars: usize) -> String {
    fit_text(text, max_chars).replace('\n', "\\n").replace('\t', "\\t")
}

/// The text itself if it has at most `max_chars` characters; otherwise its beginning, with `…` as the last of them.
///
/// ```
/// use toolgate_proto::shorten_text;
///
/// assert_eq!(shorten_text("four", 4), "four");
/// assert_eq!(shorten_text("fives", 4), "fiv…");
/// ```
pub fn shorten_text(text: &str, max_chars: usize) -> String {
    match text.chars().nth(max_chars) {
        Some(_) => text.chars().take(max_chars.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Whether a character is blank: any white space, and letters without a visible glyph.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}' | '\u{115f}' | '\u{1160}' | '\u{ffa0}')
}

/// Appends a run of blanks, or its length if it is long.
fn flush_blanks(run: &mut String, out: &mut String) {
    let line_ends = run.matches('\n').count();
    let blanks = run.chars().count() - line_ends;
    if line_ends > MAX_LINE_ENDS {
        out.push_str(&format!("\n⟨{} blank lines⟩\n", line_ends - 1));
    } else if blanks > MAX_BLANKS {
        out.push_str(&format!("{} ⟨{blanks} blanks⟩ ", "\n".repeat(line_ends)));
    } else {
        out.push_str(run);
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(
            escape_invisible("a\u{202e}b\u{1b}[31m\u{e0041}\nc\t"),
            "a\\u{202e}b\\u{1b}[31m\\u{e0041}\nc\t"
        );
    }

    proptest::proptest! {
        #[test]
        fn padding_does_not_hide_text(
            head in "[a-z]{1,20}", tail in "[a-z]{1,20}", blank in "[ \t\n\u{a0}\u{2003}\u{3000}\u{2800}]", count in 1usize..5000,
        ) {
            let text = format!("{head}{}{tail}", blank.repeat(count));
            let shown = fit_text(&text, 400);
            proptest::prop_assert!(shown.starts_with(&head) && shown.ends_with(&tail));
            proptest::prop_assert!(shown.chars().count() < 100 && shown.lines().count() <= 5);
            proptest::prop_assert_eq!(fit_line(&text, 400).lines().count(), 1);
        }

        #[test]
        fn the_end_of_a_truncated_text_stays(text in "[ -~]{0,3000}", tail in "[a-z]{1,50}") {
            let shown = fit_text(&format!("{text}{tail}"), 400);
            proptest::prop_assert!(shown.ends_with(&tail) && shown.chars().count() < 500);
        }
    }
}
