//! `toolgate skill`: what skills, commands, agents and output styles there are, what each asks for, and what is wrong
//! with it.

mod lint;
mod list;
mod run;
mod show;

use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use clap::Subcommand;
use toolgate::skills::SkillCatalog;

/// Arguments of `toolgate skill`.
#[derive(Debug, clap::Args)]
pub(crate) struct SkillArgs {
    #[command(subcommand)]
    pub(crate) command: SkillCommand,
}

/// The commands of `toolgate skill`.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillCommand {
    /// List the skills and commands, or with --all also agents, output styles and what a stronger one replaces
    List(list::SkillListArgs),
    /// Show one skill: where it is, what it asks for, and what it may do under the present rules
    Show(show::SkillShowArgs),
    /// Load a skill and print its text, as a model would get it
    Run(run::SkillRunArgs),
    /// Check the files of skills, commands, agents, output styles and plugins, and report each problem with its line
    Lint(lint::SkillLintArgs),
}

/// Runs one of the commands.
pub(crate) fn run(
    context: &CliContext,
    args: &SkillArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match &args.command {
        SkillCommand::List(args) => list::run(context, args, out),
        SkillCommand::Show(args) => show::run(context, args, out),
        SkillCommand::Run(args) => run::run(context, args, out),
        SkillCommand::Lint(args) => lint::run(context, args, out),
    }
}

/// The catalog of this workspace.
fn load_catalog(context: &CliContext) -> Result<SkillCatalog, CliError> {
    context.load_catalog()
}
