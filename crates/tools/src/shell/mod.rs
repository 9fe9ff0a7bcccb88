//! Running commands: what the faces `Bash` and `shell`, and the tools for background tasks, have in common.
//!
//! A session has one [`ShellTasks`]: the commands it started, where their output goes, and the surroundings they run in.
//! When the session ends, so does every process in it.

mod config;
mod report;
mod run_command;
mod sandbox_profile;
mod tasks;

pub(crate) use report::{CommandResultFormat, anomalies, render_result, render_snapshot, task_summary};
pub(crate) use run_command::{
    CommandRequest, CommandWaitOutcome, detach_task, follow_command, start_command, stop_task,
};
pub(crate) use tasks::{ShellTask, ShellTasks};

pub use config::{OnTimeout, SandboxSettings, ShellConfig};

use toolgate_gate::Session;

/// Says in what surroundings the commands of a session run. Without this they know no environment but a search path.
pub fn set_shell_config(session: &Session, surroundings: ShellConfig) {
    session.state::<ShellTasks>().set_config(surroundings);
}

/// The commands of a session that run in the background, one line each.
pub fn background_tasks(session: &Session) -> Vec<String> {
    session.state::<ShellTasks>().all().iter().map(|task| task_summary(task)).collect()
}
