//! The arguments, exactly as typed. Nothing here looks at the machine.

use clap::{Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use toolgate::{DefinitionFormat, Mode, Toolset};

/// The tool runtime for LLM agents: every call crosses one boundary, and leaves one record.
#[derive(Debug, Parser)]
#[command(
    name = "toolgate",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done or allowed, 1 the tool failed, 2 usage or settings error, 3 denied, \
                  4 needs approval and nobody could be asked, 130 interrupted.\n\
                  Start with `toolgate demo`."
)]
pub(crate) struct CliArgs {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

impl CliArgs {
    /// Reads the command line. Ends the program where that asks for help or makes no sense.
    pub(crate) fn read() -> Self {
        let line: Vec<_> = std::env::args_os().collect();
        Self::parse_serve(&line).unwrap_or_else(|| Self::parse_from(line))
    }

    /// Reads `mcp serve`, by a grammar that knows nothing else. Clients wait for it, and all commands with all options
    /// that they share are more to build than anything else in a start.
    fn parse_serve(line: &[OsString]) -> Option<Self> {
        let says = |word: &str| line.iter().any(|said| said == word);
        let only = (says("mcp") && says("serve")).then(|| McpServeCliArgs::try_parse_from(line).ok())??;
        let McpOnlyCommand::Mcp(args) = only.command;
        Some(Self { global: only.global, command: CliCommand::Mcp(args.command.into()) })
    }
}

/// What [`CliArgs`] take, for one command. Help and errors are left to those.
#[derive(Debug, Parser)]
struct McpServeCliArgs {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: McpOnlyCommand,
}

#[derive(Debug, Subcommand)]
enum McpOnlyCommand {
    Mcp(McpServeOnlyArgs),
}

#[derive(Debug, clap::Args)]
struct McpServeOnlyArgs {
    #[command(subcommand)]
    command: super::mcp::McpServeOnlyCommand,
}

/// Options that every command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Work in this directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// A further directory to work in (repeatable)
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) add_dir: Vec<String>,
    /// More settings: a file, or a JSON object
    #[arg(long, global = true, value_name = "FILE-OR-JSON")]
    pub(crate) settings: Option<String>,
    /// Which settings files to read: user, project, local, or none
    #[arg(long, global = true, value_name = "LIST", value_delimiter = ',')]
    pub(crate) setting_sources: Option<Vec<String>>,
    /// What happens where no rule speaks: default, plan, acceptEdits, dontAsk, bypass or deny
    #[arg(long, global = true, value_name = "MODE")]
    pub(crate) permission_mode: Option<Mode>,
    /// Skip every question that no rule demands; denies hold. Refused for root outside a sandbox
    #[arg(long, global = true, conflicts_with = "permission_mode")]
    pub(crate) dangerously_skip_permissions: bool,
    /// Whether questions are put to the terminal
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) permission_prompts: PromptWhen,
    /// Ask this tool in a person's place
    #[arg(long, global = true, value_name = "TOOL")]
    pub(crate) permission_prompt_tool: Option<String>,
    /// Which names and shapes the tools wear: claude or plain
    #[arg(long, global = true, value_name = "SET", default_value = "claude")]
    pub(crate) toolset: Toolset,
    /// Show only these tools
    #[arg(long, global = true, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// Allow rules for this run (repeatable, or separated by commas)
    #[arg(long, global = true, value_name = "RULES")]
    pub(crate) allowed_tools: Vec<String>,
    /// Deny rules for this run; a bare name hides the tool
    #[arg(long, global = true, value_name = "RULES")]
    pub(crate) disallowed_tools: Vec<String>,
    /// MCP servers: a file, or a JSON object with `mcpServers` (repeatable)
    #[arg(long, global = true, value_name = "FILE-OR-JSON")]
    pub(crate) mcp_config: Vec<String>,
    /// Use only the MCP servers of --mcp-config
    #[arg(long, global = true)]
    pub(crate) strict_mcp_config: bool,
    /// Let the project's own settings loosen as well as tighten
    #[arg(long, global = true)]
    pub(crate) trust_workspace: bool,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for: no notes, no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
}

