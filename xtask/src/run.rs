//! Running other programs.

use crate::{root, tidy};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Everything that must hold before a change lands, cheapest first.
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
    println!("all is well");
    Ok(())
}

fn run_step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let started = Instant::now();
    work().with_context(|| format!("{name} failed"))?;
    println!("== {name}: ok in {} s", started.elapsed().as_secs());
    Ok(())
}

/// The rules of the house.
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

/// All tests, with the programs beside them that they compare with.
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

/// Hands our definitions and results to the real consumers that the registries have.
pub(crate) fn run_interop() -> Result<()> {
    run_cargo(&["build", "--quiet", "--package", "toolgate", "--locked"])?;
    run_script("interop/run.sh", "debug/toolgate", "interop")
        .context("a consumer did not take what we gave it")
}

/// Runs the official MCP conformance suite against our server and our client.
pub(crate) fn run_conformance() -> Result<()> {
    run_cargo(&["build", "--quiet", "--package", "toolgate-mcp", "--examples", "--locked"])?;
    run_script("mcp/conformance.sh", "debug/examples", "mcp-peers").context("the suite is not content")
}

/// Lets official MCP SDKs drive our server, and our client drive official servers.
pub(crate) fn run_peer_tests() -> Result<()> {
    run_cargo(&["build", "--quiet", "--package", "toolgate", "--locked"])?;
    run_script("mcp/peers.sh", "debug/toolgate", "mcp-peers").context("a peer and toolgate did not get on")
}

/// Runs a script on what was built; `keep` is its folder for what it installs.
fn run_script(name: &str, built: &str, keep: &str) -> Result<()> {
    let root = root()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let status = Command::new("bash")
        .arg(root.join("scripts").join(name))
        .arg(target.join(built))
        .arg(target.join(keep))
        .status()
        .context("cannot start bash")?;
    if !status.success() {
        bail!("scripts/{name} ended with {status}");
    }
    Ok(())
}

/// Runs the law of batches for longer than every change can wait for.
pub(crate) fn soak_schedule(batches: Option<&str>) -> Result<()> {
    let batches: u32 = batches.unwrap_or("100000").parse().context("N must be a number of batches")?;
    let started = Instant::now();
    let status = cargo_command()
        .args(["test", "--profile", "bench", "--locked", "--package", "toolgate-gate", "--test", "main"])
        .args(["--", "--nocapture", "the_batch_equals_one_by_one"])
        .env("TOOLGATE_SOAK_BATCHES", batches.to_string())
        .current_dir(root()?)
        .status()?;
    if !status.success() {
        bail!("a batch came out otherwise than its calls one by one");
    }
    let (rewritten, commands) = (batches / 5, batches / 20);
    let seconds = started.elapsed().as_secs();
    println!(
        "{batches} batches, {rewritten} with rewritten inputs, {commands} with real commands, in {seconds} s"
    );
    Ok(())
}

/// The law of settings: with an untrusted project nothing is freer than without it.
pub(crate) fn run_settings_law(cases: Option<&str>) -> Result<()> {
    let cases: u64 = cases.unwrap_or("100000").parse().context("N must be a number of cases")?;
    let started = Instant::now();
    let status = cargo_command()
        .args(["test", "--locked", "--package", "toolgate", "--lib"])
        .args(["--", "--nocapture", "with_an_untrusted_project_nothing_is_freer_than_without_it"])
        .env("TOOLGATE_SETTINGS_CASES", cases.to_string())
        .current_dir(root()?)
        .status()?;
    if !status.success() {
        bail!("an untrusted project freed something");
    }
    println!("{cases} cases in {} s", started.elapsed().as_secs());
    Ok(())
}

/// Runs the option oracle for longer than every change can wait for.
pub(crate) fn run_option_oracle(combinations: Option<&str>) -> Result<()> {
    let combinations: u64 =
        combinations.unwrap_or("100000").parse().context("N must be a number of combinations")?;
    let status = cargo_command()
        .args(["test", "--profile", "bench", "--locked", "--package", "toolgate-policy", "--test", "main"])
        .args(["--", "--nocapture", "no_option_combination_of_a_reader_writes_runs_or_reveals"])
        .env("TOOLGATE_OPTION_CASES", combinations.to_string())
        .current_dir(root()?)
        .status()?;
    if !status.success() {
        bail!("a combination of options that passes did more than read");
    }
    Ok(())
}

