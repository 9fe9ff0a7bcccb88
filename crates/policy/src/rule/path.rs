//! `Read(pattern)` and `Edit(pattern)`: which paths a rule speaks of.
//!
//! Patterns are gitignore's: `*` and `?` stay inside one name, `**` spans directories, a pattern that fits a directory
//! fits all below it. Where a pattern starts is told by its first characters: `//` the root of the file system,
//! `~/` the home directory, `/` the directory of the settings file, anything else the working directory.
//! Deny and ask patterns are compared with folded names (see [`crate::fold`]), allow patterns with exact ones.

use super::grammar::RuleSyntaxError;
use super::segment::{PatternSegment, TraversalScope};
use crate::fold::fold_path;
use crate::raw::RuleAction;
use std::collections::{HashMap, HashSet};
use toolgate_proto::AbsPath;

/// Which use of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PathUse {
    /// `Read(…)`.
    Read,
    /// `Edit(…)`.
    Edit,
}

/// Where a pattern starts.
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
    pub(crate) usage: PathUse,
    base: PatternBase,
    /// It fits at any depth below its base.
    floating: bool,
    /// It is spelled with `./`: where it is only a guess whether it is meant, the one in the base is.
    dotted: bool,
    segments: Vec<PatternSegment>,
    /// The pattern without its anchor, folded: to see whether it speaks of a sensitive name itself.
    pub(crate) folded_text: String,
}

impl PathPattern {
    pub(crate) fn parse(
        usage: PathUse,
        content: &str,
        action: RuleAction,
        anchor: &AbsPath,
    ) -> Result<Self, RuleSyntaxError> {
        if content.ends_with(":*") {
            return Err(RuleSyntaxError::new(
                "`:*` means nothing in a path pattern",
                "write `/**` for all below",
            ));
        }
        if content.starts_with('!') {
            return Err(RuleSyntaxError::new(
                "a path rule cannot be negated",
                "write a rule of the other kind, or `\\!` for a name that begins with `!`",
            ));
        }
        let (base, rest) = if let Some(rest) = content.strip_prefix("//") {
            (PatternBase::Root, rest.to_owned())
        } else if content == "~" {
            (PatternBase::Home, String::new())
        } else if let Some(rest) = content.strip_prefix("~/") {
            (PatternBase::Home, rest.to_owned())
        } else if let Some(rest) = content.strip_prefix('/') {
            let anchor = anchor.to_string();
            (PatternBase::Root, format!("{}/{rest}", anchor.trim_matches('/')))
        } else if content.starts_with('~') {
            return Err(RuleSyntaxError::new(
                "`~name` is not understood",
                "write `~/…` or `//absolute/path`",
            ));
        } else {
            (PatternBase::Cwd, content.strip_prefix("./").unwrap_or(content).to_owned())
        };
        let folds = action != RuleAction::Allow;
        let rest = if folds { fold_path(&rest).into_owned() } else { rest };
        let names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.contains(&"..") {
            return Err(RuleSyntaxError::new(
                "`..` cannot stand in a path pattern",
                "write `//absolute/path`",
            ));
        }
        let mut segments = Vec::with_capacity(names.len());
        for name in &names {
            let segment = PatternSegment::parse(name).ok_or_else(|| {
                RuleSyntaxError::new(
                    "a `[` in the pattern is not closed, or a name is too long",
                    "write `\\[` for the character",
                )
            })?;
            // `**/**` says no more than `**`.
            if segment != PatternSegment::Many || segments.last() != Some(&PatternSegment::Many) {
                segments.push(segment);
            }
        }
        if segments.len() > 60 {
            return Err(RuleSyntaxError::new("the pattern has too many parts", "name a directory higher up"));
        }
        if segments.is_empty() && base == PatternBase::Cwd && !matches!(content, "." | "./") {
            return Err(RuleSyntaxError::new("the pattern names nothing", "name a file or a directory"));
        }
        let single = names.len() == 1 && names.first() != Some(&"**");
        let floating = base == PatternBase::Cwd
            && match action {
                RuleAction::Allow => single && !rest.ends_with('/'),
                RuleAction::Ask | RuleAction::Deny => {
                    single
                        || (names.len() == 2 && names.last() == Some(&"**") && names.first() != Some(&"**"))
                }
            };
        let spoken = names.join("/");
        Ok(Self {
            usage,
            base,
            floating,
            dotted: content.starts_with("./"),
            segments,
            folded_text: fold_path(&spoken).into_owned(),
        })
    }

