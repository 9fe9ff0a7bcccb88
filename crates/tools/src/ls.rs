//! `ls`: list a directory. Both toolsets use the same tool.
//!
//! Hidden, ignored and withheld entries are not shown by default, but counted: a model must be able to tell an empty
//! directory from one whose entries it does not see.
//! Entries are in the order of names, each directory before its content, so that pages follow each other.

use crate::search::{escape_name, run_search, search_refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{
    AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, PathScope, Refusal, format_count,
    format_nonzero_count,
};
use toolgate_search::{ListOptions, ListedEntry, ListingPage, list_tree};

/// Entries without `limit`.
const DEFAULT_LIMIT: u32 = 1_000;
/// Levels below the directory in a recursive listing without `maxDepth`.
const DEFAULT_DEPTH: u32 = 3;
/// Characters of a result; the rest is on the next page.
const MAX_RESULT_CHARS: usize = 30_000;

/// Lists the entries of a directory, and on request of the directories below it.
pub(crate) struct LsTool;

/// Input of [`LsTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LsInput {
    /// The directory; default: the working directory.
    path: Option<String>,
    /// List subdirectories as well.
    #[serde(default)]
    recursive: bool,
    /// Show entries whose name starts with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Show entries ignored by .gitignore.
    #[serde(default)]
    include_ignored: bool,
    /// The number of levels of subdirectories to list, 0 for none; default 3 with `recursive`, else 0.
    #[schemars(range(min = 0, max = 63))]
    max_depth: Option<u32>,
    /// The maximum number of entries; default 1000.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
    /// The number of entries to skip.
    #[serde(default)]
    offset: u32,
}

impl Tool for LsTool {
    type Input = LsInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ls",
            "Lists a directory, one entry per line: `d` directory, `-` file with its size, `l` symlink; with \
             `recursive` or `maxDepth` also its subdirectories, indented by level. Hidden and ignored entries are counted, and \
             shown on request.",
        )
        .read_only();
        spec.title = "List directory".to_owned();
        spec.aliases = vec!["LS".to_owned()];
        spec.family = Some("Read".to_owned());
        spec.max_result_chars = MAX_RESULT_CHARS + 1_000;
        spec.input_examples = vec![json!({ "path": "src", "recursive": true, "maxDepth": 2 })];
        spec
    }

    /// Declares a read of one level or of the whole tree, depending on the depth, so that rules can tell them apart.
    fn intent(&self, input: &LsInput, context: &CallContext) -> Intent {
        let path = directory(input, context);
        Intent::new(format!("list {path}"), [Effect::Read { path, scope: scope(input) }])
    }

    /// Lists the directory on the blocking pool. An offset after the last entry is an error, or a model would take the
    /// empty page for an empty directory.
    async fn run(&self, input: LsInput, cleared: Cleared) -> CallResult {
        let path = directory(&input, cleared.context());
        let options = ListOptions {
            depth: levels_below(&input).saturating_add(1),
            dotted: input.include_hidden,
            ignored: input.include_ignored,
            offset: u64::from(input.offset),
            limit: u64::from(input.limit.unwrap_or(DEFAULT_LIMIT)),
        };
        let refuse = |problem| search_refusal(&cleared, &path, problem, Code::List);
        let tree =
            cleared.files().search_tree(&path, scope(&input)).map_err(|problem| refuse(problem.into()))?;
        let listing =
            run_search(&cleared, move |stop| list_tree(&tree, options, stop)).await.map_err(refuse)?;
        if listing.entries.is_empty() && options.offset > 0 && listing.total > 0 {
            return Err(Refusal::new(
                Code::PastEnd,
                format!(
                    "`{path}` has {}, so there are none after {}",
                    format_count(listing.total as u64, "entry", "entries"),
                    options.offset
                ),
            ));
        }
        Ok(render_listing(&path, &listing, options.offset))
    }
}

/// The directory to list.
fn directory(input: &LsInput, context: &CallContext) -> AbsPath {
    context.absolute_path(input.path.as_deref().unwrap_or("."))
}

