//! Policy books of several layers, of untrusted files, and books that are not valid.

use super::fake_workspace::{FakeWorkspace, identity};
use serde_json::{Value, json};
use toolgate_policy::{Layer, Policy, ProblemSeverity, RawBook, RawPolicy, RuleProblem, UnmatchableRules};
use toolgate_proto::{Mode, RiskLevel, Verdict};

fn compile(books: Vec<RawBook>, mode: Mode) -> (Policy, Vec<RuleProblem>) {
    RawPolicy::default().with_books(books).with_mode(mode).compile()
}

fn book(layer: Layer, content: Value) -> RawBook {
    RawBook::new(layer, content)
}

/// The verdict about writing a file, which asks where no book has an opinion, and about reading one, which is allowed.
fn verdicts(policy: &Policy) -> (Verdict, Verdict) {
    let world = FakeWorkspace::new("/ws");
    let judge =
        |tool: &str| world.judge(policy, tool, &json!({ "file_path": "/ws/a", "content": "" })).verdict;
    (judge("Write"), judge("Read"))
}

#[test]
fn the_book_of_an_untrusted_file_only_tightens() {
    let untrusted = |action: &str| {
        let rule = json!({ "tool": "*", "action": action, "risk": "critical" });
        book(Layer::Project, json!({ "rules": [rule] })).with_tighten_only(true)
    };
    for (action, write, read) in [("allow", "ask", "allow"), ("ask", "ask", "ask"), ("deny", "deny", "deny")]
    {
        let (policy, _) = compile(vec![untrusted(action)], Mode::Default);
        let (on_write, on_read) = verdicts(&policy);
        assert_eq!((on_write.as_str(), on_read.as_str()), (write, read), "{action}");
    }
    // Nor does its default allow, and the risk that it gives a tool does not count.
    let default = book(Layer::Project, json!({ "defaultAction": "allow" })).with_tighten_only(true);
    assert_eq!(verdicts(&compile(vec![default], Mode::Default).0).0.as_str(), "ask");
    let rule = json!({ "rules": [{ "tool": "Write", "action": "ask", "risk": "low" }] });
    for (tighten_only, risk) in [(true, RiskLevel::Medium), (false, RiskLevel::Low)] {
        let (policy, _) =
            compile(vec![book(Layer::User, rule.clone()).with_tighten_only(tighten_only)], Mode::Default);
        let judged = FakeWorkspace::new("/ws").judge(&policy, "Write", &json!({ "file_path": "/ws/a" }));
        assert_eq!(judged.risk, risk);
    }
}

#[test]
fn of_several_books_the_strictest_counts_and_of_equals_the_strongest_layer() {
    let rules = |action: &str| json!({ "rules": [{ "tool": "Write", "action": action }] });
    for (managed, user, verdict, layer) in [
        ("allow", "deny", "deny", "user"),
        ("deny", "allow", "deny", "managed"),
        ("ask", "allow", "ask", "managed"),
        ("ask", "deny", "deny", "user"),
        ("deny", "deny", "deny", "managed"),
        ("ask", "ask", "ask", "managed"),
    ] {
        let books = vec![book(Layer::Managed, rules(managed)), book(Layer::User, rules(user))];
        let (write, read) = verdicts(&compile(books, Mode::Default).0);
        assert_eq!(write.as_str(), verdict, "{managed} {user}");
        assert_eq!(write.reason().rule.as_ref().unwrap().layer, layer, "{managed} {user}");
        assert_eq!(read.as_str(), "allow", "the rules are about another tool");
    }
    // An ask by a rule is stricter than one by default: mode bypass answers only the second.
    let by_rule = json!({ "rules": [{ "tool": "Write", "action": "ask" }] });
    let by_default = json!({ "defaultAction": "ask" });
    for (first, second, verdict) in [
        (by_default.clone(), by_default.clone(), "allow"),
        (by_default.clone(), by_rule.clone(), "ask"),
        (by_rule, by_default, "ask"),
    ] {
        let books = vec![book(Layer::Managed, first), book(Layer::User, second)];
        assert_eq!(verdicts(&compile(books, Mode::Bypass).0).0.as_str(), verdict);
    }
}

