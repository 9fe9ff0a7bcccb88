//! The built-in tools of toolgate: reading, searching and changing files, running commands, and fetching from the web.
//!
//! A built-in tool implements [`Tool`] from the gate crate.
//! It declares the effects of a call (its intent), the gate asks policy about them, and only then does the tool run,
//! with a [`Cleared`](toolgate_gate::Cleared) token that opens the granted paths and no others.
//!
//! Models are trained on different tool names and fields, so there are two [`Toolset`]s.
//! Where they differ, a file has two toolset adapters: each maps its own input to one shared implementation.
//! `Read` and `read_file`, for example, both read a page with the code in `read/page.rs`.
//!
//! # Principal types
//!
//! - [`BUILTINS`] lists every [`BuiltinTool`], and [`register`] adds those of a toolset to a gate.
//! - [`ReadState`] stores what a session has seen of each file.
//!   `Write` and `Edit` compare it with the file on disk, so that a stale edit is refused and no update is lost.
//! - [`ShellConfig`] sets the environment, the limits and the sandbox of the commands that `Bash` runs.
//!
//! # Example
//!
//! ```
//! use toolgate_gate::{CallOptions, Gate, GateParts};
//! use toolgate_proto::{AbsPath, ToolCall};
//! use toolgate_tools::{Toolset, register};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let root = AbsPath::new(directory.path().canonicalize()?)?;
//! # toolgate_files::make_private_dir(&root.join("src"))?;
//! let gate = Gate::new(GateParts::default());
//! register(&gate, Toolset::Claude)?;
//!
//! // Reading inside the workspace needs no rule.
//! let session = toolgate_testkit::session_in(&root);
//! let call = ToolCall::new("call_1", "ls", "{}");
//! let outcome = gate.call(&session, call, CallOptions::default()).await;
//! assert_eq!(outcome.result?.model_text(), "d src/\n[1 directory]");
//! # Ok(())
//! # }
//! ```
//!
//! # Adding a tool
//!
//! Copy `ls.rs` and add one line to [`BUILTINS`].
//! A tool's file has its input, the description that models read, its intent, its run and its tests.
//!
//! # What this crate does not do
//!
//! It does not decide what is allowed, does not ask users and does not open files by itself: paths are opened by
//! `toolgate-files` and commands are started by `toolgate-process`.
//! It knows no provider format and no terminal.

#![forbid(unsafe_code)]

mod ask_user_question;
mod bash;
#[cfg(feature = "web")]
mod browser_tools;
mod edit;
mod enter_plan_mode;
mod exit_plan_mode;
mod glob;
mod grep;
mod ls;
mod memory;
mod monitor;
mod notebook_edit;
mod read;
mod save_memory;
mod schedules;
#[cfg(feature = "web")]
mod screenshot;
mod task_output;
mod task_stop;
mod tasks;
mod tool_search;
#[cfg(feature = "web")]
mod web_fetch;
#[cfg(feature = "web")]
mod web_search;
mod worktree;
mod write;

mod change_refusal;
mod changed_files;
mod diff;
mod file_refusal;
mod notebook;
mod preview_change;
mod read_state;
mod render_change;
mod schema_check;
mod search;
mod shell;
mod state_stores;
mod text_encoding;
#[cfg(feature = "web")]
mod web;

#[cfg(feature = "web")]
pub use browser_tools::BROWSER_TOOLS;
pub use changed_files::{ChangedFile, FileChange, changed_files, changed_files_after_quiet, watch_reads};
pub use diff::{count_changed_lines, unified_diff};
pub use monitor::take_monitor_events;
pub use read_state::{ReadState, seed_read_state};
pub use schedules::scheduled_prompt;
pub use schema_check::SchemaCheck;
pub use shell::{OnTimeout, SandboxSettings, ShellConfig, background_tasks, set_shell_config};
pub use state_stores::{
    MemoryScope, StateConfig, claim_due_schedules, claim_own_schedules, memory_dir, own_task_list,
    schedule_owner, set_state_config, shared_task_list,
};
pub use tool_search::{ToolSearchInput, ToolSearchTool};
#[cfg(feature = "web")]
pub use web::{
    PageForm, PageModel, PageText, SearchConfig, SearchService, WebConfig, convert_page, is_selector,
    note_user_text, set_web_config, upgrade_scheme,
};

