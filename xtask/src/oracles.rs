//! Long runs of the tests that compare with an oracle: a slow model, real bash, real git, calls one by one.
//!
//! Each of them runs in `cargo test` as well, for as long as every change can wait; here the length is a parameter.

use crate::cargo::{LongTest, run_cargo};
use anyhow::{Context, Result};
use std::time::Instant;

/// The tests of the gate, optimized: a soak is bound by CPU time.
const GATE_TESTS: &[&str] = &["--profile", "bench", "--package", "toolgate-gate", "--test", "main"];
/// The tests of policy, optimized.
const POLICY_TESTS: &[&str] = &["--profile", "bench", "--package", "toolgate-policy", "--test", "main"];
/// The tests of the tools, optimized.
const TOOLS_TESTS: &[&str] = &["--profile", "bench", "--package", "toolgate-tools", "--test", "main"];

/// `soak-schedule`: a batch of calls gives the same results as its calls one by one.
pub(crate) fn soak_schedule(batches: Option<&str>) -> Result<()> {
    let batches: u32 = batches.unwrap_or("100000").parse().context("N must be a number of batches")?;
    let started = Instant::now();
    LongTest {
        target: GATE_TESTS,
        filter: "the_batch_equals_one_by_one",
        env: &[("TOOLGATE_SOAK_BATCHES", batches.to_string())],
        failure: "a batch gave other results than its calls one by one",
    }
    .run()?;
    let (rewritten, commands) = (batches / 5, batches / 20);
    let seconds = started.elapsed().as_secs();
    println!(
        "{batches} batches, {rewritten} with rewritten inputs, {commands} with real commands, in {seconds} s"
    );
    Ok(())
}

/// The tests of the stores, optimized.
const STATE_TESTS: &[&str] = &["--profile", "bench", "--package", "toolgate-state", "--test", "main"];
/// How often all processes are killed in a long run.
const STATE_KILL_COUNT: u32 = 100;

/// `soak-state`: many processes on the stores lose nothing, and SIGKILL at any moment leaves stores that open.
pub(crate) fn soak_state(operations: Option<&str>) -> Result<()> {
    let operations: u32 =
        operations.unwrap_or("10000").parse().context("N must be a number of operations")?;
    // A short form kills less often, so that it is short.
    let kills = STATE_KILL_COUNT.min(operations.div_ceil(100));
    let started = Instant::now();
    let tests = [
        ("eight_processes_lose_no_operation", "an operation that was reported as done is not in the store"),
        ("eight_processes_lose_no_note", "a note that was reported as saved is not there"),
        ("a_killed_process_leaves_a_store_that_opens", "SIGKILL lost a task, or the store does not open"),
        ("a_killed_process_leaves_notes_that_open_and_are_whole", "SIGKILL lost or tore a note"),
        (
            "processes_that_are_killed_while_they_schedule_lose_nothing_that_they_reported",
            "SIGKILL lost a schedule, or the store does not open",
        ),
    ];
    for (filter, failure) in tests {
        let env = [
            ("TOOLGATE_STATE_OPERATIONS", operations.to_string()),
            ("TOOLGATE_STATE_KILLS", kills.to_string()),
        ];
        LongTest { target: STATE_TESTS, filter, env: &env, failure }.run()?;
    }
    let seconds = started.elapsed().as_secs();
    println!(
        "8 processes: {operations} operations each on tasks and {} each on notes, {kills} times 8 processes killed on \
         each store: nothing lost, in {seconds} s",
        operations.div_ceil(10)
    );
    Ok(())
}

/// `settings-law`: the tighten-only property, with an untrusted project no call has more rights than without it.
pub(crate) fn run_settings_oracle(cases: Option<&str>) -> Result<()> {
    let cases: u64 = cases.unwrap_or("100000").parse().context("N must be a number of cases")?;
    let started = Instant::now();
    LongTest {
        target: &["--profile", "bench", "--package", "toolgate", "--lib"],
        filter: "with_an_untrusted_project_nothing_is_freer_than_without_it",
        env: &[("TOOLGATE_SETTINGS_CASES", cases.to_string())],
        failure: "an untrusted project gave a call more rights",
    }
    .run()?;
    println!("{cases} cases in {} s", started.elapsed().as_secs());
    Ok(())
}

