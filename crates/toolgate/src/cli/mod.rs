//! The `toolgate` program: one file for each command, with its arguments and its output.
//!
//! [`CliArgs`] is the parsed command line. [`CliContext`] combines it with the environment of the process and builds
//! the [`Toolgate`](toolgate::Toolgate) that a command uses. [`CliOutput`] writes results to standard output and
//! everything else to standard error. [`CliExitCode`] lists the exit codes, which scripts may rely on.

mod args;
mod context;
mod output;

mod ask;
mod batch_checker;
mod batch_lines;
mod call;
mod call_batch;
mod call_refusals;
mod check;
mod check_batch;
mod check_redirects;
mod completions;
mod demo;
mod doctor;
mod examples;
mod grants;
mod init;
mod listed_values;
mod log;
#[cfg(feature = "lsp")]
mod lsp;
mod mcp;
mod memory;
mod plugin;
mod policy;
mod policy_fmt;
mod policy_import;
mod policy_test;
mod progress;
mod run;
mod schedule;
mod settings;
mod skill;
mod stop_signals;
mod tasks;
mod telemetry;
mod terminal_approver;
mod tools;
mod trust;
mod uncovered_commands;
mod undo;
mod unknown_tools;

use args::{CliArgs, CliCommand, GlobalArgs};
use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};
use context::CliContext;
use output::CliOutput;
use std::ffi::OsString;
use std::process::ExitCode;
use toolgate::{Code, Refusal, Stage};
use toolgate_process::AmbientEnvironment;

/// Why a command stopped before it had a result.
#[derive(Debug)]
pub(crate) enum CliError {
    /// Wrong usage, unusable settings or an I/O error, with the message for the user: exit code 2.
    Usage(String),
    /// The reader of standard output closed its end, as `head` does. This is not an error: exit code 0.
    ClosedPipe,
    /// The user pressed Ctrl-C at a question: exit code 130, without a message.
    Interrupted,
    /// The user said no to a question on which the whole command depends, with the message about it: exit code 3.
    Declined(String),
}

