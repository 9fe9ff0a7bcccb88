//! An editor drives `toolgate acp`: the client side of the protocol's own crate, over real streams.

use super::agent_fixture::ScriptedModel;
use super::cli_fixture::CliFixture;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, CreateTerminalRequest, CreateTerminalResponse,
    FileSystemCapabilities, InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
    PromptRequest, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    ReleaseTerminalResponse, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    ResumeSessionRequest, SelectedPermissionOutcome, SessionNotification, SetSessionModeRequest, StopReason,
    TerminalExitStatus, TerminalOutputRequest, TerminalOutputResponse, TextContent,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

/// No exchange with the program takes longer.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(120);

/// What an editor saw, and how it answers.
#[derive(Default)]
struct EditorLog {
    updates: Mutex<Vec<Value>>,
    questions: Mutex<Vec<Value>>,
    reads: Mutex<Vec<String>>,
    terminals: Mutex<Vec<Value>>,
    /// Questions that get no answer.
    open: Mutex<Vec<Box<dyn std::any::Any + Send>>>,
    /// The options that are chosen, one after the other, separated by commas; the last one from then on. Empty for none.
    choice: Mutex<String>,
}

impl EditorLog {
    fn choosing(choice: &str) -> Arc<Self> {
        let log = Self::default();
        *log.choice.lock().unwrap() = choice.to_owned();
        Arc::new(log)
    }

    /// The option for the next question.
    fn next_choice(&self) -> String {
        let mut choice = self.choice.lock().unwrap();
        match choice.clone().split_once(',') {
            Some((first, rest)) => {
                *choice = rest.to_owned();
                first.to_owned()
            }
            None => choice.clone(),
        }
    }

    /// The updates of a kind.
    fn of_kind(&self, kind: &str) -> Vec<Value> {
        let updates = self.updates.lock().unwrap();
        updates.iter().filter(|update| update["sessionUpdate"] == kind).cloned().collect()
    }

    /// The text of the agent.
    fn text(&self) -> String {
        let chunks = self.of_kind("agent_message_chunk");
        chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }
}

/// The program, connected to an editor by two sockets.
struct AcpProgram {
    child: Child,
    input: UnixStream,
    output: UnixStream,
}

