//! Documents made from the program are fresh.

use super::desk::Desk;
use serde_json::Value;
use std::path::Path;

#[test]
fn the_command_line_reference_is_fresh() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(kept == Desk::new().run(&["reference"]).out, "docs/cli.md is stale: run `cargo xtask docs`");
}

#[test]
fn the_published_schemas_are_fresh() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let desk = Desk::new();
    let names = desk.run(&["settings", "schema"]).out;
    assert!(names.lines().count() >= 3, "{names}");
    for name in names.lines() {
        let kept = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
        let fresh = desk.run(&["settings", "schema", name]).out;
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

/// What a schema says to people, and no check looks at.
const WORDS: [&str; 7] = ["$id", "$schema", "default", "description", "examples", "format", "title"];

/// A schema without its words.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let others = map.iter().filter(|(key, _)| !WORDS.contains(&key.as_str()));
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
    let published = Desk::new().run(&["settings", "schema", "settings.schema.json"]).out;
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
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let said = desk.run(&["completions", shell]);
        assert_eq!(said.code, 0);
        for command in
            ["ask", "call", "check", "doctor", "demo", "grants", "log", "settings", "tools", "trust"]
        {
            assert!(said.out.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn the_demo_tells_its_story() {
    let said = Desk::new().run(&["demo"]);
    assert_eq!(said.code, 0, "{}", said.err);
    for part in [
        "judged allow",
        "judged ask",
        "refused at validate",
        "TG-101",
        "the chain of the ledger holds",
        "-    println!(\"goodbye\");",
        "the sandbox refused (observed): `python3` tried to write",
        "running `rm -rf src` is denied by a rule",
    ] {
        assert!(said.out.contains(part), "{part} is not in\n{}", said.out);
    }
    assert!(!said.out.contains('\u{1b}'), "no colour where nobody looks");
}

#[test]
fn doctor_says_what_is_wrong() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["doctor"]).code, 0);
    desk.write(".toolgate/settings.json", "{ \"permissions\": { \"deny\": [ }");
    let said = desk.run(&["doctor"]);
    assert_eq!(said.code, 2);
    assert!(said.out.contains("settings.json:1"), "{}", said.out);
}
