//! `toolgate check`: would it be allowed, and why?

use super::args::CheckArgs;
use super::out::{Out, paint, style};
use super::world::{World, tell_notes};
use super::{Exit, Failure, check_batch};
use serde_json::json;
use toolgate::render::visible;
use toolgate::{Judgement, Verdict};

pub(crate) fn run(world: &World, args: &CheckArgs, out: &mut Out) -> Result<Exit, Failure> {
    if let Some(file) = &args.batch {
        return check_batch::run(world, file, out);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let input = world.text(&args.input)?;
    let toolgate = world.builder()?.build()?;
    tell_notes(&toolgate, out);
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
