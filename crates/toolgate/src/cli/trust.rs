//! `toolgate trust`: what a project brings, and whether it counts.

use super::args::{TrustArgs, TrustCommand};
use super::ask::is_interactive;
use super::out::{Out, paint, style};
use super::world::World;
use super::{Exit, Failure};
use serde_json::json;
use toolgate::AbsPath;
use toolgate::render::visible;
use toolgate::settings::trust::{Brought, Standing, TrustStore, describe_wide_workspace};
use toolgate_os::ControllingTerminal;

pub(crate) fn run(world: &World, args: &TrustArgs, out: &mut Out) -> Result<Exit, Failure> {
    let dir = world.ambient.state_dir.as_ref().ok_or_else(|| {
        Failure::Usage("there is nowhere to remember trust; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let store = TrustStore::in_dir(dir);
    match args.command.as_ref().unwrap_or(&TrustCommand::Show) {
        TrustCommand::Show => show(world, &store, out),
        TrustCommand::Add { yes } => add(world, &store, *yes, out),
        TrustCommand::Workspace { yes } => workspace(world, &store, *yes, out),
        TrustCommand::Remove { dir } => {
            let root = dir.as_ref().map_or_else(|| world.cwd(), |dir| world.ambient.path(dir));
            if !store.remove(&root)? {
                return Err(Failure::Usage(format!("{root} was not trusted")));
            }
            out.line(&format!("{root} is no longer trusted"))?;
            Ok(Exit::Ok)
        }
        TrustCommand::List => {
            for trusted in store.list()? {
                match world.global.json {
                    true => out.line(&json!(trusted).to_string())?,
                    false => out.line(&format!("{}  {:.12}", trusted.root, trusted.sha256))?,
                }
            }
            Ok(Exit::Ok)
        }
    }
}

fn show(world: &World, store: &TrustStore, out: &mut Out) -> Result<Exit, Failure> {
    let brought = world.settings_options()?.brought()?;
    let standing = store.standing(&world.cwd(), &brought)?;
    if world.global.json {
        let word = match standing {
            Standing::Trusted => "trusted",
            Standing::Changed => "changed",
            Standing::Unknown => "unknown",
        };
        let unresolved: Vec<_> =
            brought.unresolved.iter().map(|it| json!({ "what": it.what, "why": it.why })).collect();
        let shown = json!({
            "root": world.cwd(), "standing": word, "sha256": brought.sha256, "brings": brought.items,
            "unresolved": unresolved, "changed": store.changes(&world.cwd(), &brought)?,
        });
        out.line(&shown.to_string())?;
        return Ok(Exit::Ok);
    }
    list(&brought, out)?;
    if standing == Standing::Changed {
        for name in store.changes(&world.cwd(), &brought)? {
            out.line(&format!("  changed: {}", visible(&name)))?;
        }
    }
    out.line(&match standing {
        _ if brought.is_empty() => "there is nothing to trust: this project only tightens".to_owned(),
        Standing::Trusted => paint(style::GOOD, "trusted"),
        Standing::Changed => paint(style::ASK, "changed since it was trusted, so all of this waits"),
        Standing::Unknown => paint(style::ASK, "not trusted, so all of this waits (toolgate trust add)"),
    })?;
    Ok(Exit::Ok)
}

fn add(world: &World, store: &TrustStore, yes: bool, out: &mut Out) -> Result<Exit, Failure> {
    let brought = world.settings_options()?.brought()?;
    let root = world.cwd();
    if !yes {
        list(&brought, out)?;
        out.flush()?;
        if !is_interactive() {
            let message = "there is no terminal to ask at; look at the list, then give --yes";
            return Err(Failure::Usage(message.to_owned()));
        }
        let mut terminal = ControllingTerminal::open()?;
        let said = terminal.ask_line(&format!("type yes to trust {root} as it is now: "))?;
        if said != "yes" {
            out.note("nothing was changed");
            return Ok(Exit::Denied);
        }
        // What was shown is what is trusted.
        if world.settings_options()?.brought()? != brought {
            return Err(Failure::Usage("it changed while you looked; look again".to_owned()));
        }
    }
    store.add(&root, &brought)?;
    if describe_wide_workspace(&root, world.ambient.home.as_ref()).is_some() {
        store.accept_wide(&root)?;
    }
    out.line(&format!("{root} is trusted as it is now"))?;
    if yes && !brought.unresolved.is_empty() {
        list(&Brought { items: Vec::new(), ..brought }, out)?;
    }
    Ok(Exit::Ok)
}

fn list(brought: &Brought, out: &mut Out) -> Result<(), Failure> {
    for item in &brought.items {
        out.line(&format!("  {}", visible(item)))?;
    }
    for it in &brought.unresolved {
        let what = paint(style::ASK, &format!("not trusted: {}", visible(&it.what)));
        out.line(&format!("  {what}: {}", visible(&it.why)))?;
    }
    if !brought.unresolved.is_empty() {
        out.line(
            "  what is not trusted cannot be bound to bytes: hooks refuse the calls that they are for, servers wait for \
             `toolgate mcp approve`; name a script of the project instead, or move the entry to your own settings",
        )?;
    }
    Ok(())
}

/// Says yes to a workspace that is as wide as the home directory.
fn workspace(world: &World, store: &TrustStore, yes: bool, out: &mut Out) -> Result<Exit, Failure> {
    let root = world.cwd();
    let Some(width) = describe_wide_workspace(&root, world.ambient.home.as_ref()) else {
        out.line(&format!("{root} needs no yes: it is neither your home directory nor above it"))?;
        return Ok(Exit::Ok);
    };
    if !yes && !confirm_wide_workspace(&root, width)? {
        out.note("nothing was changed");
        return Ok(Exit::Denied);
    }
    store.accept_wide(&root)?;
    out.line(&format!("{root} may be a workspace: {width}"))?;
    Ok(Exit::Ok)
}

fn confirm_wide_workspace(root: &AbsPath, width: &str) -> Result<bool, Failure> {
    if !is_interactive() {
        let message = "there is no terminal to ask at; give --yes";
        return Err(Failure::Usage(message.to_owned()));
    }
    let question = format!(
        "the workspace {root} is {width}: tools could read and change everything in it; type yes to work there: "
    );
    Ok(ControllingTerminal::open()?.ask_line(&question)? == "yes")
}

/// Asks once about a workspace that is as wide as the home directory, where there is a terminal to ask at.
pub(crate) fn ask_about_wide_workspace(world: &World) -> Result<(), Failure> {
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
