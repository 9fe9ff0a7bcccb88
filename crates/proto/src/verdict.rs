//! The answer of policy, with what it obliges to and why.

use crate::{AbsPath, Code, Effect, PathScope, ToolName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The decision about one call. There is no `Default`: nothing is allowed by accident.
#[must_use = "a verdict carries obligations"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It may run, on these terms.
    Allow(Terms),
    /// A person must be asked this first.
    Ask(ApprovalQuestion),
    /// It may not run.
    Deny(VerdictReason),
}

impl Verdict {
    /// The one word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Ask(_) => "ask",
            Self::Deny(_) => "deny",
        }
    }

    /// The reason given, whichever way it went.
    pub fn reason(&self) -> &VerdictReason {
        match self {
            Self::Allow(terms) => &terms.reason,
            Self::Ask(question) => &question.reason,
            Self::Deny(reason) => reason,
        }
    }
}

/// The obligations of a run that was allowed.
#[must_use = "a run must keep to its terms"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Why it may run.
    pub reason: VerdictReason,
    /// A command may leave the sandbox. Only ever set by a decision of its own.
    pub unsandboxed: bool,
    /// What a command may do to files and which programs it may start: the kernel permits this and nothing else.
    pub rights: CommandRights,
    /// Paths that stay unwritable, whatever the rights say.
    pub protected: Vec<AbsPath>,
    /// Paths that a command may not read, taken from the deny rules.
    pub unreadable: Vec<AbsPath>,
    /// What a command may reach over the network.
    pub network: NetworkAccess,
    /// What git does in a command, and so what it is started with.
    #[serde(default)]
    pub git: GitTerms,
}

/// What git is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GitTerms {
    /// What it does in the line.
    pub usage: GitUse,
    /// It searches the files of the worktree (`git grep`), which follows directories that have become symlinks.
    pub searches: bool,
}

/// What git does in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitUse {
    /// The line does not name git.
    #[default]
    Absent,
    /// A rule or a person allowed every git command in it.
    Granted,
    /// The same, and the whole line only reads.
    GrantedReads,
    /// Some git command passes because it only reads, and something else runs in the same line.
    Mixed,
    /// The whole line passes because it only reads, git commands among it.
    Reads,
}

/// What the kernel permits a command, cut from the effects that were judged.
///
/// An error of the analysis is then a failed command: what was not judged is not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRights {
    /// How the rights were cut.
    pub level: RightsLevel,
    /// The only files and trees that it may read, beside the system's program and library directories.
    /// `None`: everything that no rule and no name keeps back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<AbsPath>>,
    /// What it may create, change and remove, beside its private temporary directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<WriteRight>,
    /// The only programs that it may start, as the command line spells them. `None`: any program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute: Option<Vec<String>>,
    /// Files that were judged by name: reading or writing them was granted in so many words, so names that are only
    /// kept back by default are not kept back here. A deny rule still holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<AbsPath>,
    /// It may write objects, refs, the index and logs of a git repository: a git command was allowed as such.
    #[serde(default, skip_serializing_if = "is_false")]
    pub git_data: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl CommandRights {
    /// The rights of a call that runs no command: none.
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

    /// The rights of a command that was allowed as a whole: any program, everything readable, and these trees to
    /// write in.
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

/// How the rights of a command were cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RightsLevel {
    /// Every part of the line only reads: no write, no network, only the listed programs.
    ReadOnly,
    /// Every write of the line is known: those paths and no others.
    NamedWrites,
    /// A rule, a mode or a person allowed the line as a whole: it may write in the workspace.
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

/// One path that a command may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WriteRight {
    /// Where.
    pub path: AbsPath,
    /// Only this entry, or all below it.
    pub scope: PathScope,
}

/// What a command may reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// Nothing.
    None,
    /// These hosts, through the filtering proxy.
    Hosts(Vec<String>),
    /// Everything.
    Full,
}

/// Why something was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictReason {
    /// In words, lower case, without a full stop.
    pub text: String,
    /// The code that a denial will carry.
    pub code: Code,
    /// The rule that decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
}

impl VerdictReason {
    /// A reason that no rule gave.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { text: text.into(), code, rule: None }
    }

    /// The same, naming the rule.
    pub fn with_rule(mut self, rule: RuleRef) -> Self {
        self.rule = Some(rule);
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

/// A rule, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRef {
    /// The rule as written.
    pub text: String,
    /// `allow`, `ask` or `deny`.
    pub action: String,
    /// The layer it came from (`managed`, `cli`, `session`, `local`, `project`, `user`, `default`).
    pub layer: String,
    /// The file it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rule `{}` from {}", self.action, self.text, self.layer)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, ", {file}:{line}"),
            (Some(file), None) => write!(f, ", {file}"),
            (None, _) => Ok(()),
        }
    }
}

/// How much could go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    /// Nothing is changed.
    Low,
    /// Something is changed that can be changed back.
    Medium,
    /// Programs run, or something may be lost.
    High,
    /// The machine or a secret is at stake.
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

/// The risk class of a call as a whole.
pub type Risk = RiskLevel;

/// One particular danger that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RiskWarning {
    /// Which kind (`command_substitution`, `sensitive_path`, …).
    pub kind: String,
    /// How bad.
    pub severity: RiskLevel,
    /// In words.
    pub text: String,
}

impl RiskWarning {
    /// A danger of this kind.
    pub fn new(kind: impl Into<String>, severity: RiskLevel, text: impl Into<String>) -> Self {
        Self { kind: kind.into(), severity, text: text.into() }
    }
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// The tool that wants to run.
    pub tool: ToolName,
    /// What will happen, in words.
    pub description: String,
    /// How much could go wrong.
    pub risk: Risk,
    /// What it would touch.
    pub effects: Vec<Effect>,
    /// The places concerned, links resolved.
    pub locations: Vec<String>,
    /// Particular dangers.
    pub warnings: Vec<RiskWarning>,
    /// Why a person is asked.
    pub reason: VerdictReason,
    /// Narrow rules that would spare the question next time.
    pub suggestions: Vec<RuleSuggestion>,
    /// A rule or the tool itself demands this question: neither a hook nor bypass mode may skip it.
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
            explicit: false,
        }
    }
}

/// A rule that a person may choose to remember.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleSuggestion {
    /// The allow rule, in the permissions grammar.
    pub rule: String,
}

impl RuleSuggestion {
    /// A suggestion of this allow rule.
    pub fn new(rule: impl Into<String>) -> Self {
        Self { rule: rule.into() }
    }
}
