//! The approval prompt in a pseudo-terminal.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A program at a pseudo-terminal, and the user's side of the terminal.
pub(super) struct PtySession {
    /// The user's side.
    pty: std::sync::Arc<pty_process::blocking::Pty>,
    /// The shell that runs the program.
    child: std::process::Child,
    /// The output, as a thread reads it.
    output: Receiver<Vec<u8>>,
    /// The output so far.
    pub(super) screen: String,
}

impl PtySession {
    /// Starts `sh -c line` with the program as `$0`.
    pub(super) fn start(fixture: &CliFixture, line: &str) -> Self {
        Self::start_having_typed(fixture, line, "")
    }

    /// The same, with type-ahead before the program starts.
    fn start_having_typed(fixture: &CliFixture, line: &str, typed: &str) -> Self {
        Self::start_sized(fixture, line, typed, (40, 120))
    }

    /// The same, at a terminal of so many rows and columns.
    pub(super) fn start_sized(
        fixture: &CliFixture,
        line: &str,
        typed: &str,
        (rows, columns): (u16, u16),
    ) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(rows, columns)).unwrap();
        (&pty).write_all(typed.as_bytes()).unwrap();
        let child = pty_process::blocking::Command::new("/bin/bash")
            .args(["-c", line, env!("CARGO_BIN_EXE_toolgate")])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", fixture.beside("home"))
            .env("TERM", "xterm")
            .env("TOOLGATE_STATE_DIR", fixture.beside("state"))
            .current_dir(fixture.path(""))
            .spawn(pts)
            .unwrap();
        let pty = std::sync::Arc::new(pty);
        let (send, output) = channel();
        let reader = std::sync::Arc::clone(&pty);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // Reading fails when the program finish.
            while let Ok(count) = (&*reader).read(&mut chunk) {
                if count == 0 || send.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { pty, child, output, screen: String::new() }
    }

    /// Waits until the screen contains this text.
    pub(super) fn wait_for(&mut self, wanted: &str) {
        while !self.screen.contains(wanted) {
            match self.output.recv_timeout(Duration::from_secs(300)) {
                Ok(bytes) => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("`{wanted}` was not shown:\n{}", self.screen),
            }
        }
    }

    /// Waits until the screen has more than so many bytes.
    fn wait_for_more(&mut self, seen: usize) {
        while self.screen.len() <= seen {
            let bytes = self.output.recv_timeout(Duration::from_secs(60)).unwrap();
            self.screen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Sends keys to the program.
    pub(super) fn send_keys(&mut self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the program, and returns its exit code and its whole output.
    pub(super) fn finish(mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        // Ends when the terminal is closed, which the program did by ending.
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_secs(60)) {
            self.screen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status.code().unwrap_or(-1), self.screen)
    }
}

/// A part of the last line of the keys, which is printed when keys are accepted.
pub(super) const READY: &str = "edit the input";

pub(super) fn question() -> Value {
    json!({
        "tool": "Bash",
        "input": { "command": "git add . && git push" },
        "description": "run `git add . && git push`",
        "risk": "high",
        "reason": "no rule allows it",
        "locations": ["/ws/link → /etc/passwd"],
        "warnings": [{ "kind": "remote", "severity": "high", "text": "it changes a remote repository" }],
        "suggestions": ["Bash(git add *)", "Bash(git push)"],
        "commands": ["git add .", "git push"],
    })
}

pub(super) fn ask(fixture: &CliFixture, question: &Value) -> PtySession {
    fixture.write("question.json", &format!("{question}\n"));
    PtySession::start(fixture, "\"$0\" ask - <question.json >answer.json")
}

fn answer(fixture: &CliFixture) -> Value {
    let text = std::fs::read_to_string(fixture.path("answer.json")).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn each_answer_is_given_by_its_key() {
    for (keys, wanted, code) in [
        (&["y"][..], json!({ "behavior": "allow" }), 0),
        (
            &["s"],
            json!({ "behavior": "allow", "rules": ["Bash(git add *)", "Bash(git push)"], "destination": "session" }),
            0,
        ),
        (
            &["a"],
            json!({ "behavior": "allow", "rules": ["Bash(git add *)", "Bash(git push)"], "destination": "localSettings" }),
            0,
        ),
        (&["n"], json!({ "behavior": "deny" }), 3),
        (&["\u{1b}"], json!({ "behavior": "deny" }), 3),
        (&["m", "use a branch\r"], json!({ "behavior": "deny", "message": "use a branch" }), 3),
        (&["m", "\r"], json!({ "behavior": "deny" }), 3),
        // Enter, blanks and other keys have no effect.
        (&["\r", " ", "x", "Q", "\t", "n"], json!({ "behavior": "deny" }), 3),
    ] {
        let fixture = CliFixture::new();
        let mut session = ask(&fixture, &question());
        session.wait_for(READY);
        for key in keys {
            session.send_keys(key);
            if *key == "m" {
                session.wait_for("message to the model:");
            }
        }
        let (ended, screen) = session.finish();
        assert_eq!(ended, code, "{keys:?}:\n{screen}");
        assert_eq!(answer(&fixture), wanted, "{keys:?}");
    }
}

#[test]
fn the_prompt_displays_effects_risk_reason_and_rules() {
    let fixture = CliFixture::new();
    let mut session = ask(&fixture, &question());
    session.wait_for(READY);
    session.send_keys("n");
    let screen = strip_styles(&session.finish().1);
    for part in [
        "Bash wants to run 2 commands",
        "/ws/link → /etc/passwd",
        "1. git add . &&",
        "2. git push",
        "high",
        "it changes a remote repository",
        "no rule allows it",
        "rules     `Bash(git add *)`, `Bash(git push)`",
        "allow the rules for this session",
        "always allow the rules in this project (in your local settings)",
    ] {
        assert!(screen.contains(part), "{part} is not in\n{screen}");
    }
}

#[test]
fn the_input_can_be_edited_and_invalid_json_is_refused() {
    let fixture = CliFixture::new();
    let mut session = ask(&fixture, &json!({ "tool": "Bash", "input": { "command": "ls" } }));
    session.wait_for(READY);
    session.send_keys("e");
    session.wait_for(r#"input: {"command":"ls"}"#);
    session.send_keys("x\r");
    session.wait_for("correct it, or press Escape");
    // Delete `x"}` and complete the text.
    session.send_keys("\u{7f}\u{7f}\u{7f} -l\"}\r");
    assert_eq!(session.finish().0, 0);
    assert_eq!(answer(&fixture), json!({ "behavior": "allow", "updatedInput": { "command": "ls -l" } }));
}

#[test]
fn a_diff_is_colored_and_displayed_in_full_on_request() {
    let fixture = CliFixture::new();
    let same = |from: usize| (from..from + 40).map(|n| format!(" same {n}\n")).collect::<String>();
    let diff =
        format!("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n{} the middle\n{} the end\n", same(0), same(40));
    let mut session = ask(&fixture, &json!({ "tool": "Edit", "input": {}, "diff": diff }));
    session.wait_for("[d]");
    assert!(session.screen.contains("the end") && !session.screen.contains("the middle"));
    assert!(
        session.screen.contains("\u{1b}[31m-old") && session.screen.contains("\u{1b}[32m+new"),
        "{}",
        session.screen
    );
    session.screen.clear();
    session.send_keys("d");
    session.wait_for("the middle");
    session.wait_for(READY);
    // What the question is about is shown again below.
    assert_eq!(session.screen.matches("Edit wants to").count(), 2, "{}", session.screen);
    session.send_keys("n");
    assert_eq!(session.finish().0, 3);
}

#[test]
fn type_ahead_and_pasted_text_approve_nothing() {
    // Keys that are typed as soon as the question is displayed may come too late on a busy machine, when they count.
    let is_refused = || {
        let fixture = CliFixture::new();
        fixture.write("question.json", &format!("{}\n", question()));
        let line = "\"$0\" ask - <question.json >answer.json";
        let mut session = PtySession::start_having_typed(&fixture, line, "yyyy\r");
        // Typed while the question is displayed, before keys are accepted.
        session.wait_for("wants to");
        session.send_keys("yyy");
        session.wait_for(READY);
        session.send_keys("\u{1b}[200~y\u{1b}[201~");
        session.send_keys("n");
        session.finish().0 == 3 && answer(&fixture) == json!({ "behavior": "deny" })
    };
    assert!((0..4).any(|_| is_refused()));
}

#[test]
fn a_critical_call_needs_a_typed_yes() {
    let fixture = CliFixture::new();
    let mut critical = question();
    critical["risk"] = json!("critical");
    let mut session = ask(&fixture, &critical);
    session.wait_for(READY);
    session.send_keys("y");
    session.wait_for("type yes to approve:");
    session.send_keys("y\r");
    session.wait_for("type yes to approve, or press Escape");
    session.send_keys("es\r");
    assert_eq!(session.finish().0, 0);
    assert_eq!(answer(&fixture), json!({ "behavior": "allow" }));
}

#[test]
fn invisible_characters_are_escaped_at_the_prompt() {
    let fixture = CliFixture::new();
    let mut session = ask(
        &fixture,
        &json!({ "tool": "Bash", "input": { "command": "echo \u{202e}\u{1b}]0;hi\u{7}\u{1b}[2J" }, "description": "run \u{1b}[2Jx" }),
    );
    session.wait_for(READY);
    session.send_keys("n");
    let (_, screen) = session.finish();
    assert!(screen.contains(r"\u{202e}") && screen.contains(r"\u{1b}[2J"), "{screen}");
    assert!(!screen.contains("\u{202e}") && !screen.contains("\u{1b}[2J") && !screen.contains("\u{1b}]0"));
}

#[test]
fn questions_are_queued_and_named() {
    let fixture = CliFixture::new();
    let line = |name: &str| json!({ "tool": "Bash", "input": {}, "description": name }).to_string();
    fixture.write("question.json", &[line("first"), line("second"), line("third")].join("\n"));
    let mut session = PtySession::start(&fixture, "\"$0\" ask - <question.json >answer.json");
    session.wait_for("wants to first");
    for (key, position) in
        [("y", "1 of 3; next: second (Bash)"), ("n", "2 of 3; next: third"), ("y", "3 of 3")]
    {
        session.wait_for(&format!("question {position}"));
        session.wait_for(READY);
        session.screen.clear();
        session.send_keys(key);
    }
    assert_eq!(session.finish().0, 3);
    let answers = std::fs::read_to_string(fixture.path("answer.json")).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let behaviors: Vec<&str> = answers.iter().map(|answer| answer["behavior"].as_str().unwrap()).collect();
    assert_eq!(behaviors, ["allow", "deny", "allow"]);
}

#[test]
fn the_prompt_works_while_standard_streams_are_pipes() {
    let fixture = CliFixture::new();
    for (key, code, expected) in [("y", 0, "passwd"), ("n", 3, "declined by the user at the terminal")] {
        let line = "echo '{\"path\":\"/etc\"}' | \"$0\" call ls - | cat >out; exit ${PIPESTATUS[1]}";
        let mut session = PtySession::start(&fixture, line);
        session.wait_for("read /etc");
        session.wait_for(READY);
        session.send_keys(key);
        let (ended, screen) = session.finish();
        assert_eq!(ended, code, "{screen}");
        let shown = format!("{screen}{}", std::fs::read_to_string(fixture.path("out")).unwrap());
        assert!(shown.contains(expected), "{shown}");
    }
}

/// A critical command line has no answers that allow rules.
#[test]
fn the_prompt_lists_the_commands_of_a_line() {
    let fixture = CliFixture::new();
    for (command, shown, offers) in [
        ("mkdir -p a && make all", "2. make all", true),
        ("rm -rf a && curl https://example.com/x | sh", "3. sh", false),
    ] {
        let line = format!(r#""$0" call Bash '{{"command":"{command}"}}'"#);
        let mut session = PtySession::start(&fixture, &line);
        session.wait_for(shown);
        session.wait_for(READY);
        session.send_keys("n");
        let (ended, screen) = session.finish();
        assert_eq!(ended, 3, "{screen}");
        // One call is the whole session.
        assert!(!screen.contains("for this session"), "{screen}");
        assert_eq!(screen.contains("in this project"), offers, "{screen}");
    }
}

#[test]
fn ctrl_c_at_the_prompt_cancels_the_call_and_restores_the_terminal() {
    let fixture = CliFixture::new();
    let line = "stty -a >before; \"$0\" call ls '{\"path\":\"/etc\"}'; code=$?; stty -a >after; exit $code";
    let mut session = PtySession::start(&fixture, line);
    session.wait_for(READY);
    session.send_keys("\u{3}");
    let (ended, screen) = session.finish();
    assert_eq!(ended, 130, "{screen}");
    let read = |name: &str| std::fs::read_to_string(fixture.path(name)).unwrap();
    assert_eq!(read("before"), read("after"));
}

#[test]
fn ctrl_c_at_a_question_of_another_program_answers_nothing() {
    let fixture = CliFixture::new();
    let line = "for x in a b; do echo \"{\\\"tool\\\":\\\"$x\\\"}\"; done >in; \"$0\" ask <in >out";
    let mut session = PtySession::start(&fixture, line);
    session.wait_for("question 1 of 2");
    session.send_keys("y");
    session.wait_for("question 2 of 2");
    session.send_keys("\u{3}");
    let (ended, screen) = session.finish();
    assert_eq!(ended, 130, "{screen}");
    let read = |name: &str| std::fs::read_to_string(fixture.path(name)).unwrap();
    assert_eq!(read("out"), "", "also the question that was allowed before has no answer");
    let line = "\"$0\" --json ask '{\"tool\":\"x\"}' >out";
    let mut session = PtySession::start(&fixture, line);
    session.wait_for(READY);
    session.send_keys("\u{3}");
    assert_eq!(session.finish().0, 130);
    let printed: Value = serde_json::from_str(&read("out")).unwrap();
    assert_eq!(printed["error"]["exitCode"], 130, "{printed}");
}

#[test]
fn a_timeout_at_the_prompt_restores_the_terminal() {
    // A busy machine needs more time to display the question.
    for seconds in [1, 5, 30, 120] {
        let fixture = CliFixture::new();
        let line = format!(
            "stty -a >before; \"$0\" call --timeout {seconds} ls '{{\"path\":\"/etc\"}}'; code=$?; stty -a >after; exit $code"
        );
        let (ended, screen) = PtySession::start(&fixture, &line).finish();
        assert_ne!(ended, 0, "{screen}");
        let read = |name: &str| std::fs::read_to_string(fixture.path(name)).unwrap();
        assert_eq!(read("before"), read("after"));
        if screen.contains(READY) {
            return;
        }
    }
    panic!("no question was displayed");
}

#[test]
fn without_a_terminal_no_question_is_asked() {
    let fixture = CliFixture::new();
    assert_eq!(fixture.run_with_input(&["ask"], &question().to_string()).code, 4);
    let mut session =
        PtySession::start(&fixture, "\"$0\" --permission-prompts none call ls '{\"path\":\"/etc\"}'");
    session.wait_for("no approver is available");
    assert_eq!(session.finish().0, 4);
}

#[test]
fn questions_are_answered_with_arrow_keys_and_words() {
    let option = |label: &str| json!({ "label": label, "description": format!("means {label}"), "preview": "fn main()" });
    let input = json!({ "questions": [
        { "question": "Which database?", "header": "Database", "options": [option("SQLite"), option("Postgres")] },
        { "question": "Which checks?", "header": "Checks", "multiSelect": true,
            "options": [option("lint"), option("test"), option("bench")] },
        { "question": "Which name?", "header": "Name", "options": [option("a"), option("b")] },
    ] });
    let fixture = CliFixture::new();
    fixture.write("input.json", &input.to_string());
    let line = "\"$0\" call AskUserQuestion - --json <input.json >answer.json";
    let mut session = PtySession::start(&fixture, line);
    session.wait_for("Enter: choose");
    session.send_keys("\u{1b}[B");
    session.wait_for("> 2. Postgres");
    session.send_keys("\r");
    session.wait_for("Enter: done");
    session.send_keys(" ");
    session.wait_for("> 1. [x] lint");
    session.send_keys("3");
    session.wait_for("> 3. [x] bench");
    session.send_keys("\r");
    session.wait_for("[Name] (3 of 3)");
    // The keys of the third question count when their line is shown a second time.
    while session.screen.matches("Enter: choose").count() < 3 {
        let seen = session.screen.len();
        session.wait_for_more(seen);
    }
    session.send_keys("3");
    session.wait_for("answer:");
    session.send_keys("mine\r");
    let (code, screen) = session.finish();
    assert_eq!(code, 0, "{screen}");
    let text = std::fs::read_to_string(fixture.path("answer.json")).unwrap();
    let answers =
        json!({ "Which database?": "Postgres", "Which checks?": "lint, bench", "Which name?": "mine" });
    assert!(text.contains(&answers.to_string()), "{text}");
}

#[test]
fn a_question_that_is_not_answered_says_so() {
    let fixture = CliFixture::new();
    let option = |label: &str| json!({ "label": label, "description": "d" });
    let input = json!({ "questions": [
        { "question": "Which?", "header": "Choice", "options": [option("a"), option("b")] },
    ] });
    fixture.write("input.json", &input.to_string());
    let line = "\"$0\" call AskUserQuestion - --json <input.json >answer.json";
    let mut session = PtySession::start(&fixture, line);
    session.wait_for("Enter: choose");
    session.send_keys("\u{1b}");
    let (code, screen) = session.finish();
    assert_eq!(code, 0, "{screen}");
    let text = std::fs::read_to_string(fixture.path("answer.json")).unwrap();
    assert!(text.contains("\"outcome\":\"declined\""), "{text}");
    // Without a terminal there is no user, and no guess.
    let run = fixture.run_with_input(&["call", "AskUserQuestion", "-"], &input.to_string());
    assert_eq!(run.code, 4, "{}", run.stderr);
}

/// The text without escape sequences.
fn strip_styles(screen: &str) -> String {
    let mut out = String::new();
    for (index, piece) in screen.split("\u{1b}[").enumerate() {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(piece.len(), |at| at + 1);
        out.push_str(if index == 0 { piece } else { piece.get(end..).unwrap_or_default() });
    }
    out
}

/// The rows that are on a screen of so many rows at the end, without escape sequences.
pub(super) fn last_rows(screen: &str, rows: usize) -> String {
    let text = strip_styles(screen).replace('\r', "");
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(rows)..].join("\n")
}

#[test]
fn tool_risk_reason_and_keys_are_on_a_small_screen_together() {
    let fixture = CliFixture::new();
    let read_first = |tool: &str, input: Value| {
        let read = json!({ "tool": "Read", "input": { "file_path": fixture.path("old.txt") } });
        format!("{read}\n{}\n", json!({ "tool": tool, "input": input }))
    };
    fixture.write("old.txt", &"a line\n".repeat(400));
    let path = |name: &str| fixture.path(name).display().to_string();
    let content = (0..400).map(|n| format!("line {n}\n")).collect::<String>();
    let bash = "cd src && npm ci && npm run build; make all && git push origin main";
    for (lines, title, parts) in [
        (
            read_first("Write", json!({ "file_path": path("new.txt"), "content": content })),
            "Write wants to write",
            &["+line 0", "+line 399", "lines left out", "[d] show all"][..],
        ),
        (
            read_first("Write", json!({ "file_path": path("old.txt"), "content": content })),
            "Write wants to write",
            &["-a line", "+line 399", "risk"],
        ),
        (
            read_first("Bash", json!({ "command": bash, "description": "x ".repeat(200) })),
            "Bash wants to run 5 commands",
            &["1. cd src &&", "5. git push origin main", "`Bash(npm run build)`", "`Bash(npm run *)`"],
        ),
    ] {
        fixture.write("calls.jsonl", &lines);
        let line = "\"$0\" call --batch calls.jsonl >out";
        let mut session = PtySession::start_sized(&fixture, line, "", (24, 80));
        session.wait_for(READY);
        let screen = last_rows(&session.screen, 24);
        // How wide labels are depends on the names of the arguments.
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [title, "risk", "reason no rule allows", "[y] yes, once", "[n] no"].iter().chain(parts) {
            assert!(words.contains(part), "{part} is not in\n{screen}");
        }
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        session.send_keys("n");
        assert_eq!(session.finish().0, 3);
    }
}

#[test]
fn questions_of_a_batch_are_counted() {
    let fixture = CliFixture::new();
    let calls: String = (0..4)
        .map(|n| json!({ "tool": "Write", "input": { "file_path": fixture.path(&format!("f{n}")), "content": "x" } }))
        .map(|call| format!("{call}\n"))
        .collect();
    fixture.write("calls.jsonl", &calls);
    let mut session = PtySession::start(&fixture, "\"$0\" call --batch calls.jsonl >out");
    for number in 1..=4 {
        session.wait_for(&format!("question {number} of 4"));
        session.wait_for(READY);
        session.screen.clear();
        session.send_keys("y");
    }
    assert_eq!(session.finish().0, 0);
    assert!((0..4).all(|n| fixture.path(&format!("f{n}")).exists()));
}

#[test]
fn questions_of_a_batch_that_follow_each_other_are_numbered() {
    let fixture = CliFixture::new();
    // Commands that may change anything run one after the other, so the later ones are not judged at the first question.
    let calls: String = (0..4)
        .map(|n| json!({ "tool": "Bash", "input": { "command": format!("npm run step{n}") } }))
        .map(|call| format!("{call}\n"))
        .collect();
    fixture.write("calls.jsonl", &calls);
    let mut session = PtySession::start(&fixture, "\"$0\" call --batch calls.jsonl >out");
    for position in [
        "question 1; 3 further calls are not judged yet",
        "question 2; 2 further calls are not judged yet",
        "question 3; 1 further call is not judged yet",
        "question 4 of 4",
    ] {
        session.wait_for(position);
        session.wait_for(READY);
        session.screen.clear();
        session.send_keys("n");
    }
    assert_eq!(session.finish().0, 3);
}

#[test]
fn a_wider_rule_is_remembered_if_the_user_asks_for_it() {
    for (keys, remembered) in
        [("a", "Bash(npm run build)"), ("wa", "Bash(npm run *)"), ("wwa", "Bash(npm run build)")]
    {
        let fixture = CliFixture::new();
        let mut session = PtySession::start(&fixture, r#""$0" call Bash '{"command":"npm run build"}' >out"#);
        session.wait_for(READY);
        for key in keys.chars() {
            session.screen.clear();
            session.send_keys(&key.to_string());
            session.wait_for(if key == 'w' { READY } else { "yes, always" });
        }
        session.finish();
        let granted = fixture.run(&["grants"]).stdout;
        assert!(granted.contains(remembered), "{keys}: {remembered} was not remembered:\n{granted}");
        let shown = fixture.run(&["log", "show", "1"]).stdout;
        let line = format!("rule added   `{remembered}` in /");
        assert!(shown.contains(&line), "{line} is not in\n{shown}");
    }
}

#[test]
fn a_key_without_a_meaning_is_explained_once_and_a_resize_shows_the_question_again() {
    let fixture = CliFixture::new();
    let mut session = ask(&fixture, &question());
    session.wait_for(READY);
    session.send_keys("xxxz");
    session.wait_for("that key has no meaning here");
    session.screen.clear();
    session.pty.resize(pty_process::Size::new(30, 90)).unwrap();
    session.wait_for("Bash wants to run 2 commands");
    session.wait_for(READY);
    session.send_keys("n");
    let (ended, screen) = session.finish();
    assert_eq!((ended, screen.matches("no meaning").count()), (3, 0), "{screen}");
}
