//! Wildcard patterns: the one matcher for rules, settings, file names, hosts and environment variables.
//!
//! Two syntaxes compile to the same [`WildcardPattern`]:
//!
//! - [`WildcardPattern::new`] reads a text in which only `*` is special;
//! - [`WildcardPattern::parse_glob`] reads a shell glob for one file name: `*`, `?`, `[…]` and `\`.
//!
//! A match never backtracks. The pattern is cut at its wildcards into pieces, and the leftmost place of each piece is
//! as good as any later one, because the wildcard before it takes up the difference. A recursive matcher would be
//! shorter, but takes exponential time on `*a*a*a*a*b`, and both the patterns and the texts come from untrusted input.
//!
//! ```
//! use toolgate_proto::wildcard::WildcardPattern;
//!
//! assert!(WildcardPattern::new("npm run *").matches("npm run build"));
//! assert!(WildcardPattern::parse_glob("id_[a-z]?a").unwrap().matches("id_rsa"));
//! ```

use std::borrow::Cow;

/// A compiled pattern that a text matches as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WildcardPattern {
    /// What is between the `*`s, in order.
    // INVARIANT: one piece more than there are spans.
    pieces: Vec<PatternPiece>,
    /// What each `*` may match.
    spans: Vec<WildcardSpan>,
}

/// What a `*` may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WildcardSpan {
    /// Any characters.
    Anything,
    /// Any characters but a blank.
    Word,
}

/// The part of a pattern between two `*`s. It matches a fixed number of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPiece {
    /// This text. Found by substring search.
    Literal(String),
    /// One matcher for each character, where a `?` or a class is among them.
    Classes(Vec<CharMatcher>),
}

/// What one character of a glob may be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CharMatcher {
    /// This character.
    Char(char),
    /// `?`: any character.
    Any,
    /// `[…]`: a character of these ranges, or of none of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// The longest glob that is not plain text, counted in characters, classes and wildcards. File names have at most 255
/// bytes, and [`WildcardPattern::may_overlap`] takes time in the product of two patterns.
const MAX_GLOB_TOKENS: usize = 127;

impl WildcardPattern {
    /// A pattern in which `*` matches any characters, and every other character itself.
    pub fn new(pattern: &str) -> Self {
        let pieces: Vec<PatternPiece> =
            pattern.split('*').map(|piece| PatternPiece::Literal(piece.to_owned())).collect();
        let spans = vec![WildcardSpan::Anything; pieces.len().saturating_sub(1)];
        Self { pieces, spans }
    }

    /// A shell glob for one file name. `None` if a bracket is not closed, or the glob is too long to be a name.
    pub fn parse_glob(glob: &str) -> Option<Self> {
        let mut pieces = vec![Vec::new()];
        let mut tokens: usize = 0;
        let mut chars = glob.chars().peekable();
        while let Some(c) = chars.next() {
            tokens += 1;
            let matcher = match c {
                '*' => {
                    while chars.next_if_eq(&'*').is_some() {}
                    pieces.push(Vec::new());
                    continue;
                }
                '?' => CharMatcher::Any,
                '\\' => CharMatcher::Char(chars.next().unwrap_or('\\')),
                '[' => parse_class(&mut chars)?,
                other => CharMatcher::Char(other),
            };
            if let Some(piece) = pieces.last_mut() {
                piece.push(matcher);
            }
        }
        let pieces: Vec<PatternPiece> = pieces.into_iter().map(PatternPiece::new).collect();
        let spans = vec![WildcardSpan::Anything; pieces.len().saturating_sub(1)];
        let pattern = Self { pieces, spans };
        (tokens < MAX_GLOB_TOKENS || pattern.as_literal().is_some()).then_some(pattern)
    }

    /// The same pattern, in which a `*` does not match a blank where `keeps_to_word` holds of the text before it.
    pub fn restrict_to_words(mut self, keeps_to_word: impl Fn(&str) -> bool) -> Self {
        for (piece, span) in self.pieces.iter().zip(self.spans.iter_mut()) {
            if keeps_to_word(piece.literal()) {
                *span = WildcardSpan::Word;
            }
        }
        self
    }

