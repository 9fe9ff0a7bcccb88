//! A host program drives the binary by frames on its standard streams: every request gets its answer.

use super::agent_fixture::ScriptedModel;
use super::cli_fixture::CliFixture;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use toolgate::AbsPath;
use toolgate::state::{NewSchedule, ScheduleStore, ScheduleTime};

/// No frame takes longer to come.
const FRAME_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest line that hosts read.
const MAX_LINE_BYTES: usize = 1024 * 1024;

pub(super) const HOST: [&str; 5] = ["run", "--output-format", "stream-json", "--input-format", "stream-json"];

/// The program, driven by frames.
pub(super) struct HostedProgram {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The frames so far, answers apart.
    pub(super) frames: Vec<Value>,
    requests: usize,
}

impl HostedProgram {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command
            .env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, frames: Vec::new(), requests: 0 }
    }

    pub(super) fn send(&mut self, frame: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{frame}").unwrap();
        input.flush().unwrap();
    }

    /// The next frame that fits; all others are kept.
    pub(super) fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(FRAME_TIMEOUT).unwrap();
            assert!(line.len() < MAX_LINE_BYTES, "a line of {} bytes ends a session", line.len());
            let frame: Value = serde_json::from_str(&line).unwrap();
            self.frames.push(frame.clone());
            if fits(&frame) {
                return frame;
            }
        }
    }

    /// A frame that fits and came since `from`, the number of frames at that moment: an event may come before the answer
    /// to the request that caused it.
    pub(super) fn wait_for_since(&mut self, from: usize, fits: impl Fn(&Value) -> bool) -> Value {
        match self.frames.iter().skip(from).find(|frame| fits(frame)).cloned() {
            Some(frame) => frame,
            None => self.wait_for(fits),
        }
    }

    /// Sends a request and gives its answer.
    pub(super) fn request(&mut self, subtype: &str, fields: &Value) -> Value {
        self.requests += 1;
        let id = format!("req_{}", self.requests);
        let mut request: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
        request.insert("subtype".to_owned(), json!(subtype));
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
        let answer = self.wait_for(|frame| {
            frame["type"] == "control_response" && frame["response"]["request_id"] == json!(id)
        });
        answer["response"].clone()
    }

    /// Sends a prompt.
    pub(super) fn prompt(&mut self, text: &str) {
        self.send(&json!({ "type": "user", "message": { "role": "user", "content": text } }));
    }

    /// Sends a prompt and gives the result of its turn.
    pub(super) fn run_turn(&mut self, text: &str) -> Value {
        self.prompt(text);
        self.wait_for(|frame| frame["type"] == "result")
    }

    /// Sends SIGTERM, with the input still open, and gives the exit code.
    fn terminate(mut self) -> i32 {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        while self.lines.recv_timeout(FRAME_TIMEOUT).is_ok() {}
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Closes the input and gives the exit code.
    pub(super) fn finish(mut self) -> i32 {
        drop(self.input.take());
        while self.lines.recv_timeout(FRAME_TIMEOUT).is_ok() {}
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for HostedProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server whose tools are ours: the program itself.
fn own_server() -> Value {
    json!({ "command": env!("CARGO_BIN_EXE_toolgate"), "args": ["mcp", "serve", "--tools", "ls"] })
}

#[test]
fn a_host_that_ends_the_program_by_a_signal_leaves_a_record_of_its_call() {
    let fixture = CliFixture::new();
    let input = json!({ "command": "touch started; sleep 1000" });
    let call = json!({ "name": "Bash", "input": input, "id": "toolu_1" });
    let model = ScriptedModel::new(&json!({ "turns": [{ "tools": [call] }] }));
    let args = ["--allowedTools", "Bash"].into_iter().chain(HOST).collect::<Vec<_>>();
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &args));
    host.request("initialize", &json!({}));
    host.prompt("go");
    while !fixture.path("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(host.terminate(), 130);
    assert!(fixture.run(&["log"]).stdout.contains("TG-801"));
}

#[test]
fn every_request_of_a_host_gets_its_answer() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [] }));
    let config = json!({ "mcpServers": { "inner": own_server() } }).to_string();
    let settings = json!({ "env": { "SECRET": "tangerine" } }).to_string();
    let more = ["--mcp-config", &config, "--settings", &settings];
    let command = model.command(&fixture, "anthropic", &[&HOST[..], &more].concat());
    let mut host = HostedProgram::start(command);
    let absent = json!({ "serverName": "absent", "enabled": true });
    let inner = |enabled: bool| json!({ "serverName": "inner", "enabled": enabled });
    let second = json!({ "servers": { "second": own_server() } });
    let broken = json!({ "servers": { "broken": { "command": "/nonexistent/server" } } });
    let taken = json!({ "servers": { "inner": own_server() } });
    // A request, the pointer to a value of its answer, and that value; an error has words.
    let table: Vec<(&str, Value, &str, Value)> = vec![
        ("initialize", json!({}), "/hooks_applied", json!(true)),
        ("initialize", json!({}), "error", json!("initialize")),
        ("set_permission_mode", json!({ "mode": "plan" }), "/mode", json!("plan")),
        ("set_permission_mode", json!({ "mode": "loose" }), "error", json!("loose")),
        ("set_permission_mode", json!({ "mode": "auto" }), "/mode", json!("auto")),
        ("set_permission_mode", json!({ "mode": "default" }), "/mode", json!("default")),
        ("set_model", json!({ "model": "haiku" }), "", json!({})),
        ("get_settings", json!({}), "/applied/model", json!("claude-haiku-4-5")),
        ("set_model", json!({ "model": "claude-haiku-4-5" }), "", json!({})),
        ("set_model", json!({ "model": null }), "", json!({})),
        ("set_max_thinking_tokens", json!({ "max_thinking_tokens": 0 }), "", json!({})),
        ("mcp_status", json!({}), "/mcpServers/0/status", json!("connected")),
        ("mcp_status", json!({}), "/mcpServers/0/tools", json!([{ "name": "ls" }])),
        ("mcp_toggle", inner(false), "", json!({})),
        ("mcp_status", json!({}), "/mcpServers/0/status", json!("disabled")),
        ("mcp_status", json!({}), "/mcpServers/0/tools", json!([])),
        ("mcp_reconnect", inner(true), "error", json!("switched off")),
        ("mcp_toggle", inner(true), "", json!({})),
        ("mcp_status", json!({}), "/mcpServers/0/tools", json!([{ "name": "ls" }])),
        ("mcp_reconnect", inner(true), "", json!({})),
        ("mcp_status", json!({}), "/mcpServers/0/status", json!("connected")),
        ("mcp_reconnect", absent.clone(), "error", json!("there is no server `absent`")),
        ("mcp_toggle", absent, "error", json!("there is no server `absent`")),
        ("mcp_toggle", json!({ "serverName": "inner" }), "error", json!("`enabled` is missing")),
        ("mcp_set_servers", second.clone(), "/added", json!(["second"])),
        ("mcp_set_servers", second, "/added", json!([])),
        ("mcp_status", json!({}), "/mcpServers/1/tools", json!([{ "name": "ls" }])),
        ("mcp_set_servers", json!({ "servers": {} }), "/removed", json!(["second"])),
        ("mcp_status", json!({}), "/mcpServers/1", Value::Null),
        ("mcp_set_servers", broken, "/added", json!([])),
        ("mcp_set_servers", taken, "/errors/inner", json!("there is a server `inner` already")),
        ("mcp_set_servers", json!({}), "error", json!("`servers` is missing")),
        ("get_context_usage", json!({}), "/isAutoCompactEnabled", json!(true)),
        ("get_context_usage", json!({}), "/agents/0/agentType", json!("Explore")),
        ("rewind_files", json!({ "user_message_id": "unknown" }), "/canRewind", json!(false)),
        ("rewind_files", json!({}), "error", json!("`user_message_id` is missing")),
        ("stop_task", json!({ "task_id": "unknown" }), "error", json!("unknown")),
        ("interrupt", json!({}), "/still_queued", json!([])),
        ("cancel_async_message", json!({ "message_uuid": "unknown" }), "/cancelled", json!(false)),
        ("list_permission_rules", json!({}), "/rules", json!([])),
        ("get_settings", json!({}), "/applied/model", json!("claude-sonnet-4-5")),
        ("get_settings", json!({}), "/effective/env/SECRET", json!("[set]")),
        ("get_settings", json!({}), "/sources/0/settings/env/SECRET", json!("[set]")),
        ("seed_read_state", json!({ "path": "/etc/hostname" }), "error", json!("outside the workspace")),
        ("mcp_message", json!({ "server_name": "inner", "message": {} }), "", json!({})),
        ("fly_to_the_moon", json!({}), "error", json!("fly_to_the_moon")),
        ("", json!({}), "error", json!("does not know")),
    ];
    for (subtype, fields, place, wanted) in table {
        let answer = host.request(subtype, &fields);
        if place == "error" {
            let words = wanted.as_str().unwrap();
            assert_eq!(answer["subtype"], "error", "{subtype} {fields}: {answer}");
            assert!(answer["error"].as_str().unwrap().contains(words), "{subtype} {fields}: {answer}");
        } else {
            assert_eq!(answer["subtype"], "success", "{subtype} {fields}: {answer}");
            let found = answer["response"].pointer(place).cloned().unwrap_or_default();
            assert_eq!(found, wanted, "{subtype} {fields}: {answer}");
        }
    }
    assert_eq!(host.finish(), 0);
}

