//! `toolgate check --batch`: judges many calls in one process. Each line can have its own settings, directory and mode.
//!
//! A line of the input is `{"id", "tool", "input", "settings"?, "cwd"?, "mode"?}`; with `settings`, only these apply. A
//! `cwd` is the workspace of the call and changes no settings: those of the start directory are read once.
//! A line of the output has the `id` of its call, the `verdict` and the `reason`; if policy judged the call also the
//! `risk`, the `rule` that decided, and in `flip` the change of rules that would allow it. In `callRefused` it has why the
//! call would be refused whatever policy says of it. A line that is not a call, or whose settings cannot be used, gets
//! `"error": true`, its `id` or null if that cannot be read with certainty, and its `line`, and the exit code is then 2.
//! With `--require-allow` the exit code is otherwise that of the strictest verdict, a refused call counts as denied, and no
//! line at all is an error.

use super::batch_checker::{BatchCheckOutcome, BatchChecker};
use super::batch_lines::{BatchLines, describe_json_problem, take_id, take_text};
use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use serde_json::{Map, Value, json};
use toolgate::{AbsPath, Code, EntryKind, Judgement, Mode, ToolCall};
use toolgate_proto::{json::JsonLimits, json::parse_object};

/// Judges each line as it is read and prints one answer per line. An invalid line is denied, and the rest is judged.
pub(crate) fn run_check_batch(
    context: &CliContext,
    file: &str,
    require_allow: bool,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let mut checker = BatchChecker::new(context)?;
    let (mut line_count, mut invalid_lines) = (0usize, 0usize);
    let (mut has_unasked_hooks, mut has_refused_calls) = (false, false);
    let mut strictest = CliExitCode::Ok;
    for line in BatchLines::open(context, file)? {
        let line = line?;
        line_count += 1;
        let checked = line.text().map_err(LineProblem::from);
        let checked = checked.and_then(|text| check_line(context, &mut checker, text));
        let answer = checked.unwrap_or_else(|problem| {
            invalid_lines += 1;
            problem.answer(line.find_id(), line.number)
        });
        has_unasked_hooks |= answer.get("unaskedHooks").is_some();
        has_refused_calls |= answer.get("callRefused").is_some();
        let verdict = answer.get("verdict").and_then(Value::as_str);
        strictest = match (verdict.filter(|_| answer.get("callRefused").is_none()), strictest) {
            (Some("allow"), strictest) => strictest,
            (Some("ask"), CliExitCode::Ok) => CliExitCode::NeedsApproval,
            (Some("ask"), strictest) => strictest,
            _ => CliExitCode::Denied,
        };
        out.print_line(&answer.to_string())?;
    }
    out.flush()?;
    if line_count == 0 {
        // Exit code 0 of --require-allow means that every call is allowed; the program that writes the lines may have
        // failed.
        if require_allow {
            let hint = "give one call per line, such as {\"tool\": \"ls\"}; the program that writes them may have failed";
            return Err(CliError::Usage(format!("there is no call to check\n  hint: {hint}")));
        }
        out.print_note("there is no call to check");
    }
    if has_refused_calls {
        out.print_note("calls would be refused whatever their verdict: see `callRefused`");
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

/// What is wrong with a line.
struct LineProblem {
    /// The problem.
    reason: String,
    /// What to do about unusable settings.
    hint: Option<String>,
}

impl From<String> for LineProblem {
    /// A line that is not a call.
    fn from(reason: String) -> Self {
        Self { reason, hint: None }
    }
}

impl LineProblem {
    /// The answer to the line: no verdict of policy, and never an allow.
    fn answer(self, id: Option<Value>, line: usize) -> Value {
        let mut answer =
            json!({ "id": id, "line": line, "verdict": "deny", "reason": self.reason, "error": true });
        if let (Some(hint), Some(fields)) = (self.hint, answer.as_object_mut()) {
            fields.insert("code".to_owned(), json!(Code::UnusablePolicy));
            fields.insert("hint".to_owned(), json!(hint));
        }
        answer
    }
}

/// The answer to one line. An `Err` says what is wrong with the line itself.
fn check_line(
    context: &CliContext,
    checker: &mut BatchChecker<'_>,
    line: &str,
) -> Result<Value, LineProblem> {
    let mut fields =
        parse_object(line, JsonLimits::CALL).map_err(|problem| describe_json_problem(&problem))?;
    let id = take_id(&mut fields)?.unwrap_or(Value::Null);
    let tool = take_text(&mut fields, "tool")?.ok_or_else(|| "missing field `tool`".to_owned())?;
    let input = fields.remove("input").unwrap_or_else(|| json!({}));
    let cwd = match take_text(&mut fields, "cwd")? {
        Some(cwd) => find_directory(context.cwd().join(cwd))?,
        None => context.cwd(),
    };
    let mode = match take_text(&mut fields, "mode")? {
        Some(mode) => Some(mode.parse::<Mode>().map_err(|problem| problem.to_string())?),
        None => None,
    };
    let settings = fields.remove("settings");
    if let Some(other) = settings.as_ref().filter(|settings| !settings.is_object()) {
        let what = toolgate_proto::json::describe(other);
        return Err(
            format!("`settings` is {what}, but must be an object with the settings themselves").into()
        );
    }
    if let Some(unknown) = fields.keys().next() {
        let message = format!(
            "unknown field `{unknown}`; a line has `id`, `tool`, `input`, `settings`, `cwd` and `mode`"
        );
        return Err(message.into());
    }
    let call = ToolCall::new("check", tool, input.to_string());
    match checker.judge(&call, settings.as_ref(), &cwd, mode) {
        BatchCheckOutcome::Judged { judgement, unasked_hooks, call_refusal } => {
            let mut answer = describe_judgement(id, &judgement);
            if !unasked_hooks.is_empty() {
                answer.insert("unaskedHooks".into(), json!(unasked_hooks));
            }
            answer.extend(call_refusal.map(|why| ("callRefused".to_owned(), json!(why))));
            Ok(Value::Object(answer))
        }
        BatchCheckOutcome::Unusable(problem) => {
            Err(LineProblem { reason: problem.reason, hint: Some(problem.hint) })
        }
        BatchCheckOutcome::Refused(refusal) => Ok(json!({
            "id": id, "verdict": "deny", "reason": refusal.reason, "code": refusal.code, "hint": refusal.hint,
        })),
    }
}

/// A directory that can be a workspace.
fn find_directory(path: AbsPath) -> Result<AbsPath, String> {
    let fact = toolgate_files::resolve(&path);
    match (fact.problem, fact.kind) {
        (Some(problem), _) => Err(format!("`cwd`: `{path}` cannot be a workspace: {problem}")),
        (None, EntryKind::Directory) => Ok(path),
        (None, EntryKind::Missing) => {
            Err(format!("`cwd`: `{path}` cannot be a workspace: there is no such directory"))
        }
        (None, _) => Err(format!("`cwd`: `{path}` cannot be a workspace: it is not a directory")),
    }
}

/// What policy said of a call.
fn describe_judgement(id: Value, judgement: &Judgement) -> Map<String, Value> {
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
    answer
}
