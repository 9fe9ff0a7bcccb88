//! Segments of a gitignore pattern, and matching of a list of segments without backtracking.
//!
//! Both matchers keep the set of reachable pattern positions as bits of an integer, so that matching takes linear time
//! whatever the pattern is.

/// One segment of a path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternSegment {
    /// Exactly this name.
    Literal(String),
    /// A pattern for one name, as a sequence of tokens.
    Glob(NameGlob),
    /// `**`: any number of names, also none.
    Many,
}

/// A shell glob relative to a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelativeShellPattern<'s> {
    /// The segments of the glob.
    pub(crate) names: &'s [PatternSegment],
    /// Everything below a match is accessed too.
    pub(crate) deep: bool,
}

/// Which entries below a directory are accessed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TraversalScope<'s> {
    /// Everything.
    All,
    /// Everything except names that begin with a dot, as some search programs do.
    Visible,
    /// What a shell glob matches.
    Shape(RelativeShellPattern<'s>),
}

/// A pattern for one name, as a sequence of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameGlob(Vec<GlobToken>);

/// One element of a [`NameGlob`].
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobToken {
    /// This character.
    Char(char),
    /// `?`: one character.
    One,
    /// `*`: any characters, also none.
    Any,
    /// `[…]`: one character of the ranges, or with `!` or `^` one of no range.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// The positions in a name's pattern are bits of a `u128`.
const MAX_GLOB_TOKENS: usize = 127;

impl GlobToken {
    /// The character of a literal token.
    fn char(&self) -> Option<char> {
        match self {
            Self::Char(c) => Some(*c),
            Self::One | Self::Any | Self::Class { .. } => None,
        }
    }

    /// Whether the token matches this one character. `*` is handled by the caller.
    fn matches_char(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::One => true,
            Self::Any => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }

    /// Whether some character may match both. A class is assumed to overlap with everything.
    fn may_overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Char(own), other) | (other, Self::Char(own)) => other.matches_char(*own),
            (Self::One | Self::Any | Self::Class { .. }, Self::One | Self::Any | Self::Class { .. }) => true,
        }
    }
}

impl PatternSegment {
    /// Parses one segment; `None` if a bracket is not closed or the segment has too many tokens.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if name == "**" {
            return Some(Self::Many);
        }
        if !name.contains(['*', '?', '[', '\\']) {
            return Some(Self::Literal(name.to_owned()));
        }
        let mut tokens = Vec::new();
        let mut chars = name.chars().peekable();
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' => {
                    if tokens.last() == Some(&GlobToken::Any) {
                        continue;
                    }
                    GlobToken::Any
                }
                '?' => GlobToken::One,
                '\\' => GlobToken::Char(chars.next().unwrap_or('\\')),
                '[' => {
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
                            chars = ahead;
                            ranges.push((low, high));
                        } else {
                            ranges.push((low, low));
                        }
                    }
                    GlobToken::Class { negated, ranges }
                }
                other => GlobToken::Char(other),
            });
        }
        let literal: Option<String> = tokens.iter().map(GlobToken::char).collect();
        if literal.is_none() && tokens.len() >= MAX_GLOB_TOKENS {
            return None;
        }
        Some(literal.map_or(Self::Glob(NameGlob(tokens)), Self::Literal))
    }

    /// A segment that matches exactly this name, whatever characters it contains.
    pub(crate) fn literal(name: &str) -> Self {
        Self::Literal(name.to_owned())
    }

    /// Whether the segment only matches names that begin with a dot.
    fn is_hidden(&self) -> bool {
        match self {
            Self::Literal(name) => name.starts_with('.'),
            Self::Glob(glob) => glob.starts_with_dot(),
            Self::Many => false,
        }
    }

    /// Whether the segment matches one name.
    fn matches_name(&self, name: &str) -> bool {
        match self {
            Self::Literal(own) => own == name,
            Self::Glob(glob) => glob.matches(name),
            Self::Many => true,
        }
    }

    /// Whether the pattern matches the path (names joined by `/`) or one of its parent directories.
    pub(crate) fn matches_path(segments: &[Self], path: &str) -> bool {
        if segments.is_empty() {
            return true;
        }
        let done = 1u64 << segments.len();
        let mut at = Self::epsilon_closure(segments, 1);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = Self::advance(segments, at, name);
            if at & done != 0 {
                return true;
            }
            if at == 0 {
                return false;
            }
        }
        false
    }

    /// The pattern positions (as bits) after one more name.
    fn advance(segments: &[Self], at: u64, name: &str) -> u64 {
        let mut next = 0;
        for (place, segment) in segments.iter().enumerate().filter(|(place, _)| at >> place & 1 == 1) {
            match segment {
                Self::Many if place + 1 == segments.len() => next |= 1 << (place + 1),
                Self::Many => next |= 1 << place,
                Self::Literal(_) | Self::Glob(_) if segment.matches_name(name) => next |= 1 << (place + 1),
                Self::Literal(_) | Self::Glob(_) => {}
            }
        }
        Self::epsilon_closure(segments, next)
    }

    /// Adds the positions after each `**`, which may match nothing, except at the end: `src/**` does not match `src`.
    fn epsilon_closure(segments: &[Self], mut at: u64) -> u64 {
        for (place, segment) in segments.iter().enumerate() {
            if *segment == Self::Many && at >> place & 1 == 1 && place + 1 < segments.len() {
                at |= 1 << (place + 1);
            }
        }
        at
    }

    /// Whether the pattern may match something below `dir` that is accessed. If that is not certain, the answer is yes.
    pub(crate) fn may_match_below(segments: &[Self], dir: &str, scope: TraversalScope<'_>) -> bool {
        let mut at = Self::epsilon_closure(segments, 1);
        for name in dir.split('/').filter(|name| !name.is_empty()) {
            if at >> segments.len() & 1 == 1 {
                return true;
            }
            at = Self::advance(segments, at, name);
        }
        let places = (0..=segments.len()).filter(|place| at >> place & 1 == 1);
        let mut rests = places.filter_map(|place| segments.get(place..));
        match scope {
            TraversalScope::All => rests.next().is_some(),
            TraversalScope::Visible => rests.any(|rest| !rest.iter().any(Self::is_hidden)),
            TraversalScope::Shape(shape) => rests.any(|rest| Self::may_overlap(rest, shape)),
        }
    }

    /// Whether a rule's pattern and a shell glob may match the same path.
    fn may_overlap(rule: &[Self], shape: RelativeShellPattern<'_>) -> bool {
        // Dynamic programming from the end: `after[j]` says whether the rest of the rule and the rest of the glob from
        // `j` may match the same path. If the rule ends first, it matches a parent directory; if the glob ends first,
        // only entries below its matches could still be matched by the rule.
        let width = shape.names.len() + 1;
        let mut after: Vec<bool> = vec![true; width];
        for own in rule.iter().rev() {
            let mut row = vec![shape.deep; width];
            for (at, other) in shape.names.iter().enumerate().rev() {
                let here = |row: &[bool], at: usize| row.get(at).copied().unwrap_or(shape.deep);
                let overlaps = match (own, other) {
                    (Self::Many, _) => here(&after, at) || here(&row, at + 1),
                    (_, Self::Many) => true,
                    (own, other) => own.may_match_same_name(other) && here(&after, at + 1),
                };
                if let Some(place) = row.get_mut(at) {
                    *place = overlaps;
                }
            }
            after = row;
        }
        after.first().copied().unwrap_or(true)
    }

    /// Whether a name may match both. As in bash, a wildcard of the glob does not match a leading dot.
    fn may_match_same_name(&self, shape: &Self) -> bool {
        match (self, shape) {
            (Self::Many, _) | (_, Self::Many) => true,
            (Self::Literal(own), Self::Literal(other)) => own == other,
            (Self::Literal(own), Self::Glob(other)) => {
                (!own.starts_with('.') || other.starts_with_dot()) && other.matches(own)
            }
            (Self::Glob(own), Self::Literal(other)) => own.matches(other),
            (Self::Glob(own), Self::Glob(other)) => {
                (!own.starts_with_dot() || other.starts_with_dot()) && own.may_overlap(other)
            }
        }
    }
}

