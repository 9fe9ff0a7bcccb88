//! Permission rules (`permissions.allow`, `ask` and `deny`): parsing and matching.
//!
//! A rule is `Tool` or `Tool(content)`, and the tool decides what the content means. Each kind of content has a file here,
//! with its pattern type and the index that finds the matching patterns.
//!
//! | rule | matches | file |
//! |---|---|---|
//! | `Tool` | every use of a tool | [`tool`] |
//! | `mcp__server__tool` | a tool of an MCP server | [`mcp`] |
//! | `Bash(npm run *)` | simple commands | [`command`] |
//! | `Read(src/**)`, `Edit(*.md)`, `Write(docs/**)` | paths | [`path`], [`doubtful_anchor`], [`segment`], [`path_index`] |
//! | `WebFetch(domain:docs.rs)` | hosts | [`domain`] |
//! | `Agent(Explore)` | agents | [`agent`] |
//! | `Skill(review *)` | skills | [`skill`] |
//! | `Tool(field:value)` | a field of the input | [`param`] |
//!
//! [`unmatchable`], [`joined_paths`] and [`unknown_field`] find deny and ask rules that match nothing that their author
//! meant.
//!
//! The rules of all layers are pooled: a deny beats an ask, an ask beats an allow, and neither the order of rules nor
//! their specificity matters.

pub(crate) mod agent;
pub(crate) mod command;
pub(crate) mod domain;
pub(crate) mod doubtful_anchor;
mod joined_commands;
mod joined_paths;
pub(crate) mod mcp;
pub(crate) mod param;
pub(crate) mod path;
pub(crate) mod path_index;
pub(crate) mod segment;
pub(crate) mod skill;
pub(crate) mod syntax;
pub(crate) mod tool;
pub(crate) mod unknown_field;
mod unmatchable;

use crate::raw::RuleAction;
use crate::tool_names::find_intended_tool;
use agent::{AgentIndex, AgentPattern};
pub(crate) use command::squeeze_blanks;
use command::{CommandIndex, CommandPattern};
use domain::{DomainIndex, DomainPattern};
use mcp::{McpIndex, McpPattern};
use param::{KeyedContent, ParamIndex, ParamPattern};
use path::{PathPattern, PathUse};
use path_index::PathIndex;
use skill::{SkillIndex, SkillPattern};
use std::collections::BTreeSet;
use syntax::RuleSyntaxError;
use tool::{ToolIndex, ToolPattern};
use toolgate_proto::AbsPath;

/// A parsed permission rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PermissionRule {
    /// Every use of a tool.
    Tool(ToolPattern),
    /// A tool of an MCP server, or all of them.
    Mcp(McpPattern),
    /// Simple commands.
    Command(CommandPattern),
    /// Reads or writes of paths.
    Path(PathPattern),
    /// Fetches from hosts.
    Domain(DomainPattern),
    /// Starts of agents.
    Agent(AgentPattern),
    /// Loads of skills.
    Skill(SkillPattern),
    /// A field of the input.
    Param(ParamPattern),
    /// A rule that can never match, and why.
    Never(RuleSyntaxError),
}

/// The kind of a rule, for lints that compare rules for the same tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionRuleKind {
    Command,
    Read,
    Edit,
    Domain,
    Agent,
    Skill,
    Other,
}

/// The access that path rules of a tool are about. A rule names the effect, not the tool: `Write(docs/**)` covers every
/// write, whatever tool or command makes it. A rule for one tool only would leave all the others open.
fn path_use(family: &str) -> Option<PathUse> {
    match family {
        "Read" | "Glob" | "Grep" | "LS" | "LSP" | "NotebookRead" => Some(PathUse::Read),
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => Some(PathUse::Edit),
        _ => None,
    }
}

impl PermissionRule {
    /// Parses a rule. `anchor` is the directory of the settings file, for path patterns with `/`.
    pub(crate) fn parse(text: &str, action: RuleAction, anchor: &AbsPath) -> Result<Self, RuleSyntaxError> {
        let rule = syntax::parse(text)?;
        let name = rule.name.as_str();
        if let Some(content) = &rule.content
            && let Some(problem) = unmatchable::surplus_parenthesis(text, name, content)
        {
            return Ok(Self::Never(problem));
        }
        let Some(content) = rule.content else {
            if text.trim().ends_with(')') && name.starts_with("mcp__") {
                return Err(mcp_content_error());
            }
            return if name.starts_with("mcp__") {
                McpPattern::parse(name, action).map(Self::Mcp)
            } else {
                ToolPattern::parse(name, action).map(Self::Tool)
            };
        };
        if name.starts_with("mcp__") {
            let tools = McpPattern::parse(name, action)?;
            let pattern = param::parse_for_servers(tools, &content).ok_or_else(mcp_content_error)?;
            return Ok(param_rule(pattern, action));
        }
        if name.contains('*') {
            return Err(RuleSyntaxError::new(
                "a tool name with `*` cannot have parentheses",
                "name one tool",
            ));
        }
        // Escaped parentheses belong to the content.
        if !text.contains("\\)")
            && let Some(problem) = unmatchable::joined_rules(name, &content)
        {
            return Ok(Self::Never(problem));
        }
        if action != RuleAction::Allow
            && path_use(tool::family(name)).is_none()
            && let Some(problem) = unmatchable::unreadable_character(name, &content)
        {
            return Ok(Self::Never(problem));
        }
        if action != RuleAction::Allow
            && let Some(problem) = unknown_field::unusable_value_problem(name, &content)
        {
            return Ok(Self::Never(problem));
        }
        match param::parse(name, &content) {
            Some(KeyedContent::Primary(field))
                if tool::family(name) != "Skill" && tool::family(name) != "Agent" =>
            {
                return Ok(Self::Never(primary_field_problem(name, &field, &content)));
            }
            Some(KeyedContent::Param(pattern)) => {
                return Ok(param_rule(pattern, action));
            }
            Some(KeyedContent::Unknown(problem)) if action != RuleAction::Allow => {
                return Ok(Self::Never(problem));
            }
            Some(KeyedContent::Primary(_) | KeyedContent::Unknown(_)) | None => {}
        }
        Self::parse_content(name, &content, action, anchor)
    }

