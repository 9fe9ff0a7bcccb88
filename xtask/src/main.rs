//! `cargo xtask`: the chores of this repository.
//!
//! - `cargo xtask ci`: everything that must hold before a change lands.
//! - `cargo xtask tidy`: the rules of the house, as a list of broken ones.
//! - `cargo xtask docs`: writes the documents that are made from code.
//! - `cargo xtask soak-schedule [N]`: the law of batches over N random batches (100 000 where N is not given).
//! - `cargo xtask settings-law [N]`: the law of settings over N random settings (100 000 where N is not given).
//! - `cargo xtask git-oracle [N]`: N git commands that only read in hostile repositories (3 000 where N is not given).
//! - `cargo xtask fuzz [TARGET] [RUNS]`: every fuzz target, or one, from its seeds (10 000 000 executions each).
//! - `cargo xtask corpus`: the figures of the corpus of known failures.
//! - `cargo xtask model [PAIRS] [SEED]`: the policy engine against the slow model (10 000 000 pairs).
//! - `cargo xtask oracle [LINES] [SEED]`: generated command lines that pass, run by real bash (1 000 000 lines).
//! - `cargo xtask options [N]`: N combinations of options of the read-only programs, run by real bash (100 000).
//! - `cargo xtask interop`: hands our definitions and results to real consumers.
//! - `cargo xtask conformance`: the official MCP conformance suite, against our server and our client.
//! - `cargo xtask peers`: official MCP SDKs drive our server, our client drives official servers.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore runner talks to its user and touches files"
)]

mod docs;
mod fuzz;
mod run;
mod tidy;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let done = match chore.as_str() {
        "ci" => run::run_ci(),
        "tidy" => run::run_tidy(),
        "docs" => docs::write_all(),
        "fuzz" => fuzz::run(std::env::args().nth(2).as_deref(), std::env::args().nth(3).as_deref()),
        "corpus" => run::print_corpus_figures(),
        "model" => {
            run::compare_with_model(std::env::args().nth(2).as_deref(), std::env::args().nth(3).as_deref())
        }
        "oracle" => {
            run::run_shell_oracle(std::env::args().nth(2).as_deref(), std::env::args().nth(3).as_deref())
        }
        "options" => run::run_option_oracle(std::env::args().nth(2).as_deref()),
        "interop" => run::run_interop(),
        "conformance" => run::run_conformance(),
        "peers" => run::run_peer_tests(),
        "git-oracle" => run::run_git_oracle(std::env::args().nth(2).as_deref()),
        "settings-law" => run::run_settings_law(std::env::args().nth(2).as_deref()),
        "soak-schedule" => run::soak_schedule(std::env::args().nth(2).as_deref()),
        _ => Err(anyhow::anyhow!(
            "usage: cargo xtask ci | tidy | docs | corpus | fuzz [TARGET] [RUNS] | model [PAIRS] [SEED] | oracle [LINES] [SEED] | interop | conformance | \
             peers | settings-law [N] | options [N] | git-oracle [N] | soak-schedule [N]"
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {chore}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository.
fn root() -> Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    match here.parent() {
        Some(root) => Ok(root.to_path_buf()),
        None => bail!("the repository has no root"),
    }
}

fn read(path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
