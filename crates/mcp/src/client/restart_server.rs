//! Servers that are switched off and on, connected anew, added or removed while the gate is in use.

use super::connection::McpConnectionError;
use super::coordinator::{McpCoordinator, UpstreamServer};
use super::server_entry::ServerEntry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use toolgate_gate::Source;

impl McpCoordinator {
    /// Whether there is a server of this name.
    pub fn has_server(&self, name: &str) -> bool {
        self.find_server(name).is_some()
    }

    /// Ends a server and takes its tools away, or starts it again and waits until that was tried. False if there is no
    /// server of this name.
    pub async fn set_enabled(&self, name: &str, is_enabled: bool) -> bool {
        let Some(member) = &self.find_server(name) else { return false };
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
        let member = &self.find_server(name)?;
        let _switching = self.inner.switching.lock().await;
        if member.is_disabled.load(Ordering::Acquire) {
            return Some(Err(McpConnectionError::Down("it is switched off".to_owned())));
        }
        self.stop_server(member).await;
        self.restart_server(member).await;
        Some(member.connection.last_error().map_or(Ok(()), Err))
    }

    /// Replaces those of the servers of which `is_replaced` is true by others. One that is the same stays as it is; the tools
    /// of one that is gone or different are taken away before it is ended. Servers that are new start connecting. Does
    /// nothing once everything was ended. Returns the names of the servers that were ended, and of those that were added.
    pub async fn replace_servers(
        &self,
        entries: Vec<ServerEntry>,
        is_replaced: impl Fn(&ServerEntry) -> bool + Send,
    ) -> (Vec<String>, Vec<String>) {
        let _switching = self.inner.switching.lock().await;
        let (mut ended, mut added) = (Vec::new(), Vec::new());
        if self.inner.is_closed.load(Ordering::Acquire) {
            return (ended, added);
        }
        let gone = |member: &Arc<UpstreamServer>| {
            let entry = &member.connection.entry;
            is_replaced(entry) && !entries.iter().any(|other| is_same_server(entry, other))
        };
        let before = self.servers();
        for member in before.iter().filter(|member| gone(member)) {
            self.inner.remove_tools(member);
            self.stop_server(member).await;
            // Its task may have listed tools once more before it ended.
            self.inner.remove_tools(member);
            ended.push(member.connection.entry.name.clone());
        }
        let mut servers: Vec<Arc<UpstreamServer>> =
            before.iter().filter(|member| !gone(member)).cloned().collect();
        let mut started = Vec::new();
        for entry in entries {
            if !servers.iter().any(|member| member.connection.entry.name == entry.name) {
                added.push(entry.name.clone());
                let member = UpstreamServer::new(entry, &self.inner.context);
                servers.push(Arc::clone(&member));
                started.push(member);
            }
        }
        *self.inner.servers.write().unwrap_or_else(PoisonError::into_inner) = servers;
        if let (Some(tools), true, true) = (self.inner.tools.get(), before.is_empty(), !started.is_empty()) {
            // The tools for resources come with the first server. A gate that is closed takes none.
            let _ = self.tools(tools);
        }
        for member in &started {
            self.inner.spawn_task(member);
        }
        (ended, added)
    }

    /// The server of a name.
    fn find_server(&self, name: &str) -> Option<Arc<UpstreamServer>> {
        self.servers().into_iter().find(|member| member.connection.entry.name == name)
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

/// Whether two definitions mean the same server. Whether calls wait for it is a matter of its start only.
fn is_same_server(one: &ServerEntry, other: &ServerEntry) -> bool {
    ServerEntry { always_load: other.always_load, ..one.clone() } == *other
}
