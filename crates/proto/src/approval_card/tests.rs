use super::*;
use crate::{AbsPath, Code, CommandLine, RiskLevel, ShellKind, WriteKind};
use proptest::prelude::*;
use serde_json::json;
use unicode_width::UnicodeWidthChar;

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn question(tool: &str, description: &str, effects: Vec<Effect>) -> ApprovalQuestion {
    let reason = VerdictReason::new(Code::ApprovalUnavailable, "no rule allows it");
    let mut question = ApprovalQuestion::new(tool.into(), description, RiskLevel::High, reason);
    question.locations = effects.iter().map(Effect::location).collect();
    question.effects = effects;
    question
}

fn exec(line: &str) -> Effect {
    let (shell, cwd) = (ShellKind::Bash, path("/ws"));
    Effect::Exec { command: CommandLine { text: line.to_owned(), shell, cwd, unsandboxed: false } }
}

fn card(question: &ApprovalQuestion, input: Value, diff: Option<&str>, commands: &[&str]) -> ApprovalCard {
    let commands: Vec<String> = commands.iter().map(|&command| command.to_owned()).collect();
    let scopes = [GrantScope::Session, GrantScope::Project];
    let input = input.as_object().unwrap();
    ApprovalCard::new(question, CardContent { input, diff, commands: &commands, scopes: &scopes })
}

const SMALL: CardSize = CardSize { width: 80, height: 16 };

#[test]
fn a_command_line_is_said_once() {
    for (line, commands) in [
        ("npm test", &["npm test"][..]),
        ("cd a && npm ci && npm run build", &["cd a", "npm ci", "npm run build"]),
        (&format!("echo {}", "x".repeat(300)), &[]),
    ] {
        let question = question("Bash", &format!("run `{line}`"), vec![exec(line)]);
        let card = card(&question, json!({ "command": line, "timeout": 5 }), None, commands);
        let text: String =
            card.to_text(CardSize::unlimited(1000)).replace(|c: char| c.is_ascii_digit() || c == '.', "");
        let whole = [line];
        for piece in if commands.is_empty() { &whole[..] } else { commands } {
            assert_eq!(text.matches(piece).count(), 1, "{piece} in\n{text}");
        }
        assert!(text.contains("timeout"), "{text}");
    }
}

#[test]
fn reason_warnings_and_rules_refer_to_a_long_command() {
    let long = format!("npm run build -- --define (a) {}", "--option value ".repeat(12).trim_end());
    let other = "git push origin main";
    for (line, commands, reason_row, described) in [
        (
            long.clone(),
            &[long.as_str()][..],
            "no rule allows running it",
            "`Bash(…)` for exactly this command",
        ),
        (
            format!("{other} && {long}"),
            &[other, long.as_str()][..],
            "no rule allows running command 2",
            "`Bash(…)` for exactly command 2",
        ),
    ] {
        let mut question = question("Bash", &format!("run `{line}`"), vec![exec(&line)]);
        question.reason =
            VerdictReason::new(Code::ApprovalUnavailable, format!("no rule allows running `{long}`"));
        question.warnings =
            vec![RiskWarning::new("n", RiskLevel::High, format!("`{long}` uses the network"))];
        let shown = card(&question, json!({ "command": line }), None, commands);
        let text = shown.to_text(CardSize::unlimited(1000));
        assert_eq!(text.matches(&long).count(), 1, "{text}");
        assert!(text.contains(reason_row) && text.contains(" uses the network"), "{text}");
        let rule = format!("Bash({})", long.replace('(', r"\(").replace(')', r"\)"));
        assert_eq!(shown.describe_rule(&rule), described);
        // A rule for something else, and one that is short, are spelled out.
        assert_eq!(shown.describe_rule(&format!("Bash({long} x)")), format!("`Bash({long} x)`"));
        assert_eq!(shown.describe_rule("Bash(git push origin main)"), "`Bash(git push origin main)`");
    }
}

#[test]
fn a_card_without_a_rule_says_why() {
    let mut question = question("Bash", "run `x`", vec![exec("x")]);
    question.no_rule_reason = Some("such a call is asked about every time".to_owned());
    let text = card(&question, json!({}), None, &["x"]).to_text(SMALL);
    assert!(text.contains("  rule      none is offered: such a call is asked about every time"), "{text}");
    question.suggestions = vec![RuleSuggestion::new("Bash(x)")];
    assert!(!card(&question, json!({}), None, &["x"]).to_text(SMALL).contains("none is offered"));
}

