//! The nouns that cross any boundary of toolgate.
//!
//! A model asks for a tool: that is a [`ToolCall`], untrusted.
//! A tool says what the call would do: that is an [`Intent`], a list of typed [`Effect`]s.
//! Policy answers with a [`Verdict`], which carries either the [`Terms`] of the run, a [`ApprovalQuestion`] for a person,
//! or the [`VerdictReason`] of the denial.
//! What comes back is an [`Output`] or a [`Refusal`], and one [`CallRecord`] remembers all of it.
//!
//! This crate holds those values and how they are written down (strict JSON in, provider formats out).
//! It knows no file system, no clock, no async runtime, and no tool.
//!
//! ```
//! use toolgate_proto::{Code, Format, Refusal, json};
//!
//! let problem = json::parse_object(r#"{"path": "a", "p\u0061th": "b"}"#, json::Limits::CALL).unwrap_err();
//! let refusal = Refusal::from(problem);
//! assert_eq!(refusal.code, Code::DuplicateKey);
//! assert!(refusal.to_string().contains("`path`"));
//! ```

#![forbid(unsafe_code)]

pub mod address;
mod call;
mod definition;
mod event;
mod facts;
pub mod file_time;
pub mod host_pattern;
mod intent;
pub mod json;
mod mode;
mod name;
mod output;
mod path;
pub mod protected_names;
mod record;
mod refusal;
mod render;
pub mod secret_names;
mod verdict;
pub mod wildcard;

pub use call::ToolCall;
pub use definition::{DefinitionFormat, ToolConcurrency, ToolDefinition, ToolHints, render_definitions};
pub use event::Event;
pub use facts::{EntryKind, PathFact, PathFacts, Workspace};
pub use intent::{CommandLine, Effect, Intent, PathScope, ShellKind, WriteKind};
pub use mode::{Mode, UnknownMode};
pub use name::{CallId, SessionId, SourceId, ToolIdentity, ToolName};
pub use output::{Output, OutputBlock, ResourceBody, SessionModifier};
pub use path::{AbsPath, NotAbsolute};
pub use record::{
    ApprovalRecord, CallAnomaly, CallRecord, HookRecord, OutcomeRecord, Principal, StageRecord, VerdictRecord,
};
pub use refusal::{CODES, Code, CodeInfo, Refusal, Stage};
pub use render::{
    CallResult, anthropic_result, escape_invisible, fit_line, fit_text, mcp_result, openai_message,
    terminal_text,
};
pub use verdict::{
    ApprovalQuestion, CommandRights, GitTerms, GitUse, NetworkAccess, RightsLevel, Risk, RiskLevel,
    RiskWarning, RuleRef, RuleSuggestion, Terms, Verdict, VerdictReason, WriteRight,
};
