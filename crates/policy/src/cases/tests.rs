//! Case files are parsed, and what cannot be a case is named.

use super::*;

fn parse(text: &str) -> Result<Vec<CaseSection>, Vec<CaseFileProblem>> {
    super::parse(text, |text| serde_json::from_str(text).map_err(|error| (error.line(), error.to_string())))
}

#[test]
fn a_case_file_is_parsed() {
    let text = "# T\nprose\n\n```json settings\n{\"a\": 1}\n```\n\n| call | verdict | why |\n|---|---|---|\n\
                | `Bash a \\| b` | DENY | x |\n| `Read` | allow |\n\n| rule | problem |\n|---|---|\n\
                | deny `Bash()` | fatal |\n\n| other | table |\n|---|---|\n| x | y |\n";
    let sections = parse(text).unwrap();
    assert_eq!(sections.len(), 1);
    assert_eq!(sections[0].heading, "T");
    assert_eq!(sections[0].calls[0].input, "a | b");
    assert_eq!(sections[0].calls[0].verdict, "deny");
    assert_eq!(sections[0].calls[1].line, 11);
    assert_eq!(sections[0].rules[0].rule, "Bash()");
    let live = parse("| call | verdict |\n|---|---|\n| `Bash x` | allow |\n").unwrap();
    assert_eq!((live[0].settings.clone(), live[0].calls.len()), (None, 1));
}

