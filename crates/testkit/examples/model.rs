//! `cargo run --release -p toolgate-testkit --example model -- [PAIRS] [SEED]`: the engine against the slow model.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command that reports to its user")]

use std::process::ExitCode;
use std::time::Instant;
use toolgate_testkit::model::Comparison;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Ok(pairs), Ok(seed)) = (numbers.next().unwrap_or(Ok(1_000_000)), numbers.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: model [PAIRS] [SEED]");
        return ExitCode::FAILURE;
    };
    let started = Instant::now();
    let mut comparison = Comparison::new(seed);
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
