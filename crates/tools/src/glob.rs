//! `Glob` and `glob`: files by name.

use crate::search_output::{
    SearchPathFormatter, SearchResultPage, bytes_needed, format_count, run_search, search_notices,
    search_refusal, selection_refusal,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::Instant;
use toolgate_files::FileProblem;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal};
use toolgate_search::{
    BareGlobScope, DotfileHandling, FileSelection, FileSelector, NameOrder, NameSearchResult, PathGlob,
    ResultLimit, find_names, split_literal_directories,
};

/// Files that the claude face gives.
const MAX_FILES: usize = 100;
const MAX_RESULT_CHARS: usize = 30_000;
/// What nobody looks for by name, and what would fill every answer.
const REPOSITORY: &[&str] = &[".git"];
const REPOSITORY_AND_PACKAGES: &[&str] = &[".git", "node_modules"];

/// The claude face: newest first, everything that is there.
pub(crate) struct GlobTool;

/// Input of [`Glob`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobInput {
    /// The glob that paths must match, such as `src/**/*.rs`; without a `/`, file names at any depth are matched.
    pattern: String,
    /// Where to search; the working directory where absent.
    path: Option<String>,
}

impl Tool for GlobTool {
    type Input = GlobInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Glob",
            "Finds files by a glob with `*`, `**`, `?`, `{a,b}` and `[a-z]`, those changed last first, 100 at \
             most. Ignored and hidden files are found as well; only what is inside `.git` is not. Use Grep to \
             search in content.",
        )
        .read_only();
        spec.title = "Find files".to_owned();
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples =
            vec![json!({ "pattern": "**/*.{ts,tsx}" }), json!({ "pattern": "*.toml", "path": "/project" })];
        spec
    }

    fn check(&self, input: &GlobInput) -> Result<(), Refusal> {
        check_pattern(&input.pattern)
    }

    fn intent(&self, input: &GlobInput, scene: &CallContext) -> Intent {
        glob_intent(&input.pattern, &glob_target(scene, input.path.as_deref(), &input.pattern))
    }

    async fn run(&self, input: GlobInput, cleared: Cleared) -> CallResult {
        let began = Instant::now();
        let place = glob_target(cleared.context(), input.path.as_deref(), &input.pattern);
        let selection = FileSelection {
            ignored: true,
            dotted: DotfileHandling::Include,
            excluded_directories: if input.pattern.contains(".git/") { &[] } else { REPOSITORY },
            ..FileSelection::default()
        };
        let order = NameOrder::Newest { limit: MAX_FILES };
        let answer = find_files(&cleared, &place, BareGlobScope::Anywhere, selection, order).await?;
        let paths = SearchPathFormatter::for_search(&cleared, &place.directory, false);
        let total = answer.total.unwrap_or_default();
        let filenames: Vec<String> = answer.files.iter().map(|file| paths.format_path(file)).collect();
        let truncated = total > filenames.len() as u64;

        let mut lines = filenames.clone();
        if lines.is_empty() {
            lines.push(format!("no files match `{}`", input.pattern));
        }
        if truncated {
            lines.push(format!(
                "[the {} files changed last, of {total} in all; use a narrower pattern or path to see others]",
                filenames.len()
            ));
        }
        lines.extend(search_notices(&answer.skipped, &paths));
        let structured = json!({
            "durationMs": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
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

/// The plain face: by name, what a person would want to see.
pub(crate) struct PlainGlobTool;

/// Input of [`PlainGlobTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PlainGlobInput {
    /// The glob that paths must match, seen from the directory: `*.ts` are files in it, `**/*.ts` files at any depth.
    pattern: String,
    /// The directory to search; the working directory where absent.
    directory: Option<String>,
    /// How many files to give at most.
    #[schemars(range(min = 1))]
    max_results: Option<u32>,
    /// Find files and directories whose name starts with a dot as well.
    #[serde(default)]
    include_hidden: bool,
    /// How many files to pass over, for going on after a page.
    #[serde(default)]
    offset: u32,
    /// Give absolute paths.
    #[serde(default)]
    absolute_paths: bool,
}

impl Tool for PlainGlobTool {
    type Input = PlainGlobInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "glob",
            "Finds files by name. Takes globs with `*`, `**`, `?`, `{a,b}` and `[a-z]`, seen from the directory, and \
             gives the paths of matching files in the order of their names. What .gitignore leaves out is not found, \
             nor is anything inside `.git` and `node_modules`: name such a directory as `directory` to look into it.",
        )
        .read_only();
        spec.title = "Find files".to_owned();
        spec.family = Some("Glob".to_owned());
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![json!({ "pattern": "**/*.ts", "directory": "src", "maxResults": 50 })];
        spec
    }

    fn check(&self, input: &PlainGlobInput) -> Result<(), Refusal> {
        check_pattern(&input.pattern)
    }

    fn intent(&self, input: &PlainGlobInput, scene: &CallContext) -> Intent {
        glob_intent(&input.pattern, &plain_glob_target(scene, input.directory.as_deref(), &input.pattern))
    }

    async fn run(&self, input: PlainGlobInput, cleared: Cleared) -> CallResult {
        let place = plain_glob_target(cleared.context(), input.directory.as_deref(), &input.pattern);
        let (below, _) = split_literal_directories(&place.pattern);
        let selection = FileSelection {
            dotted: if input.include_hidden { DotfileHandling::Include } else { DotfileHandling::Exclude },
            excluded_directories: REPOSITORY_AND_PACKAGES,
            below: (!below.is_empty()).then(|| below.to_owned()),
            ..FileSelection::default()
        };
        let offset = input.offset as usize;
        let limit = input.max_results.map_or(usize::MAX, |most| most as usize);
        let need = ResultLimit {
            units: offset.saturating_add(limit).saturating_add(1),
            bytes: bytes_needed(offset),
        };
        let answer =
            find_files(&cleared, &place, BareGlobScope::Here, selection, NameOrder::Path(need)).await?;
        let paths = SearchPathFormatter::for_search(&cleared, &place.directory, input.absolute_paths);
        let page = SearchResultPage::from_lines(
            answer.files.iter().map(|file| paths.format_path(file)),
            offset,
            limit,
            MAX_RESULT_CHARS,
        );

        let files: Vec<&str> = if page.shown > 0 { page.text.split('\n').collect() } else { Vec::new() };
        let mut lines = vec![page.text.clone()];
        if files.is_empty() {
            lines = vec![format!("no files match `{}`", input.pattern)];
            if !input.pattern.contains('/') && answer.total == Some(0) {
                lines.push(format!(
                    "[only the directory itself was searched; use `**/{}` for all below]",
                    input.pattern
                ));
            }
            if !input.include_hidden && input.pattern.split('/').any(|name| name.starts_with('.')) {
                lines.push("[hidden files were left out; set `includeHidden` to find them]".to_owned());
            }
        }
        lines.extend(page.continuation_notice("files", offset, answer.total, "offset"));
        lines.extend(search_notices(&answer.skipped, &paths));
        let structured = json!({ "files": files, "truncated": page.has_more(), "total": answer.total });
        Ok(Output::text(lines.join("\n"))
            .display(found_summary(page.shown, answer.total))
            .structured(structured))
    }
}

