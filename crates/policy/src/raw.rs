//! What people wrote, before it is compiled.

use crate::decide::Policy;
use crate::policy_book::RawBook;
use crate::url::FetchSettings;
use serde::{Deserialize, Serialize};
use std::fmt;
use toolgate_proto::{AbsPath, Mode, RuleRef};

/// Where a setting comes from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The organisation, by a file that users cannot write.
    Managed,
    /// The command line of this run.
    Cli,
    /// Granted during this session.
    Session,
    /// The person's own settings for this project.
    Local,
    /// The project's shared settings.
    Project,
    /// The person's settings for all projects.
    User,
    /// What toolgate ships.
    Default,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed",
            Self::Cli => "cli",
            Self::Session => "session",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Default => "default",
        })
    }
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    /// Let it pass.
    Allow,
    /// Ask a person.
    Ask,
    /// Refuse.
    Deny,
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// A rule as written, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRule {
    /// The text.
    pub text: String,
    /// The line in the layer's file, from 1, where known.
    pub line: Option<usize>,
}

impl From<&str> for RawRule {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), line: None }
    }
}

impl From<String> for RawRule {
    fn from(text: String) -> Self {
        Self { text, line: None }
    }
}

/// The rules of one file, or of the command line.
#[derive(Debug, Clone)]
pub struct LayerRules {
    /// Which layer.
    pub layer: Layer,
    /// The file, for messages.
    pub file: Option<String>,
    /// The directory at which `/path` patterns of this layer are anchored.
    pub anchor: AbsPath,
    /// `permissions.allow`.
    pub allow: Vec<RawRule>,
    /// `permissions.ask`.
    pub ask: Vec<RawRule>,
    /// `permissions.deny`.
    pub deny: Vec<RawRule>,
    /// Whether the person trusts where the rules come from. Allow rules of an untrusted layer do not count;
    /// its ask and deny rules do.
    pub trusted: bool,
}

impl LayerRules {
    /// An empty layer.
    pub fn new(layer: Layer, anchor: AbsPath) -> Self {
        Self {
            layer,
            file: None,
            anchor,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            trusted: true,
        }
    }

    /// How a message speaks of one of this layer's rules.
    pub fn reference(&self, action: RuleAction, rule: &RawRule) -> RuleRef {
        RuleRef {
            text: rule.text.clone(),
            action: action.to_string(),
            layer: self.layer.to_string(),
            file: self.file.clone(),
            line: rule.line,
        }
    }
}

/// All that was written, in layers.
#[derive(Debug, Clone)]
pub struct RawPolicy {
    /// The rules of the book `permissions`, one entry for each file or other origin.
    pub layers: Vec<LayerRules>,
    /// The books `policy`, one for each file that has one.
    pub books: Vec<RawBook>,
    /// The permission mode.
    pub mode: Mode,
    /// What the organisation has switched off.
    pub managed: ManagedRestrictions,
    /// How fetches are judged where no rule speaks.
    pub fetch: FetchSettings,
    /// `permissions.autoAllowReadOnlyCommands`: commands that only read inside the workspace need no rule.
    pub auto_allow_read_only_commands: bool,
    /// `permissions.blockReadsOutsideWorkingDirectories`: deny instead of ask.
    pub block_reads_outside: bool,
    /// `permissions.blockWritesOutsideWorkingDirectories`: deny instead of ask.
    pub block_writes_outside: bool,
    /// `sandbox.allowUnsandboxedCommands`: whether a person may be asked to let a command leave the sandbox at all.
    pub allow_unsandboxed: bool,
    /// Further paths that are never pre-approved for writing: the ledger, the journal, the settings files in use.
    pub protected_paths: Vec<AbsPath>,
    /// Further names that are never pre-approved for writing, wherever they lie.
    pub protected_names: Vec<String>,
    /// Further patterns (gitignore) of files that ask with a warning.
    pub sensitive: Vec<String>,
    /// Whether the kernel holds commands to the rights that a verdict grants.
    pub enforcement: Enforcement,
}

/// Whether the kernel holds a command to what was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// It does: an error of the analysis is a failed command.
    Kernel,
    /// It does not, or that is not known. Then only plain command lines pass as reading.
    #[default]
    Absent,
}

impl Default for RawPolicy {
    fn default() -> Self {
        Self {
            layers: Vec::new(),
            books: Vec::new(),
            mode: Mode::Default,
            managed: ManagedRestrictions::default(),
            fetch: FetchSettings::default(),
            auto_allow_read_only_commands: true,
            block_reads_outside: false,
            block_writes_outside: false,
            allow_unsandboxed: true,
            protected_paths: Vec::new(),
            protected_names: Vec::new(),
            sensitive: Vec::new(),
            enforcement: Enforcement::default(),
        }
    }
}

/// What the organisation has switched off. Every switch can only make a policy stricter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedRestrictions {
    /// Allow rules count only if they are managed. Ask and deny rules of every layer still count.
    pub allow_managed_permission_rules_only: bool,
    /// Mode `bypass` is not available; asking for it gives `default`.
    pub disable_bypass_permissions_mode: bool,
    /// Skills run no commands.
    pub disable_skill_shell_execution: bool,
    /// No remote control; for the host to honour.
    pub disable_remote_control: bool,
    /// No agent view; for the host to honour.
    pub disable_agent_view: bool,
    /// Tools that do not exist here.
    pub disabled_tools: Vec<String>,
}

impl RawPolicy {
    /// Compiles the rules. A problem of weight [`ProblemSeverity::Fatal`] makes the policy deny everything;
    /// callers that can should refuse to start instead.
    pub fn compile(self) -> (Policy, Vec<RuleProblem>) {
        Policy::compile(self)
    }
}

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemSeverity {
    /// Worth knowing.
    Note,
    /// The rule has no effect, or not the one it seems to have.
    Warning,
    /// A rule that would deny cannot be read: nothing may run.
    Fatal,
}

/// Something wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleProblem {
    /// The rule.
    pub rule: RuleRef,
    /// How much it matters.
    pub weight: ProblemSeverity,
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.rule, self.message, self.fix)
    }
}
