//! The output of a hook, parsed strictly.
//!
//! An unknown decision, a wrong type, a duplicate key or an answer for another event is a failure, and a failure
//! refuses the call.
//! Unknown keys are ignored, because scripts print more than toolgate knows; but an approval with unknown keys does
//! not count, because they may be conditions of the approval.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_gate::{HookAnswer, HookDecision, HookEvent, HookFailure};
use toolgate_proto::json::{JsonLimits, parse_object};

/// How many characters of a hook's text the model gets.
const MAX_TEXT_CHARS: usize = 10_000;
/// Limits of the JSON that a hook prints.
const OUTPUT_LIMITS: JsonLimits = JsonLimits { bytes: 1024 * 1024, depth: 64 };

/// What a hook prints: one JSON object, or nothing.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HookOutput {
    /// `false` stops the agent.
    #[serde(rename = "continue")]
    go_on: Option<bool>,
    /// Why the agent stops.
    stop_reason: Option<String>,
    /// A message to the user.
    system_message: Option<String>,
    /// Accepted, without effect.
    suppress_output: Option<bool>,
    /// Accepted, without effect.
    terminal_sequence: Option<String>,
    /// The decision, in the older format.
    decision: Option<HookOutputDecision>,
    /// The reason of the decision.
    reason: Option<String>,
    /// The fields that depend on the event.
    hook_specific_output: Option<HookSpecificOutput>,
    /// The hook continues in the background and decides nothing.
    #[serde(rename = "async")]
    in_background: Option<bool>,
    /// Accepted, without effect.
    async_timeout: Option<f64>,
    /// The same as in `hookSpecificOutput`.
    updated_input: Option<Map<String, Value>>,
    /// The same as in `hookSpecificOutput`.
    additional_context: Option<String>,
    /// The same as in `hookSpecificOutput`.
    retry: Option<bool>,
    /// Unknown keys.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: Map<String, Value>,
}

/// The fields that depend on the event.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct HookSpecificOutput {
    /// The event that this answers.
    hook_event_name: Option<String>,
    /// PreToolUse: the decision about the call.
    permission_decision: Option<HookOutputDecision>,
    /// PreToolUse: the reason of the decision.
    permission_decision_reason: Option<String>,
    /// PreToolUse: an input that replaces the whole input of the call.
    updated_input: Option<Map<String, Value>>,
    /// Text for the model, added to the result.
    additional_context: Option<String>,
    /// PostToolUse: an output that replaces the result for the model.
    updated_tool_output: Option<Value>,
    /// PostToolUse: the same, for tools of MCP servers.
    #[serde(rename = "updatedMCPToolOutput")]
    updated_mcp_tool_output: Option<Value>,
    /// PostToolUse: accepted, without effect.
    classifier_context: Option<Value>,
    /// PermissionRequest: the answer to the question.
    decision: Option<PermissionResponse>,
    /// PermissionDenied: the model may repeat the call.
    retry: Option<bool>,
    /// Unknown keys.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: Map<String, Value>,
}

/// The decision of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HookOutputDecision {
    /// Allow the call if no rule denies it or asks.
    Allow,
    /// The older name of `allow`.
    Approve,
    /// Deny the call.
    Deny,
    /// The older name of `deny`.
    Block,
    /// Ask for approval.
    Ask,
    /// Do not run the call now; a host may resume it later.
    Defer,
}

/// The answer to a permission request, as hooks, prompt tools and hosts write it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionResponse {
    /// Allow or deny.
    pub(crate) behavior: PermissionBehavior,
    /// allow: an input that replaces the whole input of the call.
    #[serde(default)]
    pub(crate) updated_input: Option<Map<String, Value>>,
    /// allow: rules to allow from now on.
    #[serde(default)]
    pub(crate) updated_permissions: Vec<Value>,
    /// deny: a message to the model.
    #[serde(default)]
    pub(crate) message: Option<String>,
    /// deny: stop the agent.
    #[serde(default)]
    pub(crate) interrupt: Option<bool>,
    /// Unknown keys.
    #[serde(flatten)]
    #[schemars(skip)]
    pub(crate) unknown: Map<String, Value>,
}

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionBehavior {
    /// The call may run.
    Allow,
    /// The call is refused.
    Deny,
}

