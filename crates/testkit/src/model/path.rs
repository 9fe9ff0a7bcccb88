//! Path patterns of rules, matched name by name.

use super::simulated_path::{CWD, HOME};

/// A path pattern: the directory where it starts, and the names from there.
#[derive(Debug, Clone)]
pub(super) struct ReferencePathPattern {
    /// The directory to which the pattern is relative.
    base: String,
    /// The pattern may start at any depth below `base`, as in gitignore.
    anywhere: bool,
    /// The names of the pattern, `**` included.
    names: Vec<String>,
    /// Letter case is ignored: so for rules that restrict, because some file systems ignore it.
    folds: bool,
}

impl ReferencePathPattern {
    /// Parses a pattern. `grants`: it is that of an allow rule.
    pub(super) fn parse(content: &str, anchor: &str, grants: bool) -> Self {
        let (base, rest) = if let Some(rest) = content.strip_prefix("//") {
            ("", rest)
        } else if let Some(rest) = content.strip_prefix("~/") {
            (HOME, rest)
        } else if let Some(rest) = content.strip_prefix('/') {
            (anchor, rest)
        } else {
            (CWD, content.strip_prefix("./").unwrap_or(content))
        };
        let relative = !content.starts_with(['/', '~']);
        let names: Vec<String> = rest.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let single = names.len() == 1 && rest != "**";
        let directory = names.len() == 2 && rest.ends_with("/**") && !rest.starts_with("**");
        let anywhere = relative && (single || (directory && !grants));
        Self { base: base.to_owned(), anywhere, names, folds: !grants }
    }

    /// Whether the pattern matches a path, or a directory above it.
    pub(super) fn matches_path(&self, path: &str) -> bool {
        let (path, base) = if self.folds {
            (path.to_lowercase(), self.base.to_lowercase())
        } else {
            (path.to_owned(), self.base.clone())
        };
        let Some(rest) = path.strip_prefix(&base).filter(|rest| rest.is_empty() || rest.starts_with('/'))
        else {
            return false;
        };
        let found: Vec<&str> = rest.split('/').filter(|name| !name.is_empty()).collect();
        let wanted: Vec<String> = self
            .names
            .iter()
            .map(|name| if self.folds { name.to_lowercase() } else { name.clone() })
            .collect();
        let starts = if self.anywhere { found.len() } else { 1 };
        (0..starts.max(1)).any(|start| match_names(&wanted, found.get(start..).unwrap_or_default()))
    }

    /// Whether the pattern spells out a secret name.
    pub(super) fn names_secret(&self) -> bool {
        self.names.last().is_some_and(|name| name == ".env")
    }
}

/// Matches names of a pattern with names of a path. What is below a matching directory matches, too.
fn match_names(wanted: &[String], found: &[&str]) -> bool {
    match wanted.split_first() {
        None => true,
        Some((first, rest)) if first == "**" => {
            if rest.is_empty() {
                return !found.is_empty();
            }
            (0..=found.len()).any(|skip| match_names(rest, found.get(skip..).unwrap_or_default()))
        }
        Some((first, rest)) => found.split_first().is_some_and(|(name, below)| {
            let (first, name): (Vec<char>, Vec<char>) = (first.chars().collect(), name.chars().collect());
            matches_glob(&first, &name) && match_names(rest, below)
        }),
    }
}

/// `*` and `?` inside one name.
fn matches_glob(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => {
            (0..=name.len()).any(|skip| matches_glob(rest, name.get(skip..).unwrap_or_default()))
        }
        Some(('?', rest)) => name.split_first().is_some_and(|(_, below)| matches_glob(rest, below)),
        Some((first, rest)) => {
            name.split_first().is_some_and(|(c, below)| c == first && matches_glob(rest, below))
        }
    }
}
