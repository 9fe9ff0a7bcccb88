//! Derives the files whose content a git command shows.
//!
//! A command that shows names, messages or settings shows no file. One that shows patches or objects shows the files
//! that its paths name, or any file of the repository. A rule that denies reading a file then also denies showing it
//! from the history.

use super::git_args::GitArgs;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// The files whose content a command shows.
///
/// It is an upper bound: with both `whole_repository` and paths, the paths are what the user named, and the
/// repository what may be shown beyond them.
#[derive(Debug, Default)]
pub(crate) struct GitShownFiles {
    /// Any file of the repository.
    pub(crate) whole_repository: bool,
    /// Files and directories, relative to the working directory.
    pub(crate) here: Vec<(ShellArg, PathScope)>,
    /// Files and directories, relative to the top of the repository.
    pub(crate) top: Vec<(String, PathScope)>,
}

/// Options with which a diff shows no content, unless another option asks for a patch.
const NAME_OPTIONS: WordList = WordList(
    "raw stat compact-summary numstat shortstat dirstat cumulative X summary name-only name-status \
     no-patch s quiet",
);

/// Options that ask for a patch, or for a search through content.
const CONTENT_OPTIONS: WordList = WordList(
    "patch p u U unified patch-with-raw patch-with-stat binary check word-diff word-diff-regex \
     color-words function-context W c cc m dd diff-merges S G L",
);

/// Options with which `show` takes revisions from elsewhere than its operands: it shows what these point to, too.
const WALK_OPTIONS: WordList = WordList(
    "all branches tags remotes glob exclude exclude-hidden reflog g walk-reflogs bisect merge not do-walk \
     single-worktree objects",
);

/// Options with which more is shown than the paths name.
const BEYOND_PATHS_OPTIONS: WordList = WordList("full-diff follow");

impl GitShownFiles {
    /// A command that shows only names. A path outside of the working directory is a read of its own.
    pub(super) fn from_names(words: &GitArgs) -> Self {
        let named = words.operands.iter().chain(&words.paths).filter(|arg| may_leave(arg));
        Self { here: named.map(|arg| (arg.clone(), PathScope::Entry)).collect(), ..Self::default() }
    }

    /// What a diff between two states shows.
    pub(super) fn from_diff(words: &GitArgs) -> Self {
        if words.has(WordList("no-index")) {
            let both = words.operands.iter().chain(&words.paths);
            return Self {
                here: both.map(|arg| (arg.clone(), PathScope::Tree)).collect(),
                ..Self::default()
            };
        }
        if words.has(NAME_OPTIONS) && !words.has(CONTENT_OPTIONS) {
            return Self::from_names(words);
        }
        // Two objects of the history are compared with each other.
        if !words.divided
            && words.operands.len() == 2
            && words.operands.iter().all(|arg| object_path(arg).is_some())
        {
            let mut out = Self::default();
            out.add_objects(&words.operands, PathScope::Tree);
            return out;
        }
        Self::from_paths(words)
    }

    /// What a walk over history shows.
    pub(super) fn from_log(words: &GitArgs) -> Self {
        if !words.has(CONTENT_OPTIONS) {
            return Self::from_names(words);
        }
        if words.has(WordList("L")) && !words.has(BEYOND_PATHS_OPTIONS) {
            let ranges = words.values(WordList("L"));
            // Both the range and the name of the file may contain colons.
            let files = ranges.flat_map(|range| {
                range.text.match_indices(':').filter_map(|(at, _)| range.text.get(at + 1..))
            });
            let mut out = Self::from_names(words);
            out.here.extend(files.map(|file| (ShellArg::literal(file), PathScope::Entry)));
            return out;
        }
        Self::from_paths(words)
    }

