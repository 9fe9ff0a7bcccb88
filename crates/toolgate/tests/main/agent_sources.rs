//! What a run brings in beside its prompt: attached files, a key that a program prints, a status line.

use super::agent_fixture::ScriptedModel;
use super::cli_fixture::{CliFixture, cli_run};
use super::terminal_prompt::PtySession;
use serde_json::{Value, json};

/// Settings of the user.
fn write_user_settings(fixture: &CliFixture, settings: &Value) {
    let dir = fixture.beside("home/.config/toolgate");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("settings.json"), settings.to_string()).unwrap();
}

#[test]
fn attached_files_go_to_the_model_through_the_gate() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\ntwo\nthree\nfour\n");
    fixture.write("secret.txt", "tangerine\n");
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Seen." }] }));
    let run = model.run(&fixture, "anthropic", &["run", "-p", "--file", "a.txt:2-3", "--", "what is this?"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "Seen."), "{}", run.stderr);
    let request = model.requests()[0].to_string();
    assert!(
        request.contains("a.txt:2-3") && request.contains("two") && request.contains("three"),
        "{request}"
    );
    assert!(!request.contains("four") && request.contains("what is this?"), "{request}");
    assert!(fixture.run(&["log", "--json"]).stdout.contains("attached_"), "it is on record");
    for (spec, says) in
        [("secret.txt", "Read(secret.txt)"), ("absent.txt", "absent.txt"), ("a.txt:4-2", "lines")]
    {
        let args = ["run", "-p", "--disallowedTools", "Read(secret.txt)", "--file", spec, "--", "x"];
        let run = model.run(&fixture, "anthropic", &args);
        assert!(run.code == 2 && run.stderr.contains(says), "{spec}: {}", run.stderr);
        assert!(!run.stderr.contains("tangerine"));
    }
    assert_eq!(model.requests().len(), 1, "nothing was asked without what it was meant with");
}

#[test]
fn a_key_helper_of_the_user_brings_the_key_and_one_of_a_project_does_not_run() {
    let fixture = CliFixture::new();
    let marker = fixture.beside("home/asked");
    let helper = format!("echo x >> {}; echo sk-from-helper", marker.display());
    let settings = json!({ "apiKeyHelper": helper });
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "One." }] }));
    let run = |fixture: &CliFixture| {
        let mut command = fixture.command(&["run", "-p", "hello"]);
        command.env("ANTHROPIC_BASE_URL", &model.base);
        cli_run(command.output().unwrap())
    };
    // The settings of a project name no program.
    fixture.write(".claude/settings.json", &settings.to_string());
    run(&fixture);
    assert!(!marker.exists(), "no program of the project ran");
    std::fs::remove_file(fixture.path(".claude/settings.json")).unwrap();
    model.play(&json!({ "turns": [{ "text": "One." }] }));
    write_user_settings(&fixture, &settings);
    let answered = run(&fixture);
    assert_eq!((answered.code, answered.stdout.trim()), (0, "One."), "{}", answered.stderr);
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), "x\n", "asked once");
    assert_eq!(model.seen()["requests"][0]["headers"]["x-api-key"], "sk-from-helper");
    assert!(!fixture.run(&["log", "--json"]).stdout.contains("sk-from-helper"));
    assert!(!answered.stderr.contains("sk-from-helper"));
    for (helper, says) in
        [("exit 3", "exit code 3"), ("true", "printed no key"), ("echo two words", "printed no key")]
    {
        write_user_settings(&fixture, &json!({ "apiKeyHelper": helper }));
        let failed = run(&fixture);
        assert!(
            failed.code == 1 && failed.stderr.contains(says),
            "{helper}: {} {}",
            failed.stdout,
            failed.stderr
        );
        assert!(!failed.stderr.contains("two words"));
    }
}

