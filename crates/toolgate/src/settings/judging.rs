//! The settings beside the rule lists that change how calls are judged.

use super::SettingsError;
use super::document::{Kind, Node};
use super::read::{CORRECT_IT, Origin};
use serde_json::Value;
use toolgate_policy::{RawBook, RawPolicy};

/// What one file says about judging. A switch that was not set is absent.
#[derive(Debug, Clone, Default)]
pub struct Judging {
    /// The book `policy`.
    pub book: Option<RawBook>,
    /// `permissions.autoAllowReadOnlyCommands`.
    pub auto_allow_read_only_commands: Option<bool>,
    /// `permissions.blockReadsOutsideWorkingDirectories`.
    pub block_reads_outside: Option<bool>,
    /// `permissions.blockWritesOutsideWorkingDirectories`.
    pub block_writes_outside: Option<bool>,
    /// `sandbox.allowUnsandboxedCommands`.
    pub allow_unsandboxed: Option<bool>,
    /// `permissions.disableBypassPermissionsMode`.
    pub disable_bypass: Option<bool>,
    /// `allowManagedPermissionRulesOnly`.
    pub managed_rules_only: Option<bool>,
    /// `disableSkillShellExecution`.
    pub disable_skill_shell: Option<bool>,
    /// `disableRemoteControl`.
    pub disable_remote_control: Option<bool>,
    /// `disableAgentView`.
    pub disable_agent_view: Option<bool>,
    /// `preApproval.allowedDomains`.
    pub allowed_domains: Vec<String>,
    /// `preApproval.blockedDomains`.
    pub blocked_domains: Vec<String>,
    /// `preApproval.allowPrivate`.
    pub allow_private: Vec<String>,
    /// `preApproval.autoApproveHttps`.
    pub auto_approve_https: Option<bool>,
}

impl Judging {
    pub(super) fn read(root: &Node, origin: &Origin<'_>) -> Result<Self, SettingsError> {
        let reader = Reader { origin };
        let permissions = |key: &str| root.get("permissions").and_then(|node| node.get(key));
        let sandbox = |key: &str| root.get("sandbox").and_then(|node| node.get(key));
        // Switches may stand at the top, as other products have them, or together under `managed`.
        let switch = |key: &str| root.get(key).or_else(|| root.get("managed")?.get(key));
        let fetch = |key: &str| root.get("preApproval").and_then(|node| node.get(key));
        let list = |node: Option<&Node>, name: &str| match node {
            Some(node) => reader.texts(node, name),
            None => Ok::<Vec<String>, SettingsError>(Vec::new()),
        };
        let judging = Self {
            book: root.get("policy").map(|node| reader.book(node)),
            auto_allow_read_only_commands: reader.flag(permissions("autoAllowReadOnlyCommands"))?,
            block_reads_outside: reader.flag(permissions("blockReadsOutsideWorkingDirectories"))?,
            block_writes_outside: reader.flag(permissions("blockWritesOutsideWorkingDirectories"))?,
            allow_unsandboxed: reader.flag(sandbox("allowUnsandboxedCommands"))?,
            disable_bypass: reader.flag(
                permissions("disableBypassPermissionsMode")
                    .or_else(|| switch("disableBypassPermissionsMode")),
            )?,
            managed_rules_only: reader.flag(switch("allowManagedPermissionRulesOnly"))?,
            disable_skill_shell: reader.flag(switch("disableSkillShellExecution"))?,
            disable_remote_control: reader.flag(switch("disableRemoteControl"))?,
            disable_agent_view: reader.flag(switch("disableAgentView"))?,
            allowed_domains: list(fetch("allowedDomains"), "`preApproval.allowedDomains`")?,
            blocked_domains: list(fetch("blockedDomains"), "`preApproval.blockedDomains`")?,
            allow_private: list(fetch("allowPrivate"), "`preApproval.allowPrivate`")?,
            auto_approve_https: reader.flag(fetch("autoApproveHttps"))?,
        };
        Ok(if origin.trusted { judging } else { judging.untrusted() })
    }

