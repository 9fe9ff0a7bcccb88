//! An agent loop: a model's stream in, calls through the gate, results back to the model.
//!
//! The model is a recording, so the program needs no key and no network; everything behind it is real.
//! A call starts as soon as its input is complete, while the model still writes the next one.
//!
//! Run with `cargo run --package toolgate --example agent_loop`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the program makes its own project, and talks to the user"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;
use toolgate::serde_json::{Value, from_str, json};
use toolgate::{
    AbsPath, ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallAssembler, CallOptions, CallOutcome,
    Effect, Event, EventReceiver, OutcomeRecord, ProviderApi, Toolgate, render,
};

/// What the model answers, turn by turn: server-sent events of the Messages API. `@ROOT@` stands for the project.
const TURNS: [&str; 2] = [
    r#"event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look at the notes and the code, then I write a report."}}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":" \"@ROOT@/notes.md\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"Grep","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"pattern\": \"TODO\", \"output_mode\": \"content\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_3","name":"Write","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\": \"@ROOT@/report.md\", \"content\": \"One task is open.\\n\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_4","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"rm -rf src\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

event: message_stop
data: {"type":"message_stop"}

"#,
    r#"event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"The report is written. I was not allowed to remove src, so it is still there."}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

event: message_stop
data: {"type":"message_stop"}

"#,
];

/// Approves changes of files in the project, and nothing else.
struct ProjectWrites {
    root: AbsPath,
}

impl Approver for ProjectWrites {
    fn name(&self) -> &str {
        "project-writes"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let is_write =
            |effect: &Effect| matches!(effect, Effect::Write { path, .. } if path.is_under(&self.root));
        let effects = &request.question.effects;
        let answer = if !effects.is_empty() && effects.iter().all(is_write) {
            ApprovalAnswer::Once
        } else {
            ApprovalAnswer::No { message: Some("only changes of files are approved here".to_owned()) }
        };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let project = SampleProject::new()?;
    let root = AbsPath::new(&project.0)?;
    let toolgate = Toolgate::builder(&project.0).approver(ProjectWrites { root }).build()?;
    let mut messages = vec![json!({ "role": "user", "content": "Report what is still to do." })];
    for turn in TURNS {
        let stream = turn.replace("@ROOT@", &project.0.display().to_string());
        let outcomes = run_turn(&toolgate, &stream, &project).await?;
        if outcomes.is_empty() {
            break;
        }
        // What the provider gets in its next request.
        let results: Vec<Value> = outcomes
            .iter()
            .map(|outcome| render::anthropic_result(&outcome.record.call, &outcome.result))
            .collect();
        for outcome in &outcomes {
            let text = match &outcome.result {
                Ok(output) => output.model_text(),
                Err(refusal) => format!("{refusal}; {}", refusal.hint),
            };
            println!("result {} {}", outcome.record.call, project.shorten(text.trim(), 100));
        }
        messages.push(json!({ "role": "user", "content": results }));
    }
    assert_eq!(messages.len(), 2);
    assert_eq!(std::fs::read_to_string(project.0.join("report.md"))?, "One task is open.\n");
    assert!(project.0.join("src/main.rs").exists());
    Ok(())
}

/// One answer of the model: starts each call when the stream completes it, and waits for all of them.
async fn run_turn(
    toolgate: &Toolgate,
    stream: &str,
    project: &SampleProject,
) -> Result<Vec<CallOutcome>, Box<dyn std::error::Error>> {
    let mut events = toolgate.events();
    let mut assembler = CallAssembler::new(ProviderApi::Anthropic);
    let mut batch = toolgate.batch(CallOptions::default());
    for chunk in stream.split_inclusive("\n\n") {
        if let Some(text) = text_of(chunk) {
            println!("model  {text}");
        }
        for call in assembler.push(chunk.as_bytes()) {
            println!("call   {} {} {}", call.id, call.name, project.shorten(&call.input, 80));
            batch.push(call);
        }
        // The model takes its time; calls run meanwhile.
        tokio::time::sleep(Duration::from_millis(5)).await;
        print_events(&mut events, project);
    }
    // A stream that was cut off is an error: the last call may be incomplete.
    assembler.end()?;
    let outcomes = batch.finish().await;
    print_events(&mut events, project);
    Ok(outcomes)
}

fn print_events(events: &mut EventReceiver<Event>, project: &SampleProject) {
    while let Ok(event) = events.try_recv() {
        match event {
            Event::Asked { call, question, .. } => {
                let question = format!("{} ({})", question.description, question.reason);
                println!("event  {call} needs approval: {}", project.shorten(&question, 100));
            }
            Event::Closed { record } => match &record.outcome {
                OutcomeRecord::Done { bytes, .. } => {
                    let approver = record.approval.as_ref().map(|approval| approval.by.as_str());
                    let by = approver.map(|by| format!(", approved by {by}")).unwrap_or_default();
                    println!("event  {} done: {bytes} bytes{by}", record.call);
                }
                outcome @ (OutcomeRecord::Refused { code, reason, .. }
                | OutcomeRecord::Failed { code, reason, .. }
                | OutcomeRecord::Cancelled { code, reason, .. }) => {
                    println!("event  {} {}: {code} {reason}", record.call, outcome.as_str());
                }
            },
            _ => {}
        }
    }
}

/// The text of a chunk, if it is text for the user.
fn text_of(chunk: &str) -> Option<String> {
    let data = chunk.lines().find_map(|line| line.strip_prefix("data: "))?;
    let event: Value = from_str(data).ok()?;
    event.pointer("/delta/text").and_then(Value::as_str).map(str::to_owned)
}

/// A small project in the temporary directory, removed at the end.
struct SampleProject(PathBuf);

impl SampleProject {
    fn new() -> std::io::Result<Self> {
        let dir = std::env::temp_dir().join(format!("toolgate-agent-loop-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("src"))?;
        let project = Self(dir.canonicalize()?);
        std::fs::write(project.0.join("notes.md"), "The parser is done.\n")?;
        std::fs::write(project.0.join("src/main.rs"), "fn main() {} // TODO: the printer\n")?;
        Ok(project)
    }

    /// A text on one line, with paths seen from the project.
    fn shorten(&self, text: &str, chars: usize) -> String {
        let text = text.replace(&format!("{}/", self.0.display()), "").replace(['\n', '\t'], " ");
        let short: String = text.chars().take(chars).collect();
        if short.len() < text.len() { format!("{short}…") } else { short }
    }
}

impl Drop for SampleProject {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}