#[test]
fn a_status_line_is_shown_before_each_prompt() {
    let fixture = CliFixture::new();
    let command = "grep -o '\"permission_mode\":\"[a-zA-Z]*\"' | sed 's/.*:/STATUS/'";
    write_user_settings(&fixture, &json!({ "statusLine": { "type": "command", "command": command } }));
    let model = ScriptedModel::new(&json!({ "turns": [] }));
    let line = format!("ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=k \"$0\" run", model.base);
    let mut session = PtySession::start(&fixture, &line);
    session.wait_for("STATUS\"default\"");
    session.send_keys("/mode plan\n");
    session.wait_for("STATUS\"plan\"");
    session.send_keys("\u{4}");
    let (code, screen) = session.finish();
    assert_eq!(code, 0, "{screen}");
}

/// An editor that offers its tools over a WebSocket, to those who know its token. Its user has a file of `folder` open,
/// and some of `selected` marked. Ends with the process of the test.
fn start_editor(token: &'static str, folder: &std::path::Path, selected: &'static str) -> u16 {
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let uri = |name: &str| format!("file://{}", folder.join(name).display());
    let selection = json!({ "success": true, "text": "the marked words", "filePath": folder.join(selected),
        "selection": { "start": { "line": 2, "character": 0 }, "end": { "line": 4, "character": 1 } } });
    let answers = json!({
        "getOpenEditors": { "tabs": [{ "uri": uri("b.rs") }, { "uri": uri("a.rs"), "isActive": true }] },
        "getCurrentSelection": selection,
        "getDiagnostics": [
            { "uri": uri("a.rs"), "diagnostics": [{ "message": "unused variable", "range": { "start": { "line": 2 } } }] },
            { "uri": uri("secret.txt"), "diagnostics": [{ "message": "a problem with tangerine" }] },
        ],
        "openDiff": { "shown": "the diff was shown" },
    });
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let check = |request: &Request, mut response: Response| {
                    let given = request.headers().get("x-claude-code-ide-authorization");
                    match given.is_some_and(|given| given == token) {
                        true => {
                            response.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
                            Ok(response)
                        }
                        false => Err(ErrorResponse::new(None)),
                    }
                };
                let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, check).await else { continue };
                while let Some(Ok(message)) = socket.next().await {
                    let Message::Text(text) = message else { continue };
                    let request: Value = serde_json::from_str(&text).unwrap();
                    let result = match request["method"].as_str().unwrap() {
                        "initialize" => json!({
                            "protocolVersion": request["params"]["protocolVersion"],
                            "capabilities": { "tools": {} }, "serverInfo": { "name": "editor", "version": "1" },
                        }),
                        "tools/list" => {
                            let schema = json!({ "type": "object", "properties": {} });
                            let tool = |name: &String| json!({ "name": name, "inputSchema": schema });
                            let tools: Vec<Value> = answers.as_object().unwrap().keys().map(tool).collect();
                            json!({ "tools": tools })
                        }
                        "tools/call" => {
                            let text = answers[request["params"]["name"].as_str().unwrap()].to_string();
                            json!({ "content": [{ "type": "text", "text": text }] })
                        }
                        _ => json!({}),
                    };
                    if request["id"].is_null() {
                        continue;
                    }
                    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
                    socket.send(Message::text(answer.to_string())).await.unwrap();
                }
            }
        });
    });
    port
}

