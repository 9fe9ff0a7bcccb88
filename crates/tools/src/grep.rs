//! `Grep` and `grep`: text in files.

mod render;

use crate::search_output::{
    SearchPathFormatter, SearchResultPage, bytes_needed, format_count, run_search, search_notices,
    search_refusal, selection_refusal,
};
use render::GrepRenderer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal};
use toolgate_search::{
    CaseSensitivity, ContentOutputKind, ContentSearchResult, DotfileHandling, FileSelection, FileSelector,
    LineMode, LineOutputOptions, PatternProblem, ResultLimit, ResultLine, SearchPattern, search_content,
};

const MAX_RESULT_CHARS: usize = 20_000;
const DEFAULT_LIMIT: usize = 250;
/// What the plain face does not look into unless it is told to.
const REPOSITORY_AND_PACKAGES: &[&str] = &[".git", "node_modules"];

/// The claude face: ripgrep's fields.
pub(crate) struct GrepTool;

/// Input of [`Grep`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepInput {
    /// The regular expression, in ripgrep's syntax: literal braces and parentheses need a backslash
    /// (`interface\{\}`).
    pattern: String,
    /// Where to search; the working directory where absent.
    path: Option<String>,
    /// Search only files that match this glob (`*.js`, `src/**/*.{ts,tsx}`), or with `!` before it the others. Several
    /// may be given, with spaces between.
    glob: Option<String>,
    /// What to give: paths (the default), matching lines, or how many lines match in each file.
    output_mode: Option<GrepOutputMode>,
    /// Lines to show before each match, with `content`.
    #[serde(rename = "-B")]
    #[schemars(range(min = 0, max = 10_000))]
    before: Option<u32>,
    /// Lines to show after each match.
    #[serde(rename = "-A")]
    #[schemars(range(min = 0, max = 10_000))]
    after: Option<u32>,
    /// Lines to show before and after each match.
    #[serde(rename = "-C")]
    #[schemars(range(min = 0, max = 10_000))]
    around: Option<u32>,
    /// The same as `-C`.
    #[schemars(range(min = 0, max = 10_000))]
    context: Option<u32>,
    /// Show line numbers; true where absent.
    #[serde(rename = "-n")]
    numbers: Option<bool>,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// Show only the part of a line that matches; with `count`, count each match.
    #[serde(default, rename = "-o")]
    only_matching: bool,
    /// Search only files of this type: `js`, `py`, `rust` and so on.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// How many results to give; 250 where absent, 0 for all.
    #[schemars(range(min = 0))]
    head_limit: Option<u32>,
    /// How many results to pass over.
    #[schemars(range(min = 0))]
    offset: Option<u32>,
    /// Let matches span lines; `.` matches line ends as well.
    #[serde(default)]
    multiline: bool,
}

/// What a search gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrepOutputMode {
    /// Matching lines.
    Content,
    /// Paths of files with a match.
    FilesWithMatches,
    /// How many lines match in each file.
    Count,
}