#[test]
fn a_file_that_cannot_be_run_is_an_error() {
    for text in [
        "```json settings\n{\n```\n",
        "```json settings\n{}\n```\n| call | verdict |\n|---|---|\n| `Bash x` | maybe |\n",
        "```json settings\n{}\n```\n| call | verdict |\n|---|---|\n| Bash x | allow |\n",
        "```json settings\n",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_block_is_marked_as_settings_or_its_mark_is_no_mistake() {
    for (mark, is_settings) in
        [("json settings", true), (" jsonc  settings", true), ("json", false), ("", false), ("text", false)]
    {
        let sections = parse(&format!("```{mark}\n{{}}\n```\n")).unwrap();
        assert_eq!(sections.len(), usize::from(is_settings), "{mark}");
    }
    for mark in
        ["json setings", "settings", "JSON Settings", "json5 settings", "jsonsettings", "json-settings"]
    {
        let problems = parse(&format!("# T\n```{mark}\n{{}}\n```\n")).unwrap_err();
        assert_eq!(problems.len(), 1, "{mark}");
        assert!(problems[0].line == 2 && problems[0].message.contains("`jsonc settings`"), "{problems:?}");
    }
}

#[test]
fn every_line_that_cannot_be_used_is_named() {
    let text =
        "| call | verdict |\n|---|---|\n| `ls` | allowed |\n| `ls` | ask |\n| ls | deny |\n| `ls` | |\n";
    let problems = parse(text).unwrap_err();
    assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [3, 5, 6]);
    assert_eq!(problems[0].message, "`allowed` is not a verdict; use allow, ask, deny");
}

/// The calls and rules of a text, each with its verdict or weight; or the lines of its problems.
fn outline(text: &str) -> Result<Vec<String>, Vec<usize>> {
    let sections =
        parse(text).map_err(|problems| problems.iter().map(|problem| problem.line).collect::<Vec<_>>())?;
    let calls = sections.iter().flat_map(|section| &section.calls);
    let rules = sections.iter().flat_map(|section| &section.rules);
    let calls = calls.map(|row| format!("{} {}: {}", row.tool, row.input, row.verdict));
    let rules = rules.map(|row| format!("{} {}: {}", row.action, row.rule, row.weight));
    Ok(calls.chain(rules).collect())
}

#[test]
fn a_table_with_cases_is_read_in_every_form_that_displays_as_one() {
    let row = "| `Bash x` | deny |\n";
    for text in [
        format!("| call | verdict |\n|---|---|\n{row}"),
        format!("| Call: | Verdict |\n|:--|--:|\n{row}"),
        format!("| **call** | _verdict_ |\n| - | - |\n{row}"),
        format!("| `call` | anything |\n|---|---|\n{row}"),
        format!("| call | verdict |\n{row}"),
        format!("\u{feff}| call | verdict |\n|---|---|\n{row}"),
        "call | verdict\n---|---\n`Bash x` | deny\n".to_owned(),
        "| call | verdict\n|---|---\n| `Bash x` | deny\n".to_owned(),
        "| verdict | call |\n|---|---|\n| deny | `Bash x` |\n".to_owned(),
        "| call | why | verdict |\n|---|---|---|\n| `Bash x` | allow | **deny** |\n".to_owned(),
        "- | call | verdict |\n  |---|---|\n  | `Bash x` | deny |\n".to_owned(),
        format!("| call | verdict |\n|---|---|\n{row}|---|---|\n|  |  |\n"),
    ] {
        assert_eq!(outline(&text), Ok(vec!["Bash x: deny".to_owned()]), "{text}");
    }
    for text in [
        "| rule | problem |\n|---|---|\n| deny `Reed` | fatal |\n",
        "| problem | rule |\n|---|---|\n| fatal | Deny `Reed` |\n",
        "*rule* | *problem*\n---|---\n**deny** `Reed` | fatal\n",
    ] {
        assert_eq!(outline(text), Ok(vec!["deny Reed: fatal".to_owned()]), "{text}");
    }
}

#[test]
fn what_is_almost_a_case_is_an_error() {
    let row = "| `Bash x` | deny |\n";
    let table = format!("| call | verdict |\n|---|---|\n{row}");
    for (text, lines) in [
        // Headings that are almost those of calls or rules.
        (format!("| calls | verdict |\n|---|---|\n{row}"), vec![1]),
        (format!("| cal | result |\n|---|---|\n{row}{row}"), vec![1]),
        (format!("| tool | verdict |\n|---|---|\n{row}"), vec![1]),
        (format!("| example | verdict |\n|---|---|\n{row}"), vec![1]),
        ("| rules | problem |\n|---|---|\n| deny `Reed` | fatal |\n".to_owned(), vec![1]),
        ("rules | problems\n---|---\ndeny `Reed` | fatal\n".to_owned(), vec![1]),
        ("call | verdict\n`Bash x` | deny\n".to_owned(), vec![1]),
        // In a quote.
        ("> | call | verdict |\n> |---|---|\n> | `Bash x` | deny |\n".to_owned(), vec![1]),
        ("text\n> >call | verdict\n>>---|---\n".to_owned(), vec![2]),
        ("> ```json settings\n> {}\n> ```\n".to_owned(), vec![1]),
        // Rows outside of a table.
        (format!("{table}\n{row}"), vec![5]),
        (format!("{table}Text.\n{row}"), vec![5]),
        (format!("{table}\n| Bash x | deny |\n"), vec![5]),
        (row.to_owned(), vec![1]),
        ("`Bash x` | deny\n".to_owned(), vec![1]),
        // Rows without one of their cells.
        (format!("{table}| | deny |\n"), vec![4]),
        (format!("{table}`Bash y`\n"), vec![4]),
        (format!("{table}| `Bash a | b` | deny |\n"), vec![4]),
        // Blocks that are not closed where they seem to be.
        (format!("```sh\nls\n```json settings\n{{}}\n```\n{table}"), vec![1]),
        ("~~~json settings\n{}\n```\n".to_owned(), vec![1]),
        ("~~~json setings\n{}\n~~~\n".to_owned(), vec![1]),
        // The list of a rule.
        (
            "| rule | problem |\n|---|---|\n| frob `Reed` | fine |\n| denny `Reed` | fatal |\n".to_owned(),
            vec![3, 4],
        ),
        ("| rule | problem |\n|---|---|\n| `Bash(rm *)` | fine |\n".to_owned(), vec![3]),
    ] {
        assert_eq!(outline(&text), Err(lines), "{text}");
    }
    let problems = parse("| rule | problem |\n| denny `Reed` | fatal |\n").unwrap_err();
    assert_eq!(problems[0].message, "`denny` is not a list of rules; did you mean `deny`?");
    let problems = parse("| calls | verdict |\n|---|---|\n").unwrap_err();
    assert!(
        problems[0]
            .message
            .ends_with("headed `calls` and `verdict`, so it is not read; write `call` and `verdict`")
    );
}

#[test]
fn tables_and_text_of_other_kinds_are_prose() {
    for text in [
        "| tool | what it does |\n|---|---|\n| `Read` | reads |\n",
        "| role | problem |\n|---|---|\n| reader | none |\n",
        "| mode | verdict |\n|---|---|\n| `plan` | ask |\n| `bypass` | allow |\n",
        "| verdict | meaning |\n|---|---|\n| `allow` | it runs |\n",
        "| key | default |\n|---|---|\n| `x` | ask |\n",
        "| cell | wall |\n|---|---|\n| x | deny |\n",
        "Write a table with the header `call | verdict`.\n",
        "> Use `a | b`.\n> | x | y |\n> |---|---|\n> | `z` | w |\n",
        "> ```\n> | call | verdict |\n> ```\n",
        "---\ntitle: a | b\n---\n",
        "````\n```json settings\n{}\n```\n| call | verdict |\n````\n",
        "~~~\n```json settings\n~~~\n",
        "```text``` is a code span\n",
        "- a | b\n- 1. c | d\n",
    ] {
        assert_eq!(outline(text), Ok(Vec::new()), "{text}");
    }
}

#[test]
fn a_block_with_tildes_is_read_and_closed_by_its_own_fence() {
    for text in [
        "~~~json settings\n{\"a\": 1}\n~~~\n",
        "~~~~ jsonc settings\n{\"a\":\n1}\n~~~~~\n",
        "````json settings\n{\"a\": 1}\n````\n",
        "- ~~~json settings\n  {\"a\": 1}\n  ~~~\n",
    ] {
        let sections = parse(text).unwrap();
        assert_eq!(sections.len(), 1, "{text}");
        assert_eq!(sections[0].settings, Some(serde_json::json!({ "a": 1 })), "{text}");
    }
}
