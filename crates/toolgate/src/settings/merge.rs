//! How settings files are merged.
//!
//! Each key of the schema declares its rule in one table, and one function follows the table.
//! The table is made from the fields of the types in [`shape`](super::values): a field without a declaration does not
//! compile, and a test compares the names with the schema.
//! Everything else reads the merged settings or what counts of one file; nothing reads what a file says unfiltered.

use super::values::{
    ManagedSection, PermissionsSection, PreApprovalSection, SandboxEnvironmentSection,
    SandboxFilesystemSection, SandboxLimitsSection, SandboxNetworkSection, SandboxSection, SettingsValues,
    ShellSection,
};
use serde_json::{Map, Value};
use std::sync::OnceLock;
use toolgate_policy::Layer;
use toolgate_proto::Mode;

/// How a key of several files becomes one value, and from which files it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeRule {
    /// An object of keys that are declared one by one.
    Group,
    /// Says nothing about what is permitted.
    Inert,
    /// A list that only forbids: the entries of every file count.
    AddDeny,
    /// A switch: the word given here counts from every file and wins, the other only from a file that is trusted.
    DenyWins(bool),
    /// A switch: the strongest file's word, and of an untrusted project only the word given here.
    Tighten(bool),
    /// A number: the smallest of every file.
    Smallest,
    /// A permission mode: the strongest file's, and an untrusted project's only where it is stricter than what would
    /// hold without it.
    StricterMode,
    /// A rule book of each file; of an untrusted project's book only denies and questions.
    StricterBook,
    /// Counts from an untrusted project not at all.
    NeedsTrust(CombineStrategy),
    /// Counts from a project not at all, trusted or not.
    UserOnly(CombineStrategy),
    /// Counts from managed settings only.
    ManagedOnly(CombineStrategy),
}

/// How the values of several files that all count become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CombineStrategy {
    /// The strongest file's.
    Strongest,
    /// The entries of all files.
    Pool,
    /// Of each name in an object, the strongest file's.
    ByName,
    /// Each entry stays with its file.
    ByFile,
    /// What the list of every file admits.
    Narrow,
    /// True where any file says so.
    AnyTrue,
}

impl MergeRule {
    /// Which files it counts from, in words.
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

    /// How values of several files become one, in words.
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

/// One line of the table.
#[derive(Debug, Clone, Copy)]
struct DeclaredKey {
    above: &'static [&'static str],
    field: &'static str,
    rule: MergeRule,
}

/// A key and its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRule {
    /// The names from the top of the file down to the key.
    pub path: Vec<String>,
    /// How it merges.
    pub rule: MergeRule,
}

