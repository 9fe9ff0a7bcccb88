//! What is judged: settings as written, a call, and the few files that are not what they seem.

use super::command::GeneratedCommandLine;
use serde_json::{Map, Value};
use toolgate_policy::{Layer, RuleAction};
use toolgate_proto::Mode;

/// Where the session works.
pub(super) const CWD: &str = "/ws";
/// A second root.
pub(super) const EXTRA_ROOT: &str = "/extra";
/// The home directory.
pub(super) const HOME: &str = "/home/u";

/// Links of the world: from, and to.
pub(super) const SYMLINKS: &[(&str, &str)] = &[
    ("/ws/in", "/ws/src"),
    ("/ws/out", "/outside"),
    ("/outside/back", "/ws/src"),
    ("/ws/docs/key", "/ws/private/key"),
    ("/ws/hop", "/ws/docs/key"),
    ("/ws/store", "/ws/.git"),
];

/// Files that have a second name somewhere else.
pub(super) const HARD_LINKED_FILES: &[&str] = &["/ws/src/shared.rs"];

/// Settings, as people write them.
#[derive(Debug, Clone)]
pub(super) struct GeneratedSettings {
    pub(super) layers: Vec<GeneratedLayer>,
    pub(super) mode: Mode,
    pub(super) managed_only: bool,
    pub(super) no_bypass: bool,
    pub(super) disabled: Vec<&'static str>,
    pub(super) free_readers: bool,
    pub(super) book: Option<Value>,
    pub(super) approved_hosts: Vec<&'static str>,
    pub(super) blocked_hosts: Vec<&'static str>,
    pub(super) approve_https: bool,
}

/// The rules of one file.
#[derive(Debug, Clone)]
pub(super) struct GeneratedLayer {
    pub(super) layer: Layer,
    pub(super) trusted: bool,
    pub(super) allow: Vec<String>,
    pub(super) ask: Vec<String>,
    pub(super) deny: Vec<String>,
}

impl GeneratedLayer {
    /// Where `/path` patterns of the layer start.
    pub(super) fn anchor(&self) -> &'static str {
        if self.layer == Layer::User { "/home/u/.claude" } else { CWD }
    }
}

/// One call.
#[derive(Debug, Clone)]
pub(super) struct GeneratedCall {
    pub(super) tool: &'static str,
    /// Other names that rules may use for it.
    pub(super) also: Vec<&'static str>,
    pub(super) effect: GeneratedEffect,
    pub(super) input: Map<String, Value>,
    pub(super) opinions: Vec<RuleAction>,
    pub(super) needs_person: bool,
}

/// What a call would do.
#[derive(Debug, Clone)]
pub(super) enum GeneratedEffect {
    /// Look at a path: absolute, as spelled.
    Read(String),
    /// Look at all below a path.
    ReadTree(String),
    /// Change a path.
    Write(String),
    /// Run a command line.
    Exec(GeneratedCommandLine),
    /// Fetch from a host.
    Fetch(GeneratedUrl),
    /// Ask a search service.
    WebSearch(String),
    /// Start an agent of a type.
    Delegate(String),
    /// Load a skill.
    Skill(String, Option<String>),
    /// Call a tool of a server, with a path among its arguments.
    Remote { server: String, tool: String, path: Option<String> },
    /// Keep a list.
    State,
    /// Who knows.
    Opaque,
}

/// The parts of an address.
#[derive(Debug, Clone)]
pub(super) struct GeneratedUrl {
    pub(super) secure: bool,
    pub(super) host: &'static str,
    pub(super) port: Option<u16>,
}

impl GeneratedUrl {
    pub(super) fn text(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}/x", self.host)
    }

    /// The port that is used, named or not.
    pub(super) fn effective_port(&self) -> u16 {
        self.port.unwrap_or(if self.secure { 443 } else { 80 })
    }
}

/// What a spelling of a path stands for.
#[derive(Debug, Clone)]
pub(super) struct SimulatedPath {
    /// `.` and `..` taken out of the spelling.
    pub(super) spelled: String,
    /// Where it leads.
    pub(super) real: String,
    /// Each link on the way.
    pub(super) links: Vec<String>,
    /// Another name leads to the same file.
    pub(super) shared: bool,
}

/// Follows a path name by name.
pub(super) fn resolve_path(path: &str) -> SimulatedPath {
    let mut spelled: Vec<&str> = Vec::new();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        if name == ".." {
            spelled.pop();
        } else {
            spelled.push(name);
        }
    }
    let mut links = Vec::new();
    let mut real: Vec<String> = Vec::new();
    let mut ahead: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    while let Some(name) = ahead.pop() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                real.pop();
                continue;
            }
            _ => real.push(name),
        }
        let here = format!("/{}", real.join("/"));
        if let Some((_, to)) = SYMLINKS.iter().find(|(from, _)| *from == here) {
            links.push(here);
            real.clear();
            ahead.extend(to.split('/').rev().map(str::to_owned));
        }
    }
    let real = format!("/{}", real.join("/"));
    let shared = HARD_LINKED_FILES.contains(&real.as_str());
    SimulatedPath { spelled: format!("/{}", spelled.join("/")), real, links, shared }
}

/// Whether a path is a directory or lies below it.
pub(super) fn is_in(path: &str, dir: &str) -> bool {
    path == dir || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}
