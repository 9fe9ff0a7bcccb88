//! The grammar of the command line: the global options and the list of commands.
//!
//! The arguments of a command are defined in the file of that command. Parsing does not access the machine:
//! [`CliContext`](super::context::CliContext) combines the parsed arguments with the environment of the process.

use super::ask::AskArgs;
use super::call::CallArgs;
use super::check::CheckArgs;
use super::completions::CompletionsArgs;
use super::demo::DemoArgs;
use super::grants::GrantsArgs;
use super::init::InitArgs;
use super::listed_values::{list_modes, list_tools, list_toolsets};
use super::log::LogArgs;
#[cfg(feature = "lsp")]
use super::lsp::LspArgs;
use super::mcp::McpArgs;
use super::memory::MemoryArgs;
use super::plugin::PluginArgs;
use super::policy::PolicyArgs;
#[cfg(feature = "acp")]
use super::run::AcpArgs;
use super::run::{RUN_HELP, RunArgs};
use super::schedule::{SCHEDULE_HELP, ScheduleArgs};
use super::settings::SettingsArgs;
use super::skill::SkillArgs;
use super::tasks::{TASKS_HELP, TasksArgs};
use super::tools::ToolsArgs;
use super::trust::TrustArgs;
use super::undo::{UNDO_HELP, UndoArgs};
use clap::{Args, Command, Parser, Subcommand, ValueEnum};
use toolgate::{Mode, Toolset};

/// Run the tool calls of an LLM agent under a policy: each call is checked, sandboxed and recorded
#[derive(Debug, Parser)]
#[command(
    name = "toolgate",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 success or allowed, 1 the tool failed, 2 wrong usage or settings, 3 denied, \
                  4 needs approval and no approver is available, 130 interrupted.\n\
                  New here? Run `toolgate demo`, then `toolgate init` in a project."
)]
pub(crate) struct CliArgs {
    /// The options that every command accepts.
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// The command with its own arguments.
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Options that every command accepts. The help of a command lists them under a heading of their own, after the options
/// of the command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Use this directory as the workspace instead of the current one
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Add a directory to the workspace (repeatable)
    #[arg(long, alias = "addDir", global = true, value_name = "DIR")]
    pub(crate) add_dir: Vec<String>,
    /// Additional settings: a file, or a JSON object
    #[arg(long, global = true, value_name = "FILE-OR-JSON")]
    pub(crate) settings: Option<String>,
    /// Settings of the administrator, as a JSON object, from the program that starts this one
    #[arg(long, alias = "managedSettings", global = true, value_name = "JSON", hide_short_help = true)]
    pub(crate) managed_settings: Option<String>,
    /// Settings files to read, separated by commas: user, project, local; `none` or nothing reads none
    #[arg(long, alias = "settingSources", global = true, value_name = "LIST", value_delimiter = ',')]
    pub(crate) setting_sources: Option<Vec<String>>,
    /// Default when no rule matches
    #[arg(long, alias = "permissionMode", global = true, value_name = "MODE", value_parser = list_modes())]
    pub(crate) permission_mode: Option<Mode>,
    /// Run without approval unless a rule asks for it; deny rules still apply. Refused for root outside a sandbox
    #[arg(long, alias = "dangerouslySkipPermissions", global = true, conflicts_with = "permission_mode")]
    pub(crate) dangerously_skip_permissions: bool,
    /// When to ask for approval at the terminal
    #[arg(long, alias = "permissionPrompts", global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) permission_prompts: PromptWhen,
    /// Tool that answers approval questions instead of the terminal
    #[arg(long, alias = "permissionPromptTool", global = true, value_name = "TOOL")]
    pub(crate) permission_prompt_tool: Option<String>,
    /// Tool naming scheme
    #[arg(long, global = true, value_name = "SET", default_value = "claude", value_parser = list_toolsets())]
    pub(crate) toolset: Toolset,
    /// Offer only these tools, separated by commas; `default` offers all
    #[arg(
        long,
        global = true,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = list_tools(),
        hide_possible_values = true
    )]
    pub(crate) tools: Option<Vec<String>>,
    /// Also offer the tools of these groups, separated by commas: tasks, memory, questions, plan, search,
    /// config, schedules, worktrees, or all
    #[arg(long, alias = "toolGroups", global = true, value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) tool_groups: Vec<String>,
    /// Offer the tools that open, read, click and type in a page of a headless Chromium
    #[cfg(feature = "web")]
    #[arg(long, global = true)]
    pub(crate) chrome: bool,
    /// List MCP tools only while their definitions have at most this many bytes; beyond that ToolSearch finds them
    #[arg(long, alias = "deferToolsBeyond", global = true, value_name = "BYTES")]
    pub(crate) defer_tools_beyond: Option<usize>,
    /// Allow rules for this run (repeatable, or separated by commas)
    #[arg(long, visible_alias = "allowedTools", global = true, value_name = "RULES")]
    pub(crate) allowed_tools: Vec<String>,
    /// Deny rules for this run (repeatable, or separated by commas); a bare tool name hides the tool
    #[arg(long, visible_alias = "disallowedTools", global = true, value_name = "RULES")]
    pub(crate) disallowed_tools: Vec<String>,
    /// MCP servers to use: a file, or a JSON object with `mcpServers` (repeatable)
    #[arg(long, alias = "mcpConfig", global = true, value_name = "FILE-OR-JSON")]
    pub(crate) mcp_config: Vec<String>,
    /// Use only the MCP servers of --mcp-config
    #[arg(long, alias = "strictMcpConfig", global = true)]
    pub(crate) strict_mcp_config: bool,
    /// Use the plugin in this directory for this run (repeatable); nothing of it runs before `toolgate plugin approve`
    #[arg(long, alias = "pluginDir", global = true, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<String>,
    /// Use the plugin in this directory for this run, without its MCP servers (repeatable)
    #[arg(long, alias = "pluginDirNoMcp", global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) plugin_dir_no_mcp: Vec<String>,
    /// Read the project's settings, MCP servers, skills and agents from this checkout, and not from the workspace, which
    /// is a worktree of it
    #[arg(long, alias = "projectConfigRoot", global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) project_config_root: Option<String>,
    /// Trust this project's settings for this run, including those that grant permissions
    #[arg(long, alias = "trustWorkspace", global = true)]
    pub(crate) trust_workspace: bool,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only the result: no notes, no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to color the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
}

