//! `toolgate call --batch`: makes many calls, concurrently where their effects do not conflict.
//!
//! A line of the input is `{"id"?, "tool", "input"?}`, where `id` is a string or a number, and `input` is an object, or
//! a string with the JSON text that a model wrote. The calls form one session: a file that one call read counts as read for the next.

use super::batch_lines::{BatchLines, describe_json_problem, take_id, take_text};
use super::call::{CallArgs, RequestedCalls, ResultForm, make_calls, print_outcome, render_outcome};
use super::context::CliContext;
use super::output::{CliOutput, to_one_line};
use super::{CliError, CliExitCode};
use serde_json::{Value, json};
use toolgate::ToolCall;
use toolgate_proto::json::{JsonLimits, parse_object};

/// Makes the calls and prints one result per line, in the order of the calls. The exit code is that of the first call that failed.
pub(crate) fn run_call_batch(
    context: &CliContext,
    args: &CallArgs,
    file: &str,
    form: ResultForm,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let (ids, calls): (Vec<Value>, Vec<ToolCall>) = read_calls(context, file)?.into_iter().unzip();
    if calls.is_empty() {
        out.print_note("there is no call to make");
    }
    let outcomes = make_calls(context, args, RequestedCalls::Batch(calls), out)?;
    let mut exit = CliExitCode::Ok;
    for (outcome, id) in outcomes.iter().zip(ids) {
        match form {
            ResultForm::Text => {
                let record = &outcome.record;
                let tool = record.tool.as_ref().map_or(record.asked.as_str(), |tool| tool.as_str());
                out.print_line(&to_one_line(&format!("== {} {tool}", record.call.as_str())))?;
                print_outcome(form, outcome, out)?;
            }
            ResultForm::Mcp => {
                // The other formats repeat the id of the call; this one has no place of its own for it.
                let mut result = render_outcome(form, outcome);
                if let Some(meta) =
                    result.as_object_mut().map(|it| it.entry("_meta").or_insert_with(|| json!({})))
                    && let Some(meta) = meta.as_object_mut()
                {
                    meta.insert("toolgate/call".to_owned(), id);
                }
                out.print_line(&result.to_string())?;
            }
            ResultForm::Json => {
                // A record has the id as text; the program that wrote the line compares it with what it wrote.
                let mut result = render_outcome(form, outcome);
                if let Some(call) = result.pointer_mut("/record/call") {
                    *call = id;
                }
                out.print_line(&result.to_string())?;
            }
            ResultForm::Anthropic | ResultForm::Openai => {
                out.print_line(&render_outcome(form, outcome).to_string())?;
            }
        }
        if let (CliExitCode::Ok, Err(refusal)) = (exit, &outcome.result) {
            exit = CliExitCode::of(refusal);
        }
    }
    Ok(exit)
}

/// Reads the calls of a file. All lines are parsed before the first call runs, so an invalid line prevents every call.
fn read_calls(context: &CliContext, file: &str) -> Result<Vec<(Value, ToolCall)>, CliError> {
    let mut calls = Vec::new();
    for line in BatchLines::open(context, file)? {
        let line = line?;
        let call = line.text().and_then(|text| parse_call(text, line.number));
        calls.push(call.map_err(|message| CliError::Usage(format!("{file}:{}: {message}", line.number)))?);
    }
    Ok(calls)
}

/// Parses `{"id"?, "tool", "input"?}`. A call without an id gets `call_N` by its line.
fn parse_call(line: &str, number: usize) -> Result<(Value, ToolCall), String> {
    let mut fields =
        parse_object(line, JsonLimits::CALL).map_err(|problem| describe_json_problem(&problem))?;
    let id = take_id(&mut fields)?.unwrap_or_else(|| json!(format!("call_{number}")));
    let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let tool = take_text(&mut fields, "tool")?.ok_or("missing field `tool`")?;
    let input = match fields.remove("input") {
        None => "{}".to_owned(),
        // The input as a model wrote it, which may be invalid JSON; the gate then refuses the call.
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    match fields.keys().next() {
        Some(unknown) => Err(format!("unknown field `{unknown}`; a line has `id`, `tool` and `input`")),
        None => Ok((id, ToolCall::new(text, tool, input))),
    }
}
