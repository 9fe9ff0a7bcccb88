//! `cargo run --release -p toolgate-policy --example model -- [PAIRS] [SEED]`: compares the policy engine with a slow
//! reference model on random rules and calls.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command that reports to its user")]

use model::ModelComparison;
use std::process::ExitCode;
use std::time::Instant;

/// The model of testkit, included by path: a dependency on testkit would make this long-running program slow to build.
#[path = "../../testkit/src/model/mod.rs"]
pub mod model;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Ok(pairs), Ok(seed)) = (numbers.next().unwrap_or(Ok(1_000_000)), numbers.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: model [PAIRS] [SEED]");
        return ExitCode::FAILURE;
    };
    let started = Instant::now();
    let mut comparison = ModelComparison::new(seed);
    while comparison.pairs < pairs {
        if let Err(found) = comparison.step() {
            eprintln!("after {} pairs: {found}", comparison.pairs);
            return ExitCode::FAILURE;
        }
    }
    let [allow, ask, deny] = comparison.answers;
    println!(
        "{} pairs ({allow} allow, {ask} ask, {deny} deny), 0 disagreements, {} s",
        comparison.pairs,
        started.elapsed().as_secs()
    );
    ExitCode::SUCCESS
}
