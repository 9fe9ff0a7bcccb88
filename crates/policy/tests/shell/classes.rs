//! Lines by class: what may run unasked as read-only, what a rule covers, what neither does.
//!
//! The lines are in `cases/`, one a row; a row that begins with `json ` holds a JSON string.

use super::law::{Answer, Rules, analysed, judge};
use toolgate_shell_syntax::{DangerKind, DangerStanding};

pub(crate) fn lines(text: &str) -> Vec<String> {
    let line = |row: &str| match row.strip_prefix("json ") {
        Some(json) => serde_json::from_str(json).unwrap(),
        None => row.to_owned(),
    };
    text.lines().map(line).collect()
}

/// The rules that `covered.txt` and `not-covered.txt` are judged by.
const ALLOWED: &str = "npm run * | git commit * | echo * | cat * | find * | sed * | git * | cp * | rm * | mkdir * | curl * | xargs * | grep * | python3 * | make | env * | bash -c * | tee * | awk * | docker exec * | gh pr * | mv * | touch * | sudo * | watch * | test * | printf * | tar * | rg * | sort *";

fn rules(allow: &str, deny: &str) -> Rules {
    let split = |rules: &str| rules.split(" | ").filter(|rule| !rule.is_empty()).map(str::to_owned).collect();
    Rules { allow: split(allow), deny: split(deny), read_only: true, ..Rules::default() }
}

fn check(rules: &Rules, expected: Answer, text: &str) {
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
fn everyday_reading_is_free() {
    check(&rules("", ""), Answer::Allow, include_str!("cases/free.txt"));
}

#[test]
fn reading_what_is_named_at_run_time_is_free_only_where_the_kernel_limits_it() {
    let lines = include_str!("cases/bounded.txt");
    check(&rules("", ""), Answer::Ask, lines);
    check(&Rules { bounded: true, ..rules("", "") }, Answer::Allow, lines);
}

#[test]
fn what_writes_runs_or_sends_is_asked_about_where_the_kernel_limits_reads_too() {
    let bounded = Rules { bounded: true, ..rules("", "") };
    check(&bounded, Answer::Ask, include_str!("cases/not-bounded.txt"));
}

#[test]
fn reading_git_is_free_where_the_line_starts() {
    check(&rules("", ""), Answer::Allow, include_str!("cases/free-git.txt"));
}

#[test]
fn git_that_writes_runs_or_leaves_is_asked_about() {
    check(&rules("", ""), Answer::Ask, include_str!("cases/asked-git.txt"));
}

#[test]
fn what_writes_runs_sends_or_looks_elsewhere_is_asked_about() {
    check(&rules("", ""), Answer::Ask, include_str!("cases/asked.txt"));
}

#[test]
fn expansions_that_evaluate_nothing_are_free() {
    check(&rules("", ""), Answer::Allow, include_str!("cases/reader-free.txt"));
}

#[test]
fn what_bash_evaluates_or_reads_otherwise_is_asked_about() {
    check(&rules("", ""), Answer::Ask, include_str!("cases/reader-asked.txt"));
    // Neither does a rule for whatever the line seems to run.
    check(&rules("* | echo *", ""), Answer::Ask, include_str!("cases/reader-evaluated.txt"));
}

#[test]
fn a_rule_covers_the_plain_use() {
    check(&rules(ALLOWED, ""), Answer::Allow, include_str!("cases/covered.txt"));
}

#[test]
fn a_rule_does_not_cover_more() {
    check(&rules(ALLOWED, ""), Answer::Ask, include_str!("cases/not-covered.txt"));
}

#[test]
fn a_denied_command_is_denied_however_it_is_spelled() {
    check(&rules("*", "curl * | curl | git push * | rm *"), Answer::Deny, include_str!("cases/denied.txt"));
}

#[test]
fn a_runner_whose_command_cannot_be_seen_is_asked_about_under_a_rule_for_everything() {
    check(&rules("*", "curl *"), Answer::Ask, include_str!("cases/not-plain.txt"));
}

#[test]
fn a_denied_word_that_is_only_text_is_not() {
    check(&rules("*", "curl * | git push * | rm *"), Answer::Allow, include_str!("cases/not-denied.txt"));
}

#[test]
fn removals_that_take_too_much_are_binding() {
    let binding = |text: &str| {
        let kinds = analysed(text).dangers;
        kinds.iter().any(|danger| {
            danger.kind == DangerKind::DangerousRemoval && danger.standing == DangerStanding::Binding
        })
    };
    let missed: Vec<String> =
        lines(include_str!("cases/binding.txt")).into_iter().filter(|text| !binding(text)).collect();
    assert!(missed.is_empty(), "not seen: {missed:#?}");
    let needless: Vec<String> =
        lines(include_str!("cases/not-binding.txt")).into_iter().filter(|text| binding(text)).collect();
    assert!(needless.is_empty(), "seen without need: {needless:#?}");
}