#[test]
fn states_denials_and_frames_that_fit() {
    let fixture = CliFixture::new();
    let write = json!({ "tools": [{ "name": "Write", "input": { "file_path": fixture.path("a.txt"), "content": "x" }, "id": "toolu_w" }] });
    let long = "tangerine ".repeat(200_000);
    let model = ScriptedModel::new(&json!({ "turns": [write, { "text": long }] }));
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &HOST));
    host.request("set_model", &json!({ "model": "claude-haiku-4-5" }));
    let result = host.run_turn("write it");
    assert_eq!(result["subtype"], "success");
    assert!(result["result"].as_str().unwrap().contains("the frame was too long"));
    host.wait_for(|frame| frame["state"] == "idle");
    let states: Vec<&str> = host.frames.iter().filter_map(|frame| frame["state"].as_str()).collect();
    assert_eq!(states, ["running", "idle"]);
    let denied = host.frames.iter().find(|frame| frame["subtype"] == "permission_denied").unwrap();
    assert_eq!((&denied["tool_name"], &denied["tool_use_id"]), (&json!("Write"), &json!("toolu_w")));
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "toolu_w");
    assert!(model.requests().iter().all(|body| body["model"] == "claude-haiku-4-5"));
    // A prompt that waits can be withdrawn, and an interrupt that comes too early holds for the next turn.
    model.play(&json!({ "turns": [{ "text": "This one hangs.", "hang_after": 1 }, { "text": "Next." }] }));
    host.prompt("hang");
    host.wait_for(|frame| frame["state"] == "running");
    host.send(&json!({ "type": "user", "uuid": "u-2", "message": { "role": "user", "content": "later" } }));
    let answer = host.request("cancel_async_message", &json!({ "message_uuid": "u-2" }));
    assert_eq!(answer["response"]["cancelled"], true);
    let before = host.frames.len();
    host.request("interrupt", &json!({}));
    let result = host.wait_for_since(before, |frame| frame["type"] == "result");
    assert_eq!(result["subtype"], "error_during_execution");
    // Two turns: the request that was given up may reach the model after the new script, and take one.
    model.play(&json!({ "turns": [{ "text": "Next." }, { "text": "Next." }] }));
    assert_eq!(host.run_turn("go on")["result"], "Next.");
    assert_eq!(host.finish(), 0);
}

