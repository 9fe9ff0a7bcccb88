//! The command line: one file for each command, and what they share.
//!
//! Arguments are taken as typed ([`Args`]); only then is the machine looked at ([`World`]).
//! Exit codes: 0 done or allowed, 1 the tool failed, 2 usage or settings, 3 denied, 4 needs approval and nobody could
//! be asked, 130 interrupted.

mod args;
mod out;
mod world;

mod ask;
mod ask_cmd;
mod call;
mod call_batch;
mod check;
mod check_batch;
mod completions;
mod court;
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
mod tools;
mod trust;
mod undo;

use args::{Args, Command};
use out::Out;
use std::process::ExitCode;
use toolgate::{Code, Refusal, Stage};
use toolgate_os::AmbientEnvironment;
use world::World;

/// Why a command ended without doing its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage or settings: exit code 2.
    Usage(String),
    /// Whoever read our output is gone: not our failure.
    ClosedPipe,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl From<toolgate::settings::SettingsError> for Failure {
    fn from(error: toolgate::settings::SettingsError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<toolgate::BuildError> for Failure {
    fn from(error: toolgate::BuildError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast_ref::<std::io::Error>() {
            Some(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Usage(format!("{error:#}")),
        }
    }
}

/// What a command's end means for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
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

impl Exit {
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
    let args = Args::read();
    let mut out = Out::new(args.global.color, args.global.quiet);
    let ended = AmbientEnvironment::read()
        .map_err(|error| Failure::Usage(format!("the working directory cannot be read: {error}")))
        .and_then(|ambient| run(args, ambient, &mut out));
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            out.error(&message);
            ExitCode::from(Exit::Usage as u8)
        }
    }
}

fn run(args: Args, ambient: AmbientEnvironment, out: &mut Out) -> Result<Exit, Failure> {
    let world = World { ambient, global: args.global };
    match args.command {
        Command::Tools(args) => tools::run(&world, &args, out),
        Command::Call(args) => call::run(&world, &args, out),
        Command::Check(args) => check::run(&world, &args, out),
        Command::Policy(args) => policy::run(&world, &args, out),
        Command::Log(args) => log::run(&world, &args, out),
        Command::Undo(args) => undo::run(&world, &args, undo::Way::Undo, out),
        Command::Redo(args) => undo::run(&world, &args, undo::Way::Redo, out),
        Command::Mcp(args) => mcp::run(&world, &args, out),
        Command::Settings(args) => settings::run(&world, &args, out),
        Command::Trust(args) => trust::run(&world, &args, out),
        Command::Grants(args) => grants::run(&world, &args, out),
        Command::Ask(args) => ask_cmd::run(&world, &args, out),
        Command::Doctor => doctor::run(&world, out),
        Command::Demo(args) => demo::run(&world, &args, out),
        Command::Completions(args) => completions::run(&args, out),
        Command::Reference => completions::reference(out),
    }
}