impl Tool for GrepTool {
    type Input = GrepInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Grep",
            "Searches in the content of files with a regular expression, and gives paths, lines or counts in the order \
             of paths; `offset` goes on where a page ended. What .gitignore leaves out, hidden files and binary files \
             are not searched. Look-around and backreferences are not supported.",
        )
        .read_only();
        spec.title = "Search files".to_owned();
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![
            json!({ "pattern": "fn\\s+main", "type": "rust" }),
            json!({ "pattern": "TODO", "path": "src", "output_mode": "content", "-C": 2, "head_limit": 50 }),
        ];
        spec
    }

    fn intent(&self, input: &GrepInput, scene: &CallContext) -> Intent {
        grep_intent(&input.pattern, scene.absolute_path(input.path.as_deref().unwrap_or(".")))
    }

    async fn run(&self, input: GrepInput, cleared: Cleared) -> CallResult {
        let mode = input.output_mode.unwrap_or(GrepOutputMode::FilesWithMatches);
        let around = input.context.or(input.around).unwrap_or(0);
        let show = match (mode, input.only_matching) {
            (GrepOutputMode::FilesWithMatches, _) => ContentOutputKind::Files,
            (GrepOutputMode::Count, false) => ContentOutputKind::LineCounts,
            (GrepOutputMode::Count, true) => ContentOutputKind::MatchCounts,
            (GrepOutputMode::Content, only_matching) => ContentOutputKind::Lines(LineOutputOptions {
                before: input.before.unwrap_or(around) as usize,
                after: input.after.unwrap_or(around) as usize,
                numbers: input.numbers.unwrap_or(true),
                only_matching,
            }),
        };
        let limit = match input.head_limit {
            None => DEFAULT_LIMIT,
            Some(0) => usize::MAX,
            Some(limit) => limit as usize,
        };
        let offset = input.offset.unwrap_or(0) as usize;
        let path = cleared.context().absolute_path(input.path.as_deref().unwrap_or("."));
        let asked = GrepRequest {
            case: if input.ignore_case { CaseSensitivity::Insensitive } else { CaseSensitivity::Sensitive },
            lines: if input.multiline { LineMode::Multi } else { LineMode::Single },
            selection: FileSelection {
                globs: input.glob.as_deref().map(split_globs).unwrap_or_default(),
                types: input.file_type.clone().into_iter().collect(),
                ..FileSelection::default()
            },
            show: show.clone(),
            need: ResultLimit {
                units: offset.saturating_add(limit).saturating_add(1),
                bytes: bytes_needed(offset),
            },
            pattern: input.pattern,
        };
        let answer = run_grep(&cleared, &path, asked).await?;
        let paths = SearchPathFormatter::for_search(&cleared, &path, false);
        let rendered = GrepRenderer {
            answer: &answer,
            paths: &paths,
            show: &show,
            offset,
            limit,
            max_chars: MAX_RESULT_CHARS,
        };
        Ok(rendered.output(mode))
    }
}

/// The plain face: matching lines.
pub(crate) struct PlainGrepTool;

/// Input of [`PlainGrepTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PlainGrepInput {
    /// The regular expression to search for.
    pattern: String,
    /// The directory to search; the working directory where absent.
    directory: Option<String>,
    /// Search only files that match this glob. Without a `/`, file names at any depth are matched.
    file_pattern: Option<String>,
    /// Mind the case of letters; false where absent.
    #[serde(default)]
    case_sensitive: bool,
    /// How many matching lines to give at most.
    #[schemars(range(min = 1))]
    max_results: Option<u32>,
    /// How many matching lines to pass over, for going on after a page.
    #[serde(default)]
    offset: u32,
    /// Give absolute paths.
    #[serde(default)]
    absolute_paths: bool,
}

impl Tool for PlainGrepTool {
    type Input = PlainGrepInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "grep",
            "Searches in the content of files with a regular expression, and gives each matching line as \
             `path:line: text`, in the order of paths. What .gitignore leaves out, hidden files, binary files and \
             anything inside `node_modules` are not searched: name such a directory as `directory` to look into it.",
        )
        .read_only();
        spec.title = "Search files".to_owned();
        spec.family = Some("Grep".to_owned());
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![
            json!({ "pattern": "TODO|TODO", "directory": "src", "filePattern": "*.ts", "maxResults": 50 }),
        ];
        spec
    }

    fn intent(&self, input: &PlainGrepInput, scene: &CallContext) -> Intent {
        grep_intent(&input.pattern, scene.absolute_path(input.directory.as_deref().unwrap_or(".")))
    }

    async fn run(&self, input: PlainGrepInput, cleared: Cleared) -> CallResult {
        let offset = input.offset as usize;
        let limit = input.max_results.map_or(usize::MAX, |most| most as usize);
        let path = cleared.context().absolute_path(input.directory.as_deref().unwrap_or("."));
        let asked = GrepRequest {
            pattern: input.pattern,
            case: if input.case_sensitive {
                CaseSensitivity::Sensitive
            } else {
                CaseSensitivity::Insensitive
            },
            lines: LineMode::Single,
            selection: FileSelection {
                dotted: DotfileHandling::Exclude,
                excluded_directories: REPOSITORY_AND_PACKAGES,
                only: input.file_pattern,
                ..FileSelection::default()
            },
            show: ContentOutputKind::Lines(LineOutputOptions {
                numbers: true,
                ..LineOutputOptions::default()
            }),
            need: ResultLimit {
                units: offset.saturating_add(limit).saturating_add(1),
                bytes: bytes_needed(offset),
            },
        };
        let answer = run_grep(&cleared, &path, asked).await?;
        let paths = SearchPathFormatter::for_search(&cleared, &path, input.absolute_paths);
        let matches: Vec<(String, &ResultLine)> = answer
            .files
            .iter()
            .flat_map(|(file, hits)| hits.lines.iter().map(|line| (paths.format_path(file), line)))
            .collect();
        let lines = matches.iter().map(|(file, line)| format!("{file}:{}: {}", line_number(line), line.text));
        let page = SearchResultPage::from_lines(lines, offset, limit, MAX_RESULT_CHARS);

        let mut text = vec![page.text.clone()];
        if page.shown == 0 {
            text = vec!["no matches found".to_owned()];
        }
        let total = answer.complete.then_some(matches.len() as u64);
        text.extend(page.continuation_notice("matches", offset, total, "offset"));
        text.extend(search_notices(&answer.skipped, &paths));
        let shown: Vec<Value> = matches
            .iter()
            .skip(offset)
            .take(page.shown)
            .map(|(file, line)| json!({ "path": file, "line": line.number, "text": line.text }))
            .collect();
        let structured = json!({ "matches": shown, "truncated": page.has_more() || !answer.complete });
        let display =
            format_count(page.shown as u64, "match", "matches").unwrap_or_else(|| "no matches".to_owned());
        Ok(Output::text(text.join("\n")).display(format!("found {display}")).structured(structured))
    }
}

