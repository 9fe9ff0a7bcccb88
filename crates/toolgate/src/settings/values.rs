//! The keys of a settings file as types. Files are deserialized into them, and the published schema and the table in
//! `docs/settings.md` are generated from their doc comments.
//!
//! The types cover every key that matters to a tool runtime, including keys that toolgate only reads, checks and merges
//! for hosts. Other keys are kept in the file and reported as unknown.

pub use super::web_section::{
    PageModelApi, PageModelSection, PreApprovalProfile, PreApprovalSection, SearchProvider, WebSearchSection,
    WebSection,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_policy::UnmatchableRules;
use toolgate_proto::RiskLevel;

/// Settings of toolgate. Files in `.claude` have the same keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SettingsValues {
    /// Address of the JSON schema, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Permission rules and the default mode.
    pub permissions: PermissionsSection,
    /// A second set of rules: ordered, with conditions on the input. The stricter of the two verdicts applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// Tools that are hidden and cannot be called.
    pub disabled_tools: Vec<String>,
    /// Programs, HTTP servers and MCP tools to run before and after calls, by event (`PreToolUse`, `PostToolUse`, …).
    pub hooks: BTreeMap<String, Vec<HookGroup>>,
    /// Disables every hook that is not managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_all_hooks: Option<bool>,
    /// Disables every hook that is not managed; only for managed settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_hooks_only: Option<bool>,
    /// URLs that HTTP hooks may use, with `*` for any text; all URLs on this machine if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_http_hook_urls: Option<Vec<String>>,
    /// Environment variables that headers of HTTP hooks may contain; those that a hook lists if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_hook_allowed_env_vars: Option<Vec<String>>,
    /// Ignores allow rules that are not managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_permission_rules_only: Option<bool>,
    /// Environment variables for commands and hooks.
    pub env: BTreeMap<String, String>,
    /// The sandbox of commands.
    pub sandbox: SandboxSection,
    /// How commands run.
    pub shell: ShellSection,
    /// The ledger of calls.
    pub ledger: LedgerSection,
    /// MCP servers, by name.
    pub mcp_servers: BTreeMap<String, Value>,
    /// Starts every server of the project's `.mcp.json` without approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_all_project_mcp_servers: Option<bool>,
    /// Servers of `.mcp.json` that start without approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled_mcpjson_servers: Option<Vec<String>>,
    /// Servers of `.mcp.json` that do not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_mcpjson_servers: Option<Vec<String>>,
    /// The only MCP servers that may start. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_mcp_servers: Option<Vec<McpServerPattern>>,
    /// MCP servers that may not start. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_mcp_servers: Option<Vec<McpServerPattern>>,
    /// Ignores MCP servers that are not managed. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_mcp_servers_only: Option<bool>,
    /// MCP servers for all users of the machine. Read and checked, not applied yet.
    pub managed_mcp_servers: BTreeMap<String, Value>,
    /// Language servers, by name: `command`, `args`, `extensionToLanguage`, `env`, `initializationOptions`, `settings`, `rootMarkers`, `writable`.
    pub lsp_servers: BTreeMap<String, Value>,
    /// Milliseconds that the result of an edit waits for new diagnostics of a running language server; 0 turns them off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 60_000))]
    pub lsp_diagnostics_timeout: Option<u64>,
    /// Installed plugins that are switched on or off, by `name@marketplace`.
    pub enabled_plugins: BTreeMap<String, Value>,
    /// The only places that plugins may be installed from: sources, `hostPattern` or `pathPattern`; an empty list allows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_known_marketplaces: Option<Value>,
    /// Allows customization only by plugins. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_plugin_only_customization: Option<Value>,
    /// Forbids plugins on the command line (`--plugin-dir`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_sideload_flags: Option<bool>,
    /// How skills are offered, by name: `on`, `name-only`, `user-invocable-only` or `off`. Skills of plugins are not affected.
    pub skill_overrides: BTreeMap<String, SkillOverride>,
    /// How many characters of a command's output the model gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4000, max = 128_000))]
    pub bash_output_max_chars: Option<u64>,
    /// Timeout of a question that a tool asks the user. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_user_question_timeout: Option<Value>,
    /// Timeout of an approval prompt, such as `5m`. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialog_expiry: Option<Value>,
    /// Stores the content of files before each change. Read and checked, not applied yet; the undo journal is always on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_checkpointing_enabled: Option<bool>,
    /// Forbids commands in skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_skill_shell_execution: Option<DisableSwitch>,
    /// Forbids remote control, for hosts. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_remote_control: Option<DisableSwitch>,
    /// Forbids the agent view, for hosts. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_agent_view: Option<DisableSwitch>,
    /// Addresses that may be fetched without approval.
    pub pre_approval: PreApprovalSection,
    /// Fetching pages and searching the web.
    pub web: WebSection,
    /// An alternative place for the switches that restrict.
    pub managed: ManagedSection,
    /// The model, for hosts. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The output style of the main conversation of `toolgate run`, by name; `default` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_style: Option<String>,
    /// Command line that prints the key of the model's provider, where the environment has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_helper: Option<String>,
    /// Command line whose first line of output is shown before each prompt of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_line: Option<StatusLineSection>,
}