    /// Parses the content by the grammar of the tool's family.
    fn parse_content(
        name: &str,
        content: &str,
        action: RuleAction,
        anchor: &AbsPath,
    ) -> Result<Self, RuleSyntaxError> {
        if let Some(usage) = path_use(tool::family(name)) {
            let problem = match action {
                RuleAction::Allow => None,
                RuleAction::Ask | RuleAction::Deny => unmatchable::unmatchable_path(name, content),
            };
            return match problem.or_else(|| doubtful_anchor::unreachable_reason(name, content, anchor)) {
                Some(problem) => Ok(Self::Never(problem)),
                None => PathPattern::parse(usage, content, action, anchor).map(Self::Path),
            };
        }
        // Lines of other shells are not parsed, so their rules are compared with keywords as well.
        if action != RuleAction::Allow
            && tool::family(name) == "Bash"
            && let Some(problem) = unmatchable::unmatchable_command(name, content)
        {
            return Ok(Self::Never(problem));
        }
        match tool::family(name) {
            "Bash" | "PowerShell" if action != RuleAction::Allow && command::joins_commands(content) => {
                Ok(Self::Never(RuleSyntaxError::new(
                    "the rule never matches: it joins commands with an operator, but rules are compared with one \
                     command at a time",
                    "write one rule for each command, without `&&`, `||`, `;`, `|` and `&`",
                )))
            }
            "Bash" | "PowerShell" => CommandPattern::parse(content, action).map(Self::Command),
            "WebFetch" => DomainPattern::parse(content).map(Self::Domain),
            "Agent" | "Skill" => Self::parse_capability(name, content, action),
            "Cd" => Ok(Self::Never(RuleSyntaxError::new(
                "the rule never matches: no tool changes the working directory of the session",
                "remove the rule",
            ))),
            _ => match find_intended_tool(name, &BTreeSet::new()) {
                Some(meant) => Ok(Self::Never(RuleSyntaxError::unknown_tool(name, &meant))),
                None => Err(RuleSyntaxError::new(
                    format!("a rule for `{name}` cannot have this content"),
                    format!("write `{name}`, or `{name}(field:value)` to deny or ask"),
                )),
            },
        }
    }

    /// Parses the name of an agent or a skill. In deny and ask rules it may stand behind the name of its field.
    fn parse_capability(name: &str, content: &str, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        let family = tool::family(name);
        let mut content = content.trim();
        if let Some(value) = unknown_field::strip_main_field(family, content) {
            // A plugin may be called `name`: what was allowed for its skill must not become a grant for another one.
            if action == RuleAction::Allow {
                return Ok(Self::Never(unmatchable::named_field(name, value)));
            }
            content = value;
        }
        let misspelled = unknown_field::misspelled_main_field(name, content);
        if let Some(problem) = misspelled.or_else(|| unmatchable::unmatchable_capability(name, content)) {
            return Ok(Self::Never(problem));
        }
        match family {
            "Skill" => SkillPattern::parse(content).map(Self::Skill),
            _ => Ok(Self::Agent(AgentPattern(content.to_owned()))),
        }
    }

    /// The kind of the rule, for lints.
    pub(crate) fn kind(&self) -> PermissionRuleKind {
        match self {
            Self::Command(_) => PermissionRuleKind::Command,
            Self::Path(pattern) => match pattern.usage {
                PathUse::Read => PermissionRuleKind::Read,
                PathUse::Edit => PermissionRuleKind::Edit,
            },
            Self::Domain(_) => PermissionRuleKind::Domain,
            Self::Agent(_) => PermissionRuleKind::Agent,
            Self::Skill(_) => PermissionRuleKind::Skill,
            Self::Tool(_) | Self::Mcp(_) | Self::Param(_) | Self::Never(..) => PermissionRuleKind::Other,
        }
    }
}

