//! Validation of settings files before a tool writes them.
//!
//! An invalid settings file makes toolgate refuse every call, because it may contain a deny rule. A tool must not be
//! able to cause that, so file tools validate the new content of settings and server lists before they write it.

use super::lint::lint_text;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use toolgate_files::ContentCheck;
use toolgate_policy::ProblemSeverity;
use toolgate_proto::AbsPath;
use toolgate_proto::protected_names::SETTINGS_DIRECTORIES;
use toolgate_tools::SchemaCheck;

/// The checks that new file content must pass: settings files and lists of MCP servers, those of toolgate and of Claude
/// Code. `config_dir` is the directory of the user's settings, which can have any name.
///
/// ```
/// use toolgate::AbsPath;
/// use toolgate::settings::content_checks;
///
/// let checks = content_checks(None);
/// let file = AbsPath::new("/project/.toolgate/settings.json").unwrap();
/// let is_valid = |content: &str| checks.iter().all(|check| check.check(&file, content.as_bytes()).is_ok());
/// assert!(is_valid(r#"{ "permissions": { "deny": ["Read(.env)"] } }"#));
/// assert!(!is_valid(r#"{ "permissions": { "deny": "Read(.env)" } }"#));
/// ```
pub fn content_checks(config_dir: Option<AbsPath>) -> Vec<Arc<dyn ContentCheck>> {
    let servers =
        SchemaCheck::new(|| servers_schema().clone(), |real| lowercase_file_name(real) == ".mcp.json");
    let hooks =
        SchemaCheck::new(|| hook_list_schema().clone(), |real| is_in_settings_dir(real, "hooks.json"));
    let permissions = SchemaCheck::new(
        || permission_list_schema().clone(),
        |real| is_in_settings_dir(real, "permissions.json"),
    );
    vec![
        Arc::new(SettingsContentCheck { config_dir }),
        Arc::new(servers),
        Arc::new(hooks),
        Arc::new(permissions),
    ]
}

/// Whether a path is a file of this name in a directory of settings, such as `.claude`. A plugin has a `hooks.json` of
/// another form in another directory.
fn is_in_settings_dir(real: &AbsPath, name: &str) -> bool {
    let folder = real.parent().as_ref().map(lowercase_file_name).unwrap_or_default();
    lowercase_file_name(real) == name && SETTINGS_DIRECTORIES.contains(&folder.as_str())
}

/// The schema of a list of hooks in a file of its own, which some hosts read.
fn hook_list_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        json!({
            "type": "array",
            "items": {
                "type": "object",
                "required": ["event"],
                "properties": {
                    "event": { "type": "string" },
                    "command": { "type": "string" },
                    "timeout_sec": { "type": "integer", "minimum": 1 },
                    "tool_matcher": { "type": "string" },
                },
            },
        })
    })
}

/// The schema of lists of tools and hosts in a file of their own, which some hosts read.
fn permission_list_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    SCHEMA.get_or_init(|| {
        json!({
            "type": "object",
            "properties": {
                "allowed_tools": texts,
                "disabled_tools": texts,
                "allowed_domains": texts,
                "blocked_domains": texts,
            },
            "additionalProperties": false,
        })
    })
}

/// The schema of a list of MCP servers.
pub(super) fn servers_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    SCHEMA.get_or_init(|| {
        json!({
            "type": "object",
            "required": ["mcpServers"],
            "properties": { "mcpServers": { "type": "object", "additionalProperties": {
                "type": "object",
                "properties": {
                    "type": { "type": "string" },
                    "command": { "type": "string", "minLength": 1 },
                    "args": { "type": "array", "items": { "type": "string" } },
                    "env": texts,
                    "cwd": { "type": "string" },
                    "url": { "type": "string", "minLength": 1 },
                    "headers": texts,
                },
                "anyOf": [{ "required": ["command"] }, { "required": ["url"] }],
            } } },
        })
    })
}

/// The check for settings files.
#[derive(Debug)]
struct SettingsContentCheck {
    /// The directory of the user's settings.
    config_dir: Option<AbsPath>,
}

