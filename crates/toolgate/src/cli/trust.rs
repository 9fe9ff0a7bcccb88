//! `toolgate trust`: shows what trust in a project would activate, and grants or ends it.
//!
//! A prompt shows the list first, and what is trusted is exactly what was shown: a change in between fails the command.

use super::args::PromptWhen;
use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::terminal_approver::is_interactive;
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::{Map, Value, json};
use toolgate::AbsPath;
use toolgate::render::escape_invisible;
use toolgate::settings::trust::{
    IgnoredKey, TrustManifest, TrustStatus, TrustStore, describe_wide_workspace,
};
use toolgate::skills::{SkillCatalog, SkillTrust};
use toolgate_process::ControllingTerminal;

/// Arguments of `toolgate trust`.
#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    pub(crate) command: Option<TrustCommand>,
}

/// The commands of `toolgate trust`.
#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Show the settings, hooks and servers of this project that need trust, and whether they have it (the default)
    Show,
    /// Trust this project as it is now; a later change ends the trust
    Add {
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Accept a workspace as wide as your home directory or the whole file system
    Workspace {
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Stop trusting this project, or another directory
    Remove {
        /// The directory
        dir: Option<String>,
    },
    /// List every trusted project
    List,
}

/// Runs one of the commands.
pub(crate) fn run(
    context: &CliContext,
    args: &TrustArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let store = TrustStore::in_dir(dir_of_state(context)?);
    match args.command.as_ref().unwrap_or(&TrustCommand::Show) {
        TrustCommand::Show => show(context, &store, out),
        TrustCommand::Add { yes } => add(context, &store, *yes, out),
        TrustCommand::Workspace { yes } => accept_workspace(context, &store, *yes, out),
        TrustCommand::Remove { dir } => {
            let root = dir.as_ref().map_or_else(|| context.cwd(), |dir| context.ambient.absolute_path(dir));
            if !store.remove(&root)? {
                return Err(CliError::Usage(format!(
                    "{root} is not trusted; `toolgate trust list` lists the trusted projects"
                )));
            }
            SkillTrust::in_dir(dir_of_state(context)?, &root).forget()?;
            let done = json!({ "root": root, "trusted": false });
            out.print_done(context.global.json, &done, &format!("{root} is no longer trusted"))?;
            Ok(CliExitCode::Ok)
        }
        TrustCommand::List => {
            for trusted in store.list()? {
                match context.global.json {
                    true => out.print_line(&json!(trusted).to_string())?,
                    false => out.print_line(&format!("{}  {:.12}", trusted.root, trusted.sha256))?,
                }
            }
            Ok(CliExitCode::Ok)
        }
    }
}

/// Prints what needs trust, what changed since it was granted, and the status.
fn show(context: &CliContext, store: &TrustStore, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let manifest = context.settings_options()?.load_trust_manifest()?;
    let status = store.trust_status(&context.cwd(), &manifest)?;
    if context.global.json {
        let word = match status {
            TrustStatus::Trusted => "trusted",
            TrustStatus::Changed => "changed",
            TrustStatus::Unknown => "unknown",
        };
        let mut shown = describe_manifest(context, &manifest)?;
        shown.insert("standing".to_owned(), json!(word));
        shown.insert("changed".to_owned(), json!(store.changes(&context.cwd(), &manifest)?));
        out.print_line(&Value::Object(shown).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    list(context, &manifest, out)?;
    let requests = SkillTrust::describe_requests(&load_skills(context)?);
    for request in &requests {
        out.print_line(&format!("  {}", escape_invisible(request)))?;
    }
    if status == TrustStatus::Changed {
        for name in store.changes(&context.cwd(), &manifest)? {
            out.print_line(&format!("  changed: {}", escape_invisible(&name)))?;
        }
    }
    out.print_line(&match status {
        TrustStatus::Changed if manifest.is_empty() && requests.is_empty() => {
            "this project changed after you trusted it, and has no settings, hooks or servers that need trust any more; \
             calls that its hooks screened stay refused until you run `toolgate trust add`"
                .to_owned()
        }
        _ if manifest.is_empty() && requests.is_empty() => {
            "this project has no settings, hooks or servers that need trust".to_owned()
        }
        TrustStatus::Trusted => paint(style::GOOD, "trusted: everything listed here that trust covers is active"),
        TrustStatus::Changed => paint(
            style::ASK,
            "changed after you trusted it: everything listed here that trust covers is off until you run `toolgate trust add`",
        ),
        TrustStatus::Unknown => {
            paint(style::ASK, "not trusted: everything listed here that trust covers is off until you run `toolgate trust add`")
        }
    })?;
    Ok(CliExitCode::Ok)
}

/// What trust in the project would activate, and what it would not.
fn describe_manifest(context: &CliContext, manifest: &TrustManifest) -> Result<Map<String, Value>, CliError> {
    let mut ignored = Vec::new();
    for key in &manifest.ignored {
        ignored.push(json!({ "what": key.what, "countsIn": find_file_of_key(context, key)? }));
    }
    let unresolved: Vec<Value> =
        manifest.unresolved.iter().map(|it| json!({ "what": it.what, "why": it.why })).collect();
    let mut fields = Map::new();
    fields.insert("root".to_owned(), json!(context.cwd()));
    fields.insert("sha256".to_owned(), json!(manifest.sha256));
    fields.insert("brings".to_owned(), json!(manifest.items));
    fields.insert("unresolved".to_owned(), json!(unresolved));
    fields.insert("ignored".to_owned(), json!(ignored));
    Ok(fields)
}

/// Trusts the project, after the user has seen the list and typed `yes`.
fn add(
    context: &CliContext,
    store: &TrustStore,
    yes: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let mut manifest = context.settings_options()?.load_trust_manifest()?;
    let root = context.cwd();
    // The hashes of these very skills are stored: one that changes while the list is shown is not trusted.
    let skills = load_skills(context)?;
    if !yes && context.global.json {
        let message =
            "with --json there is no question; check `toolgate trust --json`, then repeat with --yes";
        return Err(CliError::Usage(message.to_owned()));
    }
    if !yes {
        list(context, &manifest, out)?;
        for request in SkillTrust::describe_requests(&skills) {
            out.print_line(&format!("  {}", escape_invisible(&request)))?;
        }
        out.flush()?;
        if !is_interactive() {
            let message = "no terminal to confirm at; check the list, then repeat the command with --yes";
            return Err(CliError::Usage(message.to_owned()));
        }
        let mut terminal = ControllingTerminal::open()?;
        let answer = terminal.ask_line(&format!("type yes to trust {root} as it is now: "))?;
        if answer != "yes" {
            out.print_note("the project was not trusted; nothing was changed");
            return Ok(CliExitCode::Denied);
        }
        // What is trusted must be what was shown.
        if context.settings_options()?.load_trust_manifest()? != manifest {
            return Err(CliError::Usage(
                "the project changed while the list was shown, so it was not trusted; run the command again"
                    .to_owned(),
            ));
        }
    }
    store.add(&root, &manifest)?;
    context.skill_trust(dir_of_state(context)?, &root).trust_catalog(&skills)?;
    if describe_wide_workspace(&root, context.ambient.home.as_ref()).is_some() {
        store.accept_wide(&root)?;
    }
    if context.global.json {
        let mut done = describe_manifest(context, &manifest)?;
        done.insert("trusted".to_owned(), json!(true));
        out.print_line(&Value::Object(done).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    out.print_line(&format!("{root} is trusted as it is now"))?;
    if yes {
        manifest.items.clear();
        list(context, &manifest, out)?;
    }
    Ok(CliExitCode::Ok)
}

/// The skills of this workspace.
fn load_skills(context: &CliContext) -> Result<SkillCatalog, CliError> {
    Ok(SkillCatalog::load(&context.skill_options()?.places, None))
}

/// The directory that stores trust.
fn dir_of_state(context: &CliContext) -> Result<&AbsPath, CliError> {
    context.ambient.state_dir.as_ref().ok_or_else(|| {
        CliError::Usage("there is no state directory that stores trust; set TOOLGATE_STATE_DIR".to_owned())
    })
}

/// The file in which a key counts that no project can set.
fn find_file_of_key(context: &CliContext, key: &IgnoredKey) -> Result<String, CliError> {
    let options = context.settings_options()?;
    let file = match key.needs_managed_file {
        true => options.managed_dirs.first().map(|dir| dir.join("managed-settings.json")),
        false => options.config_dir.as_ref().map(|dir| dir.join("settings.json")),
    };
    let unknown = if key.needs_managed_file { "managed settings" } else { "your own settings" };
    Ok(file.map_or_else(|| unknown.to_owned(), |file| file.to_string()))
}

/// Prints the entries that trust covers, then those that it cannot cover, then the keys that no project can set.
fn list(context: &CliContext, manifest: &TrustManifest, out: &mut CliOutput) -> Result<(), CliError> {
    for item in &manifest.items {
        out.print_line(&format!("  {}", escape_invisible(item)))?;
    }
    for command in &manifest.unresolved {
        let what = paint(style::ASK, &format!("not trusted: {}", escape_invisible(&command.what)));
        out.print_line(&format!("  {what}: {}", escape_invisible(&command.why)))?;
    }
    if !manifest.unresolved.is_empty() {
        out.print_line(
            "  trust covers only commands whose files are known; until then such a hook refuses the calls that it \
             screens, and such a server does not start; name a script of the project instead, approve a server with \
             `toolgate mcp approve`, or move the entry to your own settings",
        )?;
    }
    for key in &manifest.ignored {
        let what = paint(style::ASK, &format!("never taken from a project: {}", escape_invisible(&key.what)));
        out.print_line(&format!("  {what}; it counts in {}", find_file_of_key(context, key)?))?;
    }
    Ok(())
}

/// Accepts a workspace that contains the home directory.
fn accept_workspace(
    context: &CliContext,
    store: &TrustStore,
    yes: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let (root, is_json) = (context.cwd(), context.global.json);
    let Some(width) = describe_wide_workspace(&root, context.ambient.home.as_ref()) else {
        let text = format!(
            "{root} needs no confirmation: it is neither your home directory nor a directory above it"
        );
        out.print_done(is_json, &json!({ "root": root, "accepted": false, "needed": false }), &text)?;
        return Ok(CliExitCode::Ok);
    };
    if !yes && !confirm_wide_workspace(&root, width)? {
        out.print_note("the workspace was not accepted; nothing was changed");
        return Ok(CliExitCode::Denied);
    }
    store.accept_wide(&root)?;
    let text = format!("accepted {root} ({width}) as a workspace");
    out.print_done(is_json, &json!({ "root": root, "accepted": true, "needed": true }), &text)?;
    Ok(CliExitCode::Ok)
}

/// Asks at the terminal; fails if there is none.
fn confirm_wide_workspace(root: &AbsPath, width: &str) -> Result<bool, CliError> {
    if !is_interactive() {
        let message = "no terminal to confirm at; repeat the command with --yes";
        return Err(CliError::Usage(message.to_owned()));
    }
    let question = format!(
        "the workspace {root} is {width}: tools could read and change everything in it; use it anyway? [y/N] "
    );
    let answer = ControllingTerminal::open()?.ask_line(&question)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks once about a workspace that contains the home directory, if there is a terminal. Without one, policy asks
/// about every call instead. A no ends the command: policy would only ask the same about each call.
pub(crate) fn ask_about_wide_workspace(context: &CliContext) -> Result<(), CliError> {
    let root = context.cwd();
    let (Some(width), Some(dir)) =
        (describe_wide_workspace(&root, context.ambient.home.as_ref()), context.ambient.state_dir.as_ref())
    else {
        return Ok(());
    };
    let store = TrustStore::in_dir(dir);
    let can_ask = context.global.permission_prompts == PromptWhen::Auto && is_interactive();
    if context.global.trust_workspace || store.is_accepted_wide(&root)? || !can_ask {
        return Ok(());
    }
    if !confirm_wide_workspace(&root, width)? {
        return Err(CliError::Declined(format!(
            "the workspace {root} is {width}, and you did not accept it, so nothing was run\n  hint: work in a project \
             directory, or accept this workspace with `toolgate trust workspace`"
        )));
    }
    Ok(store.accept_wide(&root)?)
}
