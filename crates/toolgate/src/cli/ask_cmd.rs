//! `toolgate ask`: puts questions to the person, for programs that have none of their own.

use super::args::AskArgs;
use super::context::CliContext;
use super::output::CliOutput;
use super::terminal_approver::{SharedTerminalApprover, TerminalApprover};
use super::{CliError, CliExitCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::{ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Approver, Code, ledger::sha256_hex};
use toolgate_gate::{CallContext, Session};
use toolgate_proto::json::{JsonLimits, parse_object};
use toolgate_proto::{AbsPath, Principal, RiskLevel, RiskWarning, RuleSuggestion, VerdictReason, Workspace};

/// A question, as a program writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AskQuestion {
    tool: String,
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    risk: Option<RiskLevel>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    locations: Vec<String>,
    #[serde(default)]
    warnings: Vec<RiskWarning>,
    #[serde(default)]
    suggestions: Vec<String>,
    #[serde(default)]
    diff: Option<String>,
    #[serde(default)]
    commands: Vec<String>,
}

pub(crate) fn run(world: &CliContext, args: &AskArgs, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let timeout = match args.timeout {
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| CliError::Usage(format!("--timeout {seconds} is no length of time")))?,
        None => Duration::from_secs(300),
    };
    let text = world.read_argument(&args.questions)?;
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |problem: String| CliError::Usage(format!("line {}: {problem}", index + 1));
        let object = parse_object(line, JsonLimits::CALL).map_err(|problem| wrong(problem.to_string()))?;
        let asked: AskQuestion =
            serde_json::from_value(Value::Object(object)).map_err(|error| wrong(error.to_string()))?;
        requests.push(build_request(asked, &world.ambient.cwd));
    }
    let cancel = CancellationToken::new();
    let Some(person) = TerminalApprover::detect(out.is_colorful(), cancel.clone()) else {
        return Ok(CliExitCode::NeedsApproval);
    };
    let person = SharedTerminalApprover(Arc::new(person));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answers = runtime.block_on(async {
        let asking = requests.iter().map(|request| person.ask(request));
        tokio::select! {
            () = cancel.cancelled() => None,
            () = tokio::time::sleep(timeout) => Some(Vec::new()),
            answers = futures_util::future::join_all(asking) => Some(answers),
        }
    });
    let Some(answers) = answers else { return Ok(CliExitCode::Interrupted) };
    if answers.len() < requests.len() {
        return Ok(CliExitCode::NeedsApproval);
    }
    let mut exit = CliExitCode::Ok;
    for answer in answers {
        let (value, yes) = render_answer(answer);
        out.print_line(&value.to_string())?;
        if !yes {
            exit = CliExitCode::Denied;
        }
    }
    Ok(exit)
}

fn build_request(asked: AskQuestion, cwd: &AbsPath) -> ApprovalRequest {
    let input = asked.input;
    let workspace = Workspace { cwd: cwd.clone(), roots: vec![cwd.clone()], home: None };
    let principal = Principal::new("ask");
    let session = Session::new("ask".into(), principal, workspace);
    let reason = asked.reason.unwrap_or_else(|| "a program asks".to_owned());
    let mut question = ApprovalQuestion::new(
        asked.tool.into(),
        asked.description.unwrap_or_else(|| "run".to_owned()),
        asked.risk.unwrap_or(RiskLevel::High),
        VerdictReason::new(Code::NobodyToAsk, reason),
    );
    question.locations = asked.locations;
    question.warnings = asked.warnings;
    question.suggestions = asked.suggestions.into_iter().map(RuleSuggestion::new).collect();
    ApprovalRequest {
        id: toolgate_files::generate_id("ask_"),
        call: toolgate_files::generate_id("call_").into(),
        context: CallContext::of(&session),
        question,
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
fn render_answer(answer: ApprovalAnswer) -> (Value, bool) {
    let rules = |rules: Vec<String>, destination: &str| json!({ "behavior": "allow", "rules": rules, "destination": destination });
    match answer {
        ApprovalAnswer::Once => (json!({ "behavior": "allow" }), true),
        ApprovalAnswer::Session { rules: kept } => (rules(kept, "session"), true),
        ApprovalAnswer::Always { rules: kept } => (rules(kept, "localSettings"), true),
        ApprovalAnswer::Revise { input } => (json!({ "behavior": "allow", "updatedInput": input }), true),
        ApprovalAnswer::No { message: Some(message) } => {
            (json!({ "behavior": "deny", "message": message }), false)
        }
        ApprovalAnswer::No { message: None } => (json!({ "behavior": "deny" }), false),
        ApprovalAnswer::Lost { why } => (json!({ "behavior": "deny", "message": why, "lost": true }), false),
        ApprovalAnswer::Pass | ApprovalAnswer::Later => {
            (json!({ "behavior": "deny", "message": "nobody answered", "lost": true }), false)
        }
    }
}
