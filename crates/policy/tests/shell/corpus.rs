//! The corpus of known bypasses and ordinary lines, judged by the model of the policy.

use super::simple_policy::{Answer, SimpleRules, judge, workspace};
use serde_json::Value;
use toolgate_proto::{CommandLine, ShellKind};
use toolgate_shell_syntax::analyse;

/// The strings of a list in a case.
fn strings(value: &Value, key: &str) -> Vec<String> {
    let list = value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The patterns of the rules for one tool: `ls *` for `Bash(ls *)`.
fn specifiers(rules: &[String], tool: &str) -> Vec<String> {
    rules
        .iter()
        .filter_map(|rule| rule.strip_prefix(tool)?.strip_prefix('(')?.strip_suffix(')'))
        .map(str::to_owned)
        .collect()
}

/// Every case with its rules and its command line.
pub(crate) fn cases() -> Vec<(Value, SimpleRules, CommandLine)> {
    include_str!("../corpus/shell.jsonl")
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let policy = &case["policy"];
            let deny = strings(policy, "deny");
            let rules = SimpleRules {
                allow: specifiers(&strings(policy, "allow"), "Bash"),
                deny: specifiers(&deny, "Bash"),
                denied_reads: specifiers(&deny, "Read"),
                protected: strings(policy, "protected"),
                read_only: policy["readonly_auto"] == Value::Bool(true),
                bounded: false,
            };
            let shell = if policy["shell"] == "zsh" { ShellKind::Other } else { ShellKind::Bash };
            let text = case["input"].as_str().unwrap().to_owned();
            let line = CommandLine::new(text, shell, workspace().cwd);
            (case, rules, line)
        })
        .collect()
}

#[test]
fn known_bypasses_are_not_allowed_and_ordinary_lines_are() {
    let mut wrong = Vec::new();
    let mut needless = 0;
    for (case, rules, line) in cases() {
        let analysis = analyse(&line, &workspace());
        let answer = judge(&analysis, &rules);
        let right = match (case["expect"].as_str(), case["strict"].as_str()) {
            (Some("allow"), _) if line.shell == ShellKind::Other => true,
            (Some("allow"), _) => answer == Answer::Allow,
            (_, Some("deny")) => answer == Answer::Deny,
            _ => answer != Answer::Allow,
        };
        if !right {
            needless += usize::from(case["expect"] == "allow");
            wrong.push(format!(
                "{} {:?} {answer:?} (expected {}): {analysis:#?}",
                case["id"], line.text, case["expect"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong, {needless} of them needless questions\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
