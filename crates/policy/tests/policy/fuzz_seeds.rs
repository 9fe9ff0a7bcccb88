//! Runs the checks of the fuzz targets on their seeds, without a fuzzer.

#[path = "../../../../fuzz/src/codex.rs"]
mod codex;
#[path = "../../../../fuzz/src/judge_call.rs"]
pub(crate) mod judge_call;
#[path = "../../../../fuzz/src/paths.rs"]
mod paths;
#[path = "../../../../fuzz/src/rules.rs"]
mod rules;
#[path = "../../../../fuzz/src/shell.rs"]
mod shell;
#[path = "../../../../fuzz/src/urls.rs"]
mod urls;

/// Checks every seed, and every seed truncated, rotated and doubled: parsers often mishandle an unexpected end.
fn replay(seeds: &str, check: fn(&str)) {
    let mut count = 0;
    for line in seeds.lines() {
        let text: String = serde_json::from_str(line).unwrap();
        check(&text);
        let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        let (head, tail) = text.split_at(half);
        for cut in [head, tail, &format!("{tail}{head}"), &format!("{text}{text}")] {
            check(cut);
        }
        count += 1;
    }
    assert!(count >= 50, "{count}");
}

#[test]
fn any_text_parses_as_a_rule_or_is_rejected() {
    replay(include_str!("../../../../fuzz/seeds/rules.jsonl"), rules::check);
}

#[test]
fn any_text_is_judged_as_a_command_line() {
    replay(include_str!("../../../../fuzz/seeds/shell.jsonl"), shell::check);
}

#[test]
fn any_text_is_translated_as_a_rules_file_or_is_rejected() {
    replay(include_str!("../../../../fuzz/seeds/codex.jsonl"), codex::check);
}

#[test]
fn any_text_is_judged_as_a_path() {
    replay(include_str!("../../../../fuzz/seeds/paths.jsonl"), paths::check);
}

#[test]
fn any_text_is_judged_as_a_url() {
    replay(include_str!("../../../../fuzz/seeds/urls.jsonl"), urls::check);
}