#[test]
fn a_book_that_is_not_valid_lets_nothing_pass() {
    let condition = json!([["command", "equals", "x"]]);
    for content in [
        json!([]),
        json!(["ask", []]),
        json!("deny"),
        json!({ "rules": [["Bash", "deny"]] }),
        json!({ "rules": [{ "tool": "Bash", "action": "deny", "conditions": condition }] }),
        json!({ "rules": [{ "tool": "Bash", "action": "forbid" }] }),
        json!({ "rules": [{ "tool": "Bash" }] }),
        json!({ "defaultaction": "deny" }),
    ] {
        let (policy, problems) = compile(vec![book(Layer::User, content.clone())], Mode::Default);
        assert_eq!(problems.len(), 1, "{content}: {problems:?}");
        assert_eq!(problems[0].weight, ProblemSeverity::Fatal, "{content}");
        assert!(problems[0].message.contains("the policy book is not valid"), "{content}");
        let (write, read) = verdicts(&policy);
        assert_eq!((write.as_str(), read.as_str()), ("deny", "deny"), "{content}");
    }
}

#[test]
fn every_problem_of_a_book_is_named_at_its_own_line() {
    let content = json!({ "defaultAktion": "ask", "rules": [
        { "tool": "Bash", "action": "denny" },
        { "action": "deny", "conditions": [{ "param": "x", "operator": "equal", "value": 1 }] },
        { "tool": "Write", "action": "deny",
          "conditions": [{ "param": "file_path", "operator": "matches", "value": "(" }] },
    ] });
    let mut raw = book(Layer::User, content);
    raw.line = Some(1);
    raw.rule_lines = vec![10, 20, 30];
    let lines = [("/rules/0", 10), ("/rules/0/action", 11), ("/rules/1", 20), ("/rules/1/conditions/0", 22)];
    raw.value_lines = lines.into_iter().map(|(pointer, line)| (pointer.to_owned(), line)).collect();
    let problems = compile(vec![raw], Mode::Default).1;
    let found: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}; {}", problem.rule.line.unwrap(), problem.message, problem.fix))
        .collect();
    let wanted = [
        "1: the policy book is not valid: unknown key `policy.defaultAktion`; did you mean `defaultAction`?",
        "11: the policy book is not valid: `policy.rules[0].action` is",
        "22: the policy book is not valid: `policy.rules[1].conditions[0].operator` is",
        "22: the policy book is not valid: `policy.rules[1].conditions[0].value` is",
        "20: the policy book is not valid: `policy.rules[1]` must have `tool`; add `tool`",
        "30: ",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    assert!(found.iter().zip(wanted).all(|(found, wanted)| found.starts_with(wanted)), "{found:#?}");
    assert!(found[1].ends_with("did you mean `deny`?") && found[2].ends_with("did you mean `equals`?"));
}

/// A rule whose expression cannot be compiled is fatal if it forbids, and skipped if it allows.
#[test]
fn an_expression_that_cannot_be_compiled_never_loosens() {
    for (action, weight, write) in [
        ("allow", ProblemSeverity::Warning, "deny"),
        ("ask", ProblemSeverity::Fatal, "deny"),
        ("deny", ProblemSeverity::Fatal, "deny"),
    ] {
        let conditions = json!([{ "param": "file_path", "operator": "matches", "value": "(" }]);
        let rule = json!({ "tool": "Write", "action": action, "conditions": conditions });
        let content = json!({ "defaultAction": "deny", "rules": [rule] });
        let (policy, problems) = compile(vec![book(Layer::User, content)], Mode::Default);
        assert_eq!(problems.len(), 1, "{action}: {problems:?}");
        assert_eq!(problems[0].weight, weight, "{action}");
        assert_eq!(problems[0].rule.text, "tool Write if file_path");
        assert_eq!(verdicts(&policy).0.as_str(), write, "{action}");
    }
}