    /// What counts of it where the file is not trusted: only what tightens.
    fn untrusted(mut self) -> Self {
        self.auto_allow_read_only_commands = self.auto_allow_read_only_commands.filter(|on| !on);
        self.block_reads_outside = self.block_reads_outside.filter(|on| *on);
        self.block_writes_outside = self.block_writes_outside.filter(|on| *on);
        self.allow_unsandboxed = self.allow_unsandboxed.filter(|on| !on);
        self.auto_approve_https = self.auto_approve_https.filter(|on| !on);
        self.allowed_domains.clear();
        self.allow_private.clear();
        self
    }
}

/// Puts what the files say together, strongest first: switches that only tighten count from any file, the others from
/// the strongest file that sets them, and lists add up.
pub(super) fn gather<'a>(files: impl Iterator<Item = &'a Judging> + Clone, policy: &mut RawPolicy) {
    let strongest = |pick: fn(&Judging) -> Option<bool>| files.clone().find_map(pick);
    let any = |pick: fn(&Judging) -> Option<bool>| files.clone().any(|file| pick(file) == Some(true));
    let all = |pick: fn(&Judging) -> &Vec<String>| files.clone().flat_map(pick).cloned().collect();
    policy.books = files.clone().filter_map(|file| file.book.clone()).collect();
    policy.auto_allow_read_only_commands =
        strongest(|file| file.auto_allow_read_only_commands).unwrap_or(true);
    policy.block_reads_outside = any(|file| file.block_reads_outside);
    policy.block_writes_outside = any(|file| file.block_writes_outside);
    policy.allow_unsandboxed = strongest(|file| file.allow_unsandboxed).unwrap_or(true);
    policy.managed.disable_bypass_permissions_mode = any(|file| file.disable_bypass);
    policy.managed.allow_managed_permission_rules_only = any(|file| file.managed_rules_only);
    policy.managed.disable_skill_shell_execution = any(|file| file.disable_skill_shell);
    policy.managed.disable_remote_control = any(|file| file.disable_remote_control);
    policy.managed.disable_agent_view = any(|file| file.disable_agent_view);
    policy.fetch.auto_approve_https = strongest(|file| file.auto_approve_https).unwrap_or(false);
    policy.fetch.allowed_domains = all(|file| &file.allowed_domains);
    policy.fetch.blocked_domains = all(|file| &file.blocked_domains);
    policy.fetch.allow_private = all(|file| &file.allow_private);
}

struct Reader<'a> {
    origin: &'a Origin<'a>,
}

impl Reader<'_> {
    fn texts(&self, node: &Node, what: &str) -> Result<Vec<String>, SettingsError> {
        let Kind::List(items) = &node.kind else {
            return Err(self.wrong(node, what, "a list of strings"));
        };
        items
            .iter()
            .map(|item| match &item.kind {
                Kind::Scalar(Value::String(text)) => Ok(text.clone()),
                Kind::Scalar(_) | Kind::List(_) | Kind::Object(_) => {
                    Err(self.wrong(item, &format!("an entry of {what}"), "a string"))
                }
            })
            .collect()
    }

    fn wrong(&self, node: &Node, what: &str, wanted: &str) -> SettingsError {
        SettingsError {
            file: self.origin.name.to_owned(),
            line: node.line,
            message: format!("{what} is {}, but must be {wanted}", node.describe()),
            fix: CORRECT_IT.to_owned(),
        }
    }

    /// A switch. `"disable"` counts as true, since some of these are written so.
    fn flag(&self, node: Option<&Node>) -> Result<Option<bool>, SettingsError> {
        match node.map(|node| (&node.kind, node)) {
            None => Ok(None),
            Some((Kind::Scalar(Value::Bool(flag)), _)) => Ok(Some(*flag)),
            Some((Kind::Scalar(Value::String(word)), _)) if word == "disable" => Ok(Some(true)),
            Some((Kind::Scalar(_) | Kind::List(_) | Kind::Object(_), node)) => {
                Err(self.wrong(node, "a switch", "true or false"))
            }
        }
    }

    fn book(&self, node: &Node) -> RawBook {
        let mut book = RawBook::new(self.origin.layer, node.value());
        book.file = Some(self.origin.name.to_owned());
        book.line = Some(node.line);
        if let Some(Node { kind: Kind::List(rules), .. }) = node.get("rules") {
            book.rule_lines = rules.iter().map(|rule| rule.line).collect();
        }
        book
    }
}
