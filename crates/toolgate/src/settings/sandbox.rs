//! The key `sandbox`, and `env`: what commands run in.
//!
//! What loosens counts only from where loosening is trusted; what tightens counts from everywhere.

use super::document::{Kind, Node};
use super::read::Reader;
use super::{Settings, SettingsError, SettingsNote};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_proto::AbsPath;
use toolgate_tools::Surroundings;

/// What one file says about the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxPart {
    /// `sandbox.enabled`.
    pub enabled: Option<bool>,
    /// `sandbox.failIfUnavailable`, or `sandbox.required`.
    pub required: Option<bool>,
    /// `sandbox.allowUnsandboxedCommands`.
    pub allow_unsandboxed: Option<bool>,
    /// `sandbox.filesystem.allowWrite`.
    pub allow_write: Vec<AbsPath>,
    /// `sandbox.filesystem.denyWrite`.
    pub deny_write: Vec<AbsPath>,
    /// `sandbox.filesystem.denyRead`.
    pub deny_read: Vec<AbsPath>,
    /// `sandbox.network.allowedDomains`.
    pub allowed_domains: Vec<String>,
    /// `sandbox.network.deniedDomains`.
    pub denied_domains: Vec<String>,
    /// `sandbox.network.allowLocalBinding`.
    pub local_binding: Option<bool>,
    /// `sandbox.environment.pass`.
    pub pass: Vec<String>,
    /// `sandbox.limits`: memory, processes, file size, processor time.
    pub limits: [Option<u64>; 4],
    /// `env`.
    pub env: BTreeMap<String, String>,
}

const LIMITS: [&str; 4] = ["memoryBytes", "processes", "fileSizeBytes", "cpuSeconds"];

impl Reader<'_> {
    pub(super) fn sandbox(
        &self,
        file: &Node,
        notes: &mut Vec<SettingsNote>,
    ) -> Result<SandboxPart, SettingsError> {
        let mut part = SandboxPart::default();
        if let Some(env) = file.get("env")
            && self.loosens(true, env, "`env`", notes)
        {
            for (name, value) in self.fields(env, "`env`")? {
                part.env.insert(name.clone(), self.text(value, &format!("`env.{name}`"))?);
            }
        }
        let Some(sandbox) = file.get("sandbox") else { return Ok(part) };
        for (key, value) in self.fields(sandbox, "`sandbox`")? {
            let what = format!("`sandbox.{key}`");
            match key.as_str() {
                "enabled" => {
                    let on = self.switch(value, &what)?;
                    if on || self.loosens(true, value, &what, notes) {
                        part.enabled = Some(on);
                    }
                }
                "failIfUnavailable" | "required" => {
                    let on = self.switch(value, &what)?;
                    if on || self.loosens(true, value, &what, notes) {
                        part.required = Some(on);
                    }
                }
                "allowUnsandboxedCommands" => {
                    let on = self.switch(value, &what)?;
                    if !on || self.loosens(true, value, &what, notes) {
                        part.allow_unsandboxed = Some(on);
                    }
                }
                "filesystem" => self.filesystem(value, &mut part, notes)?,
                "network" => self.network(value, &mut part, notes)?,
                "environment" => {
                    for (key, value) in self.fields(value, &what)? {
                        let what = format!("`sandbox.environment.{key}`");
                        match key.as_str() {
                            "pass" if self.loosens(true, value, &what, notes) => {
                                part.pass = self.names(value, &what)?;
                            }
                            "pass" => {}
                            _ => notes.push(self.note(value, format!("{what} is not known to toolgate"))),
                        }
                    }
                }
                "limits" => {
                    for (key, value) in self.fields(value, &what)? {
                        let what = format!("`sandbox.limits.{key}`");
                        match LIMITS.iter().zip(&mut part.limits).find(|(name, _)| **name == key) {
                            Some((_, slot)) => *slot = Some(self.count(value, &what)?),
                            None => notes.push(self.note(value, format!("{what} is not known to toolgate"))),
                        }
                    }
                }
                _ => {
                    notes.push(self.note(value, format!("{what} is not known to toolgate and has no effect")))
                }
            }
        }
        Ok(part)
    }

    fn filesystem(
        &self,
        node: &Node,
        part: &mut SandboxPart,
        notes: &mut Vec<SettingsNote>,
    ) -> Result<(), SettingsError> {
        for (key, value) in self.fields(node, "`sandbox.filesystem`")? {
            let what = format!("`sandbox.filesystem.{key}`");
            match key.as_str() {
                "allowWrite" if self.loosens(true, value, &what, notes) => {
                    part.allow_write = self.paths(value, &what)?;
                }
                "allowWrite" => {}
                "denyWrite" => part.deny_write = self.paths(value, &what)?,
                "denyRead" => part.deny_read = self.paths(value, &what)?,
                _ => {
                    notes.push(self.note(value, format!("{what} is not known to toolgate and has no effect")))
                }
            }
        }
        Ok(())
    }

    fn network(
        &self,
        node: &Node,
        part: &mut SandboxPart,
        notes: &mut Vec<SettingsNote>,
    ) -> Result<(), SettingsError> {
        for (key, value) in self.fields(node, "`sandbox.network`")? {
            let what = format!("`sandbox.network.{key}`");
            match key.as_str() {
                "allowedDomains" if self.loosens(true, value, &what, notes) => {
                    part.allowed_domains = self.names(value, &what)?;
                }
                "allowedDomains" => {}
                "deniedDomains" => part.denied_domains = self.names(value, &what)?,
                "allowLocalBinding" => {
                    let on = self.switch(value, &what)?;
                    if !on || self.loosens(true, value, &what, notes) {
                        part.local_binding = Some(on);
                    }
                }
                _ => {
                    notes.push(self.note(value, format!("{what} is not known to toolgate and has no effect")))
                }
            }
        }
        Ok(())
    }

    fn fields<'n>(&self, node: &'n Node, what: &str) -> Result<&'n [(String, Node)], SettingsError> {
        match &node.kind {
            Kind::Object(fields) => Ok(fields),
            Kind::Scalar(_) | Kind::List(_) => Err(self.wrong(node, what, "an object")),
        }
    }

    fn switch(&self, node: &Node, what: &str) -> Result<bool, SettingsError> {
        match &node.kind {
            Kind::Scalar(Value::Bool(flag)) => Ok(*flag),
            Kind::Scalar(_) | Kind::List(_) | Kind::Object(_) => Err(self.wrong(node, what, "true or false")),
        }
    }

    fn text(&self, node: &Node, what: &str) -> Result<String, SettingsError> {
        match &node.kind {
            Kind::Scalar(Value::String(text)) => Ok(text.clone()),
            Kind::Scalar(_) | Kind::List(_) | Kind::Object(_) => Err(self.wrong(node, what, "a string")),
        }
    }

    fn count(&self, node: &Node, what: &str) -> Result<u64, SettingsError> {
        match &node.kind {
            Kind::Scalar(Value::Number(number)) if number.as_u64().is_some() => {
                Ok(number.as_u64().unwrap_or_default())
            }
            Kind::Scalar(_) | Kind::List(_) | Kind::Object(_) => {
                Err(self.wrong(node, what, "a whole number"))
            }
        }
    }

    fn names(&self, node: &Node, what: &str) -> Result<Vec<String>, SettingsError> {
        Ok(self.texts(node, what)?.into_iter().map(|rule| rule.text).collect())
    }

    /// Paths: absolute, from home with `~/`, or from where the file is anchored.
    fn paths(&self, node: &Node, what: &str) -> Result<Vec<AbsPath>, SettingsError> {
        let texts = self.names(node, what)?;
        Ok(texts
            .iter()
            .map(|text| match (text.strip_prefix("~/"), self.home()) {
                (Some(rest), Some(home)) => home.join(rest),
                // `//` at the start means the root, as in rules.
                _ => self
                    .anchor()
                    .join(text.strip_prefix("//").map_or(text.clone(), |rest| format!("/{rest}"))),
            })
            .collect())
    }
}

