//! Which entries of a tree a search takes.
//!
//! The order of judgement is ripgrep's: globs given with the call decide first, then ignore files, then file types;
//! and a name with a dot is left out unless one of them asked for it.

use crate::directory::{WalkDirectory, as_path};
use crate::ignore_rules::{IgnoreDecision, IgnoreRules};
use crate::names::{BareGlobScope, PathGlob};
use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use std::ffi::CStr;
use std::path::PathBuf;

/// Which files to look at, as asked for.
#[derive(Debug, Clone, Default)]
pub struct FileSelection {
    /// Take files that ignore files leave out.
    pub ignored: bool,
    /// What becomes of files and directories whose name starts with a dot.
    pub dotted: DotfileHandling,
    /// Directories of these names are not entered.
    pub excluded_directories: &'static [&'static str],
    /// Only what lies below this directory, seen from where the search starts, is wanted: nothing beside the way to
    /// it is entered.
    pub below: Option<String>,
    /// Of the files that are taken, only those that match this glob; unlike `globs`, it asks for nothing that ignore
    /// files leave out. Without a separator it matches names at any depth.
    pub only: Option<String>,
    /// Globs as in an ignore file; with `!` before it, what to leave out. Seen from where the search starts.
    pub globs: Vec<String>,
    /// File types such as `rust` and `py`.
    pub types: Vec<String>,
}

/// What becomes of names that start with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DotfileHandling {
    /// They are taken where a glob, an ignore file's exception or a file type asks for them, as in ripgrep.
    #[default]
    IncludeIfMatched,
    /// They are taken like any other.
    Include,
    /// They are left out, whatever asks for them.
    Exclude,
}

/// Why a selection cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionProblem {
    /// A glob is wrong.
    Glob {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such file type.
    Type {
        /// The name given.
        name: String,
        /// Every name there is.
        known: Vec<String>,
    },
}

/// A selection that is ready to judge.
#[derive(Debug)]
pub struct FileSelector {
    pub(crate) respects_ignore_files: bool,
    dotted: DotfileHandling,
    excluded_directories: &'static [&'static str],
    below: Option<PathBuf>,
    only: Option<PathGlob>,
    globs: Override,
    types: Types,
}

impl FileSelector {
    /// Makes a selection ready.
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

    /// Whether an entry is taken. `path` is absolute, and `from` is where its part below the start begins.
    pub(crate) fn includes(
        &self,
        rules: Option<&IgnoreRules>,
        path: &[u8],
        from: usize,
        name: &[u8],
        is_dir: bool,
    ) -> bool {
        if is_dir && self.excluded_directories.iter().any(|never| never.as_bytes() == name) {
            return false;
        }
        let is_dotted = name.first() == Some(&b'.');
        if is_dotted && self.dotted == DotfileHandling::Exclude {
            return false;
        }
        let relative = as_path(path.get(from..).unwrap_or_default());
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
        let mut asked_for = false;
        if let Some(rules) = rules {
            match rules.decide(path, is_dir) {
                IgnoreDecision::Ignore => return false,
                IgnoreDecision::Include => asked_for = true,
                IgnoreDecision::Unmatched => {}
            }
        }
        if !self.types.is_empty() {
            match self.types.matched(as_path(name), is_dir) {
                Match::Ignore(_) => return false,
                Match::Whitelist(_) => asked_for = true,
                Match::None => {}
            }
        }
        asked_for || self.dotted == DotfileHandling::Include || !is_dotted
    }

    /// The ignore files that count in a directory.
    pub(crate) fn load_ignore_rules(&self, directory: &mut WalkDirectory) {
        if self.respects_ignore_files {
            directory.rules = IgnoreRules::of(directory);
        }
    }
}

/// Why an entry was left out of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExclusionReason {
    Dotfile,
    Ignored,
}

impl FileSelector {
    /// The same judgement for a listing, which says why.
    pub(crate) fn check_listed(
        &self,
        directory: &WalkDirectory,
        name: &CStr,
        is_dir: bool,
    ) -> Result<(), ExclusionReason> {
        let dotted = name.to_bytes().first() == Some(&b'.');
        let said = match &directory.rules {
            Some(rules) => {
                let path = [directory.path(), name.to_bytes()].concat();
                rules.decide(&path, is_dir)
            }
            None => IgnoreDecision::Unmatched,
        };
        match said {
            IgnoreDecision::Ignore => Err(ExclusionReason::Ignored),
            IgnoreDecision::Unmatched | IgnoreDecision::Include
                if dotted && self.dotted != DotfileHandling::Include =>
            {
                Err(ExclusionReason::Dotfile)
            }
            IgnoreDecision::Unmatched | IgnoreDecision::Include => Ok(()),
        }
    }
}

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

fn glob_error_message(error: &ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    }
}
