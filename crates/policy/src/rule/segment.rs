//! Segments of a gitignore pattern, and matching of a list of segments without backtracking.
//!
//! Both matchers keep the set of reachable pattern positions as bits of an integer, so that matching takes linear time
//! whatever the pattern is.

use toolgate_proto::wildcard::WildcardPattern;

/// One segment of a path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternSegment {
    /// Exactly this name.
    Literal(String),
    /// A pattern for one name, as a sequence of tokens.
    Glob(WildcardPattern),
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

impl PatternSegment {
    /// Parses one segment; `None` if a bracket is not closed or the segment has too many tokens.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if name == "**" {
            return Some(Self::Many);
        }
        if !name.contains(['*', '?', '[', '\\']) {
            return Some(Self::Literal(name.to_owned()));
        }
        let glob = WildcardPattern::parse_glob(name)?;
        Some(match glob.as_literal() {
            Some(literal) => Self::literal(literal),
            None => Self::Glob(glob),
        })
    }

    /// A segment that matches exactly this name, whatever characters it contains.
    pub(crate) fn literal(name: &str) -> Self {
        Self::Literal(name.to_owned())
    }

    /// Whether the segment only matches names that begin with a dot.
    fn is_hidden(&self) -> bool {
        match self {
            Self::Literal(name) => name.starts_with('.'),
            Self::Glob(glob) => is_dotted(glob),
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
                (!own.starts_with('.') || is_dotted(other)) && other.matches(own)
            }
            (Self::Glob(own), Self::Literal(other)) => own.matches(other),
            (Self::Glob(own), Self::Glob(other)) => {
                (!is_dotted(own) || is_dotted(other)) && own.may_overlap(other)
            }
        }
    }
}

/// Whether every name that the glob matches is hidden.
fn is_dotted(glob: &WildcardPattern) -> bool {
    glob.first_char() == Some('.')
}
