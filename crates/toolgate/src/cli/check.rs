//! `toolgate check`: shows whether a call would be allowed, by which step of the judgement, and with which rights.

use super::context::{CliContext, print_notes};
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode, check_batch};
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::{CommandRights, Judgement, RightsLevel, Verdict};

/// How many entries of a list of rights are displayed before the rest is counted.
const MAX_LISTED_RIGHTS_COUNT: usize = 6;

/// Arguments of `toolgate check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The tool
    #[arg(required_unless_present = "batch")]
    pub(crate) name: Option<String>,
    /// Its input as a JSON object; `-` reads it from standard input
    #[arg(default_value = "{}")]
    pub(crate) input: String,
    /// Check many calls. FILE has one JSON object per line, `{"id","tool","input","settings"?,"cwd"?,"mode"?}`; `-`
    /// reads standard input
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "name")]
    pub(crate) batch: Option<String>,
}

/// Judges the call and explains the verdict. Nothing runs, and no record is written.
pub(crate) fn run(
    context: &CliContext,
    args: &CheckArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    if let Some(file) = &args.batch {
        return check_batch::run_check_batch(context, file, out);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let input = context.read_argument(&args.input)?;
    let toolgate = context.builder()?.build()?;
    print_notes(&toolgate, out);
    match toolgate.check(name, &input) {
        Ok(judgement) => {
            if context.global.json {
                let value =
                    serde_json::to_value(&judgement).map_err(|error| CliError::Usage(error.to_string()))?;
                out.print_line(&value.to_string())?;
            } else {
                explain(name, &judgement, out)?;
            }
            Ok(exit_code_for(&judgement.verdict))
        }
        Err(refusal) => {
            if context.global.json {
                out.print_line(&json!({ "refusal": refusal }).to_string())?;
            } else {
                let text = format!("{refusal}\n  hint: {}", refusal.hint);
                out.print_failure(&format!("{}  {}", paint(style::BAD, "REFUSED"), escape_invisible(&text)));
            }
            Ok(CliExitCode::of(&refusal))
        }
    }
}

/// The exit code that tells a script the verdict.
pub(crate) fn exit_code_for(verdict: &Verdict) -> CliExitCode {
    match verdict {
        Verdict::Allow(_) => CliExitCode::Ok,
        Verdict::Ask(_) => CliExitCode::NeedsApproval,
        Verdict::Deny(_) => CliExitCode::Denied,
    }
}

/// Prints the verdict, the steps that led to it, the rights of a command, and the rule that would change the verdict.
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
    out.print_line(&paint(style::FAINT, "  checks"))?;
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
        out.print_line(&paint(style::FAINT, "  commands"))?;
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

/// Prints the rights that the kernel would enforce for the command.
fn explain_rights(rights: &CommandRights, out: &mut CliOutput) -> Result<(), CliError> {
    let list = |items: Vec<String>, none: &str| match items.len() {
        0 => none.to_owned(),
        1..=MAX_LISTED_RIGHTS_COUNT => items.join(", "),
        count => {
            let first: Vec<&str> =
                items.iter().take(MAX_LISTED_RIGHTS_COUNT - 1).map(String::as_str).collect();
            format!("{} and {} more", first.join(", "), count - first.len())
        }
    };
    let read = match &rights.read {
        Some(paths) => {
            let paths = paths.iter().map(ToString::to_string).collect();
            format!("{}; system programs and libraries", list(paths, "nothing"))
        }
        None => "everything except files that a rule denies or whose name is sensitive".to_owned(),
    };
    let write = rights.write.iter().map(|right| right.path.to_string()).collect();
    let run = match &rights.execute {
        Some(programs) => list(programs.clone(), "no program, only shell builtins"),
        None => "any program".to_owned(),
    };
    let network = match rights.level {
        RightsLevel::ReadOnly | RightsLevel::NamedWrites => "none",
        RightsLevel::Workspace => "hosts that rules and `sandbox.network` allow",
    };
    out.print_line(&paint(style::FAINT, &format!("  sandbox rights ({})", rights.level)))?;
    for (what, granted) in [
        ("read", read),
        ("write", list(write, "only a private temporary directory")),
        ("run", run),
        ("network", network.to_owned()),
    ] {
        out.print_line(&format!("    {what:8}{}", escape_invisible(&granted)))?;
    }
    Ok(())
}
