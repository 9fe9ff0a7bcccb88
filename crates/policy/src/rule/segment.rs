//! One name of a path pattern, and lists of them.

use toolgate_proto::wildcard::WildcardPattern;

/// One step of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternSegment {
    /// This name.
    Literal(String),
    /// A name with wildcards.
    Glob(WildcardPattern),
    /// `**`: any number of names.
    Many,
}

/// What a shell pattern names below a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelativeShellPattern<'s> {
    /// The names of the pattern.
    pub(crate) names: &'s [PatternSegment],
    /// What it names is used with all that lies below.
    pub(crate) deep: bool,
}

/// What is visited below a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TraversalScope<'s> {
    /// Everything.
    All,
    /// Everything but names that begin with a dot, as some search programs have it.
    Visible,
    /// What a shell pattern names.
    Shape(RelativeShellPattern<'s>),
}

impl PatternSegment {
    /// Reads one name of a pattern; `None` if a bracket is not closed or the name is too long to be one.
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

    pub(crate) fn literal(name: &str) -> Self {
        Self::Literal(name.to_owned())
    }

    fn is_hidden(&self) -> bool {
        match self {
            Self::Literal(name) => name.starts_with('.'),
            Self::Glob(glob) => is_dotted(glob),
            Self::Many => false,
        }
    }

    fn matches_name(&self, name: &str) -> bool {
        match self {
            Self::Literal(own) => own == name,
            Self::Glob(glob) => glob.matches(name),
            Self::Many => true,
        }
    }

    /// Whether the pattern fits the path (names joined by `/`) or one of the directories that lead to it.
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

    /// The places in the pattern (as bits) that one more name leads to.
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

    /// `**` may span nothing, but for one at the end: `src/**` is what lies in `src`, not `src` itself.
    fn epsilon_closure(segments: &[Self], mut at: u64) -> u64 {
        for (place, segment) in segments.iter().enumerate() {
            if *segment == Self::Many && at >> place & 1 == 1 && place + 1 < segments.len() {
                at |= 1 << (place + 1);
            }
        }
        at
    }

    /// Whether the pattern may fit something below `dir` that is visited. A doubt counts as yes.
    pub(crate) fn may_match_below(segments: &[Self], dir: &str, reach: TraversalScope<'_>) -> bool {
        let mut at = Self::epsilon_closure(segments, 1);
        for name in dir.split('/').filter(|name| !name.is_empty()) {
            if at >> segments.len() & 1 == 1 {
                return true;
            }
            at = Self::advance(segments, at, name);
        }
        let places = (0..=segments.len()).filter(|place| at >> place & 1 == 1);
        let mut rests = places.filter_map(|place| segments.get(place..));
        match reach {
            TraversalScope::All => rests.next().is_some(),
            TraversalScope::Visible => rests.any(|rest| !rest.iter().any(Self::is_hidden)),
            TraversalScope::Shape(shape) => rests.any(|rest| Self::may_overlap(rest, shape)),
        }
    }

    /// Whether a rule's pattern and a shell pattern may name the same path.
    fn may_overlap(rule: &[Self], shape: RelativeShellPattern<'_>) -> bool {
        // meets[i][j]: what is left of the rule from `i` and of the shell pattern from `j` may name the same.
        // Where the rule ends first, it fits a directory on the way; where the shell pattern does, only what lies
        // below could still be meant.
        let width = shape.names.len() + 1;
        let mut after: Vec<bool> = vec![true; width];
        for own in rule.iter().rev() {
            let mut row = vec![shape.deep; width];
            for (at, other) in shape.names.iter().enumerate().rev() {
                let here = |row: &[bool], at: usize| row.get(at).copied().unwrap_or(shape.deep);
                let meets = match (own, other) {
                    (Self::Many, _) => here(&after, at) || here(&row, at + 1),
                    (_, Self::Many) => true,
                    (own, other) => own.may_match_same_name(other) && here(&after, at + 1),
                };
                if let Some(place) = row.get_mut(at) {
                    *place = meets;
                }
            }
            after = row;
        }
        after.first().copied().unwrap_or(true)
    }

    /// Whether a name may fit both. As in bash, a wildcard does not take the dot that hides a file.
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
