//! `toolgate trust`: what a project brings, and whether it counts.

use super::args::{TrustArgs, TrustCommand};
use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::terminal_approver::is_interactive;
use super::{CliError, CliExitCode};
use serde_json::json;
use toolgate::AbsPath;
use toolgate::render::escape_invisible;
use toolgate::settings::trust::{TrustManifest, TrustStatus, TrustStore, describe_wide_workspace};
use toolgate_process::ControllingTerminal;

pub(crate) fn run(
    world: &CliContext,
    args: &TrustArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = world.ambient.state_dir.as_ref().ok_or_else(|| {
        CliError::Usage("there is nowhere to remember trust; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let store = TrustStore::in_dir(dir);
    match args.command.as_ref().unwrap_or(&TrustCommand::Show) {
        TrustCommand::Show => show(world, &store, out),
        TrustCommand::Add { yes } => add(world, &store, *yes, out),
        TrustCommand::Workspace { yes } => accept_workspace(world, &store, *yes, out),
        TrustCommand::Remove { dir } => {
            let root = dir.as_ref().map_or_else(|| world.cwd(), |dir| world.ambient.absolute_path(dir));
            if !store.remove(&root)? {
                return Err(CliError::Usage(format!("{root} was not trusted")));
            }
            out.print_line(&format!("{root} is no longer trusted"))?;
            Ok(CliExitCode::Ok)
        }
        TrustCommand::List => {
            for trusted in store.list()? {
                match world.global.json {
                    true => out.print_line(&json!(trusted).to_string())?,
                    false => out.print_line(&format!("{}  {:.12}", trusted.root, trusted.sha256))?,
                }
            }
            Ok(CliExitCode::Ok)
        }
    }
}

fn show(world: &CliContext, store: &TrustStore, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let brought = world.settings_options()?.load_trust_manifest()?;
    let standing = store.trust_status(&world.cwd(), &brought)?;
    if world.global.json {
        let word = match standing {
            TrustStatus::Trusted => "trusted",
            TrustStatus::Changed => "changed",
            TrustStatus::Unknown => "unknown",
        };
        let unresolved: Vec<_> =
            brought.unresolved.iter().map(|it| json!({ "what": it.what, "why": it.why })).collect();
        let shown = json!({
            "root": world.cwd(), "standing": word, "sha256": brought.sha256, "brings": brought.items,
            "unresolved": unresolved, "changed": store.changes(&world.cwd(), &brought)?,
        });
        out.print_line(&shown.to_string())?;
        return Ok(CliExitCode::Ok);
    }
    list(&brought, out)?;
    if standing == TrustStatus::Changed {
        for name in store.changes(&world.cwd(), &brought)? {
            out.print_line(&format!("  changed: {}", escape_invisible(&name)))?;
        }
    }
    out.print_line(&match standing {
        _ if brought.is_empty() => "there is nothing to trust: this project only tightens".to_owned(),
        TrustStatus::Trusted => paint(style::GOOD, "trusted"),
        TrustStatus::Changed => paint(style::ASK, "changed since it was trusted, so all of this waits"),
        TrustStatus::Unknown => paint(style::ASK, "not trusted, so all of this waits (toolgate trust add)"),
    })?;
    Ok(CliExitCode::Ok)
}

fn add(
    world: &CliContext,
    store: &TrustStore,
    yes: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let brought = world.settings_options()?.load_trust_manifest()?;
    let root = world.cwd();
    if !yes {
        list(&brought, out)?;
        out.flush()?;
        if !is_interactive() {
            let message = "there is no terminal to ask at; look at the list, then give --yes";
            return Err(CliError::Usage(message.to_owned()));
        }
        let mut terminal = ControllingTerminal::open()?;
        let said = terminal.ask_line(&format!("type yes to trust {root} as it is now: "))?;
        if said != "yes" {
            out.print_note("nothing was changed");
            return Ok(CliExitCode::Denied);
        }
        // What was shown is what is trusted.
        if world.settings_options()?.load_trust_manifest()? != brought {
            return Err(CliError::Usage("it changed while you looked; look again".to_owned()));
        }
    }
    store.add(&root, &brought)?;
    if describe_wide_workspace(&root, world.ambient.home.as_ref()).is_some() {
        store.accept_wide(&root)?;
    }
    out.print_line(&format!("{root} is trusted as it is now"))?;
    if yes && !brought.unresolved.is_empty() {
        list(&TrustManifest { items: Vec::new(), ..brought }, out)?;
    }
    Ok(CliExitCode::Ok)
}

fn list(brought: &TrustManifest, out: &mut CliOutput) -> Result<(), CliError> {
    for item in &brought.items {
        out.print_line(&format!("  {}", escape_invisible(item)))?;
    }
    for it in &brought.unresolved {
        let what = paint(style::ASK, &format!("not trusted: {}", escape_invisible(&it.what)));
        out.print_line(&format!("  {what}: {}", escape_invisible(&it.why)))?;
    }
    if !brought.unresolved.is_empty() {
        out.print_line(
            "  what is not trusted cannot be bound to bytes: hooks refuse the calls that they are for, servers wait for \
             `toolgate mcp approve`; name a script of the project instead, or move the entry to your own settings",
        )?;
    }
    Ok(())
}

/// Says yes to a workspace that is as wide as the home directory.
fn accept_workspace(
    world: &CliContext,
    store: &TrustStore,
    yes: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let root = world.cwd();
    let Some(width) = describe_wide_workspace(&root, world.ambient.home.as_ref()) else {
        out.print_line(&format!("{root} needs no yes: it is neither your home directory nor above it"))?;
        return Ok(CliExitCode::Ok);
    };
    if !yes && !confirm_wide_workspace(&root, width)? {
        out.print_note("nothing was changed");
        return Ok(CliExitCode::Denied);
    }
    store.accept_wide(&root)?;
    out.print_line(&format!("{root} may be a workspace: {width}"))?;
    Ok(CliExitCode::Ok)
}

fn confirm_wide_workspace(root: &AbsPath, width: &str) -> Result<bool, CliError> {
    if !is_interactive() {
        let message = "there is no terminal to ask at; give --yes";
        return Err(CliError::Usage(message.to_owned()));
    }
    let question = format!(
        "the workspace {root} is {width}: tools could read and change everything in it; type yes to work there: "
    );
    Ok(ControllingTerminal::open()?.ask_line(&question)? == "yes")
}

/// Asks once about a workspace that is as wide as the home directory, where there is a terminal to ask at.
pub(crate) fn ask_about_wide_workspace(world: &CliContext) -> Result<(), CliError> {
    let root = world.cwd();
    let (Some(width), Some(dir)) =
        (describe_wide_workspace(&root, world.ambient.home.as_ref()), world.ambient.state_dir.as_ref())
    else {
        return Ok(());
    };
    let store = TrustStore::in_dir(dir);
    if world.global.trust_workspace || store.is_accepted_wide(&root)? || !is_interactive() {
        return Ok(());
    }
    if confirm_wide_workspace(&root, width)? {
        store.accept_wide(&root)?;
    }
    Ok(())
}