#[test]
fn a_default_of_allow_is_warned_about_and_no_other() {
    for (action, is_warned) in [("allow", true), ("ask", false), ("deny", false)] {
        let content = json!({ "defaultAction": action });
        let (_, problems) = compile(vec![book(Layer::User, content)], Mode::Default);
        assert_eq!(problems.len(), usize::from(is_warned), "{action}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.weight == ProblemSeverity::Warning));
    }
}

/// A tool is hidden if its first rule denies it whatever the input is; a rule with conditions may let a call pass.
#[test]
fn a_tool_that_the_book_always_denies_is_hidden() {
    let condition = json!([{ "param": "file_path", "operator": "contains", "value": "x" }]);
    let rule = |tool: &str, action: &str| json!({ "tool": tool, "action": action });
    let conditional =
        |tool: &str, action: &str| json!({ "tool": tool, "action": action, "conditions": condition });
    for (rules, is_hidden) in [
        (vec![rule("Write", "deny")], true),
        (vec![rule("*", "deny")], true),
        (vec![rule("*", "deny"), rule("Write", "ask")], false),
        (vec![conditional("Write", "deny")], false),
        (vec![rule("Write", "ask")], false),
        (vec![rule("Write", "allow"), rule("*", "deny")], false),
        (vec![conditional("Write", "allow"), rule("Write", "deny")], false),
        (vec![rule("Read", "deny")], false),
        (vec![], false),
    ] {
        let content = json!({ "defaultAction": "ask", "rules": rules });
        let (policy, _) = compile(vec![book(Layer::User, content)], Mode::Default);
        assert_eq!(policy.hides_tool(&identity("Write")), is_hidden, "{rules:?}");
    }
}

/// The verdict of a book about a tool that nothing else denies.
fn verdict_of(policy: &Policy, tool: &str) -> &'static str {
    FakeWorkspace::new("/ws")
        .judge(policy, tool, &json!({ "file_path": "a", "command": "ls" }))
        .verdict
        .as_str()
}

/// The names of MCP tools mean in a book what they mean in `permissions`.
#[test]
fn a_rule_for_a_server_is_for_its_tools_in_books_and_permissions() {
    let tools =
        ["mcp__files__write_file", "mcp__files__read", "mcp__files2__read", "mcp__mail__send", "Bash"];
    for name in [
        "mcp__files",
        "mcp__files__*",
        "mcp__*",
        "mcp__files__read",
        "mcp__files__read*",
        "mcp__*__read",
        "mcp__f*",
    ] {
        for action in ["deny", "ask", "allow"] {
            let rule = json!({ "tool": name, "action": action });
            let (by_book, problems) =
                compile(vec![book(Layer::User, json!({ "rules": [rule] }))], Mode::Default);
            let fatal = problems.iter().any(|problem| problem.weight == ProblemSeverity::Fatal);
            assert!(!fatal, "{action} {name}: {problems:?}");
            let world = FakeWorkspace::new("/ws");
            let (by_list, of_list) = super::fake_workspace::compile(&json!({ action: [name] }), &world);
            let refused = |problems: &[RuleProblem]| {
                problems.iter().filter(|it| it.weight == ProblemSeverity::Warning).count()
            };
            assert_eq!(refused(&problems), refused(&of_list), "{action} {name}: {problems:?} {of_list:?}");
            for tool in tools {
                assert_eq!(verdict_of(&by_book, tool), verdict_of(&by_list, tool), "{action} {name}: {tool}");
            }
        }
    }
}

#[test]
fn rules_for_a_tool_and_for_its_server_are_tried_in_their_order() {
    let rule = |tool: &str, action: &str| json!({ "tool": tool, "action": action });
    let (read, server, every) =
        (rule("mcp__files__read", "allow"), rule("mcp__files", "deny"), rule("*", "ask"));
    for (rules, on_read, on_write) in [
        (vec![&read, &server], "allow", "deny"),
        (vec![&server, &read], "deny", "deny"),
        (vec![&every, &read, &server], "allow", "deny"),
        (vec![&every, &read], "allow", "ask"),
    ] {
        let (policy, problems) = compile(vec![book(Layer::User, json!({ "rules": rules }))], Mode::Default);
        assert_eq!(problems, [], "{rules:?}");
        let verdicts = (verdict_of(&policy, "mcp__files__read"), verdict_of(&policy, "mcp__files__write"));
        assert_eq!(verdicts, (on_read, on_write), "{rules:?}");
        let hidden = on_write == "deny";
        assert_eq!(policy.hides_tool(&identity("mcp__files__write")), hidden, "{rules:?}");
    }
}

