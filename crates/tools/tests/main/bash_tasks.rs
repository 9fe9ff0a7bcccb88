//! Background tasks: their output, their end and their limits.

use super::bash_properties::wait_until_gone;
use super::shell_fixture::{ShellFixture, block_on_runtime, live_processes, output, structured};
use serde_json::{Value, json};
use toolgate_proto::{Code, Event};
use toolgate_tools::{OnTimeout, Toolset, background_tasks};

async fn background(fixture: &ShellFixture, command: &str) -> String {
    let outcome = fixture.call("Bash", json!({ "command": command, "run_in_background": true })).await;
    structured(&outcome)["backgroundTaskId"].as_str().unwrap().to_owned()
}

async fn task_output(fixture: &ShellFixture, input: Value) -> Value {
    structured(&fixture.call("TaskOutput", input).await)
}

#[test]
fn output_continues_at_the_offset_of_the_previous_result() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let id =
            background(&fixture, "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4").await;
        let mut first = task_output(&fixture, json!({ "task_id": id, "block": false })).await;
        while first["output"] != json!("one\n") {
            first = task_output(&fixture, json!({ "task_id": id, "timeout": 50 })).await;
        }
        assert_eq!((first["status"].clone(), first["exitCode"].clone()), (json!("running"), Value::Null));
        std::fs::write(fixture.path("ws/go"), "").unwrap();
        let rest = task_output(&fixture, json!({ "task_id": id, "offset": first["nextOffset"] })).await;
        assert_eq!((rest["output"].clone(), rest["exitCode"].clone()), (json!("two\n"), json!(4)));
        let file = rest["outputFile"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "one\ntwo\n");
    });
}

#[test]
fn the_older_tool_names_work_and_a_stop_ends_every_process() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        for (stop, field) in [("TaskStop", "task_id"), ("KillShell", "shell_id"), ("KillBash", "shell_id")] {
            let id = background(&fixture, "setsid sleep 1000 & sleep 1000").await;
            let seen =
                structured(&fixture.call("BashOutput", json!({ "bash_id": id, "block": false })).await);
            assert_eq!(seen["status"], json!("running"));
            let mut input = json!({});
            input[field] = json!(id);
            let outcome = fixture.call(stop, input.clone()).await;
            assert!(outcome.result.clone().unwrap().model_text().starts_with("stopped"), "{outcome:?}");
            assert_eq!(fixture.live_processes(), Vec::<String>::new());
            let again = fixture.call(stop, input).await.result.unwrap().model_text();
            assert!(again.contains("already ended"), "{again}");
        }
        let list = output(&fixture.call("TaskOutput", json!({})).await).model_text();
        assert_eq!(list.lines().count(), 3);
        assert_eq!(background_tasks(&fixture.session).len(), 3);
        let refusal = fixture.call("TaskStop", json!({ "task_id": "task_99" })).await.result.unwrap_err();
        assert_eq!(refusal.code, Code::BadArgument);
        assert!(refusal.hint.contains("task_1"), "{}", refusal.hint);
    });
}

#[test]
fn the_end_of_a_task_is_an_event() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let mut events = fixture.gate.events();
        let ending = async |events: &mut tokio::sync::broadcast::Receiver<Event>| loop {
            if let Event::TaskEnded { task, summary, output_file, .. } = events.recv().await.unwrap() {
                return (task, summary, output_file);
            }
        };
        // A task that may end before its call returns, and one that ends later.
        let id = background(&fixture, "exit 7").await;
        let (task, summary, _) = ending(&mut events).await;
        assert_eq!(task, id);
        assert!(summary.contains("ended with exit code 7"), "{summary}");
        let id = background(&fixture, "until [ -e go ]; do sleep 0.01; done; echo out").await;
        std::fs::write(fixture.path("ws/go"), "").unwrap();
        let (task, _, output_file) = ending(&mut events).await;
        assert_eq!(task, id);
        assert_eq!(std::fs::read_to_string(output_file.unwrap()).unwrap(), "out\n");
    });
}

/// With local binding, a command reaches the server of another one, and gets a refused connection when it has stopped.
#[test]
fn a_server_in_the_background_is_reached_by_the_next_command() {
    block_on_runtime(async {
        let fixture = ShellFixture::with(|config| config.sandbox.local_binding = true);
        std::fs::write(fixture.path("ws/page"), "hello").unwrap();
        let serve = "import http.server as h; s = h.HTTPServer((\"127.0.0.1\", 0), h.SimpleHTTPRequestHandler); \
                     open(\"port\", \"w\").write(str(s.server_port)); s.serve_forever()";
        let id = background(&fixture, &format!("python3 -c '{serve}'")).await;
        let wait = "until [ -s port ]; do sleep 0.01; done; cat port";
        let port = output(&fixture.bash(wait).await).model_text();
        let fetch =
            format!("curl -s --retry 20 --retry-all-errors --retry-delay 1 http://127.0.0.1:{port}/page");
        assert_eq!(output(&fixture.bash(&fetch).await).model_text(), "hello");
        fixture.call("TaskStop", json!({ "task_id": id })).await;
        let outcome = fixture.bash(&format!("curl -s http://127.0.0.1:{port}/page")).await;
        assert_eq!(structured(&outcome)["exitCode"], json!(7), "curl reports the refused connection");
    });
}

