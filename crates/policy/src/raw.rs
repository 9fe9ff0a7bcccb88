//! Rules and settings as users wrote them, before they are compiled.
//!
//! Raw and compiled are two types so that a rule cannot be matched before it was parsed, checked and reported on.

use crate::decide::Policy;
use crate::policy_book::RawBook;
use crate::setting_places::SettingPlaces;
use crate::url::FetchSettings;
use serde::{Deserialize, Serialize};
use std::fmt;
use toolgate_proto::{AbsPath, Mode, RiskLevel, RuleRef};

/// The origin of a rule, strongest first. The order only decides which of several matching rules a message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The organisation's settings, in a file that users cannot write.
    Managed,
    /// Options on the command line of this run.
    Cli,
    /// Rules that the user granted during this session.
    Session,
    /// The user's own settings for this project, not shared with others.
    Local,
    /// The project's shared settings, which come with the repository.
    Project,
    /// The user's settings for all projects.
    User,
    /// The defaults of toolgate.
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

/// What a rule does with a call that it matches. The order is that of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    /// The call may run without a question.
    Allow,
    /// An approver must allow the call.
    Ask,
    /// The call is refused.
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

/// A rule as written, with its line for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRule {
    /// The text, such as `Bash(npm run *)`.
    pub text: String,
    /// The line in the layer's file, from 1, if known.
    pub line: Option<usize>,
}

impl RawRule {
    /// Creates a rule that stands in no file.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), line: None }
    }

    /// Sets the line in its file, from 1.
    pub fn with_line(mut self, line: impl Into<Option<usize>>) -> Self {
        self.line = line.into();
        self
    }
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
#[non_exhaustive]
pub struct LayerRules {
    /// The layer that the rules belong to.
    pub layer: Layer,
    /// The file that contains them, for messages.
    pub file: Option<String>,
    /// The directory at which `/path` patterns of this layer are anchored.
    pub anchor: AbsPath,
    /// `permissions.allow`.
    pub allow: Vec<RawRule>,
    /// `permissions.ask`.
    pub ask: Vec<RawRule>,
    /// `permissions.deny`.
    pub deny: Vec<RawRule>,
    /// Whether the user trusts the origin. Allow rules of an untrusted layer are ignored; its ask and deny rules count.
    pub trusted: bool,
}

impl LayerRules {
    /// A trusted layer without rules.
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

    /// The reference to one of this layer's rules that messages show.
    pub fn reference(&self, action: RuleAction, rule: &RawRule) -> RuleRef {
        RuleRef::new(rule.text.clone(), action.to_string(), self.layer.to_string())
            .with_place(self.file.clone(), rule.line)
    }
}

/// All rules and settings that a policy is compiled from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RawPolicy {
    /// The lists of `permissions`, one entry for each file or other origin.
    pub layers: Vec<LayerRules>,
    /// The policy books (`policy`), one for each file that has one.
    pub books: Vec<RawBook>,
    /// The permission mode: the default when no rule matches.
    pub mode: Mode,
    /// What managed settings restrict.
    pub managed: ManagedRestrictions,
    /// How fetches are judged when no rule matches.
    pub fetch: FetchSettings,
    /// `permissions.autoAllowReadOnlyCommands`: a command that only reads inside the workspace needs no rule.
    pub auto_allow_read_only_commands: bool,
    /// `permissions.blockReadsOutsideWorkingDirectories`: reads outside the workspace are denied instead of asked about.
    pub block_reads_outside: bool,
    /// `permissions.blockWritesOutsideWorkingDirectories`: the same for writes.
    pub block_writes_outside: bool,
    /// `sandbox.allowUnsandboxedCommands`: whether a call may ask to run its command outside the sandbox.
    pub allow_unsandboxed: bool,
    /// Paths that are protected beside the built-in names: the ledger, the journal, the settings files in use.
    pub protected_paths: Vec<AbsPath>,
    /// Names that are protected in every directory, beside the built-in ones.
    pub protected_names: Vec<String>,
    /// Gitignore patterns of sensitive files, beside the built-in ones.
    pub sensitive: Vec<String>,
    /// Whether the kernel limits commands to the rights that a verdict grants.
    pub enforcement: Enforcement,
    /// `permissions.riskProfile`: the severity from which a danger in a command denies instead of asking, if it does.
    pub deny_dangers_from: Option<RiskLevel>,
    /// `permissions.denyInsteadOfPrompting`: what would need approval is denied.
    pub deny_questions: bool,
    /// Where a user adds an allow rule that then counts, as the end of the sentence "add the allow rule …".
    pub allow_place: Option<String>,
    /// Allow rules of a project that is not trusted. They have no effect, and advice names one that would.
    pub untrusted_allow: Vec<LayerRules>,
    /// Where the values are set that refuse calls.
    pub setting_places: SettingPlaces,
    /// `permissions.unmatchableRules`: what happens if a deny or ask rule can never match.
    pub unmatchable_rules: UnmatchableRules,
}