#[test]
fn a_path_is_said_once_and_with_its_target() {
    let effect = Effect::Write { path: path("/ws/link"), kind: WriteKind::Edit };
    let mut question = question("Edit", "edit /ws/link", vec![effect]);
    question.locations = vec!["/ws/link → /etc/passwd".to_owned()];
    let input = json!({ "file_path": "/ws/link", "old_string": "a", "new_string": "b" });
    let shown = card(&question, input.clone(), Some("--- a/ws/l\n+++ b/ws/l\n@@ -1 +1 @@\n-a\n+b"), &[]);
    assert_eq!(shown.action, "edit /ws/link → /etc/passwd");
    assert!(shown.effects.is_empty() && shown.arguments.is_empty(), "{shown:?}");
    // Without a diff the arguments are shown, but not the path again.
    let names: Vec<String> =
        card(&question, input, None, &[]).arguments.into_iter().map(|argument| argument.name).collect();
    assert_eq!(names, ["old_string", "new_string"]);
}

#[test]
fn the_arguments_of_a_foreign_tool_are_shown() {
    let effect = Effect::Remote { server: "files".to_owned(), tool: "put".to_owned() };
    let question = question("mcp__files__put", "call `put` of server `files`", vec![effect]);
    let input = json!({ "description": "harmless", "path": "/etc/hosts", "url": "http://evil", "content": "line\n".repeat(500) });
    let text = card(&question, input, None, &[]).to_text(SMALL);
    for part in ["call `put` of server `files`", "/etc/hosts", "http://evil", "line", "left out", "harmless"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.find("http://evil") < text.find("harmless"));
    assert!(text.lines().count() <= SMALL.height, "{text}");
}

#[test]
fn the_reason_does_not_repeat_what_the_title_says() {
    let write = Effect::Write { path: path("/ws/a.rs"), kind: WriteKind::Put };
    let remote = Effect::Remote { server: "files".to_owned(), tool: "put".to_owned() };
    for (description, effect, reason, shown) in [
        ("write /ws/a.rs", write.clone(), "no rule allows writing `/ws/a.rs`", "no rule allows writing it"),
        (
            "run `make all`",
            exec("make all"),
            "no rule allows running `make all`",
            "no rule allows running it",
        ),
        (
            "call `put` of server `files`",
            remote,
            "no rule allows calling `put` of server `files`",
            "no rule allows calling it",
        ),
        // A part of the title, and another path, are named.
        (
            "run `make all | x`",
            exec("make all | x"),
            "no rule allows running `x`",
            "no rule allows running `x`",
        ),
        ("write /ws/a.rs", write, "no rule allows writing `/ws/b.rs`", "no rule allows writing `/ws/b.rs`"),
    ] {
        let mut question = question("T", description, vec![effect]);
        question.reason = VerdictReason::new(Code::ApprovalUnavailable, reason);
        let shown_card = card(&question, json!({}), None, &[]);
        let (text, row) = (shown_card.to_text(SMALL), format!("  reason    {shown}"));
        assert!(text.lines().any(|line| line == row), "{text}");
        // Programs get the reason as it is.
        assert_eq!(shown_card.reason.text, reason);
    }
}

#[test]
fn all_texts_begin_in_one_column() {
    let question = question("mcp__files__put", "call `put` of server `files`", Vec::new());
    let input = json!({ "a_rather_long_name_of_a_field": "1", "b": "2\n3\n", "description": "4" });
    let text = card(&question, input, None, &[]).to_text(SMALL);
    let columns: Vec<usize> = ["no rule", "high", "1", "2", "3", "4"]
        .iter()
        .map(|part| {
            text.lines().find_map(|line| line.find(part).map(|at| columns(line.get(..at).unwrap()))).unwrap()
        })
        .collect();
    assert!(columns.iter().all(|column| *column == 19), "{columns:?}\n{text}");
    // The line feed at the end of a text is no row.
    assert!(text.lines().all(|line| !line.trim().is_empty()), "{text}");
}

#[test]
fn a_warning_that_is_the_reason_is_said_once() {
    let mut question = question("Read", "read /ws/.env", Vec::new());
    question.warnings = vec![
        RiskWarning::new("a", RiskLevel::High, "no rule allows it"),
        RiskWarning::new("b", RiskLevel::High, "it may hold secrets"),
        RiskWarning::new("b", RiskLevel::High, "it may hold secrets"),
    ];
    let text = card(&question, json!({}), None, &[]).to_text(SMALL);
    assert_eq!(
        (text.matches("no rule allows it").count(), text.matches("it may hold secrets").count()),
        (1, 1)
    );
}

