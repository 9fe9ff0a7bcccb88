//! The tool runtime for LLM agents.
//!
//! A model asks for a tool; toolgate owns everything from there to either an executed action or a structured refusal.
//! Every call crosses one boundary in one order: resolve the tool, validate the input, run the hooks, judge the effects,
//! ask an approver if a rule wants it, check the tool's own preconditions, run, run the hooks again, and write one record.
//!
//! The principal type is [`Toolgate`]: one session behind one gate.
//! Build it, pass [`Toolgate::definitions`] to your model, and pass every call that the model makes to
//! [`Toolgate::call`], or many at once to [`Toolgate::call_batch`].
//! [`render`] turns the result into your provider's format.
//!
//! ```
//! use toolgate::serde_json::json;
//! use toolgate::{DefinitionFormat, Toolgate, render};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let dir = tempfile::tempdir().unwrap();
//! # let project = dir.path();
//! # std::fs::write(project.join("notes.txt"), "remember the milk\n").unwrap();
//! let toolgate = Toolgate::builder(project).build()?;
//! let tools = toolgate.definitions(DefinitionFormat::Anthropic);
//! assert!(tools.to_string().contains("\"Read\""));
//!
//! let input = json!({ "file_path": project.join("notes.txt") });
//! let outcome = toolgate.call("toolu_1", "Read", &input.to_string()).await;
//! let block = render::anthropic_result(&outcome.record.call, &outcome.result);
//! assert!(block.to_string().contains("remember the milk"));
//! # Ok::<(), toolgate::BuildError>(())
//! # }).unwrap();
//! ```
//!
//! There are five extension points, each a small trait, each with a program in `examples/`.
//! The builder takes each by value:
//!
//! | trait | what it does | builder |
//! |---|---|---|
//! | [`Tool`] | describes and performs one kind of call | [`ToolgateBuilder::tool`] |
//! | [`Source`] | brings tools that come and go | [`ToolgateBuilder::source`] |
//! | [`Hook`] | sees calls before and after they run, and may object | [`ToolgateBuilder::hook`] |
//! | [`Approver`] | answers when policy asks | [`ToolgateBuilder::approver`] |
//! | [`Sink`] | keeps records | [`ToolgateBuilder::sink`] |
//!
//! None of them can take a call around the boundary.
//! `examples/agent_loop.rs` puts them together: a model's stream, a batch, an approver and events.
//!
//! An embedding program imports this crate only: every type that a signature names is exported here, types of other
//! crates included ([`serde`], [`serde_json`], [`schemars`], [`url`], [`futures_util`], and those of `tokio`).
//! Types that may grow are `#[non_exhaustive]` and are made by constructors and `with_…` methods; the enums on the path
//! of a decision ([`Verdict`], [`Effect`], [`Stage`]) are exhaustive on purpose, so that a new variant breaks the build
//! of code that would have ignored it.
//! Without the default feature `cli` the library has neither an argument parser nor a terminal among its dependencies.
//!
//! By default nothing is written: give the builder a [`Sink`], such as [`LedgerSink`], to keep records.
//! The library never prints, and reads neither the environment nor the working directory of the process.

#![forbid(unsafe_code)]

/// Compiles and runs the examples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct EmbeddingPage;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmePage;

mod builder;
pub mod enforcement;
mod hooks;
#[cfg(feature = "lsp")]
pub mod lsp_servers;
pub mod mcp_servers;
#[cfg(feature = "web")]
mod page_model;
mod plugin_server_task;
pub mod plugins;
mod prompt_tool;
pub mod settings;
mod settings_reloader;
pub mod skills;
#[cfg(feature = "otel")]
pub mod telemetry;
mod toolgate;
pub mod unregistered_tool;

