//! Documents that are made from code.

use crate::root;
use anyhow::{Context, Result};
use toolgate_proto::CODES;

/// Writes them all.
pub(crate) fn write_all() -> Result<()> {
    write_document("docs/errors.md", &render_errors())?;
    write_document("docs/cli.md", &run_toolgate(&["reference"])?)?;
    for name in run_toolgate(&["settings", "schema"])?.lines() {
        write_document(&format!("docs/schemas/{name}"), &run_toolgate(&["settings", "schema", name])?)?;
    }
    crate::run::write_settings_schema()
}

/// What the program prints.
fn run_toolgate(args: &[&str]) -> Result<String> {
    let mut all = vec!["run", "--quiet", "--package", "toolgate", "--"];
    all.extend(args);
    crate::run::cargo_output(&all)
}

fn write_document(name: &str, text: &str) -> Result<()> {
    let path = root()?.join(name);
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// `docs/errors.md`, from the table of codes.
pub(crate) fn render_errors() -> String {
    let mut out = String::from(
        "# Errors\n\n\
         Every \"no\" and every failure carries a stable code.\n\
         A code is never reused; its kind is a type name that programs may match on.\n\
         Made from the table in `crates/proto/src/refusal.rs` by `cargo xtask docs`.\n\n\
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
