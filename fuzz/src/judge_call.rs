//! Judges a call by a policy without a file system: no path exists, no path is a symlink, and nothing runs.

use serde_json::{Map, Value, json};
use toolgate_policy::{
    EntryKind, Layer, LayerRules, PathFact, PathFacts, Policy, PolicyRequest, RawPolicy, RuleAction,
    Workspace,
};
use toolgate_proto::{
    AbsPath, CommandLine, Effect, Intent, Mode, PathScope, ShellKind, SourceId, ToolIdentity, ToolName,
    Verdict, WriteKind,
};

/// An absolute path.
pub(crate) fn abs(path: &str) -> AbsPath {
    AbsPath::root().join(path)
}

/// A workspace at `/ws`, with the home directory `/home/u`.
pub(crate) fn workspace() -> Workspace {
    Workspace::new(abs("/ws")).with_home(abs("/home/u"))
}

/// A policy with the rules of one layer.
pub(crate) fn policy(allow: &[&str], ask: &[&str], deny: &[&str], mode: Mode) -> Policy {
    let mut layer = LayerRules::new(Layer::Project, abs("/ws"));
    layer.allow = allow.iter().map(|rule| (*rule).into()).collect();
    layer.ask = ask.iter().map(|rule| (*rule).into()).collect();
    layer.deny = deny.iter().map(|rule| (*rule).into()).collect();
    RawPolicy::default().with_layers(vec![layer]).with_mode(mode).compile().0
}

/// The action for a call with one effect.
pub(crate) fn judge_call(policy: &Policy, tool: &str, input: Value, effect: Effect) -> RuleAction {
    let source = match tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => SourceId::Mcp { server: server.to_owned(), tool: tool.to_owned() },
        None => SourceId::Builtin,
    };
    let tool = ToolIdentity::new(ToolName::new(tool), source);
    let workspace = workspace();
    let intent = Intent::new("do it", [effect]);
    let survey = policy.survey(&intent, &workspace);
    let mut facts = PathFacts::none();
    for path in &survey.paths {
        facts.insert(PathFact::new(path.clone(), path.lexical(), EntryKind::Missing));
    }
    let input: Map<String, Value> = input.as_object().cloned().unwrap_or_default();
    let request = PolicyRequest {
        tool: &tool,
        input: &input,
        intent: &intent,
        survey: &survey,
        workspace: &workspace,
        facts: &facts,
        opinions: &[],
    };
    match policy.decide(&request).verdict {
        Verdict::Allow(_) => RuleAction::Allow,
        Verdict::Ask(_) => RuleAction::Ask,
        Verdict::Deny(_) => RuleAction::Deny,
    }
}

/// A bash command line in the workspace.
pub(crate) fn line(text: &str) -> CommandLine {
    CommandLine::new(text, ShellKind::Bash, abs("/ws"))
}

/// The action for a call of `Bash`.
pub(crate) fn bash(policy: &Policy, text: &str) -> RuleAction {
    judge_call(policy, "Bash", json!({ "command": text }), Effect::Exec { command: line(text) })
}

/// The action for a call of `Read`.
pub(crate) fn read(policy: &Policy, path: &AbsPath) -> RuleAction {
    let input = json!({ "file_path": path.to_string() });
    judge_call(policy, "Read", input, Effect::Read { path: path.clone(), scope: PathScope::Entry })
}

/// The action for a call of `Write`.
pub(crate) fn write(policy: &Policy, path: &AbsPath) -> RuleAction {
    let input = json!({ "file_path": path.to_string() });
    judge_call(policy, "Write", input, Effect::Write { path: path.clone(), kind: WriteKind::Put })
}

/// The action for a call of `WebFetch`.
pub(crate) fn fetch(policy: &Policy, url: &str) -> RuleAction {
    judge_call(policy, "WebFetch", json!({ "url": url }), Effect::Fetch { url: url.to_owned() })
}

/// The action for a call of an MCP tool.
pub(crate) fn remote(policy: &Policy) -> RuleAction {
    let effect = Effect::Remote { server: "gh".to_owned(), tool: "get_issue".to_owned() };
    judge_call(policy, "mcp__gh__get_issue", json!({ "path": "src/a.rs" }), effect)
}