/// Whether questions are put to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptWhen {
    /// Where a person seems to be there
    Auto,
    /// Never: what would be asked is refused
    None,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CliCommand {
    /// List the tools, or print their definitions for a provider
    Tools(ToolsArgs),
    /// Make one call, or a batch of calls, through the whole boundary
    Call(CallArgs),
    /// Say whether a call would be allowed, and why; run nothing
    Check(CheckArgs),
    /// Look over the rules, or put them to the test
    Policy(PolicyArgs),
    /// Show what was called
    Log(LogArgs),
    /// Take back what calls changed in files
    #[command(after_help = UNDO_HELP)]
    Undo(UndoArgs),
    /// Make again what `undo` took back
    #[command(after_help = UNDO_HELP)]
    Redo(UndoArgs),
    /// Serve these tools over MCP, and manage the servers behind the gate
    Mcp(super::mcp::McpArgs),
    /// Show the settings in force and where each comes from
    Settings(SettingsArgs),
    /// Say whether what this project brings is trusted, and change that
    Trust(TrustArgs),
    /// List the rules that were granted for good, and take them back
    Grants(GrantsArgs),
    /// Put questions to the person at the terminal: one JSON object a line in, one answer a line out
    Ask(AskArgs),
    /// Look at this machine and these settings, and say what is wrong
    Doctor,
    /// Watch a scripted model make calls in a temporary workspace
    Demo(DemoArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolsArgs {
    /// Only this tool
    pub(crate) name: Option<String>,
    /// Print definitions: anthropic, openai, gemini, mcp or json
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<DefinitionFormat>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// The tool
    #[arg(required_unless_present = "batch")]
    pub(crate) name: Option<String>,
    /// Its input as a JSON object, or `-` for standard input
    #[arg(default_value = "{}")]
    pub(crate) input: String,
    /// Make many calls, together where their effects do not conflict: one JSON object a line,
    /// `{"id"?,"tool","input"?}`; `-` for standard input. Results come in the order of the calls, one a line
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["name", "id"])]
    pub(crate) batch: Option<String>,
    /// Print the result in a provider's form: text, anthropic, openai, mcp or json
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) form: ResultForm,
    /// Stop the call after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// The id that the result carries
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultForm {
    /// For people
    Text,
    /// A `tool_result` block
    Anthropic,
    /// A message with the role `tool`
    Openai,
    /// A `CallToolResult`
    Mcp,
    /// Result and record
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The tool
    #[arg(required_unless_present = "batch")]
    pub(crate) name: Option<String>,
    /// Its input as a JSON object, or `-` for standard input
    #[arg(default_value = "{}")]
    pub(crate) input: String,
    /// Judge many calls: one JSON object a line, `{"id","tool","input","settings"?,"cwd"?,"mode"?}`; `-` for
    /// standard input
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "name")]
    pub(crate) batch: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PolicyCommand {
    /// Say which rules never match, are shadowed or reach too far
    Lint,
    /// Run Markdown files of settings and expected verdicts
    #[command(
        after_help = "A file holds prose, fenced blocks marked `json settings`, and tables headed `call | verdict` \
                            that list calls and what must come of them. See docs/policy.md for one."
    )]
    Test {
        /// The files
        #[arg(required = true, value_name = "FILE.md")]
        files: Vec<String>,
    },
    /// Turn another product's rules into settings, and say what does not mean quite the same
    Import {
        /// Whose rules
        from: ImportFrom,
        /// The file
        #[arg(value_name = "FILE.toml")]
        file: String,
    },
}

/// A product whose rules can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    /// The policy engine of the Gemini CLI
    Gemini,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls with this verdict: allow, ask or deny
    #[arg(long, value_name = "VERDICT")]
    pub(crate) verdict: Option<String>,
    /// Only calls of this session (a part of its id will do)
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only calls since then: a time such as 2026-01-31T12:00, or an age such as 90m, 12h, 7d
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls until then
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// Only the last N
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Go on showing calls as they are made
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Check that nothing was changed, removed or cut off
    #[arg(long)]
    pub(crate) verify: bool,
}