#[test]
fn the_editor_of_this_workspace_brings_its_tools_to_those_who_know_its_token() {
    let fixture = CliFixture::new();
    let port = start_editor("the-token", &fixture.path(""), "a.rs");
    let dir = fixture.beside("home/.claude/ide");
    std::fs::create_dir_all(&dir).unwrap();
    let lock = |token: &str, folder: std::path::PathBuf| {
        let lock = json!({ "pid": 1, "workspaceFolders": [folder], "ideName": "E", "transport": "ws", "authToken": token });
        std::fs::write(dir.join(format!("{port}.lock")), lock.to_string()).unwrap();
    };
    let call = json!({ "tools": [{ "name": "mcp__ide__getDiagnostics", "input": {} }] });
    let model = ScriptedModel::new(&json!({ "turns": [call, { "text": "Fixed." }] }));
    let args = ["run", "-p", "--ide", "--allowedTools", "mcp__ide__getDiagnostics", "--", "what is wrong?"];
    let run = model.run(&fixture, "anthropic", &args);
    assert!(run.code == 2 && run.stderr.contains("no editor that has"), "{}", run.stderr);
    lock("the-token", fixture.beside("home"));
    let run = model.run(&fixture, "anthropic", &args);
    assert!(run.code == 2 && run.stderr.contains("no editor that has"), "another workspace: {}", run.stderr);
    lock("another-token", fixture.path(""));
    let run = model.run(&fixture, "anthropic", &args);
    assert!(run.code == 2 && run.stderr.contains("--ide"), "{}", run.stderr);
    assert!(!run.stderr.contains("another-token"));
    assert!(model.requests().is_empty());
    lock("the-token", fixture.path(""));
    let run = model.run(&fixture, "anthropic", &args);
    assert_eq!((run.code, run.stdout.trim()), (0, "Fixed."), "{}", run.stderr);
    assert!(model.requests()[1].to_string().contains("unused variable"));
    // Its tools are judged like any other.
    let call = json!({ "tools": [{ "name": "mcp__ide__openDiff", "input": {} }] });
    model.play(&json!({ "turns": [call, { "text": "No." }] }));
    let run = model.run(&fixture, "anthropic", &["run", "-p", "--ide", "what is wrong?"]);
    assert_eq!(run.stdout.trim(), "No.", "{}", run.stderr);
    assert!(!model.requests()[1].to_string().contains("the diff was shown"));
}

#[test]
fn what_the_editor_shows_goes_with_the_prompt_except_text_that_may_not_be_read() {
    for (selected, is_sent) in [("a.rs", true), ("secret.txt", false), ("../outside.txt", false)] {
        let fixture = CliFixture::new();
        let port = start_editor("the-token", &fixture.path(""), selected);
        let dir = fixture.beside("home/.claude/ide");
        std::fs::create_dir_all(&dir).unwrap();
        let lock =
            json!({ "workspaceFolders": [fixture.path("")], "transport": "ws", "authToken": "the-token" });
        std::fs::write(dir.join(format!("{port}.lock")), lock.to_string()).unwrap();
        let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Seen." }] }));
        let args = ["run", "-p", "--ide", "--disallowedTools", "Read(secret.txt)", "--", "what is this?"];
        let run = model.run(&fixture, "anthropic", &args);
        assert_eq!((run.code, run.stdout.trim()), (0, "Seen."), "{}", run.stderr);
        let prompt = model.requests()[0]["messages"].to_string();
        assert!(prompt.contains("a.rs, ") && prompt.contains("b.rs"), "{prompt}");
        assert!(prompt.contains("a.rs:3: unused variable") && !prompt.contains("tangerine"), "{prompt}");
        assert_eq!(prompt.contains("lines 3 to 5:\\nthe marked words"), is_sent, "{selected}: {prompt}");
        assert!(prompt.contains("what is this?"));
        assert!(fixture.run(&["log", "--json"]).stdout.contains("editor_"), "it is on record");
    }
    // A deny rule holds for what the editor shows too.
    let fixture = CliFixture::new();
    let port = start_editor("the-token", &fixture.path(""), "a.rs");
    let dir = fixture.beside("home/.claude/ide");
    std::fs::create_dir_all(&dir).unwrap();
    let lock = json!({ "workspaceFolders": [fixture.path("")], "authToken": "the-token" });
    std::fs::write(dir.join(format!("{port}.lock")), lock.to_string()).unwrap();
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Seen." }] }));
    let args = ["run", "-p", "--ide", "--disallowedTools", "mcp__ide", "--", "what is this?"];
    let run = model.run(&fixture, "anthropic", &args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!model.requests()[0].to_string().contains("the marked words"));
}
