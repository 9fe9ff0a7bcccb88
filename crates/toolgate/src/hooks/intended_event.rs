//! Hooks that could never run because of how they are written: misspelled events, and handlers outside the list `hooks`.
//!
//! Such a hook screens nothing, and its author relies on it. Other products have events of their own, so only a name that
//! stands for one of toolgate's events is an error.

use super::build_agent_hooks::find_agent_event;
use super::plan::UNRAISED_EVENTS;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use toolgate_agent::AgentHookEvent;
use toolgate_gate::HookEvent;
use toolgate_policy::{find_intended_name, is_known_tool};

/// Names that guesses and other products have for the event before a call.
const SCREENING_EVENT_NAMES: &[&str] = &[
    "BeforeCommand",
    "BeforeEdit",
    "BeforeExecution",
    "BeforeMCPExecution",
    "BeforeReadFile",
    "BeforeShellExecution",
    "BeforeToolCall",
    "BeforeToolUse",
    "BeforeWrite",
    "OnTool",
    "OnToolCall",
    "OnToolUse",
    "PreBash",
    "PreCommand",
    "PreEdit",
    "PreExecution",
    "PreToolCall",
    "PreToolExecution",
    "PreToolUse",
    "PreWrite",
    "ToolCall",
    "ToolUse",
];

/// The start of every other name for it; an event of Gemini CLI that selects tools is no screening of calls.
const SCREENING_EVENT_STARTS: [&str; 2] = ["pretool", "beforetool"];
/// That event of Gemini CLI.
const TOOL_SELECTION_EVENT: &str = "beforetoolselection";

/// The keys of a handler that say what runs. In a group of handlers they have no effect. `server` and `tool` are none of
/// them: beside a list of hooks they can be meant as a matcher, and then the hooks run for more calls.
const HANDLER_KEYS: [&str; 3] = ["command", "url", "prompt"];

/// What guesses and other products call `command`.
const COMMAND_NAMES: [&str; 8] =
    ["bash", "cmd", "exec", "program", "run", "scripts", "script", "shellCommand"];
/// What guesses and other products call the list `hooks`.
const LIST_NAMES: [&str; 8] =
    ["action", "actions", "commands", "handler", "handlers", "hook", "hookList", "steps"];
/// The other keys of a handler, which have values of any type.
const OTHER_HANDLER_KEYS: [&str; 14] = [
    "allowedEnvVars",
    "args",
    "async",
    "headers",
    "if",
    "input",
    "model",
    "onFailure",
    "once",
    "server",
    "shell",
    "statusMessage",
    "timeout",
    "tool",
];
/// The type of a handler by the key that says what runs.
const HANDLER_TYPES: [(&str, &str); 4] =
    [("command", "command"), ("url", "http"), ("server", "mcp_tool"), ("prompt", "prompt")];

/// How much of the group a hint repeats.
const MAX_SHOWN_GROUP_CHARS: usize = 200;

/// Every event of calls and agents, also those that are never raised.
pub(crate) fn known_events() -> impl Iterator<Item = &'static str> {
    let of_calls = HookEvent::ALL.iter().map(|event| event.as_str());
    let of_agents = AgentHookEvent::ALL.iter().map(|event| event.as_str());
    of_calls.chain(of_agents).chain(UNRAISED_EVENTS.iter().map(|(event, _)| *event))
}

/// The event that an unknown one stands for: a misspelled one, or `PreToolUse` under another name or under that of the
/// tool that it was meant to screen. `None` if the event is known, or one of another product.
pub(crate) fn find_intended_event(name: &str) -> Option<&'static str> {
    if known_events().any(|event| event == name) {
        return None;
    }
    let of_tool = || is_known_tool(name, &BTreeSet::new()).then_some(HookEvent::PreToolUse.as_str());
    find_intended_name(name, known_events()).or_else(|| find_screening_event(name)).or_else(of_tool)
}

/// `PreToolUse`, if a name is another one for it.
pub(crate) fn find_screening_event(name: &str) -> Option<&'static str> {
    let folded = name.to_lowercase().replace(['_', '-'], "");
    let is_screening = find_intended_name(&folded, SCREENING_EVENT_NAMES.iter().copied()).is_some()
        || folded != TOOL_SELECTION_EVENT
            && SCREENING_EVENT_STARTS.iter().any(|start| folded.starts_with(start));
    is_screening.then_some(HookEvent::PreToolUse.as_str())
}