#[test]
fn the_number_of_background_tasks_is_limited() {
    block_on_runtime(async {
        let fixture = ShellFixture::with(|config| config.max_background_tasks = 2);
        background(&fixture, "sleep 1000").await;
        let id = background(&fixture, "sleep 1000").await;
        let outcome = fixture.call("Bash", json!({ "command": "sleep 1", "run_in_background": true })).await;
        assert!(outcome.result.unwrap_err().reason.contains("2 commands run in the background already"));
        fixture.call("TaskStop", json!({ "task_id": id })).await;
        background(&fixture, "true").await;
    });
}

#[test]
fn a_command_that_reaches_its_timeout_can_become_a_background_task() {
    block_on_runtime(async {
        let fixture = ShellFixture::with(|config| config.on_timeout = OnTimeout::Background);
        let command = "echo early; until [ -e go ]; do sleep 0.01; done; echo late";
        let outcome = fixture.call("Bash", json!({ "command": command, "timeout": 100 })).await;
        let id = structured(&outcome)["backgroundTaskId"].as_str().unwrap().to_owned();
        std::fs::write(fixture.path("ws/go"), "").unwrap();
        let ended = task_output(&fixture, json!({ "task_id": id })).await;
        assert_eq!(ended["output"], json!("early\nlate\n"));
    });
}

#[test]
fn processes_that_outlive_their_shell_become_a_background_task() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let outcome = fixture.bash("(setsid sleep 1000 >/dev/null 2>&1 &); echo done").await;
        let text = output(&outcome).model_text();
        assert!(text.contains("still run, as task_1"), "{text}");
        fixture.wait_for_processes(1);
        fixture.call("TaskStop", json!({ "task_id": "task_1" })).await;
        assert_eq!(fixture.live_processes(), Vec::<String>::new());
    });
}

#[test]
fn the_end_of_the_session_ends_every_task() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        for _ in 0..5 {
            background(&fixture, "trap '' TERM; setsid sleep 1000 & sleep 1000").await;
        }
        fixture.wait_for_processes(1);
        let marker = fixture.marker.clone();
        let temp = fixture.path("temp");
        assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 1);
        drop(fixture.session);
        assert_eq!(live_processes(&marker), Vec::<String>::new());
        // The private directory is removed with the session.
        assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
        wait_until_gone(&marker).await;
    });
}

/// Runs on a clock that goes on at once when every task waits, so that two hours take no time.
fn block_on_paused_clock<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

#[test]
fn a_command_in_the_foreground_has_the_documented_time() {
    for (toolset, tool, default) in [(Toolset::Claude, "Bash", 120_000), (Toolset::Plain, "shell", 30_000)] {
        block_on_paused_clock(async {
            let fixture = ShellFixture::of(toolset, |_| ());
            for (timeout, limit) in [(None, default), (Some(600_000), 600_000)] {
                let mut input = json!({ "command": "sleep 1000000" });
                if let Some(timeout) = timeout {
                    input["timeout"] = json!(timeout);
                }
                let begun = tokio::time::Instant::now();
                let refusal = fixture.call(tool, input).await.result.unwrap_err();
                let waited = begun.elapsed().as_millis();
                assert_eq!(refusal.code, Code::ShellTimedOut, "{refusal}");
                assert!((limit..limit + 10_000).contains(&waited), "{tool}: {waited} ms");
            }
            let longer = json!({ "command": "true", "timeout": 600_001 });
            let refusal = fixture.call(tool, longer).await.result.unwrap_err();
            assert_eq!(refusal.code, Code::BadArgument);
            assert!(refusal.reason.contains("the maximum is 600000 ms"), "{refusal}");
        });
    }
}

#[test]
fn a_command_in_the_background_has_the_documented_time() {
    block_on_paused_clock(async {
        let fixture = ShellFixture::new();
        for (timeout, limit) in [(None, 1_800_000), (Some(7_200_000), 7_200_000)] {
            let mut events = fixture.gate.events();
            let mut input = json!({ "command": "sleep 1000000", "run_in_background": true });
            if let Some(timeout) = timeout {
                input["timeout"] = json!(timeout);
            }
            let begun = tokio::time::Instant::now();
            assert!(fixture.call("Bash", input).await.result.is_ok());
            while !matches!(events.recv().await.unwrap(), Event::TaskEnded { .. }) {}
            let waited = begun.elapsed().as_millis();
            assert!((limit..limit + 10_000).contains(&waited), "{waited} ms");
        }
        let longer = json!({ "command": "true", "run_in_background": true, "timeout": 7_200_001 });
        assert_eq!(fixture.call("Bash", longer).await.result.unwrap_err().kind, "ValidationError");
    });
}

#[test]
fn sixty_four_commands_run_in_the_background_unless_settings_say_otherwise() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        for _ in 0..64 {
            background(&fixture, "sleep 1000").await;
        }
        let one_more = json!({ "command": "sleep 1", "run_in_background": true });
        let refusal = fixture.call("Bash", one_more).await.result.unwrap_err();
        assert!(refusal.reason.contains("64 commands run in the background already"), "{refusal}");
    });
}