/// A command for the line before each prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct StatusLineSection {
    /// The only kind there is, `command`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The command line. It gets the session as JSON on standard input.
    pub command: String,
    /// Columns before the text, for hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding: Option<u64>,
}

/// The switches that restrict, as one group. Each has the same effect at the top level of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ManagedSection {
    /// Tools that are hidden and cannot be called.
    pub disabled_tools: Vec<String>,
    /// Forbids mode bypass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_bypass_permissions_mode: Option<DisableSwitch>,
    /// Ignores allow rules that are not managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_permission_rules_only: Option<bool>,
    /// Forbids commands in skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_skill_shell_execution: Option<DisableSwitch>,
    /// Forbids remote control, for hosts. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_remote_control: Option<DisableSwitch>,
    /// Forbids the agent view, for hosts. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_agent_view: Option<DisableSwitch>,
}

/// Permission rules and the default mode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PermissionsSection {
    /// Rules for calls that run without approval.
    pub allow: Vec<String>,
    /// Rules for calls that always need approval.
    pub ask: Vec<String>,
    /// Rules for calls that are refused.
    pub deny: Vec<String>,
    /// Default when no rule matches: default, plan, acceptEdits, dontAsk, bypass or deny.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<String>,
    /// Directories that belong to the workspace besides the working directory.
    pub additional_directories: Vec<String>,
    /// Forbids mode bypass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_bypass_permissions_mode: Option<DisableSwitch>,
    /// Forbids automatic mode, for hosts. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_auto_mode: Option<DisableSwitch>,
    /// Denies reads outside the workspace that would need approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_reads_outside_working_directories: Option<bool>,
    /// Denies writes outside the workspace that would need approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_writes_outside_working_directories: Option<bool>,
    /// Denies every call that would need approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny_instead_of_prompting: Option<bool>,
    /// Runs commands that only read inside the workspace without approval; on by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_read_only_commands: Option<bool>,
    /// Severity from which a danger in a command denies instead of asking: `medium`, `high` or `critical`; `ask` never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk_profile: Option<RiskProfileSetting>,
    /// Effect of a deny or ask rule that can never match: `refuse` (the default) runs no call, `warn` only reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmatchable_rules: Option<UnmatchableRulesSetting>,
}

/// Severity from which a danger in a command denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RiskProfileSetting {
    /// Dangers ask (the default).
    Ask,
    /// Critical dangers are denied.
    Critical,
    /// High and critical dangers are denied.
    High,
    /// All but low dangers are denied.
    Medium,
}

impl RiskProfileSetting {
    /// The severity from which dangers are denied.
    pub fn deny_from(self) -> Option<RiskLevel> {
        match self {
            Self::Ask => None,
            Self::Critical => Some(RiskLevel::Critical),
            Self::High => Some(RiskLevel::High),
            Self::Medium => Some(RiskLevel::Medium),
        }
    }
}

/// Effect of a deny or ask rule that can never match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnmatchableRulesSetting {
    /// No call runs until the rule is corrected.
    Refuse,
    /// The rule is reported and ignored.
    Warn,
}

impl From<UnmatchableRulesSetting> for UnmatchableRules {
    fn from(setting: UnmatchableRulesSetting) -> Self {
        match setting {
            UnmatchableRulesSetting::Refuse => Self::Refuse,
            UnmatchableRulesSetting::Warn => Self::Warn,
        }
    }
}

/// A switch that disables something: `"disable"` in older files, else a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DisableSwitch {
    /// The word `disable`.
    Word(DisableKeyword),
    /// `true` disables.
    Flag(bool),
}

impl DisableSwitch {
    /// Whether the feature is disabled.
    pub fn disables(self) -> bool {
        match self {
            Self::Word(DisableKeyword::Disable) => true,
            Self::Flag(flag) => flag,
        }
    }
}

/// The only word that a [`DisableSwitch`] accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DisableKeyword {
    /// The feature is disabled.
    Disable,
}

/// Hooks for a set of tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct HookGroup {
    /// The tools: names separated by `|` or `,`, or a regular expression; all tools if absent, empty or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The handlers, in the order in which they run.
    pub hooks: Vec<HookHandler>,
}

