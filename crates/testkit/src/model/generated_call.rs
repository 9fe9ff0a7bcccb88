//! What is judged: generated settings and a generated call.

use super::command::GeneratedCommandLine;
use super::simulated_path::CWD;
use serde_json::{Map, Value};
use toolgate_policy::{Layer, RuleAction};
use toolgate_proto::Mode;

/// Settings, before they are compiled.
#[derive(Debug, Clone)]
pub(super) struct GeneratedSettings {
    /// The settings files.
    pub(super) layers: Vec<GeneratedLayer>,
    /// The permission mode.
    pub(super) mode: Mode,
    /// Allow rules of other layers than the managed one are ignored.
    pub(super) managed_only: bool,
    /// The mode `bypass` is disabled.
    pub(super) no_bypass: bool,
    /// Names of disabled tools.
    pub(super) disabled: Vec<&'static str>,
    /// Read-only commands are allowed without a rule.
    pub(super) free_readers: bool,
    /// The policy book.
    pub(super) book: Option<Value>,
    /// Hosts that are approved in advance.
    pub(super) approved_hosts: Vec<&'static str>,
    /// Hosts that are blocked.
    pub(super) blocked_hosts: Vec<&'static str>,
    /// Public hosts are approved over https.
    pub(super) approve_https: bool,
}

/// The rules of one settings file.
#[derive(Debug, Clone)]
pub(super) struct GeneratedLayer {
    /// The origin of the file.
    pub(super) layer: Layer,
    /// Its allow rules apply.
    pub(super) trusted: bool,
    /// Allow rules.
    pub(super) allow: Vec<String>,
    /// Ask rules.
    pub(super) ask: Vec<String>,
    /// Deny rules.
    pub(super) deny: Vec<String>,
}

impl GeneratedLayer {
    /// The directory where patterns with a leading `/` start.
    pub(super) fn anchor(&self) -> &'static str {
        if self.layer == Layer::User { "/home/u/.claude" } else { CWD }
    }
}

/// One call, as the engine and the model get it.
#[derive(Debug, Clone)]
pub(super) struct GeneratedCall {
    /// The name of the tool.
    pub(super) tool: &'static str,
    /// Other names that rules may use for it.
    pub(super) also: Vec<&'static str>,
    /// The only effect of its intent.
    pub(super) effect: GeneratedEffect,
    /// The input, for rules about fields and for the policy book.
    pub(super) input: Map<String, Value>,
    /// What hooks decided.
    pub(super) opinions: Vec<RuleAction>,
    /// The tool needs an approval on every call.
    pub(super) needs_user: bool,
}

impl GeneratedCall {
    /// The names under which something can be granted to the tool.
    pub(super) fn names(&self) -> Vec<&'static str> {
        std::iter::once(self.tool).chain(self.also.iter().copied()).collect()
    }

    /// The names under which the tool can be restricted: those that it has in the other toolset and in other products, too.
    pub(super) fn restricted_names(&self) -> Vec<&'static str> {
        let mut names = self.names();
        for name in self.names() {
            names.extend_from_slice(match name {
                "Bash" | "shell" => &["Bash", "shell", "run_shell_command"],
                "Read" => &["read_file", "FileRead"],
                "Write" => &["write_file", "FileWrite"],
                "Edit" => &["edit_file", "FileEdit", "replace"],
                "Grep" => &["grep", "search_file_content"],
                "WebFetch" => &["web_fetch"],
                "WebSearch" => &["web_search"],
                "TodoWrite" => &["write_todos"],
                "TaskStop" => &["task_stop"],
                _ => &[],
            });
        }
        names
    }
}

/// The effect of a call.
#[derive(Debug, Clone)]
pub(super) enum GeneratedEffect {
    /// Read a path: absolute, as it is spelled.
    Read(String),
    /// Read everything below a path.
    ReadTree(String),
    /// Change a path.
    Write(String),
    /// Run a command line.
    Exec(GeneratedCommandLine),
    /// Fetch a URL.
    Fetch(GeneratedUrl),
    /// Query a search service.
    WebSearch(String),
    /// Start an agent of a type.
    Delegate(String),
    /// Load a skill.
    Skill(String, Option<String>),
    /// Call a tool of an MCP server, with a path among its arguments.
    Remote { server: String, tool: String, path: Option<String> },
    /// Change state of the session.
    State,
    /// Unknown.
    Opaque,
}

/// The parts of a URL.
#[derive(Debug, Clone)]
pub(super) struct GeneratedUrl {
    /// `https` rather than `http`.
    pub(super) secure: bool,
    /// The host, as it is spelled.
    pub(super) host: &'static str,
    /// The port, if the URL names one.
    pub(super) port: Option<u16>,
}

impl GeneratedUrl {
    /// The URL as text.
    pub(super) fn text(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}/x", self.host)
    }

    /// The port of the connection, whether the URL names it or not.
    pub(super) fn effective_port(&self) -> u16 {
        self.port.unwrap_or(if self.secure { 443 } else { 80 })
    }
}
