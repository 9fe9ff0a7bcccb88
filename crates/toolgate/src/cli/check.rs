//! `toolgate check`: would it be allowed, and why?

use super::args::CheckArgs;
use super::context::{CliContext, print_notes};
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode, check_batch};
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::{CommandRights, Judgement, RightsLevel, Verdict};

pub(crate) fn run(
    world: &CliContext,
    args: &CheckArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    if let Some(file) = &args.batch {
        return check_batch::run(world, file, out);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let input = world.read_argument(&args.input)?;
    let toolgate = world.builder()?.build()?;
    print_notes(&toolgate, out);
    match toolgate.check(name, &input) {
        Ok(judgement) => {
            if world.global.json {
                let value =
                    serde_json::to_value(&judgement).map_err(|error| CliError::Usage(error.to_string()))?;
                out.print_line(&value.to_string())?;
            } else {
                explain(name, &judgement, out)?;
            }
            Ok(exit_code_for(&judgement.verdict))
        }
        Err(refusal) => {
            if world.global.json {
                out.print_line(&json!({ "refusal": refusal }).to_string())?;
            } else {
                let said = format!("{refusal}\n  hint: {}", refusal.hint);
                out.print_failure(&format!("{}  {}", paint(style::BAD, "REFUSED"), escape_invisible(&said)));
            }
            Ok(CliExitCode::of(&refusal))
        }
    }
}

pub(crate) fn exit_code_for(verdict: &Verdict) -> CliExitCode {
    match verdict {
        Verdict::Allow(_) => CliExitCode::Ok,
        Verdict::Ask(_) => CliExitCode::NeedsApproval,
        Verdict::Deny(_) => CliExitCode::Denied,
    }
}

fn explain(name: &str, judgement: &Judgement, out: &mut CliOutput) -> Result<(), CliError> {
    let word = judgement.verdict.as_str();
    out.print_line(&format!(
        "{}  {}: {}",
        paint(style::verdict(word), &word.to_uppercase()),
        escape_invisible(name),
        escape_invisible(&judgement.verdict.reason().to_string())
    ))?;
    if let Verdict::Ask(question) = &judgement.verdict {
        out.print_line(&format!(
            "  would {}  (risk: {})",
            escape_invisible(&question.description),
            question.risk
        ))?;
        for warning in &question.warnings {
            out.print_line(&format!(
                "  {} {}",
                paint(style::ASK, "warning:"),
                escape_invisible(&warning.text)
            ))?;
        }
    }
    out.print_line(&paint(style::FAINT, "  how it was judged"))?;
    let width = judgement.steps.iter().map(|step| step.looked_at.chars().count()).max().unwrap_or(0);
    for step in &judgement.steps {
        out.print_line(&format!(
            "    {:width$}  {}",
            escape_invisible(&step.looked_at),
            escape_invisible(&step.found)
        ))?;
    }
    if let Some(rights) = &judgement.rights {
        explain_rights(rights, out)?;
    }
    if judgement.parts.len() > 1 {
        out.print_line(&paint(style::FAINT, "  its parts"))?;
        for part in &judgement.parts {
            let word = part.action.to_string();
            let word = paint(style::verdict(&word), &format!("{word:5}"));
            out.print_line(&format!(
                "    {word}  {}  {}",
                escape_invisible(&part.text),
                paint(style::FAINT, &escape_invisible(&part.reason))
            ))?;
        }
    }
    if let Some(flip) = &judgement.flip {
        out.print_line(&format!("  to allow it: {}", escape_invisible(flip)))?;
    }
    Ok(())
}

/// What the kernel would permit the command.
fn explain_rights(rights: &CommandRights, out: &mut CliOutput) -> Result<(), CliError> {
    let list = |items: Vec<String>, none: &str| match items.len() {
        0 => none.to_owned(),
        1..=6 => items.join(", "),
        count => {
            format!("{} and {} more", items.iter().take(5).cloned().collect::<Vec<_>>().join(", "), count - 5)
        }
    };
    let read = match &rights.read {
        Some(paths) => {
            let paths = paths.iter().map(ToString::to_string).collect();
            format!("{}; programs and libraries of the system", list(paths, "nothing"))
        }
        None => "everything that no rule and no sensitive name keeps back".to_owned(),
    };
    let write = rights.write.iter().map(|right| right.path.to_string()).collect();
    let run = match &rights.execute {
        Some(programs) => list(programs.clone(), "no program, only the shell's own commands"),
        None => "any program".to_owned(),
    };
    let network = match rights.level {
        RightsLevel::ReadOnly | RightsLevel::NamedWrites => "none",
        RightsLevel::Workspace => "what rules and `sandbox.network` allow",
    };
    out.print_line(&paint(style::FAINT, &format!("  rights of a run ({})", rights.level)))?;
    for (what, granted) in [
        ("read", read),
        ("write", list(write, "nothing but a private temporary directory")),
        ("run", run),
        ("network", network.to_owned()),
    ] {
        out.print_line(&format!("    {what:8}{}", escape_invisible(&granted)))?;
    }
    Ok(())
}
