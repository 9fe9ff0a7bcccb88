//! Properties of decisions, checked on random rules and calls.

use super::fake_workspace::{FakeWorkspace, abs, action, compile, identity, input_of};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Map, Value, json};
use toolgate_policy::{Policy, RawPolicy, RuleAction};
use toolgate_proto::{Effect, Intent, Mode, SourceId, Verdict};

const RULES: &[&str] = &[
    "Bash",
    "Bash(npm *)",
    "Bash(npm run build)",
    "Bash(git *)",
    "Bash(git push *)",
    "Bash(rm *)",
    "Bash(cat *)",
    "Bash(curl *)",
    "Bash(* install)",
    "Bash(echo *)",
    "Read",
    "Read(src/**)",
    "Read(.env)",
    "Read(//etc/**)",
    "Read(~/.ssh/**)",
    "Edit",
    "Edit(src/**)",
    "Edit(docs/**)",
    "Edit(//tmp/**)",
    "Edit(*.md)",
    "WebFetch",
    "WebFetch(domain:example.com)",
    "WebFetch(domain:*.example.com)",
    "WebSearch",
    "Agent",
    "Agent(Explore)",
    "Skill(review)",
    "Skill(review *)",
    "mcp__gh",
    "mcp__gh__get_*",
    "mcp__gh__get_issue",
    "mcp__fs__read",
    "Write",
    "Grep",
    "TodoWrite",
    "Monitor",
];

const CALLS: &[(&str, &str)] = &[
    ("Bash", "npm run build"),
    ("Bash", "npm install"),
    ("Bash", "git push origin main"),
    ("Bash", "git status"),
    ("Bash", "rm -r build"),
    ("Bash", "cat .env"),
    ("Bash", "cat src/a.rs"),
    ("Bash", "curl https://example.com/x"),
    ("Bash", "echo hi > notes.md"),
    ("Bash", "echo hi > src/a.rs"),
    ("Bash", "cat /etc/passwd"),
    ("Bash", "echo a; rm b"),
    ("Bash", "eval \"$X\""),
    ("Bash", "npm run build && git push"),
    ("Read", "src/a.rs"),
    ("Read", ".env"),
    ("Read", "/etc/passwd"),
    ("Read", "~/.ssh/id_rsa"),
    ("Edit", "src/a.rs"),
    ("Edit", "docs/a.md"),
    ("Write", "/tmp/x"),
    ("Write", ".git/config"),
    ("Write", "src/.env"),
    ("Grep", "src"),
    ("WebFetch", "https://example.com/"),
    ("WebFetch", "https://a.example.com/"),
    ("WebFetch", "https://evil.test/"),
    ("WebFetch", "http://localhost:3000/"),
    ("WebSearch", "x"),
    ("Agent", "Explore"),
    ("Agent", "Plan"),
    ("Skill", "review"),
    ("Skill", "review 12"),
    ("mcp__gh__get_issue", "{}"),
    ("mcp__gh__delete", "{}"),
    ("mcp__fs__read", "{}"),
    ("TodoWrite", "{}"),
    ("Unknown", "{}"),
    ("Monitor", "npm run build"),
];

const MODES: &[&str] = &["default", "plan", "acceptEdits", "dontAsk", "bypass", "deny"];

/// The configuration for at least this many cases; `PROPTEST_CASES` can raise the number.
fn cases(count: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(count), failure_persistence: None, ..default }
}

#[derive(Debug, Clone)]
struct GeneratedRules {
    allow: Vec<&'static str>,
    ask: Vec<&'static str>,
    deny: Vec<&'static str>,
    mode: &'static str,
}

impl GeneratedRules {
    fn settings(&self) -> Value {
        json!({ "permissions": { "allow": self.allow, "ask": self.ask, "deny": self.deny }, "mode": self.mode })
    }

    fn judge(&self, (tool, text): (&str, &str)) -> (RuleAction, bool) {
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&self.settings(), &world);
        let judgement = world.judge(&policy, tool, &input_of(tool, text));
        let explicit = matches!(&judgement.verdict, Verdict::Ask(question) if question.explicit);
        (action(&judgement), explicit)
    }
}

fn rules() -> impl Strategy<Value = GeneratedRules> {
    let pick = |max: usize| subsequence(RULES, 0..=max);
    (pick(6), pick(3), pick(3), select(MODES)).prop_map(|(allow, ask, deny, mode)| GeneratedRules {
        allow,
        ask,
        deny,
        mode,
    })
}

