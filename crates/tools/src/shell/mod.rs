//! Running commands: what `Bash`, `shell`, `TaskOutput` and `TaskStop` share.
//!
//! A session has one [`ShellTasks`]: its [`ShellConfig`], its private directory and the commands that it started.
//! A command that outlives its call is a background task; when the session ends, every process of its tasks is killed.

mod config;
mod follow_command;
mod refusal_role;
mod render_result;
mod sandbox_notes;
mod sandbox_profile;
mod start_command;
mod task_status;
mod tasks;
mod truncate_output;
mod upstream;

pub(crate) use follow_command::{CommandWaitOutcome, detach_task, follow_command, stop_task};
pub(crate) use render_result::{CommandResultFormat, render_result};
pub(crate) use sandbox_notes::anomalies;
pub(crate) use start_command::{CommandRequest, start_command};
pub(crate) use task_status::{render_task_status, task_summary};
pub(crate) use tasks::{ShellTask, ShellTasks};
#[cfg(feature = "web")]
pub(crate) use upstream::{choose_upstream, proxy_variables};

pub use config::{OnTimeout, SandboxSettings, ShellConfig};

use toolgate_gate::Session;

/// Sets how the commands of a session run. Without it they get no environment variables except a default `PATH`.
pub fn set_shell_config(session: &Session, config: ShellConfig) {
    session.state::<ShellTasks>().set_config(config);
}

/// The background tasks of a session, one line each.
pub fn background_tasks(session: &Session) -> Vec<String> {
    session.state::<ShellTasks>().all().iter().map(|task| task_summary(task)).collect()
}