impl Settings {
    /// Puts what the settings say into the surroundings of commands.
    pub fn surround(&self, surroundings: &mut Surroundings) {
        let parts = || self.files.iter().map(|file| &file.sandbox);
        let says =
            |get: fn(&SandboxPart) -> Option<bool>, what: bool| parts().any(|part| get(part) == Some(what));
        let sandbox = &mut surroundings.sandbox;
        // Where files disagree, the tighter word stands.
        sandbox.enabled =
            says(|part| part.enabled, true) || sandbox.enabled && !says(|part| part.enabled, false);
        sandbox.required |= says(|part| part.required, true);
        sandbox.allow_unsandboxed &= !says(|part| part.allow_unsandboxed, false);
        sandbox.local_binding = !says(|part| part.local_binding, false)
            && (sandbox.local_binding || says(|part| part.local_binding, true));
        for part in parts() {
            sandbox.writable.extend(part.allow_write.iter().cloned());
            sandbox.protected.extend(part.deny_write.iter().cloned());
            sandbox.unreadable.extend(part.deny_read.iter().cloned());
            sandbox.hosts.extend(part.allowed_domains.iter().cloned());
            sandbox.denied_hosts.extend(part.denied_domains.iter().cloned());
            surroundings.pass.extend(part.pass.iter().cloned());
        }
        // Weakest first, so that a stronger file's value stands.
        for part in self.files.iter().rev().map(|file| &file.sandbox) {
            surroundings.set.extend(part.env.clone());
        }
        // Of limits the smallest counts, whoever set it.
        let limits = &mut sandbox.limits;
        let slots =
            [&mut limits.memory, &mut limits.processes, &mut limits.file_size, &mut limits.cpu_seconds];
        for (index, slot) in slots.into_iter().enumerate() {
            *slot = parts().filter_map(|part| part.limits.get(index).copied().flatten()).min();
        }
    }
}
