//! Arguments of a skill: one text, split as a shell would.

/// Splits a text at blanks. Quotes and backslashes keep blanks together; a quote that is not closed goes to the end.
pub fn split_arguments(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => {
                word.get_or_insert_default().extend(chars.next().or(Some('\\')));
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::split_arguments;

    #[test]
    fn quotes_keep_blanks_together() {
        for (text, words) in [
            ("", vec![]),
            ("  a  b ", vec!["a", "b"]),
            ("'a b' \"c 'd'\" e\\ f", vec!["a b", "c 'd'", "e f"]),
            ("'' x", vec!["", "x"]),
            ("'open end", vec!["open end"]),
            ("a\\", vec!["a\\"]),
        ] {
            assert_eq!(split_arguments(text), words, "{text}");
        }
    }
}
