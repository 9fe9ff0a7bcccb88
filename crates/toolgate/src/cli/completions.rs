//! `toolgate completions` prints a shell completion script; the hidden command `reference` prints `docs/cli.md`.
//!
//! Both are generated from the grammar in [`CliArgs`], so a new option needs no second description.

use super::args::CliArgs;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use clap::{Command, CommandFactory};

/// Arguments of `toolgate completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for
    pub(crate) shell: clap_complete::Shell,
}

/// Prints the shell completion script.
pub(crate) fn run(args: &CompletionsArgs, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CliArgs::command(), "toolgate", &mut script);
    out.print_raw(&String::from_utf8_lossy(&script))?;
    Ok(CliExitCode::Ok)
}

/// Prints `docs/cli.md`; a test compares it with the file.
pub(crate) fn print_reference(out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut root = CliArgs::command().term_width(100);
    root.build();
    out.print_line("# Command line reference\n")?;
    out.print_line(
        "Generated from the program's help by `cargo xtask docs`; a test fails when this file is out of date.\n",
    )?;
    print_section(&mut root, out)?;
    let names: Vec<String> = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
        .map(|command| command.get_name().to_owned())
        .collect();
    for name in names {
        if let Some(command) = root.find_subcommand_mut(&name) {
            // The global options appear once, in the section of the program.
            let mut own = command.clone().term_width(100).mut_args(|arg| {
                let global = arg.is_global_set();
                arg.hide(global)
            });
            print_section(&mut own, out)?;
        }
    }
    Ok(CliExitCode::Ok)
}

/// Prints the long help of a command under a heading.
fn print_section(command: &mut Command, out: &mut CliOutput) -> Result<(), CliError> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    out.print_line(&format!("## {name}\n\n```text"))?;
    let help = command.render_long_help().to_string();
    for line in help.trim_end().lines() {
        out.print_line(line.trim_end())?;
    }
    out.print_line("```\n")?;
    Ok(())
}