fn call() -> impl Strategy<Value = (&'static str, &'static str)> {
    select(CALLS)
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn default_is_not_allow(call in call(), mode in select(&["default", "plan", "dontAsk", "deny"][..])) {
        let rules = GeneratedRules { allow: vec![], ask: vec![], deny: vec![], mode };
        let needs_no_rule = matches!(call.0, "TodoWrite" | "Grep")
            || call == ("Read", "src/a.rs")
            || call == ("Bash", "git status")
            || call == ("Bash", "cat src/a.rs");
        let (action, _) = rules.judge(call);
        prop_assert!(action != RuleAction::Allow || (needs_no_rule && mode != "deny"), "{:?}", call);
    }

    #[test]
    fn deny_wins(rules in rules(), call in call()) {
        let alone = GeneratedRules { allow: vec![], ask: vec![], deny: rules.deny.clone(), mode: "default" };
        if alone.judge(call).0 == RuleAction::Deny {
            prop_assert_eq!(rules.judge(call).0, RuleAction::Deny);
        }
    }

    #[test]
    fn order_and_duplicates_do_not_matter(rules in rules(), call in call(), at in any::<Index>()) {
        let mut other = rules.clone();
        other.allow.reverse();
        other.deny.reverse();
        other.ask.reverse();
        for list in [&mut other.allow, &mut other.ask, &mut other.deny] {
            if !list.is_empty() {
                let again = list[at.index(list.len())];
                list.push(again);
            }
        }
        prop_assert_eq!(rules.judge(call), other.judge(call));
    }

    #[test]
    fn adding_a_deny_never_adds_an_allow(rules in rules(), call in call(), more in select(RULES)) {
        let mut stricter = rules.clone();
        stricter.deny.push(more);
        prop_assert!(stricter.judge(call).0 >= rules.judge(call).0);
    }

    #[test]
    fn adding_an_ask_never_adds_an_allow(rules in rules(), call in call(), more in select(RULES)) {
        let mut stricter = rules.clone();
        stricter.ask.push(more);
        prop_assert!(stricter.judge(call).0 >= rules.judge(call).0);
    }

    #[test]
    fn adding_an_allow_never_lifts_a_deny_or_an_explicit_ask(rules in rules(), call in call(), more in select(RULES)) {
        let mut looser = rules.clone();
        looser.allow.push(more);
        let (before, explicit) = rules.judge(call);
        // A denial by mode dontAsk may replace a question by default, which an allow rule answers.
        if (before == RuleAction::Deny && rules.mode != "dontAsk") || explicit {
            prop_assert!(looser.judge(call).0 >= before);
        }
        prop_assert!(looser.judge(call).0 <= before || before == RuleAction::Allow);
    }

    #[test]
    fn the_mode_never_lifts_a_deny(rules in rules(), call in call(), mode in select(MODES)) {
        let (before, _) = GeneratedRules { mode: "default", ..rules.clone() }.judge(call);
        if before == RuleAction::Deny {
            prop_assert_eq!(GeneratedRules { mode, ..rules }.judge(call).0, RuleAction::Deny);
        }
    }

    #[test]
    fn dont_ask_never_asks(rules in rules(), call in call()) {
        prop_assert_ne!(GeneratedRules { mode: "dontAsk", ..rules }.judge(call).0, RuleAction::Ask);
    }

    #[test]
    fn an_explicit_ask_survives_bypass(rules in rules(), call in call()) {
        let (before, explicit) = GeneratedRules { mode: "default", ..rules.clone() }.judge(call);
        if before == RuleAction::Ask && explicit {
            let (after, _) = GeneratedRules { mode: "bypass", ..rules }.judge(call);
            prop_assert!(after >= RuleAction::Ask);
        }
    }
}

const PARTS: &[&str] = &[
    "npm run build",
    "npm install",
    "git push origin main",
    "git status",
    "rm -r build",
    "cat .env",
    "cat src/a.rs",
    "curl https://example.com/x",
    "echo hi",
    "ls",
    "echo hi > notes.md",
];

