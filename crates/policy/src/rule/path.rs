//! `Read(pattern)` and `Edit(pattern)`: rules for paths.
//!
//! Patterns are those of gitignore: `*` and `?` stay inside one name, `**` spans directories, and a pattern that matches a
//! directory matches everything below it. The first characters select the base directory: `//` the root of the file
//! system, `~/` the home directory, `/` the directory of the settings file, anything else the working directory.
//! Deny and ask patterns are compared with folded names (see [`crate::fold`]), allow patterns with exact ones.

use super::segment::{PatternSegment, TraversalScope};
use super::syntax::RuleSyntaxError;
use crate::fold::fold_path;
use crate::raw::RuleAction;
use std::collections::{HashMap, HashSet};
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
    base: PatternBase,
    /// It matches at any depth below its base.
    floating: bool,
    /// It is spelled with `./`. When a tree is searched, it only counts for the entry directly in the base.
    dotted: bool,
    /// The pattern below its base.
    segments: Vec<PatternSegment>,
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
        let anchor = anchor.to_string();
        (PatternBase::Root, format!("{}/{rest}", anchor.trim_matches('/')))
    } else if content.starts_with('~') {
        return Err(RuleSyntaxError::new("`~name` is not supported", "write `~/…` or `//absolute/path`"));
    } else {
        (PatternBase::Cwd, content.strip_prefix("./").unwrap_or(content).to_owned())
    })
}

/// The positions in a pattern are bits of a `u64`, see [`PatternSegment::matches_path`].
const MAX_SEGMENTS: usize = 60;

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

/// Path rules of one action and one access, by base directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathIndex {
    /// Patterns with `//` or `/`.
    root: BaseIndex,
    /// Patterns with `~/`.
    home: BaseIndex,
    /// Patterns without a prefix.
    cwd: BaseIndex,
    /// There is at least one pattern.
    any: bool,
}

/// Patterns of one base directory, indexed by what they begin with, so that a lookup does not try every pattern.
#[derive(Debug, Clone, Default)]
struct BaseIndex {
    /// Anchored patterns, by the literal names that they begin with.
    anchored: HashMap<String, Vec<(u32, Vec<PatternSegment>)>>,
    /// Floating patterns, by their first name.
    named: HashMap<String, Vec<(u32, Vec<PatternSegment>)>>,
    /// Floating patterns `*.ext`, by `ext`.
    extensions: HashMap<String, Vec<(u32, Vec<PatternSegment>)>>,
    /// All other floating patterns.
    loose: Vec<(u32, Vec<PatternSegment>)>,
    /// Floating patterns that are spelled with `./`.
    dotted: HashSet<u32>,
    /// There is at least one pattern.
    any: bool,
}

impl PathIndex {
    /// Whether there is any pattern.
    pub(crate) fn has_patterns(&self) -> bool {
        self.any
    }

    pub(crate) fn add(&mut self, id: u32, pattern: PathPattern) {
        self.any = true;
        let index = match pattern.base {
            PatternBase::Root => &mut self.root,
            PatternBase::Home => &mut self.home,
            PatternBase::Cwd => &mut self.cwd,
        };
        index.any = true;
        if pattern.floating && pattern.dotted {
            index.dotted.insert(id);
        }
        if pattern.floating {
            index.add_floating(id, pattern.segments);
        } else {
            index.add_anchored(id, pattern.segments);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// The first rule that matches an absolute path in text form.
    pub(crate) fn find(&self, path: &str, bases: &BaseDirectories<'_>) -> Option<u32> {
        if !self.any {
            return None;
        }
        let root = self.root.find(path.strip_prefix('/').unwrap_or(path));
        let home = bases.home.as_ref().and_then(|home| self.home.find(strip_base_prefix(path, home)?));
        let cwd = strip_base_prefix(path, &bases.cwd).and_then(|rest| self.cwd.find(rest));
        root.into_iter().chain(home).chain(cwd).min()
    }

    /// The first rule that could match something below a directory. `scope` says which entries there are accessed.
    pub(crate) fn find_below(
        &self,
        dir: &str,
        scope: TraversalScope<'_>,
        bases: &BaseDirectories<'_>,
    ) -> Option<u32> {
        if !self.any {
            return None;
        }
        let root = self.root.find_below(dir.strip_prefix('/').unwrap_or(dir), scope);
        let mut first = root;
        for (base, index) in [(bases.home.as_deref(), &self.home), (Some(&*bases.cwd), &self.cwd)] {
            let Some(base) = base else { continue };
            let found = match strip_base_prefix(dir, base) {
                Some(inside) => index.find_below(inside, scope),
                // The directory contains the base, so every pattern of that base may match below it.
                None if strip_base_prefix(base, dir).is_some() => index.find_below("", TraversalScope::All),
                None => None,
            };
            first = first.into_iter().chain(found).min();
        }
        first
    }
}

/// The rest of `path` after `base`, both in text form; empty for `base` itself.
fn strip_base_prefix<'p>(path: &'p str, base: &str) -> Option<&'p str> {
    if base == "/" {
        return path.strip_prefix('/');
    }
    let rest = path.strip_prefix(base)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

impl BaseIndex {
    fn add_anchored(&mut self, id: u32, mut segments: Vec<PatternSegment>) {
        let mut prefix = String::new();
        let mut taken = 0;
        for segment in &segments {
            let PatternSegment::Literal(name) = segment else { break };
            if !prefix.is_empty() {
                prefix.push('/');
            }
            prefix.push_str(name);
            taken += 1;
        }
        segments.drain(..taken);
        self.anchored.entry(prefix).or_default().push((id, segments));
    }

