//! `toolgate ask`: puts questions to the person, for programs that have none of their own.

use super::args::AskArgs;
use super::ask::{Shared, TerminalApprover};
use super::out::Out;
use super::world::World;
use super::{Exit, Failure};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::{Answer, ApprovalRequest, Approver, Code, Question, ledger::sha256_hex};
use toolgate_proto::json::{Limits, parse_object};
use toolgate_proto::{Reason, Severity, Suggestion, Warning};

/// A question, as a program writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    tool: String,
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    risk: Option<Severity>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    locations: Vec<String>,
    #[serde(default)]
    warnings: Vec<Warning>,
    #[serde(default)]
    suggestions: Vec<String>,
    #[serde(default)]
    diff: Option<String>,
    #[serde(default)]
    commands: Vec<String>,
}

pub(crate) fn run(world: &World, args: &AskArgs, out: &mut Out) -> Result<Exit, Failure> {
    let timeout = match args.timeout {
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::Usage(format!("--timeout {seconds} is no length of time")))?,
        None => Duration::from_secs(300),
    };
    let text = world.text(&args.questions)?;
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |problem: String| Failure::Usage(format!("line {}: {problem}", index + 1));
        let object = parse_object(line, Limits::CALL).map_err(|problem| wrong(problem.to_string()))?;
        let asked: Asked =
            serde_json::from_value(Value::Object(object)).map_err(|error| wrong(error.to_string()))?;
        requests.push(request(asked));
    }
    let cancel = CancellationToken::new();
    let Some(person) = TerminalApprover::here(out.colorful(), cancel.clone()) else {
        return Ok(Exit::NeedsApproval);
    };
    let person = Shared(Arc::new(person));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answers = runtime.block_on(async {
        let asking = requests.iter().map(|request| person.ask(request));
        tokio::select! {
            () = cancel.cancelled() => None,
            () = tokio::time::sleep(timeout) => Some(Vec::new()),
            answers = futures_util::future::join_all(asking) => Some(answers),
        }
    });
    let Some(answers) = answers else { return Ok(Exit::Interrupted) };
    if answers.len() < requests.len() {
        return Ok(Exit::NeedsApproval);
    }
    let mut exit = Exit::Ok;
    for answer in answers {
        let (value, yes) = written(answer);
        out.line(&value.to_string())?;
        if !yes {
            exit = Exit::Denied;
        }
    }
    Ok(exit)
}

fn request(asked: Asked) -> ApprovalRequest {
    let input = asked.input;
    ApprovalRequest {
        id: toolgate_os::fresh_id("ask_"),
        call: toolgate_os::fresh_id("call_").into(),
        session: "ask".into(),
        question: Question {
            description: asked.description.unwrap_or_else(|| "run".to_owned()),
            tool: asked.tool.into(),
            risk: asked.risk.unwrap_or(Severity::High),
            effects: Vec::new(),
            locations: asked.locations,
            warnings: asked.warnings,
            reason: Reason::new(
                Code::NobodyToAsk,
                asked.reason.unwrap_or_else(|| "a program asks".to_owned()),
            ),
            suggestions: asked.suggestions.into_iter().map(|rule| Suggestion { rule }).collect(),
            explicit: false,
        },
        wants_a_person: false,
        input_sha256: sha256_hex(Value::Object(input.clone()).to_string().as_bytes()),
        input,
        diff: asked.diff,
        parts: asked.commands,
        flip: None,
        cancel: CancellationToken::new(),
    }
}

/// An answer in the words that hooks and hosts use.
fn written(answer: Answer) -> (Value, bool) {
    let rules = |rules: Vec<String>, destination: &str| json!({ "behavior": "allow", "rules": rules, "destination": destination });
    match answer {
        Answer::Once => (json!({ "behavior": "allow" }), true),
        Answer::Session { rules: kept } => (rules(kept, "session"), true),
        Answer::Always { rules: kept } => (rules(kept, "localSettings"), true),
        Answer::Revise { input } => (json!({ "behavior": "allow", "updatedInput": input }), true),
        Answer::No { message: Some(message) } => (json!({ "behavior": "deny", "message": message }), false),
        Answer::No { message: None } => (json!({ "behavior": "deny" }), false),
        Answer::Lost { why } => (json!({ "behavior": "deny", "message": why, "lost": true }), false),
        Answer::Pass | Answer::Later => {
            (json!({ "behavior": "deny", "message": "nobody answered", "lost": true }), false)
        }
    }
}