/// How many levels of subdirectories are listed. `maxDepth` counts with and without `recursive`.
fn levels_below(input: &LsInput) -> u32 {
    input.max_depth.unwrap_or(if input.recursive { DEFAULT_DEPTH } else { 0 })
}

/// A recursive listing reads the whole tree, which policy judges differently from one directory.
fn scope(input: &LsInput) -> PathScope {
    if levels_below(input) > 0 { PathScope::Tree } else { PathScope::Entry }
}

/// The listing as text and as structured data.
fn render_listing(path: &AbsPath, listing: &ListingPage, offset: u64) -> Output {
    let (mut text, shown) = render_entries(&listing.entries);
    let counts = entry_counts(listing);
    let omitted = omitted_counts(listing);
    if listing.total == 0 && omitted.is_empty() {
        text = format!("`{path}` is empty");
    } else if omitted.is_empty() {
        text.push_str(&format!("[{counts}]"));
    } else {
        text.push_str(&format!("[{counts}; {}]", omitted.join(", ")));
    }
    let next = offset + shown;
    let has_more = next < listing.total || listing.uncounted;
    if has_more {
        text.push_str(&format!(
            "\n[entries {} to {next}; more follow: continue with `offset` {next}]",
            offset + 1
        ));
    }
    let output = Output::text(text.clone()).display(format!("{path}: {counts}\n{text}"));
    let shown = usize::try_from(shown).unwrap_or(usize::MAX);
    output.structured(json!({
        "path": path,
        "entries": listing.entries.iter().take(shown).map(structured_entry).collect::<Vec<_>>(),
        "total": listing.total,
        "directories": listing.directories,
        "hidden": listing.dotted,
        "ignored": listing.ignored,
        "withheld": listing.withheld,
        "truncated": has_more,
    }))
}

/// The lines of the entries that fit into a result, at least one, and their number.
fn render_entries(entries: &[ListedEntry]) -> (String, u64) {
    let mut text = String::new();
    let mut shown = 0_u64;
    let mut chars = 0;
    for entry in entries {
        let before = text.len();
        write_entry(entry, &mut text);
        chars += text.get(before..).map_or(0, |line| line.chars().count());
        if chars > MAX_RESULT_CHARS && shown > 0 {
            text.truncate(before);
            break;
        }
        shown += 1;
    }
    (text, shown)
}

/// The number of entries by type, of the whole listing and not only of this page.
fn entry_counts(listing: &ListingPage) -> String {
    let others = listing.total - listing.directories - listing.files;
    let counts: Vec<_> = [
        format_nonzero_count(listing.directories, "directory", "directories"),
        format_nonzero_count(listing.files, "file", "files"),
        format_nonzero_count(others, "other", "others"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let more = if listing.uncounted { "more than " } else { "" };
    if counts.is_empty() { "no entries".to_owned() } else { format!("{more}{}", counts.join(", ")) }
}

/// The number of entries that the listing does not show, by reason.
fn omitted_counts(listing: &ListingPage) -> Vec<String> {
    [
        format_nonzero_count(listing.dotted, "hidden", "hidden"),
        format_nonzero_count(listing.ignored, "ignored by .gitignore", "ignored by .gitignore"),
        format_nonzero_count(listing.withheld, "withheld by policy", "withheld by policy"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Appends the line of an entry.
fn write_entry(entry: &ListedEntry, text: &mut String) {
    for _ in 0..entry.level {
        text.push_str("  ");
    }
    let name = escape_name(&entry.name);
    let (prefix, suffix) = match (entry.kind, entry.is_symlink) {
        (_, true) => ("l ", ""),
        (EntryKind::Directory, false) => ("d ", "/"),
        (EntryKind::File, false) => ("- ", ""),
        (EntryKind::Special | EntryKind::Missing, false) => ("? ", ""),
    };
    text.push_str(prefix);
    text.push_str(&name);
    text.push_str(suffix);
    if prefix == "- " {
        let _ = write!(text, " ({} bytes)", entry.bytes);
    }
    if let Some(problem) = &entry.problem {
        let _ = write!(text, " [not listed: {problem}]");
    }
    text.push('\n');
}

/// An entry of the structured output; only files have a size.
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
