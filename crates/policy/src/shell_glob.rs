//! A shell pattern, taken apart for matching with the names in directories.

use crate::rule::segment::PatternSegment;

/// An absolute shell pattern, name by name. As in bash, `**` is `*`, and a leading dot must be spelled out.
#[derive(Debug, Clone)]
pub struct ShellGlob {
    names: Vec<(PatternSegment, bool)>,
}

impl ShellGlob {
    /// Takes a pattern apart; `None` for one that is read otherwise than bash reads it.
    pub fn parse(pattern: &str) -> Option<Self> {
        // Character classes by name are not read, and `..` is no name.
        if !pattern.starts_with('/')
            || pattern.contains("[[:")
            || pattern.contains("[[.")
            || pattern.contains("[[=")
        {
            return None;
        }
        let names = pattern.split('/').filter(|name| !name.is_empty() && *name != ".").map(|name| {
            let segment = match PatternSegment::parse(name)? {
                PatternSegment::Many => PatternSegment::parse("*")?,
                segment @ (PatternSegment::Literal(_) | PatternSegment::Glob(_)) => segment,
            };
            (name != "..").then_some((segment, name.starts_with('.') || name.starts_with("\\.")))
        });
        Some(Self { names: names.collect::<Option<_>>()? })
    }

    /// How many names it has.
    pub fn depth(&self) -> usize {
        self.names.len()
    }

    /// The name at a depth, if it is spelled out.
    pub fn literal(&self, depth: usize) -> Option<&str> {
        match self.names.get(depth) {
            Some((PatternSegment::Literal(name), _)) => Some(name),
            Some((PatternSegment::Glob(_) | PatternSegment::Many, _)) | None => None,
        }
    }

    /// Whether a name in a directory fits at a depth.
    pub fn matches_name(&self, depth: usize, name: &str) -> bool {
        self.names.get(depth).is_some_and(|(segment, dotted)| {
            (*dotted || !name.starts_with('.'))
                && PatternSegment::matches_path(std::slice::from_ref(segment), name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_as_in_bash() {
        for (pattern, name, fits) in [
            ("*", "a", true),
            ("*", ".env", false),
            (".*", ".env", true),
            (".e*", ".env", true),
            ("id_rs?", "id_rsa", true),
            ("**", "a", true),
            ("[a-c]x", "bx", true),
            ("[.]env", ".env", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
        ] {
            let glob = ShellGlob::parse(&format!("/{pattern}")).unwrap();
            assert_eq!(glob.matches_name(0, name), fits, "{pattern} {name}");
        }
        assert!(ShellGlob::parse("/[[:alpha:]]").is_none() && ShellGlob::parse("/a/../b").is_none());
    }
}
