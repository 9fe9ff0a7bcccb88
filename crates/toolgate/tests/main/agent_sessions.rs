//! Sessions: stored as they happen, resumed, forked, rewound, and whole after a kill at any moment.

use super::agent_fixture::{ScriptedModel, result_of};
use super::cli_fixture::{CliFixture, CliRun};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

const STREAM: [&str; 4] = ["run", "-p", "--output-format", "stream-json"];

fn run_prompt(fixture: &CliFixture, script: &Value, more: &[&str]) -> (CliRun, ScriptedModel) {
    let model = ScriptedModel::new(script);
    let run = model.run(fixture, "anthropic", &[&STREAM[..], more].concat());
    (run, model)
}

fn transcripts(fixture: &CliFixture) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for project in
        std::fs::read_dir(fixture.beside("state/sessions/projects")).into_iter().flatten().flatten()
    {
        found.extend(std::fs::read_dir(project.path()).unwrap().flatten().map(|entry| entry.path()));
    }
    found.sort();
    found
}

/// Every line is whole; `None` for a file that was cut in its last line.
fn lines_of(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_session_is_resumed_continued_and_forked() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "alpha\n");
    let read = json!({ "name": "Read", "input": { "file_path": fixture.path("a.txt") } });
    let script =
        json!({ "turns": [{ "thinking": "hm", "text": "Reading.", "tools": [read] }, { "text": "One." }] });
    let (run, _) = run_prompt(&fixture, &script, &["first prompt"]);
    let id = result_of(&run)["session_id"].as_str().unwrap().to_owned();
    let stored = transcripts(&fixture);
    assert_eq!(stored.len(), 1);
    let before = std::fs::read(&stored[0]).unwrap();
    for line in lines_of(&stored[0]) {
        assert!(
            line["uuid"].is_string() && line["sessionId"] == id.as_str() && line["timestamp"].is_string()
        );
    }

    for more in [vec!["--resume", &id, "second"], vec!["--continue", "third"]] {
        let (run, model) = run_prompt(&fixture, &json!({ "turns": [{ "text": "Two." }] }), &more);
        assert_eq!(result_of(&run)["session_id"], id.as_str(), "{}", run.stderr);
        let asked = model.requests()[0]["messages"].to_string();
        for part in ["first prompt", "Reading.", "alpha", "One.", "c2lnbmF0dXJl"] {
            assert!(asked.contains(part), "{more:?}: {part}");
        }
        assert_eq!(model.seen()["violations"], json!([]));
    }
    let grown = std::fs::read(&stored[0]).unwrap();
    assert!(grown.starts_with(&before) && grown.len() > before.len());

    let (run, model) = run_prompt(
        &fixture,
        &json!({ "turns": [{ "text": "F." }] }),
        &["--resume", &id, "--fork-session", "fork"],
    );
    let fork = result_of(&run)["session_id"].as_str().unwrap().to_owned();
    assert_ne!(fork, id);
    assert!(model.requests()[0].to_string().contains("third"));
    assert_eq!(std::fs::read(&stored[0]).unwrap(), grown, "the old session is as it was");
    assert_eq!(transcripts(&fixture).len(), 2);

    let unknown = "0199aa00-0000-7000-8000-000000000001";
    for (resumed, says) in [(unknown, "No conversation found"), ("../../etc/passwd", "must be a UUID")] {
        let (run, _) = run_prompt(&fixture, &json!({ "turns": [] }), &["--resume", resumed, "x"]);
        assert!(run.code == 2 && run.stderr.contains(says), "{}", run.stderr);
    }
    let (_, _) =
        run_prompt(&fixture, &json!({ "turns": [{ "text": "x" }] }), &["--no-session-persistence", "x"]);
    assert_eq!(transcripts(&fixture).len(), 2);
}

