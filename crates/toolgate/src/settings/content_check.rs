//! Settings stay valid, whoever edits them.
//!
//! A settings file that cannot be read stops everything, because it may hold a deny rule; a tool must not be able to
//! leave one behind.
//! So the hands ask here before any file is written, and what is no settings file is none of our business.

use super::document::SettingsNode;
use super::locate::check_text;
use super::schema::{check, settings_check_schema};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use toolgate_files::ContentCheck;
use toolgate_proto::AbsPath;
use toolgate_proto::protected_names::SETTINGS_DIRECTORIES;
use toolgate_tools::SchemaCheck;

/// What every file must pass before a tool may write it: settings and lists of MCP servers, ours and Claude-style.
/// `config_dir` is where the person's own settings are, in a folder of any name.
pub fn content_checks(config_dir: Option<AbsPath>) -> Vec<Arc<dyn ContentCheck>> {
    let servers =
        SchemaCheck::new(|| servers_schema().clone(), |real| lowercase_file_name(real) == ".mcp.json");
    vec![Arc::new(SettingsContentCheck { config_dir }), Arc::new(servers)]
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

#[derive(Debug)]
struct SettingsContentCheck {
    config_dir: Option<AbsPath>,
}

impl SettingsContentCheck {
    /// By name and folder, whatever their case: some file systems see no difference.
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
    fn check(&self, real: &AbsPath, content: &[u8]) -> Result<(), Vec<String>> {
        if !self.is_settings(real) {
            return Ok(());
        }
        let text = std::str::from_utf8(content).map_err(|_| vec!["it is not UTF-8 text".to_owned()])?;
        let node =
            SettingsNode::parse(text).map_err(|it| vec![format!("line {}: {}", it.line, it.message)])?;
        let wrong = check(&node, settings_check_schema()).wrong;
        if !wrong.is_empty() {
            return Err(wrong.into_iter().map(|(line, words)| format!("line {line}: {words}")).collect());
        }
        // The schema knows no rules; one that denies and cannot be read would stop everything.
        check_text(&lowercase_file_name(real), text)
            .map_err(|error| vec![format!("line {}: {} ({})", error.line, error.message, error.fix)])
    }
}

fn lowercase_file_name(path: &AbsPath) -> String {
    path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_leave_settings_that_cannot_be_read_is_told() {
        let checks = content_checks(AbsPath::new("/home/me/.config/toolgate").ok());
        let check = |path: &str, text: &str| {
            let path = AbsPath::new(path).unwrap();
            let wrong: Vec<String> =
                checks.iter().filter_map(|it| it.check(&path, text.as_bytes()).err()).flatten().collect();
            wrong.join("; ")
        };
        let fine = r#"{ "permissions": { "deny": ["Read(.env)"] } }"#;
        for (path, text, says) in [
            ("/w/.toolgate/settings.json", fine, ""),
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
            ("/w/settings.json", "no settings of ours", ""),
            ("/w/.mcp.json", r#"{ "mcpServers": { "a": { "command": "x", "args": [] } } }"#, ""),
            ("/w/.mcp.json", r#"{ "mcpServers": { "a": { "args": "x" } } }"#, "args"),
            ("/w/.mcp.json", "{", "no valid JSON"),
        ] {
            let said = check(path, text);
            assert!(
                if says.is_empty() { said.is_empty() } else { said.contains(says) },
                "{path} {text}: {said:?}"
            );
        }
    }
}
