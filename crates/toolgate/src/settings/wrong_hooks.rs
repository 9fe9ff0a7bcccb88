//! Hooks in settings files that could never run: misspelled events, handlers outside of the list `hooks`, and matchers that
//! select no tool.

use super::SettingsNote;
use super::entry_spelling::{WrongEntry, list_items, text_of};
use super::node::{SettingsNode, SettingsNodeKind};
use crate::hooks::{find_group_problem, find_intended_event, find_matcher_problem, matches_no_known_tool};
use toolgate_gate::HookEvent;
use toolgate_policy::McpNames;

/// The events whose matchers are names of tools.
const TOOL_EVENTS: [HookEvent; 5] = [
    HookEvent::PreToolUse,
    HookEvent::PermissionRequest,
    HookEvent::PermissionDenied,
    HookEvent::PostToolUse,
    HookEvent::PostToolUseFailure,
];

/// Hooks for which the file is not used: with them calls would run that were meant to be screened.
pub(super) fn find_wrong_hooks(node: &SettingsNode) -> Vec<WrongEntry> {
    let mut wrong = Vec::new();
    for (event, groups) in events_of(node) {
        if let Some(meant) = find_intended_event(event) {
            wrong.push((
                groups.line,
                format!("unknown event `hooks.{event}`"),
                format!("did you mean `{meant}`?"),
            ));
        }
        for (index, group) in list_items(groups).iter().enumerate() {
            if let Some((message, fix)) = find_group_problem(event, &group.value()) {
                wrong.push((group.line, format!("`hooks.{event}[{index}]`: {message}"), fix));
            }
        }
    }
    wrong
}

/// Misspelled matchers. They are no reason not to load a file: such a hook refuses the calls that it was meant to screen.
/// `mcp` finds the names of MCP servers.
pub(super) fn find_misspelled_matchers(node: &SettingsNode, mcp: &dyn Fn() -> McpNames) -> Vec<WrongEntry> {
    let fix = "correct the matcher; the calls that were meant are refused until then";
    let find = |(event, line, matcher): (&str, usize, &str)| {
        let problem = find_matcher_problem(matcher, mcp)?;
        Some((line, format!("`hooks.{event}`: {problem}"), fix.to_owned()))
    };
    tool_matchers(node).into_iter().filter_map(find).collect()
}

/// Notes about matchers that match no tool of toolgate: a program that embeds it can have such a tool.
pub(super) fn find_unmatched_matchers(node: &SettingsNode, file: &str) -> Vec<SettingsNote> {
    let is_unmatched = |matcher: &str| {
        matches_no_known_tool(matcher) && find_matcher_problem(matcher, &McpNames::default).is_none()
    };
    let matchers = tool_matchers(node).into_iter().filter(|(_, _, matcher)| is_unmatched(matcher));
    let note = |(event, line, matcher): (&str, usize, &str)| SettingsNote {
        file: file.to_owned(),
        line,
        message: format!(
            "the matcher `{matcher}` in `hooks.{event}` matches no tool of toolgate; `toolgate tools --all` lists the names"
        ),
    };
    matchers.map(note).collect()
}

/// The events of a file.
fn events_of(node: &SettingsNode) -> impl Iterator<Item = (&str, &SettingsNode)> {
    let events = match node.get("hooks").map(|hooks| &hooks.kind) {
        Some(SettingsNodeKind::Object(events)) => events.as_slice(),
        Some(SettingsNodeKind::List(_) | SettingsNodeKind::Scalar(_)) | None => &[],
    };
    events.iter().map(|(event, groups)| (event.as_str(), groups))
}

/// The matchers of tools, each with its event and line.
fn tool_matchers(node: &SettingsNode) -> Vec<(&str, usize, &str)> {
    let is_of_tools = |event: &str| TOOL_EVENTS.iter().any(|known| known.as_str() == event);
    let mut found = Vec::new();
    for (event, groups) in events_of(node).filter(|(event, _)| is_of_tools(event)) {
        for matcher in list_items(groups).iter().filter_map(|group| group.get("matcher")) {
            found.extend(text_of(matcher).map(|text| (event, matcher.line, text)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a text, in one line each.
    fn find(text: &str) -> Vec<String> {
        let node = SettingsNode::parse(text).unwrap();
        let found =
            find_wrong_hooks(&node).into_iter().chain(find_misspelled_matchers(&node, &McpNames::default));
        found.map(|(line, message, fix)| format!("{line}: {message}; {fix}")).collect()
    }

    #[test]
    fn hooks_that_could_never_run_are_named_with_what_to_write() {
        let handler = r#"{"type": "command", "command": "/bin/false"}"#;
        for (hooks, part) in [
            (format!("{{\n\"PreTolUse\": [{{\"hooks\": [{handler}]}}]}}"), "did you mean `PreToolUse`?"),
            (format!("{{\n\"BeforeTool\": [{{\"hooks\": [{handler}]}}]}}"), "did you mean `PreToolUse`?"),
            (
                format!("{{\"PreToolUse\": [\n{handler}]}}"),
                r#"write `{"hooks":[{"type":"command","command":"/bin/false"}]}`"#,
            ),
            (format!("{{\"Stop\": [\n{handler}]}}"), "stands outside of a list `hooks`"),
            (
                format!("{{\"PreToolUse\": [{{\n\"matcher\": \"Edit|Wirte\", \"hooks\": [{handler}]}}]}}"),
                "did you mean `Write`?",
            ),
            (
                format!(
                    "{{\"PostToolUse\": [{{\n\"matcher\": \"Bash(touch *)\", \"hooks\": [{handler}]}}]}}"
                ),
                "is a permission rule",
            ),
        ] {
            let found = find(&format!("{{\"hooks\": {hooks}}}"));
            assert!(found.len() == 1 && found[0].starts_with("2: ") && found[0].contains(part), "{found:?}");
        }
        let fine = format!(
            r#"{{"hooks": {{"PreToolUse": [{{"matcher": "mcp__.*", "hooks": [{handler}]}}, {{"hooks": []}}],
                "SessionStart": [{{"matcher": "startupp", "hooks": []}}], "MyEvent": [{handler}], "Setup": []}}}}"#
        );
        assert_eq!(find(&fine), Vec::<String>::new());
    }
}
