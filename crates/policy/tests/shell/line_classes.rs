//! Lines by class: which need no approval because they only read, which a rule covers, and which need an approval.
//!
//! The lines are in `cases/`, one per row; a row that begins with `json ` contains a JSON string.

use super::simple_policy::{Answer, SimpleRules, analysed, judge};
use toolgate_shell_syntax::{DangerKind, DangerStanding};

/// The lines of a case file.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let line = |row: &str| match row.strip_prefix("json ") {
        Some(json) => serde_json::from_str(json).unwrap(),
        None => row.to_owned(),
    };
    text.lines().map(line).collect()
}

/// The allow rules for `covered.txt` and `not-covered.txt`.
const ALLOWED: &str = "npm run * | git commit * | echo * | cat * | find * | sed * | git * | cp * | rm * | mkdir * | curl * | xargs * | grep * | python3 * | make | env * | bash -c * | tee * | awk * | docker exec * | gh pr * | mv * | touch * | sudo * | watch * | test * | printf * | tar * | rg * | sort *";

/// Rules separated by ` | `.
fn rules(allow: &str, deny: &str) -> SimpleRules {
    let split = |rules: &str| rules.split(" | ").filter(|rule| !rule.is_empty()).map(str::to_owned).collect();
    SimpleRules { allow: split(allow), deny: split(deny), read_only: true, ..SimpleRules::default() }
}

/// Asserts that every line of a case file gets the expected verdict.
fn check(rules: &SimpleRules, expected: Answer, text: &str) {
    let wrong: Vec<String> = lines(text)
        .iter()
        .filter_map(|line| {
            let analysis = analysed(line);
            let answer = judge(&analysis, rules);
            (answer != expected).then(|| format!("{line:?} gave {answer:?}: {analysis:#?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "expected {expected:?} with {rules:?}\n{}", wrong.join("\n"));
}

#[test]
fn ordinary_reading_needs_no_approval() {
    check(&rules("", ""), Answer::Allow, include_str!("cases/free.txt"));
}

#[test]
fn reading_unknown_paths_needs_no_approval_only_where_the_kernel_limits_it() {
    let lines = include_str!("cases/bounded.txt");
    check(&rules("", ""), Answer::Ask, lines);
    check(&SimpleRules { bounded: true, ..rules("", "") }, Answer::Allow, lines);
}

#[test]
fn writing_running_or_sending_needs_approval_even_where_the_kernel_limits_reads() {
    let bounded = SimpleRules { bounded: true, ..rules("", "") };
    check(&bounded, Answer::Ask, include_str!("cases/not-bounded.txt"));
}

#[test]
fn git_readers_need_no_approval_in_the_starting_directory() {
    check(&rules("", ""), Answer::Allow, include_str!("cases/free-git.txt"));
}

#[test]
fn other_git_commands_need_approval() {
    check(&rules("", ""), Answer::Ask, include_str!("cases/asked-git.txt"));
}

#[test]
fn writing_running_sending_or_reading_elsewhere_needs_approval() {
    check(&rules("", ""), Answer::Ask, include_str!("cases/asked.txt"));
}

#[test]
fn expansions_that_evaluate_nothing_need_no_approval() {
    check(&rules("", ""), Answer::Allow, include_str!("cases/reader-free.txt"));
}

#[test]
fn evaluated_or_ambiguous_bash_needs_approval() {
    check(&rules("", ""), Answer::Ask, include_str!("cases/reader-asked.txt"));
    // A rule for every command does not allow these either.
    check(&rules("* | echo *", ""), Answer::Ask, include_str!("cases/reader-evaluated.txt"));
}

#[test]
fn a_rule_covers_the_plain_use() {
    check(&rules(ALLOWED, ""), Answer::Allow, include_str!("cases/covered.txt"));
}

#[test]
fn a_rule_does_not_cover_other_uses() {
    check(&rules(ALLOWED, ""), Answer::Ask, include_str!("cases/not-covered.txt"));
}

#[test]
fn a_denied_command_is_denied_in_every_spelling() {
    check(&rules("*", "curl * | curl | git push * | rm *"), Answer::Deny, include_str!("cases/denied.txt"));
}

#[test]
fn a_runner_with_an_unknown_command_needs_approval_under_a_rule_for_everything() {
    check(&rules("*", "curl *"), Answer::Ask, include_str!("cases/not-plain.txt"));
}

#[test]
fn a_denied_word_that_is_only_text_is_not_denied() {
    check(&rules("*", "curl * | git push * | rm *"), Answer::Allow, include_str!("cases/not-denied.txt"));
}

#[test]
fn dangerous_removals_are_binding() {
    let binding = |text: &str| {
        let kinds = analysed(text).dangers;
        kinds.iter().any(|danger| {
            danger.kind == DangerKind::DangerousRemoval && danger.standing == DangerStanding::Binding
        })
    };
    let missed: Vec<String> =
        lines(include_str!("cases/binding.txt")).into_iter().filter(|text| !binding(text)).collect();
    assert!(missed.is_empty(), "not found: {missed:#?}");
    let needless: Vec<String> =
        lines(include_str!("cases/not-binding.txt")).into_iter().filter(|text| binding(text)).collect();
    assert!(needless.is_empty(), "found without need: {needless:#?}");
}
