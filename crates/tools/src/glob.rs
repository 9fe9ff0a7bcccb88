//! `Glob` and `glob`: find files by name.
//!
//! The two differ in more than names.
//! `Glob` sorts by modification time, because the file that was changed last is usually the one that is wanted, and
//! shows everything except git's own files.
//! `glob` sorts by path, which makes pages possible, and leaves out what `.gitignore` ignores.

use crate::search::{
    PathFormatter, ResultPage, result_limit, run_search, search_notices, search_refusal, selection_refusal,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::Instant;
use toolgate_files::FileProblem;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal, format_count};
use toolgate_search::{
    BareGlobScope, DotfileHandling, FileSelection, FileSelector, NameOrder, NameSearchResult, PathGlob,
    find_names, split_literal_directories,
};

/// Files that `Glob` returns.
const MAX_FILES: usize = 100;
/// Characters of a result; `glob` continues with the next page.
const MAX_RESULT_CHARS: usize = 30_000;
/// Directories that `Glob` does not search: git objects would fill every result.
const EXCLUDED_DIRECTORIES: &[&str] = &[".git"];
/// Directories that `glob` does not search unless one is its start.
const PLAIN_EXCLUDED_DIRECTORIES: &[&str] = &[".git", "node_modules"];

/// The adapter of the claude toolset: most recently modified files first, ignored and hidden ones included.
pub(crate) struct GlobTool;

/// Input of [`GlobTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobInput {
    /// The glob that paths must match, such as `src/**/*.rs`; without a `/` it matches file names at any depth.
    pattern: String,
    /// The directory to search, absolute or relative to the working directory, which is the default.
    path: Option<String>,
}

impl Tool for GlobTool {
    type Input = GlobInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Glob",
            "Finds files by a glob with `*`, `**`, `?`, `{a,b}` and `[a-z]`; returns at most 100, most recently \
             modified first. Ignored and hidden files are included, files inside `.git` are not. Use Grep to search \
             in content.",
        )
        .read_only()
        .with_main_field("path");
        spec.title = "Find files".to_owned();
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples =
            vec![json!({ "pattern": "**/*.{ts,tsx}" }), json!({ "pattern": "*.toml", "path": "/project" })];
        spec
    }

    fn check(&self, input: &GlobInput) -> Result<(), Refusal> {
        check_pattern(&input.pattern)
    }

    /// Declares a read of the directory where the search starts, which depends on the literal prefix of the pattern.
    fn intent(&self, input: &GlobInput, context: &CallContext) -> Intent {
        glob_intent(&input.pattern, &glob_target(context, input.path.as_deref(), &input.pattern))
    }

    /// Searches ignored and hidden files too, and returns the newest files first. `.git` is searched only if the
    /// pattern names it.
    async fn run(&self, input: GlobInput, cleared: Cleared) -> CallResult {
        let started = Instant::now();
        let target = glob_target(cleared.context(), input.path.as_deref(), &input.pattern);
        let selection = FileSelection {
            ignored: true,
            dotted: DotfileHandling::Include,
            excluded_directories: if input.pattern.contains(".git/") { &[] } else { EXCLUDED_DIRECTORIES },
            ..FileSelection::default()
        };
        let order = NameOrder::Newest { limit: MAX_FILES };
        let found = find_files(&cleared, &target, BareGlobScope::Anywhere, selection, order).await?;
        let paths = PathFormatter::for_search(&cleared, &target.directory, false);
        let total = found.total.unwrap_or_default();
        let filenames: Vec<String> = found.files.iter().map(|file| paths.format_path(file)).collect();
        let truncated = total > filenames.len() as u64;

        let mut lines = filenames.clone();
        if lines.is_empty() {
            lines.push(format!("no files match `{}`", input.pattern));
        }
        if truncated {
            lines.push(format!(
                "[the {} most recently modified of {total} files; use a narrower pattern or path to see others]",
                filenames.len()
            ));
        }
        lines.extend(search_notices(&found.skipped, &paths));
        let structured = json!({
            "durationMs": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "numFiles": filenames.len(),
            "filenames": filenames,
            "truncated": truncated,
            "totalMatches": total,
            "countIsComplete": true,
        });
        Ok(Output::text(lines.join("\n"))
            .display(found_summary(filenames.len(), Some(total)))
            .structured(structured))
    }
}