pub use self::toolgate::Toolgate;
pub use builder::{BuildError, ToolgateBuilder};
pub use hooks::callback::HostHooks;
pub use prompt_tool::PromptTool;
pub use toolgate_files::{
    ConflictHandling, ContentCheck, Journal, JournalLimits, SpillLimits, UndoFilter, UndoProblem,
    UndoSelector,
};
pub use toolgate_gate::ledger::{self, LedgerSink};
pub use toolgate_gate::truncate::KeptPart;
pub use toolgate_gate::{
    ApprovalAnswer, ApprovalBus, ApprovalReply, ApprovalReplyError, ApprovalRequest, ApprovalRequestReceiver,
    ApprovalResponder, Approver, AttachedSource, BatchHookOutcome, BatchedCall, CallAssembler, CallBatch,
    CallContext, CallOptions, CallOutcome, CallProgress, CallPurpose, CallReservation, CallScheduler,
    CallStreamError, Cleared, FileSeen, FinishedBatchCall, FnTool, Gate, GateParts, GrantStore, Hook,
    HookAnswer, HookBatch, HookCall, HookDecision, HookEvent, HookFailure, HostRules, HostVerdict,
    MemorySink, OnFailure, ProviderApi, QuestionAnswer, QuestionCounter, QuestionOption, QuestionOutcome,
    QuestionPosition, QuestionRequest, QuestionTicket, RegisterError, RegisteredTool, ScheduledCall, Session,
    SessionContext, SessionHooks, SessionLimits, Sink, Source, SourceTools, StreamedCalls, Tool,
    ToolListSnapshot, ToolSpec, UserQuestion, Visibility,
};
pub use toolgate_policy::{Judgement, Layer, LayerRules, Policy, RawPolicy, RawRule};
pub use toolgate_process::SystemLog;
pub use toolgate_proto::{
    AbsPath, ApprovalCard, ApprovalQuestion, ApprovalRecord, CallAnomaly, CallId, CallRecord, CallResult,
    CardArgument, CardContent, CardLine, CardLineKind, CardSize, Code, CodeInfo, CommandLine, CommandRights,
    DefinitionFormat, Effect, EntryKind, Event, GitTerms, GitUse, GrantScope, HookRecord, Intent, Mode,
    NetworkAccess, NotAbsolute, OutcomeRecord, Output, OutputBlock, PathScope, Principal, Refusal,
    ResourceBody, RightsLevel, Risk, RiskLevel, RiskWarning, RuleRef, RuleSuggestion, RuleWidth, SessionId,
    SessionModifier, ShellKind, SourceId, Stage, StageRecord, Terms, ToolCall, ToolConcurrency,
    ToolDefinition, ToolHints, ToolIdentity, ToolName, UncoveredFile, Verdict, VerdictReason, VerdictRecord,
    Workspace, WriteKind, WriteRight,
};
pub use toolgate_tools::{
    BuiltinTools, ChangedFile, FileChange, LeftWorktree, OnTimeout, SandboxSettings, ShellConfig,
    StateConfig, Toolset, background_tasks, claim_due_schedules, claim_own_schedules, enter_worktree,
    leave_worktree, own_task_list, schedule_owner, scheduled_prompt, shared_task_list, take_monitor_events,
};
#[cfg(feature = "web")]
pub use toolgate_tools::{
    PageForm, PageModel, PageText, SearchConfig, SearchService, WebConfig, convert_page, note_user_text,
};

// Types of other crates that our signatures name, so that an embedding program needs no dependency for them.
// `toolgate::state` has `jiff`, and `toolgate::lsp` has `gen_lsp_types`.
pub use futures_util::future::BoxFuture;
pub use futures_util::{self, Stream};
pub use schemars;
pub use serde;
pub use serde_json;
pub use tokio::io::{AsyncRead, AsyncWrite};
pub use tokio::sync::broadcast::Receiver as EventReceiver;
pub use tokio::sync::watch::Receiver as WatchReceiver;
pub use tokio_util::sync::CancellationToken;
pub use url;

