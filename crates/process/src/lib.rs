//! Processes of toolgate: supervised commands, hooks and MCP servers, the sandbox of commands, and its network proxy.
//!
//! [`SupervisedProcess`] is the principal type: a shell command under a supervisor process (a subreaper), which owns every
//! process that the command ever starts, also those that left its process group or session. Dropping the value ends them
//! all, and so does the death of toolgate, even by SIGKILL. The output is captured up to a limit and spilled to a file.
//! Hooks ([`run_hook`]) and MCP servers ([`ServerProcess`]) have piped standard streams instead of captured output, and
//! the same supervisor beneath them.
//!
//! [`sandbox::SandboxProfile`] says which files a command may read, write and execute, and which addresses it may connect
//! to. The kernel enforces it with Landlock, a seccomp filter, a seccomp notification handler and a mount namespace;
//! [`SandboxProxy`] restricts the network to some hosts.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::time::Duration;
//! use toolgate_process::{CaptureOptions, CommandEnvironment, ProcessExit, ProcessPhase, ProcessSpec, SupervisedProcess};
//! use toolgate_proto::AbsPath;
//!
//! let cwd = AbsPath::new("/tmp").unwrap();
//! let command = ProcessSpec {
//!     text: "echo hello; setsid sleep 1000 & exit 3".to_owned(),
//!     environment: CommandEnvironment::from_filtered(&BTreeMap::new(), &[], &BTreeMap::new()),
//!     startup: None,
//!     capture: CaptureOptions {
//!         head: 10_000,
//!         tail: 0,
//!         max_bytes: 10_000,
//!         file: cwd.join("output-of-the-example"),
//!         file_at_once: false,
//!     },
//!     cwd,
//!     sandbox: None,
//! };
//! let (changed, changes) = std::sync::mpsc::channel();
//! let process = SupervisedProcess::start(command, move || {
//!     let _ = changed.send(());
//! })
//! .map_err(|error| error.message)?;
//! while process.phase() == ProcessPhase::Running {
//!     changes.recv()?;
//! }
//! assert_eq!(process.phase().exit(), Some(ProcessExit::Code(3)));
//! assert_eq!(process.output_snapshot().head, b"hello\n");
//! // The shell has exited; the daemon that it started is still owned.
//! process.send_stop(Duration::ZERO);
//! assert!(process.wait_all_exited(Duration::from_secs(30)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Two further parts belong to the process of toolgate itself: [`AmbientEnvironment::read`] is the only place that reads
//! its environment variables and working directory, and [`standard_streams`] gives its standard streams without blocking
//! a thread.
//!
//! The crate deliberately does not know rules: which files are hidden or protected is decided by a
//! [`sandbox::PathGuard`], and which hosts are allowed by the function passed to [`SandboxProxy::start`]. It does not
//! parse command lines, and does not decide whether a command may run.

#![expect(clippy::disallowed_methods, reason = "this crate may start processes")]

mod ambient;
mod editor;
mod git_fetch;
mod hook_process;
mod ignores_hangup;
mod pager;
mod process;
mod proxy;
pub mod sandbox;
mod server_process;
mod stdio;
mod system_log;
mod terminal;
mod upstream_proxy;

pub use ambient::{AmbientEnvironment, StandardStream, is_terminal};
pub use editor::edit_file;
pub use git_fetch::{GitFetch, check_git_url, fetch_git};
pub use hook_process::{HookCommand, HookProcessError, HookProcessOutput, HookProgram, HookStep, run_hook};
pub use ignores_hangup::ignores_hangup;
pub use pager::page_text;
pub use process::{
    CaptureOptions, CommandEnvironment, EnvProgram, FoundProgram, GitHelpers, GitWorktree, GitWorktrees,
    OutputSnapshot, ProcessExit, ProcessPhase, ProcessSpec, ProcessStartError, STARTUP_SCRIPT,
    SupervisedProcess, WORKTREE_FOLDER, WorktreeChanges, find_git_referenced_files, find_programs,
    to_plain_text, write_startup_file,
};
pub use proxy::{HostDecision, ProxyHosts, RefusedHost, SandboxProxy};
pub use server_process::{ServerLaunch, ServerProcess, server_depth};
pub use stdio::{ByteSink, ByteSource, standard_streams};
pub use system_log::SystemLog;
pub use terminal::ControllingTerminal;
pub use upstream_proxy::{UpstreamChoice, UpstreamProxy, UpstreamQuery};