    /// The literal text before the first `*`; empty if a `?` or a class is in it.
    pub fn head(&self) -> &str {
        self.pieces.first().map_or("", PatternPiece::literal)
    }

    /// The only text that matches, if there is no wildcard.
    pub fn as_literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [PatternPiece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// What follows the last dot of every match, if the pattern is `*` and then literal text with a dot.
    pub fn extension(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [PatternPiece::Literal(before), PatternPiece::Literal(after)] if before.is_empty() => {
                after.rsplit_once('.').map(|(_, extension)| extension)
            }
            _ => None,
        }
    }

    /// The character that every match starts with, if there is one.
    pub fn first_char(&self) -> Option<char> {
        match self.pieces.first()? {
            PatternPiece::Literal(text) => text.chars().next(),
            PatternPiece::Classes(matchers) => matchers.first()?.as_char(),
        }
    }

    /// Whether the whole text matches. Takes time linear in the text for each piece of the pattern.
    pub fn matches(&self, text: &str) -> bool {
        if self.spans.contains(&WildcardSpan::Word) {
            return self.matches_by_positions(text);
        }
        let Some((first, rest)) = self.pieces.split_first() else { return text.is_empty() };
        let Some(mut left) = first.strip_from(text) else { return false };
        let Some((last, middle)) = rest.split_last() else { return left.is_empty() };
        for piece in middle {
            match piece.skip_past(left) {
                Some(after) => left = after,
                None => return false,
            }
        }
        last.is_suffix_of(left)
    }

    /// The general case: after each piece, the set of positions in `text` at which the pattern so far can end. A `*`
    /// that stops at blanks has no single best position, so that the leftmost one does not do.
    fn matches_by_positions(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut ends = vec![false; bytes.len() + 1];
        if let Some(start) = ends.first_mut() {
            *start = true;
        }
        let spans = std::iter::once(None).chain(self.spans.iter().copied().map(Some));
        for (piece, span) in self.pieces.iter().zip(spans) {
            if let Some(span) = span {
                let mut open = false;
                for (position, byte) in ends.iter_mut().zip(bytes.iter().map(Some).chain([None])) {
                    open |= *position;
                    *position = open;
                    open &= span == WildcardSpan::Anything || byte != Some(&b' ');
                }
            }
            let mut next = vec![false; ends.len()];
            for (start, end) in piece.occurrences(text) {
                if ends.get(start) == Some(&true)
                    && let Some(position) = next.get_mut(end)
                {
                    *position = true;
                }
            }
            ends = next;
        }
        ends.last().copied().unwrap_or(false)
    }

    /// Whether some text may match both patterns. Classes are taken to overlap: the answer may be a false yes, never a
    /// false no.
    pub fn may_overlap(&self, other: &Self) -> bool {
        let (own, other) = (self.tokens(), other.tokens());
        let only_stars = |tokens: &[Option<CharMatcher>]| tokens.iter().all(Option::is_none);
        // after[j]: what is left of `own` behind the current token and of `other` from `j` may match the same text.
        let mut after: Vec<bool> =
            (0..=other.len()).map(|at| other.get(at..).is_none_or(only_stars)).collect();
        for (place, token) in own.iter().enumerate().rev() {
            let mut row = vec![own.get(place..).is_none_or(only_stars); other.len() + 1];
            for (at, theirs) in other.iter().enumerate().rev() {
                let get = |row: &[bool], at: usize| row.get(at).copied().unwrap_or(false);
                let overlaps = match (token, theirs) {
                    (None, _) | (_, None) => get(&after, at) || get(&row, at + 1) || get(&after, at + 1),
                    (Some(token), Some(theirs)) => token.may_overlap(theirs) && get(&after, at + 1),
                };
                if let Some(cell) = row.get_mut(at) {
                    *cell = overlaps;
                }
            }
            after = row;
        }
        after.first().copied().unwrap_or(true)
    }

