//! Properties of decisions about every built-in tool of both toolsets: rules, conditions, questions and risks.
//!
//! What is expected is written down here a second time, from the manual, or follows from how a rule was generated.

use super::builtin_properties::{Numbers, for_each_case};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate::policy::RawBook;
use toolgate::{Effect, Judgement, Layer, RawPolicy, RiskLevel, ToolCall, ToolDefinition, Toolgate, Verdict};

/// The judgement about a call under a policy that consists of this book.
fn judge(toolgate: &Toolgate, tool: &ToolDefinition, input: &Value, book: Option<Value>) -> Judgement {
    let mut policy = RawPolicy::default();
    policy.books.extend(book.map(|book| RawBook::new(Layer::User, book)));
    assert!(
        toolgate
            .gate()
            .set_policy(policy)
            .iter()
            .all(|problem| problem.message.contains("default of `allow`"))
    );
    toolgate.check(tool.name.clone(), &input.to_string()).unwrap()
}

fn effects(toolgate: &Toolgate, tool: &ToolDefinition, input: &Value) -> Vec<Effect> {
    let call = ToolCall::new("c", tool.name.clone(), input.to_string());
    toolgate.gate().derive_intent(toolgate.session(), &call).unwrap().intent.effects
}

/// Two names of one field in the same tool. A call that has both is restricted by either and allowed by both only, which is
/// for other tests.
const TWO_NAMES: [[&str; 2]; 3] = [["task_id", "bash_id"], ["task_id", "shell_id"], ["context", "-C"]];

