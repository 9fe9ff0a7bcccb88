//! Event sourcing: a session is rebuilt from the events that a sink stored as lines of JSON.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use toolgate::{
    BoxFuture, CallId, CallRecord, CallResult, Event, Hook, HookAnswer, HookCall, HookEvent, HookFailure,
    Mode, Sink, ToolCall, ToolIdentity, Toolgate, render,
};

/// Stores every event as a line.
#[derive(Default)]
struct LineSink {
    lines: Mutex<Vec<String>>,
    wants_results: bool,
}

impl Sink for LineSink {
    fn record(&self, _: &CallRecord) {}

    fn accepts_events(&self) -> bool {
        true
    }

    fn accepts_results(&self) -> bool {
        self.wants_results
    }

    fn handle_event(&self, event: &Event) {
        self.lines.lock().unwrap().push(serde_json::to_string(event).unwrap());
    }
}

/// Lists the directory `sub`, whatever the model wanted to list.
struct RewritingHook;

impl Hook for RewritingHook {
    fn name(&self) -> &str {
        "rewriting"
    }

    fn handles(&self, event: HookEvent, tool: &ToolIdentity) -> bool {
        event == HookEvent::PreToolUse && tool.name.as_str() == "ls"
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        let mut input = call.input.clone();
        input.insert("path".to_owned(), json!("sub"));
        Box::pin(std::future::ready(Ok(HookAnswer::rewrite(input))))
    }
}

/// Puts the project in its first state.
fn reset(project: &Path) {
    let _ = std::fs::remove_dir_all(project);
    std::fs::create_dir_all(project.join("sub")).unwrap();
    std::fs::write(project.join("a.txt"), "one\ntwo\n").unwrap();
    std::fs::write(project.join("sub/b.txt"), "api_key = 'sk-ant-0123456789abcdefghij'\n").unwrap();
}

fn files(project: &Path) -> BTreeMap<PathBuf, String> {
    ["a.txt", "new.txt", "sub/b.txt"]
        .into_iter()
        .filter_map(|name| Some((name.into(), std::fs::read_to_string(project.join(name)).ok()?)))
        .collect()
}

fn session(project: &Path, sinks: &[&Arc<LineSink>]) -> Toolgate {
    let mut builder =
        Toolgate::builder(project).mode(Mode::AcceptEdits).hook(RewritingHook).deny("Read(sub/**)");
    for sink in sinks {
        builder = builder.sink(Arc::clone(sink));
    }
    builder.session("ses_1").build().unwrap()
}

/// What is known of a call from its events.
#[derive(Debug, PartialEq)]
struct RebuiltCall {
    call: ToolCall,
    input: Option<Value>,
    record: CallRecord,
    result: CallResult,
}

/// The calls of the session, in the order in which they ended.
fn rebuild(lines: &[String]) -> Vec<RebuiltCall> {
    let (mut records, mut calls) = (BTreeMap::<CallId, CallRecord>::new(), Vec::new());
    for line in lines {
        match serde_json::from_str(line).unwrap() {
            Event::Closed { record } => {
                records.insert(record.call.clone(), *record);
            }
            Event::Returned { call, given, input, result } => {
                let record = records.remove(&call).unwrap();
                let call = ToolCall::new(call, record.asked.clone(), given);
                calls.push(RebuiltCall { call, input: input.map(Value::Object), record, result: *result });
            }
            _ => {}
        }
    }
    assert!(records.is_empty(), "each call has a result");
    calls
}

#[test]
fn a_session_is_rebuilt_from_its_events() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap().join("project");
    reset(&project);
    let at = |name: &str| project.join(name);
    let calls = [
        ToolCall::new("c1", "Read", json!({ "file_path": at("a.txt") }).to_string()),
        ToolCall::new(
            "c2",
            "Edit",
            json!({ "file_path": at("a.txt"), "old_string": "two", "new_string": "2" }).to_string(),
        ),
        ToolCall::new("c3", "Write", json!({ "file_path": at("new.txt"), "content": "new\n" }).to_string()),
        ToolCall::new("c4", "ls", json!({ "path": "." }).to_string()),
        // Refused by a rule, by the tool, by the schema, and because there is no such tool.
        ToolCall::new("c5", "Read", json!({ "file_path": at("sub/b.txt") }).to_string()),
        ToolCall::new("c6", "Read", json!({ "file_path": at("missing.txt") }).to_string()),
        ToolCall::new("c7", "Read", "{not json"),
        ToolCall::new("c8", "NoSuchTool", "{}"),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let whole = Arc::new(LineSink { wants_results: true, ..LineSink::default() });
    let plain = Arc::new(LineSink::default());
    let toolgate = session(&project, &[&whole, &plain]);
    let mut subscriber = toolgate.events();
    let outcomes: Vec<_> = calls
        .iter()
        .map(|call| {
            runtime.block_on(toolgate.call_with_options(call.clone(), toolgate::CallOptions::default()))
        })
        .collect();
    drop(toolgate);
    let after = files(&project);

    let rebuilt = rebuild(&whole.lines.lock().unwrap());
    assert_eq!(rebuilt.len(), calls.len());
    for ((call, outcome), rebuilt) in calls.iter().zip(&outcomes).zip(&rebuilt) {
        assert_eq!(&rebuilt.call, call);
        assert_eq!(rebuilt.record, outcome.record);
        // The conversation: what the model was answered.
        let message = |result: &CallResult| render::anthropic_result(&call.id, result);
        assert_eq!(message(&rebuilt.result), message(&outcome.result));
        assert_eq!(rebuilt.result, outcome.result);
    }
    // The input of the model stands beside the one that the hook made of it; one that is not valid counts nowhere.
    assert_eq!(rebuilt[3].call.input, r#"{"path":"."}"#);
    assert_eq!(rebuilt[3].input, Some(json!({ "path": "sub" })));
    assert_eq!(rebuilt[6].input, None);

    // The session itself: the same calls from the same state have the same results and leave the same files.
    reset(&project);
    let again = session(&project, &[]);
    for rebuilt in &rebuilt {
        let options = toolgate::CallOptions::default();
        let outcome = runtime.block_on(again.call_with_options(rebuilt.call.clone(), options));
        assert_eq!(outcome.result, rebuilt.result, "{}", rebuilt.call.id);
    }
    assert_eq!(files(&project), after);

    // Those that did not ask for results get none.
    let has_results = |line: &String| line.contains(r#""event":"returned""#);
    assert!(!plain.lines.lock().unwrap().is_empty() && !plain.lines.lock().unwrap().iter().any(has_results));
    while let Ok(event) = subscriber.try_recv() {
        assert!(!matches!(event, Event::Returned { .. }));
    }
}

/// A call that its caller gives up has a result as well, so that no call of a rebuilt session is open for ever.
#[test]
fn a_call_that_is_given_up_has_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap().join("project");
    reset(&project);
    let sink = Arc::new(LineSink { wants_results: true, ..LineSink::default() });
    let toolgate = session(&project, &[&sink]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut calling = Box::pin(toolgate.call("c", "Read", r#"{"file_path":"/etc/hostname"}"#));
        let _ = futures_util::poll!(&mut calling);
    });
    let rebuilt = rebuild(&sink.lines.lock().unwrap());
    assert_eq!(rebuilt.len(), 1);
    assert!(rebuilt[0].result.is_err());
}
