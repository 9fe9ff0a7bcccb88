//! `break-properties`: shows that the tests of the seed's properties can fail.
//!
//! For each property, a copy of the tree is changed so that the feature behind it is broken, and the test that is named
//! after it must fail there. All runs share one copy and one target folder, so that only what changed is compiled again.

use crate::cargo::cargo_command;
use crate::{read, root};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// How long building and running one test may take, in the form that `timeout` reads.
const RUN_TIMEOUT: &str = "30m";

/// A change that breaks the feature behind a property.
struct PropertyBreak {
    /// The number of the property.
    property: &'static str,
    /// The file that is changed.
    file: &'static str,
    /// The text that is replaced, which occurs once in the file.
    find: &'static str,
    /// What it is replaced by.
    replace: &'static str,
    /// The test that must fail.
    test: NamedTest,
}

/// A test in the one test binary of a package.
#[derive(Clone, Copy)]
struct NamedTest {
    package: &'static str,
    name: &'static str,
}

const fn builtin(name: &'static str) -> NamedTest {
    NamedTest { package: "toolgate", name }
}

const fn shell(name: &'static str) -> NamedTest {
    NamedTest { package: "toolgate-tools", name }
}

const fn policy(name: &'static str) -> NamedTest {
    NamedTest { package: "toolgate-policy", name }
}

/// At least one change for each property; those of one package stand together, because that compiles least.
const BREAKS: &[PropertyBreak] = &[
    PropertyBreak {
        property: "33",
        file: "crates/policy/src/policy_book.rs",
        find: "self.rules_for(tool).into_iter().chain(&self.any)",
        replace: "self.any.iter().chain(self.rules_for(tool))",
        test: policy("policy::properties::property_33_policy_decision_evaluation"),
    },
    PropertyBreak {
        property: "36",
        file: "crates/policy/src/policy_book.rs",
        find: ".filter_map(own).max()",
        replace: ".filter_map(own).max().and(None)",
        test: policy("policy::properties::property_36_policy_risk_classification"),
    },
    PropertyBreak {
        property: "26",
        file: "crates/tools/src/shell/follow_command.rs",
        find: "reporter.report_output(task, cleared.progress(), is_running);",
        replace: "if !is_running { reporter.report_output(task, cleared.progress(), is_running); }",
        test: shell("main::bash_generated::property_26_shell_output_streaming"),
    },
    PropertyBreak {
        property: "27",
        file: "crates/tools/src/shell/follow_command.rs",
        find: "OnTimeout::Stop => {\n                    stop_task(task).await;",
        replace: "OnTimeout::Stop => {",
        test: shell("main::bash_generated::property_27_shell_timeout_enforcement"),
    },
    PropertyBreak {
        property: "28",
        file: "crates/tools/src/shell/start_command.rs",
        find: "let cwd = resolve(&request.cwd).real;",
        replace: "let cwd = resolve(&cleared.context().workspace.cwd).real;",
        test: shell("main::bash_generated::property_28_shell_working_directory"),
    },
    PropertyBreak {
        property: "45",
        file: "crates/tools/src/ls.rs",
        find: "Intent::new(format!(\"list {path}\"),",
        replace: "Intent::new(\"\",",
        test: builtin("main::builtin_properties::properties_45_and_46_every_call_is_described_and_located"),
    },
    PropertyBreak {
        property: "46",
        file: "crates/tools/src/ls.rs",
        find: "[Effect::Read { path, scope: scope(input) }]",
        replace: "[Effect::Read { path, scope: scope(input) }].into_iter().skip(1).collect::<Vec<_>>()",
        test: builtin("main::builtin_properties::properties_45_and_46_every_call_is_described_and_located"),
    },
    PropertyBreak {
        property: "49",
        file: "crates/tools/src/ls.rs",
        find: "Output::text(text.clone())",
        replace: "Output::default()",
        test: builtin(
            "main::builtin_properties::properties_49_and_57_every_result_has_content_and_every_error_a_type_and_a_message",
        ),
    },
    PropertyBreak {
        property: "48",
        file: "crates/gate/src/call_context.rs",
        find: "cancel: options.cancel.child_token(),",
        replace: "cancel: CancellationToken::new(),",
        test: builtin(
            "main::builtin_properties::property_48_a_cancelled_call_of_any_tool_stops_and_changes_nothing",
        ),
    },
    PropertyBreak {
        property: "35",
        file: "crates/policy/src/policy_book.rs",
        find: "rule.conditions.iter().all(|condition| condition.holds(fields))",
        replace: "rule.conditions.iter().any(|condition| condition.holds(fields))",
        test: builtin("main::builtin_decisions::property_35_policy_condition_evaluation_of_every_tool"),
    },
    PropertyBreak {
        property: "33",
        file: "crates/policy/src/policy_book.rs",
        find: "None => self.default.as_ref().map(",
        replace: "None => self.default.as_ref().filter(|_| false).map(",
        test: builtin("main::builtin_decisions::property_33_policy_decision_evaluation_of_every_tool"),
    },
    PropertyBreak {
        property: "36",
        file: "crates/policy/src/decide/question.rs",
        find: "base.max(secrets).max(",
        replace: "base.min(secrets).max(",
        test: builtin("main::builtin_decisions::property_36_policy_risk_classification_of_every_tool"),
    },
    PropertyBreak {
        property: "48",
        file: "crates/gate/src/call_context.rs",
        find: "refusal = self.wait_until_stopped(self.deadline) =>",
        replace: "refusal = std::future::pending::<Refusal>() =>",
        test: builtin(
            "main::builtin_properties::property_48_a_call_of_any_tool_that_is_cancelled_under_way_stops_and_changes_nothing",
        ),
    },
    PropertyBreak {
        property: "47",
        file: "crates/policy/src/decide/paths.rs",
        find: "self.add_uncovered_objection(format!(\"no rule allows writing `{}`\", forms.real), None);",
        replace: "self.add_allow_reason(\"broken\", None);",
        test: builtin("main::builtin_decisions::property_47_every_call_is_allowed_denied_or_asked_about"),
    },
    PropertyBreak {
        property: "5",
        file: "crates/proto/src/definition.rs",
        find: "\"description\": tool.description, \"input_schema\"",
        replace: "\"description\": \"\", \"input_schema\"",
        test: builtin("main::builtin_properties::property_5_schema_generation_completeness_of_all_tools"),
    },
    PropertyBreak {
        property: "57",
        file: "crates/proto/src/refusal.rs",
        find: "kind: info.kind.to_owned(),",
        replace: "kind: String::new(),",
        test: builtin(
            "main::builtin_properties::properties_49_and_57_every_result_has_content_and_every_error_a_type_and_a_message",
        ),
    },
];

