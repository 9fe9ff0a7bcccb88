//! `steady`: shows that the tests depend neither on each other nor on a quiet machine.
//!
//! The tests run many times, two runs at once, half of the times with a low priority beside programs that keep the
//! processors busy.

use crate::cargo::cargo_command;
use crate::root;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// How often the tests run if the user does not say.
const DEFAULT_RUNS: usize = 10;
/// How many programs keep the processors busy.
const MAX_BUSY_PROGRAMS: usize = 2;
/// Runs at one time: they disturb each other, and use the processors while one of them waits.
const MAX_RUNS_AT_ONCE: usize = 2;
/// Tests of one run that run at once for each processor: more than one, because that disturbs them as well, and most wait for others.
const MAX_TESTS_PER_PROCESSOR: usize = 4;
/// The niceness of a disturbed run.
const NICENESS: &str = "5";

/// Runs all tests, or those of one package, this many times. Every run is made, and the tests that failed are listed
/// with how often they did.
pub(crate) fn run_steady(runs: Option<&str>, package: Option<&str>) -> Result<()> {
    let runs = match runs {
        Some(text) => text.parse().with_context(|| format!("`{text}` is not a number of runs"))?,
        None => DEFAULT_RUNS,
    };
    let what: Vec<&str> = match package {
        Some(package) => vec!["--package", package],
        None => vec!["--workspace"],
    };
    // Built once, undisturbed.
    let built = cargo_command()
        .args(["test", "--locked", "--no-run"])
        .args(&what)
        .current_dir(root()?)
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        bail!("the tests cannot be built");
    }
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed_runs = 0;
    let (plain, disturbed): (Vec<usize>, Vec<usize>) = (1..=runs).partition(|run| *run <= runs.div_ceil(2));
    let chunks = plain.chunks(MAX_RUNS_AT_ONCE).map(|chunk| (chunk, false));
    for (chunk, is_disturbed) in chunks.chain(disturbed.chunks(MAX_RUNS_AT_ONCE).map(|chunk| (chunk, true))) {
        let started = Instant::now();
        let _busy = is_disturbed.then(BusyPrograms::start).transpose()?;
        let results: Vec<Result<Vec<String>>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                chunk.iter().map(|_| scope.spawn(|| run_tests_once(&what, is_disturbed))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| bail!("the thread of a run panicked"))
            };
            threads.into_iter().map(join).collect()
        });
        let load = if is_disturbed { "beside busy programs" } else { "without busy programs" };
        for (run, failed) in chunk.iter().zip(results) {
            let failed = failed?;
            let ended = if failed.is_empty() { "ok" } else { "FAILED" };
            println!("run {run} of {runs}, {load}: {ended} in {} s", started.elapsed().as_secs());
            failed_runs += usize::from(!failed.is_empty());
            for test in failed {
                println!("  {test}");
                *failures.entry(test).or_default() += 1;
            }
        }
    }
    if failed_runs == 0 {
        println!("all {runs} runs passed");
        return Ok(());
    }
    for (test, times) in &failures {
        println!("{test}: failed {times} times");
    }
    bail!("{failed_runs} of {runs} runs failed")
}

/// Runs the tests once, and returns the names of those that failed.
fn run_tests_once(what: &[&str], is_disturbed: bool) -> Result<Vec<String>> {
    let mut cargo = cargo_command();
    let mut command = if is_disturbed {
        let mut nice = Command::new("nice");
        nice.args(["-n", NICENESS]).arg(cargo.get_program());
        for (name, value) in cargo.get_envs() {
            match value {
                Some(value) => nice.env(name, value),
                None => nice.env_remove(name),
            };
        }
        nice
    } else {
        std::mem::replace(&mut cargo, Command::new("true"))
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let output = command
        .args(["test", "--locked", "--no-fail-fast"])
        .args(what)
        .env("RUST_TEST_THREADS", (processors * MAX_TESTS_PER_PROCESSOR).to_string())
        .current_dir(root()?)
        .output()
        .context("cannot start cargo")?;
    if output.status.success() {
        return Ok(Vec::new());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut failed = find_failed_tests(&text);
    // A failure that is rare must be understood from this one.
    print!("{}", find_failure_output(&text));
    if failed.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or("no output");
        failed.push(format!("cargo test: {last}"));
    }
    Ok(failed)
}

/// The names in the lines `test NAME ... FAILED`.
fn find_failed_tests(output: &str) -> Vec<String> {
    let mut failed: Vec<String> = output
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(str::to_owned)
        .collect();
    failed.sort();
    failed.dedup();
    failed
}

/// What the failed tests printed, without the frames of backtraces.
fn find_failure_output(output: &str) -> String {
    let mut found = String::new();
    let (mut is_inside, mut is_backtrace) = (false, false);
    for line in output.lines() {
        if line.starts_with("---- ") {
            (is_inside, is_backtrace) = (true, false);
        } else if line == "failures:" || line.starts_with("test result: ") {
            is_inside = false;
        } else if line == "stack backtrace:" {
            is_backtrace = true;
        } else if !line.starts_with(' ') && !line.starts_with("note: ") {
            is_backtrace = false;
        }
        if is_inside && !is_backtrace && !line.is_empty() {
            found.push_str("    ");
            found.push_str(line);
            found.push('\n');
        }
    }
    found
}

/// Programs that keep the processors busy until this is dropped.
struct BusyPrograms(Vec<Child>);

impl BusyPrograms {
    /// Starts them.
    fn start() -> Result<Self> {
        let mut programs = Self(Vec::new());
        for _ in 0..MAX_BUSY_PROGRAMS {
            let child = Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .context("cannot start a busy program")?;
            programs.0.push(child);
        }
        Ok(programs)
    }
}

impl Drop for BusyPrograms {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that is gone already needs no end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{find_failed_tests, find_failure_output};

    #[test]
    fn failed_tests_are_found_in_the_output() {
        let output = "test a::b ... ok\ntest a::c ... FAILED\ntest x - should panic ... FAILED\ntest a::c ... FAILED\n";
        assert_eq!(find_failed_tests(output), ["a::c", "x - should panic"]);
    }

    #[test]
    fn what_a_failed_test_printed_is_found_without_its_backtrace() {
        let output = "running 1 test\n\nfailures:\n\n---- a::b stdout ----\nleft: 1\nstack backtrace:\n   0: core\n\
                      note: more\n\n\nfailures:\n    a::b\n\ntest result: FAILED.\n";
        assert_eq!(find_failure_output(output), "    ---- a::b stdout ----\n    left: 1\n");
    }
}
