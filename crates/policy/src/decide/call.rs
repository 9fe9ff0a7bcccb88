//! Checks of the call as a whole: rules for the tool's name and input, mode, hooks, the policy book.
//!
//! Effects that need nothing but such rules (a web search, an agent, a skill) are checked here too.

use super::evaluation::{PolicyEvaluation, ToolWideGrant};
use super::objection::{ObjectionKind, ObjectionRemedy, PolicyCheck};
use super::paths::AccessOrigin;
use crate::field_text::CallFields;
use crate::mcp_names::mcp_name_problem;
use crate::raw::{Layer, RuleAction};
use crate::rule::{ActionIndex, syntax};
use serde_json::Value;
use std::fmt;
use toolgate_proto::{Code, Effect, Mode, RuleSuggestion, SourceId, ToolIdentity, VerdictReason};

/// How the name of a tool is compared with rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolNameMatching {
    /// Only a certain match counts: for allow rules.
    Strict,
    /// Every possible reading of the name counts: for deny and ask rules.
    Broad,
}

/// The first rule of an action that names the tool.
pub(crate) fn find_tool_rule(
    index: &ActionIndex,
    tool: &ToolIdentity,
    matching: ToolNameMatching,
) -> Option<u32> {
    let by_name = match matching {
        ToolNameMatching::Strict => index.tools.find(tool),
        ToolNameMatching::Broad => index.tools.find_restricting(tool),
    };
    let by_pair = match (matching, &tool.source) {
        (ToolNameMatching::Broad, _) => index.mcp.find_broadly(tool, |_| true),
        (ToolNameMatching::Strict, SourceId::Mcp { server, tool }) => index.mcp.find(server, tool, |_| true),
        (ToolNameMatching::Strict, _) => None,
    };
    by_name.into_iter().chain(by_pair).min()
}

/// Names of toolgate's state whose change makes later decisions less strict, or reaches beyond the project.
const LOOSENING_STATE: [&str; 8] =
    ["mode", "settings", "config", "permissions", "trust", "hooks", "user memory", "durable schedules"];

impl<'r> PolicyEvaluation<'r> {
    /// Runs every check that does not depend on a single effect.
    pub(crate) fn check_call(&mut self) {
        let (compiled, request) = (self.compiled, self.request);
        if let Some(reason) = &compiled.unusable {
            self.add_objection(ObjectionKind::Deny, PolicyCheck::Usable, reason.clone());
        }
        self.check_tool_rules();
        if self.mode == Mode::Deny {
            let reason = VerdictReason::new(Code::DeniedByMode, "mode deny refuses every call");
            self.add_objection(ObjectionKind::Deny, PolicyCheck::Mode, reason);
        }
        self.check_hook_opinions();
        self.check_policy_books();
        if request.tool.requires_interaction {
            let text = format!("tool `{}` needs an answer from the user", request.tool.name);
            let reason = VerdictReason::new(Code::ApprovalUnavailable, text);
            self.add_objection(ObjectionKind::Explicit, PolicyCheck::AskRules, reason);
        }
        if let SourceId::Mcp { server, tool } = &request.tool.source
            && let Some(problem) = mcp_name_problem(server, tool)
        {
            let reason = VerdictReason::new(Code::DeniedByRule, problem);
            self.add_objection(ObjectionKind::Deny, PolicyCheck::Risks, reason);
        }
        let find = |allow: &ActionIndex| find_tool_rule(allow, request.tool, ToolNameMatching::Strict);
        if let Some(id) = compiled.find_allow(find) {
            self.grant = Some(ToolWideGrant::Rule(id));
        }
        if request.intent.effects.is_empty() {
            self.check_no_effects();
        }
    }

    /// A call without effects passes like a read inside the workspace, if the tool is built in or the embedding
    /// program's. The declaration of a plugin, a skill or another server is not trusted: it comes from outside, and
    /// allowing it by default would let an author skip the question by leaving the effects out.
    fn check_no_effects(&mut self) {
        match self.request.tool.source {
            SourceId::Builtin | SourceId::Sdk => self.add_allow_reason("the tool has no effects", None),
            SourceId::Mcp { .. } | SourceId::Plugin { .. } | SourceId::Skill { .. } => {
                let name = &self.request.tool.name;
                self.require_grant(format_args!("tool `{name}` does not declare its effects"));
            }
        }
    }

