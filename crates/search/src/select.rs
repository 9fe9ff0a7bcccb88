//! Selection of the entries that a search takes.
//!
//! The precedence is ripgrep's: globs of the call decide first, then ignore files, then file types; and a dotfile is left
//! out unless one of them includes it explicitly.

use crate::directory::{WalkDirectory, as_path};
use crate::ignore_rules::{IgnoreDecision, IgnoreRules};
use crate::names::{BareGlobScope, PathGlob};
use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use std::ffi::CStr;
use std::path::PathBuf;

/// Which files a search takes, as the call requests it.
#[derive(Debug, Clone, Default)]
pub struct FileSelection {
    /// Whether to take files that ignore files exclude.
    pub ignored: bool,
    /// How to treat files and directories whose name starts with a dot.
    pub dotted: DotfileHandling,
    /// Names of directories that are not entered.
    pub excluded_directories: &'static [&'static str],
    /// Only files below this directory, relative to the start, are taken: the search enters no directory that is neither
    /// above nor below it.
    pub below: Option<String>,
    /// Only files that match this glob are taken. Unlike `globs`, it does not include what ignore files exclude. Without
    /// a separator it matches names at any depth.
    pub only: Option<String>,
    /// Globs relative to the start, as in an ignore file but with the opposite meaning: those with `!` exclude.
    pub globs: Vec<String>,
    /// File types of ripgrep, such as `rust` and `py`; empty for all.
    pub types: Vec<String>,
}

/// How to treat names that start with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DotfileHandling {
    /// Take those that a glob, an exception in an ignore file or a file type includes.
    #[default]
    IncludeIfMatched,
    /// Take them like any other name.
    Include,
    /// Leave them out, even if a glob includes them.
    Exclude,
}

/// Why a selection is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionProblem {
    /// A glob cannot be parsed.
    Glob {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file type is unknown.
    Type {
        /// The name as the call gave it.
        name: String,
        /// All known names, for a suggestion.
        known: Vec<String>,
    },
}

/// A compiled [`FileSelection`].
#[derive(Debug)]
pub struct FileSelector {
    /// Whether ignore files are read at all.
    pub(crate) respects_ignore_files: bool,
    /// [`FileSelection::dotted`].
    dotted: DotfileHandling,
    /// [`FileSelection::excluded_directories`].
    excluded_directories: &'static [&'static str],
    /// [`FileSelection::below`].
    below: Option<PathBuf>,
    /// [`FileSelection::only`].
    only: Option<PathGlob>,
    /// [`FileSelection::globs`].
    globs: Override,
    /// [`FileSelection::types`].
    types: Types,
}

impl FileSelector {
    /// Compiles a selection.
    pub fn new(selection: &FileSelection) -> Result<Self, SelectionProblem> {
        let mut globs = OverrideBuilder::new("");
        for glob in &selection.globs {
            globs.add(glob).map_err(|error| SelectionProblem::Glob {
                glob: glob.clone(),
                reason: glob_error_message(&error),
            })?;
        }
        let globs = globs.build().map_err(|error| SelectionProblem::Glob {
            glob: selection.globs.join(" "),
            reason: glob_error_message(&error),
        })?;
        let types = if selection.types.is_empty() { Types::empty() } else { build_types(&selection.types)? };
        Ok(Self {
            respects_ignore_files: !selection.ignored,
            dotted: selection.dotted,
            excluded_directories: selection.excluded_directories,
            below: selection.below.as_ref().map(PathBuf::from),
            only: selection
                .only
                .as_deref()
                .map(|only| PathGlob::new(only, BareGlobScope::Anywhere))
                .transpose()?,
            globs,
            types,
        })
    }

    /// Whether the search takes an entry. `path` is absolute; `prefix_len` is the length of its prefix up to the start of
    /// the search.
    pub(crate) fn includes(
        &self,
        rules: Option<&IgnoreRules>,
        path: &[u8],
        prefix_len: usize,
        name: &[u8],
        is_dir: bool,
    ) -> bool {
        if is_dir && self.excluded_directories.iter().any(|excluded| excluded.as_bytes() == name) {
            return false;
        }
        let is_dotted = name.first() == Some(&b'.');
        if is_dotted && self.dotted == DotfileHandling::Exclude {
            return false;
        }
        let relative = as_path(path.get(prefix_len..).unwrap_or_default());
        if is_dir
            && let Some(below) = &self.below
            && !below.starts_with(relative)
            && !relative.starts_with(below)
        {
            return false;
        }
        if !is_dir
            && let Some(only) = &self.only
            && !only.matches(relative)
        {
            return false;
        }
        if !self.globs.is_empty() {
            match self.globs.matched(relative, is_dir) {
                Match::Ignore(_) => return false,
                Match::Whitelist(_) => return true,
                Match::None => {}
            }
        }
        let mut is_included = false;
        if let Some(rules) = rules {
            match rules.decide(path, is_dir) {
                IgnoreDecision::Ignore => return false,
                IgnoreDecision::Include => is_included = true,
                IgnoreDecision::Unmatched => {}
            }
        }
        if !self.types.is_empty() {
            match self.types.matched(as_path(name), is_dir) {
                Match::Ignore(_) => return false,
                Match::Whitelist(_) => is_included = true,
                Match::None => {}
            }
        }
        is_included || self.dotted == DotfileHandling::Include || !is_dotted
    }

    /// Reads the ignore files of a directory, if the search respects them.
    pub(crate) fn load_ignore_rules(&self, directory: &mut WalkDirectory<'_>) {
        if self.respects_ignore_files {
            directory.rules = IgnoreRules::of(directory);
        }
    }
}

/// Why a listing leaves out an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExclusionReason {
    /// Its name starts with a dot.
    Dotfile,
    /// An ignore file excludes it.
    Ignored,
}

impl FileSelector {
    /// Whether a listing shows an entry, or why not. A listing has no globs and no file types.
    pub(crate) fn check_listed(
        &self,
        directory: &WalkDirectory<'_>,
        name: &CStr,
        is_dir: bool,
    ) -> Result<(), ExclusionReason> {
        let is_dotted = name.to_bytes().first() == Some(&b'.');
        let decision = match &directory.rules {
            Some(rules) => {
                let path = [directory.path(), name.to_bytes()].concat();
                rules.decide(&path, is_dir)
            }
            None => IgnoreDecision::Unmatched,
        };
        match decision {
            IgnoreDecision::Ignore => Err(ExclusionReason::Ignored),
            IgnoreDecision::Unmatched | IgnoreDecision::Include
                if is_dotted && self.dotted != DotfileHandling::Include =>
            {
                Err(ExclusionReason::Dotfile)
            }
            IgnoreDecision::Unmatched | IgnoreDecision::Include => Ok(()),
        }
    }
}

/// Compiles file types of ripgrep's default list.
fn build_types(names: &[String]) -> Result<Types, SelectionProblem> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    for name in names {
        builder.select(name);
    }
    builder.build().map_err(|error| {
        let unknown = match &error {
            ignore::Error::UnrecognizedFileType(name) => name.clone(),
            other => other.to_string(),
        };
        let known = builder.definitions().iter().map(|definition| definition.name().to_owned()).collect();
        SelectionProblem::Type { name: unknown, known }
    })
}

/// The message about a glob, without the glob itself, which [`SelectionProblem::Glob`] has already.
fn glob_error_message(error: &ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    }
}
