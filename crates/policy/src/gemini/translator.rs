//! Collects translated rules and writes them as settings.

use super::command_rules::GeminiCommandRules;
use super::rule_subject::{GeminiRuleSubject, rule_subjects};
use super::{GeminiDecision, GeminiMode, GeminiRule, RuleTranslation, TranslationNote};
use crate::raw::RuleAction;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

/// The highest priority that the Gemini CLI accepts.
const MAX_PRIORITY: u16 = 999;

/// Tools of toolgate that do what another one does: a denial of that one must deny these as well.
const RELATED_TOOLS: &[(&str, &[&str])] = &[("Edit", &["MultiEdit", "NotebookEdit"])];

/// Translates rules in descending priority.
#[derive(Debug, Default)]
pub(super) struct GeminiTranslator {
    /// What changed its meaning so far.
    notes: Vec<TranslationNote>,
    /// `permissions.allow`.
    allow: Vec<String>,
    /// `permissions.ask`.
    ask: Vec<String>,
    /// `permissions.deny`.
    deny: Vec<String>,
    /// The rules of the policy book.
    book: Vec<Value>,
    /// Tools for which a rule without conditions was seen: no weaker rule applies to them.
    decided: BTreeSet<String>,
    /// Rules for command lines.
    commands: GeminiCommandRules,
    /// Permission rules for MCP tools, with their actions and lines.
    servers: Vec<(String, RuleAction, usize)>,
    /// The lines of ask rules that need no rule here, because toolgate asks by default.
    default_asks: Vec<usize>,
}

