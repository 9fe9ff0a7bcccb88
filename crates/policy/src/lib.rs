//! Pure judgement: a compiled [`Policy`] and a [`PolicyRequest`] give a [`Judgement`], always, and always the same.
//!
//! Nothing here reads a file, looks at a clock or waits.
//! What must be known of the machine comes in as [`PathFacts`]: os resolves links, roots and kinds of the paths that
//! [`Policy::survey`] names, and [`Policy::decide`] judges what they really are.
//!
//! Raw and compiled are two types: [`RawPolicy`] is what people wrote, in layers; [`RawPolicy::compile`] turns it
//! into a [`Policy`] and a list of [`RuleProblem`]s. A deny rule that cannot be read does not vanish: it is fatal,
//! and a policy built around it denies everything.
//!
//! ```
//! use toolgate_policy::{Layer, LayerRules, RawPolicy};
//! use toolgate_proto::{AbsPath, Mode};
//!
//! let mut rules = LayerRules::new(Layer::Project, AbsPath::new("/ws").unwrap());
//! rules.deny.push("WebSearch".into());
//! let (policy, problems) = RawPolicy { layers: vec![rules], mode: Mode::Default, ..RawPolicy::default() }.compile();
//! assert!(problems.is_empty() && policy.mode() == Mode::Default);
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

pub mod cases;
mod compile;
mod decide;
mod facts;
mod fold;
pub mod gemini;
mod guard;
mod judgement;
mod lint;
pub mod mcp;
mod path_spelling;
mod policy_book;
mod protect;
mod raw;
mod read_filter;
mod rule;
mod shell_glob;
pub mod url;

pub use decide::{IntentSurvey, Policy, PolicyRequest, SurveyedCommand};
pub use facts::{EntryKind, PathFact, PathFacts, Workspace};
pub use guard::CommandGuard;
pub use judgement::{CommandVerdict, HookOpinion, Judgement, JudgementStep};
pub use policy_book::{BookCondition, BookContent, BookOperator, BookRule, ConditionValues, RawBook};
pub use raw::{
    Enforcement, Layer, LayerRules, ManagedRestrictions, ProblemSeverity, RawPolicy, RawRule, RuleAction,
    RuleProblem,
};
pub use read_filter::ReadFilter;
pub use shell_glob::ShellGlob;
