//! Running cargo and other programs.

use crate::root;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cargo without the variables that the outer cargo sets about this package. Build scripts that declare them as inputs
/// (that of `ring` does) would run again, and everything that depends on them would be compiled again.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The directory of what cargo builds for the repository with this root.
pub(crate) fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Runs cargo in the repository.
pub(crate) fn run_cargo(args: &[&str]) -> Result<()> {
    let status = cargo_command().args(args).current_dir(root()?).status()?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}

/// Runs cargo in the repository and returns its standard output.
pub(crate) fn cargo_output(args: &[&str]) -> Result<String> {
    let output = cargo_command().args(args).current_dir(root()?).output()?;
    if !output.status.success() {
        bail!("cargo {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A test run that is longer than the one of `cargo test`.
pub(crate) struct LongTest<'t> {
    /// The package and the kind of test binary, as cargo's options name them.
    pub(crate) target: &'t [&'t str],
    /// Which tests run: the filter of the test binary.
    pub(crate) filter: &'t str,
    /// Environment variables with which the test reads its length.
    pub(crate) env: &'t [(&'t str, String)],
    /// The error message if the test fails.
    pub(crate) failure: &'t str,
}

impl LongTest<'_> {
    /// Runs the test with its output shown.
    pub(crate) fn run(&self) -> Result<()> {
        let status = cargo_command()
            .args(["test", "--locked"])
            .args(self.target)
            .args(["--", "--nocapture", self.filter])
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(root()?)
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            bail!("{}", self.failure);
        }
        Ok(())
    }
}
