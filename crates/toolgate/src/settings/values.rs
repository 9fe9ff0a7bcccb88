//! The shape of a settings file, as types: the schema is made from them, and files are read into them.
//!
//! Every key that matters to a tool runtime has its type here, also where toolgate only keeps it for a host.
//! A key that is not here is kept as it is and reported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Settings of toolgate. Files of the `.claude` kind have the same shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsValues {
    /// Address of the schema, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Which calls are allowed, asked about and denied.
    pub permissions: PermissionsSection,
    /// A second rule book: ordered rules with conditions. The stricter of the two books decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// Tools that are switched off.
    pub disabled_tools: Vec<String>,
    /// Programs and servers that are told of calls, by moment (`PreToolUse`, `PostToolUse`, …).
    pub hooks: BTreeMap<String, Vec<HookGroup>>,
    /// Switches off every hook that is not managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_all_hooks: Option<bool>,
    /// Managed only: no other hooks count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_hooks_only: Option<bool>,
    /// Addresses that HTTP hooks may use, `*` for any text; absent means any on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_http_hook_urls: Option<Vec<String>>,
    /// Environment variables that headers of HTTP hooks may name at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_hook_allowed_env_vars: Option<Vec<String>>,
    /// Allow rules of layers that are not managed do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_permission_rules_only: Option<bool>,
    /// Environment variables for commands and hooks.
    pub env: BTreeMap<String, String>,
    /// How commands are confined.
    pub sandbox: SandboxSection,
    /// How commands are run.
    pub shell: ShellSection,
    /// MCP servers, by name.
    pub mcp_servers: BTreeMap<String, Value>,
    /// Takes every server of the project's `.mcp.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_all_project_mcp_servers: Option<bool>,
    /// Servers of `.mcp.json` that are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled_mcpjson_servers: Option<Vec<String>>,
    /// Servers of `.mcp.json` that are not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_mcpjson_servers: Option<Vec<String>>,
    /// Managed: the only servers there may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_mcp_servers: Option<Vec<McpServerPattern>>,
    /// Managed: servers that there may not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_mcp_servers: Option<Vec<McpServerPattern>>,
    /// Managed only: no other servers count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_mcp_servers_only: Option<bool>,
    /// Managed: servers for everybody.
    pub managed_mcp_servers: BTreeMap<String, Value>,
    /// Plugins, by `name@marketplace`.
    pub enabled_plugins: BTreeMap<String, Value>,
    /// Managed: the only marketplaces there may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_known_marketplaces: Option<Value>,
    /// Managed: customisation only by plugins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_plugin_only_customization: Option<Value>,
    /// Managed: no plugins or servers by command-line flags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_sideload_flags: Option<bool>,
    /// How skills are offered, by name.
    pub skill_overrides: BTreeMap<String, SkillOverride>,
    /// Most characters of a command's output that the model sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4000, max = 128_000))]
    pub bash_output_max_chars: Option<u64>,
    /// How long a question to the person waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_user_question_timeout: Option<Value>,
    /// How long an approval prompt waits, such as `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialog_expiry: Option<Value>,
    /// Keeps what files were before each change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_checkpointing_enabled: Option<bool>,
    /// Managed: skills run no commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_skill_shell_execution: Option<DisableSwitch>,
    /// Managed: no remote control; for the host to honour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_remote_control: Option<DisableSwitch>,
    /// Managed: no agent view; for the host to honour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_agent_view: Option<DisableSwitch>,
    /// Which addresses may be fetched without a question.
    pub pre_approval: PreApprovalSection,
    /// Another place for the switches that tighten, all together.
    pub managed: ManagedSection,
    /// The model, for the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Which addresses may be fetched without a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PreApprovalSection {
    /// Domains that need no question.
    pub allowed_domains: Vec<String>,
    /// Domains that are refused.
    pub blocked_domains: Vec<String>,
    /// Private addresses that may be reached.
    pub allow_private: Vec<String>,
    /// Public addresses need no question where they are encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_approve_https: Option<bool>,
}

/// The switches that tighten. Each may stand at the top of a file as well, and counts there first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedSection {
    /// Tools that are switched off.
    pub disabled_tools: Vec<String>,
    /// Takes mode bypass away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_bypass_permissions_mode: Option<DisableSwitch>,
    /// Only managed allow rules count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_permission_rules_only: Option<bool>,
    /// Skills run no commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_skill_shell_execution: Option<DisableSwitch>,
    /// No remote control; for the host to honour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_remote_control: Option<DisableSwitch>,
    /// No agent view; for the host to honour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_agent_view: Option<DisableSwitch>,
}

/// Which calls are allowed, asked about and denied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsSection {
    /// Rules for calls that need no question.
    pub allow: Vec<String>,
    /// Rules for calls that a person is always asked about.
    pub ask: Vec<String>,
    /// Rules for calls that are refused.
    pub deny: Vec<String>,
    /// What happens where no rule speaks: default, plan, acceptEdits, dontAsk, bypass or deny.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<String>,
    /// Directories beside the workspace in which the session may work.
    pub additional_directories: Vec<String>,
    /// Managed: `disable` takes mode bypass away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_bypass_permissions_mode: Option<DisableSwitch>,
    /// Managed: `disable` takes automatic mode away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_auto_mode: Option<DisableSwitch>,
    /// Reads outside the working directories are denied instead of asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_reads_outside_working_directories: Option<bool>,
    /// Writes outside the working directories are denied instead of asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_writes_outside_working_directories: Option<bool>,
    /// Whatever would be asked is denied at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny_instead_of_prompting: Option<bool>,
    /// Commands that only read inside the workspace need no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_read_only_commands: Option<bool>,
}