    /// What `show` shows: a commit like `log`, or the content of a file.
    pub(super) fn from_show(words: &GitArgs) -> Self {
        let names_only = words.has(NAME_OPTIONS) && !words.has(CONTENT_OPTIONS);
        let (objects, others): (Vec<ShellArg>, Vec<ShellArg>) =
            words.operands.iter().cloned().partition(|arg| object_path(arg).is_some());
        let mut out = Self::default();
        out.add_objects(&objects, PathScope::Entry);
        // Any other name may be that of a blob.
        let commits = others.iter().all(|arg| is_head(&arg.text)) && !words.has(WALK_OPTIONS);
        if commits && (names_only || others.is_empty() && !objects.is_empty()) {
            return out;
        }
        if commits && words.divided && !words.paths.is_empty() {
            let limited = Self::from_paths(words);
            out.whole_repository |= limited.whole_repository;
            out.here.extend(limited.here);
            out.top.extend(limited.top);
            return out;
        }
        out.whole_repository = true;
        out.add_operands(&others);
        out
    }

    /// What `cat-file` shows. Only the first of two operands is a type; a reference may have the name of one.
    pub(super) fn from_cat_file(words: &GitArgs) -> Self {
        let operands: Vec<&ShellArg> = words.operands.iter().chain(&words.paths).collect();
        let objects = match operands.as_slice() {
            [_, rest @ ..] if !words.has(WordList("p")) && !rest.is_empty() => rest,
            all if words.has(WordList("p")) => all,
            _ => return Self::default(),
        };
        let mut out = Self::default();
        let objects: Vec<ShellArg> = objects.iter().map(|object| (*object).clone()).collect();
        out.add_objects(&objects, PathScope::Entry);
        out.whole_repository = objects.iter().any(|arg| object_path(arg).is_none() && !is_head(&arg.text));
        out
    }

    /// What `grep` searches.
    pub(super) fn from_grep(words: &GitArgs) -> Self {
        let skipped = usize::from(!words.has(WordList("e")));
        let operands = words.operands.get(skipped..).unwrap_or_default();
        if words.has(WordList("no-index")) {
            let mut out = Self::default();
            for path in operands.iter().chain(&words.paths) {
                out.add_pathspec(path);
            }
            if out.here.is_empty() && out.top.is_empty() || out.whole_repository {
                out.here.push((ShellArg::literal("."), PathScope::Tree));
            }
            return out;
        }
        let rest = GitArgs {
            operands: operands.to_vec(),
            paths: words.paths.clone(),
            divided: words.divided,
            ..GitArgs::default()
        };
        if !words.divided && !operands.is_empty() && operands.iter().all(|arg| object_path(arg).is_some()) {
            let mut out = Self::default();
            out.add_objects(operands, PathScope::Tree);
            return out;
        }
        Self::from_paths(&rest)
    }

    /// What `blame` shows: the content of one file.
    pub(super) fn from_blame(words: &GitArgs) -> Self {
        // Revision and file may come in either order, and each form of a revision is also a name for a file.
        let both = words.operands.iter().chain(&words.paths);
        Self { here: both.map(|arg| (arg.clone(), PathScope::Entry)).collect(), ..Self::default() }
    }

    /// Adds what a command may show whose options are not all listed: any of its words may be a file, and an option
    /// that asks for names only may be the value of another one. `content`: the subcommand can show any file.
    pub(super) fn add_unlisted(&mut self, words: &GitArgs, content: bool) {
        let values = words.options.iter().filter_map(|(_, value)| value.as_ref());
        let all: Vec<ShellArg> = words
            .operands
            .iter()
            .chain(&words.paths)
            .chain(values)
            .chain(&words.unlisted_values)
            .cloned()
            .collect();
        self.whole_repository |= content;
        if content {
            self.add_objects(&all, PathScope::Tree);
        }
        self.here.extend(all.into_iter().map(|arg| (arg, PathScope::Entry)));
    }

    /// A command that shows the files that its paths select, or all files if there is none.
    pub(super) fn from_paths(words: &GitArgs) -> Self {
        let mut out = Self { whole_repository: words.has(BEYOND_PATHS_OPTIONS), ..Self::default() };
        out.add_objects(&words.operands, PathScope::Tree);
        let named = out.here.len() + out.top.len();
        for path in &words.paths {
            out.add_pathspec(path);
        }
        if out.here.len() + out.top.len() == named {
            out.whole_repository = true;
        }
        if !words.divided {
            out.add_operands(&words.operands);
            out.whole_repository = true;
        }
        out
    }