impl SettingsContentCheck {
    /// Whether a path is a settings file, by its name and directory. Case is ignored, as some file systems do.
    fn is_settings(&self, real: &AbsPath) -> bool {
        let within = real.parent();
        let folder = within.as_ref().map(lowercase_file_name).unwrap_or_default();
        match lowercase_file_name(real).as_str() {
            "settings.json" | "settings.local.json" => {
                SETTINGS_DIRECTORIES.contains(&folder.as_str()) || within == self.config_dir
            }
            "managed-settings.json" => true,
            _ => false,
        }
    }
}

impl ContentCheck for SettingsContentCheck {
    /// Rejects a write that would leave a settings file with a fatal problem. Warnings and notes pass, because the file
    /// still loads with them.
    fn check(&self, real: &AbsPath, content: &[u8]) -> Result<(), Vec<String>> {
        if !self.is_settings(real) {
            return Ok(());
        }
        let text = std::str::from_utf8(content).map_err(|_| vec!["it is not UTF-8 text".to_owned()])?;
        let fatal: Vec<String> = lint_text(&lowercase_file_name(real), text)
            .into_iter()
            .filter(|problem| problem.weight == ProblemSeverity::Fatal)
            .map(|problem| {
                let line = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
                format!("{line}{} ({})", problem.message, problem.fix)
            })
            .collect();
        if fatal.is_empty() { Ok(()) } else { Err(fatal) }
    }
}

/// The file name in lower case.
fn lowercase_file_name(path: &AbsPath) -> String {
    path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_would_make_settings_invalid_is_reported() {
        let checks = content_checks(AbsPath::new("/home/me/.config/toolgate").ok());
        let check = |path: &str, text: &str| {
            let path = AbsPath::new(path).unwrap();
            let violations: Vec<String> =
                checks.iter().filter_map(|it| it.check(&path, text.as_bytes()).err()).flatten().collect();
            violations.join("; ")
        };
        let valid = r#"{ "permissions": { "deny": ["Read(.env)"] } }"#;
        for (path, text, expected) in [
            ("/w/.toolgate/settings.json", valid, ""),
            ("/w/.claude/settings.local.json", "{ // a comment\n}", ""),
            ("/w/.claude/settings.json", "{ \"permissions\": ", "not valid JSON"),
            ("/w/.Claude/Settings.json", "{", "not valid JSON"),
            ("/home/me/.config/toolgate/settings.json", "[]", "must be"),
            (
                "/w/.claude/settings.json",
                r#"{ "permissions": { "deny": ["Read(.env"] } }"#,
                "closing parenthesis",
            ),
            ("/w/.claude/settings.json", r#"{ "permissions": { "deny": "Read" } }"#, "deny"),
            ("/w/.claude/hooks.json", r#"[{ "event": "PreToolUse", "command": "x", "timeout_sec": 5 }]"#, ""),
            ("/w/.claude/hooks.json", r#"[{ "command": "x" }]"#, "event"),
            ("/w/.claude/hooks.json", "{}", "array"),
            ("/w/plugin/hooks/hooks.json", "{}", ""),
            ("/w/.claude/permissions.json", r#"{ "allowed_tools": ["Read"] }"#, ""),
            ("/w/.claude/permissions.json", r#"{ "allowed_tools": "Read" }"#, "allowed_tools"),
            ("/w/.claude/permissions.json", r#"{ "alowed_tools": ["Read"] }"#, "alowed_tools"),
            ("/w/.claude/permissions.json", "[]", "object"),
            ("/w/.claude/permissions.json", "{", "JSON"),
            ("/w/settings.json", "no settings of ours", ""),
            ("/w/.mcp.json", r#"{ "mcpServers": { "a": { "command": "x", "args": [] } } }"#, ""),
            ("/w/.mcp.json", r#"{ "mcpServers": { "a": { "args": "x" } } }"#, "args"),
            ("/w/.mcp.json", "{", "not valid JSON"),
        ] {
            let found = check(path, text);
            assert!(
                if expected.is_empty() { found.is_empty() } else { found.contains(expected) },
                "{path} {text}: {found:?}"
            );
        }
    }
}
