//! Expands a glob of `read_many_files` to the files that match it.
//!
//! `Glob` has its own search, in parallel and with ignore files.
//! This one lists directories through the call's granted files, in the order of names, and stops at the few files that
//! one result can show.

use super::read_many_files::{MAX_FILES, RequestedFile};
use crate::file_refusal::file_refusal;
use globset::{GlobBuilder, GlobMatcher};
use std::path::{Path, PathBuf};
use toolgate_files::GrantedFiles;
use toolgate_gate::Cleared;
use toolgate_proto::{AbsPath, Code, EntryKind, Refusal, format_count};

/// Directory entries that one pattern visits.
const MAX_VISITED_ENTRIES: usize = 100_000;

/// The directory below which a pattern is searched: its components before the first wildcard. `None` if the path has no
/// wildcard.
pub(super) fn pattern_base(path: &AbsPath) -> Option<AbsPath> {
    let has_wildcard = |name: &[u8]| name.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{'));
    if !has_wildcard(path.as_path().as_os_str().as_encoded_bytes()) {
        return None;
    }
    let names = path.as_path().components();
    let base = names.take_while(|name| !has_wildcard(name.as_os_str().as_encoded_bytes()));
    AbsPath::new(base.collect::<PathBuf>()).ok()
}

/// Appends the files that a pattern matches to `files`, and notes about those that it leaves out to `notes`.
pub(super) fn expand_pattern(
    given: &str,
    path: &AbsPath,
    base: &AbsPath,
    cleared: &Cleared,
    files: &mut Vec<RequestedFile>,
    notes: &mut Vec<String>,
) -> Result<(), Refusal> {
    let pattern = path.as_path().strip_prefix(base.as_path()).unwrap_or(path.as_path());
    let pattern = pattern.to_string_lossy();
    let glob = GlobBuilder::new(&pattern).literal_separator(true).build().map_err(|error| {
        Refusal::new(Code::Glob, format!("`{given}` is not a valid glob: {}", error.kind()))
    })?;
    let real =
        cleared.files().real_path(base).map_err(|problem| file_refusal(base, &problem, Code::FileRead))?;
    let mut walk = PatternWalk {
        files: cleared.files(),
        glob: glob.compile_matcher(),
        include_hidden: pattern.split('/').any(|part| part.starts_with('.')),
        base: &real,
        found: Vec::new(),
        visited: 0,
    };
    walk.walk_directory(&real, Path::new(""));
    let stopped_early = walk.visited >= MAX_VISITED_ENTRIES;
    let (withheld, found): (Vec<AbsPath>, Vec<AbsPath>) =
        walk.found.into_iter().partition(|path| cleared.files().may_hold_secrets(path));
    if let Some(first) = withheld.first() {
        let count = format_count(withheld.len() as u64, "file", "files");
        notes.push(format!(
            "withheld from `{given}`: {count} that may hold secrets, such as `{first}`; pass its exact path to ask for it"
        ));
    }
    if found.is_empty() && withheld.is_empty() {
        notes.push(format!("no file matches `{given}`"));
    }
    if stopped_early || files.len() + found.len() > MAX_FILES {
        notes.push(format!("`{given}` matches too many files; only the first are shown"));
    }
    let cwd = &cleared.context().workspace.cwd;
    for path in found.into_iter().take(MAX_FILES.saturating_sub(files.len())) {
        let shown = match path.as_path().strip_prefix(cwd.as_path()) {
            Ok(short) if !Path::new(given).is_absolute() => short.display().to_string(),
            _ => path.to_string(),
        };
        files.push(RequestedFile { shown, path });
    }
    Ok(())
}

/// A recursive listing of the directory below which a pattern is searched.
struct PatternWalk<'a> {
    /// Lists only directories that the call was granted.
    files: &'a GrantedFiles,
    /// Matches paths relative to `base`.
    glob: GlobMatcher,
    /// The pattern itself has a component that starts with a dot.
    include_hidden: bool,
    /// The real path of the directory in which the walk started.
    base: &'a AbsPath,
    /// Matching files, in the order of names.
    found: Vec<AbsPath>,
    /// Entries visited so far, at most [`MAX_VISITED_ENTRIES`].
    visited: usize,
}

impl PatternWalk<'_> {
    /// Symlinks are not followed: their target may be outside the tree that the call was granted.
    fn walk_directory(&mut self, directory: &AbsPath, relative: &Path) {
        for entry in self.files.list(directory).unwrap_or_default() {
            self.visited += 1;
            if self.visited >= MAX_VISITED_ENTRIES || self.found.len() > MAX_FILES {
                return;
            }
            let hidden = entry.name.as_encoded_bytes().starts_with(b".");
            if entry.is_symlink || entry.name == ".git" || (hidden && !self.include_hidden) {
                continue;
            }
            let relative = relative.join(&entry.name);
            match entry.kind {
                EntryKind::Directory => self.walk_directory(&directory.join(&entry.name), &relative),
                EntryKind::File if self.glob.is_match(&relative) => {
                    self.found.push(self.base.join(&relative))
                }
                EntryKind::File | EntryKind::Special | EntryKind::Missing => {}
            }
        }
    }
}
