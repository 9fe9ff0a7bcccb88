//! The effective values and their origin, for `toolgate settings`.

use super::merge::{MergeRule, find_merge_rule, is_switch_value, value_at};
use super::node::{SettingsNode, SettingsNodeKind};
use super::{LoadedSettings, SettingsFile};
use crate::hooks::plan_hooks;
use serde::Serialize;
use serde_json::{Value, json};
use toolgate_policy::Layer;
use toolgate_proto::Mode;

/// A value in a settings file, with its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EffectiveValue {
    /// The key, such as `permissions.deny`.
    pub key: String,
    /// The value; for a list, one entry.
    pub value: Value,
    /// The layer of its file.
    pub layer: Layer,
    /// The file; none for defaults and options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Why it has no effect, if it has none.
    #[serde(rename = "waits", skip_serializing_if = "Option::is_none")]
    pub inactive_reason: Option<String>,
}

impl LoadedSettings {
    /// Every entry of lists and objects and every scalar that applies, the strongest layer first, followed by the hooks.
    /// Values without effect are included with the reason. `mode` is the mode of the command line.
    ///
    /// ```
    /// use toolgate::AbsPath;
    /// use toolgate::settings::{LoadedSettings, SettingsOptions};
    ///
    /// let mut options = SettingsOptions::new(AbsPath::new("/project").unwrap());
    /// options.managed_dirs.clear();
    /// options.sources.clear();
    /// options.extra = Some(r#"{ "permissions": { "deny": ["WebFetch"] } }"#.to_owned());
    /// let values = LoadedSettings::load(&options)?.effective_values(None);
    /// assert!(values.iter().any(|value| value.key == "permissions.deny" && value.value == "WebFetch"));
    /// # Ok::<(), toolgate::settings::SettingsError>(())
    /// ```
    pub fn effective_values(&self, mode: Option<Mode>) -> Vec<EffectiveValue> {
        let mut out: Vec<EffectiveValue> = Vec::new();
        let in_force = self.policy(mode).mode;
        let file_mode =
            |file: &&SettingsFile| file.values.permissions.default_mode.as_deref().map(str::parse);
        let from = self.files.iter().find(|file| file_mode(file) == Some(Ok(in_force)));
        out.push(match (mode, from) {
            (None, Some(file)) => build_value(file, "permissions.defaultMode", json!(in_force.as_str()), {
                Some(file.node.nearest_node(&["permissions", "defaultMode"]).line)
            }),
            (given, _) => EffectiveValue {
                key: "permissions.defaultMode".to_owned(),
                value: json!(in_force.as_str()),
                layer: if given == Some(in_force) { Layer::Cli } else { Layer::Default },
                file: None,
                line: None,
                inactive_reason: None,
            },
        });
        for file in &self.files {
            let SettingsNodeKind::Object(fields) = &file.node.kind else { continue };
            for (key, node) in fields {
                if !matches!(key.as_str(), "hooks" | "$schema") {
                    self.collect_values(file, key, node, &mut out);
                }
            }
        }
        for planned in plan_hooks(self).0 {
            out.push(EffectiveValue {
                key: format!("hooks.{}", planned.event),
                value: json!({ "matcher": planned.matcher.as_deref().unwrap_or("*"), "hook": planned.name() }),
                layer: planned.layer,
                file: Some(planned.file.clone()),
                line: Some(planned.line),
                inactive_reason: planned.refusal_reason.clone(),
            });
        }
        let has_hooks = |file: &&SettingsFile| {
            file.raw_value.get("hooks").and_then(Value::as_object).is_some_and(|hooks| !hooks.is_empty())
        };
        for file in self.files.iter().filter(has_hooks).filter(|file| !self.are_hooks_active(file)) {
            let mut inactive = build_value(
                file,
                "hooks",
                file.node.nearest_node(&["hooks"]).value(),
                Some(file.node.nearest_node(&["hooks"]).line),
            );
            inactive.inactive_reason = Some(if file.trusted {
                "hooks of this layer are disabled".to_owned()
            } else {
                "this project is not trusted".to_owned()
            });
            out.push(inactive);
        }
        out
    }

    /// Adds the values below a node of a file.
    fn collect_values(
        &self,
        file: &SettingsFile,
        key: &str,
        node: &SettingsNode,
        out: &mut Vec<EffectiveValue>,
    ) {
        if key == "permissions.defaultMode" {
            return;
        }
        match &node.kind {
            SettingsNodeKind::Object(fields) => {
                for (below, node) in fields {
                    self.collect_values(file, &format!("{key}.{below}"), node, out);
                }
            }
            SettingsNodeKind::List(items) => {
                for item in items {
                    let mut entry = build_value(file, key, item.value(), Some(item.line));
                    entry.inactive_reason = self.inactive_reason(file, key, &item.value());
                    out.push(entry);
                }
            }
            SettingsNodeKind::Scalar(value) => {
                let inactive_reason = self.inactive_reason(file, key, value);
                // Only the scalar that applies is listed, at the strongest file that sets it.
                let path: Vec<String> = key.split('.').map(str::to_owned).collect();
                let applies = value_at(&self.merged_value, &path).is_none_or(|merged| merged == value);
                let is_listed = out.iter().any(|other| other.key == key && other.inactive_reason.is_none());
                if inactive_reason.is_some() || applies && !is_listed {
                    out.push(EffectiveValue {
                        inactive_reason,
                        ..build_value(file, key, value.clone(), Some(node.line))
                    });
                }
            }
        }
    }

    /// Why a value of a file has no effect, if it has none.
    pub(super) fn inactive_reason(&self, file: &SettingsFile, key: &str, value: &Value) -> Option<String> {
        let path: Vec<&str> = key.split('.').collect();
        let project = matches!(file.rules.layer, Layer::Project | Layer::Local);
        let granted = key == "permissions.allow"
            && file.rules.allow.iter().any(|rule| value.as_str() == Some(rule.text.as_str()));
        let untrusted = || Some("this project is not trusted".to_owned());
        match find_merge_rule(&path) {
            Some(MergeRule::NeedsTrust(_)) if !file.trusted && !granted => return untrusted(),
            Some(MergeRule::DenyWins(tight) | MergeRule::Tighten(tight))
                if !file.trusted && !is_switch_value(value, tight) =>
            {
                return untrusted();
            }
            Some(MergeRule::StricterBook) if !file.trusted && value == "allow" => return untrusted(),
            Some(MergeRule::UserOnly(_)) if project => {
                return Some("this key has an effect only in your own settings".to_owned());
            }
            Some(MergeRule::ManagedOnly(_)) if file.rules.layer != Layer::Managed => {
                return Some("this key has an effect only in managed settings".to_owned());
            }
            _ => {}
        }
        let managed = file.rules.layer == Layer::Managed;
        if key == "permissions.allow" && !managed && self.is_managed_rules_only() {
            return Some("allow rules that are not managed are ignored".to_owned());
        }
        None
    }
}

/// A value that has an effect.
fn build_value(file: &SettingsFile, key: &str, value: Value, line: Option<usize>) -> EffectiveValue {
    EffectiveValue {
        key: key.to_owned(),
        value,
        layer: file.rules.layer,
        file: file.rules.file.clone(),
        line,
        inactive_reason: None,
    }
}
