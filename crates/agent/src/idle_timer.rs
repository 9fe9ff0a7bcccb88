//! Hooks for a session that waits for its user.

use crate::agent_loop::AgentLoop;
use std::sync::Arc;
use tokio::task::AbortHandle;

/// Runs the hooks for an idle session after a while; dropping it means that the wait is over.
#[derive(Debug)]
pub struct IdleTimer {
    timer: AbortHandle,
}

impl Drop for IdleTimer {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl AgentLoop {
    /// Starts to wait for the user. Must be called inside a runtime.
    pub fn start_idle_timer(self: &Arc<Self>) -> IdleTimer {
        let agent = Arc::clone(self);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(agent.settings().idle_delay).await;
            // On a task of its own: hooks that run are not ended by a user who comes back.
            tokio::spawn(async move {
                agent.notify_user("idle_prompt", "toolgate is waiting for your input").await;
            });
        });
        IdleTimer { timer: timer.abort_handle() }
    }
}
