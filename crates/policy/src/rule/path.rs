//! `Read(pattern)` and `Edit(pattern)`: rules for paths.
//!
//! Patterns are those of gitignore: `*` and `?` stay inside one name, `**` spans directories, and a pattern that matches a
//! directory matches everything below it. The first characters select the base directory: `//` the root of the file
//! system, `~/` the home directory, `/` the directory of the settings file, anything else the working directory.
//! Deny and ask patterns are compared with folded names (see [`crate::fold`]), allow patterns with exact ones.

use super::segment::PatternSegment;
use super::syntax::RuleSyntaxError;
use crate::fold::fold_path;
use crate::raw::RuleAction;
use toolgate_proto::AbsPath;

/// The access that a path rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PathUse {
    /// `Read(…)`.
    Read,
    /// `Edit(…)`.
    Edit,
}

/// The directory that a pattern is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PatternBase {
    /// The root of the file system.
    Root,
    /// The home directory.
    Home,
    /// The working directory of the session.
    Cwd,
}

/// A compiled path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// Whether the rule is for reading or for editing.
    pub(crate) usage: PathUse,
    /// The directory that the segments are relative to.
    pub(super) base: PatternBase,
    /// It matches at any depth below its base.
    pub(super) floating: bool,
    /// It is spelled with `./`. When a tree is searched, it only counts for the entry directly in the base.
    pub(super) dotted: bool,
    /// The pattern below its base.
    pub(super) segments: Vec<PatternSegment>,
    /// The pattern without its base, folded, to test whether it names a sensitive file.
    pub(crate) folded_text: String,
}

impl PathPattern {
    /// Parses the content of a `Read` or `Edit` rule. `anchor` is the directory of the settings file.
    pub(crate) fn parse(
        usage: PathUse,
        content: &str,
        action: RuleAction,
        anchor: &AbsPath,
    ) -> Result<Self, RuleSyntaxError> {
        let (base, rest) = split_base(content, anchor)?;
        let rest = if action == RuleAction::Allow { rest } else { fold_path(&rest).into_owned() };
        let names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        let segments = parse_segments(&names)?;
        if segments.is_empty() && base == PatternBase::Cwd && !matches!(content, "." | "./") {
            return Err(RuleSyntaxError::new("the pattern is empty", "name a file or a directory"));
        }
        let is_single_name = names.len() == 1 && names.first() != Some(&"**");
        let floating = base == PatternBase::Cwd
            && match action {
                RuleAction::Allow => is_single_name && !rest.ends_with('/'),
                RuleAction::Ask | RuleAction::Deny => {
                    is_single_name
                        || (names.len() == 2 && names.last() == Some(&"**") && names.first() != Some(&"**"))
                }
            };
        let folded_text = fold_path(&names.join("/")).into_owned();
        Ok(Self { usage, base, floating, dotted: content.starts_with("./"), segments, folded_text })
    }

    /// Whether the pattern names a single path, or everything below a single path.
    pub(crate) fn is_single_path(&self) -> bool {
        let literal = |segment: &PatternSegment| matches!(segment, PatternSegment::Literal(_));
        let directory = match self.segments.split_last() {
            Some((PatternSegment::Many, before)) => before.iter().all(literal),
            Some(_) | None => self.segments.iter().all(literal),
        };
        !self.floating && directory
    }

    /// The absolute path that a pattern without wildcards names: a sandbox can enforce such a rule by path.
    pub(crate) fn literal_path(&self, bases: &BaseDirectories<'_>) -> Option<AbsPath> {
        if self.floating {
            return None;
        }
        let segments = match self.segments.split_last() {
            Some((PatternSegment::Many, before)) => before,
            Some(_) | None => &self.segments,
        };
        let mut path = match self.base {
            PatternBase::Root => AbsPath::root(),
            PatternBase::Home => AbsPath::new(bases.home.as_deref()?).ok()?,
            PatternBase::Cwd => AbsPath::new(&*bases.cwd).ok()?,
        };
        for segment in segments {
            match segment {
                PatternSegment::Literal(name) => path = path.join(name),
                PatternSegment::Glob(_) | PatternSegment::Many => return None,
            }
        }
        Some(path)
    }
}