    /// Whether the pattern names one path, or all below one.
    pub(crate) fn is_single_path(&self) -> bool {
        let literal = |segment: &PatternSegment| matches!(segment, PatternSegment::Literal(_));
        let directory = match self.segments.split_last() {
            Some((PatternSegment::Many, before)) => before.iter().all(literal),
            Some(_) | None => self.segments.iter().all(literal),
        };
        !self.floating && directory
    }

    /// The one absolute path that the pattern names, if it has no wildcard: such a rule can bind a sandbox.
    pub(crate) fn literal_path(&self, places: &BaseDirectories<'_>) -> Option<AbsPath> {
        if self.floating {
            return None;
        }
        let segments = match self.segments.split_last() {
            Some((PatternSegment::Many, before)) => before,
            Some(_) | None => &self.segments,
        };
        let mut path = match self.base {
            PatternBase::Root => AbsPath::root(),
            PatternBase::Home => AbsPath::new(places.home.as_deref()?).ok()?,
            PatternBase::Cwd => AbsPath::new(&*places.cwd).ok()?,
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

/// The directories that patterns start from, as text: exact for allow rules, folded for the others.
#[derive(Debug, Clone)]
pub(crate) struct BaseDirectories<'w> {
    pub(crate) cwd: std::borrow::Cow<'w, str>,
    pub(crate) home: Option<std::borrow::Cow<'w, str>>,
}

/// Path rules of one action and one use.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathIndex {
    root: BaseIndex,
    home: BaseIndex,
    cwd: BaseIndex,
    any: bool,
}

#[derive(Debug, Clone, Default)]
struct BaseIndex {
    /// Anchored patterns by the literal names they begin with.
    anchored: HashMap<String, Vec<(u32, Vec<PatternSegment>)>>,
    /// Patterns for any depth, by their first name.
    named: HashMap<String, Vec<(u32, Vec<PatternSegment>)>>,
    /// Patterns `*.ext` for any depth, by `ext`.
    extensions: HashMap<String, Vec<(u32, Vec<PatternSegment>)>>,
    /// Any other pattern for any depth.
    loose: Vec<(u32, Vec<PatternSegment>)>,
    /// Patterns for any depth that are spelled with `./`.
    dotted: HashSet<u32>,
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

    /// The first rule that fits an absolute path in text form.
    pub(crate) fn find(&self, path: &str, places: &BaseDirectories<'_>) -> Option<u32> {
        if !self.any {
            return None;
        }
        let root = self.root.find(path.strip_prefix('/').unwrap_or(path));
        let home = places.home.as_ref().and_then(|home| self.home.find(strip_base_prefix(path, home)?));
        let cwd = strip_base_prefix(path, &places.cwd).and_then(|rest| self.cwd.find(rest));
        root.into_iter().chain(home).chain(cwd).min()
    }