#[test]
fn an_agent_that_ended_goes_on_with_a_message_and_one_under_way_can_be_stopped() {
    let fixture = CliFixture::new();
    let agent = |background: bool| {
        let input =
            json!({ "description": "look", "prompt": "find the word", "run_in_background": background });
        json!({ "tools": [{ "name": "Agent", "input": input }] })
    };
    let inner = |turns: Value| json!({ "when": { "system_contains": "another agent gave you one task" }, "turns": turns });
    let script = json!({ "lanes": [inner(json!([{ "text": "First." }])), { "turns": [agent(false), { "text": "Ok." }] }] });
    let model = ScriptedModel::new(&script);
    let args = [&HOST[..], &["--allowedTools", "Agent"]].concat();
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &args));
    assert_eq!(host.run_turn("start it")["result"], "Ok.");
    let started = host.frames.iter().find(|frame| frame["subtype"] == "task_started").unwrap();
    let id = started["task_id"].as_str().unwrap().to_owned();
    let send =
        json!({ "tools": [{ "name": "SendMessage", "input": { "to": id, "message": "and the second?" } }] });
    model.play(
        &json!({ "lanes": [inner(json!([{ "text": "Second." }])), { "turns": [send, { "text": "Told." }] }] }),
    );
    assert_eq!(host.run_turn("go on with it")["result"], "Told.");
    let resumed = model.requests()[1].to_string();
    assert!(resumed.contains("First.") && resumed.contains("and the second?"), "{resumed}");
    assert!(model.requests()[2].to_string().contains("Second."));
    // One that hangs in the background is stopped, and the turn goes on without it.
    let hanging = inner(json!([{ "text": "This one hangs.", "hang_after": 1 }]));
    model.play(&json!({ "lanes": [hanging, { "turns": [agent(true), { "text": "Waiting." }, { "text": "It was stopped." }] }] }));
    host.prompt("again");
    let started = host.wait_for(|frame| frame["subtype"] == "task_started");
    assert_eq!(started["is_backgrounded"], true);
    host.wait_for(|frame| frame["type"] == "assistant" && frame.to_string().contains("Waiting."));
    let before = host.frames.len();
    let answer = host.request("stop_task", &json!({ "task_id": started["task_id"] }));
    assert_eq!(answer["subtype"], "success", "{answer}");
    let result = host.wait_for_since(before, |frame| frame["type"] == "result");
    assert_eq!(result["result"], "It was stopped.");
    let ended = host.frames.iter().rev().find(|frame| frame["subtype"] == "task_notification").unwrap();
    assert_eq!((&ended["status"], &ended["task_id"]), (&json!("stopped"), &started["task_id"]));
    assert_eq!(model.seen()["violations"], json!([]));
    assert_eq!(host.finish(), 0);
}