    fn add_floating(&mut self, id: u32, mut segments: Vec<PatternSegment>) {
        match segments.first() {
            Some(PatternSegment::Literal(name)) => {
                let name = name.clone();
                segments.drain(..1);
                self.named.entry(name).or_default().push((id, segments));
            }
            Some(PatternSegment::Glob(glob)) => match glob.extension() {
                Some(extension) => self.extensions.entry(extension).or_default().push((id, segments)),
                None => self.loose.push((id, segments)),
            },
            Some(PatternSegment::Many) => self.loose.push((id, segments)),
            None => {}
        }
    }

    /// The first rule that matches a path relative to the base.
    fn find(&self, path: &str) -> Option<u32> {
        if !self.any {
            return None;
        }
        self.find_anchored(path).into_iter().chain(self.find_floating(path)).min()
    }

    fn find_anchored(&self, path: &str) -> Option<u32> {
        if self.anchored.is_empty() {
            return None;
        }
        let ends = path.match_indices('/').map(|(at, _)| at);
        let ends = std::iter::once(0).chain(ends).chain((!path.is_empty()).then_some(path.len()));
        let mut first: Option<u32> = None;
        for end in ends {
            let (Some(prefix), Some(rest)) = (path.get(..end), path.get(end..)) else { continue };
            let Some(patterns) = self.anchored.get(prefix) else { continue };
            let rest = rest.strip_prefix('/').unwrap_or(rest);
            let matching = patterns.iter().filter(|(_, pattern)| PatternSegment::matches_path(pattern, rest));
            first = first.into_iter().chain(matching.map(|(id, _)| *id)).min();
        }
        first
    }

    fn find_floating(&self, path: &str) -> Option<u32> {
        if self.named.is_empty() && self.extensions.is_empty() && self.loose.is_empty() {
            return None;
        }
        let starts = path.match_indices('/').map(|(at, _)| at + 1);
        let mut first: Option<u32> = None;
        for start in std::iter::once(0).chain(starts) {
            let Some(from) = path.get(start..).filter(|from| !from.is_empty()) else { continue };
            let (name, rest) = from.split_once('/').unwrap_or((from, ""));
            let named = self.named.get(name).into_iter().flatten();
            let named = named.filter(|(_, pattern)| PatternSegment::matches_path(pattern, rest));
            let extension = name.rsplit_once('.').map(|(_, extension)| extension);
            let extension = extension.and_then(|extension| self.extensions.get(extension));
            let other = extension.into_iter().flatten().chain(&self.loose);
            let other = other.filter(|(_, pattern)| PatternSegment::matches_path(pattern, from));
            first = first.into_iter().chain(named.chain(other).map(|(id, _)| *id)).min();
        }
        first
    }

    /// The first rule that could match something below a directory relative to the base.
    fn find_below(&self, dir: &str, scope: TraversalScope<'_>) -> Option<u32> {
        if !self.any {
            return None;
        }
        let anchored = self.anchored.iter().flat_map(|(prefix, patterns)| {
            patterns.iter().filter(move |(_, segments)| {
                let literal = prefix.split('/').filter(|name| !name.is_empty()).map(PatternSegment::literal);
                let whole: Vec<PatternSegment> = literal.chain(segments.iter().cloned()).collect();
                PatternSegment::may_match_below(&whole, dir, scope)
            })
        });
        let floating = self.named.iter().flat_map(|(name, patterns)| {
            patterns.iter().filter(move |(id, segments)| {
                let depth = (!self.dotted.contains(id)).then_some(PatternSegment::Many).into_iter();
                let whole: Vec<PatternSegment> =
                    depth.chain([PatternSegment::literal(name)]).chain(segments.iter().cloned()).collect();
                PatternSegment::may_match_below(&whole, dir, scope)
            })
        });
        let other = self.extensions.values().flatten().chain(&self.loose).filter(|(_, segments)| {
            let whole: Vec<PatternSegment> =
                [PatternSegment::Many].into_iter().chain(segments.iter().cloned()).collect();
            PatternSegment::may_match_below(&whole, dir, scope)
        });
        anchored.chain(floating).chain(other).map(|(id, _)| *id).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::segment::RelativeShellPattern;

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