/// `options`: no combination of options turns a read-only program into one that writes, executes or reveals.
pub(crate) fn run_option_oracle(combinations: Option<&str>) -> Result<()> {
    let combinations: u64 =
        combinations.unwrap_or("100000").parse().context("N must be a number of combinations")?;
    LongTest {
        target: POLICY_TESTS,
        filter: "no_option_combination_of_a_reader_writes_runs_or_reveals",
        env: &[
            ("TOOLGATE_OPTION_CASES", combinations.to_string()),
            ("TOOLGATE_OPTION_SWEEP", "1".to_owned()),
        ],
        failure: "a combination of options that was allowed did more than read",
    }
    .run()
}

/// `scripts`: no script of awk or sed that needs no approval does more than print.
pub(crate) fn run_script_oracle(scripts: Option<&str>, seed: Option<&str>) -> Result<()> {
    let scripts: u64 = scripts.unwrap_or("1000000").parse().context("N must be a number of scripts")?;
    let seed: u64 = seed.unwrap_or("1").parse().context("SEED must be a number")?;
    LongTest {
        target: POLICY_TESTS,
        filter: "scripts_that_pass_only_print",
        env: &[("TOOLGATE_SCRIPT_CASES", scripts.to_string()), ("TOOLGATE_ORACLE_SEED", seed.to_string())],
        failure: "a script that was allowed did more than print",
    }
    .run()
}

/// `git-oracle`: read-only git commands in hostile repositories.
pub(crate) fn run_git_oracle(commands: Option<&str>) -> Result<()> {
    let commands: u32 = commands.unwrap_or("3000").parse().context("N must be a number of commands")?;
    LongTest {
        target: &["--package", "toolgate-tools", "--test", "main"],
        filter: "git_oracle",
        env: &[("TOOLGATE_ORACLE_GIT", commands.to_string())],
        failure: "git executed a program that a repository configured, or showed a file from outside the workspace",
    }
    .run()
}

/// `oracle`: real bash runs generated command lines that policy allows, with stub programs and in the sandbox.
pub(crate) fn run_shell_oracle(lines: Option<&str>, seed: Option<&str>) -> Result<()> {
    let lines: u64 = lines.unwrap_or("1000000").parse().context("LINES must be a number of lines")?;
    let seed: u64 = seed.unwrap_or("1").parse().context("SEED must be a number")?;
    LongTest {
        target: POLICY_TESTS,
        filter: "lines_that_pass_do_only_what_was_judged",
        env: &[("TOOLGATE_ORACLE_LINES", lines.to_string()), ("TOOLGATE_ORACLE_SEED", seed.to_string())],
        failure: "a line that was allowed did more than was judged",
    }
    .run()?;
    LongTest {
        target: TOOLS_TESTS,
        filter: "lines_that_pass_do_nothing_but_read_in_the_sandbox",
        env: &[("TOOLGATE_SANDBOX_LINES", lines.to_string()), ("TOOLGATE_ORACLE_SEED", seed.to_string())],
        failure: "a line that was allowed did more than read in the sandbox",
    }
    .run()
}

/// `model`: the policy engine against the slow model, on random pairs of a policy and a call.
pub(crate) fn run_model_oracle(pairs: Option<&str>, seed: Option<&str>) -> Result<()> {
    let example = ["--package", "toolgate-policy", "--example", "model", "--"];
    run_cargo(
        &[
            &["run", "--quiet", "--profile", "bench", "--locked"][..],
            &example[..],
            &[pairs.unwrap_or("10000000"), seed.unwrap_or("1")][..],
        ]
        .concat(),
    )
}

/// `corpus`: prints how many cases of the corpus were allowed, denied and asked about.
pub(crate) fn print_corpus_figures() -> Result<()> {
    let tests = ["test", "--quiet", "--locked", "--package", "toolgate-policy", "--test", "main"];
    run_cargo(&[&tests[..], &["--", "--nocapture", "--test-threads=1", "_cases"]].concat())
}
