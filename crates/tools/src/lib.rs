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

use toolgate_gate::{Gate, RegisterError, Tool};
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
    register: fn(&Gate) -> Result<(), RegisterError>,
}

const CLAUDE: &[Toolset] = &[Toolset::Claude];
const PLAIN: &[Toolset] = &[Toolset::Plain];
const BOTH: &[Toolset] = &Toolset::ALL;

/// Every built-in tool.
pub const BUILTINS: &[BuiltinTool] = &[
    BuiltinTool { toolsets: BOTH, register: |gate| register_builtin(gate, ls::LsTool) },
    BuiltinTool { toolsets: CLAUDE, register: |gate| register_builtin(gate, glob::GlobTool) },
    BuiltinTool { toolsets: PLAIN, register: |gate| register_builtin(gate, glob::PlainGlobTool) },
    BuiltinTool { toolsets: CLAUDE, register: |gate| register_builtin(gate, grep::GrepTool) },
    BuiltinTool { toolsets: PLAIN, register: |gate| register_builtin(gate, grep::PlainGrepTool) },
    BuiltinTool { toolsets: CLAUDE, register: |gate| register_builtin(gate, read::ReadTool) },
    BuiltinTool { toolsets: PLAIN, register: |gate| register_builtin(gate, read::ReadFileTool) },
    BuiltinTool { toolsets: BOTH, register: |gate| register_builtin(gate, read::ReadManyFilesTool) },
    BuiltinTool { toolsets: CLAUDE, register: |gate| register_builtin(gate, write::WriteTool) },
    BuiltinTool { toolsets: PLAIN, register: |gate| register_builtin(gate, write::WriteFileTool) },
    BuiltinTool { toolsets: CLAUDE, register: |gate| register_builtin(gate, edit::EditTool) },
    BuiltinTool { toolsets: CLAUDE, register: |gate| register_builtin(gate, edit::MultiEditTool) },
    BuiltinTool { toolsets: PLAIN, register: |gate| register_builtin(gate, edit::EditFileTool) },
    BuiltinTool {
        toolsets: CLAUDE,
        register: |gate| register_builtin(gate, notebook_edit::NotebookEditTool),
    },
    BuiltinTool { toolsets: CLAUDE, register: |gate| register_builtin(gate, bash::BashTool) },
    BuiltinTool { toolsets: PLAIN, register: |gate| register_builtin(gate, bash::ShellTool) },
    BuiltinTool { toolsets: BOTH, register: |gate| register_builtin(gate, task_output::TaskOutputTool) },
    BuiltinTool { toolsets: BOTH, register: |gate| register_builtin(gate, task_stop::TaskStopTool) },
];

fn register_builtin<T: Tool>(gate: &Gate, tool: T) -> Result<(), RegisterError> {
    gate.register(SourceId::Builtin, tool)
}

/// Registers every tool of a toolset.
pub fn register(gate: &Gate, toolset: Toolset) -> Result<(), RegisterError> {
    BUILTINS
        .iter()
        .filter(|builtin| builtin.toolsets.contains(&toolset))
        .try_for_each(|builtin| (builtin.register)(gate))
}
