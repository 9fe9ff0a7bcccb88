//! The MCP servers that an editor brings to a session.

use agent_client_protocol::v1::schema::McpServer;
use serde_json::{Map, Value, json};

/// The editor's MCP servers, in the form of configuration files.
pub(super) fn read_editor_servers(servers: &[McpServer]) -> Result<Map<String, Value>, String> {
    let mut read = Map::new();
    for server in servers {
        let (name, config) = match server {
            McpServer::Stdio(server) => {
                let env: Map<String, Value> =
                    server.env.iter().map(|pair| (pair.name.clone(), json!(pair.value))).collect();
                let command = server.command.to_string_lossy();
                (&server.name, json!({ "command": command, "args": server.args, "env": env }))
            }
            McpServer::Http(server) => {
                let headers: Map<String, Value> =
                    server.headers.iter().map(|pair| (pair.name.clone(), json!(pair.value))).collect();
                (&server.name, json!({ "type": "http", "url": server.url, "headers": headers }))
            }
            McpServer::Sse(server) => {
                let headers: Map<String, Value> =
                    server.headers.iter().map(|pair| (pair.name.clone(), json!(pair.value))).collect();
                (&server.name, json!({ "type": "sse", "url": server.url, "headers": headers }))
            }
            _ => return Err("an MCP server has an unknown kind of transport".to_owned()),
        };
        if read.insert(name.clone(), config).is_some() {
            return Err(format!("two MCP servers are called `{name}`"));
        }
    }
    Ok(read)
}
