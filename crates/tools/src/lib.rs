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

mod change_words;
mod changed_files;
mod diff;
mod file_words;
mod notebook;
mod read_state;
mod search_words;
mod settings_check;
mod shell;
mod text;

pub use changed_files::{ChangedFile, FileChange, changed_files, changed_files_after_quiet, watch_reads};
pub use diff::{count_changed_lines, unified_diff};
pub use read_state::{ReadState, seed_read_state};
pub use settings_check::SchemaCheck;
pub use shell::{OnTimeout, SandboxSettings, Surroundings, background_tasks, surround};

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
pub struct Builtin {
    /// The toolsets it is in.
    pub toolsets: &'static [Toolset],
    register: fn(&Gate) -> Result<(), RegisterError>,
}

const CLAUDE: &[Toolset] = &[Toolset::Claude];
const PLAIN: &[Toolset] = &[Toolset::Plain];
const BOTH: &[Toolset] = &Toolset::ALL;

/// Every built-in tool.
pub const BUILTINS: &[Builtin] = &[
    Builtin { toolsets: BOTH, register: |gate| add(gate, ls::LsTool) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, glob::Glob) },
    Builtin { toolsets: PLAIN, register: |gate| add(gate, glob::PlainGlobTool) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, grep::Grep) },
    Builtin { toolsets: PLAIN, register: |gate| add(gate, grep::PlainGrepTool) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, read::Read) },
    Builtin { toolsets: PLAIN, register: |gate| add(gate, read::ReadFile) },
    Builtin { toolsets: BOTH, register: |gate| add(gate, read::ReadManyFilesTool) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, write::Write) },
    Builtin { toolsets: PLAIN, register: |gate| add(gate, write::WriteFileTool) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, edit::Edit) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, edit::MultiEditTool) },
    Builtin { toolsets: PLAIN, register: |gate| add(gate, edit::EditFileTool) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, notebook_edit::NotebookEditTool) },
    Builtin { toolsets: CLAUDE, register: |gate| add(gate, bash::Bash) },
    Builtin { toolsets: PLAIN, register: |gate| add(gate, bash::ShellTool) },
    Builtin { toolsets: BOTH, register: |gate| add(gate, task_output::TaskOutputTool) },
    Builtin { toolsets: BOTH, register: |gate| add(gate, task_stop::TaskStopTool) },
];

fn add<T: Tool>(gate: &Gate, tool: T) -> Result<(), RegisterError> {
    gate.register(SourceId::Builtin, tool)
}

/// Registers every tool of a toolset.
pub fn register(gate: &Gate, toolset: Toolset) -> Result<(), RegisterError> {
    BUILTINS
        .iter()
        .filter(|builtin| builtin.toolsets.contains(&toolset))
        .try_for_each(|builtin| (builtin.register)(gate))
}
