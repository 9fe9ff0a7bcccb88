//! The built-in tools, one file each, in two toolsets over one engine.
//!
//! A file holds everything about its tool: the documentation that models read, the input, the intent, the guard, the
//! run, and the tests.
//! Where the two toolsets name or shape a tool differently, the file holds both faces; behaviour is written once.
//!
//! To add a tool, copy `ls.rs` and add one line to [`BUILTINS`].
//! This crate knows no policy and no terminal: it describes and performs.

#![forbid(unsafe_code)]

mod bash;
mod edit;
mod glob;
mod grep;
mod ls;
mod notebook_edit;
mod read;
mod task_output;
mod task_stop;
mod write;

mod change_report;
mod changed_files;
mod diff;
mod file_refusal;
mod notebook;
mod read_state;
mod schema_check;
mod search_output;
mod shell;
mod text_encoding;

pub use changed_files::{ChangedFile, FileChange, changed_files, changed_files_after_quiet, watch_reads};
pub use diff::{count_changed_lines, unified_diff};
pub use read_state::{ReadState, seed_read_state};
pub use schema_check::SchemaCheck;
pub use shell::{OnTimeout, SandboxSettings, ShellConfig, background_tasks, set_shell_config};

use toolgate_gate::{Gate, RegisterError, RegisteredTool, Source, SourceTools, Tool};
use toolgate_proto::SourceId;

/// Which names and shapes the tools wear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Toolset {
    /// The names and fields that Claude's models were trained on.
    #[default]
    Claude,
    /// Plain lower-case names and fields.
    Plain,
}

impl Toolset {
    /// Every toolset.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Plain];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Plain => "plain",
        }
    }
}

impl std::str::FromStr for Toolset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|set| set.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no toolset; use claude or plain"))
    }
}

/// A tool that ships with toolgate.
pub struct BuiltinTool {
    /// The toolsets it is in.
    pub toolsets: &'static [Toolset],
    prepare: fn() -> Result<RegisteredTool, RegisterError>,
}

const CLAUDE: &[Toolset] = &[Toolset::Claude];
const PLAIN: &[Toolset] = &[Toolset::Plain];
const BOTH: &[Toolset] = &Toolset::ALL;

/// Every built-in tool.
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
    BuiltinTool { toolsets: BOTH, prepare: || prepare(task_output::TaskOutputTool) },
    BuiltinTool { toolsets: BOTH, prepare: || prepare(task_stop::TaskStopTool) },
];

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
    fn id(&self) -> SourceId {
        SourceId::Builtin
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        prepared_tools(self.toolset).try_for_each(|tool| tools.register_tool(tool?))
    }
}