/// A switch that older files write as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DisableSwitch {
    /// As a word.
    Word(DisableKeyword),
    /// As a flag.
    Flag(bool),
}

impl DisableSwitch {
    /// Whether the thing is switched off.
    pub fn disables(self) -> bool {
        match self {
            Self::Word(DisableKeyword::Disable) => true,
            Self::Flag(flag) => flag,
        }
    }
}

/// The one word of a [`DisableSwitch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DisableKeyword {
    /// Switched off.
    Disable,
}

/// Hooks for some tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HookGroup {
    /// For which tools: names separated by `|` or `,`, or a regular expression; absent, empty or `*` means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// What is told, in order.
    pub hooks: Vec<HookHandler>,
}

/// One program or server that is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookHandler {
    /// What kind of handler.
    #[serde(rename = "type")]
    pub kind: HookHandlerKind,
    /// command: a line for the shell; with `args`, a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// command: the program's arguments. No shell is used then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// command: which shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// http: the address, on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// http: headers; `$NAME` and `${NAME}` stand for variables that `allowedEnvVars` lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// http: variables that headers may name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_env_vars: Option<Vec<String>>,
    /// A permission rule: only calls that it speaks of are told.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Seconds until it counts as failed; 600 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub timeout: Option<f64>,
    /// What its failure means: `block` refuses the call (the default), `continue` goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<HookFailurePolicy>,
    /// Told in the background; cannot decide.
    #[serde(default, rename = "async", skip_serializing_if = "Option::is_none")]
    pub in_background: Option<bool>,
    /// Told once a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once: Option<bool>,
    /// What a host shows while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// mcp_tool: the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// mcp_tool: the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// mcp_tool: the tool's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// prompt, agent: what a model is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// prompt, agent: which model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The kind of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookHandlerKind {
    /// A program.
    Command,
    /// A server on this machine.
    Http,
    /// A tool of an MCP server.
    McpTool,
    /// A question to a model.
    Prompt,
    /// Work for a model.
    Agent,
}

/// What a handler's failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookFailurePolicy {
    /// The call goes on.
    Continue,
    /// The call is refused.
    Block,
}

/// How commands are confined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxSection {
    /// Commands run confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Refuse commands where confinement is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_if_unavailable: Option<bool>,
    /// Confined commands need no question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// A person may let a command run unconfined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsandboxed_commands: Option<bool>,
    /// Commands that run unconfined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_commands: Option<Vec<String>>,
    /// The same as `failIfUnavailable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Who confines commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<SandboxBackendSetting>,
    /// What commands may reach.
    pub network: SandboxNetworkSection,
    /// Which files commands may read and write.
    pub filesystem: SandboxFilesystemSection,
    /// Which of toolgate's variables commands see.
    pub environment: SandboxEnvironmentSection,
    /// How much of the machine commands may use.
    pub limits: SandboxLimitsSection,
    /// Secrets that commands do not see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Value>,
    /// Violations that are not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_violations: Option<Value>,
}

/// Who confines commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxBackendSetting {
    /// toolgate itself, by what the kernel offers to everybody.
    Landlock,
    /// Bubblewrap, where it is installed.
    Bubblewrap,
}

/// How commands are run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ShellSection {
    /// Bytes of output after which a command is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// Commands in the background at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_background_tasks: Option<u64>,
    /// What becomes of a command in the foreground that runs out of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<ShellTimeoutSetting>,
    /// Whether git runs helpers that a repository chooses, as in a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_helpers: Option<bool>,
}

/// What becomes of a command that runs out of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShellTimeoutSetting {
    /// It is stopped.
    Stop,
    /// It goes on in the background.
    Background,
}

/// What confined commands may reach.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxNetworkSection {
    /// Hosts that may be reached: names, `*.` and a name, or `*`.
    pub allowed_domains: Vec<String>,
    /// Hosts that may not be reached, whatever else is said.
    pub denied_domains: Vec<String>,
    /// Commands may listen on this machine and connect to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_local_binding: Option<bool>,
    /// Sockets in the file system that commands may connect to, or directories of them.
    pub allow_unix_sockets: Vec<String>,
    /// Commands may connect to every socket in the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_all_unix_sockets: Option<bool>,
}

/// Which files confined commands may read and write.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxFilesystemSection {
    /// Directories in which commands may write beside the workspace.
    pub allow_write: Vec<String>,
    /// Paths that stay as they are.
    pub deny_write: Vec<String>,
    /// Paths that may not be read.
    pub deny_read: Vec<String>,
}

/// Which variables confined commands see.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxEnvironmentSection {
    /// Names that are let through beside the usual ones; `*` stands for anything, but not for a secret.
    pub pass: Vec<String>,
}

/// How much of the machine confined commands may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxLimitsSection {
    /// Address space of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Size of each file that is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// Processor time of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
}

/// Which MCP servers are meant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct McpServerPattern {
    /// By name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// By command and arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_command: Option<Vec<String>>,
    /// By address, `*` for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_url: Option<String>,
}

/// How a skill is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkillOverride {
    /// As usual.
    On,
    /// By name only.
    NameOnly,
    /// For the person only.
    UserInvocableOnly,
    /// Not at all.
    Off,
}
