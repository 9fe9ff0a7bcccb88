//! `toolgate grants`: what was granted for good.

use super::args::{GrantsArgs, GrantsCommand};
use super::out::{Out, paint, style};
use super::world::World;
use super::{Exit, Failure};
use serde_json::json;
use toolgate::render::visible;
use toolgate::settings::grants::GrantFile;

pub(crate) fn run(world: &World, args: &GrantsArgs, out: &mut Out) -> Result<Exit, Failure> {
    let dir = world.ambient.state_dir.as_ref().ok_or_else(|| {
        Failure::Usage("there is nowhere to remember grants; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let store = GrantFile::in_dir(dir);
    match args.command.as_ref().unwrap_or(&GrantsCommand::List { all: false }) {
        GrantsCommand::List { all } => {
            let grants = if *all { store.list()? } else { store.of(&world.cwd())? };
            for grant in &grants {
                if world.global.json {
                    out.line(&json!(grant).to_string())?;
                } else {
                    let from = paint(style::FAINT, &visible(&grant.file.to_string()));
                    out.line(&format!("{}  {from}", visible(&grant.rule)))?;
                }
            }
            if grants.is_empty() && !world.global.json {
                out.note("nothing was granted for good here");
            }
            Ok(Exit::Ok)
        }
        GrantsCommand::Revoke { rule, .. } => {
            let rules = match rule {
                Some(rule) => vec![rule.clone()],
                None => store.of(&world.cwd())?.into_iter().map(|grant| grant.rule).collect(),
            };
            for rule in &rules {
                if !store.revoke(&world.cwd(), rule)? {
                    return Err(Failure::Usage(format!(
                        "`{rule}` was not granted here; see `toolgate grants`"
                    )));
                }
                out.line(&format!("revoked {}", visible(rule)))?;
            }
            Ok(Exit::Ok)
        }
    }
}