impl From<std::io::Error> for CliError {
    /// Separates a closed pipe from real I/O errors, so that `toolgate log | head` ends without an error message.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            std::io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl From<toolgate::settings::SettingsError> for CliError {
    /// Treats unusable settings as wrong usage: the user has to change a file before any command can work.
    fn from(error: toolgate::settings::SettingsError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<toolgate::BuildError> for CliError {
    /// Treats a gate that cannot be built as wrong usage, because its parts come from settings and arguments.
    fn from(error: toolgate::BuildError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<anyhow::Error> for CliError {
    /// Looks for a closed pipe inside the error, because `anyhow` wraps the I/O error of a failed write.
    fn from(error: anyhow::Error) -> Self {
        match error.downcast_ref::<std::io::Error>() {
            Some(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Usage(format!("{error:#}")),
        }
    }
}

/// The exit codes of the program. Scripts depend on them, so a number never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CliExitCode {
    /// The command succeeded; for `check`, the call would be allowed.
    Ok = 0,
    /// The tool ran and failed, or a check found a problem.
    ToolFailed = 1,
    /// Wrong usage, invalid input or unusable settings.
    Usage = 2,
    /// A rule, a mode, a hook or an approver denied the call.
    Denied = 3,
    /// The call needs approval, and no approver is available or none answered.
    NeedsApproval = 4,
    /// A signal ended it, such as Ctrl-C; the shell's convention for SIGINT.
    Interrupted = 130,
}

impl CliExitCode {
    /// The exit code for a refused call: by the code where it says more than the stage, else by the stage.
    pub(crate) fn of(refusal: &Refusal) -> Self {
        match refusal.code {
            Code::Cancelled => Self::Interrupted,
            Code::ApprovalUnavailable
            | Code::ApprovalTimedOut
            | Code::ApprovalLost
            | Code::ApprovalPending => Self::NeedsApproval,
            Code::UnusablePolicy => Self::Usage,
            // At any stage: the input of the call was not wrong.
            Code::DeadlinePassed => Self::ToolFailed,
            _ => match refusal.stage {
                Stage::Resolve | Stage::Validate => Self::Usage,
                Stage::Screen | Stage::Judge | Stage::Settle => Self::Denied,
                Stage::Guard | Stage::Run | Stage::Finish => Self::ToolFailed,
            },
        }
    }
}

/// Runs the command line of this process and returns its exit code.
pub(crate) fn main() -> ExitCode {
    let args = match parse_command_line(&run::with_run_command(std::env::args_os().collect())) {
        Ok(args) => args,
        Err(error) => return report_wrong_usage(&error),
    };
    let is_json = args.global.json;
    let mut out = CliOutput::new(args.global.color, args.global.quiet);
    let result = AmbientEnvironment::read()
        .map_err(|error| CliError::Usage(format!("cannot read the current directory: {error}")))
        .and_then(|ambient| run(args, ambient, &mut out));
    match result {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(CliError::ClosedPipe) => ExitCode::SUCCESS,
        Err(CliError::Interrupted) => ExitCode::from(CliExitCode::Interrupted as u8),
        Err(CliError::Usage(message)) => fail(&message, CliExitCode::Usage, is_json, &mut out),
        Err(CliError::Declined(message)) => fail(&message, CliExitCode::Denied, is_json, &mut out),
    }
}

/// Prints why the command failed.
fn fail(message: &str, exit: CliExitCode, is_json: bool, out: &mut CliOutput) -> ExitCode {
    match is_json {
        true => out.print_json_error(message, exit),
        false => out.print_error(message),
    }
    ExitCode::from(exit as u8)
}

/// Parses the command line with the commands that it names. A line that asks for help, or is wrong, is parsed a second
/// time with the whole grammar and the examples, which are part of the help.
fn parse_command_line(words: &[OsString]) -> Result<CliArgs, clap::Error> {
    let parsed = select_named_commands(words)
        .try_get_matches_from(words)
        .and_then(|matches| CliArgs::from_arg_matches(&matches));
    parsed.or_else(|_| CliArgs::from_arg_matches(&examples::build_command().try_get_matches_from(words)?))
}

/// The grammar of the commands whose names occur in the line, which can call no others. clap copies each of the global
/// options to each command, and building and copying all of them took a third of the instructions of a start.
fn select_named_commands(words: &[OsString]) -> Command {
    let is_named = |command: &&Command| {
        let mut names = std::iter::once(command.get_name()).chain(command.get_all_aliases());
        names.any(|name| words.iter().any(|word| word == name))
    };
    let mut names: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    names.sort_unstable();
    names.dedup();
    let commands = names.into_iter().filter_map(CliCommand::grammar_of).map(|command| {
        // One that has commands of its own and nothing else, such as `mcp`: the same for those.
        if command.get_arguments().next().is_some() || !command.has_subcommands() {
            return command;
        }
        let named: Vec<Command> = command.get_subcommands().filter(is_named).cloned().collect();
        let is_required = command.is_subcommand_required_set();
        Command::new(command.get_name().to_owned()).subcommand_required(is_required).subcommands(named)
    });
    GlobalArgs::augment_args(Command::new("toolgate")).subcommands(commands)
}

/// Prints the help or version that was asked for, or what is wrong with the command line: as JSON if it has `--json`.
fn report_wrong_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || !std::env::args_os().any(|arg| arg == "--json") {
        error.exit();
    }
    let rendered = error.render().to_string();
    let text = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            describe_missing_subcommand(std::env::args_os().collect())
        }
        _ => rendered,
    };
    let message = text.trim_start_matches("error: ").split("\n\nUsage:").next().unwrap_or_default();
    let text = format!("{}\n  hint: run the command with --help", message.trim_end());
    CliOutput::new(args::ColorWhen::Never, true).print_json_error(&text, CliExitCode::Usage);
    ExitCode::from(CliExitCode::Usage as u8)
}

/// Says which subcommands the command has that is named on the command line: clap's message is the text of its help.
fn describe_missing_subcommand(words: Vec<OsString>) -> String {
    let mut command = examples::build_command();
    for word in words {
        if let Some(named) = word.to_str().and_then(|word| command.find_subcommand(word)) {
            command = named.clone();
        }
    }
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
    let names: Vec<&str> = shown.map(Command::get_name).collect();
    format!("a subcommand is needed: {}", names.join(", "))
}

/// Dispatches to the command.
fn run(args: CliArgs, ambient: AmbientEnvironment, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let context = CliContext { ambient, global: args.global };
    match args.command {
        CliCommand::Run(args) => run::run(context, *args, out),
        #[cfg(feature = "acp")]
        CliCommand::Acp(args) => run::run_acp(context, &args, out),
        CliCommand::Init(args) => init::run(&context, &args, out),
        CliCommand::Tools(args) => tools::run(&context, &args, out),
        CliCommand::Call(args) => call::run(&context, &args, out),
        CliCommand::Check(args) => check::run(&context, &args, out),
        CliCommand::Policy(args) => policy::run(&context, &args, out),
        CliCommand::Log(args) => log::run(&context, &args, out),
        CliCommand::Undo(args) => undo::run(&context, &args, undo::UndoDirection::Undo, out),
        CliCommand::Redo(args) => undo::run(&context, &args, undo::UndoDirection::Redo, out),
        CliCommand::Mcp(args) => mcp::run(&context, &args, out),
        #[cfg(feature = "lsp")]
        CliCommand::Lsp(args) => lsp::run(&context, &args, out),
        CliCommand::Skill(args) => skill::run(&context, &args, out),
        CliCommand::Plugin(args) => plugin::run(&context, &args, out),
        CliCommand::Settings(args) => settings::run(&context, &args, out),
        CliCommand::Trust(args) => trust::run(&context, &args, out),
        CliCommand::Tasks(args) => tasks::run(&context, &args, out),
        CliCommand::Memory(args) => memory::run(&context, &args, out),
        CliCommand::Schedule(args) => schedule::run(context, &args, out),
        CliCommand::Grants(args) => grants::run(&context, &args, out),
        CliCommand::Ask(args) => ask::run(&context, &args, out),
        CliCommand::Doctor => doctor::run(&context, out),
        CliCommand::Demo(args) => demo::run(&context, &args, out),
        CliCommand::Completions(args) => completions::run(&context, &args, out),
        CliCommand::Reference => completions::print_reference(out),
    }
}