/// The files that a call may touch, the journal of their changes, undo, and results that are kept in files.
pub mod files {
    pub use toolgate_files::{
        AppliedFileChange, ChangeProblem, ChangeRecorder, ChangeState, CommandChanges, CommandSnapshots,
        ContentDescriptor, ContentHash, DirectoryEntry, FileFingerprint, FileProblem, FileRestore,
        FileSnapshot, FileStamp, GrantedAccess, GrantedFiles, HiddenFileFilter, IgnoreFile, JournalChange,
        LockedFile, MovedChanges, PathGrant, SearchTree, SecretFileMatcher, SpillCleanupReport, SpillStore,
        UndoAvailability, UndoConflict, UndoOutcome, UndoPlan,
    };
}

/// Rules as they are written, the judgement of a call, and the analysis of the command lines in it.
pub mod policy {
    pub use toolgate_gate::IntendedCall;
    pub use toolgate_policy::url::{
        AddressClass, FetchObjection, FetchSettings, FetchTarget, RedirectDecision, RedirectHop,
    };
    pub use toolgate_policy::{
        CommandFootprint, CommandGuard, CommandVerdict, Enforcement, HookOpinion, IntentSurvey,
        JudgementStep, ManagedRestrictions, PolicyRequest, ProblemSeverity, RawBook, ReadFilter, RuleAction,
        RuleProblem, SettingPlace, SettingPlaces, SettingsAdvice, SettingsChange, SurveyedCommand,
        UnmatchableRules,
    };
    pub use toolgate_proto::{PathFact, PathFacts};
    pub use toolgate_shell_syntax::{
        CommandAnalysis, CommandDanger, CommandDoubt, CommandPart, CommandWord, DangerKind, DangerResponse,
        DangerStanding, DoubtKind, EffectOrigin, InferredEffect, ShellExpansionKind,
    };
}

/// The stores of what agents keep between calls.
pub mod state {
    pub use toolgate_state::{
        CronExpression, DueSchedule, MemoryEntry, MemoryError, MemoryHit, MemoryNote, MemoryStore,
        NewSchedule, NewTask, SaveOutcome, ScheduleError, ScheduleItem, ScheduleOwner, ScheduleStore,
        ScheduleTime, StateError, TaskChange, TaskError, TaskEvent, TaskItem, TaskListSummary, TaskNote,
        TaskStatus, TaskStore, TaskUpdate, jiff,
    };
    pub use toolgate_tools::{MemoryScope, memory_dir};
}

/// Git worktrees, which give a session or an agent a checkout of its own.
pub mod worktree {
    pub use toolgate_process::{GitWorktree, GitWorktrees, WORKTREE_FOLDER, WorktreeChanges};
}

/// What commands run in: their limits, and the guard that answers for files while they run.
pub mod sandbox {
    pub use toolgate_process::GitHelpers;
    pub use toolgate_process::sandbox::{
        ChangeObserver, FileGuard, PathGuard, ProcessLimits, SandboxMechanism,
    };
}

/// The Model Context Protocol: the gate as a server, and other servers as a source of tools.
pub mod mcp {
    // What an `HttpListener` is made of.
    pub use tokio::net::{TcpListener, UnixListener};
    pub use toolgate_mcp::*;
    pub use toolgate_process::{ByteSink, ByteSource, ServerLaunch};
}

/// Language servers: their configuration, their processes, and the tool that asks them.
#[cfg(feature = "lsp")]
pub mod lsp {
    pub use toolgate_lsp::*;
}

/// The agent: model providers, the loop of a turn, and what it reports.
pub mod agent {
    pub use toolgate_agent::*;
}

/// The control protocol that agent SDKs speak with a host program.
pub mod host {
    pub use toolgate_host::*;
}

/// Results in the form that each edge takes.
pub mod render {
    pub use toolgate_proto::{
        anthropic_result, escape_invisible, mcp_result, openai_message, render_definitions, terminal_text,
    };
}
