//! Which settings a model may see and change with the tool `Config`.
//!
//! The table names every key of a settings file, and a test compares it with the schema: a new key has no access until
//! its author decides. What a model may change is a matter of comfort only. Nothing in the table lets it change what is
//! permitted, who is asked, what is trusted, what the sandbox holds back, where requests go, or which programs run.

use ModelAccess::{Change, Read, Withheld};

/// What a model may do with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelAccess {
    /// See and change it, if policy lets the settings file be written.
    Change,
    /// See it.
    Read,
    /// Neither: its value can contain credentials.
    Withheld,
}

/// Every key with its access.
const MODEL_ACCESS: &[(&str, ModelAccess)] = &[
    ("$schema", Read),
    // What is permitted, and who is asked.
    ("permissions.allow", Read),
    ("permissions.ask", Read),
    ("permissions.deny", Read),
    ("permissions.defaultMode", Read),
    ("permissions.additionalDirectories", Read),
    ("permissions.disableBypassPermissionsMode", Read),
    ("permissions.disableAutoMode", Read),
    ("permissions.blockReadsOutsideWorkingDirectories", Read),
    ("permissions.blockWritesOutsideWorkingDirectories", Read),
    ("permissions.denyInsteadOfPrompting", Read),
    ("permissions.autoAllowReadOnlyCommands", Read),
    ("permissions.riskProfile", Read),
    ("permissions.unmatchableRules", Read),
    ("policy", Read),
    ("disabledTools", Read),
    ("allowManagedPermissionRulesOnly", Read),
    ("preApproval.allowedDomains", Read),
    ("preApproval.blockedDomains", Read),
    ("preApproval.allowPrivate", Read),
    ("preApproval.autoApproveHttps", Read),
    ("preApproval.profile", Read),
    ("managed.disabledTools", Read),
    ("managed.disableBypassPermissionsMode", Read),
    ("managed.allowManagedPermissionRulesOnly", Read),
    ("managed.disableSkillShellExecution", Read),
    ("managed.disableRemoteControl", Read),
    ("managed.disableAgentView", Read),
    ("disableRemoteControl", Read),
    ("disableAgentView", Read),
    // A question that ends by itself, or a prompt that expires sooner, takes an answer away from the user.
    ("askUserQuestionTimeout", Read),
    ("dialogExpiry", Read),
    // What runs: hooks, servers, plugins, skills, variables that programs obey. Their values can hold credentials.
    ("hooks", Withheld),
    ("disableAllHooks", Read),
    ("allowManagedHooksOnly", Read),
    ("allowedHttpHookUrls", Read),
    ("httpHookAllowedEnvVars", Read),
    ("env", Withheld),
    ("mcpServers", Withheld),
    ("managedMcpServers", Withheld),
    ("enableAllProjectMcpServers", Read),
    ("enabledMcpjsonServers", Read),
    ("disabledMcpjsonServers", Read),
    ("allowedMcpServers", Read),
    ("deniedMcpServers", Read),
    ("allowManagedMcpServersOnly", Read),
    ("lspServers", Withheld),
    ("enabledPlugins", Read),
    ("strictKnownMarketplaces", Read),
    ("strictPluginOnlyCustomization", Read),
    ("disableSideloadFlags", Read),
    ("skillOverrides", Read),
    ("disableSkillShellExecution", Read),
    ("shell.gitHelpers", Read),
    ("apiKeyHelper", Withheld),
    ("statusLine", Withheld),
    // A style replaces instructions of the agent.
    ("outputStyle", Read),
    // What the sandbox holds back, and what can be undone.
    ("sandbox.enabled", Read),
    ("sandbox.failIfUnavailable", Read),
    ("sandbox.autoAllowBashIfSandboxed", Read),
    ("sandbox.allowUnsandboxedCommands", Read),
    ("sandbox.excludedCommands", Read),
    ("sandbox.required", Read),
    ("sandbox.backend", Read),
    ("sandbox.credentials", Withheld),
    ("sandbox.ignoreViolations", Read),
    ("sandbox.network.allowedDomains", Read),
    ("sandbox.network.deniedDomains", Read),
    ("sandbox.network.allowLocalBinding", Read),
    ("sandbox.network.allowUnixSockets", Read),
    ("sandbox.network.allowAllUnixSockets", Read),
    ("sandbox.filesystem.allowWrite", Read),
    ("sandbox.filesystem.denyWrite", Read),
    ("sandbox.filesystem.denyRead", Read),
    ("sandbox.environment.pass", Read),
    ("sandbox.limits.memoryBytes", Read),
    ("sandbox.limits.processes", Read),
    ("sandbox.limits.fileSizeBytes", Read),
    ("sandbox.limits.cpuSeconds", Read),
    ("fileCheckpointingEnabled", Read),
    ("shell.snapshots", Read),
    ("ledger.required", Read),
    ("ledger.anchor", Read),
    // Where requests go, and how many.
    ("web.obeyRobots", Read),
    ("web.onlyNamedUrls", Read),
    ("web.requestsPerMinute", Read),
    ("web.search.provider", Read),
    ("web.search.baseUrl", Read),
    ("web.search.keyVariable", Read),
    ("web.search.keyCommand", Withheld),
    ("web.browser", Read),
    ("web.browserTools", Read),
    ("web.pageModel.api", Read),
    ("web.pageModel.baseUrl", Read),
    ("web.pageModel.model", Read),
    ("web.pageModel.keyVariable", Read),
    // Comfort: how much output is shown, how long to wait, which model.
    ("model", Change),
    ("bashOutputMaxChars", Change),
    ("lspDiagnosticsTimeout", Change),
    ("shell.maxOutputBytes", Change),
    ("shell.maxBackgroundTasks", Change),
    ("shell.onTimeout", Change),
];

