//! The tool runtime for LLM agents.
//!
//! A model asks for a tool; toolgate owns everything from there to either an executed action or a structured refusal.
//! Every call crosses one boundary in one order: find the tool, check the input, tell the hooks, judge, ask somebody
//! if need be, check the tool's own conditions, run, tell the hooks, and leave one record.
//!
//! Build a [`Toolgate`], hand [`Toolgate::definitions`] to your model, and every call it makes to
//! [`Toolgate::call`].
//! What comes back renders in your provider's format.
//!
//! ```
//! use toolgate::{Format, Toolgate, render};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let dir = tempfile::tempdir().unwrap();
//! # let project = dir.path();
//! # std::fs::write(project.join("notes.txt"), "remember the milk\n").unwrap();
//! let toolgate = Toolgate::builder(project).build()?;
//! let tools = toolgate.definitions(Format::Anthropic);
//! assert!(tools.to_string().contains("\"Read\""));
//!
//! let input = serde_json::json!({ "file_path": project.join("notes.txt") });
//! let closed = toolgate.call("toolu_1", "Read", &input.to_string()).await;
//! let block = render::anthropic_result(&closed.record.call, &closed.result);
//! assert!(block.to_string().contains("remember the milk"));
//! # Ok::<(), toolgate::BuildError>(())
//! # }).unwrap();
//! ```
//!
//! Four things can be plugged in, each by one small trait, each with a program in `examples/`: a [`Tool`], a [`Hook`],
//! an [`Approver`] and a [`Sink`].
//! None of them can get a call around the boundary.
//!
//! By default nothing is written: give the builder a [`Sink`], such as [`LedgerSink`], to keep records.
//! This crate assembles; what it assembles lives in `toolgate-gate` (the boundary), `toolgate-policy` (the decision),
//! `toolgate-tools` (what ships) and `toolgate-os` (the hands).

#![forbid(unsafe_code)]

mod builder;
pub mod enforcement;
mod hooks;
pub mod mcp_servers;
mod prompt_tool;
pub mod settings;
mod settings_reloader;
#[cfg(feature = "otel")]
pub mod telemetry;
pub mod unregistered_tool;

pub use builder::{BuildError, Toolgate, ToolgateBuilder};
pub use prompt_tool::PromptTool;
pub use toolgate_files::{
    ConflictHandling, Journal, JournalLimits, SpillLimits, UndoFilter, UndoProblem, UndoSelector,
};
pub use toolgate_gate::ledger::{self, LedgerSink};
pub use toolgate_gate::{
    ApprovalAnswer, ApprovalBus, ApprovalReply, ApprovalReplyError, ApprovalRequest, ApprovalRequestReceiver,
    ApprovalResponder, Approver, BatchHookOutcome, BatchedCall, CallBatch, CallContext, CallOptions,
    CallOutcome, CallProgress, Cleared, FinishedBatchCall, FnTool, Gate, GrantStore, Hook, HookAnswer,
    HookBatch, HookCall, HookDecision, HookEvent, HookFailure, MemorySink, OnFailure, RegisterError, Session,
    Sink, Tool, ToolSpec, Visibility,
};
pub use toolgate_mcp as mcp;
pub use toolgate_policy::{Judgement, Layer, LayerRules, Policy, RawPolicy, RawRule};
pub use toolgate_proto::{
    AbsPath, ApprovalQuestion, CallAnomaly, CallId, CallRecord, CallResult, Code, CommandRights,
    DefinitionFormat, Effect, Event, Intent, Mode, Output, OutputBlock, PathScope, Refusal, RightsLevel,
    SourceId, Stage, ToolCall, ToolDefinition, ToolName, Verdict, WriteKind,
};
pub use toolgate_tools::{OnTimeout, SandboxSettings, ShellConfig, Toolset, background_tasks};

/// Results in the form that each edge takes.
pub mod render {
    pub use toolgate_proto::{
        anthropic_result, escape_invisible, mcp_result, openai_message, render_definitions, terminal_text,
    };
}
