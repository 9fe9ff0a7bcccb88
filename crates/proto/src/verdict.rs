//! Verdicts: the decision of policy about a call, with its reason and the obligations of the run.

use crate::{AbsPath, Code, Effect, PathScope, ToolName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The decision about one call. It has no `Default`, so that no code path allows a call by accident.
#[must_use = "a verdict carries obligations"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run, on these terms.
    Allow(Terms),
    /// The call may run if an approver agrees.
    Ask(ApprovalQuestion),
    /// The call may not run.
    Deny(VerdictReason),
}

impl Verdict {
    /// The name in records: `allow`, `ask` or `deny`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Ask(_) => "ask",
            Self::Deny(_) => "deny",
        }
    }

    /// Why policy decided so.
    pub fn reason(&self) -> &VerdictReason {
        match self {
            Self::Allow(terms) => &terms.reason,
            Self::Ask(question) => &question.reason,
            Self::Deny(reason) => reason,
        }
    }
}

/// The obligations of a run that was allowed: what the sandbox and the tool have to enforce.
#[must_use = "a run must keep to its terms"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Terms {
    /// Why the call may run.
    pub reason: VerdictReason,
    /// A command runs outside the sandbox. Set only if the call requested it and that was decided separately.
    pub unsandboxed: bool,
    /// Which files a command may access and which programs it may start. The kernel enforces it.
    pub rights: CommandRights,
    /// Paths that a command may not write, even inside a writable tree.
    pub protected: Vec<AbsPath>,
    /// Paths that a command may not read, from the deny rules and the table of secrets.
    pub unreadable: Vec<AbsPath>,
    /// Which hosts a command may connect to.
    pub network: NetworkAccess,
    /// What git does in a command, which decides about its configuration.
    #[serde(default)]
    pub git: GitTerms,
}

impl Terms {
    /// Creates the strictest terms: no rights for a command, no network, inside the sandbox.
    pub fn new(reason: VerdictReason) -> Self {
        Self {
            reason,
            unsandboxed: false,
            rights: CommandRights::none(),
            protected: Vec::new(),
            unreadable: Vec::new(),
            network: NetworkAccess::None,
            git: GitTerms::default(),
        }
    }
}

/// What git does in a command line, for the configuration with which it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GitTerms {
    /// Why its commands were allowed.
    pub usage: GitUse,
    /// It searches the worktree (`git grep`), which follows a directory that was replaced by a symlink.
    pub searches: bool,
}

impl GitTerms {
    /// Creates the terms of a line that does not search the worktree.
    pub fn new(usage: GitUse) -> Self {
        Self { usage, searches: false }
    }

    /// Says whether the line searches the worktree.
    pub fn with_searches(mut self, searches: bool) -> Self {
        self.searches = searches;
        self
    }
}

/// Why the git commands of a line were allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitUse {
    /// The line has no git command.
    #[default]
    Absent,
    /// A rule or the user allowed every git command in it.
    Granted,
    /// The same, and all commands of the line only read.
    GrantedReads,
    /// A git command was allowed because it only reads, and other commands run in the same line.
    Mixed,
    /// The line was allowed because all of its commands only read, the git commands among them.
    Reads,
}

/// What the kernel permits a command, derived from the effects that were judged.
///
/// If the analysis of a command line missed an effect, the command fails: the kernel permits only what was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandRights {
    /// How the rights were derived.
    pub level: RightsLevel,
    /// The only files and trees that it may read, beside the program and library directories of the system.
    /// `None`: everything that no rule and no secret name hides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<AbsPath>>,
    /// The files and trees that it may create, change and remove, beside its private temporary directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<WriteRight>,
    /// The only programs that it may execute, as the command line spells them. `None`: any program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute: Option<Vec<String>>,
    /// Files that a rule or the user granted by name. Protected and secret names, which are hidden by default, are
    /// accessible here; a deny rule still applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<AbsPath>,
    /// It may write objects, refs, the index and logs of a git repository, because a git command was allowed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub git_data: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl CommandRights {
    /// The rights of a call that runs no command.
    pub fn none() -> Self {
        Self {
            level: RightsLevel::ReadOnly,
            read: Some(Vec::new()),
            write: Vec::new(),
            execute: Some(Vec::new()),
            named: Vec::new(),
            git_data: false,
        }
    }

    /// The rights of a command that was allowed as a whole: it may execute any program, read everything, and write below
    /// these directories.
    pub fn for_workspace(roots: &[AbsPath]) -> Self {
        Self {
            level: RightsLevel::Workspace,
            read: None,
            write: roots
                .iter()
                .map(|root| WriteRight { path: root.clone(), scope: PathScope::Tree })
                .collect(),
            execute: None,
            named: Vec::new(),
            git_data: false,
        }
    }
}

/// How the rights of a command were derived, narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RightsLevel {
    /// Every command of the line only reads: no writes, no network, only the listed programs.
    ReadOnly,
    /// Every write of the line is known: those paths are writable, and no others.
    NamedWrites,
    /// A rule, the mode or the user allowed the line as a whole: the workspace is writable.
    Workspace,
}

impl fmt::Display for RightsLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::NamedWrites => "named writes",
            Self::Workspace => "workspace",
        })
    }
}

/// One path that a command may write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WriteRight {
    /// The file or directory.
    pub path: AbsPath,
    /// Only this file, or the whole tree.
    pub scope: PathScope,
}

impl WriteRight {
    /// Creates the right to write a path.
    pub fn new(path: AbsPath, scope: PathScope) -> Self {
        Self { path, scope }
    }
}

