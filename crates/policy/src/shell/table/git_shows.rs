//! Which files a git command shows the content of.
//!
//! A command that shows names, messages or settings shows no file.
//! One that shows patches or objects shows the files that its paths name, or any file of the repository.

use super::super::expand::Arg;
use super::git_words::GitArgs;
use toolgate_proto::Scope;

/// What a command shows.
#[derive(Debug, Default)]
pub(in super::super) struct GitShownFiles {
    /// Any file of the repository.
    pub(in super::super) whole: bool,
    /// Files and directories, seen from the working directory.
    pub(in super::super) here: Vec<(Arg, Scope)>,
    /// Files and directories, seen from the top of the repository.
    pub(in super::super) top: Vec<(String, Scope)>,
}

/// Options that leave the output of a diff without content, unless another asks for a patch.
const NAMES: &[&str] = &[
    "raw",
    "stat",
    "compact-summary",
    "numstat",
    "shortstat",
    "dirstat",
    "cumulative",
    "X",
    "summary",
    "name-only",
    "name-status",
    "no-patch",
    "s",
    "quiet",
];

/// Options that ask for a patch, or for a search through content.
const CONTENT: &[&str] = &[
    "patch",
    "p",
    "u",
    "U",
    "unified",
    "patch-with-raw",
    "patch-with-stat",
    "binary",
    "check",
    "word-diff",
    "word-diff-regex",
    "color-words",
    "function-context",
    "W",
    "c",
    "cc",
    "m",
    "dd",
    "diff-merges",
    "S",
    "G",
    "L",
];

/// Options that make more be shown than the paths name.
const BEYOND_PATHS_OPTIONS: &[&str] = &["full-diff", "follow"];

impl GitShownFiles {
    /// Only names: what a path leads to matters where it leaves the workspace.
    pub(super) fn names(words: &GitArgs) -> Self {
        let leaves = |arg: &&Arg| {
            arg.tilde || arg.text.starts_with('/') || arg.text.split('/').any(|name| name == "..")
        };
        let named = words.operands.iter().chain(&words.paths).filter(leaves);
        Self { here: named.map(|arg| (arg.clone(), Scope::Entry)).collect(), ..Self::default() }
    }

    /// What a diff between states shows.
    pub(super) fn diff(words: &GitArgs) -> Self {
        if words.has(&["no-index"]) {
            let both = words.operands.iter().chain(&words.paths);
            return Self { here: both.map(|arg| (arg.clone(), Scope::Tree)).collect(), ..Self::default() };
        }
        if words.has(NAMES) && !words.has(CONTENT) {
            return Self::names(words);
        }
        // Two objects out of the history are compared with each other.
        if !words.divided
            && words.operands.len() == 2
            && words.operands.iter().all(|arg| object(arg).is_some())
        {
            let mut out = Self::default();
            out.objects(&words.operands, Scope::Tree);
            return out;
        }
        Self::paths(words)
    }

    /// What a walk over history shows.
    pub(super) fn log(words: &GitArgs) -> Self {
        if !words.has(CONTENT) {
            return Self::names(words);
        }
        if words.has(&["L"]) && !words.has(BEYOND_PATHS_OPTIONS) {
            let ranges = words.values(&["L"]);
            let files = ranges.filter_map(|range| range.text.rsplit_once(':'));
            let mut out = Self::names(words);
            out.here.extend(files.map(|(_, file)| (Arg::literal(file), Scope::Entry)));
            return out;
        }
        Self::paths(words)
    }

    /// What `show` shows: a commit as `log` does, a file as it is.
    pub(super) fn show(words: &GitArgs) -> Self {
        let names_only = words.has(NAMES) && !words.has(CONTENT);
        let (objects, others): (Vec<Arg>, Vec<Arg>) =
            words.operands.iter().cloned().partition(|arg| object(arg).is_some());
        let mut out = Self::default();
        out.objects(&objects, Scope::Entry);
        // Any other name may be that of a file's content.
        let commits = others.iter().all(|arg| is_head(&arg.text));
        if commits && (names_only || others.is_empty() && !objects.is_empty()) {
            return out;
        }
        if commits && words.divided && !words.paths.is_empty() {
            let limited = Self::paths(words);
            out.whole |= limited.whole;
            out.here.extend(limited.here);
            out.top.extend(limited.top);
            return out;
        }
        out.whole = true;
        out.operands(&others);
        out
    }

    /// What `cat-file` shows.
    pub(super) fn object(words: &GitArgs) -> Self {
        let kind = words
            .operands
            .first()
            .is_some_and(|arg| matches!(arg.text.as_str(), "blob" | "tree" | "commit" | "tag"));
        if !words.has(&["p"]) && !kind {
            return Self::default();
        }
        let operands = words.operands.get(usize::from(kind)..).unwrap_or_default();
        let mut out = Self::default();
        out.objects(operands, Scope::Entry);
        out.whole = operands.iter().any(|arg| object(arg).is_none() && !is_head(&arg.text));
        out
    }

    /// What `grep` searches.
    pub(super) fn search(words: &GitArgs) -> Self {
        let skipped = usize::from(!words.has(&["e"]));
        let operands = words.operands.get(skipped..).unwrap_or_default();
        if words.has(&["no-index"]) {
            let mut out = Self::default();
            for path in operands.iter().chain(&words.paths) {
                out.pathspec(path);
            }
            if out.here.is_empty() && out.top.is_empty() || out.whole {
                out.here.push((Arg::literal("."), Scope::Tree));
            }
            return out;
        }
        let rest = GitArgs {
            operands: operands.to_vec(),
            paths: words.paths.clone(),
            divided: words.divided,
            ..GitArgs::default()
        };
        if !words.divided && !operands.is_empty() && operands.iter().all(|arg| object(arg).is_some()) {
            let mut out = Self::default();
            out.objects(operands, Scope::Tree);
            return out;
        }
        Self::paths(&rest)
    }

