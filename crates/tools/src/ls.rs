//! `ls`: what is in a directory.

use crate::search_output::{escape_name, format_count, run_search, search_refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, PathScope, Refusal};
use toolgate_search::{ListOptions, ListedEntry, ListingPage, list_tree};

const DEFAULT_LIMIT: u32 = 1_000;
const DEFAULT_DEPTH: u32 = 3;
const MAX_RESULT_CHARS: usize = 30_000;

/// Lists the entries of a directory.
pub(crate) struct LsTool;

/// Input of [`LsTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LsInput {
    /// The directory; the working directory where absent.
    path: Option<String>,
    /// Go into directories as well.
    #[serde(default)]
    recursive: bool,
    /// Show entries whose name starts with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Show entries that .gitignore leaves out.
    #[serde(default)]
    include_ignored: bool,
    /// How many levels to go down; 3 where absent.
    #[schemars(range(min = 1, max = 64))]
    max_depth: Option<u32>,
    /// How many entries to give; 1000 where absent.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// How many entries to pass over.
    #[serde(default)]
    offset: u32,
}

impl Tool for LsTool {
    type Input = LsInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ls",
            "Lists a directory, one entry a line: directories `d`, files `-` with their size, links `l`; with \
             `recursive` also what is below, indented by level. Hidden and ignored entries are counted, and shown \
             on request.",
        )
        .read_only();
        spec.title = "List directory".to_owned();
        spec.aliases = vec!["LS".to_owned()];
        spec.family = Some("Read".to_owned());
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![json!({ "path": "src", "recursive": true, "maxDepth": 2 })];
        spec
    }

    fn intent(&self, input: &LsInput, scene: &CallContext) -> Intent {
        let path = directory(input, scene);
        Intent::new(format!("list {path}"), [Effect::Read { path, scope: scope(input) }])
    }

    async fn run(&self, input: LsInput, cleared: Cleared) -> CallResult {
        let path = directory(&input, cleared.context());
        let options = ListOptions {
            depth: if input.recursive { input.max_depth.unwrap_or(DEFAULT_DEPTH) } else { 1 },
            dotted: input.include_hidden,
            ignored: input.include_ignored,
            offset: u64::from(input.offset),
            limit: u64::from(input.limit.unwrap_or(DEFAULT_LIMIT)),
        };
        let failed = |problem| search_refusal(&cleared, &path, problem, Code::List);
        let tree =
            cleared.files().search_tree(&path, scope(&input)).map_err(|problem| failed(problem.into()))?;
        let answer =
            run_search(&cleared, move |stop| list_tree(&tree, options, stop)).await.map_err(failed)?;
        if answer.entries.is_empty() && options.offset > 0 && answer.total > 0 {
            return Err(Refusal::new(
                Code::PastEnd,
                format!("`{path}` has {} entries, so there are none after {}", answer.total, options.offset),
            ));
        }
        Ok(render_listing(&path, &answer, options.offset))
    }
}

fn directory(input: &LsInput, scene: &CallContext) -> AbsPath {
    scene.absolute_path(input.path.as_deref().unwrap_or("."))
}

fn scope(input: &LsInput) -> PathScope {
    if input.recursive { PathScope::Tree } else { PathScope::Entry }
}

fn render_listing(path: &AbsPath, answer: &ListingPage, offset: u64) -> Output {
    let mut text = String::new();
    let mut shown = 0_u64;
    let mut chars = 0;
    for entry in &answer.entries {
        let before = text.len();
        write_entry(entry, &mut text);
        chars += text.get(before..).map_or(0, |line| line.chars().count());
        if chars > MAX_RESULT_CHARS && shown > 0 {
            text.truncate(before);
            break;
        }
        shown += 1;
    }
    let others = answer.total - answer.directories - answer.files;
    let counts: Vec<_> = [
        format_count(answer.directories, "directory", "directories"),
        format_count(answer.files, "file", "files"),
        format_count(others, "other", "others"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let more = if answer.uncounted { "more than " } else { "" };
    let counts =
        if counts.is_empty() { "no entries".to_owned() } else { format!("{more}{}", counts.join(", ")) };
    let left_out: Vec<_> = [
        format_count(answer.dotted, "hidden", "hidden"),
        format_count(answer.ignored, "left out by .gitignore", "left out by .gitignore"),
        format_count(answer.withheld, "not shown by policy", "not shown by policy"),
    ]
    .into_iter()
    .flatten()
    .collect();

    if answer.total == 0 && left_out.is_empty() {
        text = format!("`{path}` is empty");
    } else if left_out.is_empty() {
        text.push_str(&format!("[{counts}]"));
    } else {
        text.push_str(&format!("[{counts}; {}]", left_out.join(", ")));
    }
    let next = offset + shown;
    if next < answer.total || answer.uncounted {
        text.push_str(&format!(
            "\n[entries {} to {next}; there are more: go on with `offset` {next}]",
            offset + 1
        ));
    }
    let output = Output::text(text.clone()).display(format!("{path}: {counts}\n{text}"));
    output.structured(json!({
        "path": path,
        "entries": answer.entries.iter().take(usize::try_from(shown).unwrap_or(usize::MAX)).map(structured_entry).collect::<Vec<_>>(),
        "total": answer.total,
        "directories": answer.directories,
        "hidden": answer.dotted,
        "ignored": answer.ignored,
        "withheld": answer.withheld,
        "truncated": next < answer.total || answer.uncounted,
    }))
}

/// Adds the line of an entry.
fn write_entry(entry: &ListedEntry, text: &mut String) {
    for _ in 0..entry.level {
        text.push_str("  ");
    }
    let name = escape_name(&entry.name);
    let (mark, end) = match (entry.kind, entry.is_symlink) {
        (_, true) => ("l ", ""),
        (EntryKind::Directory, false) => ("d ", "/"),
        (EntryKind::File, false) => ("- ", ""),
        (EntryKind::Special | EntryKind::Missing, false) => ("? ", ""),
    };
    text.push_str(mark);
    text.push_str(&name);
    text.push_str(end);
    if mark == "- " {
        let _ = write!(text, " ({} bytes)", entry.bytes);
    }
    if let Some(problem) = &entry.problem {
        let _ = write!(text, " [not listed: {problem}]");
    }
    text.push('\n');
}

fn structured_entry(entry: &ListedEntry) -> serde_json::Value {
    let kind = match (entry.kind, entry.is_symlink) {
        (_, true) => "link",
        (EntryKind::Directory, false) => "directory",
        (EntryKind::File, false) => "file",
        (EntryKind::Special | EntryKind::Missing, false) => "special",
    };
    let mut value = json!({ "name": escape_name(&entry.name), "type": kind, "level": entry.level });
    if let (serde_json::Value::Object(fields), "file") = (&mut value, kind) {
        fields.insert("bytes".to_owned(), json!(entry.bytes));
    }
    value
}