/// The base directory that the first characters of a pattern select, and the rest of the pattern.
fn split_base(content: &str, anchor: &AbsPath) -> Result<(PatternBase, String), RuleSyntaxError> {
    if content.ends_with(":*") {
        return Err(RuleSyntaxError::new(
            "`:*` has no meaning in a path pattern",
            "write `/**` for everything below a directory",
        ));
    }
    if content.starts_with('!') {
        return Err(RuleSyntaxError::new(
            "a path rule cannot be negated",
            "write a rule in another list, or `\\!` for a name that begins with `!`",
        ));
    }
    Ok(if let Some(rest) = content.strip_prefix("//") {
        (PatternBase::Root, rest.to_owned())
    } else if content == "~" {
        (PatternBase::Home, String::new())
    } else if let Some(rest) = content.strip_prefix("~/") {
        (PatternBase::Home, rest.to_owned())
    } else if let Some(rest) = content.strip_prefix('/') {
        // A program that embeds the library may give one with `..`; those of files are resolved when they are read.
        let anchor = anchor.to_lexical().to_string();
        (PatternBase::Root, format!("{}/{rest}", anchor.trim_matches('/')))
    } else if content.starts_with('~') {
        return Err(RuleSyntaxError::new("`~name` is not supported", "write `~/…` or `//absolute/path`"));
    } else {
        (PatternBase::Cwd, content.strip_prefix("./").unwrap_or(content).to_owned())
    })
}

/// The positions in a pattern are bits of a `u64`, see [`PatternSegment::matches_path`].
const MAX_SEGMENTS: usize = 60;

/// Parses the names of a pattern into segments.
fn parse_segments(names: &[&str]) -> Result<Vec<PatternSegment>, RuleSyntaxError> {
    if names.contains(&"..") {
        return Err(RuleSyntaxError::new("a path pattern cannot contain `..`", "write `//absolute/path`"));
    }
    let mut segments = Vec::with_capacity(names.len());
    for name in names {
        let segment = PatternSegment::parse(name).ok_or_else(|| {
            RuleSyntaxError::new(
                "a `[` in the pattern is not closed, or a name is too long",
                "write `\\[` to match the character",
            )
        })?;
        // `**/**` matches the same as `**`.
        if segment != PatternSegment::Many || segments.last() != Some(&PatternSegment::Many) {
            segments.push(segment);
        }
    }
    if segments.len() > MAX_SEGMENTS {
        return Err(RuleSyntaxError::new(
            format!("the pattern has more than {MAX_SEGMENTS} names"),
            "name a directory further up",
        ));
    }
    Ok(segments)
}