const UNDO_HELP: &str = "Without more, the last call that changed something in this workspace is meant. All files of a \
                         call move together, or none does. A file that somebody else has changed since is not \
                         touched unless --force is given.";

#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// This call (a part of its id will do)
    pub(crate) call: Option<String>,
    /// The last N calls
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "call")]
    pub(crate) steps: Option<usize>,
    /// All calls of this session (a part of its id will do), or with a call or --steps only its calls
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Show what would change, as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Overwrite what somebody else has changed since
    #[arg(long)]
    pub(crate) force: bool,
    /// Look for the last calls in every workspace
    #[arg(long)]
    pub(crate) everywhere: bool,
    /// List the calls that can be moved over, newest first
    #[arg(long, conflicts_with_all = ["call", "steps", "session", "dry_run", "force"])]
    pub(crate) list: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SettingsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SettingsCommand>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SettingsCommand {
    /// Print each value in force with its file and line (the default)
    Show,
    /// Check a settings file without using it
    Check {
        /// The file
        file: String,
    },
    /// Print a published JSON Schema
    Schema {
        /// Its name, such as settings.schema.json; without it, all names
        name: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    pub(crate) command: Option<TrustCommand>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TrustCommand {
    /// Show what this project brings, and whether it is trusted (the default)
    Show,
    /// Trust this project as it is now
    Add {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Say yes to a workspace as wide as your home directory or the whole file system
    Workspace {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// End the trust in this project, or in another directory
    Remove {
        /// The directory
        dir: Option<String>,
    },
    /// List every trusted project
    List,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GrantsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GrantsCommand>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum GrantsCommand {
    /// List the rules granted in this project (the default)
    List {
        /// Of every project
        #[arg(long)]
        all: bool,
    },
    /// Take a rule back, out of the settings file as well
    Revoke {
        /// The rule, as listed
        #[arg(required_unless_present = "all")]
        rule: Option<String>,
        /// Every rule of this project
        #[arg(long, conflicts_with = "rule")]
        all: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct AskArgs {
    /// The questions; `-` for standard input
    #[arg(default_value = "-")]
    pub(crate) questions: String,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the temporary workspace and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short grammar takes nothing that the whole one would take otherwise.
    #[test]
    fn a_line_that_is_read_by_the_short_grammar_means_the_same_by_the_whole_one() {
        let globals = [
            &[][..],
            &["--cwd", "mcp"],
            &["--settings", "serve", "-q"],
            &["--tools", "a,b"],
            &["--color=never"],
        ];
        let ways: [&[&str]; 9] = [
            &["mcp", "serve"],
            &["mcp", "serve", "--http", "127.0.0.1:80", "--no-token"],
            &["mcp", "serve", "--unix", "mcp"],
            &["mcp", "list", "serve"],
            &["mcp", "get", "serve"],
            &["mcp", "--help", "serve"],
            &["help", "mcp", "serve"],
            &["mcp", "serve", "serve"],
            &["call", "mcp", "serve"],
        ];
        let mut short = 0;
        for number in 0..globals.len() * ways.len() * globals.len() {
            let (before, rest) = (globals[number % globals.len()], number / globals.len());
            let (way, after) = (ways[rest % ways.len()], globals[rest / ways.len()]);
            let words = ["toolgate"].iter().chain(before).chain(way).chain(after);
            let line: Vec<OsString> = words.map(OsString::from).collect();
            let Some(read) = CliArgs::parse_serve(&line) else { continue };
            short += 1;
            let whole = CliArgs::try_parse_from(&line);
            assert_eq!(format!("{read:?}"), format!("{:?}", whole.unwrap()), "{line:?}");
        }
        // Three ways to serve, less those that say twice what may be said once.
        assert!(short >= 3 * 5, "{short}");
    }
}
