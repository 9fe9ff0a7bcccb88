//! The properties of to-do lists that the design lists, by their numbers, on both toolsets.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolgate_gate::{CallOptions, Gate, GateParts, Session};
use toolgate_proto::{CallResult, Code, ToolCall};
use toolgate_tools::{StateConfig, Toolset, register, set_state_config};

/// Both toolsets over one store in memory.
struct TaskFixture {
    gate: Gate,
    session: Session,
    runtime: tokio::runtime::Runtime,
}

impl TaskFixture {
    /// The fixture of this thread with an empty store: to build a gate takes longer than to judge a case.
    fn with_empty_store(check: impl FnOnce(&Self) -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
        FIXTURE.with(|fixture| {
            set_state_config(&fixture.session, StateConfig::default());
            check(fixture)
        })
    }

    fn new() -> Self {
        let gate = Gate::new(GateParts::default());
        register(&gate, Toolset::Claude).unwrap();
        register(&gate, Toolset::Plain).unwrap();
        let session = super::file_fixture::session(&toolgate_proto::AbsPath::root(), "one");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { gate, session, runtime }
    }

    fn call(&self, tool: &str, input: &Value) -> CallResult {
        let call = ToolCall::new("call", tool, input.to_string());
        self.runtime.block_on(self.gate.call(&self.session, call, CallOptions::default())).result
    }

    fn structured(&self, tool: &str, input: &Value) -> Value {
        self.call(tool, input).unwrap().structured.unwrap()
    }

    /// Adds a task, and returns its id.
    fn add(&self, adapter: TaskAdapter, task: &str) -> String {
        let (tool, input, pointer) = match adapter {
            TaskAdapter::Plain => ("write_todos", json!({ "action": "add", "task": task }), "/todo/id"),
            TaskAdapter::Claude => ("TaskCreate", json!({ "subject": task, "description": "" }), "/task/id"),
        };
        self.structured(tool, &input).pointer(pointer).unwrap().as_str().unwrap().to_owned()
    }

    fn complete(&self, adapter: TaskAdapter, id: &str) -> bool {
        match adapter {
            TaskAdapter::Plain => {
                self.call("write_todos", &json!({ "action": "complete", "id": id })).is_ok()
            }
            TaskAdapter::Claude => {
                let output = self.structured("TaskUpdate", &json!({ "taskId": id, "status": "completed" }));
                output["success"] == true
            }
        }
    }

    fn remove(&self, adapter: TaskAdapter, id: &str) -> bool {
        match adapter {
            TaskAdapter::Plain => self.call("write_todos", &json!({ "action": "remove", "id": id })).is_ok(),
            TaskAdapter::Claude => {
                let output = self.structured("TaskUpdate", &json!({ "taskId": id, "status": "deleted" }));
                output["success"] == true
            }
        }
    }

    /// Id, text, and whether it is completed.
    fn list(&self, adapter: TaskAdapter) -> Vec<(String, String, bool)> {
        let (tool, input, list, text) = match adapter {
            TaskAdapter::Plain => ("write_todos", json!({ "action": "list" }), "todos", "task"),
            TaskAdapter::Claude => ("TaskList", json!({}), "tasks", "subject"),
        };
        let output = self.structured(tool, &input);
        let tasks = output[list].as_array().unwrap().iter();
        let field = |task: &Value, name: &str| task[name].as_str().unwrap().to_owned();
        tasks.map(|task| (field(task, "id"), field(task, text), task["status"] == "completed")).collect()
    }
}

thread_local! {
    static FIXTURE: TaskFixture = TaskFixture::new();
}

/// Which adapter of the store is used.
#[derive(Debug, Clone, Copy)]
enum TaskAdapter {
    Plain,
    Claude,
}

const ADAPTERS: [TaskAdapter; 2] = [TaskAdapter::Plain, TaskAdapter::Claude];

