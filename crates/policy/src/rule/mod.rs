//! The rule book `permissions`: rules on tools, and what they speak of.
//!
//! A rule is `Tool` or `Tool(content)`. What the content means depends on the tool: each kind has its file here, with
//! its pattern and the index that finds the patterns which fit.
//! Rules of all layers are pooled; a deny beats an ask, an ask beats an allow, and neither order nor detail matters.

pub(crate) mod agent;
pub(crate) mod bash;
pub(crate) mod domain;
pub(crate) mod grammar;
pub(crate) mod mcp;
pub(crate) mod param;
pub(crate) mod path;
pub(crate) mod segment;
pub(crate) mod skill;
pub(crate) mod tool;

use crate::raw::RuleAction;
use agent::{AgentIndex, AgentPattern};
pub(crate) use bash::squeeze_blanks;
use bash::{CommandIndex, CommandPattern};
use domain::{DomainIndex, DomainPattern};
use grammar::RuleSyntaxError;
use mcp::{McpIndex, McpPattern};
use param::{KeyedContent, ParamIndex, ParamPattern};
use path::{PathIndex, PathPattern, PathUse};
use skill::{SkillIndex, SkillPattern};
use tool::{ToolIndex, ToolPattern};
use toolgate_proto::AbsPath;

/// What a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PermissionRule {
    /// Every use of a tool.
    Tool(ToolPattern),
    /// A tool of another server, or all of them.
    Mcp(McpPattern),
    /// Commands.
    Command(CommandPattern),
    /// Paths.
    Path(PathPattern),
    /// Hosts.
    Domain(DomainPattern),
    /// Agents.
    Agent(AgentPattern),
    /// Skills.
    Skill(SkillPattern),
    /// A field of the input.
    Param(ParamPattern),
    /// Something that never happens; kept so that it can be reported.
    Never(&'static str, &'static str),
}

/// What a rule speaks of, in a word.
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

/// Tools whose rules on paths are written as `Read(…)` or `Edit(…)`.
const NO_PATH_RULES: [(&str, &str); 8] = [
    ("Write", "write `Edit(…)`, which also covers Write"),
    ("MultiEdit", "write `Edit(…)`, which also covers MultiEdit"),
    ("NotebookEdit", "write `Edit(…)`, which also covers NotebookEdit"),
    ("Glob", "write `Read(…)`, which also covers Glob"),
    ("Grep", "write `Read(…)`, which also covers Grep"),
    ("LS", "write `Read(…)`, which also covers LS"),
    ("LSP", "write `Read(…)`, which also covers LSP"),
    ("NotebookRead", "write `Read(…)`, which also covers NotebookRead"),
];

impl PermissionRule {
    pub(crate) fn parse(text: &str, action: RuleAction, anchor: &AbsPath) -> Result<Self, RuleSyntaxError> {
        let form = grammar::parse(text)?;
        let name = form.name.as_str();
        let Some(content) = form.content else {
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
            return Err(RuleSyntaxError::new("a name with `*` takes no parentheses", "name one tool"));
        }
        match param::parse(name, &content) {
            Some(KeyedContent::Primary(_))
                if tool::family(name) != "Skill" && tool::family(name) != "Agent" =>
            {
                return Ok(Self::Never(
                    "a rule on this field has no effect: its own rule kind judges it",
                    "write `Bash(…)`, `Read(…)`, `Edit(…)` or `WebFetch(domain:…)`",
                ));
            }
            Some(KeyedContent::Param(pattern)) => {
                return Ok(param_rule(pattern, action));
            }
            Some(KeyedContent::Primary(_)) | None => {}
        }
        match tool::family(name) {
            "Bash" | "PowerShell" if action != RuleAction::Allow && bash::joins_commands(&content) => {
                Ok(Self::Never(
                    "the rule joins commands by an operator, but rules are compared with one command at a time, \
                     so it never matches",
                    "write one rule for each command, without `&&`, `||`, `;`, `|` and `&`",
                ))
            }
            "Bash" | "PowerShell" => CommandPattern::parse(&content, action).map(Self::Command),
            "Read" => PathPattern::parse(PathUse::Read, &content, action, anchor).map(Self::Path),
            "Edit" => PathPattern::parse(PathUse::Edit, &content, action, anchor).map(Self::Path),
            "WebFetch" => DomainPattern::parse(&content).map(Self::Domain),
            "Agent" => Ok(Self::Agent(AgentPattern(content.trim().to_owned()))),
            "Skill" => SkillPattern::parse(&content).map(Self::Skill),
            "Cd" => Ok(Self::Never(
                "nothing here changes the working directory of the session",
                "remove the rule",
            )),
            other => match NO_PATH_RULES.iter().find(|(tool, _)| *tool == other) {
                Some((_, fix)) => Ok(Self::Never("a path rule of this name never matches", fix)),
                None => Err(RuleSyntaxError::new(
                    format!("`{name}` takes no content of this form"),
                    format!("write `{name}`, or `{name}(field:value)` to deny or ask"),
                )),
            },
        }
    }
}

impl PermissionRule {
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

fn param_rule(pattern: ParamPattern, action: RuleAction) -> PermissionRule {
    match action {
        RuleAction::Ask | RuleAction::Deny => PermissionRule::Param(pattern),
        RuleAction::Allow => PermissionRule::Never(
            "a rule on a field of the input can deny or ask, not allow",
            "move it to `deny` or `ask`, or allow the tool",
        ),
    }
}

fn mcp_content_error() -> RuleSyntaxError {
    RuleSyntaxError::new(
        "a rule for another server's tool takes only `field:value` in parentheses",
        "write `mcp__server__tool`, or `mcp__server__tool(field:value)` to deny or ask",
    )
}

/// All rules of one action, found by what they speak of.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActionIndex {
    pub(crate) tools: ToolIndex,
    pub(crate) mcp: McpIndex,
    pub(crate) commands: CommandIndex,
    pub(crate) reads: PathIndex,
    pub(crate) edits: PathIndex,
    pub(crate) domains: DomainIndex,
    pub(crate) agents: AgentIndex,
    pub(crate) skills: SkillIndex,
    pub(crate) params: ParamIndex,
}

impl ActionIndex {
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
            PermissionRule::Never(..) => {}
        }
    }

    /// Whether a rule speaks of particular commands, paths or hosts, so that a command which cannot be read might
    /// be one of them. `program` is what runs, where that much is known.
    pub(crate) fn may_apply_to(&self, program: Option<&str>) -> bool {
        let commands = match program {
            Some(program) => self.commands.may_match_program(program),
            None => !self.commands.is_empty(),
        };
        let bare = ["Read", "Edit"].into_iter().any(|name| self.tools.find_name(name).is_some());
        commands || bare || !(self.reads.is_empty() && self.edits.is_empty() && self.domains.is_empty())
    }
}
