//! `toolgate grants`: lists and revokes the allow rules that the user granted permanently at a prompt.

use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::settings::grants::GrantFile;

/// Arguments of `toolgate grants`.
#[derive(Debug, clap::Args)]
pub(crate) struct GrantsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GrantsCommand>,
}

/// The commands of `toolgate grants`.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List the rules granted in this project (the default)
    List {
        /// List the rules of every project
        #[arg(long)]
        all: bool,
    },
    /// Revoke a rule and remove it from the settings file
    Revoke {
        /// The rule, as listed
        #[arg(required_unless_present = "all")]
        rule: Option<String>,
        /// Revoke every rule of this project
        #[arg(long, conflicts_with = "rule")]
        all: bool,
    },
}

/// Runs `list` or `revoke`.
pub(crate) fn run(
    context: &CliContext,
    args: &GrantsArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = context.ambient.state_dir.as_ref().ok_or_else(|| {
        CliError::Usage("there is no state directory that stores grants; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let store = GrantFile::in_dir(dir);
    match args.command.as_ref().unwrap_or(&GrantsCommand::List { all: false }) {
        GrantsCommand::List { all } => {
            let grants = if *all { store.list()? } else { store.list_for_workspace(&context.cwd())? };
            for grant in &grants {
                if context.global.json {
                    out.print_line(&json!(grant).to_string())?;
                } else {
                    let from = paint(style::FAINT, &escape_invisible(&grant.file.to_string()));
                    out.print_line(&format!("{}  {from}", escape_invisible(&grant.rule)))?;
                }
            }
            if grants.is_empty() && !context.global.json {
                out.print_note("no rule was granted permanently in this project");
            }
            Ok(CliExitCode::Ok)
        }
        GrantsCommand::Revoke { rule, .. } => {
            let rules = match rule {
                Some(rule) => vec![rule.clone()],
                None => {
                    store.list_for_workspace(&context.cwd())?.into_iter().map(|grant| grant.rule).collect()
                }
            };
            for rule in &rules {
                if !store.revoke(&context.cwd(), rule)? {
                    return Err(CliError::Usage(format!(
                        "the rule `{rule}` was not granted in this project; `toolgate grants` lists the granted rules"
                    )));
                }
                let text = format!("revoked {}", escape_invisible(rule));
                out.print_done(context.global.json, &json!({ "rule": rule, "revoked": true }), &text)?;
            }
            Ok(CliExitCode::Ok)
        }
    }
}