    /// What `blame` shows: one file.
    pub(super) fn file(words: &GitArgs) -> Self {
        let mut out = Self::default();
        out.operands(&words.operands);
        out.here.extend(words.paths.iter().map(|path| (path.clone(), Scope::Entry)));
        out
    }

    /// Any file that the paths leave, or any at all.
    pub(super) fn paths(words: &GitArgs) -> Self {
        let mut out = Self { whole: words.has(BEYOND_PATHS_OPTIONS), ..Self::default() };
        out.objects(&words.operands, Scope::Tree);
        let named = out.here.len() + out.top.len();
        for path in &words.paths {
            out.pathspec(path);
        }
        if out.here.len() + out.top.len() == named {
            out.whole = true;
        }
        if !words.divided {
            out.operands(&words.operands);
            out.whole = true;
        }
        out
    }

    /// Operands that may be paths.
    fn operands(&mut self, operands: &[Arg]) {
        for arg in operands {
            if object(arg).is_none() && (arg.live.is_some() || arg.tilde || !is_revision(&arg.text)) {
                self.here.push((arg.clone(), Scope::Entry));
            }
        }
    }

    /// Operands that name a file of a commit or of the index.
    fn objects(&mut self, operands: &[Arg], scope: Scope) {
        for arg in operands {
            let Some(path) = object(arg) else { continue };
            if path == "." || path.starts_with("./") || path.starts_with("../") || path == ".." {
                self.here.push((Arg::literal(path), scope));
            } else {
                self.top.push((path.to_owned(), scope));
            }
        }
    }

    /// A path after `--`, with git's magic.
    fn pathspec(&mut self, arg: &Arg) {
        let text = arg.text.as_str();
        if arg.live.is_some() || arg.tilde || !text.starts_with(':') {
            self.named(arg.clone(), false);
            return;
        }
        let Some((magic, rest)) = magic(text) else {
            self.whole = true;
            return;
        };
        let has = |name: &str| magic.contains(&name);
        if has("exclude") {
            return;
        }
        let plain = ["top", "literal", "icase", "glob"];
        if rest.is_empty() || !magic.iter().all(|word| plain.contains(word)) {
            self.whole = true;
        } else if !has("top") {
            self.named(Arg::literal(rest), has("literal"));
        } else if has_wildcard(rest) && !has("literal") {
            self.whole = true;
        } else {
            self.top.push((rest.to_owned(), Scope::Tree));
        }
    }

    fn named(&mut self, arg: Arg, literal: bool) {
        if arg.pattern.is_some() || literal || !has_wildcard(&arg.text) {
            self.here.push((arg, Scope::Tree));
            return;
        }
        // git's own pattern: a star goes through directories.
        let unescaped = arg.text.replace('\\', "");
        if unescaped != arg.text {
            self.here.push((Arg::literal(unescaped), Scope::Tree));
        }
        self.here.push((Arg { pattern: Some(arg.text.clone()), ..arg }, Scope::Tree));
    }
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

/// The magic of a pathspec and the rest of it; `None` if it cannot be read.
fn magic(text: &str) -> Option<(Vec<&str>, &str)> {
    let after = text.strip_prefix(':')?;
    if let Some(long) = after.strip_prefix('(') {
        let (words, rest) = long.split_once(')')?;
        return Some((words.split(',').filter(|word| !word.is_empty()).collect(), rest));
    }
    let mut found = Vec::new();
    let mut rest = after;
    loop {
        let mut characters = rest.chars();
        match characters.next() {
            Some('/') => found.push("top"),
            Some('!' | '^') => found.push("exclude"),
            Some(':') => return Some((found, characters.as_str())),
            Some(_) | None => return Some((found, rest)),
        }
        rest = characters.as_str();
    }
}

/// The path in `REVISION:PATH`, `:PATH` or `:STAGE:PATH`.
fn object(arg: &Arg) -> Option<&str> {
    let text = arg.known()?;
    // `:/words` searches messages; other magic belongs to pathspecs.
    if text.starts_with(":/") || text.starts_with(":(") || text.starts_with(":!") || text.starts_with(":^") {
        return None;
    }
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => {
                let path = text.get(at + 1..)?;
                let staged = at == 0 && path.get(1..2) == Some(":") && path.starts_with(['0', '1', '2', '3']);
                return if staged { path.get(2..) } else { Some(path) };
            }
            _ => {}
        }
    }
    None
}

/// Whether a word can only be a revision: no path that a rule names is spelled so.
fn is_revision(text: &str) -> bool {
    let range = text.starts_with("..") && !text.starts_with("../") && text != "..";
    // No part of a reference begins with a dot.
    let dotted = !range && text.split('/').any(|name| name.starts_with('.'));
    let shaped = text.contains("..") || text.contains(['^', '~']) || text.contains("@{");
    is_head(text) || (!dotted && shaped)
}

/// Whether a word can only name a commit that is checked out, or one before it.
fn is_head(text: &str) -> bool {
    let rest = text.strip_prefix("HEAD").or_else(|| text.strip_prefix('@'));
    rest.is_some_and(|rest| {
        let steps = |character: char| character.is_ascii_digit() || "~^".contains(character);
        rest.is_empty() || rest.starts_with(['~', '^']) && rest.chars().all(steps)
    })
}
