//! `toolgate check --batch`: judges many calls in one process. Each line can have its own settings, directory and mode.
//!
//! A line of the input is `{"id", "tool", "input", "settings"?, "cwd"?, "mode"?}`; with `settings`, only these apply.
//! A line of the output has the `id` of its call, the `verdict` and the `reason`; if policy judged the call also the
//! `risk`, the `rule` that decided, and in `flip` the change of rules that would allow it. A line that is not a call
//! gets `"error": true`, its `id` as far as that can be read, and its `line`, and the exit code is then 2. With
//! `--require-allow` the exit code is otherwise that of the strictest verdict.

use super::batch_checker::{BatchCheckOutcome, BatchChecker};
use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read};
use toolgate::{Mode, ToolCall};
use toolgate_proto::{json::JsonLimits, json::parse_object};

/// Judges each line as it is read and prints one answer per line. An invalid line is denied, and the rest is judged.
pub(crate) fn run_check_batch(
    context: &CliContext,
    file: &str,
    require_allow: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let mut checker = BatchChecker::new(context)?;
    let reader: Box<dyn Read> = if file == "-" {
        Box::new(std::io::stdin())
    } else {
        let path = context.ambient.absolute_path(file);
        Box::new(
            toolgate_files::open_named_file(&path)
                .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?,
        )
    };
    let mut invalid_lines = 0usize;
    let mut has_unasked_hooks = false;
    let mut strictest = CliExitCode::Ok;
    for (index, line) in BufReader::with_capacity(256 * 1024, reader).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = check_line(context, &mut checker, &line).unwrap_or_else(|message| {
            invalid_lines += 1;
            let id = find_id(&line).unwrap_or(Value::Null);
            json!({ "id": id, "line": index + 1, "verdict": "deny", "reason": message, "error": true })
        });
        has_unasked_hooks |= answer.get("unaskedHooks").is_some();
        strictest = match (answer.get("verdict").and_then(Value::as_str), strictest) {
            (Some("allow"), strictest) => strictest,
            (Some("ask"), CliExitCode::Ok) => CliExitCode::NeedsApproval,
            (Some("ask"), strictest) => strictest,
            _ => CliExitCode::Denied,
        };
        out.print_line(&answer.to_string())?;
    }
    out.flush()?;
    if let Some(why) = checker.bypass_refusal() {
        out.print_note(&format!("every call is refused in this mode: {why}"));
    }
    if has_unasked_hooks {
        out.print_note(
            "hooks were not run, and may decide otherwise: see `unaskedHooks`; `toolgate check --run-hooks` runs those of \
             one call",
        );
    }
    Ok(match (invalid_lines, require_allow) {
        (0, true) => strictest,
        (0, false) => CliExitCode::Ok,
        (_, _) => CliExitCode::Usage,
    })
}

/// The `id` of a line that is not a call: from the parsed object, or else the scalar after the first `"id":`.
fn find_id(line: &str) -> Option<Value> {
    if let Ok(fields) = parse_object(line, JsonLimits::CALL) {
        return fields.get("id").cloned();
    }
    let rest = line.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    values.next()?.ok().filter(|value| value.is_string() || value.is_number())
}

/// The answer to one line. An `Err` says what is wrong with the line itself.
fn check_line(context: &CliContext, checker: &mut BatchChecker<'_>, line: &str) -> Result<Value, String> {
    let mut fields = parse_object(line, JsonLimits::CALL).map_err(|problem| problem.to_string())?;
    let id = fields.remove("id").unwrap_or(Value::Null);
    let tool = take_text(&mut fields, "tool")?.ok_or("missing field `tool`")?;
    let input = fields.remove("input").unwrap_or_else(|| json!({}));
    let cwd = match take_text(&mut fields, "cwd")? {
        Some(cwd) => context.cwd().join(cwd),
        None => context.cwd(),
    };
    let mode = match take_text(&mut fields, "mode")? {
        Some(mode) => Some(mode.parse::<Mode>().map_err(|problem| problem.to_string())?),
        None => None,
    };
    let settings = fields.remove("settings");
    if let Some(unknown) = fields.keys().next() {
        return Err(format!(
            "unknown field `{unknown}`; a line has `id`, `tool`, `input`, `settings`, `cwd` and `mode`"
        ));
    }
    let call = ToolCall::new("check", tool, input.to_string());
    let (judgement, unasked_hooks) = match checker.judge(&call, settings.as_ref(), &cwd, mode) {
        BatchCheckOutcome::Judged { judgement, unasked_hooks } => (judgement, unasked_hooks),
        BatchCheckOutcome::Unusable(problem) => {
            return Ok(json!({ "id": id, "verdict": "deny", "reason": problem }));
        }
        BatchCheckOutcome::Refused(refusal) => {
            return Ok(json!({
                "id": id, "verdict": "deny", "reason": refusal.reason, "code": refusal.code,
                "hint": refusal.hint,
            }));
        }
    };
    let reason = judgement.verdict.reason();
    let mut answer = Map::new();
    answer.insert("id".into(), id);
    answer.insert("verdict".into(), json!(judgement.verdict.as_str()));
    answer.insert("reason".into(), json!(reason.to_string()));
    if let Some(rule) = &reason.rule {
        answer.insert("rule".into(), json!(rule));
    }
    answer.insert("risk".into(), json!(judgement.risk));
    if let Some(flip) = &judgement.flip {
        answer.insert("flip".into(), json!(flip));
    }
    if !unasked_hooks.is_empty() {
        answer.insert("unaskedHooks".into(), json!(unasked_hooks));
    }
    Ok(Value::Object(answer))
}

/// Removes a field that must be a string, if it is present.
fn take_text(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(format!("`{key}` is {}, but must be a string", toolgate_proto::json::describe(&other)))
        }
    }
}
