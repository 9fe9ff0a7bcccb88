//! The newcomer's walk through the README and every page again, this time typed into a terminal: with colors, widths,
//! a pager and prompts where the program offers them.

use super::newcomer::{PageBlock, in_page_terms, is_as_shown, is_not_run, page_blocks, project};
use super::tmux_session::TmuxSession;

/// A terminal on which the longest line of a page fits.
const WIDE_SCREEN: (usize, usize) = (240, 120);
/// The last row of an approval prompt.
const PROMPT: &str = "[e] edit the input";
/// The last row of a question.
const MENU: &str = "Enter: ";

/// Types a command, and answers no where it asks. Its exit code, what it printed, and whether it asked.
fn type_command(session: &TmuxSession, command: &str) -> (i32, String, bool) {
    session.clear();
    session.enter_line(&format!("{command}; printf '<%s>\\n' \"end $?\""));
    let mut has_asked = false;
    loop {
        let screen = session.wait_until(
            |screen| {
                let is_asking = |text: &&str| screen.contains(*text);
                screen.contains("\n<end ") || screen.contains("\n:") || [PROMPT, MENU].iter().any(is_asking)
            },
            command,
        );
        if screen.contains("\n<end ") {
            break;
        }
        has_asked = true;
        // Refuses at a prompt, and leaves a pager.
        session.press(if screen.contains(PROMPT) { "n" } else { "q" });
        session.wait_until(|now| now != screen, "an answer");
    }
    let history = session.history();
    let (_, printed) = history.split_once("$?\"\n").unwrap_or_default();
    let (printed, end) = printed.rsplit_once("<end ").unwrap();
    let code = end.split('>').next().unwrap().parse().unwrap();
    (code, printed.trim_end().to_owned(), has_asked)
}

/// The commands of a block, each with the output that the page shows.
fn commands(block: &PageBlock) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in &block.lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) => shown.push(line.clone()),
            (None, None) => {}
        }
    }
    commands
}

#[test]
fn every_console_example_prints_at_a_terminal_what_the_page_shows() {
    if !TmuxSession::is_available() {
        println!("skipped: there is no tmux; run scripts/install-test-tools.sh");
        return;
    }
    let (mut wrong, mut count, mut asked) = (Vec::new(), 0, 0);
    for block in page_blocks().iter().filter(|block| block.mark == "console") {
        let fixture = project();
        let session = TmuxSession::start(&fixture, WIDE_SCREEN);
        for (command, shown) in commands(block) {
            if is_not_run(&command) || block.page == "mcp.md" && command == "toolgate log" {
                continue;
            }
            count += 1;
            let (code, printed, has_asked) = type_command(&session, &command);
            // Where the page shows that there is no one to ask, a terminal asks; the answer was no.
            if has_asked {
                asked += 1;
                let is_asked_about = shown.iter().any(|line| line.contains("no approver is available"));
                if !is_asked_about && !shown.is_empty() {
                    wrong.push(format!("{}:{} $ {command} asks\n{printed}", block.page, block.line));
                }
                continue;
            }
            let is_result = |line: &&str| !line.starts_with("note: ");
            let printed = printed.lines().filter(is_result).collect::<Vec<_>>().join("\n");
            let printed = in_page_terms(&fixture, &printed);
            let is_usage_error = code == 2 && printed.starts_with("error:");
            if is_usage_error || (!shown.is_empty() && !is_as_shown(&shown, &printed)) {
                wrong.push(format!("{}:{} $ {command}\n{printed}", block.page, block.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 10, "only {count} commands were found, {asked} of them asked");
}

/// From nothing to a rule that is remembered, as the user does it: begin, ask why, approve, look, take back.
#[test]
fn a_newcomer_begins_approves_and_takes_back() {
    if !TmuxSession::is_available() {
        println!("skipped: there is no tmux; run scripts/install-test-tools.sh");
        return;
    }
    let fixture = project();
    fixture.write("notes.txt", "one\n");
    let session = TmuxSession::start(&fixture, (120, 40));
    let (code, begun, _) = type_command(&session, "toolgate init");
    assert_eq!(code, 0, "{begun}");
    assert!(fixture.path(".toolgate/settings.json").exists(), "{begun}");

    let write = r#"toolgate call Write "{\"file_path\":\"$PWD/new.txt\",\"content\":\"hello\"}""#;
    session.clear();
    session.enter_line(write);
    let card = session.wait_for(PROMPT);
    assert!(card.contains("? Write wants to write") && card.contains("+hello"), "{card}");
    session.press("y");
    let after = session.wait_until(|screen| screen.trim_end().ends_with("\n>"), "the next prompt");
    assert!(after.contains("yes, once"), "{after}");
    assert_eq!(std::fs::read_to_string(fixture.path("new.txt")).unwrap(), "hello");

    // Always, and the same command is not asked about again.
    let make = r#"toolgate call Bash '{"command":"touch made"}'"#;
    session.clear();
    session.enter_line(make);
    session.wait_for(PROMPT);
    session.press("a");
    session.wait_until(|screen| screen.trim_end().ends_with("\n>"), "the next prompt");
    assert!(fixture.path("made").exists());
    let (code, printed, has_asked) = type_command(&session, make);
    assert_eq!((code, has_asked), (0, false), "{printed}");
    let (_, granted, _) = type_command(&session, "toolgate grants");
    assert!(granted.contains("Bash(touch made)"), "{granted}");

    let (_, log, _) = type_command(&session, "toolgate log");
    assert!(log.contains("Write") && log.contains("Bash"), "{log}");
    let (code, undone, _) = type_command(&session, "toolgate undo");
    assert!(code != 0 || !fixture.path("new.txt").exists(), "{undone}");
    let (_, verified, _) = type_command(&session, "toolgate log --verify");
    assert!(verified.contains("hash chain intact"), "{verified}");
}