impl NameGlob {
    /// The extension, if the pattern is `*` followed by literal text with a dot in it.
    pub(crate) fn extension(&self) -> Option<String> {
        let (GlobToken::Any, rest) = self.0.split_first()? else { return None };
        let text: Option<String> = rest.iter().map(GlobToken::char).collect();
        text?.rsplit_once('.').map(|(_, extension)| extension.to_owned())
    }

    /// The character that every matching name begins with, if the pattern begins with a literal one.
    pub(crate) fn first_char(&self) -> Option<char> {
        self.0.first().and_then(GlobToken::char)
    }

    /// Whether the pattern spells out a leading dot.
    fn starts_with_dot(&self) -> bool {
        self.0.first() == Some(&GlobToken::Char('.'))
    }

    /// Whether the pattern matches the whole name.
    fn matches(&self, name: &str) -> bool {
        let mut at = self.epsilon_closure(1);
        for c in name.chars() {
            let mut next = 0u128;
            for (place, token) in self.0.iter().enumerate().filter(|(place, _)| at >> place & 1 == 1) {
                match token {
                    GlobToken::Any => next |= 1 << place,
                    GlobToken::Char(_) | GlobToken::One | GlobToken::Class { .. }
                        if token.matches_char(c) =>
                    {
                        next |= 1 << (place + 1);
                    }
                    GlobToken::Char(_) | GlobToken::One | GlobToken::Class { .. } => {}
                }
            }
            if next == 0 {
                return false;
            }
            at = self.epsilon_closure(next);
        }
        at >> self.0.len() & 1 == 1
    }

    /// Adds the positions after each `*`, which may match nothing.
    fn epsilon_closure(&self, mut at: u128) -> u128 {
        for (place, token) in self.0.iter().enumerate() {
            if *token == GlobToken::Any && at >> place & 1 == 1 {
                at |= 1 << (place + 1);
            }
        }
        at
    }

    /// Whether some name may match both patterns.
    fn may_overlap(&self, other: &Self) -> bool {
        let rest_is_stars = |tokens: &[GlobToken]| tokens.iter().all(|token| *token == GlobToken::Any);
        let mut after: Vec<bool> =
            (0..=other.0.len()).map(|at| other.0.get(at..).is_none_or(rest_is_stars)).collect();
        for (place, own) in self.0.iter().enumerate().rev() {
            let mut row = vec![self.0.get(place..).is_none_or(rest_is_stars); other.0.len() + 1];
            for (at, token) in other.0.iter().enumerate().rev() {
                let here = |row: &[bool], at: usize| row.get(at).copied().unwrap_or(false);
                let overlaps = match (own, token) {
                    (GlobToken::Any, _) | (_, GlobToken::Any) => {
                        here(&after, at) || here(&row, at + 1) || here(&after, at + 1)
                    }
                    (own, token) => own.may_overlap(token) && here(&after, at + 1),
                };
                if let Some(place) = row.get_mut(at) {
                    *place = overlaps;
                }
            }
            after = row;
        }
        after.first().copied().unwrap_or(true)
    }
}