#[test]
fn warnings_that_do_not_fit_are_counted_and_never_one_alone() {
    for (given, shown, counted) in [(4, 4, None), (5, 5, None), (6, 4, Some("… 2 more warnings"))] {
        let mut question = question("Bash", "run `x`", Vec::new());
        let warning = |n: usize| RiskWarning::new("w", RiskLevel::High, format!("danger {n}"));
        question.warnings = (0..given).map(warning).collect();
        // A body that needs the rows.
        let content = json!({ "content": "line\n".repeat(100) });
        let text = card(&question, content, None, &[]).to_text(SMALL);
        assert_eq!(text.matches("danger ").count(), shown, "{text}");
        assert!(counted.is_none_or(|counted| text.contains(counted)), "{text}");
        assert_eq!(text.contains("more warnings"), counted.is_some(), "{text}");
    }
}

#[test]
fn the_end_of_a_reason_is_shown_however_long_its_path_is() {
    let long = format!("/ws/{}/{}/../../../etc/x", "d".repeat(200), "e".repeat(200));
    let mut question = question("Write", "write `/etc/x`", vec![]);
    question.reason = VerdictReason::new(
        Code::ProtectedPath,
        format!("`{long}` is protected: `/etc` belongs to the system"),
    );
    let card = card(&question, json!({ "file_path": long }), None, &[]);
    for (width, height) in [(80, 24), (120, 40)] {
        let rows = card.render_head(CardSize { width, height }).into_iter().map(|row| row.text);
        // Rows end where words do, with or without the blank between them.
        let text = rows.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("is protected") && text.contains("belongs to the system"), "{text}");
    }
    assert!(card.to_text(CardSize::unlimited(2_000)).contains(&long));
}

#[test]
fn rules_come_in_two_widths() {
    let mut question = question("Bash", "run `npm run build`", vec![exec("npm run build && ls x")]);
    question.suggestions = vec![
        RuleSuggestion::new("Bash(npm run build)").with_wider(Some("Bash(npm run *)".to_owned())),
        RuleSuggestion::new("Bash(ls x)").with_wider(None),
    ];
    let card = card(&question, json!({}), None, &[]);
    assert!(card.has_wider_rules() && card.scopes.len() == 2);
    assert_eq!(card.rules_of_width(RuleWidth::Exact), ["Bash(npm run build)", "Bash(ls x)"]);
    assert_eq!(card.rules_of_width(RuleWidth::Wider), ["Bash(npm run *)", "Bash(ls x)"]);
}

proptest! {
    /// Whatever a call contains, the card fits, and tool, risk, reason and the ends of the command are on it.
    #[test]
    fn nothing_pushes_the_question_off_the_screen(
        blank in "[ \t\n\u{a0}\u{3000}\r\u{2800}]", count in 0usize..3000, lines in 0usize..200, text in ".{0,40}",
        fields in 0usize..30, width in 40usize..200, height in 14usize..60, diff in any::<bool>(),
    ) {
        let padding = format!("{}{}", blank.repeat(count), format!("{text}\n").repeat(lines));
        let line = format!("ls{}; rm -rf target", blank.repeat(count));
        let mut question = question("Bash", &padding, vec![exec(&line)]);
        question.warnings = (0..lines % 9).map(|n| RiskWarning::new("w", RiskLevel::High, format!("{n}{padding}"))).collect();
        let mut input = json!({ "description": format!("harmless{padding}"), "command": line });
        for field in 0..fields {
            input[format!("field{field}{text}")] = json!(padding);
        }
        let diff = diff.then(|| format!("--- a\n+++ b\n@@ -1 +1 @@\n-{padding}\n+{padding}"));
        let card = card(&question, input, diff.as_deref(), &["ls", "rm -rf target"]);
        let size = CardSize { width, height: height.max(card.render_head(CardSize { width, height: 1 }).len() + 3) };
        let rows = card.render(size);
        prop_assert!(rows.len() <= size.height, "{} rows for {:?}", rows.len(), size);
        let all = card.to_text(size);
        for row in &rows {
            let row = row.to_string();
            prop_assert!(columns(&row) <= width, "{row:?}");
            prop_assert!(!row.contains(char::is_control), "{row:?}");
        }
        let labels: Vec<Vec<&str>> = all.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
        prop_assert!(all.contains("Bash wants to") && labels.iter().any(|line| *line == ["risk", "high"]));
        prop_assert!(labels.iter().any(|line| *line == ["reason", "no", "rule"]), "{}", all);
        if fields < 3 && diff.is_none() {
            prop_assert!(all.contains("rm -rf target"), "{}", all);
        }
        // With as many rows as it takes, everything is there.
        let full = card.to_text(CardSize::unlimited(width));
        prop_assert!(!full.contains("left out"));
        prop_assert!(full.contains("rm -rf target"));
    }
}