/// One handler: a program, an HTTP server or an MCP tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HookHandler {
    /// The type of the handler.
    #[serde(rename = "type")]
    pub kind: HookHandlerKind,
    /// command: a shell command line; with `args`, a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// command: the arguments of the program, which then runs without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// command: the shell, `bash` or `sh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// http: the URL, on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// http: headers; `$NAME` and `${NAME}` refer to variables that `allowedEnvVars` lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// http: environment variables that headers may contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_env_vars: Option<Vec<String>>,
    /// A permission rule: the hook runs only for calls that it matches.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Timeout in seconds; 600 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub timeout: Option<f64>,
    /// Effect of a failure: `block` refuses the call (the default), `continue` ignores the hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<HookFailurePolicy>,
    /// Runs in the background; its answer has no effect.
    #[serde(default, rename = "async", skip_serializing_if = "Option::is_none")]
    pub in_background: Option<bool>,
    /// Runs once in a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once: Option<bool>,
    /// Message to display while it runs, for hosts. Read and checked, not applied yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// mcp_tool: the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// mcp_tool: the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// mcp_tool: the input of the tool, with `${path.to.field}` for fields of the event; the event if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// prompt, agent: the prompt for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// prompt, agent: the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The type of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookHandlerKind {
    /// A program.
    Command,
    /// An HTTP server on this machine.
    Http,
    /// A tool of an MCP server.
    McpTool,
    /// A question to a model; not supported, such a hook fails.
    Prompt,
    /// A task for a model; not supported, such a hook fails.
    Agent,
}

/// Effect of a handler's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookFailurePolicy {
    /// The call continues without the hook.
    Continue,
    /// The call is refused.
    Block,
}

/// The sandbox of commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SandboxSection {
    /// Runs commands in the sandbox; on by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Refuses commands if a part of the sandbox that they need is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_if_unavailable: Option<bool>,
    /// Runs sandboxed commands without approval. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Lets the user approve a command that runs without the sandbox; on by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsandboxed_commands: Option<bool>,
    /// Commands that run without the sandbox. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_commands: Option<Vec<String>>,
    /// The same as `failIfUnavailable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Sandbox implementation: `landlock` (the default) or `bubblewrap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<SandboxBackendSetting>,
    /// Network access of commands.
    pub network: SandboxNetworkSection,
    /// Files that commands may read and write.
    pub filesystem: SandboxFilesystemSection,
    /// Environment variables that commands get.
    pub environment: SandboxEnvironmentSection,
    /// Resource limits of commands.
    pub limits: SandboxLimitsSection,
    /// Secrets to hide from commands. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Value>,
    /// Violations not to report. Read and checked, not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_violations: Option<Value>,
}

/// Sandbox implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxBackendSetting {
    /// toolgate's own sandbox: Landlock, seccomp and namespaces, without privileges.
    Landlock,
    /// The program Bubblewrap, if it is installed.
    Bubblewrap,
}

/// The ledger of calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LedgerSection {
    /// Refuses every call that could not be recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Where the end of the ledger is named after each record, so that truncation stays detectable: the absolute path of a file, or `syslog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
}

/// How commands run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ShellSection {
    /// Output in bytes after which a command is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// Number of background commands that may run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_background_tasks: Option<u64>,
    /// Effect of a foreground command's timeout: `stop` or `background`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<ShellTimeoutSetting>,
    /// Lets git run helper programs that the repository configures, as in a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_helpers: Option<bool>,
    /// Records what a command changes in the workspace, so that `toolgate undo` covers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<bool>,
}

/// Effect of a command's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShellTimeoutSetting {
    /// The command is killed.
    Stop,
    /// The command continues in the background.
    Background,
}

/// Network access of commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SandboxNetworkSection {
    /// Hosts that commands may connect to: `name`, `*.name` or `*`.
    pub allowed_domains: Vec<String>,
    /// Hosts that commands may not connect to; takes precedence over `allowedDomains`.
    pub denied_domains: Vec<String>,
    /// Lets commands listen on loopback addresses and connect to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_local_binding: Option<bool>,
    /// Unix sockets, or directories of sockets, that commands may connect to.
    pub allow_unix_sockets: Vec<String>,
    /// Lets commands connect to every Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_all_unix_sockets: Option<bool>,
}

/// Files that commands may read and write.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SandboxFilesystemSection {
    /// Directories that commands may write to besides the workspace.
    pub allow_write: Vec<String>,
    /// Paths that commands may not write.
    pub deny_write: Vec<String>,
    /// Paths that commands may not read.
    pub deny_read: Vec<String>,
}

/// Environment variables that commands get.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SandboxEnvironmentSection {
    /// Environment variables to pass besides the default ones; `*` matches any text, but no name of a secret.
    pub pass: Vec<String>,
}

/// Resource limits of commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SandboxLimitsSection {
    /// Data memory of each process: heap and private mappings (`RLIMIT_DATA`), not the whole address space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Number of processes of this user, including those outside the sandbox (`RLIMIT_NPROC`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Size of each file that a command writes (`RLIMIT_FSIZE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// CPU time of each process (`RLIMIT_CPU`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
}

/// A pattern for MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct McpServerPattern {
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The command and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_command: Option<Vec<String>>,
    /// The URL, with `*` for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_url: Option<String>,
}

/// How a skill is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkillOverride {
    /// With name and description.
    On,
    /// With its name only.
    NameOnly,
    /// To the user only, not to the model.
    UserInvocableOnly,
    /// Not at all.
    Off,
}
