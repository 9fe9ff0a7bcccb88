//! What a hook says, read strictly.
//!
//! An unknown decision, a wrong type, a duplicate key or an answer for another event cannot be read, and an answer
//! that cannot be read refuses.
//! Keys that are not understood are left alone, as scripts print more than we know; but a consent that comes with
//! such keys does not count, because they may have been its conditions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_gate::{HookAnswer, HookDecision, HookEvent, HookFailure};
use toolgate_proto::json::{JsonLimits, parse_object};

/// Most characters of a hook's text that the model sees.
const MAX_TEXT_CHARS: usize = 10_000;
const OUTPUT_LIMITS: JsonLimits = JsonLimits { bytes: 1024 * 1024, depth: 64 };

/// What a hook prints: one JSON object, or nothing.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HookOutput {
    /// `false` stops the agent altogether.
    #[serde(rename = "continue")]
    go_on: Option<bool>,
    /// Why the agent stops.
    stop_reason: Option<String>,
    /// A word for the person.
    system_message: Option<String>,
    /// Accepted and without effect.
    suppress_output: Option<bool>,
    /// Accepted and without effect.
    terminal_sequence: Option<String>,
    /// The older form of a decision.
    decision: Option<HookOutputDecision>,
    /// Why.
    reason: Option<String>,
    /// What is particular to the event.
    hook_specific_output: Option<HookSpecificOutput>,
    /// The hook goes on in the background and decides nothing.
    #[serde(rename = "async")]
    in_background: Option<bool>,
    /// Accepted and without effect.
    async_timeout: Option<f64>,
    /// As in `hookSpecificOutput`.
    updated_input: Option<Map<String, Value>>,
    /// As in `hookSpecificOutput`.
    additional_context: Option<String>,
    /// As in `hookSpecificOutput`.
    retry: Option<bool>,
    /// What is not understood.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: Map<String, Value>,
}

/// What is particular to an event.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct HookSpecificOutput {
    /// The event that this answers.
    hook_event_name: Option<String>,
    /// PreToolUse: what to do with the call.
    permission_decision: Option<HookOutputDecision>,
    /// PreToolUse: why.
    permission_decision_reason: Option<String>,
    /// PreToolUse: the whole input that should be used instead.
    updated_input: Option<Map<String, Value>>,
    /// Something the model should know beside the result.
    additional_context: Option<String>,
    /// PostToolUse: the output that the model should see instead.
    updated_tool_output: Option<Value>,
    /// PostToolUse: the same for tools of MCP servers.
    #[serde(rename = "updatedMCPToolOutput")]
    updated_mcp_tool_output: Option<Value>,
    /// PostToolUse: accepted and without effect.
    classifier_context: Option<Value>,
    /// PermissionRequest: the answer to the question.
    decision: Option<PermissionResponse>,
    /// PermissionDenied: the model may try again.
    retry: Option<bool>,
    /// What is not understood.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: Map<String, Value>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HookOutputDecision {
    /// Yes, where no rule speaks.
    Allow,
    /// The older word for `allow`.
    Approve,
    /// No.
    Deny,
    /// The older word for `deny`.
    Block,
    /// A person decides.
    Ask,
    /// Not now.
    Defer,
}

