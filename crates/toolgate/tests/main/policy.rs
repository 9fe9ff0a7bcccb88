//! `toolgate policy`: rules looked over and put to the test.

use super::desk::Desk;

const CASES: &str = "# Our rules\n\nNobody pushes, and secrets stay secret.\n\n```json settings\n\
    {\"permissions\": {\"allow\": [\"Bash(npm run *)\"], \"deny\": [\"Bash(git push *)\", \"Read(.env)\"]}}\n```\n\n\
    | call | verdict |\n|---|---|\n\
    | `Bash npm run lint` | allow |\n\
    | `Bash npm run lint && git push` | DENY |\n\
    | `Bash cat .env` | DENY |\n\
    | `Bash ls -la` | allow |\n\
    | `Read src/.env` | DENY |\n\
    | `Read src/main.rs` | allow |\n\
    | `Write src/main.rs` | ASK |\n\
    | `WebFetch https://example.com/` | ASK |\n";

#[test]
fn a_markdown_file_is_manual_and_test_in_one() {
    let desk = Desk::new();
    desk.write("rules.md", CASES);
    let said = desk.run(&["policy", "test", "rules.md"]);
    assert_eq!((said.code, said.out.as_str()), (0, "8 passed, 0 failed\n"), "{}", said.err);
    desk.write("rules.md", &CASES.replace("`Bash ls -la` | allow", "`Bash ls -la` | DENY"));
    let said = desk.run(&["policy", "test", "rules.md"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("wrong rules.md:14: `Bash ls -la` gives allow, not deny"), "{}", said.out);
    assert!(said.out.ends_with("7 passed, 1 failed\n"));
    desk.write("empty.md", "# Nothing\n");
    let said = desk.run(&["policy", "test", "empty.md"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("no cases found"), "{}", said.err);
}

#[test]
fn lint_names_the_rule_the_file_and_what_to_write() {
    let desk = Desk::new();
    let file =
        desk.write(".toolgate/settings.json", "{\n\"permissions\": {\n\"deny\": [\n\"Write(docs/**)\"\n]}}");
    let said = desk.run(&["policy", "lint"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.out.contains(&format!("{}:4", file.display())), "{}", said.out);
    assert!(said.out.contains("write `Edit(…)`"), "{}", said.out);
    std::fs::remove_file(file).unwrap();
    assert_eq!(desk.run(&["policy", "lint"]).code, 0);
}

#[test]
fn a_command_is_explained_part_by_part() {
    let desk = Desk::new();
    let said = desk.run(&["check", "Bash", r#"{"command":"ls | sort && npm publish"}"#]);
    assert_eq!(said.code, 4);
    for part in ["allow  ls", "allow  sort", "ask    npm publish", "to let it pass"] {
        assert!(said.out.contains(part), "{part} is not in\n{}", said.out);
    }
}
