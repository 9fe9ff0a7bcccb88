//! `toolgate call --batch`: many calls through the boundary, together where their effects do not conflict.

use super::args::{CallArgs, ResultForm};
use super::call::{RequestedCalls, make_calls, render_outcome};
use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read};
use toolgate::ToolCall;
use toolgate_proto::json::{JsonLimits, parse_object};

pub(crate) fn run(
    world: &CliContext,
    args: &CallArgs,
    file: &str,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let calls = read_calls(world, file)?;
    let closed = make_calls(world, args, RequestedCalls::Batch(calls), out)?;
    let form = if world.global.json { ResultForm::Json } else { args.form };
    let mut exit = CliExitCode::Ok;
    for closed in &closed {
        out.print_line(&render_outcome(form, closed).to_string())?;
        if let (CliExitCode::Ok, Err(refusal)) = (exit, &closed.result) {
            exit = CliExitCode::of(refusal);
        }
    }
    Ok(exit)
}

/// The calls of a file. All are read before any runs, so that a line that cannot be read stops them all.
fn read_calls(world: &CliContext, file: &str) -> Result<Vec<ToolCall>, CliError> {
    let reader: Box<dyn Read> = if file == "-" {
        Box::new(std::io::stdin())
    } else {
        let path = world.ambient.absolute_path(file);
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

fn parse_call(line: &str, index: usize) -> Result<ToolCall, String> {
    let mut fields = parse_object(line, JsonLimits::CALL).map_err(|problem| problem.to_string())?;
    let id = match take_text(&mut fields, "id")? {
        Some(id) => id,
        None => format!("call_{}", index + 1),
    };
    let tool = take_text(&mut fields, "tool")?.ok_or("`tool` is missing")?;
    let input = match fields.remove("input") {
        None => "{}".to_owned(),
        // The text as a model sent it, which need not be JSON at all.
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    match fields.keys().next() {
        Some(unknown) => Err(format!("unknown field `{unknown}`; the fields of a line are id, tool, input")),
        None => Ok(ToolCall::new(id, tool, input)),
    }
}

fn take_text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` must be a string")),
    }
}