impl KeyRule {
    /// The key as it is written in messages, such as `permissions.deny`.
    pub fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Declares the rule of each field of the types that make up a settings file.
macro_rules! declare {
    ($( $of:ident at $above:expr => { $( $field:ident: $rule:expr, )* } )*) => {
        // A field that is not declared here does not compile.
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
        // Not a switch that only tightens: it would switch off the hooks that screen calls for the user.
        disable_all_hooks: NeedsTrust(Strongest),
        allow_managed_hooks_only: ManagedOnly(AnyTrue),
        // A hook that is kept from its server fails, and a failure may be one that the user lets pass.
        allowed_http_hook_urls: NeedsTrust(Narrow),
        http_hook_allowed_env_vars: NeedsTrust(Narrow),
        allow_managed_permission_rules_only: DenyWins(true),
        env: NeedsTrust(ByName),
        sandbox: Group,
        shell: Group,
        mcp_servers: NeedsTrust(ByFile),
        enable_all_project_mcp_servers: UserOnly(Strongest),
        enabled_mcpjson_servers: UserOnly(Pool),
        disabled_mcpjson_servers: AddDeny,
        allowed_mcp_servers: ManagedOnly(Narrow),
        denied_mcp_servers: ManagedOnly(Pool),
        allow_managed_mcp_servers_only: ManagedOnly(AnyTrue),
        managed_mcp_servers: ManagedOnly(ByName),
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
        managed: Group,
        model: NeedsTrust(Strongest),
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
    }
    PreApprovalSection at &["preApproval"] => {
        allowed_domains: NeedsTrust(Pool),
        blocked_domains: AddDeny,
        allow_private: NeedsTrust(Pool),
        auto_approve_https: Tighten(false),
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

/// Every key of a settings file that is no group, with its rule.
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

/// The table of all keys as Markdown, for the documents.
pub fn key_table() -> String {
    let mut out = String::from("| key | meaning | counts from | several files |\n|---|---|---|---|\n");
    for key in key_rules() {
        let schema = key.path.iter().try_fold(super::schema::settings_schema(), |schema, name| {
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

/// The rule of a key, or of the one that it lies below.
pub(super) fn find_merge_rule(path: &[&str]) -> Option<MergeRule> {
    key_rules()
        .iter()
        .find(|key| key.path.len() <= path.len() && key.path.iter().zip(path).all(|(a, b)| a == b))
        .map(|key| key.rule)
}

/// A field's name in a file.
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

/// One file, as far as merging must know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeInput<'a> {
    /// What it says.
    pub(super) value: &'a Value,
    /// Its layer.
    pub(super) layer: Layer,
    /// False for what a project brings that the user has not trusted.
    pub(super) trusted: bool,
    /// Allow rules of it that the user granted at a prompt.
    pub(super) granted: &'a [String],
}

impl MergeInput<'_> {
    /// What counts of one key, whatever other files say.
    fn effective_value(&self, rule: MergeRule, said: &Value) -> Option<Value> {
        if said.is_null() {
            return None;
        }
        let from_project = matches!(self.layer, Layer::Project | Layer::Local);
        let counts = match rule {
            Group => false,
            Inert | AddDeny | Smallest | StricterMode | StricterBook => true,
            DenyWins(tight) | Tighten(tight) => self.trusted || is_switch_value(said, tight),
            NeedsTrust(_) => self.trusted,
            UserOnly(_) => !from_project,
            ManagedOnly(_) => self.layer == Layer::Managed,
        };
        counts.then(|| said.clone())
    }

    /// What counts of the whole file, whatever other files say.
    pub(super) fn effective_values(&self) -> Value {
        let mut out = Map::new();
        for key in key_rules() {
            let Some(said) = value_at(self.value, &key.path) else { continue };
            let counted = self.effective_value(key.rule, said).or_else(|| self.granted_rules(key, said));
            if let Some(counted) = counted {
                insert_at(&mut out, &key.path, counted);
            }
        }
        Value::Object(out)
    }

    /// Allow rules that the user granted count without trust in the file.
    fn granted_rules(&self, key: &KeyRule, said: &Value) -> Option<Value> {
        if self.granted.is_empty() || key.name() != "permissions.allow" {
            return None;
        }
        let granted =
            |rule: &&Value| rule.as_str().is_some_and(|rule| self.granted.iter().any(|it| it == rule));
        Some(said.as_array()?.iter().filter(granted).cloned().collect())
    }

    /// The keys of which something does not count because the file is not trusted, or is of the wrong layer.
    pub(super) fn inactive_keys(&self) -> Vec<&'static KeyRule> {
        let waits = |key: &&KeyRule| {
            value_at(self.value, &key.path).is_some_and(|said| {
                let counted = self.effective_value(key.rule, said).or_else(|| self.granted_rules(key, said));
                is_nonempty_value(said) && counted.as_ref() != Some(said)
            })
        };
        key_rules().iter().filter(waits).collect()
    }
}

/// Merges files, given strongest first. Entries that stay with their file are left out.
pub(super) fn merge(files: &[MergeInput<'_>]) -> Value {
    let mut out = Map::new();
    // Where mode bypass is off, asking for it gives mode default, and another mode is compared with that.
    let bypass_is_off = files.iter().any(|file| {
        let off = |path: &[&str]| path.iter().try_fold(file.value, |value, name| value.get(name));
        let key = "disableBypassPermissionsMode";
        [off(&["permissions", key]), off(&["managed", key])]
            .into_iter()
            .flatten()
            .any(|said| is_switch_value(said, true))
    });
    for key in key_rules() {
        let mut merged: Option<Value> = None;
        for file in files.iter().rev() {
            let Some(said) = value_at(file.value, &key.path) else { continue };
            if let Some(said) = file.effective_value(key.rule, said) {
                if key.rule == StricterMode {
                    let mode = |said: &Value| match said.as_str()?.parse().ok()? {
                        Mode::Bypass if bypass_is_off => Some(Mode::Default),
                        mode => Some(mode),
                    };
                    let before = merged.as_ref().and_then(mode).unwrap_or_default();
                    if file.trusted || mode(&said).is_some_and(|mode| is_stricter(mode, before)) {
                        merged = Some(said);
                    }
                } else {
                    combine_into(key.rule, &mut merged, said);
                }
            }
        }
        if let Some(merged) = merged {
            insert_at(&mut out, &key.path, merged);
        }
    }
    Value::Object(out)
}

/// Puts a stronger file's value to what weaker ones said.
fn combine_into(rule: MergeRule, merged: &mut Option<Value>, said: Value) {
    let how = match rule {
        Group | Inert | StricterBook | StricterMode => return,
        AddDeny => Pool,
        DenyWins(tight) => {
            if !merged.as_ref().is_some_and(|merged| is_switch_value(merged, tight)) {
                *merged = Some(said);
            }
            return;
        }
        Tighten(_) => Strongest,
        Smallest => {
            let smaller = |before: &Value| before.as_u64() <= said.as_u64();
            if !merged.as_ref().is_some_and(smaller) {
                *merged = Some(said);
            }
            return;
        }
        NeedsTrust(how) | UserOnly(how) | ManagedOnly(how) => how,
    };
    match (how, said) {
        (ByFile | Narrow, _) => {}
        (Pool, Value::Array(mut stronger)) => {
            if let Some(Value::Array(weaker)) = merged.take() {
                stronger.extend(weaker);
            }
            *merged = Some(Value::Array(stronger));
        }
        (ByName, Value::Object(stronger)) => match merged {
            Some(Value::Object(weaker)) => weaker.extend(stronger),
            _ => *merged = Some(Value::Object(stronger)),
        },
        (AnyTrue, said) => {
            if !merged.as_ref().is_some_and(|merged| is_switch_value(merged, true)) {
                *merged = Some(said);
            }
        }
        (Strongest | Pool | ByName, said) => *merged = Some(said),
    }
}

/// Whether nothing is freer in a mode than in another. Modes of which each is freer somewhere are not ordered.
pub(super) fn is_stricter(mode: Mode, than: Mode) -> bool {
    let freer_than = |mode: Mode| -> &'static [Mode] {
        match mode {
            Mode::Bypass => &[],
            Mode::AcceptEdits => &[Mode::Bypass],
            Mode::Default => &[Mode::Bypass, Mode::AcceptEdits],
            // A rule that allows a change frees it in dontAsk and not in plan; a question is open in plan only.
            Mode::Plan | Mode::DontAsk => &[Mode::Bypass, Mode::AcceptEdits, Mode::Default],
            Mode::Deny => &[Mode::Bypass, Mode::AcceptEdits, Mode::Default, Mode::Plan, Mode::DontAsk],
        }
    };
    freer_than(mode).contains(&than)
}

/// Whether a switch is set to this word. `"disable"` stands for true.
pub(super) fn is_switch_value(said: &Value, word: bool) -> bool {
    match said {
        Value::Bool(said) => *said == word,
        Value::String(said) => word && said == "disable",
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn is_nonempty_value(said: &Value) -> bool {
    match said {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The value at a path.
pub(super) fn value_at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Puts a value at a path.
pub(super) fn insert_at(object: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            object.insert(name.clone(), value);
        }
        [name, rest @ ..] => {
            let below = object.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                insert_at(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::settings_schema;
    use super::*;

    /// Every key that the schema knows, but for those inside of a declared key's own value.
    fn keys(schema: &Value, path: &mut Vec<String>, out: &mut Vec<String>) {
        let declared = |path: &[String]| key_rules().iter().any(|key| key.path == path);
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if path.is_empty() || !declared(path) => {
                for (name, below) in properties {
                    path.push(name.clone());
                    keys(below, path, out);
                    path.pop();
                }
            }
            _ => out.push(path.join(".")),
        }
    }

    #[test]
    fn the_table_and_the_schema_name_the_same_keys() {
        let mut written = Vec::new();
        keys(settings_schema(), &mut Vec::new(), &mut written);
        let mut declared: Vec<String> = key_rules().iter().map(KeyRule::name).collect();
        written.sort();
        declared.sort();
        assert_eq!(written, declared);
    }

    #[test]
    fn strictness_of_modes_is_an_order() {
        for a in Mode::ALL {
            assert!(!is_stricter(a, a));
            for b in Mode::ALL {
                assert!(!(is_stricter(a, b) && is_stricter(b, a)), "{a} {b}");
                for c in Mode::ALL {
                    assert!(!(is_stricter(a, b) && is_stricter(b, c)) || is_stricter(a, c), "{a} {b} {c}");
                }
            }
        }
    }
}
