//! The `toolgate` command.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

/// The calls of a server run on several threads, and memory of one is freed by another. Programs that embed the library
/// choose for themselves.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Delegates to the `cli` module and returns its exit code, so that destructors run before the process ends.
fn main() -> ExitCode {
    cli::main()
}
