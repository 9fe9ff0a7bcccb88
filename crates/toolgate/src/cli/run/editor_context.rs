//! `--ide`: what the editor shows now goes to the model with each prompt: the open files, the selection, and the problems
//! in those files.
//!
//! The editor is asked by calls of its tools, which rules can deny and which are on record. Text of a file that may not
//! be read without a question is left out, whatever the editor shows.

use serde_json::{Value, json};
use toolgate::agent::conversation::text_block;
use toolgate::{AbsPath, Toolgate, Verdict};

/// The tools of editors that only tell what they show. Who asks for the editor asks for these.
pub(super) const CONTEXT_TOOLS: [&str; 3] = [OPEN_FILES_TOOL, SELECTION_TOOL, PROBLEMS_TOOL];
const OPEN_FILES_TOOL: &str = "mcp__ide__getOpenEditors";
const SELECTION_TOOL: &str = "mcp__ide__getCurrentSelection";
const PROBLEMS_TOOL: &str = "mcp__ide__getDiagnostics";
/// How many open files are named.
const MAX_OPEN_FILES: usize = 30;
/// How much of a selection goes to the model.
const MAX_SELECTION_CHARS: usize = 20_000;
/// How many problems go to the model.
const MAX_PROBLEMS: usize = 20;

/// What the editor shows, as content for the model; nothing if it shows nothing, or does not say so.
pub(super) async fn read_editor_context(toolgate: &Toolgate) -> Vec<Value> {
    let mut parts = Vec::new();
    let open = match ask_editor(toolgate, OPEN_FILES_TOOL).await {
        Some(answer) => open_files(&answer),
        None => Vec::new(),
    };
    if !open.is_empty() {
        let names: Vec<&str> = open.iter().map(|(name, _)| name.as_str()).take(MAX_OPEN_FILES).collect();
        parts.push(format!("open files: {}", names.join(", ")));
    }
    if let Some(answer) = ask_editor(toolgate, SELECTION_TOOL).await {
        parts.extend(describe_selection(toolgate, &answer));
    }
    if let Some(answer) = ask_editor(toolgate, PROBLEMS_TOOL).await {
        parts.extend(describe_problems(toolgate, &answer));
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let text = parts.join("\n");
    vec![text_block(format!("<editor>\nwhat the user's editor shows now\n{text}\n</editor>"))]
}

/// Asks the editor by a call; none where it has no such tool, the call is refused, or the answer is no JSON.
async fn ask_editor(toolgate: &Toolgate, tool: &str) -> Option<Value> {
    if !toolgate.tools().iter().any(|known| known.name.as_str() == tool) {
        return None;
    }
    let call = toolgate_files::generate_id("editor_");
    let output = toolgate.call(call, tool, "{}").await.result.ok()?;
    serde_json::from_str(&output.model_text()).ok()
}

/// The open files, the active one first.
fn open_files(answer: &Value) -> Vec<(String, bool)> {
    let tabs = answer.get("tabs").or_else(|| answer.get("editors")).unwrap_or(answer);
    let tabs = tabs.as_array().into_iter().flatten();
    let file = |tab: &Value| {
        let place = ["uri", "filePath", "path"].iter().find_map(|key| tab.get(*key)?.as_str())?;
        Some((file_path(place)?.to_string(), tab.get("isActive") == Some(&Value::Bool(true))))
    };
    let mut open: Vec<(String, bool)> = tabs.filter_map(file).collect();
    open.sort_by_key(|(_, is_active)| !is_active);
    open
}

/// The selection, if there is one in a file that may be read.
fn describe_selection(toolgate: &Toolgate, answer: &Value) -> Option<String> {
    let text = answer.get("text").and_then(Value::as_str).filter(|text| !text.trim().is_empty())?;
    let place = ["filePath", "fileUrl"].iter().find_map(|key| answer.get(*key)?.as_str())?;
    let path = file_path(place)?;
    if !may_be_read(toolgate, &path) {
        return None;
    }
    let line = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).map(|line| line + 1);
    let lines = match (line("/selection/start/line"), line("/selection/end/line")) {
        (Some(first), Some(last)) => format!(", lines {first} to {last}"),
        _ => String::new(),
    };
    let shown: String = text.chars().take(MAX_SELECTION_CHARS).collect();
    Some(format!("selection in {path}{lines}:\n{shown}"))
}

/// The problems of files that may be read: their messages often quote the text.
fn describe_problems(toolgate: &Toolgate, answer: &Value) -> Option<String> {
    let mut lines = Vec::new();
    for file in answer.as_array()? {
        let place = ["uri", "filePath"].iter().find_map(|key| file.get(*key)?.as_str());
        let Some(path) = place.and_then(file_path).filter(|path| may_be_read(toolgate, path)) else {
            continue;
        };
        for problem in file.get("diagnostics").and_then(Value::as_array).into_iter().flatten() {
            let message = problem.get("message").and_then(Value::as_str).unwrap_or_default();
            let line = problem.pointer("/range/start/line").and_then(Value::as_u64).unwrap_or_default() + 1;
            lines.push(format!("{path}:{line}: {message}"));
        }
    }
    let left_out = lines.len().saturating_sub(MAX_PROBLEMS);
    lines.truncate(MAX_PROBLEMS);
    if left_out > 0 {
        lines.push(format!("and {left_out} more"));
    }
    (!lines.is_empty()).then(|| format!("problems:\n{}", lines.join("\n")))
}

/// The file of a path or a URL.
fn file_path(place: &str) -> Option<AbsPath> {
    match place.contains("://") {
        true => AbsPath::new(url::Url::parse(place).ok()?.to_file_path().ok()?).ok(),
        false => AbsPath::new(place).ok(),
    }
}

/// Whether the model could read the file itself without a question.
fn may_be_read(toolgate: &Toolgate, path: &AbsPath) -> bool {
    let is_plain = toolgate.tools().iter().all(|tool| tool.name.as_str() != "Read");
    let (tool, key) = if is_plain { ("read_file", "path") } else { ("Read", "file_path") };
    let judged = toolgate.check(tool, &json!({ key: path }).to_string());
    judged.is_ok_and(|judged| matches!(judged.verdict, Verdict::Allow(_)))
}