pub use worktree::{LeftWorktree, enter_worktree, leave_worktree};

use std::collections::BTreeSet;
use toolgate_gate::{Gate, RegisterError, RegisteredTool, Source, SourceTools, Tool};
use toolgate_proto::SourceId;

/// The naming scheme and input shapes of the built-in tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Toolset {
    /// The names and fields that Claude models are trained on: `Read`, `Edit`, `Bash`.
    #[default]
    Claude,
    /// Lower-case names and fields for other models: `read_file`, `edit_file`, `shell`.
    Plain,
}

impl Toolset {
    /// Every toolset.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Plain];

    /// The name that the command line and the settings use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Plain => "plain",
        }
    }
}

impl std::str::FromStr for Toolset {
    type Err = String;

    /// Parses the name of a toolset as settings and arguments spell it.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|set| set.as_str() == text)
            .ok_or_else(|| format!("unknown toolset `{text}`; use claude or plain"))
    }
}

/// A tool that ships with toolgate.
pub struct BuiltinTool {
    /// The toolsets that contain it.
    pub toolsets: &'static [Toolset],
    /// Adds the tool to a gate. A function pointer, because tools have different input types and the list is constant.
    prepare: fn() -> Result<RegisteredTool, RegisterError>,
}

/// Tools of the claude toolset only.
const CLAUDE: &[Toolset] = &[Toolset::Claude];
/// Tools of the plain toolset only.
const PLAIN: &[Toolset] = &[Toolset::Plain];
/// Tools with the same name and input in both toolsets.
const BOTH: &[Toolset] = &Toolset::ALL;