    /// Deny and ask rules for the tool's name and for fields of its input.
    fn check_tool_rules(&mut self) {
        let (compiled, request) = (self.compiled, self.request);
        let tool = request.tool;
        if let Some(name) = compiled.disabled_name(tool) {
            let place = compiled.raw.setting_places.clause(&format!("disabledTools.{name}"));
            let text = format!("tool `{}` is disabled by the setting `disabledTools`{place}", tool.name);
            let reason = VerdictReason::new(Code::DeniedByRule, text);
            self.add_objection(ObjectionKind::Deny, PolicyCheck::DenyRules, reason);
            let text = format!("remove `{name}` from `disabledTools`{place}");
            self.set_remedy(ObjectionRemedy::Setting(text));
        }
        if let Some(id) = find_tool_rule(&compiled.deny, tool, ToolNameMatching::Broad) {
            self.deny_by_rule(format!("tool `{}` is denied by a rule", tool.name), id);
        }
        if let Some(id) = compiled.deny.params.find(&self.call_fields()) {
            self.deny_by_rule(format!("tool `{}` is denied by a rule for this input", tool.name), id);
        }
        if let Some(id) = find_tool_rule(&compiled.ask, tool, ToolNameMatching::Broad) {
            self.ask_by_rule(format_args!("tool `{}`", tool.name), id);
        }
        if let Some(id) = compiled.ask.params.find(&self.call_fields()) {
            self.ask_by_rule(format_args!("tool `{}` with this input", tool.name), id);
        }
    }

