//! Changes of permissions that a host sends with an answer: applied to the session, or written to the file they name.

use serde_json::Value;
use std::sync::OnceLock;
use toolgate::host::{PermissionUpdater, update_rules};
use toolgate::policy::RuleAction;
use toolgate::settings::grants::GrantFile;
use toolgate::{AbsPath, Mode, Toolgate};

/// Applies changes of permissions.
pub(super) struct HostPermissionUpdates {
    /// Set after the gate is built, because the approver that uses this is a part of it.
    toolgate: OnceLock<Toolgate>,
    /// Where grants are recorded.
    state_dir: Option<AbsPath>,
    /// Whether mode bypass may be set.
    allows_bypass: bool,
}

impl HostPermissionUpdates {
    /// Updates that are refused until [`HostPermissionUpdates::connect`].
    pub(super) fn new(state_dir: Option<AbsPath>, allows_bypass: bool) -> Self {
        Self { toolgate: OnceLock::new(), state_dir, allows_bypass }
    }

    /// Sets the gate that the updates are for.
    pub(super) fn connect(&self, toolgate: Toolgate) {
        let _ = self.toolgate.set(toolgate);
    }

    /// Changes the mode.
    pub(super) fn set_mode(&self, name: &str) -> Result<(), String> {
        let toolgate = self.toolgate.get().ok_or("the session has not begun")?;
        let mode: Mode = name.parse().map_err(|unknown| format!("{unknown}"))?;
        if mode == Mode::Bypass && !self.allows_bypass {
            return Err(
                "approval cannot be skipped for root, because root can change everything on this machine"
                    .to_owned(),
            );
        }
        toolgate.set_mode(mode);
        if toolgate.mode() != mode {
            return Err(format!("managed settings keep the mode at {}", toolgate.mode()));
        }
        Ok(())
    }

    /// Adds rules to the session, and to the file that they name.
    fn add_rules(&self, toolgate: &Toolgate, update: &Value, destination: &str) -> Result<(), String> {
        let rules = update_rules(update)?;
        let action = match update.get("behavior").and_then(Value::as_str) {
            Some("allow") => RuleAction::Allow,
            Some("ask") => RuleAction::Ask,
            Some("deny") => RuleAction::Deny,
            other => return Err(format!("unknown behavior `{}`", other.unwrap_or_default())),
        };
        let workspace = toolgate.session().workspace();
        if destination == "localSettings" {
            if action != RuleAction::Allow {
                return Err("only allow rules can be written to a settings file".to_owned());
            }
            let dir =
                self.state_dir.as_ref().ok_or("there is no state directory that could record the grant")?;
            let root = workspace.roots.first().unwrap_or(&workspace.cwd);
            GrantFile::in_dir(dir)
                .add_to(root, ".claude/settings.local.json", &rules)
                .map_err(|error| error.message)?;
        } else if !matches!(destination, "session" | "cliArg") {
            return Err(format!("rules cannot be written to `{destination}`; use localSettings or session"));
        }
        toolgate.gate().add_session_rules(action, &rules, &workspace.cwd);
        Ok(())
    }
}

impl PermissionUpdater for HostPermissionUpdates {
    /// Applies a permission update that the host sends with an approval. Unknown types are an error, so that a host
    /// does not believe that a rule is in effect.
    fn apply_update(&self, update: &Value) -> Result<(), String> {
        let toolgate = self.toolgate.get().ok_or("the session has not begun")?;
        let text = |key: &str| update.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "addRules" => self.add_rules(toolgate, update, text("destination")),
            "setMode" => self.set_mode(text("mode")),
            "removeRules" => {
                for rule in update_rules(update)? {
                    toolgate.gate().revoke(&rule);
                }
                Ok(())
            }
            other => Err(format!("`{other}` is not supported")),
        }
    }
}