/// A host shows the questions of the agent as the SDKs have it: a permission request whose answer carries `answers`.
#[test]
fn questions_of_the_agent_reach_the_host_and_its_answers_the_model() {
    let options = json!([{ "label": "SQLite", "description": "a file" }, { "label": "Postgres", "description": "a server" }]);
    let ask = json!({ "tools": [{ "name": "AskUserQuestion", "id": "toolu_q", "input": { "questions": [
        { "question": "Which database?", "header": "Database", "options": options, "multiSelect": true },
    ] } }] });
    let allow = |answers: Value| json!({ "behavior": "allow", "updatedInput": { "answers": answers } });
    for (answer, says) in [
        (allow(json!({ "Which database?": "Postgres" })), "Which database?\\n  Postgres"),
        (allow(json!({ "Which database?": "Postgres, neither" })), "Which database?\\n  Postgres, neither"),
        (allow(json!({ "Which database?": ["SQLite", "Postgres"] })), "Which database?\\n  SQLite, Postgres"),
        (allow(json!({})), "did not want to answer"),
        (json!({ "behavior": "allow" }), "did not want to answer"),
        (json!({ "behavior": "deny", "message": "not now" }), "did not want to answer: not now"),
        (json!({ "behavior": "maybe" }), "no answer"),
    ] {
        let fixture = CliFixture::new();
        let model = ScriptedModel::new(&json!({ "turns": [ask, { "text": "Ok." }] }));
        let args = [&HOST[..], &["--permission-prompt-tool", "stdio"]].concat();
        let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &args));
        host.prompt("choose");
        let request = host.wait_for(|frame| frame["type"] == "control_request");
        assert_eq!(request["request"]["tool_name"], "AskUserQuestion", "{request}");
        assert_eq!(request["request"]["tool_use_id"], "toolu_q");
        assert_eq!(request["request"]["input"]["questions"][0]["multiSelect"], true);
        host.send(&json!({ "type": "control_response", "response": {
            "subtype": "success", "request_id": request["request_id"], "response": answer,
        } }));
        host.wait_for(|frame| frame["type"] == "result");
        let sent = model.requests()[1].to_string();
        assert!(sent.contains(says), "{answer}: {sent}");
        assert_eq!(host.finish(), 0);
    }
}

