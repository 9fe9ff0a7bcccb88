//! How a call looks in an editor: its title, its kind, the files that it touches and the change that it makes.

use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolCallLocation, ToolKind};
use serde_json::{Map, Value};
use toolgate_proto::{AbsPath, main_argument, shorten_text};

/// How many characters of an input a title shows.
const MAX_TITLE_CHARS: usize = 120;
/// Fields that name the file of a call.
const FILE_FIELDS: [&str; 3] = ["file_path", "notebook_path", "path"];

/// The title of a call, on one line.
pub(super) fn call_title(tool: &str, input: &Map<String, Value>) -> String {
    let Some(argument) = main_argument(input) else { return tool.to_owned() };
    let line = argument.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{tool} {}", shorten_text(&line, MAX_TITLE_CHARS))
}

/// The kind of a call, by its tool.
pub(super) fn call_kind(tool: &str) -> ToolKind {
    match tool {
        "Read" | "ls" | "LS" | "read_file" | "read_many_files" | "EditorRead" => ToolKind::Read,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "write_file" | "edit_file" => ToolKind::Edit,
        "Bash" | "shell" | "EditorTerminal" => ToolKind::Execute,
        "Grep" | "Glob" | "grep" | "glob" | "ToolSearch" | "LSP" => ToolKind::Search,
        "WebFetch" | "WebSearch" | "web_fetch" | "web_search" => ToolKind::Fetch,
        "EnterPlanMode" | "ExitPlanMode" => ToolKind::SwitchMode,
        "Agent" | "Task" | "TodoWrite" | "write_todos" | "TaskCreate" | "TaskUpdate" | "TaskList" => {
            ToolKind::Think
        }
        _ => ToolKind::Other,
    }
}

/// The file that a call names.
pub(super) fn call_file(input: &Map<String, Value>, cwd: &AbsPath) -> Option<AbsPath> {
    let given = FILE_FIELDS.iter().find_map(|field| input.get(*field).and_then(Value::as_str))?;
    Some(AbsPath::new(given).unwrap_or_else(|_| cwd.join(given)))
}

/// The files that a call touches, for an editor that follows along.
pub(super) fn call_locations(input: &Map<String, Value>, cwd: &AbsPath) -> Vec<ToolCallLocation> {
    let line = input.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
    let location = |path: AbsPath| ToolCallLocation::new(path.as_path()).line(line.filter(|line| *line > 0));
    call_file(input, cwd).map(location).into_iter().collect()
}

/// The changes that a call made, from its structured result.
pub(super) fn result_diffs(
    input: &Map<String, Value>,
    structured: &Value,
    cwd: &AbsPath,
) -> Vec<ToolCallContent> {
    let Some(hunks) = structured.get("structuredPatch").and_then(Value::as_array) else { return Vec::new() };
    let Some(path) = call_file(input, cwd) else { return Vec::new() };
    if structured.get("type").and_then(Value::as_str) == Some("create") {
        let text = structured.get("content").and_then(Value::as_str).unwrap_or_default();
        return vec![Diff::new(path.as_path(), text).into()];
    }
    let lines = |hunk: &Value| -> Vec<String> {
        let lines = hunk.get("lines").and_then(Value::as_array).into_iter().flatten();
        lines.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    hunks.iter().map(|hunk| hunk_content(&path, lines(hunk).iter().map(String::as_str))).collect()
}

/// The change that a question shows, from a unified diff.
pub(super) fn unified_diff_content(
    input: &Map<String, Value>,
    diff: &str,
    cwd: &AbsPath,
) -> Vec<ToolCallContent> {
    let Some(path) = call_file(input, cwd) else { return Vec::new() };
    let mut hunks: Vec<Vec<&str>> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.push(Vec::new());
        } else if let Some(hunk) = hunks.last_mut() {
            // What is before the first hunk names the file.
            hunk.push(line);
        }
    }
    hunks.into_iter().map(|hunk| hunk_content(&path, hunk.into_iter())).collect()
}

/// One changed region: the lines before, and the lines after.
fn hunk_content<'a>(path: &AbsPath, lines: impl Iterator<Item = &'a str>) -> ToolCallContent {
    let (mut old, mut new) = (String::new(), String::new());
    let add = |text: &mut String, line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for line in lines {
        match (line.strip_prefix('-'), line.strip_prefix('+'), line.strip_prefix(' ')) {
            (Some(line), _, _) => add(&mut old, line),
            (_, Some(line), _) => add(&mut new, line),
            (_, _, Some(line)) => {
                add(&mut old, line);
                add(&mut new, line);
            }
            // A note, such as a missing newline at the end of the file.
            _ => {}
        }
    }
    let old = (!old.is_empty()).then_some(old);
    Diff::new(path.as_path(), new).old_text(old).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_change_is_shown_as_the_lines_before_and_after() {
        let cwd = AbsPath::root().join("w");
        let input = object(json!({ "file_path": "a.txt" }));
        let wanted = json!([{ "type": "diff", "path": "/w/a.txt", "oldText": "one\ntwo\n", "newText": "one\nthree\n" }]);
        let patch = json!({ "structuredPatch": [{ "lines": [" one", "-two", "+three"] }] });
        assert_eq!(json!(result_diffs(&input, &patch, &cwd)), wanted);
        let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n";
        assert_eq!(json!(unified_diff_content(&input, diff, &cwd)), wanted);
        let created = json!({ "type": "create", "structuredPatch": [], "content": "x\n" });
        let wanted = json!([{ "type": "diff", "path": "/w/a.txt", "newText": "x\n" }]);
        assert_eq!(json!(result_diffs(&input, &created, &cwd)), wanted);
    }

    #[test]
    fn a_title_is_one_short_line() {
        let input = object(json!({ "command": format!("echo a\necho {}", "é".repeat(500)) }));
        let title = call_title("Bash", &input);
        assert!(title.starts_with("Bash echo a echo é") && title.ends_with('…') && !title.contains('\n'));
        assert_eq!(call_title("X", &Map::new()), "X");
    }
}
