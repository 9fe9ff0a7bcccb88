//! What stands in one settings file.

use super::document::{Kind, Node};
use super::judging::Judging;
use super::sandbox::SandboxPart;
use super::{SettingsError, SettingsNote};
use serde_json::Value;
use toolgate_policy::{Layer, LayerRules, RawRule};
use toolgate_proto::{AbsPath, Mode};

/// One settings file, or another origin of settings, taken apart.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Its rules.
    pub rules: LayerRules,
    /// `permissions.defaultMode`.
    pub mode: Option<Mode>,
    /// `permissions.additionalDirectories`.
    pub additional_directories: Vec<AbsPath>,
    /// `disabledTools`.
    pub disabled_tools: Vec<String>,
    /// What else it says about judging.
    pub judging: Judging,
    /// `sandbox` and `env`.
    pub sandbox: SandboxPart,
    /// All of it, unknown keys included.
    pub whole: Value,
}

/// Where a text of settings came from.
pub(super) struct Origin<'a> {
    pub(super) layer: Layer,
    /// The name for messages.
    pub(super) name: &'a str,
    /// What `/path` patterns are anchored at, and relative directories seen from.
    pub(super) anchor: &'a AbsPath,
    /// What `~/` means.
    pub(super) home: Option<&'a AbsPath>,
    /// Whether allow rules and other loosening settings count.
    pub(super) trusted: bool,
}

const KNOWN: [&str; 19] = [
    "$schema",
    "permissions",
    "policy",
    "disabledTools",
    "hooks",
    "env",
    "sandbox",
    "mcpServers",
    "model",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "disableAllHooks",
    "allowManagedPermissionRulesOnly",
    "disableSkillShellExecution",
    "disableRemoteControl",
    "disableAgentView",
    "preApproval",
    "managed",
];

pub(super) fn read_settings(
    text: &str,
    origin: &Origin<'_>,
    notes: &mut Vec<SettingsNote>,
) -> Result<SettingsFile, SettingsError> {
    let node = Node::parse(text).map_err(|unreadable| SettingsError {
        file: origin.name.to_owned(),
        line: unreadable.line,
        message: unreadable.message,
        fix: "correct the file; nothing runs until then, because it may hold a deny rule".to_owned(),
    })?;
    let reader = Reader { origin };
    let Kind::Object(fields) = &node.kind else {
        return Err(reader.wrong(&node, "the settings", "an object"));
    };
    for (key, value) in fields {
        if !KNOWN.contains(&key.as_str()) {
            notes.push(reader.note(value, format!("`{key}` is not known to toolgate and has no effect")));
        }
    }
    let mut rules = LayerRules::new(origin.layer, origin.anchor.clone());
    rules.file = Some(origin.name.to_owned());
    let mut file = SettingsFile {
        rules,
        mode: None,
        additional_directories: Vec::new(),
        disabled_tools: Vec::new(),
        judging: Judging::read(&node, &reader)?,
        sandbox: reader.sandbox(&node, notes)?,
        whole: node.value(),
    };
    if !origin.trusted {
        file.judging = file.judging.untrusted();
    }
    let managed = |key: &str| node.get("managed").and_then(|managed| managed.get(key));
    if let Some(list) = node.get("disabledTools").or_else(|| managed("disabledTools")) {
        let tools = reader.texts(list, "`disabledTools`")?;
        file.disabled_tools = tools.into_iter().map(|rule| rule.text).collect();
    }
    if let Some(permissions) = node.get("permissions") {
        reader.permissions(permissions, &mut file, notes)?;
    }
    Ok(file)
}

pub(super) struct Reader<'a> {
    pub(super) origin: &'a Origin<'a>,
}

