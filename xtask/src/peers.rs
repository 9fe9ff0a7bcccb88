//! `interop`, `conformance`, `peers` and `sdk`: toolgate against programs of other projects.

use crate::cargo::{LongTest, run_cargo, target_folder};
use crate::root;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Passes our definitions and results to the official SDKs of model providers.
pub(crate) fn run_interop() -> Result<()> {
    run_cargo(&["build", "--quiet", "--package", "toolgate", "--locked"])?;
    run_script("interop/run.sh", "debug/toolgate", "interop")
        .context("an SDK rejected a definition or a result")
}

/// Runs the official MCP conformance suite against our server and our client.
pub(crate) fn run_conformance() -> Result<()> {
    run_cargo(&["build", "--quiet", "--package", "toolgate-mcp", "--examples", "--locked"])?;
    run_script("mcp/conformance.sh", "debug/examples", "mcp-peers").context("the conformance suite failed")
}

/// Runs official MCP SDKs against our server, and our client against official servers.
pub(crate) fn run_peer_tests() -> Result<()> {
    run_cargo(&["build", "--quiet", "--package", "toolgate", "--locked"])?;
    run_script("mcp/peers.sh", "debug/toolgate", "mcp-peers").context("a test with an official SDK failed")
}

/// Asks real language servers, which a script installs, about a small project.
pub(crate) fn run_language_servers() -> Result<()> {
    let root = root()?;
    let target = target_folder(&root);
    let installed = Command::new("bash")
        .arg(root.join("scripts/lsp/install.sh"))
        .arg(target.join("test-tools"))
        .output()
        .context("cannot start bash")?;
    if !installed.status.success() {
        bail!("the language servers could not be installed: {}", String::from_utf8_lossy(&installed.stderr));
    }
    let programs = String::from_utf8_lossy(&installed.stdout).trim().to_owned();
    LongTest {
        target: &["--package", "toolgate-lsp", "--test", "main"],
        // `real_servers` and `real_edits`.
        filter: "real_",
        env: &[("TOOLGATE_LSP_SERVERS", programs)],
        failure: "a language server gave another answer than expected",
    }
    .run()
}

/// Drives the program through the official agent SDKs, `rounds` times on two provider protocols, and as editors do,
/// against a scripted model.
pub(crate) fn run_sdk_drivers(rounds: u32) -> Result<()> {
    run_cargo(&["build", "--quiet", "--package", "toolgate", "--locked"])?;
    run_script_with("host/run.sh", "debug/toolgate", "agent-sdks", &[rounds.to_string()])
        .context("a scenario of an agent SDK or of an editor failed")
}

/// Runs a script on a build result. `cache` is the directory for what the script installs, below the target directory.
fn run_script(name: &str, built: &str, cache: &str) -> Result<()> {
    run_script_with(name, built, cache, &[])
}

/// The same, with further arguments.
fn run_script_with(name: &str, built: &str, cache: &str, more: &[String]) -> Result<()> {
    let root = root()?;
    let target = target_folder(&root);
    let status = Command::new("bash")
        .arg(root.join("scripts").join(name))
        .arg(target.join(built))
        .arg(target.join(cache))
        .args(more)
        .status()
        .context("cannot start bash")?;
    if !status.success() {
        bail!("scripts/{name} ended with {status}");
    }
    Ok(())
}
