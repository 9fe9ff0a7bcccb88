//! Rules of the Gemini CLI's policy engine, turned into settings.
//!
//! There the rule of highest priority wins, whatever it decides; here a deny beats an ask beats an allow.
//! [`translate`] walks the rules of each tool from the highest priority down, leaves out what a stronger rule never
//! lets come into play, and writes the rest into the two books.
//! Where the two orders cannot agree, the answer becomes stricter, never looser, and a [`TranslationNote`] says so; where even
//! that is impossible the rule is refused, and so is the whole file: half a policy is none.

mod command_rules;

use crate::raw::RuleAction;
use crate::rule::grammar;
use command_rules::GeminiCommandRules;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One `[[rule]]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GeminiRule {
    /// The tools; absent where `mcpName` means a whole server.
    #[serde(default, alias = "tool_name")]
    pub tool_name: Option<StringOrList>,
    /// Only for calls of this agent.
    #[serde(default)]
    pub subagent: Option<String>,
    /// The MCP server.
    #[serde(default, alias = "mcp_name")]
    pub mcp_name: Option<String>,
    /// Only for tools that say this of themselves.
    #[serde(default, alias = "tool_annotations")]
    pub tool_annotations: Option<Map<String, Value>>,
    /// A regular expression over the input as JSON.
    #[serde(default, alias = "args_pattern")]
    pub args_pattern: Option<String>,
    /// What a command begins with.
    #[serde(default, alias = "command_prefix")]
    pub command_prefix: Option<StringOrList>,
    /// A regular expression that a command begins with.
    #[serde(default, alias = "command_regex")]
    pub command_regex: Option<String>,
    /// `allow`, `ask_user` or `deny`.
    pub decision: GeminiDecision,
    /// From 0 to 999; the highest wins.
    pub priority: u16,
    /// The approval modes in which it counts; none means all.
    #[serde(default)]
    pub modes: Vec<GeminiMode>,
    /// Only where a person sits there, or only where none does.
    #[serde(default)]
    pub interactive: Option<bool>,
    /// Redirects are allowed with the command.
    #[serde(default, alias = "allow_redirection")]
    pub allow_redirection: Option<bool>,
    /// What a person is told.
    #[serde(default, alias = "deny_message")]
    pub deny_message: Option<String>,
    /// Where the rule stands, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// One text or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum StringOrList {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl StringOrList {
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeminiDecision {
    /// Let it pass.
    Allow,
    /// Ask.
    #[default]
    AskUser,
    /// Refuse.
    Deny,
}

impl GeminiDecision {
    fn action(self) -> RuleAction {
        match self {
            Self::Allow => RuleAction::Allow,
            Self::AskUser => RuleAction::Ask,
            Self::Deny => RuleAction::Deny,
        }
    }
}

/// An approval mode of the Gemini CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum GeminiMode {
    /// Changes ask.
    #[serde(rename = "default")]
    Default,
    /// Changes of files pass.
    #[serde(rename = "autoEdit", alias = "auto_edit")]
    AutoEdit,
    /// Everything passes.
    #[serde(rename = "yolo")]
    Yolo,
    /// Only reads.
    #[serde(rename = "plan")]
    Plan,
}

/// What the rules come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeminiTranslation {
    /// Settings, ready to be written to a file.
    pub settings: Value,
    /// What does not mean quite the same.
    pub notes: Vec<TranslationNote>,
}

/// Where the settings are stricter than the rule they come from, or leave it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TranslationNote {
    /// The line of the rule.
    pub line: usize,
    /// What becomes of it, lower case, without a full stop.
    pub message: String,
}

/// Turns rules into settings. An error names the line of a rule that cannot be kept without loosening it.
pub fn translate(rules: &[GeminiRule]) -> Result<GeminiTranslation, TranslationNote> {
    let mut sorted: Vec<&GeminiRule> = rules.iter().collect();
    // Among equals the one that stands first wins; the sort keeps their order.
    sorted.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    let mut desk = GeminiTranslator::default();
    for rule in sorted {
        desk.add_rule(rule)?;
    }
    Ok(desk.finish())
}

/// The built-in tools of the Gemini CLI, and ours for the same purpose.
const TOOL_EQUIVALENTS: &[(&str, &str)] = &[
    ("read_file", "Read"),
    ("read_many_files", "read_many_files"),
    ("list_directory", "ls"),
    ("glob", "Glob"),
    ("grep_search", "Grep"),
    ("search_file_content", "Grep"),
    ("write_file", "Write"),
    ("replace", "Edit"),
    ("web_fetch", "WebFetch"),
    ("google_web_search", "WebSearch"),
    ("invoke_agent", "Agent"),
    ("codebase_investigator", "Agent"),
    ("activate_skill", "Skill"),
    ("write_todos", "TodoWrite"),
    ("ask_user", "AskUserQuestion"),
    ("save_memory", "memory"),
    ("enter_plan_mode", "EnterPlanMode"),
    ("exit_plan_mode", "ExitPlanMode"),
];

/// Tools of ours that do what several of theirs do: what holds one of them back must hold these back too.
const RELATED_TOOLS: &[(&str, &[&str])] = &[("Edit", &["MultiEdit", "NotebookEdit"])];

#[derive(Debug, Default)]
struct GeminiTranslator {
    notes: Vec<TranslationNote>,
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    book: Vec<Value>,
    /// Tools of which every use is decided: nothing below counts.
    closed: std::collections::BTreeSet<String>,
    commands: GeminiCommandRules,
    servers: Vec<(String, RuleAction, usize)>,
    /// The lines of rules whose questions are left to the default.
    questions: Vec<usize>,
}

/// What a rule is about, once its tool is known.
enum GeminiRuleSubject {
    /// Commands.
    Shell,
    /// A tool of ours.
    Tool(&'static str),
    /// A tool that we do not know: an agent, an extension's.
    Unknown(String),
    /// Tools of MCP servers, as a permission rule names them.
    Server(String),
}

impl GeminiTranslator {
    fn add_note(&mut self, line: usize, message: impl Into<String>) {
        let note = TranslationNote { line, message: message.into() };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn add_rule(&mut self, rule: &GeminiRule) -> Result<(), TranslationNote> {
        let refused = |message: &str| TranslationNote { line: rule.line, message: message.to_owned() };
        if rule.priority > 999 {
            return Err(refused("the priority must be between 0 and 999"));
        }
        let shaped = rule.command_prefix.is_some() || rule.command_regex.is_some();
        if shaped && rule.args_pattern.is_some()
            || (rule.command_prefix.is_some() && rule.command_regex.is_some())
        {
            return Err(refused("`commandPrefix`, `commandRegex` and `argsPattern` exclude each other"));
        }
        let subjects = rule_subjects(rule).map_err(refused)?;
        if shaped && !subjects.iter().all(|subject| matches!(subject, GeminiRuleSubject::Shell)) {
            return Err(refused("`commandPrefix` and `commandRegex` are for `run_shell_command` only"));
        }
        if !self.check_conditions(rule) {
            return Ok(());
        }
        for subject in subjects {
            match subject {
                GeminiRuleSubject::Shell => {
                    let (commands, mut notes) = (&mut self.commands, Vec::new());
                    let kept = commands.add(rule, &mut self.book, &mut notes);
                    notes.into_iter().for_each(|message| self.add_note(rule.line, message));
                    kept.map_err(|message| refused(&message))?;
                }
                GeminiRuleSubject::Tool(name) => self.add_tool_rule(rule, name)?,
                GeminiRuleSubject::Unknown(name) => self.add_tool_rule(rule, &name)?,
                GeminiRuleSubject::Server(pattern) => self.add_server_rule(rule, pattern)?,
            }
        }
        Ok(())
    }

    /// Conditions that we do not have: a rule that holds back counts always, one that allows never.
    fn check_conditions(&mut self, rule: &GeminiRule) -> bool {
        let wide = [GeminiMode::Default, GeminiMode::AutoEdit, GeminiMode::Yolo];
        // Mode plan asks about every change, whatever is allowed, so a rule that leaves it out loses nothing.
        let modes = rule.modes.is_empty() || wide.iter().all(|mode| rule.modes.contains(mode));
        let limits = [
            (!modes, "only in some modes"),
            (rule.interactive.is_some(), "only with or without a person there"),
            (rule.subagent.is_some(), "only for one agent"),
            (rule.tool_annotations.is_some(), "only for tools that say something of themselves"),
        ];
        let mut counts = true;
        for (_, limit) in limits.into_iter().filter(|(limited, _)| *limited) {
            if rule.decision == GeminiDecision::Allow {
                counts = false;
                self.add_note(rule.line, format!("left out: it allows {limit}, which cannot be said here"));
            } else {
                self.add_note(rule.line, format!("stricter: it was {limit}, and now counts always"));
            }
        }
        if rule.allow_redirection == Some(true) && rule.decision == GeminiDecision::Allow {
            self.add_note(rule.line, "stricter: a redirect is judged as a change of the file it names");
        }
        counts
    }

    fn add_tool_rule(&mut self, rule: &GeminiRule, name: &str) -> Result<(), TranslationNote> {
        if self.closed.contains(name) {
            self.add_note(
                rule.line,
                format!("left out for `{name}`: a stronger rule always decides before it"),
            );
            return Ok(());
        }
        let condition = match &rule.args_pattern {
            None => None,
            Some(pattern) => match field_condition(pattern) {
                Some(condition) => Some(condition),
                None if rule.decision == GeminiDecision::Deny => {
                    let message =
                        format!("`{pattern}` cannot be said of one field, so the denial would be lost");
                    return Err(TranslationNote { line: rule.line, message });
                }
                None if rule.decision == GeminiDecision::AskUser => {
                    self.add_note(
                        rule.line,
                        format!("stricter: `{pattern}` cannot be said of one field; every use asks"),
                    );
                    None
                }
                None => {
                    self.add_note(rule.line, format!("left out: `{pattern}` cannot be said of one field"));
                    return Ok(());
                }
            },
        };
        let closes = condition.is_none();
        match rule.decision {
            GeminiDecision::Allow if !closes => {
                self.add_note(
                    rule.line,
                    "left out: an allow for some inputs of the tool cannot be said here",
                );
            }
            GeminiDecision::Allow => match tool_grant(name) {
                GeminiToolGrant::Rule(text) => self.allow.push(text.to_owned()),
                GeminiToolGrant::Already => {}
                GeminiToolGrant::Never => {
                    self.add_note(rule.line, format!("left out: `{name}` is not known here"))
                }
            },
            GeminiDecision::AskUser | GeminiDecision::Deny => {
                let others = RELATED_TOOLS
                    .iter()
                    .find(|(tool, _)| *tool == name)
                    .map_or(&[][..], |(_, others)| others);
                for tool in std::iter::once(name).chain(others.iter().copied()) {
                    self.book.push(book_rule(rule, tool, condition.as_ref()));
                }
            }
        }
        if closes {
            self.closed.insert(name.to_owned());
        }
        Ok(())
    }

    fn add_server_rule(&mut self, rule: &GeminiRule, pattern: String) -> Result<(), TranslationNote> {
        let action = rule.decision.action();
        if rule.args_pattern.is_some() {
            return match rule.decision {
                GeminiDecision::Deny => {
                    let message = "a pattern on the input of an MCP tool cannot be kept".to_owned();
                    Err(TranslationNote { line: rule.line, message })
                }
                GeminiDecision::AskUser => {
                    self.add_note(rule.line, "stricter: the pattern on the input is dropped; every use asks");
                    self.ask.push(pattern);
                    Ok(())
                }
                GeminiDecision::Allow => {
                    self.add_note(rule.line, "left out: it allows only some inputs of an MCP tool");
                    Ok(())
                }
            };
        }
        if self.servers.iter().any(|(stronger, _, _)| covers(stronger, &pattern)) {
            self.add_note(
                rule.line,
                format!("left out for `{pattern}`: a stronger rule always decides before it"),
            );
            return Ok(());
        }
        let overruled: Vec<usize> = self
            .servers
            .iter()
            .filter(|(stronger, other, _)| *other < action && covers(&pattern, stronger))
            .map(|(_, _, line)| *line)
            .collect();
        // Nothing is allowed here unless a rule says so: a question for everything else needs no rule.
        if action == RuleAction::Ask && !overruled.is_empty() {
            self.questions.push(rule.line);
            self.servers.push((pattern, action, rule.line));
            return Ok(());
        }
        for line in overruled {
            self.add_note(line, format!("stricter: the weaker rule on line {} comes first here", rule.line));
        }
        match rule.decision {
            GeminiDecision::Allow if pattern == "mcp__*" => {
                self.add_note(rule.line, "left out: no rule may allow every tool of every server");
            }
            GeminiDecision::Allow => self.allow.push(pattern.clone()),
            GeminiDecision::AskUser => self.ask.push(pattern.clone()),
            GeminiDecision::Deny => self.deny.push(pattern.clone()),
        }
        self.servers.push((pattern, action, rule.line));
        Ok(())
    }

    fn finish(mut self) -> GeminiTranslation {
        self.questions.extend(self.commands.default_ask_line());
        let mut notes = Vec::new();
        std::mem::take(&mut self.commands).finish(&mut self.allow, &mut self.ask, &mut self.deny, &mut notes);
        notes.into_iter().for_each(|(line, message)| self.add_note(line, message));
        let mut permissions = Map::new();
        for (name, mut list) in [
            ("allow", std::mem::take(&mut self.allow)),
            ("ask", std::mem::take(&mut self.ask)),
            ("deny", std::mem::take(&mut self.deny)),
        ] {
            let mut seen = std::collections::HashSet::new();
            list.retain(|rule| seen.insert(rule.clone()));
            if !list.is_empty() {
                permissions.insert(name.to_owned(), json!(list));
            }
        }
        for line in std::mem::take(&mut self.questions) {
            permissions.insert("disableBypassPermissionsMode".to_owned(), json!("disable"));
            self.add_note(line, "stricter: mode bypass is switched off, because it would skip the question");
        }
        let mut settings = Map::new();
        settings.insert("permissions".to_owned(), Value::Object(permissions));
        if !self.book.is_empty() {
            settings.insert("policy".to_owned(), json!({ "rules": self.book }));
        }
        self.notes.sort_by_key(|note| note.line);
        GeminiTranslation { settings: Value::Object(settings), notes: self.notes }
    }
}

/// Which tools a rule is about.
fn rule_subjects(rule: &GeminiRule) -> Result<Vec<GeminiRuleSubject>, &'static str> {
    let names = rule.tool_name.as_ref().map(StringOrList::texts);
    if let Some(server) = &rule.mcp_name {
        let server = if server == "*" { "*".to_owned() } else { normalise_server(server) };
        let names = names.unwrap_or_else(|| vec!["*"]);
        let pattern = |name: &&str| match (server.as_str(), *name) {
            ("*", "*") => "mcp__*".to_owned(),
            (server, "*") => format!("mcp__{server}"),
            (server, tool) => format!("mcp__{server}__{tool}"),
        };
        return Ok(names.iter().map(|name| GeminiRuleSubject::Server(pattern(name))).collect());
    }
    let names = names.ok_or("`toolName` or `mcpName` is missing")?;
    let mut out = Vec::new();
    for name in names {
        match name {
            "*" => {
                out.push(GeminiRuleSubject::Shell);
                for (_, ours) in TOOL_EQUIVALENTS {
                    if !out.iter().any(|other| matches!(other, GeminiRuleSubject::Tool(name) if name == ours))
                    {
                        out.push(GeminiRuleSubject::Tool(ours));
                    }
                }
                out.push(GeminiRuleSubject::Server("mcp__*".to_owned()));
            }
            "run_shell_command" | "ShellTool" => out.push(GeminiRuleSubject::Shell),
            "mcp_*" => out.push(GeminiRuleSubject::Server("mcp__*".to_owned())),
            _ => match name.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')) {
                Some((server, "*")) => {
                    out.push(GeminiRuleSubject::Server(format!("mcp__{}", normalise_server(server))))
                }
                Some((server, tool)) => {
                    out.push(GeminiRuleSubject::Server(format!("mcp__{}__{tool}", normalise_server(server))));
                }
                None => {
                    match (TOOL_EQUIVALENTS.iter().find(|(theirs, _)| *theirs == name), name.split_once("__"))
                    {
                        (Some((_, ours)), _) => out.push(GeminiRuleSubject::Tool(ours)),
                        (None, Some((server, "*"))) => {
                            out.push(GeminiRuleSubject::Server(format!("mcp__{}", normalise_server(server))));
                        }
                        (None, Some((server, tool))) => {
                            out.push(GeminiRuleSubject::Server(format!(
                                "mcp__{}__{tool}",
                                normalise_server(server)
                            )));
                        }
                        (None, None) => out.push(GeminiRuleSubject::Unknown(name.to_owned())),
                    }
                }
            },
        }
    }
    Ok(out)
}

/// A server's name as rules spell it; `*` stays.
fn normalise_server(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*') { c } else { '_' })
        .collect()
}

/// Whether one rule for MCP tools takes everything that another takes.
fn covers(wide: &str, narrow: &str) -> bool {
    wide == "mcp__*" || wide == narrow || narrow.strip_prefix(wide).is_some_and(|rest| rest.starts_with("__"))
}

/// How a whole tool is allowed.
enum GeminiToolGrant {
    /// By this rule.
    Rule(&'static str),
    /// It is free as it is.
    Already,
    /// It is not ours.
    Never,
}

fn tool_grant(tool: &str) -> GeminiToolGrant {
    match tool {
        // Their file tools reach no further than the workspace; neither does this.
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

/// A pattern over the whole input that is about one text field: `"file_path":"src/`.
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
    let usable = !rest.contains('"') && regex::Regex::new(&value).is_ok();
    usable.then(|| json!({ "param": field, "operator": "matches", "value": value }))
}

/// `Bash(content)`.
fn bash_rule(content: &str) -> String {
    grammar::write_rule("Bash", content)
}
