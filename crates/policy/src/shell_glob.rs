//! Shell globs, split into names so that a caller can expand them directory by directory.
//!
//! This crate reads no directories: it says which names match, and the caller walks the tree.

use crate::rule::segment::PatternSegment;
use toolgate_proto::wildcard::widen_posix_classes;

/// An absolute shell glob. As in bash without `globstar`, `**` means `*`, and a leading dot must be spelled out. A bracket
/// with a POSIX class (`[[:alpha:]]`) matches any character here, whatever the locale of the shell is.
///
/// ```
/// use toolgate_policy::ShellGlob;
///
/// let glob = ShellGlob::parse("/ws/src/*.rs").unwrap();
/// assert_eq!((glob.depth(), glob.literal(1)), (3, Some("src")));
/// assert!(glob.matches_name(2, "main.rs") && !glob.matches_name(2, ".hidden.rs"));
/// ```
#[derive(Debug, Clone)]
pub struct ShellGlob {
    /// The pattern of each name, and whether it may match a hidden name.
    names: Vec<(PatternSegment, bool)>,
}

impl ShellGlob {
    /// Parses a glob; `None` for one that this parser would match otherwise than bash does.
    pub fn parse(pattern: &str) -> Option<Self> {
        // `..` would leave the directory.
        if !pattern.starts_with('/') {
            return None;
        }
        let pattern = widen_posix_classes(pattern);
        let names = pattern.split('/').filter(|name| !name.is_empty() && *name != ".").map(|name| {
            let segment = match PatternSegment::parse(name)? {
                PatternSegment::Many => PatternSegment::parse("*")?,
                segment @ (PatternSegment::Literal(_) | PatternSegment::Glob(_)) => segment,
            };
            (name != "..").then_some((segment, name.starts_with('.') || name.starts_with("\\.")))
        });
        Some(Self { names: names.collect::<Option<_>>()? })
    }

    /// The number of names in the glob.
    pub fn depth(&self) -> usize {
        self.names.len()
    }

    /// The name at a depth, if it contains no wildcard and needs no directory listing.
    pub fn literal(&self, depth: usize) -> Option<&str> {
        match self.names.get(depth) {
            Some((PatternSegment::Literal(name), _)) => Some(name),
            Some((PatternSegment::Glob(_) | PatternSegment::Many, _)) | None => None,
        }
    }

    /// Whether a name of a directory listing matches at a depth.
    pub fn matches_name(&self, depth: usize, name: &str) -> bool {
        self.names.get(depth).is_some_and(|(segment, matches_hidden)| {
            (*matches_hidden || !name.starts_with('.'))
                && PatternSegment::matches_path(std::slice::from_ref(segment), name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_bash() {
        for (pattern, name, matches) in [
            ("*", "a", true),
            ("*", ".env", false),
            (".*", ".env", true),
            (".e*", ".env", true),
            (".[[:alpha:]]nv", ".env", true),
            (".[![:digit:]]nv", ".env", true),
            (".e[x[=n=]]v", ".env", true),
            ("id_rs?", "id_rsa", true),
            ("**", "a", true),
            ("[a-c]x", "bx", true),
            ("[.]env", ".env", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
        ] {
            let glob = ShellGlob::parse(&format!("/{pattern}")).unwrap();
            assert_eq!(glob.matches_name(0, name), matches, "{pattern} {name}");
        }
        assert!(ShellGlob::parse("/a/../b").is_none());
    }
}
