//! The tool as a whole: rules on its name and fields, mode, hooks, the policy book; and effects that need only those.

use super::evaluation::{ObjectionKind, PolicyCheck, PolicyEvaluation, ToolWideGrant};
use crate::fold::fold_path;
use crate::mcp::{argument_paths, name_problem};
use crate::raw::RuleAction;
use crate::rule::ActionIndex;
use serde_json::Value;
use toolgate_proto::{Code, Effect, EntryKind, Mode, RiskLevel, SourceId, ToolIdentity, VerdictReason};

/// How a name is compared with rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolNameMatching {
    /// Only what is certainly meant: for allow rules.
    Strict,
    /// Whatever could be meant: for deny and ask rules.
    Broad,
}

/// The first rule of an action that names the tool.
pub(crate) fn find_tool_rule(
    index: &ActionIndex,
    tool: &ToolIdentity,
    reading: ToolNameMatching,
) -> Option<u32> {
    let by_name = index.tools.find(tool);
    let by_pair = match (reading, &tool.source) {
        (ToolNameMatching::Broad, _) => index.mcp.find_broadly(tool, |_| true),
        (ToolNameMatching::Strict, SourceId::Mcp { server, tool }) => index.mcp.find(server, tool, |_| true),
        (ToolNameMatching::Strict, _) => None,
    };
    by_name.into_iter().chain(by_pair).min()
}

/// State whose change loosens what may happen next.
const LOOSENING_STATE: [&str; 6] = ["mode", "settings", "config", "permissions", "trust", "hooks"];