proptest! {
    #![proptest_config(cases(384))]

    #[test]
    fn a_compound_line_is_as_strict_as_its_strictest_command(
        rules in rules(),
        parts in proptest::collection::vec(select(PARTS), 2..4),
        joint in select(&[" && ", "; ", " | ", " || ", "\n", " & "][..]),
    ) {
        let whole = parts.join(joint);
        let strictest = parts.iter().map(|part| rules.judge(("Bash", part)).0).max().unwrap();
        let (got, _) = rules.judge(("Bash", &whole));
        prop_assert!(got >= strictest, "{whole}: {got} but a part is {strictest}");
        // A pipe may ask for reasons of its own; a list may not.
        if matches!(joint, " && " | "; ") {
            prop_assert_eq!(got, strictest, "{}", whole);
        }
    }

    #[test]
    fn harmless_respelling_changes_nothing(rules in rules(), part in select(PARTS), blanks in 1usize..4) {
        let spaced = part.replace(' ', &" ".repeat(blanks));
        let commented = format!("{part} # and so on");
        let quoted = part.split(' ').enumerate().map(|(at, word)| {
            if at == 1 && word.chars().all(|c| c.is_ascii_alphanumeric()) { format!("'{word}'") } else { word.to_owned() }
        }).collect::<Vec<_>>().join(" ");
        for other in [spaced, format!("  {part}  "), commented, quoted] {
            prop_assert_eq!(rules.judge(("Bash", part)).0, rules.judge(("Bash", &other)).0, "{}", other);
        }
    }

    #[test]
    fn a_disguised_command_is_never_allowed_unless_the_plain_one_is(rules in rules(), part in select(PARTS), how in 0usize..16) {
        let quoted = part.replace('\'', "'\\''");
        let disguised = match how {
            0 => format!("env {part}"),
            1 => format!("nohup {part}"),
            2 => format!("timeout 5 {part}"),
            3 => format!("sudo {part}"),
            4 => format!("({part})"),
            5 => format!("{{ {part}; }}"),
            6 => format!("bash -c '{quoted}'"),
            7 => format!("echo \"$({part})\""),
            8 => format!("true && {part}"),
            9 => format!("FOO=bar {part}"),
            10 => format!("\\{part}"),
            11 => format!("eval '{quoted}'"),
            12 => format!("if true; then {part}; fi"),
            13 => format!("f() {{ {part}; }}; f"),
            14 => format!("cat <({part})"),
            _ => format!("time {part}"),
        };
        let before = rules.judge(("Bash", part)).0;
        if before != RuleAction::Allow {
            prop_assert_ne!(rules.judge(("Bash", &disguised)).0, RuleAction::Allow, "{}", disguised);
        }
    }
}