    /// The pattern character by character; `None` is a `*`.
    fn tokens(&self) -> Vec<Option<CharMatcher>> {
        let mut tokens = Vec::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                tokens.push(None);
            }
            match piece {
                PatternPiece::Literal(text) => tokens.extend(text.chars().map(CharMatcher::Char).map(Some)),
                PatternPiece::Classes(matchers) => tokens.extend(matchers.iter().cloned().map(Some)),
            }
        }
        tokens
    }
}

/// Reads a class, from behind its `[`.
fn parse_class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<CharMatcher> {
    let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let low = match chars.next()? {
            ']' if !ranges.is_empty() => break,
            '\\' => chars.next()?,
            low => low,
        };
        let mut ahead = chars.clone();
        if ahead.next() == Some('-')
            && let Some(high) = ahead.next()
            && high != ']'
        {
            *chars = ahead;
            ranges.push((low, high));
        } else {
            ranges.push((low, low));
        }
    }
    Some(CharMatcher::Class { negated, ranges })
}

/// A shell glob in which every bracket with a POSIX class, an equivalence class or a collating symbol (`[[:alpha:]]`,
/// `[x[=e=]]`, `[[.a.]]`) is `?`. Which characters those match depends on the locale, so a caller that looks for what a glob
/// may match takes them for any.
///
/// ```
/// use toolgate_proto::wildcard::widen_posix_classes;
///
/// assert_eq!(widen_posix_classes(".[[:alpha:]]nv [ab]"), ".?nv [ab]");
/// ```
pub fn widen_posix_classes(glob: &str) -> Cow<'_, str> {
    if !["[:", "[.", "[="].iter().any(|start| glob.contains(start)) {
        return Cow::Borrowed(glob);
    }
    let mut out = String::with_capacity(glob.len());
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                out.push(c);
                out.extend(chars.next());
            }
            '[' => match find_bracket_end(chars.as_str()) {
                Some((end, true)) => {
                    out.push('?');
                    chars = chars.as_str().get(end..).unwrap_or_default().chars();
                }
                Some((_, false)) | None => out.push(c),
            },
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Where a bracket expression ends, after its `[`, and whether it contains a class. `None` if it is not closed.
fn find_bracket_end(rest: &str) -> Option<(usize, bool)> {
    let mut has_class = false;
    let mut is_first = true;
    let mut at = usize::from(rest.starts_with(['!', '^']));
    loop {
        let tail = rest.get(at..)?;
        let c = tail.chars().next()?;
        let kind = tail.chars().nth(1).filter(|kind| c == '[' && matches!(kind, ':' | '.' | '='));
        let class_end = kind.and_then(|kind| Some(tail.get(2..)?.find(&format!("{kind}]"))? + 4));
        match (c, class_end) {
            (_, Some(length)) => {
                has_class = true;
                at += length;
            }
            (']', None) if !is_first => return Some((at + 1, has_class)),
            ('\\', None) => at += 1 + tail.chars().nth(1)?.len_utf8(),
            (c, None) => at += c.len_utf8(),
        }
        is_first = false;
    }
}

impl PatternPiece {
    fn new(matchers: Vec<CharMatcher>) -> Self {
        match matchers.iter().map(CharMatcher::as_char).collect() {
            Some(text) => Self::Literal(text),
            None => Self::Classes(matchers),
        }
    }

    /// The text of the piece; empty if it is not literal.
    fn literal(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Classes(_) => "",
        }
    }

    /// What follows this piece in a text that starts with it.
    fn strip_from<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Literal(literal) => text.strip_prefix(literal.as_str()),
            Self::Classes(matchers) => {
                let mut chars = text.chars();
                matchers
                    .iter()
                    .all(|matcher| chars.next().is_some_and(|c| matcher.matches(c)))
                    .then_some(chars.as_str())
            }
        }
    }

    /// What follows the leftmost occurrence of this piece.
    fn skip_past<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Literal(literal) => text.split_once(literal.as_str()).map(|(_, after)| after),
            Self::Classes(_) => {
                text.char_indices().find_map(|(at, _)| self.strip_from(text.get(at..).unwrap_or_default()))
            }
        }
    }

    /// Whether a text ends with the piece.
    fn is_suffix_of(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => text.ends_with(literal.as_str()),
            Self::Classes(matchers) => {
                let mut chars = text.chars();
                matchers.iter().rev().all(|matcher| chars.next_back().is_some_and(|c| matcher.matches(c)))
            }
        }
    }

    /// Where this piece occurs in a text, overlapping occurrences included: start and end, in bytes.
    fn occurrences(&self, text: &str) -> Vec<(usize, usize)> {
        match self {
            Self::Literal(literal) => {
                let starts = find_overlapping(literal.as_bytes(), text.as_bytes());
                starts.into_iter().map(|start| (start, start + literal.len())).collect()
            }
            Self::Classes(_) => text
                .char_indices()
                .filter_map(|(at, _)| {
                    Some((at, text.len() - self.strip_from(text.get(at..).unwrap_or_default())?.len()))
                })
                .collect(),
        }
    }
}

