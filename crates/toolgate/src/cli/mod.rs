//! The command line: one file for each command, and what they share.
//!
//! Arguments are taken as typed ([`CliArgs`]); only then is the machine looked at ([`CliContext`]).
//! Exit codes: 0 done or allowed, 1 the tool failed, 2 usage or settings, 3 denied, 4 needs approval and nobody could
//! be asked, 130 interrupted.

mod args;
mod context;
mod output;

mod ask_cmd;
mod batch_checker;
mod call;
mod call_batch;
mod check;
mod check_batch;
mod completions;
mod demo;
mod doctor;
mod grants;
mod log;
mod mcp;
mod policy;
mod policy_import;
mod progress;
mod settings;
mod telemetry;
mod terminal_approver;
mod tools;
mod trust;
mod undo;

use args::{CliArgs, CliCommand};
use context::CliContext;
use output::CliOutput;
use std::process::ExitCode;
use toolgate::{Code, Refusal, Stage};
use toolgate_process::AmbientEnvironment;

/// Why a command ended without doing its work.
#[derive(Debug)]
pub(crate) enum CliError {
    /// Wrong usage or settings: exit code 2.
    Usage(String),
    /// Whoever read our output is gone: not our failure.
    ClosedPipe,
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl From<toolgate::settings::SettingsError> for CliError {
    fn from(error: toolgate::settings::SettingsError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<toolgate::BuildError> for CliError {
    fn from(error: toolgate::BuildError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast_ref::<std::io::Error>() {
            Some(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Usage(format!("{error:#}")),
        }
    }
}

/// What a command's end means for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CliExitCode {
    /// Done, or allowed.
    Ok = 0,
    /// The tool failed.
    ToolFailed = 1,
    /// Usage or settings.
    Usage = 2,
    /// Denied.
    Denied = 3,
    /// Needs approval, and nobody could be asked.
    NeedsApproval = 4,
    /// Interrupted.
    Interrupted = 130,
}

impl CliExitCode {
    pub(crate) fn of(refusal: &Refusal) -> Self {
        match refusal.code {
            Code::Cancelled => Self::Interrupted,
            Code::NobodyToAsk | Code::ApprovalTimedOut | Code::ApprovalLost | Code::ApprovalPending => {
                Self::NeedsApproval
            }
            Code::UnusablePolicy => Self::Usage,
            _ => match refusal.stage {
                Stage::Resolve | Stage::Validate => Self::Usage,
                Stage::Screen | Stage::Judge | Stage::Settle => Self::Denied,
                Stage::Guard | Stage::Run | Stage::Finish => Self::ToolFailed,
            },
        }
    }
}

pub(crate) fn main() -> ExitCode {
    let args = CliArgs::read();
    let mut out = CliOutput::new(args.global.color, args.global.quiet);
    let ended = AmbientEnvironment::read()
        .map_err(|error| CliError::Usage(format!("the working directory cannot be read: {error}")))
        .and_then(|ambient| run(args, ambient, &mut out));
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(CliError::ClosedPipe) => ExitCode::SUCCESS,
        Err(CliError::Usage(message)) => {
            out.print_error(&message);
            ExitCode::from(CliExitCode::Usage as u8)
        }
    }
}

fn run(args: CliArgs, ambient: AmbientEnvironment, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let world = CliContext { ambient, global: args.global };
    match args.command {
        CliCommand::Tools(args) => tools::run(&world, &args, out),
        CliCommand::Call(args) => call::run(&world, &args, out),
        CliCommand::Check(args) => check::run(&world, &args, out),
        CliCommand::Policy(args) => policy::run(&world, &args, out),
        CliCommand::Log(args) => log::run(&world, &args, out),
        CliCommand::Undo(args) => undo::run(&world, &args, undo::UndoDirection::Undo, out),
        CliCommand::Redo(args) => undo::run(&world, &args, undo::UndoDirection::Redo, out),
        CliCommand::Mcp(args) => mcp::run(&world, &args, out),
        CliCommand::Settings(args) => settings::run(&world, &args, out),
        CliCommand::Trust(args) => trust::run(&world, &args, out),
        CliCommand::Grants(args) => grants::run(&world, &args, out),
        CliCommand::Ask(args) => ask_cmd::run(&world, &args, out),
        CliCommand::Doctor => doctor::run(&world, out),
        CliCommand::Demo(args) => demo::run(&world, &args, out),
        CliCommand::Completions(args) => completions::run(&args, out),
        CliCommand::Reference => completions::print_reference(out),
    }
}