/// Where to look, and for what.
struct GlobTarget {
    directory: AbsPath,
    pattern: String,
    /// The pattern named directories, so what is left of it speaks of that directory only.
    anchored: bool,
}

/// The directories that a pattern names literally are a part of where.
fn glob_target(scene: &CallContext, directory: Option<&str>, pattern: &str) -> GlobTarget {
    let base = scene.absolute_path(directory.unwrap_or("."));
    let (literal, rest) = split_literal_directories(pattern);
    let directory = match literal.strip_prefix("~/").zip(scene.workspace.home.as_ref()) {
        Some((below, home)) => home.join(below),
        None => base.join(literal),
    };
    GlobTarget { directory, pattern: rest.to_owned(), anchored: !literal.is_empty() }
}

/// The same for a search that minds ignore files and hidden directories: those on the way count as well, so it starts
/// where it was told to, unless the pattern leads elsewhere.
fn plain_glob_target(scene: &CallContext, directory: Option<&str>, pattern: &str) -> GlobTarget {
    let (literal, _) = split_literal_directories(pattern);
    let leads_elsewhere = literal.starts_with('/')
        || literal.starts_with("~/")
        || literal.split('/').any(|name| name == "." || name == "..");
    if leads_elsewhere {
        return glob_target(scene, directory, pattern);
    }
    GlobTarget {
        directory: scene.absolute_path(directory.unwrap_or(".")),
        pattern: pattern.to_owned(),
        anchored: false,
    }
}

fn glob_intent(pattern: &str, place: &GlobTarget) -> Intent {
    let path = place.directory.clone();
    Intent::new(format!("find files matching `{pattern}`"), [Effect::Read { path, scope: PathScope::Tree }])
}

fn check_pattern(pattern: &str) -> Result<(), Refusal> {
    if pattern.is_empty() || pattern.ends_with('/') {
        return Err(Refusal::new(Code::BadArgument, format!("`/pattern` must name files, got `{pattern}`"))
            .hint(format!("use `{pattern}**` for all files in a directory")));
    }
    Ok(())
}

async fn find_files(
    cleared: &Cleared,
    place: &GlobTarget,
    bare: BareGlobScope,
    selection: FileSelection,
    order: NameOrder,
) -> Result<NameSearchResult, Refusal> {
    let bare = if place.anchored { BareGlobScope::Here } else { bare };
    let pattern =
        PathGlob::new(&place.pattern, bare).map_err(|problem| selection_refusal(&problem, Code::Glob))?;
    let selector =
        FileSelector::new(&selection).map_err(|problem| selection_refusal(&problem, Code::Glob))?;
    let failed = |problem| search_refusal(cleared, &place.directory, problem, Code::Glob);
    let tree = match cleared.files().search_tree(&place.directory, PathScope::Tree) {
        Err(FileProblem::Missing | FileProblem::NotDirectory) if place.anchored => None,
        tree => Some(tree.map_err(|problem| failed(problem.into()))?),
    };
    let Some(tree) = tree.filter(|tree| tree.is_directory() || !place.anchored) else {
        // A directory that only the pattern names is not there: nothing matches, which is an answer.
        return Ok(NameSearchResult { total: Some(0), ..NameSearchResult::default() });
    };
    run_search(cleared, move |stop| find_names(&tree, &selector, &pattern, order, stop)).await.map_err(failed)
}

fn found_summary(shown: usize, total: Option<u64>) -> String {
    let files = format_count(shown as u64, "file", "files").unwrap_or_else(|| "no files".to_owned());
    match total {
        Some(total) if total > shown as u64 => format!("found {total} files (showing {shown})"),
        Some(_) => format!("found {files}"),
        None => format!("found {files} and there are more"),
    }
}
