//! Translates rules of the Gemini CLI's policy engine into settings.
//!
//! There the rule with the highest priority decides, whatever it decides; here a deny beats an ask and an ask beats an
//! allow. [`translate`] goes through the rules of each tool from the highest priority down, omits those that a stronger
//! rule always precedes, and writes the rest into `permissions` and `policy`.
//!
//! If the two orders cannot agree, the settings are stricter than the rule, never looser, and a [`TranslationNote`] says
//! so. If a denial cannot be expressed at all, the whole file is refused: settings that lack a denial would be worse than
//! none.
//!
//! ```
//! use toolgate_policy::gemini::{GeminiDecision, GeminiRule, StringOrList, translate};
//!
//! let rule = GeminiRule {
//!     tool_name: Some(StringOrList::One("run_shell_command".to_owned())),
//!     command_prefix: Some(StringOrList::One("git push".to_owned())),
//!     decision: GeminiDecision::Deny,
//!     ..GeminiRule::default()
//! };
//! let translation = translate(&[rule]).unwrap();
//! assert_eq!(translation.settings["permissions"]["deny"][0], "Bash(git push *)");
//! ```

mod command_rules;
mod regex_globs;
mod rule_subject;
mod translator;

use crate::raw::RuleAction;
use crate::translation::{RuleTranslation, TranslationNote};
use serde::Deserialize;
use serde_json::{Map, Value};
use translator::GeminiTranslator;

/// Translates rules into settings. An error names the line of a rule that cannot be translated without loosening it.
pub fn translate(rules: &[GeminiRule]) -> Result<RuleTranslation, TranslationNote> {
    let mut sorted: Vec<&GeminiRule> = rules.iter().collect();
    // The sort is stable: of rules with the same priority the first one stays first, and decides.
    sorted.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    let mut translator = GeminiTranslator::default();
    for rule in sorted {
        translator.add_rule(rule)?;
    }
    Ok(translator.finish())
}

/// One `[[rule]]` of a Gemini CLI policy file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GeminiRule {
    /// The tools; absent if `mcpName` alone means a whole server.
    #[serde(default, alias = "tool_name")]
    pub tool_name: Option<StringOrList>,
    /// The rule applies only to calls of this agent.
    #[serde(default)]
    pub subagent: Option<String>,
    /// The MCP server, or `*` for all.
    #[serde(default, alias = "mcp_name")]
    pub mcp_name: Option<String>,
    /// The rule applies only to tools with these annotations.
    #[serde(default, alias = "tool_annotations")]
    pub tool_annotations: Option<Map<String, Value>>,
    /// A regular expression that is searched in the input as JSON text.
    #[serde(default, alias = "args_pattern")]
    pub args_pattern: Option<String>,
    /// Words that a command begins with.
    #[serde(default, alias = "command_prefix")]
    pub command_prefix: Option<StringOrList>,
    /// A regular expression that the beginning of a command matches.
    #[serde(default, alias = "command_regex")]
    pub command_regex: Option<String>,
    /// `allow`, `ask_user` or `deny`.
    pub decision: GeminiDecision,
    /// From 0 to 999; the rule with the highest priority decides.
    pub priority: u16,
    /// The approval modes in which the rule applies; empty means all.
    #[serde(default)]
    pub modes: Vec<GeminiMode>,
    /// The rule applies only in interactive sessions, or only in others.
    #[serde(default)]
    pub interactive: Option<bool>,
    /// An allowed command may also redirect its output.
    #[serde(default, alias = "allow_redirection")]
    pub allow_redirection: Option<bool>,
    /// The reason to show for a denial.
    #[serde(default, alias = "deny_message")]
    pub deny_message: Option<String>,
    /// The line of the rule in its file, from 1. The parser of the file sets it.
    #[serde(skip)]
    pub line: usize,
}

/// A string or a list of strings.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum StringOrList {
    /// A string.
    One(String),
    /// A list.
    Many(Vec<String>),
}

impl StringOrList {
    /// All strings, in order.
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeminiDecision {
    /// The call may run.
    Allow,
    /// The user is asked.
    #[default]
    AskUser,
    /// The call is refused.
    Deny,
}

impl GeminiDecision {
    /// The action of a permission rule with the same decision.
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
    /// Every change asks.
    #[serde(rename = "default")]
    Default,
    /// Edits of files need no approval.
    #[serde(rename = "autoEdit", alias = "auto_edit")]
    AutoEdit,
    /// Nothing needs approval.
    #[serde(rename = "yolo")]
    Yolo,
    /// Only reading is allowed.
    #[serde(rename = "plan")]
    Plan,
}
