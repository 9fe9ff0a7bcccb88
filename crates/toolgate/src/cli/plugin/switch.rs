//! `toolgate plugin approve`, `enable`, `disable` and `remove`.

use super::super::context::CliContext;
use super::super::output::CliOutput;
use super::super::{CliError, CliExitCode};
use serde_json::{Value, json};

/// Arguments of `toolgate plugin approve`.
#[derive(Debug, clap::Args)]
pub(super) struct PluginApproveArgs {
    /// The plugin: its name, name@marketplace, or a directory
    name: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Approves a plugin as it is now, after the user has seen what it would run.
pub(super) fn approve(
    context: &CliContext,
    args: &PluginApproveArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let store = super::open_store(context)?;
    let root = match store.find(&args.name)? {
        Some(plugin) => plugin.root,
        None => context.ambient.absolute_path(&args.name),
    };
    let package = super::read_package(&root)?;
    let question = format!("approve plugin {} as it is now", package.name());
    if !super::confirm(context, &package, &question, args.yes, out)? {
        out.print_note("the plugin was not approved; nothing was changed");
        return Ok(CliExitCode::Denied);
    }
    // What is approved must be what was shown.
    if super::read_package(&root)?.sha256 != package.sha256 {
        return Err(CliError::Usage(
            "the plugin changed while it was shown, so it was not approved; run the command again".to_owned(),
        ));
    }
    store.approve(&package)?;
    super::forget_server_pins(context, package.name())?;
    let mut done = super::show::describe_package(&package);
    done.insert("approved".to_owned(), json!(true));
    let text = format!("approved plugin `{}` as it is now", package.name());
    out.print_done(context.global.json, &Value::Object(done), &text)?;
    Ok(CliExitCode::Ok)
}

/// Switches a plugin on or off.
pub(super) fn switch_plugin(
    context: &CliContext,
    name: &str,
    is_enabled: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let Some(plugin) = super::open_store(context)?.set_enabled(name, is_enabled)? else {
        return Err(not_installed(name));
    };
    let text = format!("plugin `{}` is {}", plugin.id(), if is_enabled { "on" } else { "off" });
    out.print_done(context.global.json, &json!({ "plugin": plugin.id(), "enabled": is_enabled }), &text)?;
    let entry = super::find_entry(context, &plugin.id())?;
    let is_off = entry.is_some_and(|entry| entry.status == toolgate::plugins::PluginStatus::Disabled);
    if is_off == is_enabled {
        out.print_note("settings say otherwise with `enabledPlugins`, and they count first");
    }
    Ok(CliExitCode::Ok)
}

/// Removes a plugin, or the approval of a directory.
pub(super) fn remove(context: &CliContext, name: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let store = super::open_store(context)?;
    if let Some(plugin) = store.find(name)? {
        super::forget_server_pins(context, &plugin.name)?;
        store.remove(&plugin.id())?;
        let done = json!({ "plugin": plugin.id(), "removed": true });
        out.print_done(context.global.json, &done, &format!("removed plugin `{}`", plugin.id()))?;
        return Ok(CliExitCode::Ok);
    }
    let root = toolgate_files::resolve(&context.ambient.absolute_path(name)).real;
    if store.forget_approval(&root)? {
        let done = json!({ "directory": root, "approved": false });
        out.print_done(context.global.json, &done, &format!("{root} is no longer approved"))?;
        return Ok(CliExitCode::Ok);
    }
    Err(not_installed(name))
}

/// The error for a name that no installed plugin has.
pub(super) fn not_installed(name: &str) -> CliError {
    CliError::Usage(format!("plugin `{name}` is not installed; `toolgate plugin list` lists the plugins"))
}