/// Texts of any kind that are not blank.
fn task_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,20}[a-z]", "\\PC{0,30}x", "x(\n|\r|\"|\\\\|é|🦀|\u{0}){0,8}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn property_53_todo_addition(tasks in prop::collection::vec(task_text(), 1..8)) {
        for adapter in ADAPTERS {
            TaskFixture::with_empty_store(|fixture| {
            let ids: Vec<String> = tasks.iter().map(|task| fixture.add(adapter, task)).collect();
            prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), tasks.len());
            let expected: Vec<_> = ids.into_iter().zip(tasks.clone()).map(|(id, task)| (id, task, false)).collect();
            prop_assert_eq!(fixture.list(adapter), expected);
            Ok(())
            })?;
        }
    }

    #[test]
    fn property_54_todo_completion(tasks in prop::collection::vec(task_text(), 1..8), at in any::<prop::sample::Index>()) {
        for adapter in ADAPTERS {
            TaskFixture::with_empty_store(|fixture| {
            let ids: Vec<String> = tasks.iter().map(|task| fixture.add(adapter, task)).collect();
            let chosen = at.index(ids.len());
            prop_assert!(fixture.complete(adapter, &ids[chosen]));
            for (place, (_, _, completed)) in fixture.list(adapter).into_iter().enumerate() {
                prop_assert_eq!(completed, place == chosen);
            }
            Ok(())
            })?;
        }
    }

    #[test]
    fn property_55_todo_removal(tasks in prop::collection::vec(task_text(), 1..8), at in any::<prop::sample::Index>()) {
        for adapter in ADAPTERS {
            TaskFixture::with_empty_store(|fixture| {
            let mut ids: Vec<String> = tasks.iter().map(|task| fixture.add(adapter, task)).collect();
            let removed = ids.remove(at.index(ids.len()));
            prop_assert!(fixture.remove(adapter, &removed));
            let left: Vec<String> = fixture.list(adapter).into_iter().map(|(id, _, _)| id).collect();
            prop_assert_eq!(left, ids);
            // It is gone for good: not found, and its id is not given again.
            prop_assert!(!fixture.complete(adapter, &removed));
            prop_assert_ne!(fixture.add(adapter, "another"), removed);
            Ok(())
            })?;
        }
    }

    #[test]
    fn property_56_todo_listing(
        steps in prop::collection::vec((task_text(), 0_u8..4, any::<prop::sample::Index>()), 1..16),
    ) {
        for adapter in ADAPTERS {
            TaskFixture::with_empty_store(|fixture| {
            let mut expected: Vec<(String, String, bool)> = Vec::new();
            for (text, action, at) in &steps {
                match action {
                    0 | 1 => expected.push((fixture.add(adapter, text), text.clone(), false)),
                    2 if !expected.is_empty() => {
                        let chosen = at.index(expected.len());
                        prop_assert!(fixture.complete(adapter, &expected[chosen].0));
                        expected[chosen].2 = true;
                    }
                    3 if !expected.is_empty() => {
                        let (id, _, _) = expected.remove(at.index(expected.len()));
                        prop_assert!(fixture.remove(adapter, &id));
                    }
                    _ => {}
                }
            }
            // Both adapters list the same tasks.
            prop_assert_eq!(&fixture.list(TaskAdapter::Plain), &expected);
            prop_assert_eq!(&fixture.list(TaskAdapter::Claude), &expected);
            let text = fixture.call("write_todos", &json!({ "action": "list" })).unwrap().model_text();
            let entries = text.lines().filter(|line| line.starts_with('[')).count();
            prop_assert_eq!(entries, expected.len());
            Ok(())
            })?;
        }
    }

    #[test]
    fn a_whole_list_is_replaced_at_once(
        lists in prop::collection::vec(prop::collection::vec((task_text(), 0_u8..3), 0..6), 1..4),
    ) {
        TaskFixture::with_empty_store(|fixture| {
        let mut before = json!([]);
        for list in &lists {
            // At most one is in progress.
            let mut is_first = true;
            let status = |state: &u8, is_first: &mut bool| match state {
                0 if std::mem::take(is_first) => "in_progress",
                1 => "completed",
                _ => "pending",
            };
            let todos: Vec<Value> = list
                .iter()
                .map(|(text, state)| {
                    json!({ "content": text, "status": status(state, &mut is_first), "activeForm": "working" })
                })
                .collect();
            let output = fixture.structured("TodoWrite", &json!({ "todos": todos }));
            prop_assert_eq!(&output["oldTodos"], &before);
            prop_assert_eq!(&output["newTodos"], &json!(todos));
            before = output["newTodos"].clone();
        }
        // The list of the session is not the list of the project.
        prop_assert!(fixture.list(TaskAdapter::Claude).is_empty());
        Ok(())
        })?;
    }
}

