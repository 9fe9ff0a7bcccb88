//! `cargo xtask`: the tasks of this repository that need more than a cargo command.
//!
//! - `cargo xtask ci`: every check that must pass before a change is merged.
//! - `cargo xtask tidy`: the rules of the repository that no compiler checks; lists the broken ones.
//! - `cargo xtask docs`: writes the documents that are generated from code.
//! - `cargo xtask dist`: the program as it is published, with the functions of a start next to each other.
//! - `cargo xtask fuzz [TARGET] [RUNS]`: every fuzz target, or one, from its seeds (10 000 000 executions each).
//! - `cargo xtask corpus`: the figures of the corpus of known bypasses.
//! - `cargo xtask model [PAIRS] [SEED]`: the policy engine against the slow model (10 000 000 pairs).
//! - `cargo xtask oracle [LINES] [SEED]`: real bash runs generated command lines that policy allows (1 000 000 lines).
//! - `cargo xtask options [N]`: real bash runs N combinations of options of the read-only programs (100 000).
//! - `cargo xtask scripts [N] [SEED]`: every installed awk and sed runs N scripts that need no approval (1 000 000).
//! - `cargo xtask git-oracle [N]`: N read-only git commands in hostile repositories (3 000).
//! - `cargo xtask settings-law [N]`: the tighten-only property of settings on N random settings (100 000).
//! - `cargo xtask soak-schedule [N]`: the scheduling property of batches on N random batches (100 000).
//! - `cargo xtask soak-state [N]`: 8 processes with N operations each on the stores (10 000), and kills of them.
//! - `cargo xtask interop`: passes our definitions and results to the SDKs of model providers.
//! - `cargo xtask language-servers`: real language servers, installed from the registry, against our client.
//! - `cargo xtask conformance`: the official MCP conformance suite, against our server and our client.
//! - `cargo xtask peers`: official MCP SDKs against our server, our client against official servers.
//! - `cargo xtask steady [N] [PACKAGE]`: all tests N times (10), half of them beside busy programs.
//! - `cargo xtask break-properties [N]`: breaks the feature behind each listed property, or N, in a copy of the tree; its
//!   test must fail.
//! - `cargo xtask sdk [N]`: the official agent SDKs drive our program N times (1), and an editor's library once, against a
//!   scripted model.
//!
//! [`tidy`] also runs as a test, so that `cargo test` finds a broken rule without this program.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task runner prints to its user, reads files and starts programs"
)]

mod break_properties;
mod cargo;
mod ci;
mod dist;
mod docs;
mod fuzz;
mod oracles;
mod peers;
mod steady;
mod tidy;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the task that the first argument names, and prints its error with all causes.
fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let (first, second) = (std::env::args().nth(2), std::env::args().nth(3));
    match run_task(&task, first.as_deref(), second.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the task of this name with its optional arguments. Each group of tasks has a file of its own.
fn run_task(task: &str, first: Option<&str>, second: Option<&str>) -> Result<()> {
    match task {
        "ci" => ci::run_ci(),
        "tidy" => ci::run_tidy(),
        "dist" => dist::build_dist(),
        "docs" => docs::write_documents(),
        "fuzz" => fuzz::run_fuzz_targets(first, second),
        "corpus" => oracles::print_corpus_figures(),
        "model" => oracles::run_model_oracle(first, second),
        "oracle" => oracles::run_shell_oracle(first, second),
        "options" => oracles::run_option_oracle(first),
        "scripts" => oracles::run_script_oracle(first, second),
        "git-oracle" => oracles::run_git_oracle(first),
        "settings-law" => oracles::run_settings_oracle(first),
        "soak-schedule" => oracles::soak_schedule(first),
        "soak-state" => oracles::soak_state(first),
        "interop" => peers::run_interop(),
        "conformance" => peers::run_conformance(),
        "language-servers" => peers::run_language_servers(),
        "peers" => peers::run_peer_tests(),
        "sdk" => peers::run_sdk_drivers(parse_rounds(first)?),
        "break-properties" => break_properties::break_properties(first),
        "steady" => steady::run_steady(first, second),
        _ => bail!(
            "usage: cargo xtask ci | tidy | dist | docs | fuzz [TARGET] [RUNS] | corpus | model [PAIRS] [SEED] | \
             oracle [LINES] [SEED] | options [N] | scripts [N] [SEED] | git-oracle [N] | settings-law [N] | \
             soak-schedule [N] | soak-state [N] | interop | conformance | peers | language-servers | sdk [N] | \
             steady [N] [PACKAGE] | break-properties [N]"
        ),
    }
}

/// How often to run; once where the argument is absent.
fn parse_rounds(given: Option<&str>) -> Result<u32> {
    match given {
        Some(given) => given.parse().with_context(|| format!("`{given}` is not a number of rounds")),
        None => Ok(1),
    }
}

/// The root directory of the repository.
fn root() -> Result<PathBuf> {
    // `cargo run` says where it runs. What was compiled in may be another clone with the same target folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    match PathBuf::from(here).parent() {
        Some(root) => Ok(root.to_path_buf()),
        None => bail!("the repository has no root directory"),
    }
}

/// Reads a text file; an error names the file.
fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
