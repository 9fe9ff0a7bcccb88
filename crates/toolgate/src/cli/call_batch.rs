//! `toolgate call --batch`: makes many calls, concurrently where their effects do not conflict.
//!
//! A line of the input is `{"id"?, "tool", "input"?}`, where `input` is an object, or a string with the JSON text that a
//! model wrote. The calls form one session: a file that one call read counts as read for the next.

use super::call::{CallArgs, RequestedCalls, ResultForm, make_calls, print_outcome, render_outcome};
use super::context::CliContext;
use super::output::{CliOutput, to_one_line};
use super::{CliError, CliExitCode};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read};
use toolgate::ToolCall;
use toolgate_proto::json::{JsonLimits, parse_object};

/// Makes the calls and prints one result per line, in the order of the calls. The exit code is that of the first call that failed.
pub(crate) fn run_call_batch(
    context: &CliContext,
    args: &CallArgs,
    file: &str,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let calls = read_calls(context, file)?;
    let outcomes = make_calls(context, args, RequestedCalls::Batch(calls), out)?;
    let form = if context.global.json { ResultForm::Json } else { args.form.unwrap_or(ResultForm::Json) };
    let mut exit = CliExitCode::Ok;
    for outcome in &outcomes {
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
                    meta.insert("toolgate/call".to_owned(), json!(outcome.record.call));
                }
                out.print_line(&result.to_string())?;
            }
            ResultForm::Anthropic | ResultForm::Openai | ResultForm::Json => {
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
fn read_calls(context: &CliContext, file: &str) -> Result<Vec<ToolCall>, CliError> {
    let reader: Box<dyn Read> = if file == "-" {
        Box::new(std::io::stdin())
    } else {
        let path = context.ambient.absolute_path(file);
        Box::new(
            toolgate_files::open_named_file(&path)
                .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?,
        )
    };
    let mut calls = Vec::new();
    for (index, line) in BufReader::new(reader).lines().enumerate() {
        let line = line?;
        if !line.trim().is_empty() {
            let call = parse_call(&line, index)
                .map_err(|message| CliError::Usage(format!("{file}:{}: {message}", index + 1)))?;
            calls.push(call);
        }
    }
    Ok(calls)
}

/// Parses `{"id"?, "tool", "input"?}`. A call without an id gets `call_N` by its line.
fn parse_call(line: &str, index: usize) -> Result<ToolCall, String> {
    let mut fields = parse_object(line, JsonLimits::CALL).map_err(|problem| problem.to_string())?;
    let id = match take_text(&mut fields, "id")? {
        Some(id) => id,
        None => format!("call_{}", index + 1),
    };
    let tool = take_text(&mut fields, "tool")?.ok_or("missing field `tool`")?;
    let input = match fields.remove("input") {
        None => "{}".to_owned(),
        // The input as a model wrote it, which may be invalid JSON; the gate then refuses the call.
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    match fields.keys().next() {
        Some(unknown) => Err(format!("unknown field `{unknown}`; a line has `id`, `tool` and `input`")),
        None => Ok(ToolCall::new(id, tool, input)),
    }
}

/// Removes a field that must be a string, if it is present.
fn take_text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` must be a string")),
    }
}
