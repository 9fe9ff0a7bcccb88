//! Generated documents match the program.

use super::cli_fixture::CliFixture;
use serde_json::Value;
use std::path::Path;

#[test]
fn the_command_line_reference_is_fresh() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        kept == CliFixture::new().run(&["reference"]).stdout,
        "docs/cli.md is stale: run `cargo xtask docs`"
    );
}

#[test]
fn the_published_schemas_are_fresh() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let fixture = CliFixture::new();
    let names = fixture.run(&["settings", "schema"]).stdout;
    assert!(names.lines().count() >= 3, "{names}");
    for name in names.lines() {
        let kept = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
        let fresh = fixture.run(&["settings", "schema", name]).stdout;
        assert!(kept == fresh, "docs/schemas/{name} is stale: run `cargo xtask docs`");
    }
}

/// Run by `cargo xtask docs` with `TOOLGATE_WRITE`, it writes the table instead.
#[test]
fn the_table_of_settings_keys_is_fresh() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let kept = std::fs::read_to_string(&file).unwrap();
    let (start, end) = ("<!-- keys, made by `cargo xtask docs` -->\n", "<!-- end of keys -->");
    let (before, rest) = kept.split_once(start).unwrap();
    let (table, after) = rest.split_once(end).unwrap();
    let fresh = toolgate::settings::merge::key_table();
    if std::env::var_os("TOOLGATE_WRITE").is_some() {
        std::fs::write(&file, format!("{before}{start}{fresh}{end}{after}")).unwrap();
        return;
    }
    assert!(table == fresh, "the keys in docs/settings.md are stale: run `cargo xtask docs`");
}

/// Variables in the sources that are not read from the environment of the program: set for other programs, or replaced in
/// the text of skills.
const OTHER_VARIABLES: [&str; 7] = [
    "CLAUDE_EFFORT",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_SESSION_ID",
    "CLAUDE_SKILL_DIR",
    "OPENAI_URL",
    "TOOLGATE_MCP_DEPTH",
];

/// The variables that a source reads by a literal name. The text between two quotes is code or a literal; code is never a
/// name in capitals.
fn read_variables(source: &str) -> Vec<&str> {
    const OURS: [&str; 6] = ["TOOLGATE_", "CLAUDE_", "ANTHROPIC_", "OPENAI_", "MCP_", "OTEL_"];
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let pieces: Vec<&str> = code.split('"').collect();
    let is_name = |text: &str| {
        let is_allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && !text.ends_with('_')
            && text.chars().all(is_allowed)
    };
    let is_read = |before: &str, name: &str| {
        let is_looked_up =
            ["env.get(", "env.contains_key(", "var(", "var_os("].iter().any(|it| before.ends_with(it));
        is_looked_up || OURS.iter().any(|prefix| name.starts_with(prefix)) || name.ends_with("_API_KEY")
    };
    let named = pieces.windows(2).filter(|pair| is_name(pair[1]) && is_read(pair[0], pair[1]));
    named.map(|pair| pair[1]).collect()
}

#[test]
fn every_environment_variable_that_the_sources_read_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/settings.md")).unwrap();
    let table = text.split("\n## Environment variables\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut folders: Vec<_> =
        std::fs::read_dir(root.join("crates")).unwrap().map(|it| it.unwrap().path()).collect();
    folders.iter_mut().for_each(|folder| folder.push("src"));
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // Modules of tests have variables of their own.
            if path.ends_with("untrusted_project/mod.rs") || path.to_string_lossy().ends_with("tests.rs") {
                continue;
            }
            for name in read_variables(&std::fs::read_to_string(&path).unwrap()) {
                seen += 1;
                assert!(
                    OTHER_VARIABLES.contains(&name) || table.contains(&format!("`{name}`")),
                    "{}: `{name}` is not in the table of environment variables of docs/settings.md",
                    path.display()
                );
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

/// The keywords of a schema that validation ignores.
const ANNOTATIONS: [&str; 7] = ["$id", "$schema", "default", "description", "examples", "format", "title"];

/// A schema without annotations.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let others = map.iter().filter(|(key, _)| !ANNOTATIONS.contains(&key.as_str()));
            others.map(|(key, below)| (key.clone(), bare_below(key, below))).collect()
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

fn bare_below(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("properties", Value::Object(fields)) => {
            fields.iter().map(|(name, field)| (name.clone(), bare(field))).collect()
        }
        ("const" | "enum" | "required", data) => data.clone(),
        (_, schema) => bare(schema),
    }
}

/// Run by `cargo xtask docs` with `TOOLGATE_WRITE`, it writes the file instead.
#[test]
fn settings_are_checked_against_the_schema_that_is_published() {
    let published = CliFixture::new().run(&["settings", "schema", "settings.schema.json"]).stdout;
    let fresh = format!("{}\n", bare(&serde_json::from_str(&published).unwrap()));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/settings/check.json");
    if std::env::var_os("TOOLGATE_WRITE").is_some() {
        std::fs::write(&file, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == fresh, "settings/check.json is stale: run `cargo xtask docs`");
}

#[test]
fn completions_name_every_command() {
    let fixture = CliFixture::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = fixture.run(&["completions", shell]);
        assert_eq!(output.code, 0);
        for command in
            ["ask", "call", "check", "doctor", "demo", "grants", "log", "settings", "tools", "trust"]
        {
            assert!(output.stdout.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn the_demo_shows_every_kind_of_outcome() {
    let output = CliFixture::new().run(&["demo"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for part in [
        "verdict   allow: ",
        "verdict   ask: ",
        "refused   at validate: ",
        "TG-101",
        "12 calls left 12 records, one each; the hash chain that detects tampering is intact",
        "call      Read {\"file_path\":\"/demo/project/src/main.rs\"}",
        "-    println!(\"goodbye\");",
        "the sandbox refused (observed): `python3` tried to write",
        "running `rm -rf src` is denied by a rule",
    ] {
        assert!(output.stdout.contains(part), "{part} is not in\n{}", output.stdout);
    }
    assert!(!output.stdout.contains('\u{1b}'), "no colors without a terminal");
}

#[test]
fn doctor_reports_invalid_settings() {
    let fixture = CliFixture::new();
    assert_eq!(fixture.run(&["doctor"]).code, 0);
    fixture.write(".toolgate/settings.json", "{ \"permissions\": { \"deny\": [ }");
    let output = fixture.run(&["doctor"]);
    assert_eq!(output.code, 2);
    assert!(output.stdout.contains("settings.json:1"), "{}", output.stdout);
}