/// The answer to a question, as hooks, prompt tools and hosts write it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionResponse {
    /// Yes or no.
    pub(crate) behavior: PermissionBehavior,
    /// allow: the whole input that should be used instead.
    #[serde(default)]
    pub(crate) updated_input: Option<Map<String, Value>>,
    /// allow: rules to remember.
    #[serde(default)]
    pub(crate) updated_permissions: Vec<Value>,
    /// deny: a word to the model.
    #[serde(default)]
    pub(crate) message: Option<String>,
    /// deny: stop the agent.
    #[serde(default)]
    pub(crate) interrupt: Option<bool>,
    /// What is not understood.
    #[serde(flatten)]
    #[schemars(skip)]
    pub(crate) unknown: Map<String, Value>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionBehavior {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

impl PermissionResponse {
    /// The allow rules it would remember, or why its updates cannot be taken.
    pub(crate) fn rules(&self) -> Result<Vec<String>, String> {
        let mut rules = Vec::new();
        for update in &self.updated_permissions {
            let text = |key: &str| update.get(key).and_then(Value::as_str).unwrap_or_default();
            if (text("type"), text("behavior")) != ("addRules", "allow") {
                return Err(format!("`updatedPermissions` of type `{}` are not taken", text("type")));
            }
            for rule in update.get("rules").and_then(Value::as_array).into_iter().flatten() {
                let part = |key: &str| rule.get(key).and_then(Value::as_str);
                let Some(tool) = part("toolName") else {
                    return Err("a rule in `updatedPermissions` names no tool".to_owned());
                };
                rules.push(match part("ruleContent") {
                    Some(content) => format!("{tool}({content})"),
                    None => tool.to_owned(),
                });
            }
        }
        Ok(rules)
    }
}

/// Reads what a hook printed. Text that does not start with `{` says nothing.
pub(super) fn read(moment: HookEvent, printed: &[u8]) -> Result<HookAnswer, HookFailure> {
    let text = std::str::from_utf8(printed)
        .map_err(|_| HookFailure::Unreadable("it is not UTF-8 text".to_owned()))?
        .trim();
    if !text.starts_with('{') {
        return Ok(HookAnswer::empty());
    }
    let unreadable = |problem: String| HookFailure::Unreadable(problem);
    let object = parse_object(text, OUTPUT_LIMITS).map_err(|problem| unreadable(problem.to_string()))?;
    let output: HookOutput =
        serde_json::from_value(Value::Object(object)).map_err(|error| unreadable(error.to_string()))?;
    build_answer(moment, output).map_err(unreadable)
}

fn build_answer(moment: HookEvent, output: HookOutput) -> Result<HookAnswer, String> {
    if output.in_background == Some(true) {
        return Ok(HookAnswer::default().with_detail("in the background"));
    }
    let specific = output.hook_specific_output.unwrap_or_default();
    if let Some(event) = specific.hook_event_name.as_deref().filter(|event| *event != moment.as_str()) {
        return Err(format!("it answers `{event}`, but was told of `{moment}`"));
    }
    let mut not_understood: Vec<String> =
        output.unknown.into_iter().chain(specific.unknown).map(|(key, _)| format!("`{key}`")).collect();
    let mut answer = HookAnswer::empty();
    let specific_decision = specific.permission_decision.map(to_hook_decision);
    answer.decision = output.decision.map(to_hook_decision).max(specific_decision);
    answer.reason = specific.permission_decision_reason.or(output.reason).map(truncate_text);
    answer.updated_input = specific.updated_input.or(output.updated_input);
    answer.additional_context = specific.additional_context.or(output.additional_context).map(truncate_text);
    answer.updated_output = specific.updated_tool_output.or(specific.updated_mcp_tool_output);
    answer.system_message = output.system_message.map(truncate_text);
    answer.retry = specific.retry.or(output.retry).unwrap_or(false);
    if let Some(behavior) = specific.decision {
        not_understood.extend(behavior.unknown.keys().map(|key| format!("`{key}`")));
        match behavior.rules() {
            Ok(rules) => answer.remember = rules,
            Err(problem) => not_understood.push(problem),
        }
        let said = match behavior.behavior {
            PermissionBehavior::Allow => HookDecision::Allow,
            PermissionBehavior::Deny => HookDecision::Deny,
        };
        answer.decision = answer.decision.max(Some(said));
        answer.reason = behavior.message.map(truncate_text).or(answer.reason);
        answer.updated_input = behavior.updated_input.or(answer.updated_input);
        if behavior.interrupt == Some(true) {
            answer.stop = Some(answer.reason.clone().unwrap_or_else(|| "it gave no reason".to_owned()));
        }
    }
    if output.go_on == Some(false) {
        let reason = output.stop_reason.map(truncate_text).or_else(|| answer.reason.clone());
        answer.stop = Some(reason.unwrap_or_else(|| "it gave no reason".to_owned()));
    }
    if answer.decision == Some(HookDecision::Allow) && !not_understood.is_empty() {
        answer.decision = None;
        answer.detail = Some(format!(
            "its consent does not count, because it came with what is not understood: {}",
            not_understood.join(", ")
        ));
    }
    Ok(answer)
}

fn to_hook_decision(word: HookOutputDecision) -> HookDecision {
    match word {
        HookOutputDecision::Allow | HookOutputDecision::Approve => HookDecision::Allow,
        HookOutputDecision::Ask => HookDecision::Ask,
        HookOutputDecision::Defer => HookDecision::Defer,
        HookOutputDecision::Deny | HookOutputDecision::Block => HookDecision::Deny,
    }
}

/// Text for the model, cut where it would drown the rest.
pub(super) fn truncate_text(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => {
            let kept = text.get(..end).unwrap_or_default();
            format!("{kept}… ({} more bytes were cut)", text.len() - end)
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(moment: HookEvent, printed: &str) -> Result<Option<HookDecision>, HookFailure> {
        read(moment, printed.as_bytes()).map(|answer| answer.decision)
    }

    #[test]
    fn decisions_old_and_new_are_read() {
        use HookDecision::{Allow, Ask, Defer, Deny};
        for (printed, wanted) in [
            ("", None),
            ("just words", None),
            ("[1]", None),
            ("{}", None),
            (r#"{"suppressOutput":true}"#, None),
            (r#"{"decision":"approve"}"#, Some(Allow)),
            (r#"{"decision":"block","reason":"no"}"#, Some(Deny)),
            (
                r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#,
                Some(Allow),
            ),
            (r#"{"hookSpecificOutput":{"permissionDecision":"ask"}}"#, Some(Ask)),
            (r#"{"hookSpecificOutput":{"permissionDecision":"defer"}}"#, Some(Defer)),
            (r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}"#, Some(Deny)),
            (r#"{"decision":"block","hookSpecificOutput":{"permissionDecision":"allow"}}"#, Some(Deny)),
            (r#"{"async":true,"decision":"approve"}"#, None),
            // A consent with conditions that nobody here understands is no consent; a refusal with them is one.
            (r#"{"decision":"allow","setMode":"bypassPermissions"}"#, None),
            (r#"{"decision":"block","setMode":"bypassPermissions"}"#, Some(Deny)),
        ] {
            assert_eq!(check(HookEvent::PreToolUse, printed), Ok(wanted), "{printed}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_failure() {
        for printed in [
            "{not json",
            "{",
            r#"{"decision":"alow"}"#,
            r#"{"decision":true}"#,
            r#"{"decision":"approve","decision":"block"}"#,
            r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"allow"}}"#,
            r#"{"hookSpecificOutput":{"permissionDecision":"yes"}}"#,
            r#"{"updatedInput":"rm"}"#,
            r#"{} {}"#,
        ] {
            assert!(
                matches!(check(HookEvent::PreToolUse, printed), Err(HookFailure::Unreadable(_))),
                "{printed}"
            );
        }
        assert!(matches!(read(HookEvent::PreToolUse, &[b'{', 0xff]), Err(HookFailure::Unreadable(_))));
    }

    #[test]
    fn the_answer_to_a_question_is_read() {
        let said = r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow",
            "updatedPermissions":[{"type":"addRules","behavior":"allow","destination":"session",
            "rules":[{"toolName":"Bash","ruleContent":"npm test"},{"toolName":"Read"}]}]}}}"#;
        let answer = read(HookEvent::PermissionRequest, said.as_bytes()).unwrap();
        assert_eq!(answer.decision, Some(HookDecision::Allow));
        assert_eq!(answer.remember, ["Bash(npm test)", "Read"]);
        let said = r#"{"hookSpecificOutput":{"decision":{"behavior":"allow",
            "updatedPermissions":[{"type":"setMode","mode":"bypassPermissions","destination":"session"}]}}}"#;
        assert_eq!(read(HookEvent::PermissionRequest, said.as_bytes()).unwrap().decision, None);
        let said =
            r#"{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"no","interrupt":true}}}"#;
        let answer = read(HookEvent::PermissionRequest, said.as_bytes()).unwrap();
        assert_eq!((answer.decision, answer.stop.as_deref()), (Some(HookDecision::Deny), Some("no")));
    }

    #[test]
    fn long_text_is_cut() {
        let said = format!(r#"{{"systemMessage":"{}"}}"#, "ä".repeat(20_000));
        let message = read(HookEvent::PostToolUse, said.as_bytes()).unwrap().system_message.unwrap();
        assert!(message.chars().count() < 10_100 && message.contains("cut"));
    }
}
