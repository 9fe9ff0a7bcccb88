//! The merge rule of each key of a settings file.

use super::super::values::{
    LedgerSection, ManagedSection, PageModelSection, PermissionsSection, PreApprovalSection,
    SandboxEnvironmentSection, SandboxFilesystemSection, SandboxLimitsSection, SandboxNetworkSection,
    SandboxSection, SettingsValues, ShellSection, WebSearchSection, WebSection,
};
use serde_json::Value;
use std::sync::OnceLock;

/// From which files a key is active, and how the values of several files are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeRule {
    /// An object whose keys have rules of their own.
    Group,
    /// A key that grants and forbids nothing.
    Inert,
    /// A list that only forbids: the entries of all files are active.
    AddDeny,
    /// A switch: this value is active in every file and overrides the other one, which needs trust.
    DenyWins(bool),
    /// A switch: the value of the strongest file applies; in an untrusted project only this value is active.
    Tighten(bool),
    /// A number: the smallest of all files applies.
    Smallest,
    /// A permission mode: that of the strongest file; that of an untrusted project only if it is stricter than the mode
    /// without it.
    StricterMode,
    /// The key `policy`: the rules of each file are judged separately; in an untrusted project only deny and ask rules
    /// are active.
    StricterBook,
    /// Inactive in an untrusted project.
    NeedsTrust(CombineStrategy),
    /// Inactive in every project, trusted or not.
    UserOnly(CombineStrategy),
    /// Active only in managed settings.
    ManagedOnly(CombineStrategy),
}

/// How the active values of several files are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CombineStrategy {
    /// The value of the strongest file.
    Strongest,
    /// The entries of all files.
    Pool,
    /// For each name in an object, the value of the strongest file.
    ByName,
    /// Not combined: each entry is used with its file.
    ByFile,
    /// Not combined: a value must match the list of every file.
    Narrow,
    /// True if any file sets it.
    AnyTrue,
}

impl MergeRule {
    /// The files in which the key is active, for the documents.
    pub fn describe_sources(self) -> &'static str {
        match self {
            Self::Group | Self::Inert => "has no effect on what is permitted",
            Self::AddDeny | Self::Smallest => "every file",
            Self::DenyWins(true) | Self::Tighten(true) => "`true` from every file, `false` needs trust",
            Self::DenyWins(false) | Self::Tighten(false) => "`false` from every file, `true` needs trust",
            Self::StricterMode => "every file where stricter, else needs trust",
            Self::StricterBook => "deny and ask from every file, allow needs trust",
            Self::NeedsTrust(_) => "needs trust",
            Self::UserOnly(_) => "user only: never from a project",
            Self::ManagedOnly(_) => "managed only",
        }
    }

    /// How values of several files are combined, for the documents.
    pub fn describe_merge(self) -> &'static str {
        match self {
            Self::Group | Self::Inert => "not merged",
            Self::AddDeny => "all entries",
            Self::DenyWins(true) => "`true` wins",
            Self::DenyWins(false) => "`false` wins",
            Self::Tighten(_) | Self::StricterMode => "strongest file",
            Self::Smallest => "smallest",
            Self::StricterBook => "each file's book; the strictest answer",
            Self::NeedsTrust(how) | Self::UserOnly(how) | Self::ManagedOnly(how) => match how {
                CombineStrategy::Strongest => "strongest file",
                CombineStrategy::Pool => "all entries",
                CombineStrategy::ByName => "by name, strongest file",
                CombineStrategy::ByFile => "each file's own",
                CombineStrategy::Narrow => "every file narrows",
                CombineStrategy::AnyTrue => "`true` wins",
            },
        }
    }
}

/// One entry of the table.
#[derive(Debug, Clone, Copy)]
struct DeclaredKey {
    /// The keys of the objects that contain it.
    above: &'static [&'static str],
    /// The name of the field in Rust.
    field: &'static str,
    /// Its rule.
    rule: MergeRule,
}

/// A key with its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyRule {
    /// The names from the top level of the file to the key.
    pub path: Vec<String>,
    /// Its rule.
    pub rule: MergeRule,
}

