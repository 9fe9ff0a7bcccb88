//! Every value that counts, and where it came from.

use super::document::{Kind, Node};
use super::{Settings, SettingsFile};
use crate::hooks::planned;
use serde::Serialize;
use serde_json::{Value, json};
use toolgate_policy::Layer;
use toolgate_proto::Mode;

/// A value that counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effective {
    /// The key, such as `permissions.deny`.
    pub key: String,
    /// The value; of a list, one entry.
    pub value: Value,
    /// The layer it came from.
    pub layer: Layer,
    /// The file it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Why it has no effect, where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
}

/// What loosens, and so waits for trust.
const NEEDS_TRUST: [&str; 11] = [
    "permissions.allow",
    "permissions.additionalDirectories",
    "env",
    "mcpServers",
    "disableAllHooks",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "preApproval.allowedDomains",
    "preApproval.allowPrivate",
    "preApproval.autoApproveHttps",
    "sandbox",
];

impl Settings {
    /// Every value that was set, strongest first; of single values only the one that wins. `mode` is the mode given on
    /// the command line.
    pub fn effective(&self, mode: Option<Mode>) -> Vec<Effective> {
        let mut out: Vec<Effective> = Vec::new();
        let in_force = self.policy(mode).mode;
        let from = self.files.iter().find(|file| file.mode == Some(in_force));
        out.push(match (mode, from) {
            (None, Some(file)) => entry(file, "permissions.defaultMode", json!(in_force.as_str()), {
                Some(file.node.nearest(&["permissions", "defaultMode"]).line)
            }),
            (given, _) => Effective {
                key: "permissions.defaultMode".to_owned(),
                value: json!(in_force.as_str()),
                layer: if given == Some(in_force) { Layer::Cli } else { Layer::Default },
                file: None,
                line: None,
                waits: None,
            },
        });
        for file in &self.files {
            let Kind::Object(fields) = &file.node.kind else { continue };
            for (key, node) in fields {
                if !matches!(key.as_str(), "hooks" | "$schema") {
                    self.gather(file, key, node, &mut out);
                }
            }
        }
        for planned in planned(self).0 {
            out.push(Effective {
                key: format!("hooks.{}", planned.moment),
                value: json!({ "matcher": planned.matcher.as_deref().unwrap_or("*"), "hook": planned.name() }),
                layer: planned.layer,
                file: Some(planned.file.clone()),
                line: Some(planned.line),
                waits: None,
            });
        }
        for file in self.files.iter().filter(|file| !self.hooks_count(file) && !file.shape.hooks.is_empty()) {
            let mut waiting = entry(
                file,
                "hooks",
                file.node.nearest(&["hooks"]).value(),
                Some(file.node.nearest(&["hooks"]).line),
            );
            waiting.waits = Some(if file.trusted {
                "hooks of this layer are switched off".to_owned()
            } else {
                "the workspace is not trusted".to_owned()
            });
            out.push(waiting);
        }
        out
    }

    fn gather(&self, file: &SettingsFile, key: &str, node: &Node, out: &mut Vec<Effective>) {
        if key == "permissions.defaultMode" {
            return;
        }
        match &node.kind {
            Kind::Object(fields) => {
                for (below, node) in fields {
                    self.gather(file, &format!("{key}.{below}"), node, out);
                }
            }
            Kind::List(items) => {
                for item in items {
                    let mut entry = entry(file, key, item.value(), Some(item.line));
                    entry.waits = self.waits(file, key, &item.value());
                    out.push(entry);
                }
            }
            Kind::Scalar(value) => {
                let waits = self.waits(file, key, value);
                // Of single values the strongest that counts wins; weaker ones are not shown.
                if waits.is_some() || !out.iter().any(|other| other.key == key && other.waits.is_none()) {
                    out.push(Effective { waits, ..entry(file, key, value.clone(), Some(node.line)) });
                }
            }
        }
    }

    fn waits(&self, file: &SettingsFile, key: &str, value: &Value) -> Option<String> {
        let top = key.split('.').next().unwrap_or_default();
        let loosens = NEEDS_TRUST.contains(&key) || NEEDS_TRUST.contains(&top);
        let counts = key == "permissions.allow"
            && file.rules.allow.iter().any(|rule| value.as_str() == Some(rule.text.as_str()));
        if loosens && !file.trusted && !counts {
            return Some("the workspace is not trusted".to_owned());
        }
        let managed = file.rules.layer == Layer::Managed;
        if key == "permissions.allow" && !managed && self.managed_rules_only() {
            return Some("only managed allow rules count".to_owned());
        }
        None
    }
}

fn entry(file: &SettingsFile, key: &str, value: Value, line: Option<usize>) -> Effective {
    Effective {
        key: key.to_owned(),
        value,
        layer: file.rules.layer,
        file: file.rules.file.clone(),
        line,
        waits: None,
    }
}