/// Which hosts a command may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// None.
    None,
    /// These hosts, through the proxy of the sandbox.
    Hosts(Vec<String>),
    /// All, without a proxy.
    Full,
}

/// Why policy decided so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerdictReason {
    /// The reason for a message: lower case, without a full stop.
    pub text: String,
    /// The code of the refusal that a denial leads to, or a question that is not answered. An allow has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The rule that decided, if it was a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
}

impl VerdictReason {
    /// Creates the reason of an objection, without a rule.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { text: text.into(), code: Some(code), rule: None }
    }

    /// Creates the reason of an allow, without a rule.
    pub fn allowing(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: None, rule: None }
    }

    /// Sets the rule that decided.
    pub fn with_rule(mut self, rule: impl Into<Option<RuleRef>>) -> Self {
        self.rule = rule.into();
        self
    }
}

impl fmt::Display for VerdictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(rule) = &self.rule {
            write!(f, " ({rule})")?;
        }
        Ok(())
    }
}

/// The layer of rules that are built in.
const DEFAULT_LAYER: &str = "default";
/// What precedes the name of the tool in the text of a rule of a policy book.
const BOOK_TOOL_PREFIX: &str = "tool ";

/// A rule and its position in the settings, for messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleRef {
    /// The rule, as it was written.
    pub text: String,
    /// `allow`, `ask` or `deny`.
    pub action: String,
    /// The layer of its origin (`managed`, `cli`, `session`, `local`, `project`, `user`, `default`).
    pub layer: String,
    /// The settings file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl RuleRef {
    /// Creates a reference to a rule that stands in no file.
    pub fn new(text: impl Into<String>, action: impl Into<String>, layer: impl Into<String>) -> Self {
        Self { text: text.into(), action: action.into(), layer: layer.into(), file: None, line: None }
    }

    /// Sets the settings file and the line in it, from 1.
    pub fn with_place(mut self, file: Option<String>, line: Option<usize>) -> Self {
        (self.file, self.line) = (file, line);
        self
    }
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No settings have these: the user cannot look them up, and knows neither their form nor the layer.
        if self.layer == DEFAULT_LAYER {
            return match self.text.strip_prefix(BOOK_TOOL_PREFIX) {
                Some("*") => f.write_str("the default for every tool"),
                Some(tool) => write!(f, "the default for `{tool}`"),
                None => write!(f, "{} rule `{}`, a default", self.action, self.text),
            };
        }
        write!(f, "{} rule `{}` from {}", self.action, self.text, self.layer)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, ", {file}:{line}"),
            (Some(file), None) => write!(f, ", {file}"),
            (None, _) => Ok(()),
        }
    }
}

/// How much damage a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    /// It changes nothing.
    Low,
    /// It changes something that can be undone.
    Medium,
    /// It runs programs, or may lose data.
    High,
    /// It may damage the system or reveal a secret.
    Critical,
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

/// The risk of a call as a whole.
pub type Risk = RiskLevel;

/// One danger that policy found in a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RiskWarning {
    /// The kind, for programs (`command_substitution`, `sensitive_path`, …).
    pub kind: String,
    /// How much damage it can do.
    pub severity: RiskLevel,
    /// The text of the warning.
    pub text: String,
}

impl RiskWarning {
    /// A danger of this kind.
    pub fn new(kind: impl Into<String>, severity: RiskLevel, text: impl Into<String>) -> Self {
        Self { kind: kind.into(), severity, text: text.into() }
    }
}

/// The question that an approver gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// The tool of the call.
    pub tool: ToolName,
    /// What will happen: the summary of the intent.
    pub description: String,
    /// How much damage the call can do.
    pub risk: Risk,
    /// The effects that the call would have.
    pub effects: Vec<Effect>,
    /// The files and other resources of the effects, symlinks resolved.
    pub locations: Vec<String>,
    /// Dangers that policy found.
    pub warnings: Vec<RiskWarning>,
    /// Why an approval is needed.
    pub reason: VerdictReason,
    /// Allow rules with which the same call would not ask again.
    pub suggestions: Vec<RuleSuggestion>,
    /// Why there is none, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_rule_reason: Option<String>,
    /// An ask rule or the tool itself demands this question: neither a hook nor the mode `bypass` can skip it.
    pub explicit: bool,
}

impl ApprovalQuestion {
    /// A question without effects, warnings and suggestions, which no rule demands.
    pub fn new(
        tool: ToolName,
        description: impl Into<String>,
        risk: RiskLevel,
        reason: VerdictReason,
    ) -> Self {
        Self {
            tool,
            description: description.into(),
            risk,
            effects: Vec::new(),
            locations: Vec::new(),
            warnings: Vec::new(),
            reason,
            suggestions: Vec::new(),
            no_rule_reason: None,
            explicit: false,
        }
    }
}

/// A rule that the user can choose to save with the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleSuggestion {
    /// The allow rule, in the permissions grammar, as narrow as it can be.
    pub rule: String,
    /// A wider rule for calls of the same kind, such as `Bash(npm run *)` beside `Bash(npm run build)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wider: Option<String>,
}

impl RuleSuggestion {
    /// A suggestion of this allow rule.
    pub fn new(rule: impl Into<String>) -> Self {
        Self { rule: rule.into(), wider: None }
    }

    /// The same, with a wider rule beside it.
    pub fn with_wider(mut self, wider: Option<String>) -> Self {
        self.wider = wider.filter(|wider| *wider != self.rule);
        self
    }
}