/// What is wrong with the form of a group of handlers of this event, and what to write. Only for events that run hooks:
/// those of other products can have another form.
pub(crate) fn find_group_problem(event: &str, group: &Value) -> Option<(String, String)> {
    let is_raised =
        HookEvent::ALL.iter().any(|known| known.as_str() == event) || find_agent_event(event).is_some();
    let fields = group.as_object().filter(|_| is_raised)?;
    let mut handler_keys = HANDLER_KEYS.iter().chain(&COMMAND_NAMES).chain(&LIST_NAMES);
    let misplaced = handler_keys.find(|key| fields.contains_key(**key));
    let message = match (fields.contains_key("hooks"), misplaced) {
        (true, None) => return None,
        (true, Some(key)) => format!("`{key}` stands beside the list `hooks`, so that hook never runs"),
        (false, Some(key)) => format!("`{key}` stands outside of a list `hooks`, so the hook never runs"),
        (false, None) => "it has no list `hooks`, so nothing ever runs".to_owned(),
    };
    Some((message, format!("write `{}`", write_group(fields))))
}

/// The group as it must be written, with its handlers in the list `hooks`.
fn write_group(fields: &Map<String, Value>) -> String {
    let mut group = Map::new();
    let mut handlers = Vec::new();
    let mut inline = Map::new();
    for (key, value) in fields {
        let is_own = OTHER_HANDLER_KEYS.contains(&key.as_str());
        match value {
            _ if key == "matcher" => drop(group.insert(key.clone(), value.clone())),
            Value::Array(items) if !is_own => handlers.extend(items.iter().filter_map(write_handler)),
            Value::Object(_) if !is_own => handlers.extend(write_handler(value)),
            Value::String(_) if LIST_NAMES.contains(&key.as_str()) => handlers.extend(write_handler(value)),
            _ => drop(inline.insert(key.clone(), value.clone())),
        }
    }
    if says_what_runs(&inline) {
        handlers.extend(write_handler(&Value::Object(inline)));
    }
    if handlers.is_empty() {
        handlers.push(json!({ "type": "command", "command": "…" }));
    }
    group.insert("hooks".to_owned(), Value::Array(handlers));
    let written = Value::Object(group).to_string();
    match written.chars().count() > MAX_SHOWN_GROUP_CHARS {
        true => r#"{"matcher": "…", "hooks": [{"type": "command", "command": "…"}]}"#.to_owned(),
        false => written,
    }
}

/// Whether an object has a key that says what runs.
fn says_what_runs(fields: &Map<String, Value>) -> bool {
    let is_key = |key: &str| HANDLER_KEYS.contains(&key) || COMMAND_NAMES.contains(&key);
    fields.keys().any(|key| key == "server" || is_key(key) || find_misspelled_key(key).is_some())
}

/// The key that says what runs which this one misspells.
fn find_misspelled_key(key: &str) -> Option<&'static str> {
    find_intended_name(key, HANDLER_KEYS)
}

