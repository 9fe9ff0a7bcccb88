//! Runs the case files: Markdown that is documentation and test at once.

use super::fake_workspace::{FakeWorkspace, Node, compile, input_of, raw_policy, word};
use serde_json::Value;
use toolgate_policy::{ProblemSeverity, cases};

/// The workspace with the symlinks that a settings block lists: `"links": {"p/key": "~/.ssh/id"}`.
fn world(settings: &Value) -> FakeWorkspace {
    let mut world = FakeWorkspace::new("/ws");
    for (link, to) in settings["links"].as_object().into_iter().flatten() {
        let (link, to) = (world.path(link).to_string(), world.path(to.as_str().unwrap()).to_string());
        world = world.with(&link, Node::Link(to));
    }
    world
}

fn run(name: &str, text: &str) -> usize {
    let sections = cases::parse(text, |text| {
        serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))
    })
    .unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for section in &sections {
        let settings = section.settings.clone().unwrap_or_else(|| panic!("{name}: a table without settings"));
        let world = world(&settings);
        let (policy, _) = compile(&settings, &world);
        for row in &section.calls {
            count += 1;
            let judgement = world.judge(&policy, &row.tool, &input_of(&row.tool, &row.input));
            if word(&judgement) != row.verdict {
                wrong.push(format!(
                    "{name}:{} ({}) `{} {}`: expected {}, got {} ({})",
                    row.line,
                    section.heading,
                    row.tool,
                    row.input,
                    row.verdict,
                    word(&judgement),
                    judgement.verdict.reason(),
                ));
            }
        }
        for row in &section.rules {
            count += 1;
            let mut raw = raw_policy(&settings, &world).with_layers(Vec::new());
            let mut layer = raw_policy(&settings, &world).layers.remove(0);
            (layer.allow, layer.ask, layer.deny) = (Vec::new(), Vec::new(), Vec::new());
            match row.action.as_str() {
                "allow" => layer.allow.push(row.rule.as_str().into()),
                "ask" => layer.ask.push(row.rule.as_str().into()),
                "deny" => layer.deny.push(row.rule.as_str().into()),
                other => panic!("{name}:{}: `{other}` is not a list", row.line),
            }
            raw.layers.push(layer);
            let (_, problems) = raw.compile();
            let got = match problems.iter().map(|problem| problem.weight).max() {
                None => "fine",
                Some(ProblemSeverity::Note) => "note",
                Some(ProblemSeverity::Warning) => "warning",
                Some(ProblemSeverity::Fatal) => "fatal",
            };
            if got != row.weight {
                wrong.push(format!(
                    "{name}:{} {} `{}`: expected {}, got {got} {problems:?}",
                    row.line, row.action, row.rule, row.weight
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
    count
}

#[test]
fn the_examples_of_the_rule_language_pass() {
    assert!(run("permissions.md", include_str!("../cases/permissions.md")) >= 60);
}

#[test]
fn the_examples_of_the_policy_documentation_pass() {
    assert!(run("policy.md", include_str!("../../../../docs/policy.md")) >= 40);
}
