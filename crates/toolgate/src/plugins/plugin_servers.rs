//! The servers of plugins, as entries of the lists that other servers are in.

use super::package::{PluginPackage, PluginServer};
use super::plugin_set::{PluginEntry, PluginSet};
use super::plugin_variables::PluginVariables;
use crate::skills::PluginIdentity;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_mcp::client::{ServerEntry, ServerListOrigin, ServerTransport, read_server};
use toolgate_proto::AbsPath;

/// The name under which a server of a plugin is known: a part of the names of its tools.
pub(crate) fn plugin_server_name(plugin: &str, server: &str) -> String {
    let fit = |text: &str| text.replace(['.', ' '], "_");
    format!("plugin_{}_{}", fit(plugin), fit(server))
}

/// What the origin of every server of a plugin begins with.
const ORIGIN_PREFIX: &str = "plugin:";

/// What the approvals of MCP servers know a plugin as.
fn origin_of(plugin: &str) -> String {
    format!("{ORIGIN_PREFIX}{plugin}")
}

/// Whether a server is one of a plugin.
pub(crate) fn is_plugin_server(server: &ServerEntry) -> bool {
    server.origin.starts_with(ORIGIN_PREFIX)
}

impl PluginEntry {
    /// The keys of its MCP servers in the store of approved launch commands and tool definitions. An approval of the
    /// plugin replaces them.
    pub fn server_pins(&self) -> Vec<String> {
        let Some(package) = &self.package else { return Vec::new() };
        let origin = origin_of(&self.name);
        let key = |server: &str| format!("{origin}#{}", plugin_server_name(&self.name, server));
        package.mcp_servers.iter().map(|server| key(&server.name)).collect()
    }
}

impl PluginSet {
    /// The names of the MCP servers that may run now.
    pub(crate) fn mcp_server_names(&self) -> BTreeSet<String> {
        let names = |(package, identity): (&PluginPackage, PluginIdentity)| {
            let name = |server: &PluginServer| plugin_server_name(&identity.name, &server.name);
            package.mcp_servers.iter().map(name).collect::<Vec<_>>()
        };
        self.approved().flat_map(names).collect()
    }

    /// The MCP servers of the plugins that the user approved as they are now, and what is wrong with others.
    pub(crate) fn mcp_servers(
        &self,
        project: &AbsPath,
        env: &BTreeMap<String, String>,
    ) -> (Vec<ServerEntry>, Vec<String>) {
        let (mut servers, mut problems) = (Vec::new(), Vec::new());
        for (package, identity) in self.approved() {
            let variables = PluginVariables::new(&identity, project);
            let mut env = env.clone();
            env.extend(variables.environment());
            let file = origin_of(&identity.name);
            let origin = ServerListOrigin::new(&file, project, &env).with_trusted(true);
            for server in &package.mcp_servers {
                let name = plugin_server_name(&identity.name, &server.name);
                match read_server(&name, &server.entry, &origin, &mut problems) {
                    Ok(Some(mut entry)) => {
                        if let ServerTransport::Stdio(launch) = &mut entry.transport {
                            for (name, value) in variables.environment() {
                                launch.env.insert(name, value);
                            }
                        }
                        servers.push(entry);
                    }
                    Ok(None) => {}
                    Err(problem) => {
                        problems.push(format!("{}: server `{}`: {problem}", server.file, server.name));
                    }
                }
            }
        }
        (servers, problems)
    }

    /// The language servers of the plugins that the user approved as they are now, and what is wrong with others.
    #[cfg(feature = "lsp")]
    pub(crate) fn language_servers(&self) -> (Vec<toolgate_lsp::LspServerEntry>, Vec<String>) {
        let (mut servers, mut problems) = (Vec::new(), Vec::new());
        let Some(project) = &self.project else { return (servers, problems) };
        for (package, identity) in self.approved() {
            let variables = PluginVariables::new(&identity, project);
            for server in &package.lsp_servers {
                let name = format!("plugin:{}:{}", identity.name, server.name);
                let mut list = serde_json::Map::new();
                list.insert(name, variables.expand_value(&server.entry));
                let (mut read, wrong) =
                    toolgate_lsp::read_servers(&serde_json::Value::Object(list), &server.file.to_string());
                for entry in &mut read {
                    entry.env.extend(variables.environment());
                }
                servers.extend(read);
                problems.extend(wrong);
            }
        }
        (servers, problems)
    }
}
