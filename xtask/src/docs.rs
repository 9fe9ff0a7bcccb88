//! `docs`: writes the documents that are generated from code.

use crate::cargo::{cargo_command, cargo_output};
use crate::root;
use anyhow::{Context, Result, bail};
use toolgate_proto::CODES;

/// Writes every generated document.
pub(crate) fn write_documents() -> Result<()> {
    write_document("docs/errors.md", &render_errors())?;
    write_document("docs/cli.md", &run_toolgate(&["reference"])?)?;
    for name in run_toolgate(&["settings", "schema"])?.lines() {
        write_document(&format!("docs/schemas/{name}"), &run_toolgate(&["settings", "schema", name])?)?;
    }
    write_settings_schema()
}

/// The output of a `toolgate` command.
fn run_toolgate(args: &[&str]) -> Result<String> {
    let mut all = vec!["run", "--quiet", "--package", "toolgate", "--"];
    all.extend(args);
    cargo_output(&all)
}

/// Writes the schema that settings are checked against, and the table of keys in `docs/settings.md`. The tests that
/// compare them with the code write them, if a variable says so.
fn write_settings_schema() -> Result<()> {
    for test in
        ["settings_are_checked_against_the_schema_that_is_published", "the_table_of_settings_keys_is_fresh"]
    {
        let mut cargo = cargo_command();
        cargo
            .args(["test", "--quiet", "--package", "toolgate", "--test", "main", test])
            .env("TOOLGATE_WRITE", "1");
        if !cargo.current_dir(root()?).status()?.success() {
            bail!("the schema or the table of settings could not be written");
        }
    }
    Ok(())
}

/// Writes a document, given by its path in the repository.
fn write_document(name: &str, text: &str) -> Result<()> {
    let path = root()?.join(name);
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Renders `docs/errors.md` from the table of codes.
pub(crate) fn render_errors() -> String {
    let mut out = String::from(
        "# Errors\n\n\
         Every denial and every failure has a stable code.\n\
         A code is never reused; its kind is a type name that programs may match on.\n\
         Generated from the table in `crates/proto/src/refusal.rs` by `cargo xtask docs`.\n\n\
         | code | kind | stage | what happened | what to do |\n|---|---|---|---|---|\n",
    );
    for info in CODES {
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            info.code, info.kind, info.stage, info.meaning, info.hint
        ));
    }
    out
}
