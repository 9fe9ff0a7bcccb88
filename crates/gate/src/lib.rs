//! The boundary: everything between "the model asked for a tool" and an executed action or a structured refusal.
//!
//! The principal type is [`Gate`].
//! An edge (a command line, an MCP server, an agent loop) hands it a [`ToolCall`](toolgate_proto::ToolCall) and gets
//! back a [`CallOutcome`]: a result for the model and one record.
//! How that happens is one straight function, in `pipeline.rs`.
//! [`CallScheduler`] and [`CallBatch`] run many calls at once where their effects do not conflict.
//!
//! Five things can be plugged in, each a small trait: a [`Tool`] describes and performs, a [`Source`] brings tools that
//! come and go, a [`Hook`] sees calls before and after they run and may object, an [`Approver`] brings the decision of a
//! user, a [`Sink`] stores records.
//! Nothing can be plugged in that gets around the gate: a tool runs only with a [`Cleared`], and only the gate makes
//! one.
//!
//! The gate knows no tool by name, no provider and no terminal.
//!
//! ```
//! use toolgate_gate::{CallOptions, FnTool, Gate, GateParts, Session, ToolSpec};
//! use toolgate_policy::{Layer, LayerRules, RawPolicy};
//! use toolgate_proto::{AbsPath, Output, Principal, SourceId, ToolCall, Workspace};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let here = AbsPath::new("/").unwrap();
//! let mut rules = LayerRules::new(Layer::User, here.clone());
//! rules.allow.push("greet".into());
//! let policy = RawPolicy::default().with_layers(vec![rules]);
//! let gate = Gate::new(GateParts::default().with_policy(policy));
//! let greet = FnTool::new(ToolSpec::new("greet", "Greets by name."), |input: Greet, _cleared| async move {
//!     Ok(Output::text(format!("hello, {}", input.name)))
//! });
//! gate.register(SourceId::Sdk, greet).unwrap();
//!
//! let workspace = Workspace::new(here);
//! let session = Session::new("s1".into(), Principal::new("sdk"), workspace);
//! let call = ToolCall::new("call_1", "greet", r#"{"name": "world"}"#);
//! let outcome = gate.call(&session, call, CallOptions::default()).await;
//! assert_eq!(outcome.result.unwrap().model_text(), "hello, world");
//! # });
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod pipeline;

mod call_admission;
mod call_context;
mod call_options;
mod catch_panic;
mod check;
mod event_bus;
mod gate;
pub mod permit;
mod record_builder;
mod span;
mod stage;

mod approve;
mod fn_tool;
mod hook;
mod host_rules;
pub mod ledger;
mod progress;
mod registry;
mod schedule;
pub mod schema;
mod session;
mod short_form;
mod sink;
mod source;
mod stream;
mod tool;
mod tool_listing;
pub mod truncate;
mod turn_hooks;
mod turn_rules;
mod visibility;

pub use approve::{
    ApprovalAnswer, ApprovalBus, ApprovalReply, ApprovalReplyError, ApprovalRequest, ApprovalRequestReceiver,
    ApprovalResponder, Approver, GrantStore, QuestionAnswer, QuestionCounter, QuestionOption,
    QuestionOutcome, QuestionPosition, QuestionRequest, QuestionTicket, UserQuestion,
};
pub use call_context::{CallContext, CallPurpose};
pub use call_options::{CallOptions, CallOutcome};
pub use fn_tool::FnTool;
pub use gate::{Gate, GateParts, ToolListSnapshot};
pub use hook::SessionHooks;
pub use hook::{
    BatchHookOutcome, BatchedCall, Hook, HookAnswer, HookBatch, HookCall, HookDecision, HookEvent,
    HookFailure, OnFailure,
};
pub use host_rules::{HostRules, HostVerdict, RedirectDecision};
pub use permit::{Cleared, Permit};
pub use progress::CallProgress;
pub use registry::{RegisterError, RegisteredTool, Registry};
pub use schedule::{CallBatch, CallReservation, CallScheduler, FinishedBatchCall, ScheduledCall};
pub use session::{FileSeen, Session, SessionContext, SessionLimits};
pub use sink::{MemorySink, Sink};
pub use source::{AttachedSource, Source, SourceTools};
pub use stage::judge::{IntendedCall, judge_intended};
pub use stage::resolve::find_meant_tool;
pub use stream::{CallAssembler, CallStreamError, ProviderApi, SseEventTooLong, SseReader, StreamedCalls};
pub use tool::{Tool, ToolSpec};
pub use visibility::{ALL_GROUPS, SEARCH_GROUP, Visibility};
