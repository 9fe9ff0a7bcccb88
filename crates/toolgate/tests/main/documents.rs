//! Documents made from the program are fresh.

use super::desk::Desk;
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
        "a rule denies `rm -rf src`",
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
