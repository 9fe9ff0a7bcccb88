//! `toolgate completions`, and the reference of all commands.

use super::args::{Args, CompletionsArgs};
use super::out::Out;
use super::{Exit, Failure};
use clap::{Command, CommandFactory};

pub(crate) fn run(args: &CompletionsArgs, out: &mut Out) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "toolgate", &mut script);
    out.raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

/// Prints `docs/cli.md`; a test compares the two.
pub(crate) fn reference(out: &mut Out) -> Result<Exit, Failure> {
    let mut root = Args::command().term_width(100);
    root.build();
    out.line("# Command line reference\n")?;
    out.line("Made from the program's own help by `toolgate reference`; a test fails when it is stale.\n")?;
    section(&mut root, out)?;
    let names: Vec<String> = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
        .map(|command| command.get_name().to_owned())
        .collect();
    for name in names {
        if let Some(command) = root.find_subcommand_mut(&name) {
            // The options that every command takes are shown once, at the top.
            let mut own = command.clone().term_width(100).mut_args(|arg| {
                let global = arg.is_global_set();
                arg.hide(global)
            });
            section(&mut own, out)?;
        }
    }
    Ok(Exit::Ok)
}

fn section(command: &mut Command, out: &mut Out) -> Result<(), Failure> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    out.line(&format!("## {name}\n\n```text"))?;
    let help = command.render_long_help().to_string();
    for line in help.trim_end().lines() {
        out.line(line.trim_end())?;
    }
    out.line("```\n")?;
    Ok(())
}
