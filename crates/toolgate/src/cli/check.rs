//! `toolgate check`: shows whether a call would be allowed, by which step of the judgement, and with which rights.

use super::check_redirects::check_hops;
use super::context::{CliContext, print_notes};
use super::listed_values::list_tools;
use super::mcp::register_resource_tools;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode, check_batch};
use serde_json::json;
use std::collections::HashSet;
use toolgate::render::escape_invisible;
use toolgate::{CommandRights, Judgement, RightsLevel, Toolgate, Verdict};

/// How many entries of a list of effects or rights are displayed before the rest is counted.
const MAX_LISTED_COUNT: usize = 6;

/// Arguments of `toolgate check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The tool
    #[arg(required_unless_present = "batch", value_parser = list_tools(), hide_possible_values = true)]
    pub(crate) name: Option<String>,
    /// Its input as a JSON object; `-` reads it from standard input
    #[arg(default_value = "{}")]
    pub(crate) input: String,
    /// Check many calls. FILE has one JSON object per line, `{"id","tool","input","settings"?,"cwd"?,"mode"?}`; `-`
    /// reads standard input. With `settings` only these apply; `cwd` is the workspace, and changes no settings
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "name")]
    pub(crate) batch: Option<String>,
    /// With --batch: exit with 3 if a call is denied or would be refused all the same, else with 4 if one needs
    /// approval, and with 2 if there is no call
    #[arg(long, requires = "batch")]
    pub(crate) require_allow: bool,
    /// Also judge a redirect that the server would send to a fetch; give it again for the next one
    #[arg(long, value_name = "URL", conflicts_with = "batch")]
    pub(crate) redirect: Vec<String>,
    /// Also look up the host of a fetch, and of each redirect that is followed, and judge the addresses
    #[arg(long, conflicts_with = "batch")]
    pub(crate) resolve: bool,
    /// Run the PreToolUse hooks as for a real call. They may rewrite the input or refuse it
    #[arg(long, conflicts_with = "batch")]
    pub(crate) run_hooks: bool,
}

/// Judges the call and explains the verdict. Nothing runs, and no record is written.
pub(crate) fn run(
    context: &CliContext,
    args: &CheckArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    if let Some(file) = &args.batch {
        return check_batch::run_check_batch(context, file, args.require_allow, out);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let input = context.read_argument(&args.input)?;
    let toolgate = context.builder()?.build()?;
    register_resource_tools(context, &toolgate)?;
    print_notes(&toolgate, out);
    let judged = if args.run_hooks {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(toolgate.check_with_hooks(name, &input))
    } else {
        toolgate.check(name, &input)
    };
    let call_refusal = find_call_refusal(context, &toolgate, name, &input);
    let unasked = if args.run_hooks { Vec::new() } else { toolgate.screening_hooks(name, &input) };
    match judged {
        Ok(judgement) => {
            let hops = check_hops(&toolgate, &input, &args.redirect, args.resolve)?;
            if context.global.json {
                let mut value =
                    serde_json::to_value(&judgement).map_err(|error| CliError::Usage(error.to_string()))?;
                if let serde_json::Value::Object(fields) = &mut value {
                    fields.extend(hops.to_fields());
                    fields.extend(call_refusal.iter().map(|why| ("callRefused".to_owned(), json!(why))));
                }
                out.print_line(&value.to_string())?;
            } else {
                explain(name, &judgement, out)?;
                hops.explain(out)?;
                if let Some(why) = &call_refusal {
                    let line = format!("  the call is refused all the same: {}", escape_invisible(why));
                    out.print_line(&paint(style::BAD, &line))?;
                }
                print_unasked_hooks(unasked.len(), out);
            }
            Ok(match exit_code_for(&judgement.verdict) {
                _ if hops.is_refused() => CliExitCode::Denied,
                CliExitCode::Ok if call_refusal.is_some() => CliExitCode::Denied,
                of_verdict => of_verdict,
            })
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

/// Why the call would be refused whatever policy says of it, if that is known.
fn find_call_refusal(context: &CliContext, toolgate: &Toolgate, name: &str, input: &str) -> Option<String> {
    let mode = toolgate.gate().policy().mode();
    context
        .find_refusal_of_all_calls(&toolgate.settings(), mode)
        .or_else(|| toolgate.foresee_hook_refusal(name, input).map(|refusal| refusal.to_string()))
}

/// Says how many hooks a call would run, if any.
fn print_unasked_hooks(count: usize, out: &mut CliOutput) {
    let hooks = match count {
        0 => return,
        1 => "one hook was".to_owned(),
        count => format!("{count} hooks were"),
    };
    out.print_note(&format!(
        "{hooks} not run, and may decide otherwise; --run-hooks runs what a call would run"
    ));
}

/// The exit code that tells a script the verdict.
pub(crate) fn exit_code_for(verdict: &Verdict) -> CliExitCode {
    match verdict {
        Verdict::Allow(_) => CliExitCode::Ok,
        Verdict::Ask(_) => CliExitCode::NeedsApproval,
        Verdict::Deny(_) => CliExitCode::Denied,
    }
}

/// Prints the verdict on each command of a command line that has several.
fn explain_commands(judgement: &Judgement, out: &mut CliOutput) -> Result<(), CliError> {
    if judgement.parts.len() < 2 {
        return Ok(());
    }
    out.print_line(&paint(style::FAINT, "  commands"))?;
    let mut shown = HashSet::new();
    let rows = judgement.parts.iter();
    for part in rows.filter(|part| shown.insert((part.action, &part.text, &part.reason))) {
        let word = part.action.to_string();
        let word = paint(style::verdict(&word), &format!("{word:5}"));
        out.print_line(&format!(
            "    {word}  {}  {}",
            escape_invisible(&part.text),
            paint(style::FAINT, &escape_invisible(&part.reason))
        ))?;
    }
    Ok(())
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
    // A loop that is judged for each of its values has the same row for each.
    let mut shown = HashSet::new();
    for step in judgement.steps.iter().filter(|step| shown.insert((&step.looked_at, &step.found))) {
        out.print_line(&format!(
            "    {:width$}  {}",
            escape_invisible(&step.looked_at),
            escape_invisible(&step.found)
        ))?;
    }
    if !judgement.inferred.is_empty() {
        out.print_line(&paint(style::FAINT, "  effects that the commands name"))?;
        let effects = judgement.inferred.iter().map(ToString::to_string);
        for line in shorten_list(effects.collect()) {
            out.print_line(&format!("    {}", escape_invisible(&line)))?;
        }
    }
    if let Some(rights) = &judgement.rights {
        explain_rights(rights, out)?;
    }
    explain_commands(judgement, out)?;
    if let Some(flip) = &judgement.flip {
        out.print_line(&format!("  to allow it: {}", escape_invisible(flip)))?;
    }
    Ok(())
}

/// The first entries of a list and, if there are more than [`MAX_LISTED_COUNT`], the number of the others.
fn shorten_list(mut items: Vec<String>) -> Vec<String> {
    if items.len() > MAX_LISTED_COUNT {
        let others = items.len() - (MAX_LISTED_COUNT - 1);
        items.truncate(MAX_LISTED_COUNT - 1);
        items.push(format!("{others} more"));
    }
    items
}

/// Prints the rights that the kernel would enforce for the command.
fn explain_rights(rights: &CommandRights, out: &mut CliOutput) -> Result<(), CliError> {
    let list = |items: Vec<String>, none: &str| match items.is_empty() {
        true => none.to_owned(),
        false => shorten_list(items).join(", "),
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
