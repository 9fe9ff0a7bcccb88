//! Copies and moves of several files at once: the names that they bring along, from a glob or from a directory, may be
//! protected where they are put.

use super::evaluation::PolicyEvaluation;
use crate::fold::fold_path;
use crate::protect::ReadOrWrite;
use crate::rule::segment::PatternSegment;
use toolgate_proto::protected_names::protected_names;
use toolgate_proto::wildcard::widen_posix_classes;
use toolgate_proto::{AbsPath, Effect, EntryKind, PathScope, WriteKind};
use toolgate_shell_syntax::{CommandPart, InferredEffect};

/// How many levels of a directory that is copied are searched for protected names. What is deeper, the sandbox still
/// withholds; a search of the whole tree would make every copy of a large directory slow.
const MAX_SEARCHED_LEVELS: usize = 3;

/// The globs that list what is in the directories that a command copies or moves.
pub(crate) fn copied_tree_globs(part: &CommandPart) -> Vec<String> {
    copied_trees(part).flat_map(tree_globs).collect()
}

/// The directories that a command copies or moves with what is in them, if they are directories.
fn copied_trees(part: &CommandPart) -> impl Iterator<Item = &AbsPath> {
    let copies = part.effects.iter().any(|inferred| !inferred.entries.is_empty());
    let is_tree = |effect: &Effect| {
        matches!(
            effect,
            Effect::Read { scope: PathScope::Tree, .. } | Effect::Write { kind: WriteKind::Tree, .. }
        )
    };
    let is_source = move |inferred: &&InferredEffect| {
        copies && inferred.glob.is_none() && inferred.entries.is_empty() && is_tree(&inferred.effect)
    };
    part.effects.iter().filter(is_source).filter_map(|inferred| inferred.effect.path())
}

/// The globs that list the first levels of a directory.
fn tree_globs(directory: &AbsPath) -> Vec<String> {
    let mut base = String::new();
    for character in directory.to_string().trim_end_matches('/').chars() {
        if "*?[]\\".contains(character) {
            base.push('\\');
        }
        base.push(character);
    }
    let levels = (0..MAX_SEARCHED_LEVELS).map(|level| format!("{base}{}", "/*".repeat(level)));
    levels.flat_map(|level| [format!("{level}/*"), format!("{level}/.*")]).collect()
}

impl PolicyEvaluation<'_> {
    /// Checks the names in the directories that a command copies or moves. `needs_names`: a directory whose names are
    /// not known needs an approval.
    pub(crate) fn check_copied_trees(&mut self, part: &CommandPart, needs_names: bool) {
        for directory in copied_trees(part) {
            let kind = self.request.facts.get(directory).map(|fact| fact.kind);
            if matches!(kind, Some(EntryKind::File | EntryKind::Missing | EntryKind::Special)) {
                continue;
            }
            for glob in tree_globs(directory) {
                let Some(matches) = self.request.facts.glob(&glob) else {
                    if needs_names {
                        let text =
                            format!("`{directory}` has too many files to find those with protected names");
                        self.ask_about_protected(text);
                    }
                    break;
                };
                let is_protected = |file: &&AbsPath| {
                    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
                    name.is_some_and(|name| {
                        protected_names().any(|protected| *protected == *fold_path(&name))
                    })
                };
                if let Some(file) = matches.iter().find(is_protected) {
                    self.ask_about_protected(format!(
                        "`{file}` is copied or moved, and its name is protected"
                    ));
                    break;
                }
            }
        }
    }

    /// Checks the names under which the files that a glob matches are put into a directory (`cp a/* .`).
    pub(crate) fn check_copied_names(&mut self, inferred: &InferredEffect, part: &CommandPart) {
        let Effect::Write { path, .. } = &inferred.effect else { return };
        for entry in inferred.entries.iter().filter(|entry| entry.contains(['*', '?', '['])) {
            let ending = format!("/{entry}");
            let mut sources = part.effects.iter().filter_map(|effect| effect.glob.as_deref());
            let source = sources.find(|glob| glob.ends_with(&ending));
            let matches = source.and_then(|glob| self.request.facts.glob(glob));
            let Some(matches) = matches else {
                self.check_possible_names(entry, path);
                continue;
            };
            for name in matches.iter().filter_map(|file| file.file_name()) {
                let copy = format!("{path}/{}", name.to_string_lossy());
                self.check_glob_pattern(&copy, path, ReadOrWrite::Write, true);
            }
        }
    }

    /// Checks the names that unknown files which match a pattern may have in a directory: each protected name counts,
    /// also one that the pattern does not begin to spell.
    fn check_possible_names(&mut self, pattern: &str, directory: &AbsPath) {
        let Some(segment) = PatternSegment::parse(&fold_path(&widen_posix_classes(pattern))) else { return };
        let matches = |name: &&str| PatternSegment::matches_path(std::slice::from_ref(&segment), name);
        // A pattern matches hidden names only if it begins with a dot.
        let mut names = protected_names().filter(|name| !name.starts_with('.') || pattern.starts_with('.'));
        if let Some(name) = names.find(matches) {
            self.ask_about_protected(format!(
                "`{pattern}` may put a file with the protected name `{name}` into `{directory}`"
            ));
        }
    }
}