impl GeminiTranslator {
    /// Adds a note, unless the same one exists: a rule for many tools would repeat it.
    fn add_note(&mut self, line: usize, message: impl Into<String>) {
        let note = TranslationNote { line, message: message.into() };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a rule that is weaker than all rules added before.
    pub(super) fn add_rule(&mut self, rule: &GeminiRule) -> Result<(), TranslationNote> {
        let refuse = |message: &str| TranslationNote { line: rule.line, message: message.to_owned() };
        if rule.priority > MAX_PRIORITY {
            return Err(refuse("the priority must be between 0 and 999"));
        }
        let matches_command = rule.command_prefix.is_some() || rule.command_regex.is_some();
        if matches_command && rule.args_pattern.is_some()
            || (rule.command_prefix.is_some() && rule.command_regex.is_some())
        {
            return Err(refuse("`commandPrefix`, `commandRegex` and `argsPattern` exclude each other"));
        }
        let subjects = rule_subjects(rule).map_err(refuse)?;
        if matches_command && !subjects.iter().all(|subject| matches!(subject, GeminiRuleSubject::Shell)) {
            return Err(refuse("`commandPrefix` and `commandRegex` are for `run_shell_command` only"));
        }
        if !self.check_conditions(rule) {
            return Ok(());
        }
        for subject in subjects {
            match subject {
                GeminiRuleSubject::Shell => {
                    let mut notes = Vec::new();
                    let added = self.commands.add(rule, &mut self.book, &mut notes);
                    notes.into_iter().for_each(|message| self.add_note(rule.line, message));
                    added.map_err(|message| refuse(&message))?;
                }
                GeminiRuleSubject::Tool(name) => self.add_tool_rule(rule, name)?,
                GeminiRuleSubject::Unknown(name) => self.add_tool_rule(rule, &name)?,
                GeminiRuleSubject::Server(pattern) => self.add_server_rule(rule, pattern)?,
            }
        }
        Ok(())
    }

    /// Conditions that toolgate's rules do not have: with one, a deny or ask rule applies always, and an allow rule is
    /// omitted. Returns whether the rule applies.
    fn check_conditions(&mut self, rule: &GeminiRule) -> bool {
        let usual_modes = [GeminiMode::Default, GeminiMode::AutoEdit, GeminiMode::Yolo];
        // Mode plan asks about every change anyway, so a rule that excludes only that mode keeps its meaning.
        let applies_in_all_modes =
            rule.modes.is_empty() || usual_modes.iter().all(|mode| rule.modes.contains(mode));
        let conditions = [
            (!applies_in_all_modes, "only in some modes"),
            (rule.interactive.is_some(), "only in sessions with or without a user"),
            (rule.subagent.is_some(), "only to calls of one agent"),
            (rule.tool_annotations.is_some(), "only to tools with some annotations"),
        ];
        let mut applies = true;
        for (_, condition) in conditions.into_iter().filter(|(is_set, _)| *is_set) {
            if rule.decision == GeminiDecision::Allow {
                applies = false;
                let message = format!("omitted: it applies {condition}, which toolgate cannot express");
                self.add_note(rule.line, message);
            } else {
                self.add_note(rule.line, format!("stricter: it applied {condition}, and now applies always"));
            }
        }
        if rule.allow_redirection == Some(true) && rule.decision == GeminiDecision::Allow {
            self.add_note(rule.line, "stricter: a redirect needs a rule for the file that it writes");
        }
        applies
    }

    /// Adds a rule for a tool that has no command lines. A denial or question goes into the policy book, which can have
    /// conditions on fields.
    fn add_tool_rule(&mut self, rule: &GeminiRule, name: &str) -> Result<(), TranslationNote> {
        if self.decided.contains(name) {
            self.add_note(rule.line, format!("omitted for `{name}`: a stronger rule always decides first"));
            return Ok(());
        }
        let condition = match &rule.args_pattern {
            None => None,
            Some(pattern) => match (field_condition(pattern), rule.decision) {
                (Some(condition), _) => Some(condition),
                (None, GeminiDecision::Deny) => {
                    let message = format!(
                        "`{pattern}` is not a condition on one field, so the denial would be lost; write it for one field"
                    );
                    return Err(TranslationNote { line: rule.line, message });
                }
                (None, GeminiDecision::AskUser) => {
                    let message =
                        format!("stricter: `{pattern}` is not a condition on one field; every use asks");
                    self.add_note(rule.line, message);
                    None
                }
                (None, GeminiDecision::Allow) => {
                    let message = format!("omitted: `{pattern}` is not a condition on one field");
                    self.add_note(rule.line, message);
                    return Ok(());
                }
            },
        };
        match rule.decision {
            GeminiDecision::Allow if condition.is_some() => {
                self.add_note(rule.line, "omitted: toolgate cannot allow a tool for some inputs only");
            }
            GeminiDecision::Allow => match tool_grant(name) {
                GeminiToolGrant::Rule(text) => self.allow.push(text.to_owned()),
                GeminiToolGrant::Already => {}
                GeminiToolGrant::Never => {
                    self.add_note(rule.line, format!("omitted: toolgate has no tool `{name}`"))
                }
            },
            GeminiDecision::AskUser | GeminiDecision::Deny => {
                let related = RELATED_TOOLS
                    .iter()
                    .find(|(tool, _)| *tool == name)
                    .map_or(&[][..], |(_, related)| related);
                for tool in std::iter::once(name).chain(related.iter().copied()) {
                    self.book.push(book_rule(rule, tool, condition.as_ref()));
                }
            }
        }
        if condition.is_none() {
            self.decided.insert(name.to_owned());
        }
        Ok(())
    }

    /// Adds a rule for tools of MCP servers. A stronger allow rule for one tool of a server is lost if a weaker rule denies
    /// the server, because here a deny beats an allow.
    fn add_server_rule(&mut self, rule: &GeminiRule, pattern: String) -> Result<(), TranslationNote> {
        let action = rule.decision.action();
        if rule.args_pattern.is_some() {
            return self.add_server_rule_with_condition(rule, pattern);
        }
        if self.servers.iter().any(|(stronger, _, _)| covers(stronger, &pattern)) {
            let message = format!("omitted for `{pattern}`: a stronger rule always decides first");
            self.add_note(rule.line, message);
            return Ok(());
        }
        let overruled: Vec<usize> = self
            .servers
            .iter()
            .filter(|(stronger, other, _)| *other < action && covers(&pattern, stronger))
            .map(|(_, _, line)| *line)
            .collect();
        // toolgate asks unless a rule allows the call, so an ask rule for the rest of a server is not needed.
        if action == RuleAction::Ask && !overruled.is_empty() {
            self.default_asks.push(rule.line);
            self.servers.push((pattern, action, rule.line));
            return Ok(());
        }
        for line in overruled {
            self.add_note(line, format!("stricter: the weaker rule on line {} takes precedence", rule.line));
        }
        match rule.decision {
            GeminiDecision::Allow if pattern == "mcp__*" => {
                self.add_note(rule.line, "omitted: no rule may allow every tool of every server");
            }
            GeminiDecision::Allow => self.allow.push(pattern.clone()),
            GeminiDecision::AskUser => self.ask.push(pattern.clone()),
            GeminiDecision::Deny => self.deny.push(pattern.clone()),
        }
        self.servers.push((pattern, action, rule.line));
        Ok(())
    }

    /// A rule for some inputs of MCP tools, which permission rules cannot express.
    fn add_server_rule_with_condition(
        &mut self,
        rule: &GeminiRule,
        pattern: String,
    ) -> Result<(), TranslationNote> {
        match rule.decision {
            GeminiDecision::Deny => {
                let message =
                    "`argsPattern` cannot be translated for an MCP tool, so the denial would be lost";
                return Err(TranslationNote { line: rule.line, message: message.to_owned() });
            }
            GeminiDecision::AskUser => {
                self.add_note(rule.line, "stricter: `argsPattern` is dropped for MCP tools; every use asks");
                self.ask.push(pattern);
            }
            GeminiDecision::Allow => {
                self.add_note(rule.line, "omitted: toolgate cannot allow an MCP tool for some inputs only");
            }
        }
        Ok(())
    }

    /// Writes the settings.
    pub(super) fn finish(mut self) -> RuleTranslation {
        self.default_asks.extend(self.commands.default_ask_line());
        let mut notes = Vec::new();
        std::mem::take(&mut self.commands).finish(&mut self.allow, &mut self.ask, &mut self.deny, &mut notes);
        notes.into_iter().for_each(|(line, message)| self.add_note(line, message));
        let mut permissions = Map::new();
        for (name, mut list) in [
            ("allow", std::mem::take(&mut self.allow)),
            ("ask", std::mem::take(&mut self.ask)),
            ("deny", std::mem::take(&mut self.deny)),
        ] {
            let mut seen = HashSet::new();
            list.retain(|rule| seen.insert(rule.clone()));
            if !list.is_empty() {
                permissions.insert(name.to_owned(), json!(list));
            }
        }
        for line in std::mem::take(&mut self.default_asks) {
            permissions.insert("disableBypassPermissionsMode".to_owned(), json!("disable"));
            self.add_note(line, "stricter: mode bypass is disabled, because it would skip this question");
        }
        let mut settings = Map::new();
        settings.insert("permissions".to_owned(), Value::Object(permissions));
        if !self.book.is_empty() {
            settings.insert("policy".to_owned(), json!({ "rules": self.book }));
        }
        self.notes.sort_by_key(|note| note.line);
        RuleTranslation { settings: Value::Object(settings), notes: self.notes }
    }
}

/// Whether one rule for MCP tools matches everything that another one matches.
fn covers(wide: &str, narrow: &str) -> bool {
    wide == "mcp__*" || wide == narrow || narrow.strip_prefix(wide).is_some_and(|rest| rest.starts_with("__"))
}

/// How every use of a tool is allowed.
enum GeminiToolGrant {
    /// By this permission rule.
    Rule(&'static str),
    /// It needs no rule.
    Already,
    /// toolgate does not have the tool.
    Never,
}

/// How every use of a tool of toolgate is allowed.
fn tool_grant(tool: &str) -> GeminiToolGrant {
    match tool {
        // The file tools of the Gemini CLI are limited to the workspace, and so is this rule.
        "Write" | "Edit" => GeminiToolGrant::Rule("Edit(**)"),
        "WebFetch" => GeminiToolGrant::Rule("WebFetch"),
        "WebSearch" => GeminiToolGrant::Rule("WebSearch"),
        "Agent" => GeminiToolGrant::Rule("Agent"),
        "Skill" => GeminiToolGrant::Rule("Skill"),
        "Read" | "read_many_files" | "ls" | "Glob" | "Grep" | "TodoWrite" | "AskUserQuestion" | "memory"
        | "EnterPlanMode" | "ExitPlanMode" => GeminiToolGrant::Already,
        _ => GeminiToolGrant::Never,
    }
}

/// A rule of the policy book.
fn book_rule(rule: &GeminiRule, tool: &str, condition: Option<&Value>) -> Value {
    let mut out = Map::new();
    out.insert("tool".to_owned(), json!(tool));
    out.insert("action".to_owned(), json!(rule.decision.action().to_string()));
    if let Some(message) = &rule.deny_message {
        out.insert("message".to_owned(), json!(message));
    }
    if let Some(condition) = condition {
        out.insert("conditions".to_owned(), json!([condition]));
    }
    Value::Object(out)
}

/// The condition of a policy book for a pattern over the whole input that is about one text field: `"file_path":"src/`.
fn field_condition(pattern: &str) -> Option<Value> {
    let (field, rest) = pattern.strip_prefix('"')?.split_once("\":\"")?;
    if !field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let (rest, end) = match rest.strip_suffix('"') {
        Some(rest) => (rest, "$"),
        None => (rest, ""),
    };
    let value = format!("^(?:{rest}){end}");
    let is_usable = !rest.contains('"') && regex::Regex::new(&value).is_ok();
    is_usable.then(|| json!({ "param": field, "operator": "matches", "value": value }))
}