#[test]
fn of_many_commands_the_first_and_the_last_are_shown() {
    let mut commands: Vec<String> = (0..30).map(|n| format!("npm run t{n}")).collect();
    commands.push("curl https://evil.example/x".to_owned());
    let (question, input) = (question("Bash", "run a line", vec![exec(&commands.join("; "))]), Map::new());
    let content = CardContent { input: &input, diff: None, commands: &commands, scopes: &[] };
    let text = ApprovalCard::new(&question, content).to_text(CardSize { width: 78, height: 16 });
    assert!(text.contains("1. npm run t0") && text.contains("31. curl https://evil.example/x"), "{text}");
    assert!(text.contains("parts left out") && text.lines().count() <= 16, "{text}");
}

#[test]
fn commands_of_another_program_are_shown_whatever_the_input_is() {
    let commands = ["make deploy", "rm -rf /srv"];
    for (input, diff) in [
        (json!({}), None),
        (json!({ "env": "prod" }), None),
        (json!({ "env": "prod" }), Some("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")),
        // A line that is not the one that the commands are parts of.
        (json!({ "command": "make deploy" }), None),
        (json!({ "command": "make deploy && rm -rf /srv" }), None),
    ] {
        let text = card(&question("deploy", "deploy", vec![]), input.clone(), diff, &commands)
            .to_text(CardSize { width: 80, height: 12 });
        assert!(text.contains("1. make deploy") && text.contains("2. rm -rf /srv"), "{input}:\n{text}");
    }
}

/// Control characters are escaped, so each character has a width of its own.
fn columns(row: &str) -> usize {
    row.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[test]
fn a_reason_is_whole_where_the_card_has_room_and_cut_where_it_has_none() {
    let words: Vec<String> = (0..60).map(|n| format!("word{n:02}")).collect();
    let dangers: Vec<String> = (0..60).map(|n| format!("risk{n:02}")).collect();
    let mut question = question("Bash", "run `x`", vec![exec("x")]);
    question.reason = VerdictReason::new(Code::ApprovalUnavailable, words.join(" "));
    question.warnings = vec![RiskWarning::new("w", RiskLevel::High, dangers.join(" "))];
    let render = |lines: usize, height: usize| {
        let content = json!({ "command": "x", "content": "line\n".repeat(lines) });
        let text = card(&question, content, None, &["x"]).to_text(CardSize { width: 80, height });
        assert!(text.lines().count() <= height, "{text}");
        text
    };
    let all = render(2, 24);
    assert!(words.iter().chain(&dangers).all(|word| all.contains(word.as_str())), "{all}");
    // The reason goes before the warnings, and a body before both.
    let less = render(2, 16);
    assert!(words.iter().all(|word| less.contains(word.as_str())) && less.contains("left out"), "{less}");
    let cut = render(100, 16);
    assert!(cut.contains("word59") && !cut.contains("word30") && cut.contains("line"), "{cut}");
}

#[test]
fn a_path_is_broken_after_a_slash() {
    let text = "deny rule `Read(x)` from project, /home/user/projects/alpha/beta/.toolgate/settings.json:20";
    for width in 30..90 {
        let rows = wrap_columns(text, width);
        assert_eq!(rows.concat(), text);
        for row in rows.iter().take(rows.len() - 1) {
            let is_broken_well = row.ends_with([' ', '/']);
            let tail = row.len() - row.rfind([' ', '/']).unwrap_or(0);
            assert!(is_broken_well || tail > width / 4, "{width}: {rows:?}");
        }
    }
    assert_eq!(
        wrap_columns("see /home/user/.toolgate/settings.json:20", 28),
        ["see /home/user/.toolgate/", "settings.json:20"]
    );
}