    /// The input, for rules about its fields.
    fn call_fields(&self) -> CallFields<'r> {
        let request = self.request;
        CallFields {
            tool: request.tool,
            input: request.input,
            workspace: request.workspace,
            intent: request.intent,
            facts: request.facts,
        }
    }

    /// Objections of hooks. A hook that allows is considered in [`PolicyEvaluation::conclude`].
    fn check_hook_opinions(&mut self) {
        for opinion in self.request.opinions {
            let because = opinion.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let (kind, reason) = match opinion.action {
                RuleAction::Deny => {
                    let text = format!("hook `{}` denied the call{because}", opinion.by);
                    (ObjectionKind::Deny, VerdictReason::new(Code::HookDenied, text))
                }
                RuleAction::Ask => {
                    let text = format!("hook `{}` requires approval{because}", opinion.by);
                    (ObjectionKind::Explicit, VerdictReason::new(Code::ApprovalUnavailable, text))
                }
                RuleAction::Allow => continue,
            };
            self.add_objection(kind, PolicyCheck::Hooks, reason);
        }
    }

    /// The strictest answer of the policy books.
    fn check_policy_books(&mut self) {
        let Some(answer) = self.compiled.books.strictest_decision(&self.call_fields()) else { return };
        let reason = |code: Code, text: &str| {
            VerdictReason::new(code, answer.message.unwrap_or(text)).with_rule(answer.reference.clone())
        };
        match answer.action {
            RuleAction::Deny => {
                let reason = reason(Code::DeniedByRule, "the policy book denies the call");
                self.add_objection(ObjectionKind::Deny, PolicyCheck::Book, reason);
            }
            RuleAction::Ask => {
                let kind = if answer.by_rule { ObjectionKind::Explicit } else { ObjectionKind::ByDefault };
                let reason = reason(Code::ApprovalUnavailable, "the policy book requires approval");
                let is_built_in = answer.reference.layer == Layer::Default.to_string();
                self.add_objection(kind, PolicyCheck::Book, reason);
                if is_built_in {
                    // The one built-in book asks about a workspace that contains the home directory.
                    self.set_remedy(ObjectionRemedy::Command("toolgate trust workspace"));
                }
            }
            RuleAction::Allow => self.grant = self.grant.or(Some(ToolWideGrant::Book)),
        }
    }

    /// Checks one effect that the tool declared.
    pub(crate) fn check_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Read { path, scope } => self.check_read(path, *scope, AccessOrigin::Tool),
            Effect::Write { path, kind } => self.check_write(path, *kind, AccessOrigin::Tool),
            Effect::Exec { command } => self.check_command(command),
            Effect::Fetch { url } => self.check_fetch(url),
            Effect::Search { query } => self.check_web_search(query),
            Effect::Delegate { agent } => self.check_agent(agent),
            Effect::Skill { name, args } => self.check_skill(name, args.as_deref()),
            Effect::Remote { server, tool } => self.check_remote_tool(server, tool),
            Effect::Ask => self.add_allow_reason("the tool only asks the user a question", None),
            Effect::State { name } if name == "mode" && self.compiled.managed.require_plan_mode => {
                let text = "managed settings require plan mode, so no call can leave it";
                let reason = VerdictReason::new(Code::DeniedByMode, text);
                self.add_objection(ObjectionKind::Deny, PolicyCheck::Mode, reason);
            }
            Effect::State { name } => {
                let is_harmless = self.request.tool.source == SourceId::Builtin
                    && !LOOSENING_STATE.contains(&name.as_str());
                if is_harmless {
                    self.add_allow_reason("the tool only changes toolgate's own state", None);
                } else {
                    self.ask_in_plan_mode(format_args!("the tool changes toolgate's own state `{name}`"));
                    self.require_grant(format_args!("the tool changes toolgate's own state `{name}`"));
                }
            }
            Effect::Opaque => {
                let name = &self.request.tool.name;
                self.ask_in_plan_mode(format_args!("the effects of tool `{name}` are unknown"));
                self.require_grant(format_args!("the effects of tool `{name}` are unknown"));
            }
        }
    }

    /// Only a rule for the whole tool covers the effect.
    fn require_grant(&mut self, what: fmt::Arguments<'_>) {
        match self.grant {
            Some(grant) => self.add_grant_reason(grant),
            None => {
                let rule = RuleSuggestion::new(self.request.tool.name.as_str());
                self.add_uncovered_objection(format!("{what}, and no rule allows it"), Some(rule));
            }
        }
    }

    /// A web search sends its query to a search service, and is covered by `WebSearch`.
    fn check_web_search(&mut self, query: &str) {
        let bare =
            self.compiled.find_allow(|allow| allow.tools.find_name("WebSearch")).map(ToolWideGrant::Rule);
        match self.grant.or(bare) {
            Some(grant) => self.add_grant_reason(grant),
            None => self.add_uncovered_objection(
                format!("no rule allows searching the web for `{query}`"),
                Some(RuleSuggestion::new("WebSearch")),
            ),
        }
    }

    /// The start of an agent, covered by `Agent(type)` or `Agent`.
    fn check_agent(&mut self, agent: &str) {
        let compiled = self.compiled;
        if let Some(id) = compiled.deny.agents.find(agent) {
            self.deny_by_rule(format!("agent `{agent}` is denied by a rule"), id);
        }
        if let Some(id) = compiled.ask.agents.find(agent) {
            self.ask_by_rule(format_args!("agent `{agent}`"), id);
        }
        if let Some(mode) = self.request.input.get("mode").and_then(Value::as_str) {
            self.check_agent_mode(mode);
        }
        let rule = compiled.find_allow(|allow| allow.agents.find(agent)).map(ToolWideGrant::Rule);
        let bare = compiled.find_allow(|allow| allow.tools.find_name("Agent")).map(ToolWideGrant::Rule);
        match rule.or(self.grant).or(bare) {
            Some(grant) => self.add_grant_reason(grant),
            None => self.add_uncovered_objection(
                format!("no rule allows starting agent `{agent}`"),
                Some(RuleSuggestion::new(syntax::write_rule("Agent", agent))),
            ),
        }
    }

    /// An agent may not get a less strict mode than the session has.
    fn check_agent_mode(&mut self, requested: &str) {
        let mode: Result<Mode, _> = requested.parse();
        let is_less_strict = match mode {
            Ok(Mode::Bypass) => self.mode != Mode::Bypass,
            Ok(Mode::AcceptEdits) => !matches!(self.mode, Mode::AcceptEdits | Mode::Bypass),
            Ok(Mode::Default | Mode::DontAsk | Mode::Plan | Mode::Deny) => self.mode == Mode::Plan,
            Err(_) => false,
        };
        if !is_less_strict {
            return;
        }
        let is_disabled = mode == Ok(Mode::Bypass) && self.compiled.managed.disable_bypass_permissions_mode;
        let text = format!(
            "the agent requests mode {requested}, which is less strict than the session's mode {}",
            self.mode
        );
        let kind = if is_disabled { ObjectionKind::Deny } else { ObjectionKind::Explicit };
        self.add_objection(kind, PolicyCheck::Mode, VerdictReason::new(Code::DeniedByMode, text));
        self.set_remedy(ObjectionRemedy::Setting(format!("let the agent request mode {}", self.mode)));
    }

    /// The load of a skill, covered by `Skill(name)` or, with arguments, by `Skill(name *)`.
    fn check_skill(&mut self, name: &str, args: Option<&str>) {
        let compiled = self.compiled;
        if let Some(id) = compiled.deny.skills.find_any_use(name, args) {
            self.deny_by_rule(format!("skill `{name}` is denied by a rule"), id);
        }
        if let Some(id) = compiled.ask.skills.find_any_use(name, args) {
            self.ask_by_rule(format_args!("skill `{name}`"), id);
        }
        let rule = compiled.find_allow(|allow| allow.skills.find(name, args)).map(ToolWideGrant::Rule);
        match rule.or(self.grant) {
            Some(grant) => self.add_grant_reason(grant),
            None => {
                let content = if args.is_some() { format!("{name} *") } else { name.to_owned() };
                let suggestion = RuleSuggestion::new(syntax::write_rule("Skill", &content));
                self.add_uncovered_objection(
                    format!("no rule allows loading skill `{name}`"),
                    Some(suggestion),
                );
            }
        }
    }
}