/// The expected answer of a policy book, by a naive implementation.
fn naive(book: &Value, tool: &str, input: &Map<String, Value>) -> Option<RuleAction> {
    let rules = book["rules"].as_array().unwrap();
    let holds = |rule: &Value| {
        rule["conditions"].as_array().into_iter().flatten().all(|condition| {
            let Some(value) = input.get(condition["param"].as_str().unwrap()) else { return false };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let wanted: Vec<&str> = match &condition["value"] {
                Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            wanted.iter().any(|wanted| match condition["operator"].as_str().unwrap() {
                "equals" => text == *wanted,
                "contains" => text.contains(wanted),
                "startsWith" => text.starts_with(wanted),
                _ => text.contains(wanted),
            })
        })
    };
    let action = |rule: &Value| serde_json::from_value(rule["action"].clone()).unwrap();
    let own = rules.iter().filter(|rule| rule["tool"] == tool).find(|rule| holds(rule));
    let any = rules.iter().filter(|rule| rule["tool"] == "*").find(|rule| holds(rule));
    own.or(any).map(action).or_else(|| serde_json::from_value(book["defaultAction"].clone()).ok())
}

fn judge_book(book: &Value, tool: &str, input: &Map<String, Value>) -> Verdict {
    let world = FakeWorkspace::new("/ws");
    let (policy, _) = compile(&json!({ "policy": book }), &world);
    let mut identity = identity(tool);
    identity.source = SourceId::Sdk;
    let intent = Intent::new("do something", [Effect::Opaque]);
    world.judge_intent(&policy, &identity, input, &intent, &[]).verdict
}

fn book_rule() -> impl Strategy<Value = Value> {
    let condition = (
        select(&["p", "q"][..]),
        select(&["equals", "contains", "matches", "startsWith"][..]),
        prop_oneof![Just(json!("a")), Just(json!("ab")), Just(json!(["b", "c"])), Just(json!("true"))],
    );
    let condition = condition
        .prop_map(|(param, operator, value)| json!({ "param": param, "operator": operator, "value": value }));
    (
        select(&["one", "two", "*"][..]),
        select(&["allow", "ask", "deny"][..]),
        proptest::collection::vec(condition, 0..3),
    )
        .prop_map(
            |(tool, action, conditions)| json!({ "tool": tool, "action": action, "conditions": conditions }),
        )
}

fn book() -> impl Strategy<Value = Value> {
    (proptest::collection::vec(book_rule(), 0..6), select(&["allow", "ask", "deny"][..]))
        .prop_map(|(rules, default)| json!({ "defaultAction": default, "rules": rules }))
}

fn book_input() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(json!("a")),
        Just(json!("abc")),
        Just(json!(true)),
        Just(json!(12)),
        Just(json!("c"))
    ];
    let value = proptest::option::of(value);
    (value.clone(), value).prop_map(|(p, q)| {
        [("p", p), ("q", q)].into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn property_33_policy_decision_evaluation(
        book in book(), input in book_input(), tool in select(&["one", "two", "three"][..]),
    ) {
        let wanted = naive(&book, tool, &input).unwrap();
        let got = judge_book(&book, tool, &input);
        prop_assert_eq!(got.as_str(), wanted.to_string());
    }

    #[test]
    fn property_34_policy_rule_precedence(
        specific in select(&["allow", "ask", "deny"][..]), wildcard in select(&["allow", "ask", "deny"][..]),
        first in any::<bool>(),
    ) {
        let own = json!({ "tool": "one", "action": specific });
        let any = json!({ "tool": "*", "action": wildcard });
        let rules = if first { vec![own, any] } else { vec![any, own] };
        let book = json!({ "defaultAction": "ask", "rules": rules });
        prop_assert_eq!(judge_book(&book, "one", &Map::new()).as_str(), specific);
        prop_assert_eq!(judge_book(&book, "two", &Map::new()).as_str(), wildcard);
    }

    #[test]
    fn property_35_policy_condition_evaluation(
        rule in book_rule(), input in book_input(), tool in select(&["one", "two"][..]),
    ) {
        // The default differs from the rule, so the answer shows whether the rule applied.
        let default = if rule["action"] == "ask" { "deny" } else { "ask" };
        let book = json!({ "defaultAction": default, "rules": [rule] });
        let applies = naive(&book, tool, &input).unwrap().to_string() != default;
        prop_assert_eq!(judge_book(&book, tool, &input).as_str() != default, applies);
    }

    #[test]
    fn property_36_policy_risk_classification(
        call in call(), risk in select(&["low", "medium", "high"][..]), named in any::<bool>(),
    ) {
        let rule = json!({ "tool": if named { call.0 } else { "other" }, "action": "ask", "risk": risk });
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&json!({ "policy": { "rules": [rule] } }), &world);
        let judgement = world.judge(&policy, call.0, &input_of(call.0, call.1));
        let got = judgement.risk.to_string();
        prop_assert!(["low", "medium", "high", "critical"].contains(&got.as_str()));
        if named && got != "critical" {
            let reveals = call.1.contains(".env") || call.1.contains(".ssh");
            let wanted = if reveals { "high" } else { risk };
            prop_assert!(got == wanted || call.0 == "Bash" || call.0 == "Monitor", "{got} is not {wanted}");
        }
    }

    #[test]
    fn property_37_confirmation_details_completeness(rules in rules(), call in call()) {
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&GeneratedRules { mode: "default", ..rules }.settings(), &world);
        let judgement = world.judge(&policy, call.0, &input_of(call.0, call.1));
        if let Verdict::Ask(question) = &judgement.verdict {
            prop_assert_eq!(question.tool.as_str(), call.0);
            prop_assert!(!question.description.is_empty());
            prop_assert!(!question.locations.is_empty() && !question.effects.is_empty());
            prop_assert!(!question.reason.text.is_empty());
            if question.explicit {
                prop_assert!(question.suggestions.is_empty());
            }
        }
    }

    /// Whatever reads a file that may hold secrets is at least of high risk: in the judgement, and in the question.
    #[test]
    fn reading_secrets_is_of_high_risk(rules in rules(), call in select(&[
        ("Read", ".env"), ("Read", "~/.ssh/id_rsa"), ("Bash", "cat .env"), ("Bash", "head -1 server.pem && ls"), ("Write", "src/.env"),
    ][..])) {
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&rules.settings(), &world);
        let judgement = world.judge(&policy, call.0, &input_of(call.0, call.1));
        prop_assert!(judgement.risk >= toolgate_proto::RiskLevel::High, "{:?}", judgement);
        if let Verdict::Ask(question) = &judgement.verdict {
            prop_assert_eq!(question.risk, judgement.risk);
        }
    }

    /// A suggestion that is accepted avoids the question, and is not broader than calls of its kind.
    #[test]
    fn suggestions_are_narrow_and_work(call in call()) {
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&json!({}), &world);
        let input = input_of(call.0, call.1);
        let judgement = world.judge(&policy, call.0, &input);
        if let Verdict::Ask(question) = &judgement.verdict {
            let rules: Vec<&str> = question.suggestions.iter().map(|suggestion| suggestion.rule.as_str()).collect();
            let wider: Vec<&str> =
                question.suggestions.iter().map(|suggestion| suggestion.wider.as_deref().unwrap_or(&suggestion.rule)).collect();
            for rule in rules.iter().chain(&wider) {
                for wide in ["Bash", "Bash(bash *)", "Bash(python *)", "Bash(git *)", "Bash(sudo *)", "Bash(npm *)", "Bash(rm *)"] {
                    prop_assert_ne!(*rule, wide);
                }
            }
            for rules in [rules, wider].into_iter().filter(|rules| !rules.is_empty()) {
                let (after, problems) = compile(&json!({ "allow": rules }), &world);
                prop_assert!(problems.iter().all(|problem| problem.weight == toolgate_policy::ProblemSeverity::Note));
                let again = world.judge(&after, call.0, &input);
                let still = matches!(&again.verdict, Verdict::Ask(question) if !question.suggestions.is_empty());
                prop_assert!(!still, "{:?} still asks: {}", rules, again.verdict.reason());
            }
        }
    }

    #[test]
    fn every_judgement_explains_itself(rules in rules(), call in call()) {
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&rules.settings(), &world);
        let judgement = world.judge(&policy, call.0, &input_of(call.0, call.1));
        let last = judgement.steps.last().unwrap();
        prop_assert!(last.action.is_some(), "{:?}", judgement.steps);
        let strict = judgement.parts.iter().map(|part| part.action).max();
        if let Some(strict) = strict
            && policy.mode() == Mode::Default
        {
            prop_assert!(action(&judgement) >= strict);
        }
        let again: Policy = policy.clone();
        prop_assert_eq!(world.judge(&again, call.0, &input_of(call.0, call.1)), judgement);
    }
}

