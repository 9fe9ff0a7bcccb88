//! Servers that are switched off and on, or connected anew, while the gate is in use.

use super::connection::McpConnectionError;
use super::coordinator::{McpCoordinator, UpstreamServer};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl McpCoordinator {
    /// Whether there is a server of this name.
    pub fn has_server(&self, name: &str) -> bool {
        self.find_server(name).is_some()
    }

    /// Ends a server and takes its tools away, or starts it again and waits until that was tried. False if there is no
    /// server of this name.
    pub async fn set_enabled(&self, name: &str, is_enabled: bool) -> bool {
        let Some(member) = self.find_server(name) else { return false };
        let _switching = self.inner.switching.lock().await;
        let was_enabled = !member.is_disabled.swap(!is_enabled, Ordering::AcqRel);
        match (was_enabled, is_enabled) {
            (true, false) => {
                self.stop_server(member).await;
                self.inner.remove_tools(member);
            }
            (false, true) => self.restart_server(member).await,
            (true, true) | (false, false) => {}
        }
        true
    }

    /// Connects a server anew, and waits until that was tried. `None` if there is no server of this name; one that is
    /// switched off stays off.
    pub async fn reconnect(&self, name: &str) -> Option<Result<(), McpConnectionError>> {
        let member = self.find_server(name)?;
        let _switching = self.inner.switching.lock().await;
        if member.is_disabled.load(Ordering::Acquire) {
            return Some(Err(McpConnectionError::Down("it is switched off".to_owned())));
        }
        self.stop_server(member).await;
        self.restart_server(member).await;
        Some(member.connection.last_error().map_or(Ok(()), Err))
    }

    /// The server of a name.
    fn find_server(&self, name: &str) -> Option<&Arc<UpstreamServer>> {
        self.servers().iter().find(|member| member.connection.entry.name == name)
    }

    /// Ends the task and the connection of a server.
    async fn stop_server(&self, member: &UpstreamServer) {
        let task = self.inner.lock_tasks().remove(&member.connection.entry.name);
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
        member.connection.close().await;
    }

    /// Starts a server that was ended, and waits until its first attempt is over.
    async fn restart_server(&self, member: &Arc<UpstreamServer>) {
        member.connection.reopen().await;
        member.tried.send_replace(false);
        // Without a gate there is nothing to start: the source was never added.
        if !self.inner.spawn_task(member) {
            return;
        }
        let limit = member.connection.entry.connect_timeout.saturating_mul(3);
        let mut tried = member.tried.subscribe();
        let _ = tokio::time::timeout(limit, tried.wait_for(|tried| *tried)).await;
    }
}
