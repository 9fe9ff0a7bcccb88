//! `toolgate skill list`.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolgate::skills::{CapabilitySeverity, CatalogSkill, SkillCatalog, SkillFileKind};
use toolgate_proto::{format_count, shorten_text};

/// How many characters of a description one line shows.
const MAX_SHOWN_CHARS: usize = 80;

/// Arguments of `toolgate skill list`.
#[derive(Debug, clap::Args)]
pub(crate) struct SkillListArgs {
    /// List agents, output styles and replaced skills as well
    #[arg(long)]
    all: bool,
}

/// Prints the catalog.
pub(crate) fn run(
    context: &CliContext,
    args: &SkillListArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let catalog = super::load_catalog(context)?;
    if context.global.json {
        out.print_line(&catalog_json(&catalog, args.all).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    let width = catalog.skills().map(|skill| skill.name.chars().count()).max().unwrap_or(0).min(40);
    for skill in catalog.skills() {
        print_entry(out, &skill.name, width, &skill.scope.to_string(), &skill.definition.description)?;
    }
    if args.all {
        for agent in catalog.agents() {
            print_entry(
                out,
                &agent.name,
                width,
                &format!("{} agent", agent.scope),
                &agent.definition.description,
            )?;
        }
        for found in catalog.output_styles() {
            let description = found.definition.description.as_deref().unwrap_or_default();
            print_entry(out, &found.name, width, &format!("{} style", found.scope), description)?;
        }
        for skill in catalog.shadowed_skills() {
            print_entry(out, &skill.name, width, "replaced", &skill.file.to_string())?;
        }
    }
    if catalog.skills().next().is_none() {
        out.print_note("there are no skills; put one into .claude/skills/NAME/SKILL.md");
    }
    let bad =
        catalog.problems().iter().filter(|found| found.problem.severity > CapabilitySeverity::Note).count();
    if bad > 0 {
        out.print_note(&format!(
            "{} found; `toolgate skill lint` shows more",
            format_count(bad as u64, "problem was", "problems were")
        ));
    }
    Ok(CliExitCode::Ok)
}

/// Prints one aligned row and truncates the description, because a skill's description may span paragraphs.
fn print_entry(
    out: &mut CliOutput,
    name: &str,
    width: usize,
    kind: &str,
    text: &str,
) -> Result<(), CliError> {
    let text = to_one_line(text);
    let shown = shorten_text(&text, MAX_SHOWN_CHARS);
    let name = paint(style::BOLD, &format!("{:width$}", to_one_line(name)));
    out.print_line(&format!("{name}  {}  {shown}", paint(style::FAINT, &format!("{kind:8}"))))?;
    Ok(())
}

/// Renders the catalog for scripts. With `all` it also contains agents, output styles and shadowed skills, which the
/// default listing omits.
fn catalog_json(catalog: &SkillCatalog, all: bool) -> Value {
    let mut shown = Map::new();
    shown.insert("skills".to_owned(), catalog.skills().map(skill_json).collect());
    if all {
        let agents = catalog.agents().map(|agent| {
            json!({
                "name": agent.name, "scope": agent.scope.to_string(), "file": agent.file,
                "description": agent.definition.description, "tools": agent.definition.tools,
            })
        });
        shown.insert("agents".to_owned(), agents.collect());
        let styles = catalog
            .output_styles()
            .map(|style| json!({ "name": style.name, "scope": style.scope.to_string(), "file": style.file }));
        shown.insert("outputStyles".to_owned(), styles.collect());
        shown.insert("replaced".to_owned(), catalog.shadowed_skills().iter().map(skill_json).collect());
    }
    let problems = catalog.problems().iter().map(super::lint::problem_json);
    shown.insert("problems".to_owned(), problems.collect());
    Value::Object(shown)
}

/// One skill for programs.
pub(super) fn skill_json(skill: &Arc<CatalogSkill>) -> Value {
    let definition = &skill.definition;
    json!({
        "name": skill.name,
        "kind": match skill.kind { SkillFileKind::Skill => "skill", SkillFileKind::Command => "command" },
        "scope": skill.scope.to_string(),
        "plugin": skill.plugin.as_ref().map(|plugin| plugin.name.clone()),
        "file": skill.file,
        "sha256": skill.sha256,
        "description": definition.description,
        "whenToUse": definition.when_to_use,
        "argumentHint": definition.argument_hint,
        "modelInvocable": !definition.disables_model_invocation,
        "userInvocable": definition.is_user_invocable,
        "allowedTools": definition.allowed_tools,
        "disallowedTools": definition.disallowed_tools,
        "tokens": skill.tokens(),
    })
}