proptest! {
    /// A search checks names where that is sufficient, and paths elsewhere, with the same result.
    #[test]
    fn checking_a_name_gives_the_result_of_checking_its_path(
        names in prop::collection::vec(select(NAMES), 1..4),
        patterns in subsequence(PATTERNS.to_vec(), 0..3),
    ) {
        let world = FakeWorkspace::new("/ws");
        let mut raw = RawPolicy::default();
        raw.sensitive = patterns.iter().map(|text| (*text).to_owned()).collect();
        let filter = raw.compile().0.read_filter(&world.workspace);
        let path = abs(&format!("/ws/{}", names.join("/")));
        if filter.can_check_by_name(&path.parent().unwrap()) {
            prop_assert_eq!(filter.is_sensitive_name(names.last().unwrap()), filter.is_sensitive(&path), "{}", path);
        }
    }
}

const NAMES: &[&str] = &[
    "src",
    "a.rs",
    "x.pem",
    "X.PEM",
    ".env",
    ".ssh",
    "config",
    "id_rsa",
    "secrets",
    "credentials",
    "secrets.rs",
    "credentials.json",
    ".aws",
    "keys",
    "conf.d",
    "vault",
    "private.txt",
    "notes",
    "n\u{200b}otes",
];
const PATTERNS: &[&str] = &["vault/**", "*.txt", "conf*/keys", "notes", "**/p*.txt", "**/conf*/x/**"];