    /// The first rule that could fit something below a directory, or that a shell pattern could name.
    /// `reach` says what is visited there.
    pub(crate) fn find_below(
        &self,
        dir: &str,
        reach: TraversalScope<'_>,
        places: &BaseDirectories<'_>,
    ) -> Option<u32> {
        if !self.any {
            return None;
        }
        let root = self.root.find_below(dir.strip_prefix('/').unwrap_or(dir), reach);
        let mut least = root;
        let bases = [(places.home.as_deref(), &self.home), (Some(&*places.cwd), &self.cwd)];
        for (base, index) in bases {
            let Some(base) = base else { continue };
            let found = match strip_base_prefix(dir, base) {
                Some(inside) => index.find_below(inside, reach),
                // The directory holds the base: everything that starts there lies below it.
                None if strip_base_prefix(base, dir).is_some() => index.find_below("", TraversalScope::All),
                None => None,
            };
            least = least.into_iter().chain(found).min();
        }
        least
    }
}

/// What follows `base` in `path`, both in text form; empty for `base` itself.
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
            Some(PatternSegment::Glob(glob)) => match glob.extension().map(str::to_owned) {
                Some(extension) => self.extensions.entry(extension).or_default().push((id, segments)),
                None => self.loose.push((id, segments)),
            },
            Some(PatternSegment::Many) => self.loose.push((id, segments)),
            None => {}
        }
    }

    fn find(&self, path: &str) -> Option<u32> {
        if !self.any {
            return None;
        }
        let mut least: Option<u32> = None;
        let mut note = |id: u32| least = Some(least.map_or(id, |least| least.min(id)));
        if !self.anchored.is_empty() {
            let ends = path.match_indices('/').map(|(at, _)| at);
            let ends = std::iter::once(0).chain(ends).chain((!path.is_empty()).then_some(path.len()));
            for end in ends {
                let (Some(prefix), Some(rest)) = (path.get(..end), path.get(end..)) else { continue };
                let Some(patterns) = self.anchored.get(prefix) else { continue };
                let rest = rest.strip_prefix('/').unwrap_or(rest);
                patterns
                    .iter()
                    .filter(|(_, segments)| PatternSegment::matches_path(segments, rest))
                    .for_each(|(id, _)| note(*id));
            }
        }
        if !(self.named.is_empty() && self.extensions.is_empty() && self.loose.is_empty()) {
            let starts = path.match_indices('/').map(|(at, _)| at + 1);
            for start in std::iter::once(0).chain(starts) {
                let Some(from) = path.get(start..).filter(|from| !from.is_empty()) else { continue };
                let (name, rest) = from.split_once('/').unwrap_or((from, ""));
                for (id, segments) in self.named.get(name).into_iter().flatten() {
                    if PatternSegment::matches_path(segments, rest) {
                        note(*id);
                    }
                }
                let extension = name.rsplit_once('.').map(|(_, extension)| extension);
                let extension = extension.and_then(|extension| self.extensions.get(extension));
                for (id, segments) in extension.into_iter().flatten().chain(&self.loose) {
                    if PatternSegment::matches_path(segments, from) {
                        note(*id);
                    }
                }
            }
        }
        least
    }

    fn find_below(&self, dir: &str, reach: TraversalScope<'_>) -> Option<u32> {
        if !self.any {
            return None;
        }
        let anchored = self.anchored.iter().flat_map(|(prefix, patterns)| {
            patterns.iter().filter(move |(_, segments)| {
                let literal = prefix.split('/').filter(|name| !name.is_empty()).map(PatternSegment::literal);
                let whole: Vec<PatternSegment> = literal.chain(segments.iter().cloned()).collect();
                PatternSegment::may_match_below(&whole, dir, reach)
            })
        });
        let floating = self.named.iter().flat_map(|(name, patterns)| {
            patterns.iter().filter(move |(id, segments)| {
                let depth = (!self.dotted.contains(id)).then_some(PatternSegment::Many).into_iter();
                let whole: Vec<PatternSegment> =
                    depth.chain([PatternSegment::literal(name)]).chain(segments.iter().cloned()).collect();
                PatternSegment::may_match_below(&whole, dir, reach)
            })
        });
        let other = self.extensions.values().flatten().chain(&self.loose).filter(|(_, segments)| {
            let whole: Vec<PatternSegment> =
                [PatternSegment::Many].into_iter().chain(segments.iter().cloned()).collect();
            PatternSegment::may_match_below(&whole, dir, reach)
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
    fn anchors_and_depth() {
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
    fn rules_below_a_directory_are_seen() {
        let anchor = AbsPath::new("/ws").unwrap();
        let places = BaseDirectories { cwd: "/ws".into(), home: Some("/home/u".into()) };
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
            let reach = rest.as_deref().map_or(TraversalScope::All, |names| {
                TraversalScope::Shape(RelativeShellPattern { names, deep: false })
            });
            assert_eq!(index.find_below(dir, reach, &places).is_some(), may, "{pattern:?} {dir} {glob:?}");
        }
    }
}
