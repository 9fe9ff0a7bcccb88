//! `toolgate grants`: what was granted for good.

use super::args::{GrantsArgs, GrantsCommand};
use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::settings::grants::GrantFile;

pub(crate) fn run(
    world: &CliContext,
    args: &GrantsArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = world.ambient.state_dir.as_ref().ok_or_else(|| {
        CliError::Usage("there is nowhere to remember grants; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let store = GrantFile::in_dir(dir);
    match args.command.as_ref().unwrap_or(&GrantsCommand::List { all: false }) {
        GrantsCommand::List { all } => {
            let grants = if *all { store.list()? } else { store.list_for_workspace(&world.cwd())? };
            for grant in &grants {
                if world.global.json {
                    out.print_line(&json!(grant).to_string())?;
                } else {
                    let from = paint(style::FAINT, &escape_invisible(&grant.file.to_string()));
                    out.print_line(&format!("{}  {from}", escape_invisible(&grant.rule)))?;
                }
            }
            if grants.is_empty() && !world.global.json {
                out.print_note("nothing was granted for good here");
            }
            Ok(CliExitCode::Ok)
        }
        GrantsCommand::Revoke { rule, .. } => {
            let rules = match rule {
                Some(rule) => vec![rule.clone()],
                None => store.list_for_workspace(&world.cwd())?.into_iter().map(|grant| grant.rule).collect(),
            };
            for rule in &rules {
                if !store.revoke(&world.cwd(), rule)? {
                    return Err(CliError::Usage(format!(
                        "`{rule}` was not granted here; see `toolgate grants`"
                    )));
                }
                out.print_line(&format!("revoked {}", escape_invisible(rule)))?;
            }
            Ok(CliExitCode::Ok)
        }
    }
}