/// What happens if a deny or ask rule can never match, for example because the tool's name is misspelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnmatchableRules {
    /// Every call is denied until the rule is corrected: its author wanted something denied, and it is not.
    #[default]
    Refuse,
    /// The rule is reported and ignored.
    Warn,
}

impl UnmatchableRules {
    /// How severe it is that a rule of this action never matches. Losing an allow rule only makes the policy stricter.
    pub(crate) fn severity(self, action: RuleAction) -> ProblemSeverity {
        match (self, action) {
            (Self::Refuse, RuleAction::Ask | RuleAction::Deny) => ProblemSeverity::Fatal,
            (Self::Refuse, RuleAction::Allow) | (Self::Warn, _) => ProblemSeverity::Warning,
        }
    }
}

/// Whether the kernel limits a command to its rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// It does, so an error of the analysis becomes a failed command.
    Kernel,
    /// It does not, or that is not known. Then only lines in plain bash syntax are allowed as read-only.
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
            deny_dangers_from: None,
            deny_questions: false,
            allow_place: None,
            untrusted_allow: Vec::new(),
            setting_places: SettingPlaces::default(),
            unmatchable_rules: UnmatchableRules::default(),
        }
    }
}

/// What managed settings restrict. Every field can only make a policy stricter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ManagedRestrictions {
    /// Only managed allow rules count. Ask and deny rules of every layer still count.
    pub allow_managed_permission_rules_only: bool,
    /// Mode `bypass` is not available; a request for it gives mode `default`.
    pub disable_bypass_permissions_mode: bool,
    /// The managed mode is `plan`: no call leaves plan mode, and only mode `deny` can replace it.
    pub require_plan_mode: bool,
    /// Skills may not run commands.
    pub disable_skill_shell_execution: bool,
    /// No remote control. The host program enforces it.
    pub disable_remote_control: bool,
    /// No agent view. The host program enforces it.
    pub disable_agent_view: bool,
    /// Tools that are hidden from models and denied.
    pub disabled_tools: Vec<String>,
}

impl RawPolicy {
    /// Sets the lists of `permissions`.
    pub fn with_layers(mut self, layers: Vec<LayerRules>) -> Self {
        self.layers = layers;
        self
    }

    /// Sets the policy books.
    pub fn with_books(mut self, books: Vec<RawBook>) -> Self {
        self.books = books;
        self
    }

    /// Sets the permission mode.
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how fetches are judged when no rule matches.
    pub fn with_fetch(mut self, fetch: FetchSettings) -> Self {
        self.fetch = fetch;
        self
    }

    /// Sets whether the kernel limits commands to the rights that a verdict grants.
    pub fn with_enforcement(mut self, enforcement: Enforcement) -> Self {
        self.enforcement = enforcement;
        self
    }

    /// Compiles the rules. A problem of weight [`ProblemSeverity::Fatal`] makes the policy deny every call; a caller that
    /// can report it should refuse to start instead.
    ///
    /// ```
    /// use toolgate_policy::{Layer, LayerRules, ProblemSeverity, RawPolicy};
    /// use toolgate_proto::AbsPath;
    ///
    /// let mut rules = LayerRules::new(Layer::User, AbsPath::root());
    /// rules.deny.push("Bash(rm".into());
    /// let (_, problems) = RawPolicy::default().with_layers(vec![rules]).compile();
    /// assert_eq!(problems[0].weight, ProblemSeverity::Fatal);
    /// assert_eq!(
    ///     problems[0].to_string(),
    ///     "deny rule `Bash(rm` from user: the closing parenthesis is missing; end the rule with `)`"
    /// );
    /// ```
    pub fn compile(self) -> (Policy, Vec<RuleProblem>) {
        Policy::compile(self)
    }
}

/// How severe a problem of a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemSeverity {
    /// The rule works; the message is worth knowing.
    Note,
    /// The rule has no effect, or another one than it seems to have.
    Warning,
    /// A deny rule, an ask rule or a policy book is invalid or can never match, so every call is denied.
    Fatal,
}

/// A problem of a rule, for `toolgate policy lint` and for start-up messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleProblem {
    /// The rule, with its layer, file and line.
    pub rule: RuleRef,
    /// How severe it is.
    pub weight: ProblemSeverity,
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// What to do about it, as an imperative sentence.
    pub fix: String,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.rule, self.message, self.fix)
    }
}