impl KeyRule {
    /// The key in messages, such as `permissions.deny`.
    pub fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Declares the rule of each field of the types that make up a settings file.
macro_rules! declare {
    ($( $of:ident at $above:expr => { $( $field:ident: $rule:expr, )* } )*) => {
        // The pattern names every field, so a field without a rule does not compile.
        $( const _: fn(&$of) = |$of { $( $field: _, )* }| (); )*
        const DECLARED: &[DeclaredKey] = &[
            $( $( DeclaredKey { above: $above, field: stringify!($field), rule: $rule }, )* )*
        ];
    };
}

use CombineStrategy::{AnyTrue, ByFile, ByName, Narrow, Pool, Strongest};
use MergeRule::{
    AddDeny, DenyWins, Group, Inert, ManagedOnly, NeedsTrust, Smallest, StricterBook, StricterMode, Tighten,
    UserOnly,
};

declare! {
    SettingsValues at &[] => {
        schema: Inert,
        permissions: Group,
        policy: StricterBook,
        disabled_tools: AddDeny,
        hooks: NeedsTrust(ByFile),
        // This switch does not only restrict: it would disable the hooks that screen calls for the user.
        disable_all_hooks: NeedsTrust(Strongest),
        allow_managed_hooks_only: ManagedOnly(AnyTrue),
        // An untrusted project could exclude the user's hook server; with `onFailure: continue` the hook is then skipped.
        allowed_http_hook_urls: NeedsTrust(Narrow),
        http_hook_allowed_env_vars: NeedsTrust(Narrow),
        allow_managed_permission_rules_only: DenyWins(true),
        env: NeedsTrust(ByName),
        sandbox: Group,
        shell: Group,
        ledger: Group,
        mcp_servers: NeedsTrust(ByFile),
        enable_all_project_mcp_servers: UserOnly(Strongest),
        enabled_mcpjson_servers: UserOnly(Pool),
        disabled_mcpjson_servers: AddDeny,
        allowed_mcp_servers: ManagedOnly(Narrow),
        denied_mcp_servers: ManagedOnly(Pool),
        allow_managed_mcp_servers_only: ManagedOnly(AnyTrue),
        managed_mcp_servers: ManagedOnly(ByName),
        lsp_servers: NeedsTrust(ByName),
        lsp_diagnostics_timeout: NeedsTrust(Strongest),
        enabled_plugins: NeedsTrust(ByName),
        strict_known_marketplaces: ManagedOnly(Strongest),
        strict_plugin_only_customization: ManagedOnly(Strongest),
        disable_sideload_flags: DenyWins(true),
        skill_overrides: NeedsTrust(ByName),
        bash_output_max_chars: NeedsTrust(Strongest),
        ask_user_question_timeout: NeedsTrust(Strongest),
        dialog_expiry: NeedsTrust(Strongest),
        file_checkpointing_enabled: Tighten(true),
        disable_skill_shell_execution: DenyWins(true),
        disable_remote_control: DenyWins(true),
        disable_agent_view: DenyWins(true),
        pre_approval: Group,
        web: Group,
        managed: Group,
        model: NeedsTrust(Strongest),
        output_style: NeedsTrust(Strongest),
        api_key_helper: UserOnly(Strongest),
        status_line: UserOnly(Strongest),
    }
    PermissionsSection at &["permissions"] => {
        allow: NeedsTrust(ByFile),
        ask: AddDeny,
        deny: AddDeny,
        default_mode: StricterMode,
        additional_directories: NeedsTrust(Pool),
        disable_bypass_permissions_mode: DenyWins(true),
        disable_auto_mode: DenyWins(true),
        block_reads_outside_working_directories: DenyWins(true),
        block_writes_outside_working_directories: DenyWins(true),
        deny_instead_of_prompting: DenyWins(true),
        auto_allow_read_only_commands: Tighten(false),
        risk_profile: NeedsTrust(Strongest),
        unmatchable_rules: NeedsTrust(Strongest),
    }
    SandboxSection at &["sandbox"] => {
        enabled: DenyWins(true),
        fail_if_unavailable: DenyWins(true),
        auto_allow_bash_if_sandboxed: Tighten(false),
        allow_unsandboxed_commands: DenyWins(false),
        excluded_commands: NeedsTrust(Pool),
        required: DenyWins(true),
        backend: NeedsTrust(Strongest),
        network: Group,
        filesystem: Group,
        environment: Group,
        limits: Group,
        credentials: NeedsTrust(Strongest),
        ignore_violations: NeedsTrust(Strongest),
    }
    SandboxNetworkSection at &["sandbox", "network"] => {
        allowed_domains: NeedsTrust(Pool),
        denied_domains: AddDeny,
        allow_local_binding: DenyWins(false),
        allow_unix_sockets: NeedsTrust(Pool),
        allow_all_unix_sockets: DenyWins(false),
    }
    SandboxFilesystemSection at &["sandbox", "filesystem"] => {
        allow_write: NeedsTrust(Pool),
        deny_write: AddDeny,
        deny_read: AddDeny,
    }
    SandboxEnvironmentSection at &["sandbox", "environment"] => {
        pass: NeedsTrust(Pool),
    }
    SandboxLimitsSection at &["sandbox", "limits"] => {
        memory_bytes: Smallest,
        processes: Smallest,
        file_size_bytes: Smallest,
        cpu_seconds: Smallest,
    }
    ShellSection at &["shell"] => {
        max_output_bytes: NeedsTrust(Strongest),
        max_background_tasks: NeedsTrust(Strongest),
        on_timeout: NeedsTrust(Strongest),
        git_helpers: NeedsTrust(Strongest),
        snapshots: NeedsTrust(Strongest),
    }
    LedgerSection at &["ledger"] => {
        required: DenyWins(true),
        // A project must not choose a file that toolgate appends to.
        anchor: UserOnly(Strongest),
    }
    PreApprovalSection at &["preApproval"] => {
        allowed_domains: NeedsTrust(Pool),
        blocked_domains: AddDeny,
        allow_private: NeedsTrust(Pool),
        auto_approve_https: Tighten(false),
        profile: NeedsTrust(Strongest),
    }
    WebSection at &["web"] => {
        obey_robots: DenyWins(true),
        only_named_urls: DenyWins(true),
        requests_per_minute: NeedsTrust(Strongest),
        // A project that chose the program could have its own run.
        browser: UserOnly(Strongest),
        browser_tools: UserOnly(Strongest),
        page_model: Group,
        search: Group,
    }
    // A project that chose the address could have the key and every page sent to itself.
    PageModelSection at &["web", "pageModel"] => {
        model: UserOnly(Strongest),
        api: UserOnly(Strongest),
        base_url: UserOnly(Strongest),
        key_variable: UserOnly(Strongest),
    }
    // A project that chose the address could have the key sent to itself.
    WebSearchSection at &["web", "search"] => {
        provider: UserOnly(Strongest),
        base_url: UserOnly(Strongest),
        key_variable: UserOnly(Strongest),
        key_command: UserOnly(Strongest),
    }
    ManagedSection at &["managed"] => {
        disabled_tools: AddDeny,
        disable_bypass_permissions_mode: DenyWins(true),
        allow_managed_permission_rules_only: DenyWins(true),
        disable_skill_shell_execution: DenyWins(true),
        disable_remote_control: DenyWins(true),
        disable_agent_view: DenyWins(true),
    }
}

/// Every key of a settings file, except groups, with its rule.
///
/// ```
/// use toolgate::settings::merge::key_rules;
///
/// let rule = |name: &str| key_rules().iter().find(|key| key.name() == name).unwrap().rule;
/// assert_eq!(rule("permissions.deny").describe_sources(), "every file");
/// assert_eq!(rule("permissions.allow").describe_sources(), "needs trust");
/// ```
pub fn key_rules() -> &'static [KeyRule] {
    static RULES: OnceLock<Vec<KeyRule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let leaves = DECLARED.iter().filter(|declared| declared.rule != Group);
        leaves
            .map(|declared| {
                let mut path: Vec<String> = declared.above.iter().map(|name| (*name).to_owned()).collect();
                path.push(to_json_key(declared.field));
                KeyRule { path, rule: declared.rule }
            })
            .collect()
    })
}