/// The usual spelling of a rule: present tool names, ` *` instead of `:*`, single blanks, and no `(*)`. Two rules with
/// the same spelling match the same calls. A text that is not a rule stays as it is.
///
/// ```
/// use toolgate_policy::canonical_rule;
///
/// assert_eq!(canonical_rule("Bash(npm  run:*)"), "Bash(npm run *)");
/// assert_eq!(canonical_rule("Task(Explore)"), "Agent(Explore)");
/// assert_eq!(canonical_rule("Bash(*)"), "Bash");
/// ```
pub fn canonical_rule(text: &str) -> String {
    let Ok(rule) = syntax::parse(text) else { return text.to_owned() };
    let name = tool::canonical_name(&rule.name);
    let Some(content) = rule.content else { return name.to_owned() };
    // Escapes are left to the author, who may prefer parentheses without them.
    if content.contains(['(', ')', '\\']) {
        return text.trim().to_owned();
    }
    let content = match tool::family(name) {
        "Bash" | "PowerShell" => {
            let content = squeeze_blanks(&content);
            match content.strip_suffix(":*") {
                Some(prefix) if !prefix.contains('*') => format!("{} *", prefix.trim_end()),
                Some(_) | None => content,
            }
        }
        _ => content.trim().to_owned(),
    };
    format!("{name}({content})")
}

/// A field rule, which has no effect as an allow rule: other fields of the same call would go unchecked.
fn param_rule(pattern: ParamPattern, action: RuleAction) -> PermissionRule {
    match action {
        RuleAction::Ask | RuleAction::Deny => PermissionRule::Param(pattern),
        RuleAction::Allow => PermissionRule::Never(RuleSyntaxError::new(
            "a rule for a field of the input can deny or ask, not allow",
            "move it to `deny` or `ask`, or allow the tool",
        )),
    }
}

/// The rule names a field that has a kind of rule of its own: `Bash(command:rm *)` for `Bash(rm *)`.
fn primary_field_problem(name: &str, field: &str, content: &str) -> RuleSyntaxError {
    let value = content.split_once(':').map_or(content, |(_, value)| value.trim());
    let meant = match field {
        "url" => "WebFetch(domain:…)".to_owned(),
        _ => syntax::write_rule(name, value),
    };
    RuleSyntaxError::new(
        format!("the rule never matches: `{field}` is not compared as text"),
        format!("did you mean `{meant}`?"),
    )
}

/// The content of an MCP rule is not `field:value`.
fn mcp_content_error() -> RuleSyntaxError {
    RuleSyntaxError::new(
        "a rule for an MCP tool takes only `field:value` in parentheses",
        "write `mcp__server__tool`, or `mcp__server__tool(field:value)` to deny or ask",
    )
}

/// All rules of one action, indexed by kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActionIndex {
    /// Rules for the name of a tool.
    pub(crate) tools: ToolIndex,
    /// Rules for tools of MCP servers.
    pub(crate) mcp: McpIndex,
    /// `Bash(…)` rules.
    pub(crate) commands: CommandIndex,
    /// `Read(…)` rules.
    pub(crate) reads: PathIndex,
    /// `Edit(…)` rules.
    pub(crate) edits: PathIndex,
    /// `WebFetch(domain:…)` rules.
    pub(crate) domains: DomainIndex,
    /// `Agent(…)` rules.
    pub(crate) agents: AgentIndex,
    /// `Skill(…)` rules.
    pub(crate) skills: SkillIndex,
    /// `Tool(field:value)` rules.
    pub(crate) params: ParamIndex,
}

impl ActionIndex {
    /// Adds a rule to the index of its kind.
    pub(crate) fn add(&mut self, id: u32, rule: PermissionRule) {
        match rule {
            PermissionRule::Tool(pattern) => self.tools.add(id, pattern),
            PermissionRule::Mcp(pattern) => self.mcp.add(id, pattern),
            PermissionRule::Command(pattern) => self.commands.add(id, pattern),
            PermissionRule::Path(pattern) => match pattern.usage {
                PathUse::Read => self.reads.add(id, pattern),
                PathUse::Edit => self.edits.add(id, pattern),
            },
            PermissionRule::Domain(pattern) => self.domains.add(id, pattern),
            PermissionRule::Agent(pattern) => self.agents.add(id, pattern),
            PermissionRule::Skill(pattern) => self.skills.add(id, pattern),
            PermissionRule::Param(pattern) => self.params.add(id, pattern),
            PermissionRule::Never(_) => {}
        }
    }

    /// Whether a rule for particular commands, paths or hosts could apply to a command whose words are not all known.
    /// `program` is the program that runs, if that is known.
    pub(crate) fn may_apply_to(&self, program: Option<&str>) -> bool {
        let commands = match program {
            Some(program) => self.commands.may_match_program(program),
            None => !self.commands.is_empty(),
        };
        let bare = ["Read", "Edit"].into_iter().any(|name| self.tools.find_restricted_name(name).is_some());
        commands || bare || !(self.reads.is_empty() && self.edits.is_empty() && self.domains.is_empty())
    }
}