impl PermissionResponse {
    /// The allow rules of `updatedPermissions`; an error for updates of another type, which toolgate does not apply.
    pub(crate) fn rules(&self) -> Result<Vec<String>, String> {
        let mut rules = Vec::new();
        for update in &self.updated_permissions {
            let text = |key: &str| update.get(key).and_then(Value::as_str).unwrap_or_default();
            if (text("type"), text("behavior")) != ("addRules", "allow") {
                return Err(format!("`updatedPermissions` of type `{}` is not supported", text("type")));
            }
            for rule in update.get("rules").and_then(Value::as_array).into_iter().flatten() {
                let part = |key: &str| rule.get(key).and_then(Value::as_str);
                let Some(tool) = part("toolName") else {
                    return Err("a rule in `updatedPermissions` has no `toolName`".to_owned());
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

/// Parses the output of a hook. Text that does not start with `{` is not an answer.
pub(super) fn parse_output(event: HookEvent, printed: &[u8]) -> Result<HookAnswer, HookFailure> {
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
    build_answer(event, output).map_err(unreadable)
}

/// Combines the older and the newer fields; of two decisions the stricter one counts.
fn build_answer(event: HookEvent, output: HookOutput) -> Result<HookAnswer, String> {
    if output.in_background == Some(true) {
        return Ok(HookAnswer::default().with_detail("in the background"));
    }
    let specific = output.hook_specific_output.unwrap_or_default();
    if let Some(other) = specific.hook_event_name.as_deref().filter(|other| *other != event.as_str()) {
        return Err(format!("it answers the event `{other}`, but the event was `{event}`"));
    }
    let mut unknown: Vec<String> =
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
    if let Some(response) = specific.decision {
        unknown.extend(response.unknown.keys().map(|key| format!("`{key}`")));
        match response.rules() {
            Ok(rules) => answer.remember = rules,
            Err(problem) => unknown.push(problem),
        }
        let decision = match response.behavior {
            PermissionBehavior::Allow => HookDecision::Allow,
            PermissionBehavior::Deny => HookDecision::Deny,
        };
        answer.decision = answer.decision.max(Some(decision));
        answer.reason = response.message.map(truncate_text).or(answer.reason);
        answer.updated_input = response.updated_input.or(answer.updated_input);
        if response.interrupt == Some(true) {
            answer.stop = Some(answer.reason.clone().unwrap_or_else(|| "it gave no reason".to_owned()));
        }
    }
    if output.go_on == Some(false) {
        let reason = output.stop_reason.map(truncate_text).or_else(|| answer.reason.clone());
        answer.stop = Some(reason.unwrap_or_else(|| "it gave no reason".to_owned()));
    }
    if answer.decision == Some(HookDecision::Allow) && !unknown.is_empty() {
        answer.decision = None;
        answer.detail = Some(format!(
            "its approval does not count, because the output contains unknown keys: {}",
            unknown.join(", ")
        ));
    }
    Ok(answer)
}

/// The gate's decision for a name in the output.
fn to_hook_decision(word: HookOutputDecision) -> HookDecision {
    match word {
        HookOutputDecision::Allow | HookOutputDecision::Approve => HookDecision::Allow,
        HookOutputDecision::Ask => HookDecision::Ask,
        HookOutputDecision::Defer => HookDecision::Defer,
        HookOutputDecision::Deny | HookOutputDecision::Block => HookDecision::Deny,
    }
}

/// Truncates text for the model, which would otherwise crowd out the result.
pub(super) fn truncate_text(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => {
            let kept = text.get(..end).unwrap_or_default();
            format!("{kept}… ({} more bytes were truncated)", text.len() - end)
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: HookEvent, printed: &str) -> Result<Option<HookDecision>, HookFailure> {
        parse_output(event, printed.as_bytes()).map(|answer| answer.decision)
    }

    #[test]
    fn older_and_newer_decisions_are_parsed() {
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
            // An approval with unknown keys does not count; a denial does.
            (r#"{"decision":"allow","setMode":"bypassPermissions"}"#, None),
            (r#"{"decision":"block","setMode":"bypassPermissions"}"#, Some(Deny)),
        ] {
            assert_eq!(check(HookEvent::PreToolUse, printed), Ok(wanted), "{printed}");
        }
    }

    #[test]
    fn invalid_output_is_a_failure() {
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
        assert!(matches!(parse_output(HookEvent::PreToolUse, b"{\xff"), Err(HookFailure::Unreadable(_))));
    }

    #[test]
    fn the_answer_to_a_permission_request_is_parsed() {
        let output = r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow",
            "updatedPermissions":[{"type":"addRules","behavior":"allow","destination":"session",
            "rules":[{"toolName":"Bash","ruleContent":"npm test"},{"toolName":"Read"}]}]}}}"#;
        let answer = parse_output(HookEvent::PermissionRequest, output.as_bytes()).unwrap();
        assert_eq!(answer.decision, Some(HookDecision::Allow));
        assert_eq!(answer.remember, ["Bash(npm test)", "Read"]);
        let output = r#"{"hookSpecificOutput":{"decision":{"behavior":"allow",
            "updatedPermissions":[{"type":"setMode","mode":"bypassPermissions","destination":"session"}]}}}"#;
        assert_eq!(parse_output(HookEvent::PermissionRequest, output.as_bytes()).unwrap().decision, None);
        let output =
            r#"{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"no","interrupt":true}}}"#;
        let answer = parse_output(HookEvent::PermissionRequest, output.as_bytes()).unwrap();
        assert_eq!((answer.decision, answer.stop.as_deref()), (Some(HookDecision::Deny), Some("no")));
    }

    #[test]
    fn long_text_is_truncated() {
        let output = format!(r#"{{"systemMessage":"{}"}}"#, "ä".repeat(20_000));
        let message =
            parse_output(HookEvent::PostToolUse, output.as_bytes()).unwrap().system_message.unwrap();
        assert!(message.chars().count() < 10_100 && message.contains("truncated"));
    }
}