/// The adapter of the plain toolset: files in the order of their paths, without ignored and hidden ones, in pages.
pub(crate) struct PlainGlobTool;

/// Input of [`PlainGlobTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PlainGlobInput {
    /// The glob that paths must match, relative to the directory: `*.ts` matches files in it, `**/*.ts` at any depth.
    pattern: String,
    /// The directory to search; default: the working directory.
    directory: Option<String>,
    /// The maximum number of files to return.
    #[schemars(range(min = 1))]
    max_results: Option<u32>,
    /// Include files and directories whose name starts with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// The number of files to skip, to continue after a page.
    #[serde(default)]
    offset: u32,
    /// Return absolute paths.
    #[serde(default)]
    absolute_paths: bool,
}

impl Tool for PlainGlobTool {
    type Input = PlainGlobInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "glob",
            "Finds files by name. Takes globs with `*`, `**`, `?`, `{a,b}` and `[a-z]`, relative to the directory, and \
             returns the paths of matching files in order. Files ignored by .gitignore and files inside `.git` and \
             `node_modules` are not found: pass such a directory as `directory` to search it.",
        )
        .read_only()
        .with_main_field("directory");
        spec.title = "Find files".to_owned();
        spec.family = Some("Glob".to_owned());
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![json!({ "pattern": "**/*.ts", "directory": "src", "maxResults": 50 })];
        spec
    }

    fn check(&self, input: &PlainGlobInput) -> Result<(), Refusal> {
        check_pattern(&input.pattern)
    }

    /// Declares a read of the directory where the search starts.
    fn intent(&self, input: &PlainGlobInput, context: &CallContext) -> Intent {
        glob_intent(&input.pattern, &plain_glob_target(context, input.directory.as_deref(), &input.pattern))
    }

    /// Searches in path order, which makes `offset` stable between calls while files are only read.
    async fn run(&self, input: PlainGlobInput, cleared: Cleared) -> CallResult {
        let target = plain_glob_target(cleared.context(), input.directory.as_deref(), &input.pattern);
        let (below, _) = split_literal_directories(&target.pattern);
        let selection = FileSelection {
            dotted: if input.include_hidden { DotfileHandling::Include } else { DotfileHandling::Exclude },
            excluded_directories: PLAIN_EXCLUDED_DIRECTORIES,
            below: (!below.is_empty()).then(|| below.to_owned()),
            ..FileSelection::default()
        };
        let offset = input.offset as usize;
        let limit = input.max_results.map_or(usize::MAX, |max| max as usize);
        let order = NameOrder::Path(result_limit(offset, limit));
        let found = find_files(&cleared, &target, BareGlobScope::Here, selection, order).await?;
        let paths = PathFormatter::for_search(&cleared, &target.directory, input.absolute_paths);
        let page = ResultPage::from_lines(
            found.files.iter().map(|file| paths.format_path(file)),
            offset,
            limit,
            MAX_RESULT_CHARS,
        );

        let files: Vec<&str> = if page.shown > 0 { page.text.split('\n').collect() } else { Vec::new() };
        let mut lines =
            if files.is_empty() { no_match_lines(&input, &found) } else { vec![page.text.clone()] };
        lines.extend(page.continuation_notice("files", offset, found.total));
        lines.extend(search_notices(&found.skipped, &paths));
        let structured = json!({ "files": files, "truncated": page.has_more(), "total": found.total });
        Ok(Output::text(lines.join("\n"))
            .display(found_summary(page.shown, found.total))
            .structured(structured))
    }
}

/// An empty result with the likely causes: the pattern does not descend, or hidden files are excluded.
fn no_match_lines(input: &PlainGlobInput, found: &NameSearchResult) -> Vec<String> {
    let pattern = &input.pattern;
    let mut lines = vec![format!("no files match `{pattern}`")];
    if !pattern.contains('/') && found.total == Some(0) {
        lines.push(format!("[only the directory itself was searched; use `**/{pattern}` for all below]"));
    }
    if !input.include_hidden && pattern.split('/').any(|name| name.starts_with('.')) {
        lines.push("[hidden files were excluded; set `includeHidden` to find them]".to_owned());
    }
    lines
}

