//! `Grep` and `grep`: search the content of files with a regular expression.
//!
//! The engine is ripgrep's, and `Grep` returns the same lines as `rg` with the same options; a test compares them.
//! Results are in the order of paths and not of completion, so that the same call returns the same page, and `offset`
//! continues where the previous page ended.

mod renderer;

use crate::search::{
    PathFormatter, ResultPage, result_limit, run_search, search_notices, search_refusal, selection_refusal,
};
use renderer::GrepRenderer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal, format_count};
use toolgate_search::{
    CaseSensitivity, ContentOutputKind, ContentSearchResult, DotfileHandling, FileSelection, FileSelector,
    LineMode, LineOutputOptions, PatternProblem, ResultLimit, ResultLine, SearchPattern, search_content,
};

/// Characters of a result; the rest is on the next page.
const MAX_RESULT_CHARS: usize = 20_000;
/// Results of `Grep` without `head_limit`.
const DEFAULT_LIMIT: usize = 250;
/// Directories that `grep` does not search unless one is its start.
const PLAIN_EXCLUDED_DIRECTORIES: &[&str] = &[".git", "node_modules"];

/// The adapter of the claude toolset, whose fields are ripgrep's options.
pub(crate) struct GrepTool;

/// Input of [`GrepTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepInput {
    /// The regular expression in ripgrep syntax; escape literal braces and parentheses (`interface\{\}`).
    pattern: String,
    /// The file or directory to search, absolute or relative to the working directory, which is the default.
    path: Option<String>,
    /// Search only files that match this glob (`*.js`, `src/**/*.{ts,tsx}`), or with `!` before it the others. Separate
    /// several with spaces.
    glob: Option<String>,
    /// What to return: paths (default), matching lines, or the number of matching lines in each file.
    output_mode: Option<GrepOutputMode>,
    /// Lines before each match, with `content`.
    #[serde(rename = "-B")]
    #[schemars(range(min = 0, max = 10_000))]
    before: Option<u32>,
    /// Lines after each match.
    #[serde(rename = "-A")]
    #[schemars(range(min = 0, max = 10_000))]
    after: Option<u32>,
    /// Lines before and after each match.
    #[serde(rename = "-C")]
    #[schemars(range(min = 0, max = 10_000))]
    around: Option<u32>,
    /// The same as `-C`.
    #[schemars(range(min = 0, max = 10_000))]
    context: Option<u32>,
    /// Show line numbers; default true.
    #[serde(rename = "-n")]
    numbers: Option<bool>,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// Show only the matching part of a line; with `count`, count each match.
    #[serde(default, rename = "-o")]
    only_matching: bool,
    /// Search only files of this type: `js`, `py`, `rust` and so on.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// The maximum number of results; default 250, 0 for all.
    #[schemars(range(min = 0))]
    head_limit: Option<u32>,
    /// The number of results to skip.
    #[schemars(range(min = 0))]
    offset: Option<u32>,
    /// Let matches span lines; `.` also matches line ends.
    #[serde(default)]
    multiline: bool,
}

/// What a search returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrepOutputMode {
    /// Matching lines.
    Content,
    /// Paths of files with a match.
    FilesWithMatches,
    /// Matching lines per file.
    Count,
}

impl Tool for GrepTool {
    type Input = GrepInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Grep",
            "Searches the content of files with a regular expression and returns paths, lines or counts in the order \
             of paths; continue with `offset`. Files ignored by .gitignore, hidden files and binary files are not \
             searched. Look-around and backreferences are not supported.",
        )
        .read_only()
        .with_main_field("path");
        spec.title = "Search files".to_owned();
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![
            json!({ "pattern": "fn\\s+main", "type": "rust" }),
            json!({ "pattern": "TODO", "path": "src", "output_mode": "content", "-C": 2, "head_limit": 50 }),
        ];
        spec
    }

    /// Declares a read of the directory or file to search.
    fn intent(&self, input: &GrepInput, context: &CallContext) -> Intent {
        grep_intent(&input.pattern, context.absolute_path(input.path.as_deref().unwrap_or(".")))
    }

    /// Searches with the options of `Grep`. A `head_limit` of 0 removes the limit; the size of the result still bounds
    /// it.
    async fn run(&self, input: GrepInput, cleared: Cleared) -> CallResult {
        let mode = input.output_mode.unwrap_or(GrepOutputMode::FilesWithMatches);
        let output_kind = output_kind(&input, mode);
        let limit = match input.head_limit {
            None => DEFAULT_LIMIT,
            Some(0) => usize::MAX,
            Some(limit) => limit as usize,
        };
        let offset = input.offset.unwrap_or(0) as usize;
        let path = cleared.context().absolute_path(input.path.as_deref().unwrap_or("."));
        let request = GrepRequest {
            case: if input.ignore_case { CaseSensitivity::Insensitive } else { CaseSensitivity::Sensitive },
            lines: if input.multiline { LineMode::Multi } else { LineMode::Single },
            selection: FileSelection {
                globs: input.glob.as_deref().map(split_globs).unwrap_or_default(),
                types: input.file_type.clone().into_iter().collect(),
                ..FileSelection::default()
            },
            output_kind: output_kind.clone(),
            limit: result_limit(offset, limit),
            pattern: input.pattern,
        };
        let result = run_grep(&cleared, &path, request).await?;
        let paths = PathFormatter::for_search(&cleared, &path, false);
        let renderer = GrepRenderer {
            result: &result,
            paths: &paths,
            output_kind: &output_kind,
            offset,
            limit,
            max_chars: MAX_RESULT_CHARS,
        };
        Ok(renderer.output(mode))
    }
}

