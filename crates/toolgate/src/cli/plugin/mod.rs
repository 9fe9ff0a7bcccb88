//! `toolgate plugin`: what plugins there are, what each would run, and whether it may.
//!
//! A plugin is shown before anything of it can run, and what is approved is exactly what was shown: a copy that nothing
//! else changes, or a directory whose hash is compared again.

mod add;
mod list;
mod show;
mod switch;
mod validate;

use super::context::CliContext;
use super::output::CliOutput;
use super::terminal_approver::is_interactive;
use super::{CliError, CliExitCode};
use clap::Subcommand;
use toolgate::AbsPath;
use toolgate::plugins::{PluginEntry, PluginPackage, PluginSet, PluginStore};
use toolgate::settings::LoadedSettings;
use toolgate_process::ControllingTerminal;

/// Arguments of `toolgate plugin`.
#[derive(Debug, clap::Args)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

/// The commands of `toolgate plugin`.
#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// Install a plugin from a directory, a git repository or a marketplace, after showing what it would run
    Add(add::PluginAddArgs),
    /// List the plugins, and whether each is active
    List,
    /// Show what a plugin brings and what it would run
    Show(PluginNameArgs),
    /// Approve a plugin as it is now: an installed one that changed, or a directory for --plugin-dir
    Approve(switch::PluginApproveArgs),
    /// Switch an installed plugin on
    Enable(PluginNameArgs),
    /// Switch an installed plugin off
    Disable(PluginNameArgs),
    /// Fetch installed plugins again, and install what changed after showing it
    Update(add::PluginUpdateArgs),
    /// Remove an installed plugin with its approval, or the approval of a directory
    Remove(PluginNameArgs),
    /// Check the files of a plugin or a marketplace, and report each problem with its line
    Validate(validate::PluginValidateArgs),
}

/// Arguments of the commands that take only a name.
#[derive(Debug, clap::Args)]
struct PluginNameArgs {
    /// The plugin: its name, name@marketplace, or a directory
    name: String,
}

/// Runs one of the commands.
pub(crate) fn run(
    context: &CliContext,
    args: &PluginArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match &args.command {
        PluginCommand::Add(args) => add::add(context, args, out),
        PluginCommand::List => list::list_plugins(context, out),
        PluginCommand::Show(args) => show::show_plugin(context, &args.name, out),
        PluginCommand::Approve(args) => switch::approve(context, args, out),
        PluginCommand::Enable(args) => switch::switch_plugin(context, &args.name, true, out),
        PluginCommand::Disable(args) => switch::switch_plugin(context, &args.name, false, out),
        PluginCommand::Update(args) => add::update(context, args, out),
        PluginCommand::Remove(args) => switch::remove(context, &args.name, out),
        PluginCommand::Validate(args) => validate::run(context, args, out),
    }
}

/// The store of installed plugins.
fn open_store(context: &CliContext) -> Result<PluginStore, CliError> {
    let dir = context.ambient.state_dir.as_ref();
    dir.map(PluginStore::in_dir).ok_or_else(|| {
        CliError::Usage("there is no state directory that stores plugins; set TOOLGATE_STATE_DIR".to_owned())
    })
}

/// The plugins as a session would have them.
fn load_set(context: &CliContext) -> Result<PluginSet, CliError> {
    Ok(LoadedSettings::load(&context.settings_options()?)?.plugins().clone())
}

/// The plugin of a name, or of a directory that is given.
fn find_entry(context: &CliContext, name: &str) -> Result<Option<PluginEntry>, CliError> {
    let is_named = |entry: &PluginEntry| entry.name == name || entry.id() == name;
    Ok(load_set(context)?.plugins.into_iter().find(is_named))
}

/// The package of a directory, with every problem in the error.
fn read_package(dir: &AbsPath) -> Result<PluginPackage, CliError> {
    PluginPackage::read(dir).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        CliError::Usage(lines.join("\n"))
    })
}

/// Shows a plugin, and whether the user says yes to it. Without a terminal and without `--yes` that is an error.
fn confirm(
    context: &CliContext,
    package: &PluginPackage,
    question: &str,
    yes: bool,
    out: &mut CliOutput,
) -> Result<bool, CliError> {
    if context.global.json {
        let message =
            "with --json there is no question; check `toolgate plugin show`, then repeat with --yes";
        return if yes { Ok(true) } else { Err(CliError::Usage(message.to_owned())) };
    }
    show::print_package(package, out)?;
    out.flush()?;
    if yes {
        return Ok(true);
    }
    if !is_interactive() {
        let message = "no terminal to confirm at; check the list, then repeat the command with --yes";
        return Err(CliError::Usage(message.to_owned()));
    }
    let answer = ControllingTerminal::open()?.ask_line(&format!("type yes to {question}: "))?;
    Ok(answer == "yes")
}

/// Forgets what was approved about the MCP servers of a plugin: the approval of the plugin covers them as they are now.
fn forget_server_pins(context: &CliContext, name: &str) -> Result<(), CliError> {
    let pins = super::mcp::open_pins(context)?;
    for entry in load_set(context)?.plugins.iter().filter(|entry| entry.name == name) {
        for key in entry.server_pins() {
            pins.forget(&key).map_err(CliError::Usage)?;
        }
    }
    Ok(())
}
