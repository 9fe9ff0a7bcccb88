//! `toolgate plugin add` and `toolgate plugin update`.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use super::switch::not_installed;
use serde_json::{Value, json};
use toolgate::plugins::{KnownMarketplaces, PluginSource, PluginStore, SourceContent, StagedPlugin};
use toolgate::settings::LoadedSettings;

/// Arguments of `toolgate plugin add`.
#[derive(Debug, clap::Args)]
pub(super) struct PluginAddArgs {
    /// A directory, the address of a git repository (with #BRANCH for a branch or tag), or OWNER/NAME on GitHub
    source: String,
    /// The plugins to install, if the source is a marketplace; without one its plugins are listed
    names: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Arguments of `toolgate plugin update`.
#[derive(Debug, clap::Args)]
pub(super) struct PluginUpdateArgs {
    /// The plugin; every installed one if absent
    name: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Installs plugins.
pub(super) fn add(
    context: &CliContext,
    args: &PluginAddArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let store = super::open_store(context)?;
    let directory = context.ambient.absolute_path(&args.source);
    let source = PluginSource::parse(&args.source, &directory).map_err(CliError::Usage)?;
    let known = load_known_marketplaces(context)?;
    known.check(&source).map_err(CliError::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let env = &context.ambient.env;
    let content = runtime.block_on(source.fetch(&store, env)).map_err(CliError::Usage)?;
    for problem in &content.problems {
        out.print_note(&problem.to_string());
    }
    if args.names.is_empty() && content.marketplace.is_some() {
        return list_marketplace(&content, context.global.json, out);
    }
    let names: Vec<Option<&str>> = match args.names.as_slice() {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    for name in names {
        let staged = runtime.block_on(content.stage(name, &store, env)).map_err(CliError::Usage)?;
        let exit = show_and_install(context, &store, staged, args.yes, out)?;
        if exit != CliExitCode::Ok {
            return Ok(exit);
        }
    }
    Ok(CliExitCode::Ok)
}

/// Fetches plugins again, and installs what changed.
pub(super) fn update(
    context: &CliContext,
    args: &PluginUpdateArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let store = super::open_store(context)?;
    let installed = match &args.name {
        Some(name) => vec![store.find(name)?.ok_or_else(|| not_installed(name))?],
        None => store.list()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let approvals = store.approvals()?;
    let known = load_known_marketplaces(context)?;
    for plugin in installed {
        known.check(&plugin.source).map_err(CliError::Usage)?;
        let staged = runtime.block_on(async {
            let content = plugin.source.fetch(&store, &context.ambient.env).await?;
            content.stage(Some(&plugin.name), &store, &context.ambient.env).await
        });
        let staged =
            staged.map_err(|problem| CliError::Usage(format!("plugin `{}`: {problem}", plugin.id())))?;
        if staged.marketplace != plugin.marketplace {
            return Err(CliError::Usage(format!(
                "plugin `{}` now comes from the marketplace `{}`; remove it, then add it again",
                plugin.id(),
                staged.marketplace
            )));
        }
        let approved = approvals.iter().find(|approval| approval.root == plugin.root);
        if approved.is_some_and(|approval| approval.sha256 == staged.package.sha256) {
            let done = json!({ "plugin": plugin.id(), "upToDate": true });
            out.print_done(context.global.json, &done, &format!("plugin `{}` is up to date", plugin.id()))?;
            continue;
        }
        let exit = show_and_install(context, &store, staged, args.yes, out)?;
        if exit != CliExitCode::Ok {
            return Ok(exit);
        }
    }
    Ok(CliExitCode::Ok)
}

/// Where managed settings let plugins come from.
fn load_known_marketplaces(context: &CliContext) -> Result<KnownMarketplaces, CliError> {
    Ok(LoadedSettings::load(&context.settings_options()?)?.known_marketplaces())
}

/// Shows a plugin, and installs it if the user says yes.
fn show_and_install(
    context: &CliContext,
    store: &PluginStore,
    staged: StagedPlugin,
    yes: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let question = format!("install plugin {} from {}", staged.package.name(), staged.source);
    if !super::confirm(context, &staged.package, &question, yes, out)? {
        out.print_note("the plugin was not installed; nothing was changed");
        return Ok(CliExitCode::Denied);
    }
    super::forget_server_pins(context, staged.package.name())?;
    let mut done = super::show::describe_package(&staged.package);
    let plugin = store.install(staged)?;
    super::forget_server_pins(context, &plugin.name)?;
    done.insert("root".to_owned(), json!(plugin.root));
    done.insert("installed".to_owned(), json!(plugin.id()));
    let text = format!("installed plugin `{}`; `toolgate plugin list` lists the plugins", plugin.id());
    out.print_done(context.global.json, &Value::Object(done), &text)?;
    Ok(CliExitCode::Ok)
}

/// Lists the plugins of a marketplace.
fn list_marketplace(
    content: &SourceContent,
    is_json: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let plugins = content.marketplace.iter().flat_map(|marketplace| &marketplace.plugins);
    for entry in plugins {
        let manifest = &entry.manifest;
        let description = manifest.description.as_deref().unwrap_or_default();
        let text = format!(
            "{}  {}",
            paint(style::BOLD, &to_one_line(&manifest.name)),
            paint(style::FAINT, &to_one_line(description))
        );
        let entry = json!({ "name": manifest.name, "description": description });
        out.print_done(is_json, &entry, &text)?;
    }
    out.print_note(&format!("`toolgate plugin add {} NAME` installs one", content.source));
    Ok(CliExitCode::Ok)
}
