//! The hooks of a project as they were when it was trusted.
//!
//! Trust lapses when a file of the project changes. The calls that its hooks screened are refused from then on, also if the
//! change removed the hooks: who can write the file could otherwise switch them off.

use super::values::HookGroup;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_policy::Layer;

/// The hooks of the settings files of a project, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TrustedHooks {
    /// Those of `settings.json`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    project: Vec<Value>,
    /// Those of `settings.local.json`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    local: Vec<Value>,
}

impl TrustedHooks {
    /// Adds those of a settings file with this name.
    pub(super) fn add_file(&mut self, name: &str, settings: &Value) {
        let Some(hooks) = settings.get("hooks").filter(|hooks| hooks.is_object()) else { return };
        let list = if name.ends_with("settings.local.json") { &mut self.local } else { &mut self.project };
        list.push(hooks.clone());
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.project.is_empty() && self.local.is_empty()
    }

    /// Those of the selected sources.
    pub(super) fn of_sources(mut self, has_project: bool, has_local: bool) -> Self {
        if !has_project {
            self.project.clear();
        }
        if !has_local {
            self.local.clear();
        }
        self
    }

    /// The groups with their layers and events, the strongest layer first. What is no group is left out: it never ran.
    pub(crate) fn groups(&self) -> Vec<(Layer, String, HookGroup)> {
        let mut groups = Vec::new();
        for (layer, list) in [(Layer::Local, &self.local), (Layer::Project, &self.project)] {
            for hooks in list {
                let events: BTreeMap<String, Vec<Value>> =
                    serde_json::from_value(hooks.clone()).unwrap_or_default();
                for (event, values) in events {
                    let read = values.into_iter().filter_map(|value| serde_json::from_value(value).ok());
                    groups.extend(read.map(|group| (layer, event.clone(), group)));
                }
            }
        }
        groups
    }
}
