//! Text patterns with `*`, matched without backtracking.

/// A text with wildcards. Everything but `*` stands for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WildcardPattern {
    /// The literal pieces between the wildcards, in order; one piece means no wildcard.
    pieces: Vec<String>,
    /// For each wildcard: whether it may reach over a blank.
    spans: Vec<WildcardSpan>,
}

/// How far a wildcard reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WildcardSpan {
    /// Any characters.
    Anything,
    /// Any characters of one word.
    Word,
}

impl WildcardPattern {
    /// A pattern whose wildcards match any characters.
    pub(crate) fn new(pattern: &str) -> Self {
        let pieces: Vec<String> = pattern.split('*').map(str::to_owned).collect();
        let spans = vec![WildcardSpan::Anything; pieces.len().saturating_sub(1)];
        Self { pieces, spans }
    }

    /// The same, where `narrow` says of the text before each wildcard whether that wildcard keeps to one word.
    pub(crate) fn restrict_to_words(mut self, narrow: impl Fn(&str) -> bool) -> Self {
        for (piece, reach) in self.pieces.iter().zip(self.spans.iter_mut()) {
            if narrow(piece) {
                *reach = WildcardSpan::Word;
            }
        }
        self
    }

    /// The text before the first wildcard.
    pub(crate) fn head(&self) -> &str {
        self.pieces.first().map_or("", String::as_str)
    }

    /// Whether there is no wildcard.
    pub(crate) fn is_literal(&self) -> bool {
        self.pieces.len() == 1
    }

    /// Whether the whole text fits.
    pub(crate) fn matches(&self, text: &str) -> bool {
        if self.spans.contains(&WildcardSpan::Word) {
            return self.matches_narrow(text);
        }
        let Some((first, rest)) = self.pieces.split_first() else { return text.is_empty() };
        let Some((last, middle)) = rest.split_last() else { return text == first };
        let Some(mut left) = text.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            match left.split_once(piece.as_str()) {
                Some((_, after)) => left = after,
                None => return false,
            }
        }
        left.ends_with(last.as_str())
    }

    /// The general case: the set of places in `text` that the pattern so far can end at.
    fn matches_narrow(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut at = vec![false; bytes.len() + 1];
        if let Some(start) = at.first_mut() {
            *start = true;
        }
        let reaches = std::iter::once(None).chain(self.spans.iter().copied().map(Some));
        for (piece, reach) in self.pieces.iter().zip(reaches) {
            if let Some(reach) = reach {
                let mut open = false;
                for (place, byte) in at.iter_mut().zip(bytes.iter().copied().map(Some).chain([None])) {
                    open |= *place;
                    *place = open;
                    if reach == WildcardSpan::Word && byte == Some(b' ') {
                        open = false;
                    }
                }
            }
            let mut next = vec![false; at.len()];
            for (place, _) in at.iter().enumerate().filter(|(_, here)| **here) {
                let fits = bytes.get(place..).is_some_and(|rest| rest.starts_with(piece.as_bytes()));
                if fits && let Some(end) = next.get_mut(place + piece.len()) {
                    *end = true;
                }
            }
            at = next;
        }
        at.last().copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, narrow: bool) -> bool {
        WildcardPattern::new(pattern).restrict_to_words(|_| narrow).matches(text)
    }

    #[test]
    fn stars_match_in_order() {
        for (pattern, text, wide, word) in [
            ("a", "a", true, true),
            ("a", "ab", false, false),
            ("a*", "a b", true, false),
            ("a*", "ab", true, true),
            ("*", "", true, true),
            ("a*b*c", "a x b y c", true, false),
            ("a*b*c", "axbyc", true, true),
            ("a*ba", "aba", true, true),
            ("a*ba", "ab", false, false),
            ("x* y", "xa y", true, true),
            ("git * main", "git push origin main", true, false),
        ] {
            assert_eq!(check(pattern, text, false), wide, "{pattern} {text}");
            assert_eq!(check(pattern, text, true), word, "{pattern} {text} in words");
        }
    }

    proptest::proptest! {
        /// Both matchers answer alike where no wildcard is narrowed by a blank.
        #[test]
        fn the_two_matchers_agree(pattern in "[ab*]{0,8}", text in "[ab]{0,12}") {
            let wild = WildcardPattern::new(&pattern);
            proptest::prop_assert_eq!(wild.matches(&text), wild.matches_narrow(&text));
        }
    }
}
