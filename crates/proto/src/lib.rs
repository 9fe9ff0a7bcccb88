//! The types that cross the boundaries of toolgate, and the pure facts that several crates share.
//!
//! # The values of a call
//!
//! A model requests a tool: that is a [`ToolCall`], which is untrusted.
//! The tool declares what the call would do: that is an [`Intent`], a list of typed [`Effect`]s.
//! Policy answers with a [`Verdict`]: the [`Terms`] of a run, an [`ApprovalQuestion`] for the user, or the
//! [`VerdictReason`] of a denial.
//! The result is an [`Output`] or a [`Refusal`], and one [`CallRecord`] stores all of it.
//!
//! # How they are written
//!
//! [`json`] is the strict parser for untrusted input. [`render_definitions`] and [`anthropic_result`],
//! [`openai_message`] and [`mcp_result`] write definitions and results in the formats of providers.
//!
//! ```
//! use toolgate_proto::{Code, Refusal, json};
//!
//! let error = json::parse_object(r#"{"path": "a", "p\u0061th": "b"}"#, json::JsonLimits::CALL).unwrap_err();
//! let refusal = Refusal::from(error);
//! assert_eq!(refusal.code, Code::DuplicateKey);
//! assert!(refusal.to_string().contains("`path`"));
//! ```
//!
//! # Facts with one home
//!
//! What several crates have to agree on is decided here, and nowhere else:
//!
//! - [`wildcard`]: what a `*` matches;
//! - [`host_pattern`] and [`address`]: which hosts a pattern names, and which are not of the public network;
//! - [`protected_names`] and [`secret_names`]: which files other programs trust, and which hold secrets;
//! - [`find_intended_name`]: which known name a misspelled one stands for;
//! - [`tool_synonyms()`] and [`field_synonyms`]: what tools and their fields are called in each toolset;
//! - [`number_text`]: the one text of a number, however JSON spells it;
//! - [`timestamp`]: whether a timestamp proves that a file did not change.
//!
//! # What it deliberately does not know
//!
//! The file system, clocks, async runtimes, and any particular tool. A tidy rule rejects a dependency that brings one in.

#![forbid(unsafe_code)]

pub mod address;
mod approval_card;
mod call;
mod call_result;
mod definition;
mod event;
mod facts;
mod fit_text;
mod format_count;
pub mod host_pattern;
mod intended_name;
mod intent;
pub mod json;
mod mode;
mod name;
mod number_text;
mod output;
mod path;
pub mod protected_names;
mod record;
mod refusal;
pub mod secret_names;
pub mod timestamp;
mod tool_synonyms;
mod verdict;
pub mod wildcard;

pub use approval_card::{
    ApprovalCard, CardArgument, CardContent, CardLine, CardLineKind, CardSize, GrantScope, RuleWidth,
    columns_of, wrap_columns,
};
pub use call::{ToolCall, main_argument};
pub use call_result::{CallResult, anthropic_result, mcp_result, openai_message, terminal_text};
pub use definition::{DefinitionFormat, ToolConcurrency, ToolDefinition, ToolHints, render_definitions};
pub use event::Event;
pub use facts::{EntryKind, PathFact, PathFacts, Workspace};
pub use fit_text::{escape_invisible, fit_line, fit_text, shorten_text};
pub use format_count::{format_count, format_nonzero_count};
pub use intended_name::find_intended_name;
pub use intent::{CommandLine, Effect, Intent, PathScope, ShellKind, WriteKind};
pub use mode::{Mode, UnknownMode};
pub use name::{CallId, SessionId, SourceId, ToolIdentity, ToolName};
pub use number_text::{number_text, spelled_number_text, whole_number};
pub use output::{Output, OutputBlock, ResourceBody, SessionModifier};
pub use path::{AbsPath, NotAbsolute};
pub use record::{
    ApprovalRecord, CallAnomaly, CallRecord, HookRecord, OutcomeRecord, Principal, StageRecord,
    UncoveredFile, VerdictRecord,
};
pub use refusal::{CODES, Code, CodeInfo, Refusal, Stage};
pub use tool_synonyms::{field_synonyms, tool_synonyms};
pub use verdict::{
    ApprovalQuestion, CommandRights, GitTerms, GitUse, NetworkAccess, RightsLevel, Risk, RiskLevel,
    RiskWarning, RuleRef, RuleSuggestion, Terms, Verdict, VerdictReason, WriteRight,
};
