//! `fuzz`: runs the fuzz targets from their seeds.

use crate::{read, root};
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Instant;

/// Every fuzz target, and the maximum length of its inputs in bytes.
const FUZZ_TARGETS: [(&str, usize); 9] = [
    ("rules", 160),
    ("shell", 400),
    ("paths", 200),
    ("urls", 300),
    ("codex", 300),
    ("skills", 800),
    ("settings", 600),
    ("messages", 500),
    ("pages", 600),
];

/// Runs one target, or all of them one after another, for `runs` executions each.
pub(crate) fn run_fuzz_targets(target: Option<&str>, runs: Option<&str>) -> Result<()> {
    let target = target.unwrap_or("all");
    let runs: u64 = runs.unwrap_or("10000000").parse().context("RUNS must be a number")?;
    let chosen: Vec<_> = FUZZ_TARGETS.iter().filter(|(name, _)| target == "all" || target == *name).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = FUZZ_TARGETS.iter().map(|(name, _)| *name).collect();
        bail!("unknown fuzz target `{target}`; use all, {}", names.join(", "));
    }
    for (name, max_len) in chosen {
        let started = Instant::now();
        write_seeds(name)?;
        // Without a sanitizer: the crates forbid unsafe code, and an execution is faster without it.
        let fuzz = root()?.join("fuzz");
        let features = match *name {
            "settings" | "messages" | "pages" => vec!["--features", *name],
            _ => Vec::new(),
        };
        let status = Command::new("cargo")
            // Without traces of comparisons: with seeds and dictionaries, the same time covers three times as much.
            .args(["+nightly", "fuzz", "run", "--release", "--sanitizer", "none", "--no-trace-compares"])
            .args(features)
            .arg(name)
            .arg(fuzz.join("corpus").join(name))
            .args(["--", "-timeout=10", "-print_final_stats=1"])
            .arg(format!("-runs={runs}"))
            .arg(format!("-max_len={max_len}"))
            .arg(format!("-dict={}", fuzz.join("seeds").join(format!("{name}.dict")).display()))
            .current_dir(root()?)
            .status()
            .context("cannot start cargo-fuzz; install it with `cargo install cargo-fuzz`")?;
        if !status.success() {
            bail!("{name} found a failing input; it is in fuzz/artifacts/{name}");
        }
        println!("{name}: {runs} executions in {} s, nothing found", started.elapsed().as_secs());
    }
    Ok(())
}

/// Writes the seeds of a target into its corpus. They are kept as one JSON string for each line, because a seed may have
/// any bytes that a text can have.
fn write_seeds(name: &str) -> Result<()> {
    let fuzz = root()?.join("fuzz");
    let corpus = fuzz.join("corpus").join(name);
    std::fs::create_dir_all(&corpus)?;
    let seeds = read(&fuzz.join("seeds").join(format!("{name}.jsonl")))?;
    for (number, line) in seeds.lines().enumerate() {
        let text: String = serde_json::from_str(line).context("a seed is not a JSON string")?;
        std::fs::write(corpus.join(format!("seed-{number}")), text)?;
    }
    Ok(())
}