/// When to ask for approval at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptWhen {
    /// If the program runs at a terminal
    Auto,
    /// Never; calls that need approval are refused
    None,
    /// By the host program that drives `toolgate run`
    Host,
}

/// When to color the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// If the output is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run an agent: a model works on a prompt with these tools, under this policy
    #[command(after_help = RUN_HELP)]
    Run(Box<RunArgs>),
    /// Serve the agent to an editor that speaks the agent client protocol
    #[command(after_help = "The output is the protocol, so --json changes nothing.")]
    #[cfg(feature = "acp")]
    Acp(AcpArgs),
    /// Write a commented starter policy for this project
    Init(InitArgs),
    /// List the tools, or print their definitions for a model provider
    Tools(ToolsArgs),
    /// Make one tool call, or a batch of calls
    Call(CallArgs),
    /// Show whether a call would be allowed, and why, without running it
    Check(CheckArgs),
    /// Check or test the permission rules
    Policy(PolicyArgs),
    /// Show the recorded calls
    Log(LogArgs),
    /// Undo file changes that calls made
    #[command(after_help = UNDO_HELP)]
    Undo(UndoArgs),
    /// Redo file changes that were undone
    #[command(after_help = UNDO_HELP)]
    Redo(UndoArgs),
    /// Serve the tools over MCP, and manage the MCP servers whose tools toolgate offers
    Mcp(McpArgs),
    /// Show the language servers of this project, and test them
    #[cfg(feature = "lsp")]
    Lsp(LspArgs),
    /// List, show and check skills, commands, agents and output styles
    Skill(SkillArgs),
    /// Install, approve, show and remove plugins
    Plugin(PluginArgs),
    /// Show the effective settings and the file that each one comes from
    Settings(SettingsArgs),
    /// Show whether this project's settings, hooks and servers are trusted, and change that
    Trust(TrustArgs),
    /// Show and change the task lists that agents work on
    #[command(after_help = TASKS_HELP)]
    Tasks(TasksArgs),
    /// Show and change the notes that agents keep between sessions
    Memory(MemoryArgs),
    /// Show and cancel the prompts that agents scheduled, and run those that are due
    #[command(after_help = SCHEDULE_HELP)]
    Schedule(ScheduleArgs),
    /// List and revoke the rules that you allowed permanently at a prompt
    Grants(GrantsArgs),
    /// Ask for approval at the terminal on behalf of another program, in JSON Lines
    Ask(AskArgs),
    /// Check this machine and these settings for problems
    Doctor,
    /// Show a scripted agent making calls in a temporary project
    #[command(after_help = "This is text for a reader, also with --json.")]
    Demo(DemoArgs),
    /// Print or install a shell completion script and the man pages
    #[command(after_help = "The script is for the shell, also with --json; --install prints JSON with it.")]
    Completions(CompletionsArgs),
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

impl CliCommand {
    /// The grammar of the command with this name, without its help. A test compares it with that of the whole program.
    pub(crate) fn grammar_of(name: &str) -> Option<Command> {
        let command = Command::new(name.to_owned());
        Some(match name {
            "run" => RunArgs::augment_args(command),
            #[cfg(feature = "acp")]
            "acp" => AcpArgs::augment_args(command),
            "init" => InitArgs::augment_args(command),
            "tools" => ToolsArgs::augment_args(command),
            "call" => CallArgs::augment_args(command),
            "check" => CheckArgs::augment_args(command),
            "policy" => PolicyArgs::augment_args(command),
            "log" => LogArgs::augment_args(command),
            "undo" | "redo" => UndoArgs::augment_args(command),
            "mcp" => McpArgs::augment_args(command),
            #[cfg(feature = "lsp")]
            "lsp" => LspArgs::augment_args(command),
            "skill" => SkillArgs::augment_args(command),
            "plugin" => PluginArgs::augment_args(command),
            "settings" => SettingsArgs::augment_args(command),
            "trust" => TrustArgs::augment_args(command),
            "tasks" => TasksArgs::augment_args(command),
            "memory" => MemoryArgs::augment_args(command),
            "schedule" => ScheduleArgs::augment_args(command),
            "grants" => GrantsArgs::augment_args(command),
            "ask" => AskArgs::augment_args(command),
            "doctor" | "reference" => command,
            "demo" => DemoArgs::augment_args(command),
            "completions" => CompletionsArgs::augment_args(command),
            _ => return None,
        })
    }
}