/// A condition of a policy book's rule about this input, and whether it holds. Where it holds is decided here, by how it
/// was made, and not by a comparison.
fn make_condition(input: &Map<String, Value>, numbers: &mut Numbers) -> (Value, bool) {
    let is_twin = |name: &str| {
        TWO_NAMES
            .iter()
            .any(|names| names.contains(&name) && names.iter().all(|name| input.contains_key(*name)))
    };
    let names: Vec<&String> = input.keys().filter(|name| !is_twin(name)).collect();
    if names.is_empty() || numbers.below(6) == 0 {
        let operator = *numbers.pick(&["equals", "contains", "startsWith", "matches"]);
        return (json!({ "param": "no_such_field", "operator": operator, "value": "" }), false);
    }
    let name = numbers.pick(&names).as_str();
    let text = match &input[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let chars: Vec<char> = text.chars().collect();
    let start = numbers.below(chars.len() + 1);
    let end = start + numbers.below(chars.len() - start + 1);
    let slice = |from: usize, to: usize| chars[from..to].iter().collect::<String>();
    // A character that no generated input has.
    let foreign = |text: String| format!("{text}\u{1F980}");
    let (operator, value, holds) = match numbers.below(10) {
        0 => ("equals", json!(text), true),
        1 => ("equals", json!(foreign(text.clone())), false),
        2 => ("contains", json!(slice(start, end)), true),
        3 => ("contains", json!(foreign(slice(start, end))), false),
        4 => ("startsWith", json!(slice(0, end)), true),
        5 => ("startsWith", json!(foreign(slice(0, end))), false),
        6 => ("matches", json!(format!("^{}$", regex::escape(&text))), true),
        7 => ("matches", json!(format!("{}$.", regex::escape(&text))), false),
        // Of several values one is enough.
        8 => ("equals", json!([foreign(String::new()), text]), true),
        _ => ("contains", json!([foreign(String::new()), foreign(slice(start, end))]), false),
    };
    (json!({ "param": name, "operator": operator, "value": value }), holds)
}

/// Rules of a book about this input, and the action that the first of them that applies has: those for the tool come
/// before those for every tool.
fn make_book(tool: &str, input: &Map<String, Value>, numbers: &mut Numbers) -> (Value, Option<&'static str>) {
    let actions = ["allow", "ask", "deny"];
    let (mut rules, mut own, mut any) = (Vec::new(), None, None);
    for _ in 0..numbers.below(5) {
        let (conditions, hold): (Vec<Value>, Vec<bool>) =
            (0..numbers.below(3)).map(|_| make_condition(input, numbers)).unzip();
        let (named, action) = (*numbers.pick(&[tool, "*", "NoSuchTool"]), *numbers.pick(&actions));
        rules.push(json!({ "tool": named, "action": action, "conditions": conditions }));
        if hold.iter().all(|holds| *holds) {
            match named {
                "*" => any = any.or(Some(action)),
                "NoSuchTool" => {}
                _ => own = own.or(Some(action)),
            }
        }
    }
    let default = numbers.pick(&[None, Some("allow"), Some("ask"), Some("deny")]);
    let mut book = json!({ "rules": rules });
    if let Some(default) = default {
        book["defaultAction"] = json!(default);
    }
    (book, own.or(any).or(*default))
}

fn strictness(verdict: &Verdict) -> usize {
    match verdict {
        Verdict::Allow(_) => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

/// Property 33: the rule that applies decides, or else the default; without either, the book has no opinion. A book
/// never loosens what else is denied, asked about by a rule, or dangerous.
#[test]
fn property_33_policy_decision_evaluation_of_every_tool() {
    let mut numbers = Numbers(0x5EED_0000_0000_0033);
    let mut counts: BTreeMap<(String, Option<&str>), usize> = BTreeMap::new();
    for_each_case(|_, toolgate, tool, input| {
        let (book, expected) = make_book(tool.name.as_str(), input.as_object().unwrap(), &mut numbers);
        let before = judge(toolgate, tool, input, None).verdict;
        let after = judge(toolgate, tool, input, Some(book.clone())).verdict;
        let case = || format!("{}: {input}: {book}: {before:?} became {after:?}", tool.name);
        match expected {
            None => assert_eq!(after, before, "{}", case()),
            Some("deny") => assert_eq!(strictness(&after), 2, "{}", case()),
            Some("ask") => assert_eq!(strictness(&after), strictness(&before).max(1), "{}", case()),
            Some(_) => {
                let is_covered = match &before {
                    Verdict::Allow(_) => true,
                    Verdict::Ask(question) => !question.explicit && question.warnings.is_empty(),
                    Verdict::Deny(_) => false,
                };
                let wanted = if is_covered { 0 } else { strictness(&before) };
                assert_eq!(strictness(&after), wanted, "{}", case());
            }
        }
        *counts.entry((tool.name.to_string(), expected)).or_default() += 1;
    });
    let tools: Vec<String> = counts.keys().map(|(tool, _)| tool.clone()).collect();
    for tool in tools {
        for expected in [None, Some("allow"), Some("ask"), Some("deny")] {
            let seen = counts.get(&(tool.clone(), expected)).copied().unwrap_or_default();
            assert!(seen >= 5, "{tool}: {expected:?} was expected {seen} times only");
        }
    }
}

/// Property 35: a rule with conditions applies if and only if all of them hold. The oracle is the verdict without the
/// rule: a rule that applies denies, and one that does not changes nothing.
#[test]
fn property_35_policy_condition_evaluation_of_every_tool() {
    let mut numbers = Numbers(0x5EED_0000_0000_0035);
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for_each_case(|_, toolgate, tool, input| {
        let fields = input.as_object().unwrap();
        let judge = |book: Option<Value>| judge(toolgate, tool, input, book).verdict;
        let count = numbers.below(4);
        let (conditions, hold): (Vec<Value>, Vec<bool>) =
            (0..count).map(|_| make_condition(fields, &mut numbers)).unzip();
        let applies = hold.iter().all(|holds| *holds);
        let named = *numbers.pick(&[tool.name.as_str(), "*"]);
        let rule =
            json!({ "tool": named, "action": "deny", "message": "by the rule", "conditions": conditions });
        let before = judge(None);
        let after = judge(Some(json!({ "rules": [rule] })));
        match &after {
            Verdict::Deny(reason) if applies => assert!(reason.text.contains("by the rule"), "{reason:?}"),
            _ => {
                assert!(!applies, "{}: {input}: {rule} did not apply", tool.name);
                assert_eq!(after, before, "{}: {input}: {rule} applied", tool.name);
            }
        }
        counts.entry(tool.name.to_string()).or_default()[usize::from(applies)] += 1;
    });
    // Both outcomes were seen often for every tool.
    for (tool, [not, applied]) in &counts {
        assert!(*not >= 20 && *applied >= 20, "{tool}: {applied} applied, {not} did not");
    }
}

/// Commands of the generator that only read.
const READING_COMMANDS: &[&str] = &["echo one", "cat a.txt", "false", "ls sub", "printf 'a\\nb\\n'"];

/// The risk of a call by what it does: reading is low, changing one's own files and asking others is medium, running
/// programs and what is not known is high, and so is showing a secret.
fn expected_risk(effects: &[Effect], given: Option<RiskLevel>, input: &Value) -> RiskLevel {
    let of_effect = |effect: &Effect| match effect {
        Effect::Read { .. } | Effect::Ask | Effect::State { .. } => RiskLevel::Low,
        Effect::Write { .. } | Effect::Fetch { .. } | Effect::Search { .. } | Effect::Skill { .. } => {
            RiskLevel::Medium
        }
        _ => RiskLevel::High,
    };
    let by_effects = effects.iter().map(of_effect).max().unwrap_or(RiskLevel::Low);
    let risk = given.unwrap_or(by_effects);
    let command = input.get("command").and_then(Value::as_str);
    let only_reads = command.is_some_and(|command| READING_COMMANDS.contains(&command));
    let risk = if only_reads && risk == RiskLevel::High { RiskLevel::Low } else { risk };
    let shows_secret = effects.iter().any(|effect| {
        let path = match effect {
            Effect::Read { path, .. } | Effect::Write { path, .. } => path,
            _ => return false,
        };
        path.as_path().ends_with(".env")
    });
    if shows_secret { risk.max(RiskLevel::High) } else { risk }
}

/// Property 36: every call has a risk, which is that of its effects, or the one that a rule gives the tool. A question
/// shows the same.
#[test]
fn property_36_policy_risk_classification_of_every_tool() {
    let mut numbers = Numbers(0x5EED_0000_0000_0036);
    let levels = [
        ("low", RiskLevel::Low),
        ("medium", RiskLevel::Medium),
        ("high", RiskLevel::High),
        ("critical", RiskLevel::Critical),
    ];
    for_each_case(|_, toolgate, tool, input| {
        let (risk, level) = *numbers.pick(&levels);
        let named = *numbers.pick(&[tool.name.as_str(), "NoSuchTool"]);
        let rule = json!({ "tool": named, "action": "ask", "risk": risk });
        let given = (named == tool.name.as_str()).then_some(level);
        let effects = effects(toolgate, tool, input);
        for (book, given) in [(None, None), (Some(json!({ "rules": [rule] })), given)] {
            let judged = judge(toolgate, tool, input, book.clone());
            let wanted = expected_risk(&effects, given, input);
            assert_eq!(judged.risk, wanted, "{}: {input}: {book:?}: {effects:?}", tool.name);
            if let Verdict::Ask(question) = &judged.verdict {
                assert_eq!(question.risk, wanted, "{}: {input}", tool.name);
            }
        }
    });
}

/// Property 47: a call needs no confirmation, or there is everything that the user needs to confirm it.
#[test]
fn property_47_every_call_is_allowed_denied_or_asked_about() {
    for_each_case(|project, toolgate, tool, input| {
        let judged = judge(toolgate, tool, input, None);
        let effects = effects(toolgate, tool, input);
        if let Verdict::Ask(question) = &judged.verdict {
            assert_eq!(question.tool, tool.name, "{input}");
            assert!(!question.description.trim().is_empty(), "{}: {input}", tool.name);
            assert!(!question.reason.text.trim().is_empty(), "{}: {input}", tool.name);
            assert!(effects.iter().all(|effect| question.effects.contains(effect)), "{}: {input}", tool.name);
            assert_eq!(question.locations.is_empty(), question.effects.is_empty(), "{}: {input}", tool.name);
        }
        // The oracle: no rule and no mode lets a file be written, and a secret is never read, without a question.
        let is_allowed = matches!(judged.verdict, Verdict::Allow(_));
        let names_secret = input.to_string().contains("/.env");
        let writes = effects.iter().any(|effect| matches!(effect, Effect::Write { .. }));
        let reads = !effects.is_empty() && effects.iter().all(|effect| matches!(effect, Effect::Read { .. }));
        if writes {
            assert!(!is_allowed, "{}: {input}", tool.name);
        }
        if reads && names_secret {
            let shows_secret = effects.iter().any(
                |effect| matches!(effect, Effect::Read { path, .. } if path.as_path().ends_with(".env")),
            );
            assert!(!(is_allowed && shows_secret), "{}: {input}", tool.name);
        }
        if reads && !names_secret && !input.to_string().contains("[\"") {
            assert!(is_allowed, "{}: {input}: {:?} in {}", tool.name, judged.verdict, project.root.display());
        }
    });
}