/// The base directories of patterns as text: exact for allow rules, folded for the others.
#[derive(Debug, Clone)]
pub(crate) struct BaseDirectories<'w> {
    /// The working directory of the session.
    pub(crate) cwd: std::borrow::Cow<'w, str>,
    /// The home directory; without one, patterns with `~/` match nothing.
    pub(crate) home: Option<std::borrow::Cow<'w, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::path_index::PathIndex;
    use crate::rule::segment::{RelativeShellPattern, TraversalScope};

    fn check(action: RuleAction, pattern: &str, path: &str) -> bool {
        let anchor = AbsPath::new("/home/u/.claude").unwrap();
        let pattern = PathPattern::parse(PathUse::Read, pattern, action, &anchor).unwrap();
        let mut index = PathIndex::default();
        index.add(0, pattern.clone());
        let path = if action == RuleAction::Allow { path.into() } else { fold_path(path) };
        index.find(&path, &BaseDirectories { cwd: "/ws".into(), home: Some("/home/u".into()) }).is_some()
    }

    #[test]
    fn anchored_and_floating_patterns_match() {
        for (pattern, path, allow, deny) in [
            ("src/**", "/ws/src/a.ts", true, true),
            ("src/**", "/ws/src", false, false),
            ("src/**", "/ws/vendor/p/src/b.js", false, true),
            ("./src/**", "/ws/src/a.ts", true, true),
            ("a/b/**", "/ws/x/a/b/c", false, false),
            ("a/b", "/ws/a/b/c", true, true),
            (".env", "/ws/sub/.env", true, true),
            (".env", "/.env", false, false),
            ("*.pem", "/ws/k/x.pem", true, true),
            ("*.pem", "/ws/k.pem/inner", true, true),
            ("*.pem", "/ws/k/x.pen", false, false),
            ("//etc/**", "/etc/passwd", true, true),
            ("//etc/**", "/ws/etc/passwd", false, false),
            ("/secrets/**", "/home/u/.claude/secrets/x", true, true),
            ("/secrets/**", "/ws/secrets/x", false, false),
            ("~/.ssh/**", "/home/u/.ssh/id", true, true),
            ("~/.ssh/**", "/home/u2/.ssh/id", false, false),
            ("secrets/", "/ws/secrets/k", true, true),
            ("secrets/", "/ws/a/secrets/k", false, true),
            (".env", "/ws/.ENV", false, true),
            (".env", "/ws/.env\u{a0}", false, true),
            ("**/x/*.rs", "/ws/a/b/x/m.rs", true, true),
            ("**/x/*.rs", "/ws/x/m.rs", true, true),
            ("a?c", "/ws/abc", true, true),
            ("a[0-9]", "/ws/a7", true, true),
            ("a[!0-9]", "/ws/a7", false, false),
            ("a/**/b", "/ws/a/b", true, true),
            ("a/**/b", "/ws/a/x/y/b/z", true, true),
            ("/data/app/**", "/data/app-secrets/k", false, false),
        ] {
            assert_eq!(check(RuleAction::Allow, pattern, path), allow, "allow {pattern} {path}");
            assert_eq!(check(RuleAction::Deny, pattern, path), deny, "deny {pattern} {path}");
        }
    }

    #[test]
    fn the_anchor_may_contain_parent_steps_and_the_rule_may_not() {
        let anchor = AbsPath::new("/ws/src/..").unwrap();
        for action in [RuleAction::Allow, RuleAction::Deny] {
            let pattern = PathPattern::parse(PathUse::Edit, "/src/**", action, &anchor).unwrap();
            let mut index = PathIndex::default();
            index.add(0, pattern);
            let bases = BaseDirectories { cwd: "/ws".into(), home: None };
            assert!(index.find("/ws/src/a.rs", &bases).is_some(), "{action}");
            let rule = PathPattern::parse(PathUse::Edit, "/src/../x/**", action, &anchor);
            assert!(rule.unwrap_err().message.contains("`..`"), "{action}");
        }
    }

    #[test]
    fn rules_for_entries_below_a_directory_are_found() {
        let anchor = AbsPath::new("/ws").unwrap();
        let bases = BaseDirectories { cwd: "/ws".into(), home: Some("/home/u".into()) };
        for (pattern, dir, glob, may) in [
            ("secrets/**", "/ws", None, true),
            ("/secrets/**", "/ws/src", None, false),
            ("/secrets/**", "/ws", None, true),
            (".env", "/ws/src", None, true),
            ("./.env", "/ws/src", None, false),
            ("./.env", "/ws", None, true),
            ("~/.ssh/**", "/home", None, true),
            ("~/.ssh/**", "/ws", None, false),
            ("/a/secret.txt", "/ws/a", Some("sec*"), true),
            ("/a/secret.txt", "/ws/a", Some("*.rs"), false),
            ("*.pem", "/ws/certs", Some("*"), true),
            (".env", "/ws", Some("*"), false),
            (".env", "/ws", Some(".e*"), true),
        ] {
            let pattern = PathPattern::parse(PathUse::Read, pattern, RuleAction::Deny, &anchor).unwrap();
            let mut index = PathIndex::default();
            index.add(0, pattern.clone());
            let rest: Option<Vec<PatternSegment>> =
                glob.map(|glob: &str| glob.split('/').filter_map(PatternSegment::parse).collect());
            let scope = rest.as_deref().map_or(TraversalScope::All, |names| {
                TraversalScope::Shape(RelativeShellPattern { names, deep: false })
            });
            assert_eq!(index.find_below(dir, scope, &bases).is_some(), may, "{pattern:?} {dir} {glob:?}");
        }
    }
}