/// A handler as it must be written: an object with its type, or a command. None if it does not say what runs.
fn write_handler(value: &Value) -> Option<Value> {
    let fields = match value {
        Value::String(command) => return Some(json!({ "type": "command", "command": command })),
        Value::Object(fields) if says_what_runs(fields) => fields,
        _ => return None,
    };
    let mut handler = Map::new();
    for (key, value) in fields {
        let name = match COMMAND_NAMES.contains(&key.as_str()) {
            true => "command",
            false => find_misspelled_key(key).unwrap_or(key),
        };
        handler.entry(name).or_insert_with(|| value.clone());
    }
    let of_key = HANDLER_TYPES.iter().find(|(key, _)| handler.contains_key(*key));
    if let (false, Some((_, kind))) = (handler.contains_key("type"), of_key) {
        handler.shift_insert(0, "type".to_owned(), json!(kind));
    }
    Some(Value::Object(handler))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_any_spelling_that_screen_calls_are_recognised() {
        for name in [
            "PreTolUse",
            "pre_tool_use",
            "preToolUse",
            "PreToolCall",
            "PreTool",
            "PreToolCal",
            "PreToolBatch",
            "BeforeTool",
            "BeforeToolExecution",
            "ToolUse",
            "toolCall",
            "beforeShellExecution",
            "beforeMCPExecution",
            "Bash",
            "write_file",
        ] {
            assert_eq!(find_intended_event(name), Some("PreToolUse"), "{name}");
        }
        for (name, meant) in [
            ("PostTolUse", "PostToolUse"),
            ("PermisionRequest", "PermissionRequest"),
            ("UserPromptSubmitt", "UserPromptSubmit"),
        ] {
            assert_eq!(find_intended_event(name), Some(meant), "{name}");
        }
    }

    #[test]
    fn known_events_and_those_of_other_products_are_left_alone() {
        for name in known_events() {
            assert_eq!(find_intended_event(name), None, "{name}");
        }
        for name in [
            "AfterTool",
            "AfterAgent",
            "BeforeAgent",
            "BeforeModel",
            "BeforeToolSelection",
            "afterFileEdit",
            "beforeSubmitPrompt",
            "PreCompress",
            "PostToolCall",
            "ToolResult",
            "OnToolEnd",
            "MyEvent",
        ] {
            assert_eq!(find_intended_event(name), None, "{name}");
        }
    }

    #[test]
    fn a_handler_outside_of_the_list_is_shown_where_it_belongs() {
        let handler = json!({ "type": "command", "command": "/bin/false" });
        let find = |group: Value| find_group_problem("PreToolUse", &group);
        let (message, fix) = find(handler.clone()).unwrap();
        assert!(message.contains("`command` stands outside of a list `hooks`"), "{message}");
        assert_eq!(fix, r#"write `{"hooks":[{"type":"command","command":"/bin/false"}]}`"#);
        let (_, fix) = find(json!({ "matcher": "Bash", "command": "x" })).unwrap();
        assert_eq!(fix, r#"write `{"matcher":"Bash","hooks":[{"type":"command","command":"x"}]}`"#);
        let (message, _) = find(json!({ "matcher": "Bash", "hooks": [], "command": "x" })).unwrap();
        assert!(message.contains("beside the list"), "{message}");
        assert!(find(json!({ "matcher": "Bash" })).unwrap().0.contains("no list `hooks`"));
        for group in [json!({ "hooks": [handler.clone()] }), json!({ "matcher": "Bash", "hooks": [] })] {
            assert_eq!(find(group.clone()), None, "{group}");
        }
        // An event of another product can have another form.
        assert_eq!(find_group_problem("afterFileEdit", &handler), None);
    }

    /// What is written in place of a group has no problem, and runs what the group names.
    #[test]
    fn a_hint_for_a_group_can_be_used_as_it_is() {
        let handler = json!({ "type": "command", "command": "x.sh" });
        let one = json!({ "matcher": "Bash", "hooks": [handler] });
        for (group, wanted) in [
            (json!({ "matcher": "Bash", "handlers": [handler] }), &one),
            (json!({ "matcher": "Bash", "handlers": ["x.sh"] }), &one),
            (json!({ "matcher": "Bash", "handler": handler }), &one),
            (json!({ "matcher": "Bash", "handler": "x.sh" }), &one),
            (json!({ "matcher": "Bash", "actions": [{ "command": "x.sh" }] }), &one),
            (json!({ "matcher": "Bash", "script": "x.sh" }), &one),
            (json!({ "matcher": "Bash", "scripts": ["x.sh"] }), &one),
            (json!({ "matcher": "Bash", "run": "x.sh" }), &one),
            (json!({ "matcher": "Bash", "comand": "x.sh" }), &one),
            (
                json!({ "matcher": "Bash", "hooks": [handler], "handlers": [handler] }),
                &json!({
                    "matcher": "Bash", "hooks": [handler, handler],
                }),
            ),
            (
                json!({ "command": "x.sh", "args": ["a"], "timeout": 5 }),
                &json!({
                    "hooks": [{ "type": "command", "command": "x.sh", "args": ["a"], "timeout": 5 }],
                }),
            ),
            (
                json!({ "url": "http://127.0.0.1/h", "headers": { "a": "b" } }),
                &json!({
                    "hooks": [{ "type": "http", "url": "http://127.0.0.1/h", "headers": { "a": "b" } }],
                }),
            ),
            (
                json!({ "matcher": "Bash", "server": "s", "tool": "t" }),
                &json!({
                    "matcher": "Bash", "hooks": [{ "type": "mcp_tool", "server": "s", "tool": "t" }],
                }),
            ),
            (
                json!({ "matcher": "Bash", "note": "x" }),
                &json!({
                    "matcher": "Bash", "hooks": [{ "type": "command", "command": "…" }],
                }),
            ),
        ] {
            let (_, fix) = find_group_problem("PreToolUse", &group).unwrap();
            let written = fix.strip_prefix("write `").and_then(|fix| fix.strip_suffix('`')).unwrap();
            let written: Value = serde_json::from_str(written).unwrap();
            assert_eq!(written, *wanted, "{group}");
            assert_eq!(find_group_problem("PreToolUse", &written), None, "{group}");
            serde_json::from_value::<crate::settings::values::HookGroup>(written).unwrap();
        }
    }
}
