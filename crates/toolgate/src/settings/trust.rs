//! Trust: what a project brings may only tighten until a person has looked at it.
//!
//! Trust is bound to the workspace's real path and to a hash of everything in it that could loosen or run: allow
//! rules, a looser mode, further directories, hooks and the scripts that they name, servers, environment.
//! A pull that changes any of that ends the trust, until somebody looks again; a pull that changes the rest does not.
//! Deny and ask rules always count and are no part of the hash.

use super::document::{Kind, Node};
use super::grants::Grant;
use super::shape::Shape;
use super::{SettingsError, read::CORRECT_IT, store};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_gate::ledger::sha256_hex;
use toolgate_os::Stamp;
use toolgate_proto::{AbsPath, EntryKind, Mode};

/// Scripts larger than this are not read; a hook that names one is described by its size and never trusted silently.
const MOST_SCRIPT: u64 = 16 * 1024 * 1024;

/// Keys of a settings file that can loosen, or that make something run.
const LOOSENING: [&str; 12] = [
    "hooks",
    "env",
    "mcpServers",
    "disableAllHooks",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "enabledPlugins",
    "skillOverrides",
    "sandbox",
    "allowedHttpHookUrls",
    "httpHookAllowedEnvVars",
    "policy",
];

/// Whether a workspace is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// It is trusted as it is now.
    Trusted,
    /// It was trusted, and has changed since.
    Changed,
    /// Nobody has trusted it.
    #[default]
    Unknown,
}

/// What a project brings that could loosen or run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brought {
    /// Each thing, in words, with its file.
    pub items: Vec<String>,
    /// The hash of all of it.
    pub sha256: String,
    /// The files beside the settings that belong to it (scripts of hooks, `.mcp.json`), as they were.
    pub files: Vec<(AbsPath, Stamp)>,
}

impl Brought {
    /// Gathers it out of the project's settings files.
    pub(super) fn by(
        root: &AbsPath,
        texts: &[(AbsPath, String)],
        granted: &[Grant],
    ) -> Result<Self, SettingsError> {
        let mut brought = Self::default();
        let mut hashed = Map::new();
        for (path, text) in texts {
            let node = Node::parse(text).map_err(|unreadable| SettingsError {
                file: path.to_string(),
                line: unreadable.line,
                message: unreadable.message,
                fix: CORRECT_IT.to_owned(),
            })?;
            let loosening = loosening(&node, path, granted);
            if loosening.is_empty() {
                continue;
            }
            let name = path.as_path().strip_prefix(root.as_path()).unwrap_or(path.as_path());
            for (key, value) in &loosening {
                brought.items.push(format!("{}: {key} {value}", name.display()));
            }
            // The file was or will be refused elsewhere if it does not fit; here it only lists no scripts.
            let shape: Shape = serde_json::from_value(node.value()).unwrap_or_default();
            brought.scripts(root, &shape, &mut hashed);
            hashed.insert(path.to_string(), Value::Object(loosening));
        }
        let servers = root.join(".mcp.json");
        brought.files.push((servers.clone(), toolgate_os::stamp(&servers)));
        if let Ok(content) = toolgate_os::read_named_bytes(&servers, MOST_SCRIPT) {
            brought.items.push(format!(".mcp.json: {} bytes of servers", content.len()));
            hashed.insert(servers.to_string(), json!(sha256_hex(&content)));
        }
        if !hashed.is_empty() {
            brought.sha256 = sha256_hex(Value::Object(hashed).to_string().as_bytes());
        }
        Ok(brought)
    }

    /// Whether there is anything to trust.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds the files of the workspace that hook commands name.
    fn scripts(&mut self, root: &AbsPath, shape: &Shape, hashed: &mut Map<String, Value>) {
        let handlers = shape.hooks.values().flatten().flat_map(|group| &group.hooks);
        let words = handlers.flat_map(|handler| handler.command.iter().chain(handler.args.iter().flatten()));
        for text in words {
            for script in named_files(root, text) {
                let key = script.to_string();
                if hashed.contains_key(&key) {
                    continue;
                }
                self.files.push((script.clone(), toolgate_os::stamp(&script)));
                let content = match toolgate_os::read_named_bytes(&script, MOST_SCRIPT) {
                    Ok(bytes) => sha256_hex(&bytes),
                    Err(problem) => problem.to_string(),
                };
                let name = script.as_path().strip_prefix(root.as_path()).unwrap_or(script.as_path());
                self.items.push(format!("script {} ({content:.12}…)", name.display()));
                hashed.insert(key, json!(content));
            }
        }
    }
}