/// A deny rule that can name no tool is fatal, an allow rule is skipped, and no call is granted by it.
#[test]
fn a_tool_that_no_tool_is_called_is_an_error() {
    for tool in [
        "",
        " ",
        "Ba*",
        "**",
        "Web*",
        "Bash(rm *)",
        "Bash(*)",
        "Bash|Edit",
        "Bash,Edit",
        "Bash, Edit",
        "Bash Edit",
        " Bash",
        "Bash ",
        "^Bash$",
        ".*",
        "mcp__",
        "mcp__files__",
        "mcp__my.files__read",
        "mcp__files(path:x)",
        "Bäsh",
    ] {
        for (action, weight) in [
            ("deny", ProblemSeverity::Fatal),
            ("ask", ProblemSeverity::Fatal),
            ("allow", ProblemSeverity::Warning),
        ] {
            let content = json!({ "rules": [{ "tool": tool, "action": action }] });
            let raw = RawPolicy::default().with_books(vec![book(Layer::User, content)]);
            let mut tolerant = raw.clone();
            let (policy, problems) = raw.compile();
            let [problem] = problems.as_slice() else { panic!("{action} {tool}: {problems:?}") };
            assert_eq!(problem.weight, weight, "{problem}");
            let verdict = if action == "allow" { "ask" } else { "deny" };
            assert_eq!(
                verdict_of(&policy, "Bash"),
                if action == "allow" { "allow" } else { verdict },
                "ls is a read"
            );
            assert_eq!(verdict_of(&policy, "Write"), verdict, "{action} {tool}");
            tolerant.unmatchable_rules = UnmatchableRules::Warn;
            assert_eq!(tolerant.compile().1[0].weight, ProblemSeverity::Warning, "{tool}");
        }
    }
}

/// MCP tools can have any field, so that only names that are no words are errors in rules for every tool.
#[test]
fn a_misspelled_field_in_a_rule_for_every_tool_is_named() {
    let compile_param = |tool: &str, action: &str, param: &str| {
        let condition = json!({ "param": param, "operator": "contains", "value": "x" });
        let rule = json!({ "tool": tool, "action": action, "conditions": [condition] });
        compile(vec![book(Layer::User, json!({ "rules": [rule] }))], Mode::Default).1
    };
    for (param, meant) in [
        ("comand", "command"),
        ("commnad", "command"),
        ("file_pth", "file_path"),
        ("file_paht", "file_path"),
        ("paht", "path"),
        ("subagent_typ", "subagent_type"),
        ("run_in_backgroud", "run_in_background"),
    ] {
        for (action, weight) in [
            ("deny", ProblemSeverity::Fatal),
            ("ask", ProblemSeverity::Fatal),
            ("allow", ProblemSeverity::Warning),
        ] {
            let problems = compile_param("*", action, param);
            let [problem] = problems.as_slice() else { panic!("{param}: {problems:?}") };
            assert_eq!(
                (problem.weight, &*problem.fix),
                (weight, &*format!("did you mean `{meant}`?")),
                "{param}"
            );
        }
        assert_eq!(compile_param("mcp__files", "deny", param), [], "{param}");
    }
    for param in ["filePath", "Command", "subagentType"] {
        let problems = compile_param("*", "deny", param);
        assert_eq!(
            problems.iter().map(|it| it.weight).collect::<Vec<_>>(),
            [ProblemSeverity::Warning],
            "{param}"
        );
    }
    for param in [
        "command",
        "file_path",
        "path",
        "url",
        "model",
        "replace_all",
        "patch",
        "code",
        "node",
        "files",
        "commands",
        "urls",
        "repo",
        "title",
        "body",
        "text",
        "branch",
        "labels",
        "selection",
        "contents",
        "destination",
        "recipient",
        "amount",
        "x",
    ] {
        assert_eq!(compile_param("*", "deny", param), [], "{param}");
    }
}
