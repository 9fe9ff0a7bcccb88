//! `toolgate ask`: asks for approval at the terminal on behalf of programs that have no prompt of their own.

use super::batch_lines::describe_json_problem;
use super::context::CliContext;
use super::output::CliOutput;
use super::terminal_approver::{SharedTerminalApprover, TerminalApprover};
use super::{CliError, CliExitCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::{ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Approver, Code};
use toolgate_gate::{CallContext, Session};
use toolgate_proto::json::{JsonLimits, parse_object};
use toolgate_proto::{
    AbsPath, ApprovalCard, CardContent, GrantScope, Principal, RiskLevel, RiskWarning, RuleSuggestion,
    VerdictReason, Workspace,
};

/// How long all questions together wait for answers.
const DEFAULT_ASK_TIMEOUT: Duration = Duration::from_secs(300);

/// The help after the options: the input and the output.
const ASK_HELP: &str = "\
Each line of the input is a JSON object; only `tool` is required:
  tool         the tool that would be called
  input        its input, which the user can edit
  description  what the call does, after \"wants to\"; `run` if absent
  risk         low, medium, high (the default) or critical
  reason       why approval is needed
  locations    the paths and addresses that the call would access
  warnings     dangers to show: [{\"kind\": \"secret\", \"severity\": \"high\", \"text\": \"…\"}]
  suggestions  rules that the user can allow for the session or permanently: texts, or objects
               {\"rule\": \"…\", \"wider\": \"…\"}
  diff         a unified diff, shown instead of the input
  commands     the commands that the call would run, shown one by one
Each line of the output answers the question of the same position: {\"behavior\": \"allow\"} or {\"behavior\": \"deny\"}, \
with `rules` and `destination` if the user allowed rules for the session or permanently, `updatedInput` if the user \
changed the input, and `message` if the user gave a reason. `\"lost\": true` beside a deny says that the terminal failed \
before the user answered. The exit code is 0 if every question was allowed, 2 if there is no question or one is invalid, 3 if one was denied, 4 if there is no terminal \
or no answer in time, 130 if the user pressed Ctrl-C. With 4 and 130 no question is answered, also none that the user \
allowed before: standard output is empty, or with --json the one line \
{\"error\": {\"message\": \"…\", \"exitCode\": 130}}.";

/// Arguments of `toolgate ask`.
#[derive(Debug, clap::Args)]
#[command(after_help = ASK_HELP)]
pub(crate) struct AskArgs {
    /// The questions, one JSON object per line; `-` reads them from standard input
    #[arg(default_value = "-")]
    pub(crate) questions: String,
    /// Stop after this many seconds (default: 300)
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
}

/// One question in the input. All fields except `tool` are optional; an unknown field is an error.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AskQuestion {
    /// The tool that would be called.
    tool: String,
    /// The input of the call, which the user can edit.
    #[serde(default)]
    input: Map<String, Value>,
    /// What the call does, as the object of "wants to"; `run` if absent.
    #[serde(default)]
    description: Option<String>,
    /// How risky the call is; high if absent, because the program did not judge it.
    #[serde(default)]
    risk: Option<RiskLevel>,
    /// Why approval is needed.
    #[serde(default)]
    reason: Option<String>,
    /// The real paths and addresses that the call would access.
    #[serde(default)]
    locations: Vec<String>,
    /// Dangers that the prompt displays.
    #[serde(default)]
    warnings: Vec<RiskWarning>,
    /// Rules that the user can allow for the session or permanently.
    #[serde(default)]
    suggestions: Vec<AskSuggestion>,
    /// A unified diff, displayed instead of the input.
    #[serde(default)]
    diff: Option<String>,
    /// The commands that the call would run, displayed one by one.
    #[serde(default)]
    commands: Vec<String>,
}

/// A rule in the input: a text, or an object as in the questions that toolgate itself prints.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "each must be a rule, or an object with `rule` and perhaps `wider`")]
enum AskSuggestion {
    /// The rule.
    Text(String),
    /// The rule, perhaps with a wider one.
    Object(RuleSuggestion),
}

impl From<AskSuggestion> for RuleSuggestion {
    /// Both forms say the same.
    fn from(given: AskSuggestion) -> Self {
        match given {
            AskSuggestion::Text(rule) => Self::new(rule),
            AskSuggestion::Object(suggestion) => suggestion,
        }
    }
}

impl AskQuestion {
    /// Deserializes a question; an error names the field. `serde_json` names only unknown and missing ones.
    fn deserialize_fields(object: Map<String, Value>) -> Result<Self, String> {
        serde_json::from_value(Value::Object(object.clone())).map_err(|error: serde_json::Error| {
            let is_wrong = |(name, value): &(&String, &Value)| {
                let alone = json!({ "tool": "", name.as_str(): *value });
                serde_json::from_value::<Self>(alone).is_err()
            };
            match object.iter().find(is_wrong) {
                Some((name, _)) if !error.to_string().contains(&format!("`{name}`")) => {
                    format!("field `{name}`: {error}")
                }
                _ => error.to_string(),
            }
        })
    }
}

/// Prints why there are no answers, on standard output if the program reads JSON there, and returns the exit code.
fn report_no_answer(
    context: &CliContext,
    message: &str,
    exit: CliExitCode,
    out: &mut CliOutput,
) -> CliExitCode {
    match context.global.json {
        true => out.print_json_error(message, exit),
        false => out.print_error(message),
    }
    exit
}

/// Asks every question and prints the answers in the order of the questions, once all are answered.
pub(crate) fn run(
    context: &CliContext,
    args: &AskArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let timeout = match args.timeout {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| {
            CliError::Usage(format!("invalid --timeout `{seconds}`; give seconds, such as 30"))
        })?,
        None => DEFAULT_ASK_TIMEOUT,
    };
    let requests = parse_questions(&context.read_argument(&args.questions)?, &context.ambient.cwd)?;
    let cancel = CancellationToken::new();
    let Some(terminal) = TerminalApprover::detect(out.is_colorful(), cancel.clone()) else {
        let hint = "run it where a terminal is; `ask` asks nowhere else, and `--permission-prompt-tool` has an effect \
                    only on the questions of calls";
        let message = format!("there is no terminal to ask at\n  hint: {hint}");
        return Ok(report_no_answer(context, &message, CliExitCode::NeedsApproval, out));
    };
    let approver = SharedTerminalApprover(Arc::new(terminal));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answers = runtime.block_on(async {
        let asking = requests.iter().map(|request| approver.ask(request));
        tokio::select! {
            () = cancel.cancelled() => None,
            () = tokio::time::sleep(timeout) => None,
            answers = futures_util::future::join_all(asking) => Some(answers),
        }
    });
    // The prompt fires the token and ends its question at once, so that the answers may be complete before the branch of
    // the token is polled: the token decides, not the branch.
    if cancel.is_cancelled() {
        let message = "interrupted with Ctrl-C; no question is answered";
        return Ok(report_no_answer(context, message, CliExitCode::Interrupted, out));
    }
    let Some(answers) = answers else {
        let message =
            format!("no answer within {} seconds\n  hint: --timeout waits longer", timeout.as_secs_f64());
        return Ok(report_no_answer(context, &message, CliExitCode::NeedsApproval, out));
    };
    let mut exit = CliExitCode::Ok;
    for answer in answers {
        let (value, allowed) = render_answer(answer);
        out.print_line(&value.to_string())?;
        if !allowed {
            exit = CliExitCode::Denied;
        }
    }
    Ok(exit)
}

/// Parses the questions; one that cannot be parsed fails the command before anything is asked.
fn parse_questions(text: &str, cwd: &AbsPath) -> Result<Vec<ApprovalRequest>, CliError> {
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let usage_error = |problem: String| CliError::Usage(format!("line {}: {problem}", index + 1));
        let object = parse_object(line, JsonLimits::CALL)
            .map_err(|problem| usage_error(describe_json_problem(&problem)))?;
        let question = AskQuestion::deserialize_fields(object).map_err(usage_error)?;
        requests.push(build_request(question, cwd));
    }
    if requests.is_empty() {
        // Exit code 0 means that every question was allowed; a caller that lost its question must not read that.
        let example = r#"toolgate ask '{"tool": "deploy", "commands": ["make deploy"]}'"#;
        return Err(CliError::Usage(format!("there is no question\n  hint: give one, such as `{example}`")));
    }
    Ok(requests)
}

/// The request that the terminal approver displays.
fn build_request(asked: AskQuestion, cwd: &AbsPath) -> ApprovalRequest {
    let input = asked.input;
    let reason = asked.reason.unwrap_or_else(|| "another program asks for approval".to_owned());
    let mut question = ApprovalQuestion::new(
        asked.tool.into(),
        asked.description.unwrap_or_else(|| "run".to_owned()),
        asked.risk.unwrap_or(RiskLevel::High),
        VerdictReason::new(Code::ApprovalUnavailable, reason),
    );
    question.locations = asked.locations;
    question.warnings = asked.warnings;
    question.suggestions = asked.suggestions.into_iter().map(RuleSuggestion::from).collect();
    let content = CardContent::new(&input, &[GrantScope::Session, GrantScope::Project])
        .with_diff(asked.diff.as_deref())
        .with_commands(&asked.commands);
    let card = ApprovalCard::new(&question, content);
    let workspace = Workspace::new(cwd.clone());
    let session = Session::new("ask".into(), Principal::new("ask"), workspace);
    let call = toolgate_files::generate_id("call_").into();
    ApprovalRequest::new(call, CallContext::of(&session), question, card, input)
}

/// An answer in the format of the `PermissionRequest` hook, and whether it allows the call.
fn render_answer(answer: ApprovalAnswer) -> (Value, bool) {
    let with_rules = |rules: Vec<String>, destination: &str| json!({ "behavior": "allow", "rules": rules, "destination": destination });
    match answer {
        ApprovalAnswer::Once => (json!({ "behavior": "allow" }), true),
        ApprovalAnswer::Session { rules } => (with_rules(rules, "session"), true),
        ApprovalAnswer::Always { rules } => (with_rules(rules, "localSettings"), true),
        ApprovalAnswer::Revise { input } => (json!({ "behavior": "allow", "updatedInput": input }), true),
        ApprovalAnswer::No { message: Some(message) } => {
            (json!({ "behavior": "deny", "message": message }), false)
        }
        ApprovalAnswer::No { message: None } => (json!({ "behavior": "deny" }), false),
        ApprovalAnswer::Lost { why } => (json!({ "behavior": "deny", "message": why, "lost": true }), false),
        ApprovalAnswer::Pass | ApprovalAnswer::Later => {
            (json!({ "behavior": "deny", "message": "no answer was given", "lost": true }), false)
        }
    }
}
