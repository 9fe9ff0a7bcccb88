//! Documents that are made from code.

use crate::root;
use anyhow::{Context, Result};
use toolgate_proto::CODES;

/// Writes them all.
pub(crate) fn write_all() -> Result<()> {
    let path = root()?.join("docs/errors.md");
    std::fs::write(&path, errors()).with_context(|| format!("cannot write {}", path.display()))?;
    crate::run::cargo(&["run", "--quiet", "--package", "toolgate", "--", "reference"]).and_then(|reference| {
        let path = root()?.join("docs/cli.md");
        std::fs::write(&path, reference).with_context(|| format!("cannot write {}", path.display()))
    })
}

/// `docs/errors.md`, from the table of codes.
pub(crate) fn errors() -> String {
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