/// As with ripgrep, `-B` and `-A` take precedence over `-C` and `context`.
fn output_kind(input: &GrepInput, mode: GrepOutputMode) -> ContentOutputKind {
    let around = input.context.or(input.around).unwrap_or(0);
    match (mode, input.only_matching) {
        (GrepOutputMode::FilesWithMatches, _) => ContentOutputKind::Files,
        (GrepOutputMode::Count, false) => ContentOutputKind::LineCounts,
        (GrepOutputMode::Count, true) => ContentOutputKind::MatchCounts,
        (GrepOutputMode::Content, only_matching) => ContentOutputKind::Lines(LineOutputOptions {
            before: input.before.unwrap_or(around) as usize,
            after: input.after.unwrap_or(around) as usize,
            numbers: input.numbers.unwrap_or(true),
            only_matching,
        }),
    }
}

/// The adapter of the plain toolset: matching lines, each with its path and number.
pub(crate) struct PlainGrepTool;

/// Input of [`PlainGrepTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PlainGrepInput {
    /// The regular expression to search for.
    pattern: String,
    /// The directory to search; default: the working directory.
    directory: Option<String>,
    /// Search only files that match this glob. Without a `/` it matches file names at any depth.
    file_pattern: Option<String>,
    /// Match upper and lower case exactly; default false.
    #[serde(default)]
    case_sensitive: bool,
    /// The maximum number of matching lines to return.
    #[schemars(range(min = 1))]
    max_results: Option<u32>,
    /// The number of matching lines to skip, to continue after a page.
    #[serde(default)]
    offset: u32,
    /// Return absolute paths.
    #[serde(default)]
    absolute_paths: bool,
}

impl Tool for PlainGrepTool {
    type Input = PlainGrepInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "grep",
            "Searches the content of files with a regular expression and returns each matching line as \
             `path:line: text`, in the order of paths. Files ignored by .gitignore, hidden files, binary files and \
             files inside `node_modules` are not searched: pass such a directory as `directory` to search it.",
        )
        .read_only()
        .with_main_field("directory");
        spec.title = "Search files".to_owned();
        spec.family = Some("Grep".to_owned());
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![
            json!({ "pattern": "TODO|HACK", "directory": "src", "filePattern": "*.ts", "maxResults": 50 }),
        ];
        spec
    }

    fn intent(&self, input: &PlainGrepInput, context: &CallContext) -> Intent {
        grep_intent(&input.pattern, context.absolute_path(input.directory.as_deref().unwrap_or(".")))
    }

    /// Searches line by line and always prints line numbers.
    async fn run(&self, input: PlainGrepInput, cleared: Cleared) -> CallResult {
        let offset = input.offset as usize;
        let limit = input.max_results.map_or(usize::MAX, |max| max as usize);
        let path = cleared.context().absolute_path(input.directory.as_deref().unwrap_or("."));
        let request = GrepRequest {
            pattern: input.pattern,
            case: if input.case_sensitive {
                CaseSensitivity::Sensitive
            } else {
                CaseSensitivity::Insensitive
            },
            lines: LineMode::Single,
            selection: FileSelection {
                dotted: DotfileHandling::Exclude,
                excluded_directories: PLAIN_EXCLUDED_DIRECTORIES,
                only: input.file_pattern,
                ..FileSelection::default()
            },
            output_kind: ContentOutputKind::Lines(LineOutputOptions {
                numbers: true,
                ..LineOutputOptions::default()
            }),
            limit: result_limit(offset, limit),
        };
        let result = run_grep(&cleared, &path, request).await?;
        let paths = PathFormatter::for_search(&cleared, &path, input.absolute_paths);
        Ok(plain_output(&result, &paths, offset, limit))
    }
}

