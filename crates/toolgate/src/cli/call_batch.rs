//! `toolgate call --batch`: many calls through the boundary, together where their effects do not conflict.

use super::args::{CallArgs, ResultForm};
use super::call::{Calls, make, render_outcome};
use super::out::Out;
use super::world::World;
use super::{Exit, Failure};
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read};
use toolgate::ToolCall;
use toolgate_proto::json::{Limits, parse_object};

pub(crate) fn run(world: &World, args: &CallArgs, file: &str, out: &mut Out) -> Result<Exit, Failure> {
    let calls = read(world, file)?;
    let closed = make(world, args, Calls::Batch(calls), out)?;
    let form = if world.global.json { ResultForm::Json } else { args.form };
    let mut exit = Exit::Ok;
    for closed in &closed {
        out.line(&render_outcome(form, closed).to_string())?;
        if let (Exit::Ok, Err(refusal)) = (exit, &closed.result) {
            exit = Exit::of(refusal);
        }
    }
    Ok(exit)
}

/// The calls of a file. All are read before any runs, so that a line that cannot be read stops them all.
fn read(world: &World, file: &str) -> Result<Vec<ToolCall>, Failure> {
    let reader: Box<dyn Read> = if file == "-" {
        Box::new(std::io::stdin())
    } else {
        let path = world.ambient.path(file);
        Box::new(
            toolgate_os::open_named_file(&path)
                .map_err(|problem| Failure::Usage(format!("{path}: {problem}")))?,
        )
    };
    let mut calls = Vec::new();
    for (index, line) in BufReader::new(reader).lines().enumerate() {
        let line = line?;
        if !line.trim().is_empty() {
            let call = parse_call(&line, index)
                .map_err(|message| Failure::Usage(format!("{file}:{}: {message}", index + 1)))?;
            calls.push(call);
        }
    }
    Ok(calls)
}

fn parse_call(line: &str, index: usize) -> Result<ToolCall, String> {
    let mut fields = parse_object(line, Limits::CALL).map_err(|problem| problem.to_string())?;
    let id = match text(&mut fields, "id")? {
        Some(id) => id,
        None => format!("call_{}", index + 1),
    };
    let tool = text(&mut fields, "tool")?.ok_or("`tool` is missing")?;
    let input = match fields.remove("input") {
        None => "{}".to_owned(),
        // The text as a model sent it, which need not be JSON at all.
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    match fields.keys().next() {
        Some(unknown) => Err(format!("`{unknown}` is no field of a line; there are id, tool, input")),
        None => Ok(ToolCall::new(id, tool, input)),
    }
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` must be a string")),
    }
}