fn start_agent(mut command: Command) -> AcpProgram {
    let ((input, their_input), (output, their_output)) =
        (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    let child = command
        .stdin(Stdio::from(OwnedFd::from(their_input)))
        .stdout(Stdio::from(OwnedFd::from(their_output)))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    input.set_nonblocking(true).unwrap();
    output.set_nonblocking(true).unwrap();
    AcpProgram { child, input, output }
}

/// Lets an editor talk to the program; gives the exit code.
fn drive<T>(
    command: Command,
    log: &Arc<EditorLog>,
    talk: impl AsyncFnOnce(ConnectionTo<Agent>) -> Result<T, Error>,
) -> (T, i32) {
    let AcpProgram { mut child, input, output } = start_agent(command);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let talked = runtime.block_on(async {
        let input = tokio::net::UnixStream::from_std(input).unwrap();
        let output = tokio::net::UnixStream::from_std(output).unwrap();
        let streams = ByteStreams::new(input.compat_write(), output.compat());
        let [updates, questions, reads, created, waited, shown] = std::array::from_fn(|_| Arc::clone(log));
        let connected = Client
            .v1()
            .on_receive_notification(
                async move |notification: SessionNotification, _| {
                    updates.updates.lock().unwrap().push(json!(notification.update));
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: RequestPermissionRequest, responder, _| {
                    questions.questions.lock().unwrap().push(json!(request));
                    let choice = questions.next_choice();
                    if choice == "never" {
                        // The question stays open until the connection ends.
                        questions.open.lock().unwrap().push(Box::new(responder));
                        return Ok(());
                    }
                    let outcome = match choice.as_str() {
                        "" => RequestPermissionOutcome::Cancelled,
                        _ => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(choice)),
                    };
                    responder.respond(RequestPermissionResponse::new(outcome))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: ReadTextFileRequest, responder, _| {
                    reads.reads.lock().unwrap().push(request.path.to_string_lossy().into_owned());
                    responder.respond(ReadTextFileResponse::new("not saved yet\n"))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: CreateTerminalRequest, responder, _| {
                    created.terminals.lock().unwrap().push(json!(request));
                    responder.respond(CreateTerminalResponse::new("t1"))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |_: WaitForTerminalExitRequest, responder, _| {
                    drop(waited.terminals.lock().unwrap());
                    responder
                        .respond(WaitForTerminalExitResponse::new(TerminalExitStatus::new().exit_code(0)))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |_: TerminalOutputRequest, responder, _| {
                    drop(shown.terminals.lock().unwrap());
                    responder.respond(TerminalOutputResponse::new("seen in the terminal", false))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |_: ReleaseTerminalRequest, responder, _| {
                    responder.respond(ReleaseTerminalResponse::new())
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(streams, async |connection| {
                let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
                let capabilities = ClientCapabilities::new().fs(files).terminal(true);
                let initialize =
                    InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities);
                let answer = connection.send_request(initialize).block_task().await?;
                assert_eq!(answer.protocol_version, ProtocolVersion::V1);
                assert!(answer.agent_capabilities.load_session);
                talk(connection).await
            });
        tokio::time::timeout(EXCHANGE_TIMEOUT, connected).await.unwrap().unwrap()
    });
    drop(runtime);
    (talked, wait_for_end(&mut child))
}

/// The exit code of a program that must end by itself.
fn wait_for_end(child: &mut Child) -> i32 {
    let deadline = std::time::Instant::now() + EXCHANGE_TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        assert!(std::time::Instant::now() < deadline, "the program goes on without its editor");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A new session in the workspace.
async fn new_session(
    connection: &ConnectionTo<Agent>,
    fixture: &CliFixture,
) -> Result<(String, Value), Error> {
    let answer = connection.send_request(NewSessionRequest::new(fixture.path(""))).block_task().await?;
    Ok((answer.session_id.0.to_string(), json!(answer.modes)))
}

/// Sends a prompt and waits for the end of its turn.
async fn prompt(connection: &ConnectionTo<Agent>, session: &str, text: &str) -> Result<StopReason, Error> {
    let content = vec![ContentBlock::Text(TextContent::new(text))];
    let request = PromptRequest::new(session.to_owned(), content);
    Ok(connection.send_request(request).block_task().await?.stop_reason)
}

fn write_call(fixture: &CliFixture, name: &str) -> Value {
    let input = json!({ "file_path": fixture.path(name), "content": "hello\n" });
    json!({ "tools": [{ "name": "Write", "input": input, "id": format!("toolu_{}", name.replace('.', "_")) }] })
}

#[test]
fn a_turn_asks_shows_its_changes_and_its_plan_and_can_be_loaded_again() {
    let fixture = CliFixture::new();
    let todos = json!({ "name": "TodoWrite", "input": { "todos": [
        { "content": "Write it", "status": "completed", "activeForm": "Writing" },
        { "content": "Test it", "status": "in_progress", "activeForm": "Testing" },
    ] } });
    let script = json!({ "turns": [
        write_call(&fixture, "new.txt"), { "tools": [todos] }, { "text": "Done." },
    ] });
    let model = ScriptedModel::new(&script);
    let log = EditorLog::choosing("allow_once");
    let args = ["acp", "--tool-groups", "tasks"];
    let (id, code) = drive(model.command(&fixture, "anthropic", &args), &log, async |connection| {
        let (id, modes) = new_session(&connection, &fixture).await?;
        assert_eq!(modes["currentModeId"], "default");
        assert_eq!(prompt(&connection, &id, "write it").await?, StopReason::EndTurn);
        Ok(id)
    });
    assert_eq!(code, 0);
    assert_eq!(std::fs::read_to_string(fixture.path("new.txt")).unwrap(), "hello\n");
    let questions = log.questions.lock().unwrap();
    assert_eq!(questions.len(), 1, "{questions:?}");
    let asked = questions[0]["toolCall"].to_string();
    assert!(asked.contains("toolu_new_txt") && asked.contains("\"type\":\"diff\""), "{asked}");
    let options: Vec<&str> = questions[0]["options"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|option| option["kind"].as_str())
        .collect();
    assert!(options.contains(&"allow_always") && options.contains(&"reject_once"), "{options:?}");
    let announced = log.of_kind("tool_call");
    assert_eq!(
        (&announced[0]["toolCallId"], &announced[0]["kind"]),
        (&json!("toolu_new_txt"), &json!("edit"))
    );
    assert_eq!(announced[0]["locations"][0]["path"], json!(fixture.path("new.txt")));
    let updates = log.of_kind("tool_call_update");
    let done = updates.iter().find(|update| update["status"] == "completed").unwrap();
    assert_eq!(done["content"][0]["type"], "diff", "{done}");
    assert_eq!(done["content"][0]["newText"], "hello\n");
    let plan = log.of_kind("plan");
    assert_eq!(plan[0]["entries"][1]["status"], "in_progress", "{plan:?}");
    let commands = log.of_kind("available_commands_update");
    assert!(commands[0].to_string().contains("\"compact\""), "{commands:?}");
    assert_eq!(log.text(), "Done.");
    assert!(!log.of_kind("usage_update").is_empty());
    assert_eq!(model.seen()["violations"], json!([]));

    // Another process goes on with the session.
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Again." }] }));
    let log = EditorLog::choosing("");
    drive(model.command(&fixture, "anthropic", &["acp"]), &log, async |connection| {
        let unknown = LoadSessionRequest::new("0199aa00-0000-7000-8000-000000000001", fixture.path(""));
        assert!(connection.send_request(unknown).block_task().await.is_err());
        let load = LoadSessionRequest::new(id.clone(), fixture.path(""));
        connection.send_request(load).block_task().await?;
        assert_eq!(prompt(&connection, &id, "and now?").await?, StopReason::EndTurn);
        Ok(())
    });
    assert!(log.of_kind("user_message_chunk")[0].to_string().contains("write it"));
    assert_eq!(log.of_kind("tool_call").len(), 2);
    assert_eq!(log.text(), "Done.Again.");
    assert!(model.requests()[0].to_string().contains("write it"));
}

#[test]
fn what_the_editor_does_not_allow_does_not_happen() {
    for choice in ["reject_once", "", "allow_everything"] {
        let fixture = CliFixture::new();
        let model = ScriptedModel::new(
            &json!({ "turns": [write_call(&fixture, "new.txt"), { "text": "I may not." }] }),
        );
        let log = EditorLog::choosing(choice);
        let command = model.command(&fixture, "chat", &["acp"]);
        drive(command, &log, async |connection| {
            let (id, _) = new_session(&connection, &fixture).await?;
            prompt(&connection, &id, "write it").await
        });
        assert!(!fixture.path("new.txt").exists(), "{choice}");
        assert!(log.of_kind("tool_call_update").iter().any(|update| update["status"] == "failed"));
        assert_eq!(log.text(), "I may not.");
    }
    // An editor that goes away with a question open.
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [write_call(&fixture, "new.txt"), { "text": "x" }] }));
    let log = EditorLog::choosing("never");
    let (_, code) = drive(model.command(&fixture, "anthropic", &["acp"]), &log, async |connection| {
        let (id, _) = new_session(&connection, &fixture).await?;
        let content = vec![ContentBlock::Text(TextContent::new("write it"))];
        connection.send_request(PromptRequest::new(id, content)).detach();
        while log.questions.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    });
    assert_eq!(code, 0);
    assert!(!fixture.path("new.txt").exists());
    let records = fixture.run(&["log", "--json"]).stdout;
    assert!(records.contains("Write"), "the call left its record: {records}");
}

#[test]
fn a_signal_closes_the_connection_as_the_editor_does() {
    let fixture = CliFixture::new();
    let AcpProgram { mut child, mut input, output } = start_agent(fixture.command(&["acp"]));
    let params = json!({ "protocolVersion": 1 });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    writeln!(input, "{initialize}").unwrap();
    output.set_nonblocking(false).unwrap();
    let mut answer = String::new();
    BufReader::new(&output).read_line(&mut answer).unwrap();
    assert!(answer.contains("protocolVersion"), "{answer}");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    // Without a handler the signal itself would end the process, which then has no exit code.
    assert_eq!(wait_for_end(&mut child), 0);
    drop(input);
}

#[test]
fn a_turn_can_be_cancelled_and_modes_and_commands_work() {
    let fixture = CliFixture::new();
    let script = json!({ "turns": [
        { "text": "This answer hangs in the middle.", "hang_after": 1 }, { "text": "Back." },
        write_call(&fixture, "free.txt"), { "text": "Written." },
        { "error": 400, "message": "no such thing" },
    ] });
    let model = ScriptedModel::new(&script);
    let log = EditorLog::choosing("");
    drive(model.command(&fixture, "anthropic", &["acp"]), &log, async |connection| {
        let (id, _) = new_session(&connection, &fixture).await?;
        let content = vec![ContentBlock::Text(TextContent::new("hang"))];
        let turn = connection.send_request(PromptRequest::new(id.clone(), content));
        while log.text().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // One turn at a time.
        assert!(prompt(&connection, &id, "at once").await.is_err());
        connection.send_notification(CancelNotification::new(id.clone()))?;
        assert_eq!(turn.block_task().await?.stop_reason, StopReason::Cancelled);
        assert_eq!(prompt(&connection, &id, "and now?").await?, StopReason::EndTurn);
        let set = |mode: &str| SetSessionModeRequest::new(id.clone(), mode.to_owned());
        assert!(connection.send_request(set("loose")).block_task().await.is_err());
        connection.send_request(set("acceptEdits")).block_task().await?;
        assert_eq!(prompt(&connection, &id, "write").await?, StopReason::EndTurn);
        assert_eq!(prompt(&connection, &id, "/mode plan").await?, StopReason::EndTurn);
        let failed = prompt(&connection, &id, "fail").await.unwrap_err();
        assert!(failed.message.contains("no such thing"), "{failed:?}");
        assert!(prompt(&connection, "unknown", "x").await.is_err());
        Ok(())
    });
    assert!(log.questions.lock().unwrap().is_empty(), "edits are free in this mode");
    assert!(fixture.path("free.txt").exists());
    assert_eq!(log.of_kind("current_mode_update")[0]["currentModeId"], "plan");
    assert!(log.text().contains("Written.the mode is plan"), "{}", log.text());
}

#[test]
fn files_and_terminals_of_the_editor_are_used_only_through_the_gate() {
    let fixture = CliFixture::new();
    fixture.write("open.txt", "saved\n");
    fixture.write("secret.txt", "saved\n");
    let read = |name: &str| json!({ "name": "EditorRead", "input": { "file_path": fixture.path(name) } });
    let run = json!({ "name": "EditorTerminal", "input": { "command": "make test" } });
    let script = json!({ "turns": [
        { "tools": [read("open.txt")] }, { "tools": [read("secret.txt")] }, { "tools": [run] }, { "tools": [run] },
        { "text": "Done." },
    ] });
    let model = ScriptedModel::new(&script);
    let log = EditorLog::choosing("reject_once,allow_once");
    // An allow rule for the command does not cover running it outside the sandbox.
    let args = ["acp", "--disallowedTools", "Read(secret.txt)", "--allowedTools", "Bash(make *)"];
    drive(model.command(&fixture, "anthropic", &args), &log, async |connection| {
        let (id, _) = new_session(&connection, &fixture).await?;
        prompt(&connection, &id, "look").await
    });
    assert_eq!(*log.reads.lock().unwrap(), [fixture.path("open.txt").to_string_lossy()]);
    let requests = model.requests();
    assert!(requests[1].to_string().contains("not saved yet"));
    assert!(!requests[3].to_string().contains("seen in the terminal"));
    assert!(requests[4].to_string().contains("seen in the terminal"));
    let terminals = log.terminals.lock().unwrap();
    assert_eq!(terminals.len(), 1, "only what was allowed was run: {terminals:?}");
    assert_eq!(terminals[0]["args"], json!(["-c", "make test"]));
    assert_eq!(log.questions.lock().unwrap().len(), 2, "each run is asked about");
}

#[test]
fn sessions_are_listed_and_resumed_without_being_told_again() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "First." }, { "text": "Other." }] }));
    let log = EditorLog::choosing("");
    let (id, _) = drive(model.command(&fixture, "anthropic", &["acp"]), &log, async |connection| {
        let empty = connection.send_request(ListSessionsRequest::new()).block_task().await?;
        assert!(empty.sessions.is_empty() && empty.next_cursor.is_none());
        let (id, _) = new_session(&connection, &fixture).await?;
        prompt(&connection, &id, "remember the tangerine").await?;
        let (other, _) = new_session(&connection, &fixture).await?;
        prompt(&connection, &other, "another one").await?;
        Ok(id)
    });
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Again." }] }));
    let log = EditorLog::choosing("");
    drive(model.command(&fixture, "anthropic", &["acp"]), &log, async |connection| {
        let all = connection.send_request(ListSessionsRequest::new()).block_task().await?;
        let here = ListSessionsRequest::new().cwd(fixture.path(""));
        let here = connection.send_request(here).block_task().await?;
        assert_eq!(json!(all.sessions), json!(here.sessions));
        let titles: Vec<&str> = here.sessions.iter().filter_map(|session| session.title.as_deref()).collect();
        assert_eq!(titles, ["another one", "remember the tangerine"], "the last one first");
        assert!(here.sessions.iter().all(|session| session.updated_at.is_some()));
        let elsewhere = ListSessionsRequest::new().cwd(fixture.beside("home"));
        let elsewhere = connection.send_request(elsewhere).block_task().await?;
        assert!(elsewhere.sessions.is_empty());
        let beyond = ListSessionsRequest::new().cursor("x".to_owned());
        assert!(connection.send_request(beyond).block_task().await.is_err());
        let unknown = ResumeSessionRequest::new("0199aa00-0000-7000-8000-000000000001", fixture.path(""));
        assert!(connection.send_request(unknown).block_task().await.is_err());
        let resume = ResumeSessionRequest::new(id.clone(), fixture.path(""));
        connection.send_request(resume).block_task().await?;
        assert_eq!(prompt(&connection, &id, "what was it?").await?, StopReason::EndTurn);
        Ok(())
    });
    assert!(log.of_kind("user_message_chunk").is_empty(), "the editor has the conversation already");
    assert_eq!(log.text(), "Again.");
    assert!(model.requests()[0].to_string().contains("tangerine"));
}

