//! Commands in the background.

use super::bash_desk::{Desk, alive, on_runtime, output, structured};
use super::bash_properties::gone;
use serde_json::{Value, json};
use toolgate_proto::{Code, Event};
use toolgate_tools::{OnTimeout, background_tasks};

async fn background(desk: &Desk, command: &str) -> String {
    let closed = desk.call("Bash", json!({ "command": command, "run_in_background": true })).await;
    structured(&closed)["backgroundTaskId"].as_str().unwrap().to_owned()
}

async fn task_output(desk: &Desk, input: Value) -> Value {
    structured(&desk.call("TaskOutput", input).await)
}

#[test]
fn output_is_read_on_from_where_the_last_answer_ended() {
    on_runtime(async {
        let desk = Desk::new();
        let id = background(&desk, "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4").await;
        let mut first = task_output(&desk, json!({ "task_id": id, "block": false })).await;
        while first["output"] != json!("one\n") {
            first = task_output(&desk, json!({ "task_id": id, "timeout": 50 })).await;
        }
        assert_eq!((first["status"].clone(), first["exitCode"].clone()), (json!("running"), Value::Null));
        std::fs::write(desk.path("ws/go"), "").unwrap();
        let rest = task_output(&desk, json!({ "task_id": id, "offset": first["nextOffset"] })).await;
        assert_eq!((rest["output"].clone(), rest["exitCode"].clone()), (json!("two\n"), json!(4)));
        let file = rest["outputFile"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "one\ntwo\n");
    });
}

#[test]
fn the_older_names_work_and_a_stop_ends_everything() {
    on_runtime(async {
        let desk = Desk::new();
        for (stop, field) in [("TaskStop", "task_id"), ("KillShell", "shell_id"), ("KillBash", "shell_id")] {
            let id = background(&desk, "setsid sleep 1000 & sleep 1000").await;
            let seen = structured(&desk.call("BashOutput", json!({ "bash_id": id, "block": false })).await);
            assert_eq!(seen["status"], json!("running"));
            let mut input = json!({});
            input[field] = json!(id);
            let closed = desk.call(stop, input.clone()).await;
            assert!(closed.result.clone().unwrap().model_text().starts_with("stopped"), "{closed:?}");
            assert_eq!(desk.alive(), Vec::<String>::new());
            let again = desk.call(stop, input).await.result.unwrap().model_text();
            assert!(again.contains("ended already"), "{again}");
        }
        let list = output(&desk.call("TaskOutput", json!({})).await).model_text();
        assert_eq!(list.lines().count(), 3);
        assert_eq!(background_tasks(&desk.session).len(), 3);
        let refusal = desk.call("TaskStop", json!({ "task_id": "task_99" })).await.result.unwrap_err();
        assert_eq!(refusal.code, Code::BadArgument);
        assert!(refusal.hint.contains("task_1"), "{}", refusal.hint);
    });
}

#[test]
fn the_end_of_a_task_is_told() {
    on_runtime(async {
        let desk = Desk::new();
        let mut events = desk.gate.events();
        let ending = async |events: &mut tokio::sync::broadcast::Receiver<Event>| loop {
            if let Event::TaskEnded { task, summary, output_file, .. } = events.recv().await.unwrap() {
                return (task, summary, output_file);
            }
        };
        // One that may be over before its call is, and one that ends long after.
        let id = background(&desk, "exit 7").await;
        let (task, summary, _) = ending(&mut events).await;
        assert_eq!(task, id);
        assert!(summary.contains("ended with exit code 7"), "{summary}");
        let id = background(&desk, "until [ -e go ]; do sleep 0.01; done; echo out").await;
        std::fs::write(desk.path("ws/go"), "").unwrap();
        let (task, _, output_file) = ending(&mut events).await;
        assert_eq!(task, id);
        assert_eq!(std::fs::read_to_string(output_file.unwrap()).unwrap(), "out\n");
    });
}

/// Where commands may use this machine's ports, one reaches what another serves, and learns when it does not serve.
#[test]
fn a_server_in_the_background_is_reached_by_the_next_command() {
    on_runtime(async {
        let desk = Desk::with(|surroundings| surroundings.sandbox.local_binding = true);
        std::fs::write(desk.path("ws/page"), "hello").unwrap();
        let serve = "import http.server as h; s = h.HTTPServer((\"127.0.0.1\", 0), h.SimpleHTTPRequestHandler); \
                     open(\"port\", \"w\").write(str(s.server_port)); s.serve_forever()";
        let id = background(&desk, &format!("python3 -c '{serve}'")).await;
        let wait = "until [ -s port ]; do sleep 0.01; done; cat port";
        let port = output(&desk.bash(wait).await).model_text();
        let fetch =
            format!("curl -s --retry 20 --retry-all-errors --retry-delay 1 http://127.0.0.1:{port}/page");
        assert_eq!(output(&desk.bash(&fetch).await).model_text(), "hello");
        desk.call("TaskStop", json!({ "task_id": id })).await;
        let closed = desk.bash(&format!("curl -s http://127.0.0.1:{port}/page")).await;
        assert_eq!(structured(&closed)["exitCode"], json!(7), "the refused connection is curl's own to tell");
    });
}

#[test]
fn there_is_a_limit() {
    on_runtime(async {
        let desk = Desk::with(|surroundings| surroundings.max_background_tasks = 2);
        background(&desk, "sleep 1000").await;
        let id = background(&desk, "sleep 1000").await;
        let closed = desk.call("Bash", json!({ "command": "sleep 1", "run_in_background": true })).await;
        assert!(closed.result.unwrap_err().reason.contains("2 commands run in the background already"));
        desk.call("TaskStop", json!({ "task_id": id })).await;
        background(&desk, "true").await;
    });
}

#[test]
fn a_command_that_runs_out_of_time_can_go_on() {
    on_runtime(async {
        let desk = Desk::with(|surroundings| surroundings.on_timeout = OnTimeout::Background);
        let command = "echo early; until [ -e go ]; do sleep 0.01; done; echo late";
        let closed = desk.call("Bash", json!({ "command": command, "timeout": 100 })).await;
        let id = structured(&closed)["backgroundTaskId"].as_str().unwrap().to_owned();
        std::fs::write(desk.path("ws/go"), "").unwrap();
        let ended = task_output(&desk, json!({ "task_id": id })).await;
        assert_eq!(ended["output"], json!("early\nlate\n"));
    });
}

#[test]
fn what_a_command_leaves_running_becomes_a_task() {
    on_runtime(async {
        let desk = Desk::new();
        let closed = desk.bash("(setsid sleep 1000 >/dev/null 2>&1 &); echo done").await;
        let text = output(&closed).model_text();
        assert!(text.contains("still run, as task_1"), "{text}");
        desk.wait_alive(1);
        desk.call("TaskStop", json!({ "task_id": "task_1" })).await;
        assert_eq!(desk.alive(), Vec::<String>::new());
    });
}

#[test]
fn the_end_of_the_session_ends_every_task() {
    on_runtime(async {
        let desk = Desk::new();
        for _ in 0..5 {
            background(&desk, "trap '' TERM; setsid sleep 1000 & sleep 1000").await;
        }
        desk.wait_alive(1);
        let mark = desk.mark.clone();
        let temp = desk.path("temp");
        assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 1);
        drop(desk.session);
        assert_eq!(alive(&mark), Vec::<String>::new());
        // The private directory goes with the session.
        assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
        gone(&mark).await;
    });
}