/// What a model may do with a setting; `None` for a key that settings do not have.
///
/// ```
/// use toolgate::settings::{ModelAccess, model_access};
///
/// assert_eq!(model_access("shell.onTimeout"), Some(ModelAccess::Change));
/// assert_eq!(model_access("permissions.allow"), Some(ModelAccess::Read));
/// assert_eq!(model_access("env"), Some(ModelAccess::Withheld));
/// ```
pub fn model_access(key: &str) -> Option<ModelAccess> {
    MODEL_ACCESS.iter().find(|(name, _)| *name == key).map(|(_, access)| *access)
}

/// The keys that a model may change.
pub(super) fn changeable_keys() -> impl Iterator<Item = &'static str> {
    MODEL_ACCESS.iter().filter(|(_, access)| *access == Change).map(|(name, _)| *name)
}

/// Every key of the table.
pub(super) fn known_keys() -> impl Iterator<Item = &'static str> {
    MODEL_ACCESS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::merge::key_rules;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_of_the_schema_has_an_access() {
        let declared: BTreeSet<String> = known_keys().map(str::to_owned).collect();
        let keys: BTreeSet<String> = key_rules().iter().map(|key| key.name()).collect();
        assert_eq!(declared, keys);
        assert_eq!(declared.len(), MODEL_ACCESS.len(), "each key stands once");
    }

    #[test]
    fn what_decides_or_runs_cannot_be_changed() {
        let forbidden = [
            "permissions",
            "policy",
            "managed",
            "preApproval",
            "sandbox",
            "hooks",
            "env",
            "mcpServers",
            "lspServers",
            "web",
            "skillOverrides",
            "enabledPlugins",
        ];
        for key in changeable_keys() {
            let section = key.split('.').next().unwrap_or_default();
            assert!(!forbidden.contains(&section), "{key}");
            assert!(!key.to_lowercase().contains("hook") && !key.to_lowercase().contains("mcp"), "{key}");
        }
    }
}
