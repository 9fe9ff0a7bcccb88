//! `ci` and `tidy`: what must hold before a change is merged.

use crate::cargo::{cargo_command, run_cargo};
use crate::peers::{run_conformance, run_interop, run_language_servers, run_peer_tests, run_sdk_drivers};
use crate::{read, root, tidy};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs every check, cheapest first.
pub(crate) fn run_ci() -> Result<()> {
    run_step("tidy", run_tidy)?;
    run_step("format", || run_cargo(&["fmt", "--all", "--", "--check"]))?;
    run_step("lints", || {
        run_cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })?;
    run_step("library without the command line", || {
        run_cargo(&["check", "--quiet", "--package", "toolgate", "--no-default-features", "--locked"])
    })?;
    run_step("documentation", run_documentation)?;
    run_step("semver", run_semver_checks)?;
    run_step("tests", run_tests)?;
    run_step("telemetry", run_telemetry_tests)?;
    run_step("interop", run_interop)?;
    run_step("conformance", run_conformance)?;
    run_step("peers", run_peer_tests)?;
    run_step("language servers", run_language_servers)?;
    run_step("sdk", || run_sdk_drivers(1))?;
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
    let has_nextest = cargo_command().args(["nextest", "--version"]).output()?.status.success();
    // nextest runs each test in a process of its own, ends one that hangs and names it; it knows no examples in comments.
    let profile = if std::env::var_os("CI").is_some() { "ci" } else { "default" };
    let runs: &[&[&str]] = if has_nextest {
        &[
            &["nextest", "run", "--workspace", "--locked", "--profile", profile],
            &["test", "--doc", "--quiet", "--workspace", "--locked"],
        ]
    } else {
        &[&["test", "--workspace", "--locked"]]
    };
    for arguments in runs {
        let mut cargo = cargo_command();
        cargo.args(*arguments).env("TOOLGATE_TEST_TOOLS", "required");
        if !cargo.current_dir(root()?).status()?.success() {
            bail!("cargo {} failed", arguments.join(" "));
        }
    }
    Ok(())
}

/// Runs the tests of the feature that is off by default, with which the program exports its calls.
fn run_telemetry_tests() -> Result<()> {
    let what = ["--package", "toolgate", "--features", "otel", "--test", "main", "main::telemetry"];
    let arguments: Vec<&str> = ["test", "--quiet", "--locked"].into_iter().chain(what).collect();
    run_cargo(&arguments)
}

/// Builds the documentation of every crate; a warning, such as a broken link, is an error.
fn run_documentation() -> Result<()> {
    let mut cargo = cargo_command();
    cargo.args(["doc", "--quiet", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings");
    if !cargo.current_dir(root()?).status()?.success() {
        bail!("cargo doc failed");
    }
    Ok(())
}

/// Compares the public interface of the library with the last release, in every package that it exports items of. Without a release there is nothing to compare.
fn run_semver_checks() -> Result<()> {
    let tags = Command::new("git")
        .args(["tag", "--list", "v*", "--sort=-version:refname"])
        .current_dir(root()?)
        .output()
        .context("cannot start git")?;
    let tags = String::from_utf8(tags.stdout)?;
    let Some(last) = tags.lines().next() else {
        println!("skipped: there is no tag `v*`, so there is no release to compare with");
        return Ok(());
    };
    let is_installed = cargo_command().args(["semver-checks", "--version"]).output()?.status.success();
    if !is_installed {
        run_cargo(&["install", "--quiet", "--locked", "cargo-semver-checks"])?;
    }
    let packages = exported_packages(&root()?)?;
    let selected = packages.iter().flat_map(|package| ["--package", package.as_str()]);
    let arguments: Vec<&str> =
        ["semver-checks", "--baseline-rev", last].into_iter().chain(selected).collect();
    run_cargo(&arguments)
}

/// The packages whose public interface is that of the library: `toolgate`, and those of which it exports items.
/// `cargo-semver-checks` does not look into items of other crates.
fn exported_packages(root: &Path) -> Result<BTreeSet<String>> {
    let library = root.join("crates/toolgate/src");
    let program = library.join("cli");
    let mut packages = BTreeSet::from(["toolgate".to_owned()]);
    for path in tidy::list_rust_files(&library)?.iter().filter(|path| !path.starts_with(&program)) {
        for rest in read(path)?.split("pub use toolgate_").skip(1) {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            packages.insert(format!("toolgate-{}", name.replace('_', "-")));
        }
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_interface_of_each_exported_crate_is_checked() {
        let root = crate::root().unwrap();
        let packages = super::exported_packages(&root).unwrap();
        for name in ["toolgate", "toolgate-gate", "toolgate-lsp", "toolgate-shell-syntax", "toolgate-skills"]
        {
            assert!(packages.contains(name), "{name}: {packages:?}");
        }
        for package in &packages {
            let dir = package.strip_prefix("toolgate-").unwrap_or(package);
            assert!(root.join("crates").join(dir).join("Cargo.toml").exists(), "{package}");
        }
    }
}
