//! Running commands: what the faces `Bash` and `shell`, and the tools for background tasks, have in common.
//!
//! A session has one [`Tasks`]: the commands it started, where their output goes, and the surroundings they run in.
//! When the session ends, so does every process in it.

mod follow;
mod report;
mod rights;
mod surroundings;
mod tasks;

pub(crate) use follow::{CommandRequest, Ended, detach_task, end, follow, start};
pub(crate) use report::{CommandResultFormat, anomalies, finished, listing, snapshot};
pub(crate) use tasks::{Task, Tasks};

pub use surroundings::{OnTimeout, SandboxSettings, Surroundings};

use toolgate_gate::Session;

/// Says in what surroundings the commands of a session run. Without this they know no environment but a search path.
pub fn surround(session: &Session, surroundings: Surroundings) {
    session.state::<Tasks>().surround(surroundings);
}

/// The commands of a session that run in the background, one line each.
pub fn background_tasks(session: &Session) -> Vec<String> {
    session.state::<Tasks>().all().iter().map(|task| listing(task)).collect()
}