impl PolicyEvaluation<'_> {
    /// Everything that is decided of the call as a whole.
    pub(crate) fn check_call(&mut self) {
        let (compiled, request) = (self.compiled, self.request);
        let tool = request.tool;
        if let Some(reason) = &compiled.unusable {
            self.add_objection(ObjectionKind::Deny, PolicyCheck::Usable, reason.clone());
        }
        if !compiled.disabled.is_empty() && compiled.disabled.iter().any(|name| tool.has_name(name)) {
            let text = format!("`{}` is switched off here", tool.name);
            self.add_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                VerdictReason::new(Code::DeniedByRule, text),
            );
        }
        if let Some(id) = find_tool_rule(&compiled.deny, tool, ToolNameMatching::Broad) {
            let text = format!("`{}` is denied", tool.name);
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if let Some(id) = compiled.deny.params.find(tool, request.input) {
            let text = format!("`{}` is denied with this input", tool.name);
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if self.mode == Mode::Deny {
            let reason = VerdictReason::new(Code::DeniedByMode, "mode deny lets nothing run");
            self.add_objection(ObjectionKind::Deny, PolicyCheck::Mode, reason);
        }
        self.check_hook_opinions();
        self.check_policy_books();
        if let Some(id) = find_tool_rule(&compiled.ask, tool, ToolNameMatching::Broad) {
            let text = "a rule wants a person to be asked".to_owned();
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
        if let Some(id) = compiled.ask.params.find(tool, request.input) {
            let text = "a rule wants a person to be asked about this input".to_owned();
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
        if tool.requires_interaction {
            let reason = VerdictReason::new(Code::NobodyToAsk, "the tool needs a person");
            self.add_objection(ObjectionKind::Explicit, PolicyCheck::AskRules, reason);
        }
        if let SourceId::Mcp { server, tool } = &request.tool.source
            && let Some(problem) = name_problem(server, tool)
        {
            self.add_objection(
                ObjectionKind::Deny,
                PolicyCheck::Risks,
                VerdictReason::new(Code::DeniedByRule, problem),
            );
        }
        if let Some(id) = find_tool_rule(&compiled.allow, tool, ToolNameMatching::Strict) {
            self.grant = Some(ToolWideGrant::Rule(id));
        }
        if request.intent.effects.is_empty() {
            self.check_no_effects();
        }
    }

    /// A call that touches nothing passes like a read inside the workspace, if the tool is toolgate's own or the
    /// embedding program's. The declaration of a plugin, a skill or another server is not believed: it comes from
    /// outside, and allowing it by default would let an author skip the question by leaving the effects out.
    fn check_no_effects(&mut self) {
        match self.request.tool.source {
            SourceId::Builtin | SourceId::Sdk => self.add_allow_reason("the tool touches nothing", None),
            SourceId::Mcp { .. } | SourceId::Plugin { .. } | SourceId::Skill { .. } => {
                self.require_grant("the tool does not say what it would do");
            }
        }
    }

    fn check_hook_opinions(&mut self) {
        for opinion in self.request.opinions {
            let because = opinion.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            match opinion.action {
                RuleAction::Deny => {
                    let text = format!("hook {} denies{because}", opinion.by);
                    self.add_objection(
                        ObjectionKind::Deny,
                        PolicyCheck::Hooks,
                        VerdictReason::new(Code::HookDenied, text),
                    );
                }
                RuleAction::Ask => {
                    let text = format!("hook {} wants a person to be asked{because}", opinion.by);
                    self.add_objection(
                        ObjectionKind::Explicit,
                        PolicyCheck::Hooks,
                        VerdictReason::new(Code::NobodyToAsk, text),
                    );
                }
                RuleAction::Allow => {}
            }
        }
    }

    fn check_policy_books(&mut self) {
        let Some(answer) = self.compiled.books.strictest_decision(self.request.tool, self.request.input)
        else {
            return;
        };
        let reason = |code: Code, text: &str| {
            VerdictReason::new(code, answer.message.unwrap_or(text)).with_rule(answer.reference.clone())
        };
        match answer.action {
            RuleAction::Deny => {
                self.add_objection(
                    ObjectionKind::Deny,
                    PolicyCheck::Book,
                    reason(Code::DeniedByRule, "the policy book denies it"),
                );
            }
            RuleAction::Ask => {
                let force = if answer.by_rule { ObjectionKind::Explicit } else { ObjectionKind::ByDefault };
                let text = "the policy book wants a person to be asked";
                self.add_objection(force, PolicyCheck::Book, reason(Code::NobodyToAsk, text));
            }
            RuleAction::Allow => self.grant = self.grant.or(Some(ToolWideGrant::Book)),
        }
    }

    /// One effect that the tool itself named.
    pub(crate) fn check_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Read { path, scope } => self.check_read(path, *scope, super::paths::AccessOrigin::Tool),
            Effect::Write { path, kind } => self.check_write(path, *kind, super::paths::AccessOrigin::Tool),
            Effect::Exec { command } => self.check_command(command),
            Effect::Fetch { url } => self.check_fetch(url),
            Effect::Search { query } => {
                let bare = self.compiled.allow.tools.find_name("WebSearch").map(ToolWideGrant::Rule);
                match self.grant.or(bare) {
                    Some(grant) => self.add_grant_reason(grant),
                    None => self.add_uncovered_objection(
                        format!("no rule allows to search the web for `{query}`"),
                        Some("WebSearch".to_owned()),
                    ),
                }
            }
            Effect::Delegate { agent } => self.check_agent(agent),
            Effect::Skill { name, args } => self.check_skill(name, args.as_deref()),
            Effect::Remote { server, tool } => self.check_remote_tool(server, tool),
            Effect::Ask => self.add_allow_reason("the tool only asks the person", None),
            Effect::State { name } => {
                let harmless = self.request.tool.source == SourceId::Builtin
                    && !LOOSENING_STATE.contains(&name.as_str());
                if harmless {
                    self.add_allow_reason("only toolgate's own state changes", None);
                } else {
                    self.require_grant("the tool changes state that toolgate keeps");
                }
            }
            Effect::Opaque => {
                self.ask_in_plan_mode("the tool cannot say what it would do");
                self.require_grant("the tool cannot say what it would do");
            }
        }
    }

    /// Only a rule for the whole tool covers it.
    fn require_grant(&mut self, text: &str) {
        match self.grant {
            Some(grant) => self.add_grant_reason(grant),
            None => {
                let name = self.request.tool.name.to_string();
                self.add_uncovered_objection(format!("{text}, and no rule allows it"), Some(name));
            }
        }
    }

    /// In mode plan every change asks, whatever rules and hooks say.
    pub(crate) fn ask_in_plan_mode(&mut self, what: &str) {
        if self.mode == Mode::Plan {
            let text = format!("{what}, and mode plan only reads");
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Mode,
                VerdictReason::new(Code::DeniedByMode, text),
            );
        }
    }

    fn check_agent(&mut self, agent: &str) {
        let compiled = self.compiled;
        if let Some(id) = compiled.deny.agents.find(agent) {
            let text = format!("agent `{agent}` is denied");
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if let Some(id) = compiled.ask.agents.find(agent) {
            let text = format!("a rule wants a person to be asked about agent `{agent}`");
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
        if let Some(mode) = self.request.input.get("mode").and_then(Value::as_str) {
            self.check_agent_mode(mode);
        }
        let rule = compiled.allow.agents.find(agent).map(ToolWideGrant::Rule);
        match rule.or(self.grant).or(compiled.allow.tools.find_name("Agent").map(ToolWideGrant::Rule)) {
            Some(grant) => self.add_grant_reason(grant),
            None => self.add_uncovered_objection(
                format!("no rule allows agent `{agent}`"),
                Some(crate::rule::grammar::write_rule("Agent", agent)),
            ),
        }
    }

    /// An agent gets no looser mode than the session has.
    fn check_agent_mode(&mut self, mode: &str) {
        let wanted: Result<Mode, _> = mode.parse();
        let looser = match wanted {
            Ok(Mode::Bypass) => self.mode != Mode::Bypass,
            Ok(Mode::AcceptEdits) => !matches!(self.mode, Mode::AcceptEdits | Mode::Bypass),
            Ok(Mode::Default | Mode::DontAsk | Mode::Plan | Mode::Deny) => self.mode == Mode::Plan,
            Err(_) => false,
        };
        if !looser {
            return;
        }
        let locked = wanted == Ok(Mode::Bypass) && self.compiled.managed.disable_bypass_permissions_mode;
        let text = format!("the agent would run in mode {mode}, which is looser than the session's");
        let force = if locked { ObjectionKind::Deny } else { ObjectionKind::Explicit };
        self.add_objection(force, PolicyCheck::Mode, VerdictReason::new(Code::DeniedByMode, text));
    }

    fn check_skill(&mut self, name: &str, args: Option<&str>) {
        let compiled = self.compiled;
        if let Some(id) = compiled.deny.skills.find_any_use(name, args) {
            let text = format!("skill `{name}` is denied");
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if let Some(id) = compiled.ask.skills.find_any_use(name, args) {
            let text = format!("a rule wants a person to be asked about skill `{name}`");
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
        let rule = compiled.allow.skills.find(name, args).map(ToolWideGrant::Rule);
        match rule.or(self.grant) {
            Some(grant) => self.add_grant_reason(grant),
            None => {
                let content = if args.is_some() { format!("{name} *") } else { name.to_owned() };
                let suggestion = crate::rule::grammar::write_rule("Skill", &content);
                self.add_uncovered_objection(format!("no rule allows skill `{name}`"), Some(suggestion));
            }
        }
    }

    fn check_remote_tool(&mut self, server: &str, tool: &str) {
        let compiled = self.compiled;
        if let Some(id) = compiled.deny.mcp.find_possible(server, tool, |_| true) {
            let text = format!("`{tool}` of server `{server}` is denied");
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if let Some(id) = compiled.ask.mcp.find_possible(server, tool, |_| true) {
            let text = format!("a rule wants a person to be asked about `{tool}` of server `{server}`");
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
        self.ask_in_plan_mode("another server may change anything");
        if !self.request.survey.ignores_input_paths {
            self.check_remote_paths();
        }
        let rule = compiled.allow.mcp.find(server, tool, |_| true).map(ToolWideGrant::Rule);
        match rule.or(self.grant) {
            Some(grant) => self.add_grant_reason(grant),
            None => self.add_uncovered_objection(
                format!("no rule allows `{tool}` of server `{server}`"),
                Some(crate::mcp::joined_name(server, tool)),
            ),
        }
    }

    /// Another server does what it likes with a path, so a path among the arguments is judged as if it were read and
    /// written: by its spelling, because the server may see another file system, and by where it leads on this one.
    fn check_remote_paths(&mut self) {
        for path in argument_paths(self.request.input, self.request.workspace) {
            let spelled = path.lexical().to_string();
            let fact = self.request.facts.get(&path).filter(|fact| fact.problem.is_none());
            let led: Vec<String> = fact.map_or_else(Vec::new, |fact| {
                std::iter::once(&fact.real)
                    .chain(&fact.links)
                    .map(|form| form.lexical().to_string())
                    .collect()
            });
            let shared = fact.is_some_and(|fact| fact.hard_linked && fact.kind == EntryKind::File);
            self.check_remote_path(&spelled);
            for form in led.iter().filter(|form| **form != spelled) {
                self.check_remote_path(form);
            }
            if shared {
                let text = format!("`{path}` is the same file as another name somewhere else");
                self.add_warning("hard_link", RiskLevel::Medium, text.clone());
                self.add_objection(
                    ObjectionKind::ByDefault,
                    PolicyCheck::Risks,
                    VerdictReason::new(Code::NobodyToAsk, text),
                );
            }
        }
    }

    fn check_remote_path(&mut self, text: &str) {
        let folded = fold_path(text);
        let compiled = self.compiled;
        let held = |index: &ActionIndex| {
            let rules = [&index.reads, &index.edits].into_iter();
            let bare = ["Read", "Edit"].into_iter().filter_map(|name| index.tools.find_name(name));
            rules.filter_map(|rules| rules.find(&folded, &self.folded)).chain(bare).min()
        };
        let (denied, asked) = (held(&compiled.deny), held(&compiled.ask));
        if let Some(id) = denied {
            let text = format!("`{text}` is denied");
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
            return;
        }
        if let Some(id) = asked {
            let text = format!("a rule wants a person to be asked about `{text}`");
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
        if let Some(why) = compiled.protection.protected_reason(&folded, self.request.workspace) {
            let text = format!("another server may write `{text}`: {why}");
            self.add_objection(
                ObjectionKind::Explicit,
                PolicyCheck::Protected,
                VerdictReason::new(Code::ProtectedPath, text),
            );
        }
    }
}
