//! The `toolgate` command.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

/// Delegates to the `cli` module and returns its exit code, so that destructors run before the process ends.
fn main() -> ExitCode {
    cli::main()
}