/// Runs git commands that only read in hostile repositories, for longer than every change can wait for.
pub(crate) fn run_git_oracle(commands: Option<&str>) -> Result<()> {
    let commands: u32 = commands.unwrap_or("3000").parse().context("N must be a number of commands")?;
    let status = cargo_command()
        .args(["test", "--locked", "--package", "toolgate-tools", "--test", "main"])
        .args(["--", "--nocapture", "git_oracle"])
        .env("TOOLGATE_ORACLE_GIT", commands.to_string())
        .current_dir(root()?)
        .status()?;
    if !status.success() {
        bail!("git ran a program that a repository chose, or showed a file from outside");
    }
    Ok(())
}

/// Prints how many cases of the corpus were let through, denied and asked about.
pub(crate) fn print_corpus_figures() -> Result<()> {
    let tests = ["test", "--quiet", "--locked", "--package", "toolgate-policy", "--test", "main"];
    run_cargo(&[&tests[..], &["--", "--nocapture", "--test-threads=1", "_cases"]].concat())
}

/// Asks the policy engine and the slow model the same questions for longer than every change can wait for.
pub(crate) fn compare_with_model(pairs: Option<&str>, seed: Option<&str>) -> Result<()> {
    run_cargo(&[
        "run",
        "--quiet",
        "--profile",
        "bench",
        "--locked",
        "--package",
        "toolgate-policy",
        "--example",
        "model",
        "--",
        pairs.unwrap_or("10000000"),
        seed.unwrap_or("1"),
    ])
}

/// Runs the program-list oracle for longer than every change can wait for.
pub(crate) fn run_shell_oracle(lines: Option<&str>, seed: Option<&str>) -> Result<()> {
    let lines: u64 = lines.unwrap_or("1000000").parse().context("LINES must be a number of lines")?;
    let seed: u64 = seed.unwrap_or("1").parse().context("SEED must be a number")?;
    let status = cargo_command()
        .args(["test", "--profile", "bench", "--locked", "--package", "toolgate-policy", "--test", "main"])
        .args(["--", "--nocapture", "lines_that_pass_do_only_what_was_judged"])
        .env("TOOLGATE_ORACLE_LINES", lines.to_string())
        .env("TOOLGATE_ORACLE_SEED", seed.to_string())
        .current_dir(root()?)
        .status()?;
    if !status.success() {
        bail!("a line that passes did more than was judged");
    }
    // A run in the sandbox takes longer, so there are fewer of them.
    let status = cargo_command()
        .args(["test", "--profile", "bench", "--locked", "--package", "toolgate-tools", "--test", "main"])
        .args(["--", "--nocapture", "lines_that_pass_do_nothing_but_read_in_the_sandbox"])
        .env("TOOLGATE_SANDBOX_LINES", (lines / 10).to_string())
        .env("TOOLGATE_ORACLE_SEED", seed.to_string())
        .current_dir(root()?)
        .status()?;
    if !status.success() {
        bail!("a line that passes did more than read in the sandbox");
    }
    Ok(())
}

/// Has the schema that settings are checked against written by the test that compares it.
pub(crate) fn write_settings_schema() -> Result<()> {
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

/// Runs cargo and gives its output.
pub(crate) fn cargo_output(args: &[&str]) -> Result<String> {
    let output = cargo_command().args(args).current_dir(root()?).output()?;
    if !output.status.success() {
        bail!("cargo {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A cargo that does not hear what the one around us says about this package: build scripts that look at it (ring's
/// does) would run again, and everything above them would be built again.
fn cargo_command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let said = name.to_string_lossy();
        if said.starts_with("CARGO_PKG_") || said.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

fn run_cargo(args: &[&str]) -> Result<()> {
    let status = cargo_command().args(args).current_dir(root()?).status()?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}