/// This editor shows no forms: each question is a choice of its own, and choices approve nothing.
#[test]
fn questions_of_the_agent_are_choices_in_the_editor() {
    let options = json!([{ "label": "SQLite", "description": "a file" }, { "label": "Postgres", "description": "a server" }]);
    let ask = json!({ "tools": [{ "name": "AskUserQuestion", "input": { "questions": [
        { "question": "Which database?", "header": "Database", "options": options },
        { "question": "Which port?", "header": "Port", "options": options },
    ] } }] });
    for (choices, wanted) in [
        ("choice_1,skip", Some("Which database?\\n  Postgres\\nWhich port?\\n  (no answer)")),
        ("skip", None),
        ("choice_9", None),
        ("", None),
    ] {
        let fixture = CliFixture::new();
        let model = ScriptedModel::new(&json!({ "turns": [ask, { "text": "Ok." }] }));
        let log = EditorLog::choosing(choices);
        drive(model.command(&fixture, "anthropic", &["acp"]), &log, async |connection| {
            let (id, _) = new_session(&connection, &fixture).await?;
            prompt(&connection, &id, "choose").await
        });
        let request = model.requests()[1].to_string();
        match wanted {
            Some(words) => assert!(request.contains(words), "{choices}: {request}"),
            None => assert!(request.contains("did not want to answer"), "{choices}: {request}"),
        }
        let question = log.questions.lock().unwrap()[0].to_string();
        assert!(question.contains("Which database?") && question.contains("a server"), "{question}");
    }
}
