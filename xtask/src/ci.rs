//! `ci` and `tidy`: what must hold before a change is merged.

use crate::cargo::run_cargo;
use crate::peers::{run_conformance, run_interop, run_peer_tests};
use crate::{root, tidy};
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Instant;

/// Runs every check, cheapest first.
pub(crate) fn run_ci() -> Result<()> {
    run_step("tidy", run_tidy)?;
    run_step("format", || run_cargo(&["fmt", "--all", "--", "--check"]))?;
    run_step("lints", || {
        run_cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })?;
    run_step("tests", run_tests)?;
    run_step("interop", run_interop)?;
    run_step("conformance", run_conformance)?;
    run_step("peers", run_peer_tests)?;
    println!("all checks passed");
    Ok(())
}

/// Runs one step and prints its name and time, so that a slow step is visible in the log.
fn run_step(name: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let started = Instant::now();
    step().with_context(|| format!("{name} failed"))?;
    println!("== {name}: ok in {} s", started.elapsed().as_secs());
    Ok(())
}

/// Prints every broken tidy rule.
pub(crate) fn run_tidy() -> Result<()> {
    let broken = tidy::check(&root()?)?;
    if broken.is_empty() {
        return Ok(());
    }
    for rule in &broken {
        eprintln!("{rule}");
    }
    bail!("{} rules broken", broken.len())
}

/// Runs all tests, with the programs installed whose results some of them compare with ours.
fn run_tests() -> Result<()> {
    let installed = Command::new("sh").arg("scripts/install-test-tools.sh").current_dir(root()?).status()?;
    if !installed.success() {
        bail!("ripgrep and fd could not be installed");
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--workspace", "--locked"]).env("TOOLGATE_TEST_TOOLS", "required");
    if !cargo.current_dir(root()?).status()?.success() {
        bail!("cargo test failed");
    }
    Ok(())
}
