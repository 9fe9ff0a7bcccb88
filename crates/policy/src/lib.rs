//! Pure judgement: rules and a request give a [`Judgement`], always, and always the same one.
//!
//! This crate decides whether a tool call may run. It is the policy decision point of toolgate; the gate is the policy
//! enforcement point.
//!
//! Three types matter most:
//!
//! - [`RawPolicy`] holds rules and settings as users wrote them, in layers (managed, user, project …).
//!   [`RawPolicy::compile`] parses them and reports every [`RuleProblem`].
//! - [`Policy`] is the compiled form. [`Policy::survey`] analyses the command lines of an intent and lists the paths
//!   that must be resolved; [`Policy::decide`] judges a [`PolicyRequest`] that contains those facts.
//! - [`Judgement`] is the result: a verdict (allow on terms, ask a question, deny for a reason), the checks that led to
//!   it, and the change of settings that would allow the call.
//!
//! # How a call is judged
//!
//! A deny rule beats an ask rule, and an ask rule beats an allow rule, whatever their layers and their order. A deny or
//! ask rule counts if it could match: under every spelling of a name that some file system treats as equal, for every
//! symlink on the way, for every simple command of a compound line. An allow rule counts only if it certainly matches.
//! When no rule matches, the mode decides, and by default the call asks.
//!
//! Judging a command line is a prediction, so the verdict carries rights that the kernel enforces while the command
//! runs, and a [`CommandGuard`] applies the rules for files to the real paths that it opens.
//!
//! # Failing closed
//!
//! A deny or ask rule that cannot be parsed is fatal: the compiled policy denies every call. A path that was not
//! resolved, a command line that cannot be parsed and an effect that is unknown ask.
//!
//! # What this crate does not do
//!
//! It reads no file, no clock and no environment variable, and it never waits. It does not know the JSON of any tool:
//! tools declare their effects as an intent. It does not enforce anything: the gate and the sandbox do.
//!
//! # Example
//!
//! ```
//! use toolgate_policy::{HookOpinion, Layer, LayerRules, PathFacts, PolicyRequest, RawPolicy, Workspace};
//! use toolgate_proto::{AbsPath, Effect, Intent, SourceId, ToolIdentity, ToolName};
//!
//! let root = AbsPath::new("/ws").unwrap();
//! let mut rules = LayerRules::new(Layer::Project, root.clone());
//! rules.deny.push("WebSearch".into());
//! let (policy, problems) = RawPolicy::default().with_layers(vec![rules]).compile();
//! assert!(problems.is_empty());
//!
//! let tool = ToolIdentity::new("WebSearch", SourceId::Builtin).with_read_only(true);
//! let workspace = Workspace::new(root);
//! let intent = Intent::new("search the web", [Effect::Search { query: "rust".to_owned() }]);
//! let survey = policy.survey(&intent, &workspace);
//! let judgement = policy.decide(&PolicyRequest {
//!     tool: &tool,
//!     input: &serde_json::Map::new(),
//!     intent: &intent,
//!     survey: &survey,
//!     workspace: &workspace,
//!     facts: &PathFacts::none(),
//!     opinions: &[] as &[HookOpinion],
//! });
//! assert_eq!(
//!     judgement.verdict.reason().to_string(),
//!     "tool `WebSearch` is denied by a rule (deny rule `WebSearch` from project)"
//! );
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod advice;
mod argument_paths;
mod book_condition;
mod book_shape;
mod book_tool;
pub mod cases;
mod check_mcp_name;
pub mod codex;
mod compile;
mod decide;
mod fetch_settings;
mod field_text;
mod fold;
mod footprint;
pub mod gemini;
pub mod goose;
mod guard;
mod judgement;
mod lint;
pub mod mcp_names;
mod path_spelling;
mod policy_book;
mod protect;
mod raw;
mod read_filter;
mod rule;
mod setting_places;
mod shell_glob;
mod tool_names;
mod translation;
pub mod url;

pub use advice::{SettingsAdvice, SettingsChange};
pub use book_condition::{BookCondition, BookOperator, ConditionValues};
pub use check_mcp_name::McpNames;
pub use decide::{IntentSurvey, Policy, PolicyRequest, SurveyedCommand};
pub use footprint::CommandFootprint;
pub use guard::CommandGuard;
pub use judgement::{CommandVerdict, HookOpinion, Judgement, JudgementStep};
pub use policy_book::{BookContent, BookRule, RawBook};
pub use raw::{
    Enforcement, Layer, LayerRules, ManagedRestrictions, ProblemSeverity, RawPolicy, RawRule, RuleAction,
    RuleProblem, UnmatchableRules,
};
pub use read_filter::ReadFilter;
pub use rule::canonical_rule;
pub use setting_places::{SettingPlace, SettingPlaces};
pub use shell_glob::ShellGlob;
pub use tool_names::{check_tool_names, find_intended_name, find_intended_tool, is_known_tool};
pub use toolgate_proto::{EntryKind, PathFact, PathFacts, Workspace};
pub use translation::{RuleTranslation, TranslationNote};
