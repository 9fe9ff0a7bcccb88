//! `toolgate check`: would it be allowed, and why?

use super::args::CheckArgs;
use super::out::{Out, paint, style};
use super::world::{World, print_notes};
use super::{Exit, Failure, check_batch};
use serde_json::json;
use toolgate::render::visible;
use toolgate::{CommandRights, Judgement, RightsLevel, Verdict};

pub(crate) fn run(world: &World, args: &CheckArgs, out: &mut Out) -> Result<Exit, Failure> {
    if let Some(file) = &args.batch {
        return check_batch::run(world, file, out);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let input = world.text(&args.input)?;
    let toolgate = world.builder()?.build()?;
    print_notes(&toolgate, out);
    match toolgate.check(name, &input) {
        Ok(judgement) => {
            if world.global.json {
                let value =
                    serde_json::to_value(&judgement).map_err(|error| Failure::Usage(error.to_string()))?;
                out.line(&value.to_string())?;
            } else {
                explain(name, &judgement, out)?;
            }
            Ok(exit_of(&judgement.verdict))
        }
        Err(refusal) => {
            if world.global.json {
                out.line(&json!({ "refusal": refusal }).to_string())?;
            } else {
                let said = format!("{refusal}\n  hint: {}", refusal.hint);
                out.failure(&format!("{}  {}", paint(style::BAD, "REFUSED"), visible(&said)));
            }
            Ok(Exit::of(&refusal))
        }
    }
}

pub(crate) fn exit_of(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Allow(_) => Exit::Ok,
        Verdict::Ask(_) => Exit::NeedsApproval,
        Verdict::Deny(_) => Exit::Denied,
    }
}

fn explain(name: &str, judgement: &Judgement, out: &mut Out) -> Result<(), Failure> {
    let word = judgement.verdict.word();
    out.line(&format!(
        "{}  {}: {}",
        paint(style::verdict(word), &word.to_uppercase()),
        visible(name),
        visible(&judgement.verdict.reason().to_string())
    ))?;
    if let Verdict::Ask(question) = &judgement.verdict {
        out.line(&format!("  would {}  (risk: {})", visible(&question.description), question.risk))?;
        for warning in &question.warnings {
            out.line(&format!("  {} {}", paint(style::ASK, "warning:"), visible(&warning.text)))?;
        }
    }
    out.line(&paint(style::FAINT, "  how it was judged"))?;
    let width = judgement.steps.iter().map(|step| step.looked_at.chars().count()).max().unwrap_or(0);
    for step in &judgement.steps {
        out.line(&format!("    {:width$}  {}", visible(&step.looked_at), visible(&step.found)))?;
    }
    if let Some(rights) = &judgement.rights {
        explain_rights(rights, out)?;
    }
    if judgement.parts.len() > 1 {
        out.line(&paint(style::FAINT, "  its parts"))?;
        for part in &judgement.parts {
            let word = part.action.to_string();
            let word = paint(style::verdict(&word), &format!("{word:5}"));
            out.line(&format!(
                "    {word}  {}  {}",
                visible(&part.text),
                paint(style::FAINT, &visible(&part.reason))
            ))?;
        }
    }
    if let Some(flip) = &judgement.flip {
        out.line(&format!("  to let it pass: {}", visible(flip)))?;
    }
    Ok(())
}

/// What the kernel would permit the command.
fn explain_rights(rights: &CommandRights, out: &mut Out) -> Result<(), Failure> {
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
    out.line(&paint(style::FAINT, &format!("  rights of a run ({})", rights.level)))?;
    for (what, granted) in [
        ("read", read),
        ("write", list(write, "nothing but a private temporary directory")),
        ("run", run),
        ("network", network.to_owned()),
    ] {
        out.line(&format!("    {what:8}{}", visible(&granted)))?;
    }
    Ok(())
}
