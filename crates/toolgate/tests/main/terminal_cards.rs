//! What the card of the approval prompt shows and leaves on the screen.

use super::cli_fixture::CliFixture;
use super::terminal_prompt::{PtySession, READY, ask, last_rows, question};
use serde_json::json;

#[test]
fn ctrl_c_while_a_line_is_typed_leaves_nothing_of_the_line() {
    for (key, prompt) in [("e", "input: "), ("m", "message to the model: "), ("y", "type yes to approve: ")] {
        let fixture = CliFixture::new();
        let mut question = question();
        question["risk"] = json!("critical");
        // More than a row.
        question["input"]["url"] = json!(format!("https://example.com/{}", "a".repeat(200)));
        let mut session = ask(&fixture, &question);
        session.wait_for(READY);
        session.send_keys(key);
        session.wait_for(prompt);
        session.send_keys(&"typed ".repeat(30));
        session.wait_for(&"typed ".repeat(30));
        session.send_keys("\u{3}");
        let (code, screen) = session.finish();
        assert_eq!(code, 130, "{screen}");
        // The last thing before the note erases everything from the first row of the line on.
        let (before, after) = screen.rsplit_once("\u{1b}[J").unwrap();
        assert!(after.starts_with("\r  interrupted\r\n"), "{key}: {screen}");
        let first_row = before.rsplit('\n').next().unwrap();
        assert!(key == "m" || key == "y" || first_row.contains("\u{1b}["), "{key}: {screen}");
    }
}

#[test]
fn the_whole_reason_is_on_a_screen_with_room() {
    let fixture = CliFixture::new();
    let words: Vec<String> = (0..45).map(|n| format!("word{n:02}")).collect();
    let reason = format!("{}; run `toolgate trust workspace`", words.join(" "));
    let question = json!({ "tool": "deploy", "risk": "low", "reason": reason });
    fixture.write("question.json", &format!("{question}\n"));
    let line = "\"$0\" ask - <question.json >answer.json";
    let mut session = PtySession::start_sized(&fixture, line, "", (24, 80));
    session.wait_for(READY);
    let screen = last_rows(&session.screen, 24);
    let shown = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&reason) && !shown.contains("left out"), "{screen}");
    session.send_keys("n");
    assert_eq!(session.finish().0, 3);
}

#[test]
fn a_rule_for_the_session_is_not_offered_at_the_last_question_of_a_batch() {
    let fixture = CliFixture::new();
    let bash = (0..2).map(|n| json!({ "tool": "Bash", "input": { "command": format!("npm run step{n}") } }));
    let write = (0..2).map(|n| {
        let path = fixture.path(&format!("f{n}"));
        json!({ "tool": "Write", "input": { "file_path": path, "content": "x" } })
    });
    // One after the other, and both at once.
    for calls in [bash.collect::<Vec<_>>(), write.collect()] {
        let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
        fixture.write("calls.jsonl", &lines);
        let mut session = PtySession::start(&fixture, "\"$0\" call --batch calls.jsonl >out");
        for (position, is_offered) in [("question 1", true), ("question 2 of 2", false)] {
            session.wait_for(position);
            session.wait_for(READY);
            assert_eq!(session.screen.contains("for this session"), is_offered, "{}", session.screen);
            assert!(session.screen.contains("in this project"), "{}", session.screen);
            session.screen.clear();
            session.send_keys("n");
        }
        assert_eq!(session.finish().0, 3);
    }
}

/// The question about a workspace that is the home directory.
const WIDE: &str = "use it anyway? [y/N] ";

#[test]
fn a_workspace_as_wide_as_home_is_asked_about_once_and_only_where_it_matters() {
    let fixture = CliFixture::new();
    let call = |tool: &str| {
        let line = format!("cd \"$HOME\" && \"$0\" call {tool}; code=$?; echo \"ended $code\"; exit $code");
        PtySession::start(&fixture, &line)
    };
    let npm = "Bash '{\"command\":\"npm install\"}'";
    // Names may be listed, and what is denied is not asked about.
    let (code, screen) = call("ls '{\"path\":\".\"}'").finish();
    assert!(code == 0 && !screen.contains(WIDE), "{screen}");
    // Ctrl-C counts at once.
    let mut session = call(npm);
    session.wait_for(WIDE);
    session.send_keys("\u{3}");
    let (code, screen) = session.finish();
    assert!(code == 130 && !screen.contains("wants to"), "{screen}");
    // A no ends the command.
    let mut session = call(npm);
    session.wait_for(WIDE);
    session.send_keys("n\n");
    let (code, screen) = session.finish();
    assert!(code == 3 && screen.contains("nothing was run"), "{screen}");
    assert!(screen.contains("toolgate trust workspace") && !screen.contains("wants to"), "{screen}");
    // A yes is kept.
    let mut session = call(npm);
    session.wait_for(WIDE);
    session.send_keys("y\n");
    session.wait_for(READY);
    session.send_keys("n");
    assert_eq!(session.finish().0, 3);
    let mut session = call(npm);
    session.wait_for(READY);
    assert!(!session.screen.contains(WIDE), "{}", session.screen);
    session.send_keys("n");
    assert_eq!(session.finish().0, 3);
}