#[test]
fn one_task_is_in_progress_at_most() {
    let fixture = TaskFixture::new();
    let todo = |name: &str| json!({ "content": name, "status": "in_progress", "activeForm": "a" });
    let refusal = fixture.call("TodoWrite", &json!({ "todos": [todo("a"), todo("b")] })).unwrap_err();
    assert_eq!(refusal.code, Code::BadArgument);
    let todo = |name: &str| json!({ "description": name, "status": "in_progress" });
    assert!(fixture.call("write_todos", &json!({ "todos": [todo("a"), todo("b")] })).is_err());
    assert!(fixture.call("write_todos", &json!({ "todos": [todo("a")] })).is_ok());
}

#[test]
fn a_claimed_or_blocked_task_is_not_claimed() {
    let fixture = TaskFixture::new();
    let (first, second) = (fixture.add(TaskAdapter::Claude, "a"), fixture.add(TaskAdapter::Claude, "b"));
    let update = |input: Value| fixture.structured("TaskUpdate", &input);
    assert_eq!(update(json!({ "taskId": second, "addBlockedBy": [first] }))["success"], true);
    let blocked = update(json!({ "taskId": second, "status": "in_progress" }));
    assert_eq!(blocked["error"], "task 2 waits for task 1");
    let cycle = update(json!({ "taskId": first, "addBlockedBy": [second] }));
    assert_eq!(cycle["success"], false);
    assert_eq!(update(json!({ "taskId": first, "status": "in_progress", "owner": "left" }))["success"], true);
    let claimed = update(json!({ "taskId": first, "status": "in_progress", "owner": "right" }));
    assert_eq!(claimed["error"], "task 1 is claimed by `left`");
    assert_eq!(update(json!({ "taskId": first, "status": "completed" }))["statusChange"]["to"], "completed");
    assert_eq!(update(json!({ "taskId": second, "status": "in_progress" }))["success"], true);
    // A claim without an owner is the session's.
    let task = fixture.structured("TaskGet", &json!({ "taskId": second }));
    assert_eq!(task["task"]["owner"], "one");
    let stale = update(json!({ "taskId": second, "subject": "c", "revision": 1 }));
    assert_eq!(stale["success"], false);
    assert_eq!(fixture.structured("TaskGet", &json!({ "taskId": "99" }))["task"], Value::Null);
    assert_eq!(update(json!({ "taskId": "99", "status": "completed" }))["success"], false);
}

#[test]
fn sessions_share_a_list_through_the_directory_and_not_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let dir = toolgate_proto::AbsPath::new(dir.path()).unwrap();
    let (left, right, alone) = (TaskFixture::new(), TaskFixture::new(), TaskFixture::new());
    for fixture in [&left, &right] {
        set_state_config(&fixture.session, StateConfig::default().with_dir(Some(dir.clone())));
    }
    left.add(TaskAdapter::Claude, "from the left");
    assert_eq!(right.list(TaskAdapter::Plain).len(), 1);
    assert!(alone.list(TaskAdapter::Plain).is_empty());
}

#[test]
fn a_todo_that_is_not_there_is_a_todo_error() {
    let fixture = TaskFixture::new();
    for input in [
        json!({ "action": "complete", "id": "7" }),
        json!({ "action": "remove", "id": "x" }),
        json!({ "action": "add" }),
        json!({ "action": "complete" }),
        json!({}),
    ] {
        assert_eq!(fixture.call("write_todos", &input).unwrap_err().kind, "TodoError", "{input}");
    }
}
