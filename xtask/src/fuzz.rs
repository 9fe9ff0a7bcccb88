//! Running the fuzz targets from their seeds.

use crate::{read, root};
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Instant;

/// Every target, and the longest input it is given.
const TARGETS: [(&str, usize); 5] =
    [("rules", 160), ("shell", 400), ("paths", 200), ("urls", 300), ("settings", 600)];

/// Runs one target, or all of them one after another, for so many executions each.
pub(crate) fn run(target: Option<&str>, runs: Option<&str>) -> Result<()> {
    let target = target.unwrap_or("all");
    let runs: u64 = runs.unwrap_or("10000000").parse().context("RUNS must be a number")?;
    let chosen: Vec<_> = TARGETS.iter().filter(|(name, _)| target == "all" || target == *name).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        bail!("`{target}` is no target; there are all, {}", names.join(", "));
    }
    for (name, longest) in chosen {
        let started = Instant::now();
        write_seeds(name)?;
        // No sanitiser: the crates forbid unsafe code, and without it everything is faster.
        let fuzz = root()?.join("fuzz");
        let status = Command::new("cargo")
            // No traces of comparisons either: with seeds and dictionaries the same hour sees three times as much.
            .args(["+nightly", "fuzz", "run", "--release", "--sanitizer", "none", "--no-trace-compares"])
            .args(if *name == "settings" { &["--features", "settings"][..] } else { &[] })
            .arg(name)
            .arg(fuzz.join("corpus").join(name))
            .args(["--", "-timeout=10", "-print_final_stats=1"])
            .arg(format!("-runs={runs}"))
            .arg(format!("-max_len={longest}"))
            .arg(format!("-dict={}", fuzz.join("seeds").join(format!("{name}.dict")).display()))
            .current_dir(root()?)
            .status()
            .context("cannot start cargo-fuzz; install it with `cargo install cargo-fuzz`")?;
        if !status.success() {
            bail!("{name} found something; the input is in fuzz/artifacts/{name}");
        }
        println!("{name}: {runs} executions in {} s, nothing found", started.elapsed().as_secs());
    }
    Ok(())
}

/// Writes the seeds of a target into its corpus.
fn write_seeds(name: &str) -> Result<()> {
    let fuzz = root()?.join("fuzz");
    let corpus = fuzz.join("corpus").join(name);
    std::fs::create_dir_all(&corpus)?;
    let seeds = read(&fuzz.join("seeds").join(format!("{name}.jsonl")))?;
    for (at, line) in seeds.lines().enumerate() {
        let text: String = serde_json::from_str(line).context("a seed is no JSON string")?;
        std::fs::write(corpus.join(format!("seed-{at}")), text)?;
    }
    Ok(())
}
