//! What stands in one settings file.

use super::document::{Kind, Node};
use super::judging::Judging;
use super::sandbox::SandboxPart;
use super::schema::{check, settings_check};
use super::shape::Shape;
use super::{SettingsError, SettingsNote};
use serde_json::Value;
use toolgate_policy::{Layer, LayerRules, RawRule};
use toolgate_proto::{AbsPath, Mode};

/// What to do about a file that cannot be used.
pub(super) const CORRECT_IT: &str =
    "correct the file; nothing runs until then, because it may hold a deny rule";

/// One settings file, or another origin of settings, taken apart.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Its rules. Allow rules of a file that is not trusted are left out.
    pub rules: LayerRules,
    /// `permissions.defaultMode`, where it counts.
    pub mode: Option<Mode>,
    /// `permissions.additionalDirectories`, where they count.
    pub additional_directories: Vec<AbsPath>,
    /// What it says about judging beside its rules, where it counts.
    pub judging: Judging,
    /// Every key that toolgate knows, as written.
    pub shape: Shape,
    /// `sandbox` and `env`.
    pub sandbox: SandboxPart,
    /// All of it, unknown keys included.
    pub whole: Value,
    /// Whether what loosens in it counts.
    pub trusted: bool,
    /// Where each line is.
    pub(crate) node: Node,
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
    /// Allow rules that the person granted here before, which count in any case.
    pub(super) granted: &'a [String],
}

pub(super) fn read_settings(
    text: &str,
    origin: &Origin<'_>,
    notes: &mut Vec<SettingsNote>,
) -> Result<SettingsFile, SettingsError> {
    let wrong = |line: usize, message: String| SettingsError {
        file: origin.name.to_owned(),
        line,
        message,
        fix: CORRECT_IT.to_owned(),
    };
    let node = Node::parse(text).map_err(|unreadable| wrong(unreadable.line, unreadable.message))?;
    let findings = check(&node, settings_check());
    if let Some((line, message)) = findings.wrong.into_iter().next() {
        return Err(wrong(line, message));
    }
    for (line, key) in findings.unknown {
        let message = format!("`{key}` is not known to toolgate and has no effect");
        notes.push(SettingsNote { file: origin.name.to_owned(), line, message });
    }
    let whole = node.value();
    let shape: Shape =
        serde_json::from_value(whole.clone()).map_err(|error| wrong(node.line, error.to_string()))?;
    let mut rules = LayerRules::new(origin.layer, origin.anchor.clone());
    rules.file = Some(origin.name.to_owned());
    let mut file = SettingsFile {
        rules,
        mode: None,
        additional_directories: Vec::new(),
        judging: Judging::read(&node, origin)?,
        sandbox: SandboxPart::of(&shape, origin),
        shape,
        whole,
        trusted: origin.trusted,
        node,
    };
    Reader { origin, notes }.take(&mut file)?;
    Ok(file)
}

struct Reader<'a> {
    origin: &'a Origin<'a>,
    notes: &'a mut Vec<SettingsNote>,
}

impl Reader<'_> {
    fn take(&mut self, file: &mut SettingsFile) -> Result<(), SettingsError> {
        let permissions = &file.shape.permissions;
        file.rules.deny = rules_at(&file.node, "deny");
        file.rules.ask = rules_at(&file.node, "ask");
        let mut allow = rules_at(&file.node, "allow");
        if !self.origin.trusted {
            let before = allow.len();
            allow.retain(|rule| self.origin.granted.contains(&rule.text));
            if allow.len() < before {
                self.waits(&file.node, &["permissions", "allow"]);
            }
        }
        file.rules.allow = allow;
        if let Some(text) = &permissions.default_mode {
            let place = ["permissions", "defaultMode"];
            let mode: Mode = text.parse().map_err(|problem| SettingsError {
                file: self.origin.name.to_owned(),
                line: file.node.nearest(&place).line,
                message: format!("`permissions.defaultMode`: {problem}"),
                fix: "use one of the modes named".to_owned(),
            })?;
            let looser = matches!(mode, Mode::AcceptEdits | Mode::Bypass);
            if !looser || self.origin.trusted {
                file.mode = Some(mode);
            } else {
                self.waits(&file.node, &place);
            }
        }
        if !permissions.additional_directories.is_empty() {
            if self.origin.trusted {
                let join = |dir: &String| self.origin.anchor.join(dir);
                file.additional_directories = permissions.additional_directories.iter().map(join).collect();
            } else {
                self.waits(&file.node, &["permissions", "additionalDirectories"]);
            }
        }
        if !self.origin.trusted {
            let shape = &file.shape;
            for (key, says_anything) in [
                ("hooks", !shape.hooks.is_empty()),
                ("env", !shape.env.is_empty()),
                ("mcpServers", !shape.mcp_servers.is_empty()),
                ("disableAllHooks", shape.disable_all_hooks == Some(true)),
                ("enableAllProjectMcpServers", shape.enable_all_project_mcp_servers == Some(true)),
                ("enabledMcpjsonServers", shape.enabled_mcpjson_servers.is_some()),
                ("preApproval", shape.pre_approval.loosens()),
                ("sandbox", shape.sandbox.loosens()),
            ] {
                if says_anything {
                    self.waits(&file.node, &[key]);
                }
            }
        }
        if self.origin.layer != Layer::Managed {
            self.managed_only(file);
        }
        Ok(())
    }

    /// Says that something waits for trust.
    fn waits(&mut self, node: &Node, place: &[&str]) {
        self.note(
            node.nearest(place).line,
            format!(
                "`{}` has no effect until the workspace is trusted (`toolgate trust`, or --trust-workspace)",
                place.join(".")
            ),
        );
    }

    /// Says which switches count in managed settings only.
    fn managed_only(&mut self, file: &SettingsFile) {
        let shape = &file.shape;
        for (key, said) in [
            ("allowManagedHooksOnly", shape.allow_managed_hooks_only.is_some()),
            ("allowManagedMcpServersOnly", shape.allow_managed_mcp_servers_only.is_some()),
        ] {
            if said {
                let line = file.node.nearest(&[key]).line;
                self.note(line, format!("`{key}` counts in managed settings only"));
            }
        }
    }

    fn note(&mut self, line: usize, message: String) {
        self.notes.push(SettingsNote { file: self.origin.name.to_owned(), line, message });
    }
}

/// The rules of one list, with their lines. The file has passed its schema, so whatever is no text is not there.
fn rules_at(node: &Node, list: &str) -> Vec<RawRule> {
    let Some(Kind::List(items)) =
        node.get("permissions").and_then(|node| node.get(list)).map(|node| &node.kind)
    else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| match &item.kind {
            Kind::Scalar(Value::String(text)) => Some(RawRule { text: text.clone(), line: Some(item.line) }),
            Kind::Scalar(_) | Kind::List(_) | Kind::Object(_) => None,
        })
        .collect()
}