/// A page of matches, one line each, and the same as structured data.
fn plain_output(result: &ContentSearchResult, paths: &PathFormatter, offset: usize, limit: usize) -> Output {
    let matches: Vec<(String, &ResultLine)> = result
        .files
        .iter()
        .flat_map(|(file, hits)| hits.lines.iter().map(|line| (paths.format_path(file), line)))
        .collect();
    let lines = matches
        .iter()
        .map(|(file, line)| format!("{file}:{}: {}", line.number.unwrap_or_default(), line.text));
    let page = ResultPage::from_lines(lines, offset, limit, MAX_RESULT_CHARS);

    let mut text = vec![page.text.clone()];
    if page.shown == 0 {
        text = vec!["no matches found".to_owned()];
    }
    let total = result.complete.then_some(matches.len() as u64);
    text.extend(page.continuation_notice("matches", offset, total));
    text.extend(search_notices(&result.skipped, paths));
    let shown: Vec<Value> = matches
        .iter()
        .skip(offset)
        .take(page.shown)
        .map(|(file, line)| json!({ "path": file, "line": line.number, "text": line.text }))
        .collect();
    let structured = json!({ "matches": shown, "truncated": page.has_more() || !result.complete });
    let count = match page.shown {
        0 => "no matches".to_owned(),
        shown => format_count(shown as u64, "match", "matches"),
    };
    Output::text(text.join("\n")).display(format!("found {count}")).structured(structured)
}

/// A search, independent of the toolset.
struct GrepRequest {
    /// The regular expression, not yet compiled.
    pattern: String,
    /// Whether upper and lower case must match.
    case: CaseSensitivity,
    /// Whether a match may span lines.
    lines: LineMode,
    /// Which files are searched.
    selection: FileSelection,
    /// What is collected of each file.
    output_kind: ContentOutputKind,
    /// When the search has collected enough.
    limit: ResultLimit,
}

/// Compiles the pattern and runs the search on a blocking thread.
async fn run_grep(
    cleared: &Cleared,
    path: &AbsPath,
    request: GrepRequest,
) -> Result<ContentSearchResult, Refusal> {
    let GrepRequest { pattern, case, lines, selection, output_kind, limit } = request;
    let selector =
        FileSelector::new(&selection).map_err(|problem| selection_refusal(&problem, Code::Grep))?;
    let refuse = |problem| search_refusal(cleared, path, problem, Code::Grep);
    let tree =
        cleared.files().search_tree(path, PathScope::Tree).map_err(|problem| refuse(problem.into()))?;
    // A large pattern takes noticeable time to compile, so that happens on the blocking thread as well.
    let result = run_search(cleared, move |stop| match SearchPattern::new(&pattern, case, lines) {
        Ok(pattern) => search_content(&tree, &selector, &pattern, &output_kind, limit, stop).map(Ok),
        Err(problem) => Ok(Err(problem)),
    });
    result.await.map_err(refuse)?.map_err(pattern_refusal)
}

/// The effect: reading the tree, or the file, that is searched.
fn grep_intent(pattern: &str, path: AbsPath) -> Intent {
    let summary = format!("search for `{pattern}` in {path}");
    Intent::new(summary, [Effect::Read { path, scope: PathScope::Tree }])
}

/// The refusal for an invalid regular expression, with the position of the error in the pattern.
fn pattern_refusal(problem: PatternProblem) -> Refusal {
    let PatternProblem { reason, snippet, hint } = problem;
    let snippet = snippet.map_or_else(String::new, |snippet| format!("\n{snippet}"));
    Refusal::new(Code::Grep, format!("{reason}{snippet}")).hint(hint)
}

/// Splits globs at spaces and commas that are neither inside braces nor escaped.
fn split_globs(text: &str) -> Vec<String> {
    let mut globs = vec![String::new()];
    let (mut brace_depth, mut escaped) = (0_usize, false);
    for character in text.chars() {
        match character {
            '{' if !escaped => brace_depth += 1,
            '}' if !escaped => brace_depth = brace_depth.saturating_sub(1),
            _ => {}
        }
        let separates = brace_depth == 0 && !escaped && (character == ',' || character.is_whitespace());
        escaped = character == '\\' && !escaped;
        match globs.last_mut() {
            Some(glob) if !separates => glob.push(character),
            _ => globs.push(String::new()),
        }
    }
    globs.retain(|glob| !glob.is_empty());
    globs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_split_outside_of_braces() {
        for (text, expected) in [
            ("*.js", vec!["*.js"]),
            ("*.js *.ts", vec!["*.js", "*.ts"]),
            ("*.{js,ts}, !x.js", vec!["*.{js,ts}", "!x.js"]),
            (r"a\ b c", vec![r"a\ b", "c"]),
            ("  ", vec![]),
        ] {
            assert_eq!(split_globs(text), expected, "{text}");
        }
    }
}
