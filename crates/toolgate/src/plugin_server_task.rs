//! Servers of plugins while a session runs: started when a plugin comes, ended when it goes or changes.

use crate::plugins::is_plugin_server;
use crate::settings::LoadedSettings;
use crate::settings_reloader::SettingsReloader;
use crate::toolgate::Toolgate;
use std::sync::{Arc, Weak};
use std::time::Duration;
use toolgate_gate::Gate;
use toolgate_mcp::client::{McpCoordinator, ServerEntry};

/// How often plugins are looked at while no call does.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(2);

/// Finds the servers of settings and plugins.
type FindServers = dyn Fn(&LoadedSettings) -> Vec<ServerEntry> + Send + Sync;

impl Toolgate {
    /// Keeps the plugins' servers of a coordinator as the plugins are: a plugin that is installed or switched on brings its
    /// servers, and those of one that is switched off, removed or changed are ended. `find` finds the servers of all
    /// sources in settings, as [`DiscoveredServers::discover`](crate::mcp_servers::DiscoveredServers::discover) does;
    /// servers that are not of plugins stay as they are. Must be called inside a Tokio runtime.
    pub fn follow_plugin_servers(
        &self,
        coordinator: &McpCoordinator,
        find: impl Fn(&LoadedSettings) -> Vec<ServerEntry> + Send + Sync + 'static,
    ) {
        let task = PluginServerTask {
            gate: Arc::downgrade(&self.gate),
            reloader: Arc::downgrade(&self.reloader),
            coordinator: coordinator.clone(),
            find: Arc::new(find),
        };
        tokio::spawn(task.run());
    }
}

/// Follows the plugins until the gate is gone.
struct PluginServerTask {
    gate: Weak<Gate>,
    reloader: Weak<SettingsReloader>,
    coordinator: McpCoordinator,
    find: Arc<FindServers>,
}

impl PluginServerTask {
    /// Replaces the servers after each reload of the settings. Looks for changes itself while no call does.
    async fn run(self) {
        let Some((mut reloads, mut known)) =
            self.reloader.upgrade().map(|reloader| (reloader.watch_reloads(), reloader.active().settings))
        else {
            return;
        };
        loop {
            // An error of the first means that the reloader is gone, which the second notices.
            tokio::select! {
                Ok(()) = reloads.changed() => {}
                () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
            }
            let (gate, reloader) = (self.gate.clone(), self.reloader.clone());
            let find = Arc::clone(&self.find);
            let before = Arc::clone(&known);
            // Reading plugins may take a while.
            let looking = tokio::task::spawn_blocking(move || {
                gate.upgrade()?.refresh();
                let settings = reloader.upgrade()?.active().settings;
                let is_new = !Arc::ptr_eq(&before, &settings);
                let servers = is_new.then(|| find(&settings));
                Some((settings, servers))
            });
            let Ok(Some((settings, servers))) = looking.await else { return };
            known = settings;
            if let Some(mut servers) = servers {
                servers.retain(is_plugin_server);
                self.coordinator.replace_servers(servers, is_plugin_server).await;
            }
        }
    }
}
