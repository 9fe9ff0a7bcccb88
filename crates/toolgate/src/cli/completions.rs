//! `toolgate completions` prints or installs a shell completion script and the man pages; the hidden command `reference`
//! prints `docs/cli.md`.
//!
//! All are generated from the grammar of the command line, so a new option needs no second description.

use super::args::GlobalArgs;
use super::context::CliContext;
use super::examples::build_command;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;
use toolgate::AbsPath;

/// Arguments of `toolgate completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for; with --install that of $SHELL if absent
    #[arg(required_unless_present = "install")]
    pub(crate) shell: Option<Shell>,
    /// Write the script and the man pages to your own directories, where the shell and `man` look for them
    #[arg(long)]
    pub(crate) install: bool,
}

/// Prints the shell completion script, or installs it with the man pages.
pub(crate) fn run(
    context: &CliContext,
    args: &CompletionsArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    if args.install {
        return install(context, args.shell, out);
    }
    if let Some(shell) = args.shell {
        out.print_raw(&generate_script(shell))?;
    }
    Ok(CliExitCode::Ok)
}

/// The completion script of a shell.
fn generate_script(shell: Shell) -> String {
    // clap_complete offers hidden commands as well.
    let all = build_command();
    let visible: Vec<Command> = all.get_subcommands().filter(|it| !it.is_hide_set()).cloned().collect();
    let root = Command::new("toolgate").version(env!("CARGO_PKG_VERSION"));
    let mut root = GlobalArgs::augment_args(root).subcommands(visible);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut root, "toolgate", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes the script and the man pages below the user's data directory.
fn install(context: &CliContext, shell: Option<Shell>, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let named = context.ambient.env.get("SHELL").and_then(Shell::from_shell_path);
    let shell = shell.or(named).ok_or_else(|| {
        CliError::Usage(
            "$SHELL names no known shell; give one, such as `toolgate completions bash --install`".to_owned(),
        )
    })?;
    let (script, advice) = script_path(context, shell)?;
    write(&script, &generate_script(shell))?;
    let man_dir = data_dir(context)?.join("man/man1");
    let mut root = build_command();
    root.build();
    let count = write_man_pages(&root, &man_dir)?;
    if context.global.json {
        let done = json!({ "script": script, "manPages": count, "manDirectory": man_dir, "next": advice });
        out.print_line(&done.to_string())?;
        return Ok(CliExitCode::Ok);
    }
    out.print_line(&format!("{}  {script}", paint(style::GOOD, "wrote")))?;
    out.print_line(&format!("{}  {count} man pages in {man_dir}", paint(style::GOOD, "wrote")))?;
    out.print_line(advice)?;
    Ok(CliExitCode::Ok)
}

/// Where a shell looks for the script of a user, and what else it needs.
fn script_path(context: &CliContext, shell: Shell) -> Result<(AbsPath, &'static str), CliError> {
    let data = data_dir(context)?;
    Ok(match shell {
        Shell::Bash => (
            data.join("bash-completion/completions/toolgate"),
            "open a new shell to use it (needs the package bash-completion)",
        ),
        Shell::Zsh => (
            data.join("zsh/site-functions/_toolgate"),
            "add this to ~/.zshrc before compinit: fpath=(~/.local/share/zsh/site-functions $fpath)",
        ),
        Shell::Fish => {
            let config = user_dir(context, "XDG_CONFIG_HOME", ".config")?;
            (config.join("fish/completions/toolgate.fish"), "open a new shell to use it")
        }
        other => {
            return Err(CliError::Usage(format!(
                "{other} has no directory for completion scripts; print the script with `toolgate completions {other}` \
                 and load it in your profile"
            )));
        }
    })
}

/// The directory of the user's shared data.
fn data_dir(context: &CliContext) -> Result<AbsPath, CliError> {
    user_dir(context, "XDG_DATA_HOME", ".local/share")
}

/// A directory of the user: that of the variable, or this one in the home directory.
fn user_dir(context: &CliContext, variable: &str, default: &str) -> Result<AbsPath, CliError> {
    let named = context.ambient.env.get(variable).and_then(|dir| AbsPath::new(dir).ok());
    named
        .or_else(|| context.ambient.home.as_ref().map(|home| home.join(default)))
        .ok_or_else(|| CliError::Usage(format!("there is no home directory; set {variable}")))
}

/// Writes the man page of a command and of every command below it; returns how many.
fn write_man_pages(command: &Command, dir: &AbsPath) -> Result<usize, CliError> {
    let name = command.get_display_name().unwrap_or(command.get_name()).replace(' ', "-");
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name.clone()).render(&mut page)?;
    write(&dir.join(format!("{name}.1")), &String::from_utf8_lossy(&page))?;
    let below = command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
    below.map(|it| write_man_pages(it, dir)).try_fold(1, |count, written| Ok(count + written?))
}

/// Writes a file for the user.
fn write(path: &AbsPath, text: &str) -> Result<(), CliError> {
    toolgate_files::replace_shared_file(path, text.as_bytes())
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))
}

/// Prints `docs/cli.md`; a test compares it with the file.
pub(crate) fn print_reference(out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut root = build_command().term_width(100);
    root.build();
    out.print_line("# Command line reference\n")?;
    out.print_line(
        "Generated from the program's help by `cargo xtask docs`; a test fails when this file is out of date.\n",
    )?;
    print_section(&mut root, out)?;
    print_subcommands(&root, out)?;
    Ok(CliExitCode::Ok)
}

/// Prints a section for each command at every level below this one.
fn print_subcommands(command: &Command, out: &mut CliOutput) -> Result<(), CliError> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        // The global options appear once, in the section of the program.
        let mut own = below.clone().term_width(100).mut_args(|arg| {
            let global = arg.is_global_set();
            arg.hide(global)
        });
        print_section(&mut own, out)?;
        print_subcommands(below, out)?;
    }
    Ok(())
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