    /// Adds operands that may be paths: `key~` and `a..b` are names of files as well as revisions.
    fn add_operands(&mut self, operands: &[ShellArg]) {
        for arg in operands {
            if object_path(arg).is_none() && (arg.live.is_some() || arg.tilde || !is_head(&arg.text)) {
                self.here.push((arg.clone(), PathScope::Entry));
            }
        }
    }

    /// Adds operands that name a file of a commit or of the index, or a file with a colon in its name.
    fn add_objects(&mut self, operands: &[ShellArg], scope: PathScope) {
        for arg in operands {
            let Some(path) = object_path(arg) else { continue };
            self.here.push((arg.clone(), PathScope::Entry));
            if path == "." || path.starts_with("./") || path.starts_with("../") || path == ".." {
                self.here.push((ShellArg::literal(path), scope));
            } else {
                self.top.push((path.to_owned(), scope));
            }
        }
    }

    /// Adds a path after `--`, with its pathspec magic.
    fn add_pathspec(&mut self, arg: &ShellArg) {
        let text = arg.text.as_str();
        if arg.live.is_some() || arg.tilde || !text.starts_with(':') {
            self.add_path(arg.clone(), false);
            return;
        }
        let Some((magic, rest)) = parse_pathspec_magic(text) else {
            self.whole_repository = true;
            return;
        };
        let has = |name: &str| magic.contains(&name);
        if has("exclude") {
            return;
        }
        let plain = ["top", "literal", "icase", "glob"];
        if rest.is_empty() || !magic.iter().all(|word| plain.contains(word)) {
            self.whole_repository = true;
        } else if !has("top") {
            self.add_path(ShellArg::literal(rest), has("literal"));
        } else if has_wildcard(rest) && !has("literal") {
            self.whole_repository = true;
        } else {
            self.top.push((rest.to_owned(), PathScope::Tree));
        }
    }

    /// Adds a path. `literal`: wildcards in it have no meaning.
    fn add_path(&mut self, arg: ShellArg, literal: bool) {
        if arg.pattern.is_some() || literal || !has_wildcard(&arg.text) {
            self.here.push((arg, PathScope::Tree));
            return;
        }
        // In a pathspec of git a star also matches slashes.
        let unescaped = arg.text.replace('\\', "");
        if unescaped != arg.text {
            self.here.push((ShellArg::literal(unescaped), PathScope::Tree));
        }
        self.here.push((ShellArg { pattern: Some(arg.text.clone()), ..arg }, PathScope::Tree));
    }
}

/// Whether a pathspec has a wildcard or an escape.
fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

/// The magic words of a pathspec and the path after them; `None` if it cannot be parsed.
fn parse_pathspec_magic(text: &str) -> Option<(Vec<&str>, &str)> {
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

/// The path in `REVISION:PATH`, `:PATH` or `:STAGE:PATH`; `None` for an operand of another form.
///
/// A colon inside braces belongs to a revision such as `HEAD^{/fix: x}`.
fn object_path(arg: &ShellArg) -> Option<&str> {
    let text = arg.known()?;
    // `:/words` searches commit messages; other magic belongs to pathspecs.
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

/// Whether a word, if it is a path, may lead out of the working directory.
pub(super) fn may_leave(arg: &ShellArg) -> bool {
    arg.tilde || arg.text.starts_with('/') || arg.text.split('/').any(|name| name == "..")
}

/// Whether a word can only name the commit that is checked out, or an ancestor of it.
fn is_head(text: &str) -> bool {
    let rest = text.strip_prefix("HEAD").or_else(|| text.strip_prefix('@'));
    rest.is_some_and(|rest| {
        let steps = |character: char| character.is_ascii_digit() || "~^".contains(character);
        rest.is_empty() || rest.starts_with(['~', '^']) && rest.chars().all(steps)
    })
}