/// The directory in which a search starts, and the pattern relative to it.
struct GlobTarget {
    /// An absolute path, which may not exist.
    directory: AbsPath,
    /// The rest of the pattern, relative to `directory`.
    pattern: String,
    /// The directory comes from the pattern, so a pattern without `/` matches only in that directory.
    anchored: bool,
}

/// Moves the literal directories of a pattern into the directory to search, so that `src/**/*.rs` reads only `src`.
fn glob_target(context: &CallContext, directory: Option<&str>, pattern: &str) -> GlobTarget {
    let base = context.absolute_path(directory.unwrap_or("."));
    let (literal, rest) = split_literal_directories(pattern);
    let directory = match literal.strip_prefix("~/").zip(context.workspace.home.as_ref()) {
        Some((below, home)) => home.join(below),
        None => base.join(literal),
    };
    GlobTarget { directory, pattern: rest.to_owned(), anchored: !literal.is_empty() }
}

/// The target of `glob`, which respects ignore files. Those of the directories above the literal part count as well, so
/// the search starts at the given directory, unless the pattern is absolute or contains `.` or `..`.
fn plain_glob_target(context: &CallContext, directory: Option<&str>, pattern: &str) -> GlobTarget {
    let (literal, _) = split_literal_directories(pattern);
    let leaves_directory = literal.starts_with('/')
        || literal.starts_with("~/")
        || literal.split('/').any(|name| name == "." || name == "..");
    if leaves_directory {
        return glob_target(context, directory, pattern);
    }
    GlobTarget {
        directory: context.absolute_path(directory.unwrap_or(".")),
        pattern: pattern.to_owned(),
        anchored: false,
    }
}

/// The effect: reading the tree in which the search starts.
fn glob_intent(pattern: &str, target: &GlobTarget) -> Intent {
    let path = target.directory.clone();
    Intent::new(format!("find files matching `{pattern}`"), [Effect::Read { path, scope: PathScope::Tree }])
}

/// Rejects a pattern that can match only directories: both tools return files.
fn check_pattern(pattern: &str) -> Result<(), Refusal> {
    if pattern.is_empty() || pattern.ends_with('/') {
        return Err(Refusal::new(Code::BadArgument, format!("`pattern` must name files, got `{pattern}`"))
            .hint(format!("use `{pattern}**` for all files in a directory")));
    }
    Ok(())
}

/// Runs the search. `bare` says what a pattern without `/` matches.
async fn find_files(
    cleared: &Cleared,
    target: &GlobTarget,
    bare: BareGlobScope,
    selection: FileSelection,
    order: NameOrder,
) -> Result<NameSearchResult, Refusal> {
    let bare = if target.anchored { BareGlobScope::Here } else { bare };
    let pattern =
        PathGlob::new(&target.pattern, bare).map_err(|problem| selection_refusal(&problem, Code::Glob))?;
    let selector =
        FileSelector::new(&selection).map_err(|problem| selection_refusal(&problem, Code::Glob))?;
    let refuse = |problem| search_refusal(cleared, &target.directory, problem, Code::Glob);
    let tree = match cleared.files().search_tree(&target.directory, PathScope::Tree) {
        Err(FileProblem::Missing | FileProblem::NotDirectory) if target.anchored => None,
        tree => Some(tree.map_err(|problem| refuse(problem.into()))?),
    };
    let Some(tree) = tree.filter(|tree| tree.is_directory() || !target.anchored) else {
        // A directory that only the pattern names does not exist: that is an empty result, not an error.
        return Ok(NameSearchResult { total: Some(0), ..NameSearchResult::default() });
    };
    run_search(cleared, move |stop| find_names(&tree, &selector, &pattern, order, stop)).await.map_err(refuse)
}

/// The line that a user sees instead of the list.
fn found_summary(shown: usize, total: Option<u64>) -> String {
    let files = if shown == 0 { "no files".to_owned() } else { format_count(shown as u64, "file", "files") };
    match total {
        Some(total) if total > shown as u64 => format!("found {total} files (showing {shown})"),
        Some(_) => format!("found {files}"),
        None => format!("found {files}, and there are more"),
    }
}
