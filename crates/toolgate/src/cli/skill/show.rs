//! `toolgate skill show`.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use serde_json::json;
use toolgate::Toolgate;
use toolgate::render::escape_invisible;
use toolgate::skills::{CatalogSkill, SkillCatalog, SkillContext, SkillTemplate, SkillTrust};

/// Arguments of `toolgate skill show`.
#[derive(Debug, clap::Args)]
pub(crate) struct SkillShowArgs {
    /// The skill or command
    name: String,
}

/// A command of a skill, and what the rules say about it.
struct SkillCommandVerdict {
    /// The line in the skill's file, counted with its front matter.
    line: usize,
    /// The command line as the skill contains it, before arguments are filled in.
    command: String,
    /// The verdict of the policy on the command.
    verdict: &'static str,
    /// The rule or default behind the verdict.
    reason: String,
}

/// Prints one skill.
pub(crate) fn run(
    context: &CliContext,
    args: &SkillShowArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let catalog = super::load_catalog(context)?;
    let skill = find_skill(&catalog, &args.name)?;
    let toolgate = context.builder()?.build()?;
    let commands = judge_commands(&toolgate, skill);
    if context.global.json {
        let commands: Vec<_> = commands
            .iter()
            .map(|found| {
                json!({
                    "line": found.line, "command": found.command, "verdict": found.verdict, "reason": found.reason,
                })
            })
            .collect();
        let (skill, text) = (super::list::skill_json(skill), &skill.definition.body);
        let shown = json!({ "skill": skill, "commands": commands, "text": text });
        out.print_line(&shown.to_string())?;
        return Ok(CliExitCode::Ok);
    }
    let definition = &skill.definition;
    out.print_line(&format!(
        "{}  {} {}",
        paint(style::BOLD, &to_one_line(&skill.name)),
        skill.scope,
        skill.file
    ))?;
    out.print_line(&escape_invisible(&definition.listed_description()))?;
    for (label, text) in describe_fields(skill) {
        out.print_line(&format!("{}  {}", paint(style::FAINT, &format!("{label:12}")), to_one_line(&text)))?;
    }
    for found in &commands {
        let place = format!("line {}", found.line);
        let verdict = paint(style::verdict(found.verdict), &found.verdict.to_uppercase());
        out.print_line(&format!(
            "{}  {verdict}  {}  {}",
            paint(style::FAINT, &format!("{place:12}")),
            to_one_line(&found.command),
            paint(style::FAINT, &to_one_line(&found.reason))
        ))?;
    }
    out.print_line("")?;
    out.print_line(&escape_invisible(&definition.body))?;
    Ok(CliExitCode::Ok)
}

/// What is known of a skill beside its text, with labels.
fn describe_fields(skill: &CatalogSkill) -> Vec<(&'static str, String)> {
    let definition = &skill.definition;
    let mut fields = vec![
        ("size", format!("{} bytes, about {} tokens", skill.bytes, skill.tokens())),
        ("used by", describe_users(skill)),
    ];
    fields.extend(definition.argument_hint.clone().map(|hint| ("arguments", hint)));
    if let SkillContext::Fork { agent, .. } = &definition.context {
        let agent = agent.as_deref().unwrap_or("general-purpose");
        fields.push(("runs in", format!("an agent of its own ({agent})")));
    }
    let until = |label, value: &dyn std::fmt::Display| (label, format!("{value} until the turn ends"));
    fields.extend(definition.allowed_tools.iter().map(|rule| until("asks for", rule)));
    fields.extend(definition.disallowed_tools.iter().map(|rule| until("gives up", rule)));
    fields.extend(SkillTrust::describe_hooks(skill).iter().map(|hook| until("runs", &format!("{hook},"))));
    fields.extend(definition.model.iter().map(|model| until("model", model)));
    fields.extend(definition.effort.iter().map(|effort| until("effort", effort)));
    fields
}

/// The skill of a name, or an error that names the nearest ones.
pub(super) fn find_skill<'c>(
    catalog: &'c SkillCatalog,
    name: &str,
) -> Result<&'c std::sync::Arc<CatalogSkill>, CliError> {
    catalog.find_skill(name).ok_or_else(|| {
        CliError::Usage(format!("there is no skill `{name}`; `toolgate skill list` lists the skills"))
    })
}

/// Explains which invocations the front matter permits: by models, by the user, by both or by neither.
fn describe_users(skill: &CatalogSkill) -> String {
    let name = &skill.name;
    match (skill.definition.disables_model_invocation, skill.definition.is_user_invocable) {
        (false, true) => format!("models, and you as /{name}"),
        (true, true) => format!("only you, as /{name}"),
        (false, false) => "only models".to_owned(),
        (true, false) => "nothing: its front matter excludes both models and you".to_owned(),
    }
}

/// Judges each command of the text as it is written, without what the skill asks for.
fn judge_commands(toolgate: &Toolgate, skill: &CatalogSkill) -> Vec<SkillCommandVerdict> {
    let definition = &skill.definition;
    let template = SkillTemplate::parse(&definition.body, &definition.argument_names);
    let judge = |(line, command): (usize, String)| {
        let input = json!({ "command": command }).to_string();
        let (verdict, reason) = match toolgate.check("Bash", &input) {
            Ok(judgement) => (judgement.verdict.as_str(), judgement.verdict.reason().to_string()),
            Err(refusal) => ("deny", refusal.to_string()),
        };
        SkillCommandVerdict { line: line + definition.body_line - 1, command, verdict, reason }
    };
    template.commands().into_iter().map(judge).collect()
}