/// A search, whichever face asked for it.
struct GrepRequest {
    pattern: String,
    case: CaseSensitivity,
    lines: LineMode,
    selection: FileSelection,
    show: ContentOutputKind,
    need: ResultLimit,
}

async fn run_grep(
    cleared: &Cleared,
    path: &AbsPath,
    asked: GrepRequest,
) -> Result<ContentSearchResult, Refusal> {
    let GrepRequest { pattern, case, lines, selection, show, need } = asked;
    let selector =
        FileSelector::new(&selection).map_err(|problem| selection_refusal(&problem, Code::Grep))?;
    let failed = |problem| search_refusal(cleared, path, problem, Code::Grep);
    let tree =
        cleared.files().search_tree(path, PathScope::Tree).map_err(|problem| failed(problem.into()))?;
    // Making a large pattern ready takes its time as well.
    let answer = run_search(cleared, move |stop| match SearchPattern::new(&pattern, case, lines) {
        Ok(pattern) => search_content(&tree, &selector, &pattern, &show, need, stop).map(Ok),
        Err(problem) => Ok(Err(problem)),
    });
    answer.await.map_err(failed)?.map_err(pattern_refusal)
}

fn grep_intent(pattern: &str, path: AbsPath) -> Intent {
    let summary = format!("search for `{pattern}` in {path}");
    Intent::new(summary, [Effect::Read { path, scope: PathScope::Tree }])
}

fn pattern_refusal(problem: PatternProblem) -> Refusal {
    let PatternProblem { reason, snippet: picture, hint } = problem;
    let picture = picture.map_or_else(String::new, |picture| format!("\n{picture}"));
    Refusal::new(Code::Grep, format!("{reason}{picture}")).hint(hint)
}

/// Globs with spaces or commas between them, where those are not inside of braces.
fn split_globs(text: &str) -> Vec<String> {
    let mut globs = vec![String::new()];
    let (mut braces, mut escaped) = (0_usize, false);
    for letter in text.chars() {
        match letter {
            '{' if !escaped => braces += 1,
            '}' if !escaped => braces = braces.saturating_sub(1),
            _ => {}
        }
        let between = braces == 0 && !escaped && (letter == ',' || letter.is_whitespace());
        escaped = letter == '\\' && !escaped;
        match globs.last_mut() {
            Some(glob) if !between => glob.push(letter),
            _ => globs.push(String::new()),
        }
    }
    globs.retain(|glob| !glob.is_empty());
    globs
}

fn line_number(line: &ResultLine) -> u64 {
    line.number.unwrap_or_default()
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