/// Flags with which the SDKs start the program, and what each does.
#[test]
fn flags_of_the_sdks_work() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "One." }] }));
    let managed = json!({ "permissions": { "deny": ["Bash"] } }).to_string();
    let more = [
        "--session-mirror",
        "--await-initialize",
        "--debug-file",
        "/dev/null",
        "--task-budget",
        "5000",
        "--managed-settings",
        &managed,
    ];
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
    host.request("initialize", &json!({}));
    assert_eq!(host.run_turn("hello")["result"], "One.");
    let mirrored: Vec<&Value> =
        host.frames.iter().filter(|frame| frame["type"] == "transcript_mirror").collect();
    assert!(mirrored.len() >= 2, "{mirrored:?}");
    let path = mirrored[0]["filePath"].as_str().unwrap();
    let stored = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sent: Vec<Value> =
        mirrored.iter().flat_map(|frame| frame["entries"].as_array().unwrap().clone()).collect();
    assert_eq!(lines, sent, "what is mirrored is what is stored");
    let seen = model.seen();
    let request = &seen["requests"][0];
    assert_eq!(request["body"]["output_config"]["task_budget"], json!({ "type": "tokens", "total": 5000 }));
    assert!(request["headers"]["anthropic-beta"].to_string().contains("task-budgets"));
    assert!(!request["body"]["tools"].to_string().contains("\"Bash\""), "the administrator's rule holds");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_schedule_of_the_session_runs_between_turns_under_the_rules_of_that_moment() {
    let fixture = CliFixture::new();
    let project = fixture.path("x").parent().unwrap().display().to_string();
    let store = ScheduleStore::open(&AbsPath::new(fixture.beside("state")).unwrap()).unwrap();
    let now = || i64::try_from(toolgate_files::now_millis()).unwrap();
    let add = |session: &str, prompt: &str, durable: bool| {
        let time = ScheduleTime::Wakeup(now() - 1_000);
        let new = NewSchedule::new(time, prompt.to_owned()).with_durable(durable);
        store.create(&project, session, &new, now()).unwrap();
    };
    let write = |name: &str| json!({ "tools": [{ "name": "Write", "input": { "file_path": fixture.path(name), "content": "x" } }] });
    let model = ScriptedModel::new(&json!({ "turns": [write("a.txt"), { "text": "Wrote." }] }));
    let session = "5f0c8a52-3c1e-4f5c-9a53-0d5f5f1f9d11";
    // One that outlives another session is not the host's to run.
    add("another", "of another session", true);
    let args = [&HOST[..], &["--session-id", session, "--allowedTools", "Write"]].concat();
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &args));
    assert_eq!(host.run_turn("write it")["result"], "Wrote.");
    assert!(fixture.path("a.txt").exists());
    model.play(&json!({ "turns": [write("b.txt"), { "text": "I may not." }] }));
    fixture.write(".toolgate/settings.json", r#"{"permissions":{"deny":["Edit(b.txt)"]}}"#);
    let before = host.frames.len();
    add(session, "/compact and look", false);
    let notice = host.wait_for_since(before, |frame| frame["subtype"] == "informational");
    assert!(notice["content"].as_str().unwrap().starts_with("[wake-up "), "{notice}");
    let result = host.wait_for_since(before, |frame| frame["type"] == "result");
    assert_eq!(result["result"], "I may not.");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Write", "{result}");
    assert!(!fixture.path("b.txt").exists());
    let asked = model.requests()[0]["messages"].to_string();
    assert!(asked.contains("/compact and look") && !asked.contains("of another session"), "{asked}");
    let left = store.list_all().unwrap();
    assert_eq!(left.iter().map(|item| item.prompt.as_str()).collect::<Vec<_>>(), ["of another session"]);
    assert_eq!(host.finish(), 0);
}
