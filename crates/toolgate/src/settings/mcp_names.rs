//! The names of MCP servers and of their tools, as far as files have them: a rule for another name may be misspelled.

use super::trust::TrustStatus;
use super::{LoadedSettings, SettingsOptions};
use crate::mcp_servers::{DiscoveredServers, ServerDiscoveryOptions};
use std::collections::BTreeMap;
use toolgate_mcp::client::PinStore;
use toolgate_policy::McpNames;
use toolgate_proto::AbsPath;

/// The file in the state directory that has the approved launch commands and tools of servers.
pub const MCP_PINS_FILE: &str = "mcp-servers.json";

impl SettingsOptions {
    /// The servers of all lists and settings, and the tools that they had when they were last connected. Files that cannot
    /// be read add no names; the commands that start servers report them.
    pub(crate) fn find_mcp_names(&self, settings: &LoadedSettings) -> McpNames {
        let mut options = ServerDiscoveryOptions::new(toolgate_files::resolve(&self.root).real);
        options.config_root.clone_from(&self.config_root);
        options.home.clone_from(&self.home);
        options.config_dir.clone_from(&self.config_dir);
        options.trust_workspace = settings.trust_status == TrustStatus::Trusted;
        options.given_base.clone_from(&self.extra_base);
        let mut names = McpNames::default();
        for given in &self.mcp_configs {
            let given =
                ServerDiscoveryOptions { given: vec![given.clone()], strict: true, ..options.clone() };
            names.servers.extend(DiscoveredServers::discover(&given, settings).unwrap_or_default().names);
        }
        names.servers.extend(DiscoveredServers::discover(&options, settings).unwrap_or_default().names);
        if let Some(dir) = &self.state_dir
            && let Ok(pins) = PinStore::open(Some(dir.join(MCP_PINS_FILE)))
        {
            names.tools = pins.tools_by_server();
        }
        names
    }
}

impl LoadedSettings {
    /// The servers of settings, plugins and lists, for the matchers of hooks. Where the lists are is known to settings only
    /// in part: servers of the command line and of a host program are not among them.
    pub(crate) fn find_mcp_names(
        &self,
        project: &AbsPath,
        config_root: Option<&AbsPath>,
        env: &BTreeMap<String, String>,
    ) -> McpNames {
        let mut options = ServerDiscoveryOptions::new(toolgate_files::resolve(project).real);
        options.config_root = config_root.cloned();
        options.home = env.get("HOME").and_then(|home| AbsPath::new(home).ok());
        options.config_dir = self.user_file.as_ref().and_then(AbsPath::parent);
        options.trust_workspace = self.trust_status == TrustStatus::Trusted;
        let mut names = McpNames::default();
        names.servers.extend(DiscoveredServers::discover(&options, self).unwrap_or_default().names);
        names
    }
}