impl CharMatcher {
    /// The only character that matches, if there is only one.
    fn as_char(&self) -> Option<char> {
        match self {
            Self::Char(c) => Some(*c),
            Self::Any | Self::Class { .. } => None,
        }
    }

    fn matches(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::Any => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }

    /// Whether some character may match both.
    fn may_overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Char(own), other) | (other, Self::Char(own)) => other.matches(*own),
            (Self::Any | Self::Class { .. }, Self::Any | Self::Class { .. }) => true,
        }
    }
}

/// Every place where `needle` occurs, by Knuth, Morris and Pratt: the substring search of the standard library skips
/// occurrences that overlap, and to start it again behind each one takes quadratic time.
fn find_overlapping(needle: &[u8], text: &[u8]) -> Vec<usize> {
    if needle.is_empty() {
        return (0..=text.len()).collect();
    }
    // borders[k]: how much of the needle is known to match when the byte behind its first `k + 1` does not.
    let mut borders: Vec<usize> = Vec::with_capacity(needle.len());
    let grow = |borders: &[usize], mut matched: usize, byte: u8| {
        while matched > 0 && needle.get(matched) != Some(&byte) {
            matched = borders.get(matched - 1).copied().unwrap_or(0);
        }
        if needle.get(matched) == Some(&byte) { matched + 1 } else { 0 }
    };
    borders.push(0);
    let mut matched = 0;
    for byte in needle.iter().skip(1) {
        matched = grow(&borders, matched, *byte);
        borders.push(matched);
    }
    let mut starts = Vec::new();
    matched = 0;
    for (at, byte) in text.iter().enumerate() {
        matched = grow(&borders, matched, *byte);
        if matched == needle.len() {
            starts.push(at + 1 - needle.len());
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One character of a pattern for the naive matcher.
    #[derive(Debug, Clone, PartialEq)]
    enum NaiveToken {
        /// `*`, and whether it stops at blanks.
        Star(bool),
        /// One character.
        One(CharMatcher),
    }

    /// Tries every length for every `*`.
    fn matches_naively(pattern: &[NaiveToken], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((NaiveToken::Star(word), rest)) => (0..=text.len())
                .take_while(|skip| !word || !text[..*skip].contains(&' '))
                .any(|skip| matches_naively(rest, &text[skip..])),
            Some((NaiveToken::One(matcher), rest)) => text
                .split_first()
                .is_some_and(|(c, below)| matcher.matches(*c) && matches_naively(rest, below)),
        }
    }

    fn naive_tokens(pattern: &str, word: impl Fn(&str) -> bool) -> Vec<NaiveToken> {
        let mut piece = String::new();
        let mut tokens = Vec::new();
        for c in pattern.chars() {
            if c == '*' {
                tokens.push(NaiveToken::Star(word(&piece)));
                piece.clear();
            } else {
                tokens.push(NaiveToken::One(CharMatcher::Char(c)));
                piece.push(c);
            }
        }
        tokens
    }

    fn chars(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn stars_match_in_order() {
        for (pattern, text, anything, words) in [
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
            let wild = WildcardPattern::new(pattern);
            assert_eq!(wild.matches(text), anything, "{pattern} {text}");
            assert_eq!(wild.restrict_to_words(|_| true).matches(text), words, "{pattern} {text} in words");
        }
    }

    #[test]
    fn globs_are_parsed_as_shells_do() {
        for (glob, name, matches) in [
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "zx", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("*.[ch]", "main.c", true),
            ("?*é", "aé", true),
            ("**a**", "bab", true),
        ] {
            assert_eq!(WildcardPattern::parse_glob(glob).unwrap().matches(name), matches, "{glob} {name}");
        }
        assert!(WildcardPattern::parse_glob("[a").is_none());
        assert!(WildcardPattern::parse_glob(&"?".repeat(MAX_GLOB_TOKENS)).is_none());
        assert_eq!(
            WildcardPattern::parse_glob(&"a".repeat(300)).unwrap().as_literal(),
            Some(&*"a".repeat(300))
        );
        assert_eq!(WildcardPattern::parse_glob("*.tar.gz").unwrap().extension(), Some("gz"));
        assert_eq!(WildcardPattern::parse_glob("?.gz").unwrap().extension(), None);
        assert_eq!(WildcardPattern::parse_glob("\\.e*").unwrap().first_char(), Some('.'));
    }

    /// A matcher that backtracks needs more than the age of the universe for this.
    #[test]
    fn a_hostile_pattern_takes_linear_time() {
        let text = "a".repeat(20_000);
        for pattern in [format!("{}b", "*a".repeat(60)), format!("{}*b", "*aa".repeat(20))] {
            assert!(!WildcardPattern::new(&pattern).matches(&text));
            assert!(!WildcardPattern::new(&pattern).restrict_to_words(|_| true).matches(&text));
            assert!(!WildcardPattern::parse_glob(&pattern).unwrap().matches(&text));
        }
    }

    proptest! {
        #[test]
        fn stars_match_as_the_naive_matcher_says(
            pattern in "[ab é*]{0,8}", text in "[ab é]{0,12}", after_blank in any::<bool>(), after_a in any::<bool>(),
        ) {
            let word = |piece: &str| piece.ends_with('a') && after_a || piece.ends_with(' ') && after_blank;
            let expected = matches_naively(&naive_tokens(&pattern, |_| false), &chars(&text));
            prop_assert_eq!(WildcardPattern::new(&pattern).matches(&text), expected);
            prop_assert_eq!(WildcardPattern::new(&pattern).matches_by_positions(&text), expected);
            let expected = matches_naively(&naive_tokens(&pattern, word), &chars(&text));
            prop_assert_eq!(WildcardPattern::new(&pattern).restrict_to_words(word).matches(&text), expected);
        }

        #[test]
        fn globs_match_as_the_naive_matcher_says(
            glob in "([ab?*é]|\\[[!]?[ab]-?[bé]\\]|\\\\[a*]){0,6}", text in "[ab*é]{0,8}",
        ) {
            let Some(wild) = WildcardPattern::parse_glob(&glob) else { return Ok(()) };
            let tokens: Vec<NaiveToken> = wild
                .tokens()
                .into_iter()
                .map(|token| token.map_or(NaiveToken::Star(false), NaiveToken::One))
                .collect();
            let expected = matches_naively(&tokens, &chars(&text));
            prop_assert_eq!(wild.matches(&text), expected);
            prop_assert_eq!(wild.matches_by_positions(&text), expected);
        }

        /// A common match is proof of an overlap.
        #[test]
        fn patterns_with_a_common_match_overlap(
            one in "[ab?*]{0,6}", two in "[ab?*]{0,6}", text in "[ab]{0,8}",
        ) {
            let (one, two) =
                (WildcardPattern::parse_glob(&one).unwrap(), WildcardPattern::parse_glob(&two).unwrap());
            if one.matches(&text) && two.matches(&text) {
                prop_assert!(one.may_overlap(&two) && two.may_overlap(&one));
            }
        }

        #[test]
        fn every_occurrence_is_found(needle in "[ab]{0,4}", text in "[ab]{0,20}") {
            let expected: Vec<usize> =
                (0..=text.len()).filter(|at| text.as_bytes()[*at..].starts_with(needle.as_bytes())).collect();
            prop_assert_eq!(find_overlapping(needle.as_bytes(), text.as_bytes()), expected);
        }
    }
}