/// The program is killed at random moments of a turn with text, a command and a write; what is stored stays whole, the
/// ledger stays intact, no process stays behind, and the session goes on. `TOOLGATE_KILLS` sets how often.
#[test]
fn a_kill_at_any_moment_leaves_a_session_that_resumes() {
    let kills: u64 = std::env::var("TOOLGATE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(12);
    let fixture = CliFixture::new();
    let marker = format!("{}.{}", 600 + std::process::id() % 300, std::process::id());
    let mut seed = u64::from(std::process::id());
    for round in 0..kills {
        let bash = json!({ "name": "Bash", "input": { "command": format!("sleep {marker}") } });
        let write =
            json!({ "name": "Write", "input": { "file_path": fixture.path("w.txt"), "content": "w\n" } });
        let script = json!({ "turns": [
            { "text": "A somewhat longer text before the calls.", "tools": [write, bash], "chunk_ms": 3 },
            { "text": "Done." },
        ] });
        let model = ScriptedModel::new(&script);
        let more = ["--allowedTools", "Write,Bash", "--", "go"];
        let resume = round > 0 && !transcripts(&fixture).is_empty();
        let args = if resume {
            [&STREAM[..], &["--continue"], &more].concat()
        } else {
            [&STREAM[..], &more].concat()
        };
        let mut child = model
            .command(&fixture, "anthropic", &args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((seed >> 33) % 600));
        child.kill().unwrap();
        child.wait().unwrap();
        for path in transcripts(&fixture) {
            let text = std::fs::read_to_string(&path).unwrap();
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            for line in whole.lines() {
                serde_json::from_str::<Value>(line).unwrap();
            }
        }
    }
    let gone = (0..2_400).any(|_| {
        let left =
            std::process::Command::new("pgrep").args(["-f", &format!("sleep {marker}")]).output().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        left.stdout.is_empty()
    });
    assert!(gone, "a process stayed behind");
    let verified = fixture.run(&["log", "--verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    if transcripts(&fixture).is_empty() {
        return;
    }
    let (run, model) =
        run_prompt(&fixture, &json!({ "turns": [{ "text": "Alive." }] }), &["--continue", "again"]);
    assert_eq!(result_of(&run)["result"], "Alive.", "{}", run.stderr);
    assert_eq!(model.seen()["violations"], json!([]));
}

#[test]
fn a_host_rewinds_files_to_a_prompt() {
    let fixture = CliFixture::new();
    let write = |name: &str| {
        let input = json!({ "file_path": fixture.path(name), "content": "new\n" });
        json!({ "tools": [{ "name": "Write", "input": input }] })
    };
    let script = json!({ "turns": [write("one.txt"), { "text": "1" }, write("two.txt"), { "text": "2" }] });
    let model = ScriptedModel::new(&script);
    let args = [
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--allowedTools",
        "Write",
    ];
    let mut child = model
        .command(&fixture, "anthropic", &args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut frames = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait_for = |kind: &str| loop {
        let frame: Value = serde_json::from_str(&frames.next().unwrap().unwrap()).unwrap();
        if frame["type"] == kind {
            return frame;
        }
    };
    let mut send = |frame: Value| writeln!(stdin, "{frame}").unwrap();
    let prompt =
        |id: &str| json!({ "type": "user", "uuid": id, "message": { "role": "user", "content": "go" } });
    send(prompt("prompt-1"));
    wait_for("result");
    send(prompt("prompt-2"));
    wait_for("result");
    let rewind = |id: &str, message: &str, dry: bool| {
        let request = json!({ "subtype": "rewind_files", "user_message_id": message, "dry_run": dry });
        json!({ "type": "control_request", "request_id": id, "request": request })
    };
    send(rewind("r1", "prompt-2", true));
    let answer = wait_for("control_response")["response"]["response"].clone();
    assert_eq!(
        (&answer["canRewind"], answer["filesChanged"].as_array().unwrap().len()),
        (&json!(true), 1),
        "{answer}"
    );
    assert!(fixture.path("two.txt").exists());
    send(rewind("r2", "prompt-2", false));
    wait_for("control_response");
    assert!(fixture.path("one.txt").exists() && !fixture.path("two.txt").exists());
    send(rewind("r3", "prompt-1", false));
    wait_for("control_response");
    assert!(!fixture.path("one.txt").exists());
    send(rewind("r4", "no-such-prompt", false));
    let answer = wait_for("control_response")["response"]["response"].clone();
    assert_eq!(answer["canRewind"], json!(false));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// A resume that leaves out a turn is refused where it would leave out more.
#[test]
fn a_resume_that_drops_a_turn_drops_no_other() {
    let fixture = CliFixture::new();
    run_prompt(&fixture, &json!({ "turns": [{ "text": "One." }] }), &["first"]);
    run_prompt(&fixture, &json!({ "turns": [{ "text": "Two." }] }), &["--continue", "second"]);
    let path = transcripts(&fixture)[0].clone();
    let lines = lines_of(&path);
    let id = |text: &str| {
        let line = lines.iter().find(|line| line["message"]["content"].to_string().contains(text)).unwrap();
        line["uuid"].as_str().unwrap().to_owned()
    };
    let session = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let resume = |at: &str, drops: &str| {
        let script = json!({ "turns": [{ "text": "Other." }] });
        let (at, drops) = (id(at), id(drops));
        let args = [
            "--resume",
            &session,
            "--resume-session-at",
            &at,
            "--resume-drops-turn",
            &drops,
            "--",
            "instead",
        ];
        run_prompt(&fixture, &script, &args)
    };
    let (run, model) = resume("One.", "second");
    assert_eq!(result_of(&run)["result"], "Other.", "{}", run.stderr);
    let sent = model.requests()[0]["messages"].to_string();
    assert!(sent.contains("first") && !sent.contains("second"), "{sent}");
    for (at, drops) in [("One.", "first"), ("first", "second"), ("Two.", "second")] {
        let (run, model) = resume(at, drops);
        assert_eq!(run.code, 2, "{at} {drops}");
        assert!(
            run.stderr.contains("Resume rejected by --resume-drops-turn:"),
            "{at} {drops}: {}",
            run.stderr
        );
        assert!(model.requests().is_empty());
    }
}
