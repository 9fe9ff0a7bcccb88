//! `toolgate tasks` and `toolgate memory`, beside the tools that use the same stores.

use super::cli_fixture::CliFixture;
use serde_json::Value;

fn text(fixture: &CliFixture, args: &[&str]) -> String {
    let run = fixture.run(args);
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    run.stdout
}

#[test]
fn people_and_agents_share_a_task_list() {
    let fixture = CliFixture::new();
    text(&fixture, &["tasks", "add", "Fix the parser", "--description", "nested quotes"]);
    let created =
        text(&fixture, &["call", "TaskCreate", r#"{"subject":"Write tests","description":"all of them"}"#]);
    assert!(created.contains("created task 2"), "{created}");
    text(&fixture, &["call", "TaskUpdate", r#"{"taskId":"2","addBlockedBy":["1"]}"#]);
    let list = text(&fixture, &["tasks"]);
    assert_eq!(list, "[ ]   1  Fix the parser\n[ ]   2  Write tests  waits for 1\n");
    let refused = text(&fixture, &["call", "TaskUpdate", r#"{"taskId":"2","status":"in_progress"}"#]);
    assert!(refused.contains("waits for task 1"), "{refused}");
    text(&fixture, &["tasks", "edit", "1", "--status", "completed", "--note", "done"]);
    assert!(text(&fixture, &["tasks", "show", "1"]).contains("done"));
    assert_eq!(text(&fixture, &["tasks", "list", "--open"]), "[ ]   2  Write tests\n");
    let exported: Value = serde_json::from_str(&text(&fixture, &["tasks", "export"])).unwrap();
    assert_eq!(exported[0]["description"], "nested quotes");
    assert!(text(&fixture, &["tasks", "export", "--format", "markdown"]).contains("- [x] 1. Fix the parser"));
    assert_eq!(fixture.run(&["tasks", "edit", "1"]).code, 2, "nothing to change");
    text(&fixture, &["tasks", "remove", "1"]);
    assert_eq!(fixture.run(&["tasks", "show", "1"]).code, 2);
    assert!(text(&fixture, &["tasks", "lists"]).contains("1 open, 1 in all"));
    // The number of a task is not given again, whatever was removed.
    assert!(text(&fixture, &["tasks", "clear"]).starts_with("removed the tasks of /"));
    assert!(text(&fixture, &["tasks", "clear"]).starts_with("there are no tasks in /"));
    assert_eq!(text(&fixture, &["tasks", "lists"]), "");
    assert_eq!(text(&fixture, &["tasks", "add", "Later"]), "[ ]   3  Later\n");
}

#[test]
fn people_and_agents_share_notes() {
    let fixture = CliFixture::new();
    text(&fixture, &["call", "memory", r#"{"action":"set","key":"build","value":"cargo xtask ci"}"#]);
    assert_eq!(text(&fixture, &["memory", "show", "build"]), "cargo xtask ci\n");
    // A note is a file, which the user may edit.
    let path = text(&fixture, &["memory", "path", "build"]);
    std::fs::write(path.trim(), "---\nkey: \"build\"\n---\nmake all\n").unwrap();
    let recalled = text(&fixture, &["call", "memory", r#"{"action":"get","key":"build"}"#]);
    assert_eq!(recalled, "make all\n");
    assert!(text(&fixture, &["memory", "search", "make"]).contains("build"));
    let nothing = fixture.run(&["memory", "search", "zebra"]);
    assert!(
        nothing.stdout.is_empty() && nothing.stderr.contains("no note has any of these words"),
        "{nothing:?}"
    );
    let mut editor = fixture.command(&["memory", "edit", "build"]);
    editor.env("VISUAL", "sed -i s/all/some/");
    let edited = super::cli_fixture::cli_run(editor.output().unwrap());
    assert_eq!((edited.code, edited.stdout.as_str()), (0, "stored build\n"), "{}", edited.stderr);
    assert_eq!(text(&fixture, &["memory", "show", "build"]), "make some\n");
    assert_eq!(fixture.run(&["memory", "edit", "nothing"]).code, 2);
    let mut editor = fixture.command(&["memory", "edit", "build"]);
    editor.env("VISUAL", "false");
    assert_eq!(super::cli_fixture::cli_run(editor.output().unwrap()).code, 2);
    text(&fixture, &["memory", "--user", "set", "name", "Ada"]);
    assert_eq!(text(&fixture, &["memory"]), "build  9 bytes\n");
    text(&fixture, &["memory", "forget", "build"]);
    assert_eq!(fixture.run(&["memory", "show", "build"]).code, 2);
}

#[test]
fn optional_tools_are_listed_where_they_are_wanted() {
    let fixture = CliFixture::new();
    let names = |args: &[&str]| text(&fixture, args);
    assert!(!names(&["tools"]).contains("TaskCreate"));
    assert!(names(&["tools", "--all"]).contains("TaskCreate"));
    assert!(names(&["tools", "--tool-groups", "tasks"]).contains("TaskCreate"));
    assert!(!names(&["tools", "--tool-groups", "tasks"]).contains("memory"));
    assert!(names(&["tools", "--tools", "memory,Read"]).contains("memory"));
    assert!(names(&["tools", "TaskCreate"]).contains("toolgate call TaskCreate"));
    // A tool that a rule hides stays hidden.
    assert!(!names(&["tools", "--all", "--disallowed-tools", "TaskCreate"]).contains("TaskCreate"));
}
