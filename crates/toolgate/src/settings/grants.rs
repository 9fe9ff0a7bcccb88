//! Rules that a person granted for good: written into the project's local settings, and remembered as theirs.
//!
//! The local file lies in the workspace, where an agent or a pull could write to it.
//! So a rule there counts without trust only if toolgate itself remembers, outside the workspace, that a person
//! granted that very rule in that very file.

use super::document::{SettingsNode, SettingsNodeKind};
use super::locate::{check_text, read};
use super::trust::TrustStore;
use super::{SettingsError, store};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use toolgate_gate::GrantStore;
use toolgate_proto::{AbsPath, Workspace};

/// A rule that a person granted for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedGrant {
    /// The workspace's real path.
    pub root: AbsPath,
    /// The settings file that holds the rule.
    pub file: AbsPath,
    /// The allow rule.
    pub rule: String,
    /// When: milliseconds since 1970, UTC.
    pub at: u64,
}

/// Where grants are remembered.
#[derive(Debug, Clone)]
pub struct GrantFile {
    pub(super) file: AbsPath,
}

impl GrantFile {
    /// The store in a state directory.
    pub fn in_dir(state_dir: &AbsPath) -> Self {
        Self { file: state_dir.join("grants.json") }
    }

    /// Every grant.
    pub fn list(&self) -> Result<Vec<SavedGrant>, SettingsError> {
        store::load(&self.file)
    }

    /// The grants of one workspace.
    pub fn list_for_workspace(&self, root: &AbsPath) -> Result<Vec<SavedGrant>, SettingsError> {
        let list = self.list()?;
        if list.is_empty() {
            return Ok(list);
        }
        let real = toolgate_files::resolve(root).real;
        Ok(list.into_iter().filter(|grant| grant.root == real).collect())
    }

    /// Grants rules in a workspace: remembers them, then writes them into its local settings. Says where.
    pub fn add(&self, root: &AbsPath, rules: &[String]) -> Result<AbsPath, SettingsError> {
        let root = toolgate_files::resolve(root).real;
        let file = root.join(".toolgate/settings.local.json");
        // A link in the workspace must not lead the write elsewhere.
        if toolgate_files::resolve(&file).real != file {
            return Err(grant_error(&file, "it lies behind a link, so nothing is written there"));
        }
        // The lock of the store is held for both: two that grant at once must not overwrite each other's rule.
        store::update_with(&self.file, |list: &mut Vec<SavedGrant>| {
            let before = read(&file)?;
            let text = edit_allow_rules(&file, before.as_deref().unwrap_or_default(), |allow| {
                for rule in rules {
                    if !allow.contains(rule) {
                        allow.push(rule.clone());
                    }
                }
            })?;
            let at = toolgate_files::now_millis();
            for rule in rules {
                let known =
                    |grant: &SavedGrant| grant.root == root && grant.file == file && grant.rule == *rule;
                if !list.iter().any(known) {
                    list.push(SavedGrant { root: root.clone(), file: file.clone(), rule: rule.clone(), at });
                }
            }
            self.write(&root, &file, before.as_deref(), &text)
        })?;
        Ok(file)
    }

    /// Takes back a rule: out of the store and out of the file. False if it was never granted.
    pub fn revoke(&self, root: &AbsPath, rule: &str) -> Result<bool, SettingsError> {
        let root = toolgate_files::resolve(root).real;
        store::update_with(&self.file, |list: &mut Vec<SavedGrant>| {
            let (revoked, kept): (Vec<SavedGrant>, Vec<SavedGrant>) =
                std::mem::take(list).into_iter().partition(|grant| grant.root == root && grant.rule == rule);
            *list = kept;
            for grant in &revoked {
                if let Some(before) = read(&grant.file)? {
                    let text =
                        edit_allow_rules(&grant.file, &before, |allow| allow.retain(|kept| kept != rule))?;
                    self.write(&root, &grant.file, Some(&before), &text)?;
                }
            }
            Ok(!revoked.is_empty())
        })
    }

    /// Writes a project's local settings. Where the project is trusted as it was, it stays so.
    fn write(
        &self,
        root: &AbsPath,
        file: &AbsPath,
        before: Option<&str>,
        after: &str,
    ) -> Result<(), SettingsError> {
        toolgate_files::replace_state_file(file, after.as_bytes())
            .map_err(|problem| grant_error(file, &format!("it cannot be written: {problem}")))?;
        match self.file.parent() {
            Some(dir) => TrustStore::in_dir(&dir).update_after_own_write(root, file, before, after),
            None => Ok(()),
        }
    }
}

/// The text with its list of allow rules changed; comments and everything else stay as they are.
fn edit_allow_rules(
    file: &AbsPath,
    text: &str,
    change: impl FnOnce(&mut Vec<String>),
) -> Result<String, SettingsError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let name = file.to_string();
    check_text(&name, text)?;
    let node = SettingsNode::parse(text).map_err(|unreadable| grant_error(file, &unreadable.message))?;
    let mut rules: Vec<String> = match node.nearest_node(&["permissions", "allow"]) {
        SettingsNode { kind: SettingsNodeKind::List(items), .. } => {
            items.iter().filter_map(|item| item.value().as_str().map(str::to_owned)).collect()
        }
        SettingsNode { kind: SettingsNodeKind::Scalar(_) | SettingsNodeKind::Object(_), .. } => Vec::new(),
    };
    let before = rules.clone();
    change(&mut rules);
    let tree = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| grant_error(file, &error.to_string()))?;
    let permissions = tree.object_value_or_set().object_value_or_set("permissions");
    let allow = permissions.array_value_or_set("allow");
    allow.ensure_multiline();
    for element in allow.elements() {
        let rule = element.to_serde_value().and_then(|value| value.as_str().map(str::to_owned));
        if rule.is_some_and(|rule| !rules.contains(&rule)) {
            element.remove();
        }
    }
    for rule in rules.iter().filter(|rule| !before.contains(rule)) {
        allow.append(CstInputValue::String(rule.clone()));
    }
    let text = tree.to_string();
    // What is written must read back as what was meant.
    let back = SettingsNode::parse(&text).map_err(|unreadable| grant_error(file, &unreadable.message))?;
    let read_back = back.nearest_node(&["permissions", "allow"]).value();
    let meant: Value = rules.into_iter().map(Value::String).collect();
    if read_back != meant {
        return Err(grant_error(file, "it could not be changed without changing more than the rule"));
    }
    Ok(text)
}

fn grant_error(file: &AbsPath, message: &str) -> SettingsError {
    SettingsError {
        file: file.to_string(),
        line: 1,
        message: message.to_owned(),
        fix: "add the rule by hand".to_owned(),
    }
}

/// Keeps what a person grants at a prompt.
#[derive(Debug)]
pub(crate) struct LocalGrantStore {
    store: GrantFile,
    /// One at a time: two answers at once must not overwrite each other's rule.
    write_lock: Mutex<()>,
}

impl LocalGrantStore {
    pub(crate) fn in_dir(state_dir: &AbsPath) -> Self {
        Self { store: GrantFile::in_dir(state_dir), write_lock: Mutex::new(()) }
    }
}

impl GrantStore for LocalGrantStore {
    fn write_rules(&self, rules: &[String], workspace: &Workspace) -> Result<String, String> {
        let _turn = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let root = workspace.roots.first().unwrap_or(&workspace.cwd);
        self.store.add(root, rules).map(|file| file.to_string()).map_err(|error| error.message)
    }
}