/// The table of all keys in `docs/settings.md`.
pub fn key_table() -> String {
    let mut out = String::from("| key | meaning | counts from | several files |\n|---|---|---|---|\n");
    for key in key_rules() {
        let schema = key.path.iter().try_fold(super::super::schema::settings_schema(), |schema, name| {
            schema.get("properties").and_then(|properties| properties.get(name))
        });
        let meaning = schema.and_then(|schema| schema.get("description")).and_then(Value::as_str);
        let meaning = meaning.unwrap_or_default().lines().next().unwrap_or_default().replace('|', "\\|");
        out.push_str(&format!(
            "| `{}` | {meaning} | {} | {} |\n",
            key.name(),
            key.rule.describe_sources(),
            key.rule.describe_merge()
        ));
    }
    out
}

/// The rule of a key, or of the key that contains it.
pub(in crate::settings) fn find_merge_rule(path: &[&str]) -> Option<MergeRule> {
    key_rules()
        .iter()
        .find(|key| key.path.len() <= path.len() && key.path.iter().zip(path).all(|(a, b)| a == b))
        .map(|key| key.rule)
}

/// The key for a field: camel case, as serde writes it.
fn to_json_key(field: &str) -> String {
    if field == "schema" {
        return "$schema".to_owned();
    }
    let mut key = String::new();
    let mut upper = false;
    for c in field.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                key.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => key.push(c),
        }
    }
    key
}