/// The parts of a settings file that could loosen.
fn loosening(node: &Node, path: &AbsPath, granted: &[Grant]) -> Map<String, Value> {
    let mut out = Map::new();
    let is_granted = |rule: &Value| {
        granted.iter().any(|grant| grant.file == *path && rule.as_str() == Some(grant.rule.as_str()))
    };
    if let Some(Kind::Object(fields)) = node.get("permissions").map(|node| &node.kind) {
        for (key, value) in fields {
            let value = value.value();
            let kept = match (key.as_str(), value) {
                ("allow", Value::Array(rules)) => {
                    let rest: Vec<Value> = rules.into_iter().filter(|rule| !is_granted(rule)).collect();
                    (!rest.is_empty()).then_some(Value::Array(rest))
                }
                ("defaultMode", Value::String(mode)) => {
                    let looser = matches!(mode.parse(), Ok(Mode::AcceptEdits | Mode::Bypass));
                    looser.then_some(Value::String(mode))
                }
                ("additionalDirectories", value) => Some(value),
                _ => None,
            };
            if let Some(kept) = kept {
                out.insert(format!("permissions.{key}"), kept);
            }
        }
    }
    for key in LOOSENING {
        if let Some(value) = node.get(key) {
            out.insert(key.to_owned(), value.value());
        }
    }
    out
}

/// The files below the root that a command line names, as far as its words show.
fn named_files(root: &AbsPath, line: &str) -> Vec<AbsPath> {
    let at_root = format!("{root}/");
    let filled = line
        .replace("\"$CLAUDE_PROJECT_DIR\"/", &at_root)
        .replace("\"${CLAUDE_PROJECT_DIR}\"/", &at_root)
        .replace("$CLAUDE_PROJECT_DIR/", &at_root)
        .replace("${CLAUDE_PROJECT_DIR}/", &at_root);
    let divides = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '|' | '&' | '(' | ')' | '<' | '>' | '=' | '`')
    };
    filled
        .split(divides)
        .filter(|word| !word.is_empty() && !word.starts_with('-'))
        .filter_map(|word| {
            let fact = toolgate_os::resolve(&root.join(word));
            let inside = fact.problem.is_none() && fact.real.is_under(root);
            (inside && fact.kind == EntryKind::File).then_some(fact.real)
        })
        .collect()
}

/// One workspace that a person trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// Its real path.
    pub root: AbsPath,
    /// The hash of what it brought then.
    pub sha256: String,
    /// When: milliseconds since 1970, UTC.
    pub at: u64,
}

/// Where trust is remembered.
#[derive(Debug, Clone)]
pub struct TrustStore {
    pub(super) file: AbsPath,
}

impl TrustStore {
    /// The store in a state directory.
    pub fn in_dir(state_dir: &AbsPath) -> Self {
        Self { file: state_dir.join("trust.json") }
    }

    /// Every workspace that was trusted.
    pub fn list(&self) -> Result<Vec<Trusted>, SettingsError> {
        store::load(&self.file)
    }

    /// Trusts a workspace as it is.
    pub fn add(&self, root: &AbsPath, brought: &Brought) -> Result<(), SettingsError> {
        let root = toolgate_os::resolve(root).real;
        let mut list = self.list()?;
        list.retain(|trusted| trusted.root != root);
        list.push(Trusted { root, sha256: brought.sha256.clone(), at: toolgate_os::now_millis() });
        store::save(&self.file, &list)
    }

    /// Ends the trust in a workspace. False if there was none.
    pub fn remove(&self, root: &AbsPath) -> Result<bool, SettingsError> {
        let real = toolgate_os::resolve(root).real;
        let mut list = self.list()?;
        let before = list.len();
        list.retain(|trusted| trusted.root != real && trusted.root != *root);
        let removed = list.len() < before;
        if removed {
            store::save(&self.file, &list)?;
        }
        Ok(removed)
    }

    /// How a workspace stands.
    pub fn standing(&self, root: &AbsPath, brought: &Brought) -> Result<Standing, SettingsError> {
        let real = toolgate_os::resolve(root).real;
        Ok(match self.list()?.iter().find(|trusted| trusted.root == real) {
            Some(trusted) if trusted.sha256 == brought.sha256 => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        })
    }
}
