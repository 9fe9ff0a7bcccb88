//! Processes: supervised commands, the sandbox they run in, and the proxy of the sandbox.
//!
//! [`SupervisedProcess`] starts a command under a supervisor process (a subreaper), so that everything the command starts
//! is owned until it ends, also what left its process group; its output is captured with a limit and spilled to a file.
//! [`sandbox::SandboxProfile`] says what a command may read, write, execute and connect to; the kernel enforces it with
//! Landlock, a seccomp filter with user notification, a mount namespace, and [`SandboxProxy`] for the network.
//! Hooks ([`run_hook`]) and MCP servers ([`ServerProcess`]) are processes too.
//!
//! The process's own working directory, environment and standard streams are read in [`AmbientEnvironment::read`] and
//! nowhere else.
//!
//! This crate does not know rules: what is hidden or protected is asked of a [`sandbox::PathGuard`].

#![expect(clippy::disallowed_methods, reason = "this crate may start processes")]

mod ambient;
mod hook_process;
mod process;
mod proxy;
pub mod sandbox;
mod server_process;
mod spin_wait;
mod stdio;
mod terminal;

pub use ambient::{AmbientEnvironment, StandardStream, is_terminal};
pub use hook_process::{HookCommand, HookProcessError, HookProcessOutput, HookProgram, HookStep, run_hook};
pub use process::{
    CaptureOptions, CommandEnvironment, FoundProgram, GitHelpers, OutputSnapshot, ProcessExit, ProcessPhase,
    ProcessSpec, ProcessStartError, STARTUP_SCRIPT, SupervisedProcess, find_git_referenced_files,
    find_programs, to_plain_text, write_startup_file,
};
pub use proxy::{HostDecision, RefusedHost, SandboxProxy};
pub use server_process::{ServerLaunch, ServerProcess, server_depth};
pub use spin_wait::{BackgroundWorkGuard, spin_for_input};
pub use stdio::{ByteSink, ByteSource, standard_streams};
pub use terminal::ControllingTerminal;
