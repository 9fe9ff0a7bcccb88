//! The index of path rules: finds the rules that match a path, or that could match below a directory.

use super::path::{BaseDirectories, PathPattern, PatternBase};
use super::segment::{PatternSegment, TraversalScope};
use std::collections::{HashMap, HashSet};

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

    /// Adds a rule to the index of its base directory.
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

    /// Whether there are no path rules.
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
    /// Adds a pattern that begins at the base, under its literal prefix.
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

    /// Adds a pattern that may begin at any depth, under its first name or extension.
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

    /// The first rule that matches a path relative to the base.
    fn find(&self, path: &str) -> Option<u32> {
        if !self.any {
            return None;
        }
        self.find_anchored(path).into_iter().chain(self.find_floating(path)).min()
    }

    /// Looks up every prefix of the path, and matches only the patterns with that literal prefix.
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

    /// Looks up every name of the path, and matches only the patterns for that name or its extension.
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
