//! Changes of permissions that a host sends with an answer: applied to the session, or written to the file they name.

use super::super::context::CliContext;
use serde_json::Value;
use std::sync::OnceLock;
use toolgate::host::{PermissionUpdater, update_rules};
use toolgate::policy::RuleAction;
use toolgate::settings::grants::{GrantFile, ListChange};
use toolgate::{AbsPath, EntryKind, Mode, Toolgate};
use toolgate_policy::{ProblemSeverity, RuleProblem};

/// Applies changes of permissions.
pub(super) struct HostPermissionUpdates {
    /// Set after the gate is built, because the approver that uses this is a part of it.
    toolgate: OnceLock<Toolgate>,
    /// Where grants are recorded.
    state_dir: Option<AbsPath>,
    /// Where the user's own settings are.
    home: Option<AbsPath>,
    /// Whether mode bypass may be set.
    allows_bypass: bool,
}

impl HostPermissionUpdates {
    /// Updates that are refused until [`HostPermissionUpdates::connect`].
    pub(super) fn new(context: &CliContext) -> Self {
        Self {
            toolgate: OnceLock::new(),
            state_dir: context.ambient.state_dir.clone(),
            home: context.ambient.home.clone(),
            allows_bypass: context.may_bypass(),
        }
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

    /// Changes rules in the session, and in the file that they name.
    fn change_rules(
        &self,
        toolgate: &Toolgate,
        update: &Value,
        change: for<'a> fn(&'a [String]) -> ListChange<'a>,
    ) -> Result<(), String> {
        let rules = update_rules(update)?;
        let (action, list) = match text_of(update, "behavior") {
            "allow" => (RuleAction::Allow, "allow"),
            "ask" => (RuleAction::Ask, "ask"),
            "deny" => (RuleAction::Deny, "deny"),
            other => return Err(format!("unknown behavior `{other}`")),
        };
        let (change, destination) = (change(&rules), text_of(update, "destination"));
        let gate = toolgate.gate();
        let is_named = |rule: &str| rules.iter().any(|named| named == rule);
        if let ListChange::Remove(_) = change {
            self.write_list(toolgate, destination, list, change)?;
            let is_of_session = matches!(destination, "session" | "cliArg");
            return match gate.remove_session_rules(action, is_named) || !is_of_session {
                true => Ok(()),
                false => Err("there is no such rule in this session".to_owned()),
            };
        }
        let problems = gate.add_session_rules(action, &rules, &toolgate.session().workspace().cwd);
        let is_refused =
            |problem: &&RuleProblem| problem.weight == ProblemSeverity::Fatal && is_named(&problem.rule.text);
        let refused = problems.iter().find(is_refused).map(|problem| Err(problem.to_string()));
        let kept = refused.unwrap_or_else(|| self.write_list(toolgate, destination, list, change));
        match (&kept, change) {
            // What cannot be kept does not hold either: the host is told that nothing changed.
            (Err(_), _) => {
                gate.remove_session_rules(action, is_named);
            }
            (Ok(()), ListChange::Replace(_)) => {
                gate.remove_session_rules(action, |rule| !is_named(rule));
            }
            (Ok(()), _) => {}
        }
        kept
    }

    /// Adds directories to the workspace, or takes them out of it, and out of the file that the update names.
    fn change_directories(&self, toolgate: &Toolgate, update: &Value, adds: bool) -> Result<(), String> {
        let named = update.get("directories").and_then(Value::as_array).cloned().unwrap_or_default();
        let named: Vec<String> = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let session = toolgate.session();
        let cwd = session.workspace().cwd.clone();
        let mut found = Vec::new();
        for name in &named {
            let place = toolgate_files::resolve(&cwd.join(name));
            if adds && place.kind != EntryKind::Directory {
                return Err(format!("`{name}` is not a directory"));
            }
            found.push(place.real);
        }
        let change = if adds { ListChange::Add(&named) } else { ListChange::Remove(&named) };
        self.write_list(toolgate, text_of(update, "destination"), "additionalDirectories", change)?;
        let taken: Vec<&AbsPath> = match adds {
            true => {
                found.iter().for_each(|dir| session.add_root(dir));
                Vec::new()
            }
            false => found.iter().filter(|dir| !session.remove_root(dir)).collect(),
        };
        match taken.first() {
            Some(dir) => Err(format!("`{dir}` is not one of the added directories")),
            None => Ok(()),
        }
    }

    /// Changes a list in the settings file that an update names; nothing for one of the session.
    fn write_list(
        &self,
        toolgate: &Toolgate,
        destination: &str,
        list: &str,
        change: ListChange<'_>,
    ) -> Result<(), String> {
        let workspace = toolgate.session().workspace();
        let root = workspace.roots.first().unwrap_or(&workspace.cwd);
        let files = || {
            let dir =
                self.state_dir.as_ref().ok_or("there is no state directory that could record the grant")?;
            Ok::<_, String>(GrantFile::in_dir(dir))
        };
        let written = match destination {
            "session" | "cliArg" => return Ok(()),
            "localSettings" => {
                files()?.change_list(root, ".claude/settings.local.json", list, change).map(drop)
            }
            "projectSettings" => files()?.change_list(root, ".claude/settings.json", list, change).map(drop),
            "userSettings" => {
                let home = self.home.as_ref().ok_or("there is no home directory with settings")?;
                files()?.change_user_list(&home.join(".claude/settings.json"), list, change)
            }
            other => return Err(format!("rules cannot be written to `{other}`")),
        };
        written.map_err(|error| error.message)
    }
}

/// A field of an update.
fn text_of<'a>(update: &'a Value, key: &str) -> &'a str {
    update.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl PermissionUpdater for HostPermissionUpdates {
    /// Applies a permission update that the host sends with an approval. Unknown types are an error, so that a host
    /// does not believe that a rule is in effect.
    fn apply_update(&self, update: &Value) -> Result<(), String> {
        let toolgate = self.toolgate.get().ok_or("the session has not begun")?;
        match text_of(update, "type") {
            "addRules" => self.change_rules(toolgate, update, |rules| ListChange::Add(rules)),
            "replaceRules" => self.change_rules(toolgate, update, |rules| ListChange::Replace(rules)),
            "removeRules" => self.change_rules(toolgate, update, |rules| ListChange::Remove(rules)),
            "addDirectories" => self.change_directories(toolgate, update, true),
            "removeDirectories" => self.change_directories(toolgate, update, false),
            "setMode" => self.set_mode(text_of(update, "mode")),
            other => Err(format!("`{other}` is not supported")),
        }
    }
}