/// Breaks every property, or one, and fails if a test stays green.
pub(crate) fn break_properties(only: Option<&str>) -> Result<()> {
    let chosen: Vec<&PropertyBreak> =
        BREAKS.iter().filter(|broken| only.is_none_or(|only| only == broken.property)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = BREAKS.iter().map(|broken| broken.property).collect();
        bail!("there is no such property; known are {}", known.join(", "));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().map(|root| root.join("target")), |dir| Ok(dir.into()))?;
    let folder = target.join("broken-properties");
    let tree = folder.join("tree");
    copy_tree(&root()?, &tree)?;
    let mut green = Vec::new();
    for broken in chosen {
        let started = Instant::now();
        let file = tree.join(broken.file);
        let text = read(&file)?;
        std::fs::write(&file, change(broken, &text)?)?;
        let outcome = run_test(&tree, &folder.join("target"), broken.test);
        std::fs::write(&file, &text)?;
        let is_red = outcome.with_context(|| format!("property {}", broken.property))?;
        let seen = if is_red { "red, as it must be" } else { "STILL GREEN" };
        println!("property {}: {seen} ({} s)", broken.property, started.elapsed().as_secs());
        if !is_red {
            green.push(broken.property);
        }
    }
    if !green.is_empty() {
        bail!("the tests of these properties do not notice that the feature is broken: {}", green.join(", "));
    }
    Ok(())
}

/// The text of the file with the feature broken.
fn change(broken: &PropertyBreak, text: &str) -> Result<String> {
    if text.matches(broken.find).count() != 1 {
        bail!("property {}: `{}` is not exactly once in {}", broken.property, broken.find, broken.file);
    }
    Ok(text.replacen(broken.find, broken.replace, 1))
}

/// Whether the test fails. A tree that does not compile, and a test that is not found, are errors.
fn run_test(tree: &Path, target: &Path, test: NamedTest) -> Result<bool> {
    let cargo = cargo_command();
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10s", RUN_TIMEOUT]).arg(cargo.get_program());
    for (name, value) in cargo.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["test", "--locked", "--package", test.package, "--test", "main"]);
    command.args(["--", "--exact", test.name]).env("CARGO_TARGET_DIR", target).current_dir(tree);
    let output = command.output().context("cannot start cargo")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if printed.contains(&format!("test {} ... FAILED", test.name)) {
        return Ok(true);
    }
    if printed.contains(&format!("test {} ... ok", test.name)) {
        return Ok(false);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = errors.lines().rev().take(15).collect();
    bail!("`{}` did not run:\n{}", test.name, last.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

/// Copies the files that belong to the repository; those that are as they were keep their time of change, so that they
/// are not compiled again.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(from)
        .output()
        .context("cannot start git")?;
    let names = String::from_utf8(listed.stdout)?;
    let names: BTreeSet<PathBuf> =
        names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    for name in names.iter().filter(|name| from.join(name).is_file()) {
        let content = std::fs::read(from.join(name))?;
        let copy = to.join(name);
        if std::fs::read(&copy).is_ok_and(|old| old == content) {
            continue;
        }
        if let Some(parent) = copy.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::copy(from.join(name), &copy).with_context(|| format!("cannot copy {}", name.display()))?;
    }
    remove_others(to, to, &names)
}

/// Removes files of an earlier copy that the repository no longer has.
fn remove_others(root: &Path, folder: &Path, names: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(root, &path, names)?;
        } else if path.strip_prefix(root).is_ok_and(|name| !names.contains(name)) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_can_be_made_and_every_test_exists() {
        let root = root().unwrap();
        for broken in BREAKS {
            let text = read(&root.join(broken.file)).unwrap();
            assert_ne!(change(broken, &text).unwrap(), text);
            let NamedTest { package, name } = broken.test;
            let parts: Vec<&str> = name.split("::").collect();
            let [binary, module, test] = parts[..] else { panic!("{name}") };
            let folder = package.strip_prefix("toolgate-").unwrap_or(package);
            let source =
                root.join("crates").join(folder).join("tests").join(binary).join(format!("{module}.rs"));
            assert!(read(&source).unwrap().contains(&format!("fn {test}(")), "{name}");
        }
    }

    #[test]
    fn every_listed_property_is_broken() {
        let properties: BTreeSet<&str> = BREAKS.iter().map(|broken| broken.property).collect();
        let wanted = ["5", "26", "27", "28", "33", "35", "36", "45", "46", "47", "48", "49", "57"];
        assert_eq!(properties, BTreeSet::from(wanted));
    }
}