/// Every built-in tool, in the order in which a gate lists them.
pub const BUILTINS: &[BuiltinTool] = &[
    BuiltinTool { toolsets: BOTH, prepare: || prepare(ls::LsTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(glob::GlobTool) },
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(glob::PlainGlobTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(grep::GrepTool) },
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(grep::PlainGrepTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(read::ReadTool) },
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(read::ReadFileTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(read::ReadManyFilesTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(write::WriteTool) },
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(write::WriteFileTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(edit::EditTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(edit::MultiEditTool) },
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(edit::EditFileTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(notebook_edit::NotebookEditTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(bash::BashTool) },
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(bash::ShellTool) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(web_fetch::WebFetchTool) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(web_fetch::PlainWebFetchTool) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(screenshot::ScreenshotTool(Toolset::Claude)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(screenshot::ScreenshotTool(Toolset::Plain)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(web_search::WebSearchTool) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(web_search::PlainWebSearchTool) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(browser_tools::BrowserOpenTool(Toolset::Claude)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(browser_tools::BrowserOpenTool(Toolset::Plain)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(browser_tools::BrowserReadTool(Toolset::Claude)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(browser_tools::BrowserReadTool(Toolset::Plain)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(browser_tools::BrowserClickTool(Toolset::Claude)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(browser_tools::BrowserClickTool(Toolset::Plain)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(browser_tools::BrowserTypeTool(Toolset::Claude)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(browser_tools::BrowserTypeTool(Toolset::Plain)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(browser_tools::BrowserWaitTool(Toolset::Claude)) },
    #[cfg(feature = "web")]
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(browser_tools::BrowserWaitTool(Toolset::Plain)) },
    #[cfg(feature = "web")]
    BuiltinTool {
        toolsets: CLAUDE,
        prepare: || prepare(browser_tools::BrowserScreenshotTool(Toolset::Claude)),
    },
    #[cfg(feature = "web")]
    BuiltinTool {
        toolsets: PLAIN,
        prepare: || prepare(browser_tools::BrowserScreenshotTool(Toolset::Plain)),
    },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(task_output::TaskOutputTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(task_stop::TaskStopTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(tasks::TodoWriteTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(tasks::TaskCreateTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(tasks::TaskGetTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(tasks::TaskListTool) },
    BuiltinTool { toolsets: CLAUDE, prepare: || prepare(tasks::TaskUpdateTool) },
    BuiltinTool { toolsets: PLAIN, prepare: || prepare(tasks::WriteTodosTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(schedules::CronCreateTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(schedules::CronListTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(schedules::CronDeleteTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(schedules::ScheduleWakeupTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(monitor::MonitorTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(worktree::EnterWorktreeTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(worktree::ExitWorktreeTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(enter_plan_mode::EnterPlanModeTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(exit_plan_mode::ExitPlanModeTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(memory::MemoryTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(ask_user_question::AskUserQuestionTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(save_memory::SaveMemoryTool) },
];

/// Registers a tool under the source that policy trusts as built-in.
fn prepare<T: Tool>(tool: T) -> Result<RegisteredTool, RegisterError> {
    RegisteredTool::new(SourceId::Builtin, tool)
}

/// Every tool of a toolset, made ready.
fn prepared_tools(toolset: Toolset) -> impl Iterator<Item = Result<RegisteredTool, RegisterError>> {
    BUILTINS
        .iter()
        .filter(move |builtin| builtin.toolsets.contains(&toolset))
        .map(|builtin| (builtin.prepare)())
}

/// The names of the built-in tools of both toolsets, with their other names.
pub fn builtin_names() -> BTreeSet<String> {
    let tools = BUILTINS.iter().filter_map(|builtin| (builtin.prepare)().ok());
    tools
        .flat_map(|tool| std::iter::once(tool.identity().name.to_string()).chain(tool.spec().aliases.clone()))
        .collect()
}

/// The fields in the input of the built-in tool with this name, in any toolset; `None` if there is none.
pub fn builtin_fields(name: &str) -> Option<BTreeSet<String>> {
    let mut tools = BUILTINS.iter().filter_map(|builtin| (builtin.prepare)().ok());
    let tool = tools.find(|tool| {
        tool.identity().name.as_str() == name || tool.spec().aliases.iter().any(|alias| alias == name)
    })?;
    let fields = tool.definition().input_schema.get("properties").and_then(|fields| fields.as_object());
    Some(fields.into_iter().flatten().map(|(field, _)| field.clone()).collect())
}

/// Whether a rule for this name that restricts finds the field in the input of a built-in tool, under the names that tool and
/// field have in any toolset.
pub fn restricts_builtin_field(name: &str, field: &str) -> bool {
    let tools = BUILTINS.iter().filter_map(|builtin| (builtin.prepare)().ok());
    let mut restricted = tools.filter(|tool| tool.identity().is_restricted_as(name));
    restricted.any(|tool| {
        let fields = tool.definition().input_schema.get("properties").and_then(|fields| fields.as_object());
        let places = tool.identity().restricted_fields(field);
        let mut names = places.into_iter().map(|place| place.split("[]").next().unwrap_or(place));
        names.any(|name| fields.is_some_and(|fields| fields.contains_key(name)))
    })
}

/// Registers every tool of a toolset, for a gate that has no source to close.
pub fn register(gate: &Gate, toolset: Toolset) -> Result<(), RegisterError> {
    prepared_tools(toolset).try_for_each(|tool| gate.register_tool(tool?))
}

/// The built-in tools of one toolset, as a source.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinTools {
    /// Which of them, under which names.
    toolset: Toolset,
}

impl BuiltinTools {
    /// The tools of a toolset.
    pub fn new(toolset: Toolset) -> Self {
        Self { toolset }
    }
}

impl Source for BuiltinTools {
    /// Identifies all tools of this crate as built in.
    fn id(&self) -> SourceId {
        SourceId::Builtin
    }

    /// Registers the tools of one toolset; the tools of the other never reach the gate.
    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        prepared_tools(self.toolset).try_for_each(|tool| tools.register_tool(tool?))
    }
}