impl Reader<'_> {
    pub(super) fn anchor(&self) -> &AbsPath {
        self.origin.anchor
    }

    pub(super) fn home(&self) -> Option<&AbsPath> {
        self.origin.home
    }

    fn permissions(
        &self,
        node: &Node,
        file: &mut SettingsFile,
        notes: &mut Vec<SettingsNote>,
    ) -> Result<(), SettingsError> {
        let Kind::Object(fields) = &node.kind else {
            return Err(self.wrong(node, "`permissions`", "an object"));
        };
        for (key, value) in fields {
            match key.as_str() {
                "deny" => file.rules.deny = self.texts(value, "`permissions.deny`")?,
                "ask" => file.rules.ask = self.texts(value, "`permissions.ask`")?,
                "allow" => {
                    let rules = self.texts(value, "`permissions.allow`")?;
                    if self.loosens(!rules.is_empty(), value, "`permissions.allow`", notes) {
                        file.rules.allow = rules;
                    }
                }
                "defaultMode" => {
                    let mode = self.mode(value)?;
                    let looser = matches!(mode, Mode::AcceptEdits | Mode::Bypass);
                    if !looser || self.loosens(true, value, "`permissions.defaultMode`", notes) {
                        file.mode = Some(mode);
                    }
                }
                "additionalDirectories" => {
                    let directories = self.texts(value, "`permissions.additionalDirectories`")?;
                    let any = !directories.is_empty();
                    if self.loosens(any, value, "`permissions.additionalDirectories`", notes) {
                        file.additional_directories =
                            directories.iter().map(|rule| self.origin.anchor.join(&rule.text)).collect();
                    }
                }
                "autoAllowReadOnlyCommands"
                | "blockReadsOutsideWorkingDirectories"
                | "blockWritesOutsideWorkingDirectories"
                | "disableBypassPermissionsMode" => {}
                _ => notes.push(self.note(value, format!("`permissions.{key}` is not known to toolgate"))),
            }
        }
        Ok(())
    }

    /// Whether a setting that loosens counts. A project that is not trusted may only tighten.
    pub(super) fn loosens(
        &self,
        says_anything: bool,
        node: &Node,
        what: &str,
        notes: &mut Vec<SettingsNote>,
    ) -> bool {
        if !self.origin.trusted && says_anything {
            notes.push(self.note(
                node,
                format!("{what} has no effect until the workspace is trusted (--trust-workspace)"),
            ));
        }
        self.origin.trusted
    }

    fn mode(&self, node: &Node) -> Result<Mode, SettingsError> {
        match &node.kind {
            Kind::Scalar(Value::String(text)) => text.parse().map_err(|problem| SettingsError {
                file: self.origin.name.to_owned(),
                line: node.line,
                message: format!("`permissions.defaultMode`: {problem}"),
                fix: "use one of the modes named".to_owned(),
            }),
            Kind::Scalar(_) | Kind::List(_) | Kind::Object(_) => {
                Err(self.wrong(node, "`permissions.defaultMode`", "a string"))
            }
        }
    }

    pub(super) fn texts(&self, node: &Node, what: &str) -> Result<Vec<RawRule>, SettingsError> {
        let Kind::List(items) = &node.kind else {
            return Err(self.wrong(node, what, "a list of strings"));
        };
        items
            .iter()
            .map(|item| match &item.kind {
                Kind::Scalar(Value::String(text)) => {
                    Ok(RawRule { text: text.clone(), line: Some(item.line) })
                }
                Kind::Scalar(_) | Kind::List(_) | Kind::Object(_) => {
                    Err(self.wrong(item, &format!("an entry of {what}"), "a string"))
                }
            })
            .collect()
    }

    pub(super) fn wrong(&self, node: &Node, what: &str, wanted: &str) -> SettingsError {
        SettingsError {
            file: self.origin.name.to_owned(),
            line: node.line,
            message: format!("{what} is {}, but must be {wanted}", node.describe()),
            fix: "correct the file; nothing runs until then, because it may hold a deny rule".to_owned(),
        }
    }

    pub(super) fn note(&self, node: &Node, message: String) -> SettingsNote {
        SettingsNote { file: self.origin.name.to_owned(), line: node.line, message }
    }
}
