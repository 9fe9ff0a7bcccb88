//! Rules that the user granted permanently at a prompt. They are written to the project's local settings, and recorded
//! in the state directory.
//!
//! The local settings are in the workspace, where an agent or a `git pull` can change them. Without trust in the
//! project, a rule there is active only if the record outside the workspace says that the user granted this rule in
//! this file.

use super::load::{check_text, read};
use super::node::{SettingsNode, SettingsNodeKind};
use super::trust::TrustStore;
use super::{SettingsError, state_file};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use toolgate_gate::GrantStore;
use toolgate_proto::{AbsPath, Workspace};

/// A rule that the user granted permanently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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

/// The list of `permissions` whose rules are recorded.
pub const ALLOW_LIST: &str = "allow";

/// How a list in a settings file changes.
#[derive(Debug, Clone, Copy)]
pub enum ListChange<'a> {
    /// These are in it too.
    Add(&'a [String]),
    /// These are in it, and nothing else.
    Replace(&'a [String]),
    /// These are no longer in it.
    Remove(&'a [String]),
}

impl ListChange<'_> {
    /// What must be in the list.
    fn wanted(&self) -> &[String] {
        match self {
            Self::Add(items) | Self::Replace(items) => items,
            Self::Remove(_) => &[],
        }
    }

    /// Whether an item that is in the list stays there.
    fn keeps(&self, item: &String) -> bool {
        match self {
            Self::Add(_) => true,
            Self::Replace(items) => items.contains(item),
            Self::Remove(items) => !items.contains(item),
        }
    }
}

/// The record of granted rules in the state directory.
///
/// ```
/// use toolgate::AbsPath;
/// use toolgate::settings::grants::GrantFile;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let base = dir.path().canonicalize().unwrap();
/// # let project = AbsPath::new(base.join("project")).unwrap();
/// # let state_dir = AbsPath::new(base.join("state")).unwrap();
/// # std::fs::create_dir(base.join("project")).unwrap();
/// let grants = GrantFile::in_dir(&state_dir);
/// let local_settings = grants.add(&project, &["Bash(npm test)".to_owned()])?;
/// let text = std::fs::read_to_string(local_settings.as_path()).unwrap();
/// assert!(text.contains("Bash(npm test)"));
///
/// assert!(grants.revoke(&project, "Bash(npm test)")?);
/// assert!(grants.list_for_workspace(&project)?.is_empty());
/// # Ok::<(), toolgate::settings::SettingsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct GrantFile {
    /// The file of the record.
    pub(super) file: AbsPath,
}

impl GrantFile {
    /// The record in a state directory.
    pub fn in_dir(state_dir: &AbsPath) -> Self {
        Self { file: state_dir.join("grants.json") }
    }

    /// The grants of all workspaces.
    pub fn list(&self) -> Result<Vec<SavedGrant>, SettingsError> {
        state_file::load_state_file(&self.file)
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

    /// Grants rules in a workspace: records them and writes them to its local settings. Returns that file.
    pub fn add(&self, root: &AbsPath, rules: &[String]) -> Result<AbsPath, SettingsError> {
        self.add_to(root, ".toolgate/settings.local.json", rules)
    }

    /// The same, in another file of local settings, given relative to the workspace.
    pub fn add_to(&self, root: &AbsPath, file: &str, rules: &[String]) -> Result<AbsPath, SettingsError> {
        self.change_list(root, file, ALLOW_LIST, ListChange::Add(rules))
    }

    /// Changes a list of `permissions` (`allow`, `ask`, `deny` or `additionalDirectories`) in a file of the project's
    /// settings, given relative to the workspace. The record follows: it has the allow rules that were added, and not
    /// those that were removed. Returns the file.
    pub fn change_list(
        &self,
        root: &AbsPath,
        file: &str,
        list_name: &str,
        change: ListChange<'_>,
    ) -> Result<AbsPath, SettingsError> {
        let root = toolgate_files::resolve(root).real;
        let file = root.join(file);
        // A symlink in the workspace must not redirect the write.
        if toolgate_files::resolve(&file).real != file {
            return Err(grant_error(&file, "the rule was not saved, because the path contains a symlink"));
        }
        // The lock covers both files, so that concurrent grants do not overwrite each other's rule.
        state_file::try_update_state_file(&self.file, |list: &mut Vec<SavedGrant>| {
            let before = read(&file)?;
            let text = edit_list(&file, before.as_deref().unwrap_or_default(), list_name, change)?;
            if list_name == ALLOW_LIST {
                let is_here = |grant: &SavedGrant| grant.root == root && grant.file == file;
                list.retain(|grant| !is_here(grant) || change.keeps(&grant.rule));
                let at = toolgate_files::now_millis();
                // Also a rule that was in the file before: without the record it had no effect.
                for rule in change.wanted() {
                    if !list.iter().any(|grant| is_here(grant) && grant.rule == *rule) {
                        let rule = rule.clone();
                        list.push(SavedGrant { root: root.clone(), file: file.clone(), rule, at });
                    }
                }
            }
            self.write(&root, &file, before.as_deref(), &text)
        })?;
        Ok(file)
    }

    /// Changes a list of `permissions` in the user's own settings file.
    pub fn change_user_list(
        &self,
        file: &AbsPath,
        list_name: &str,
        change: ListChange<'_>,
    ) -> Result<(), SettingsError> {
        // The lock of the record serves all settings files.
        state_file::try_update_state_file(&self.file, |_: &mut Vec<SavedGrant>| {
            let before = read(file)?;
            let text = edit_list(file, before.as_deref().unwrap_or_default(), list_name, change)?;
            toolgate_files::replace_state_file(file, text.as_bytes())
                .map_err(|problem| grant_error(file, &format!("cannot write the file: {problem}")))
        })
    }

    /// Revokes a rule in the record and in the settings file. False if it was not granted.
    pub fn revoke(&self, root: &AbsPath, rule: &str) -> Result<bool, SettingsError> {
        let root = toolgate_files::resolve(root).real;
        state_file::try_update_state_file(&self.file, |list: &mut Vec<SavedGrant>| {
            let (revoked, kept): (Vec<SavedGrant>, Vec<SavedGrant>) =
                std::mem::take(list).into_iter().partition(|grant| grant.root == root && grant.rule == rule);
            *list = kept;
            for grant in &revoked {
                if let Some(before) = read(&grant.file)? {
                    let removed = [rule.to_owned()];
                    let text = edit_list(&grant.file, &before, ALLOW_LIST, ListChange::Remove(&removed))?;
                    self.write(&root, &grant.file, Some(&before), &text)?;
                }
            }
            Ok(!revoked.is_empty())
        })
    }

    /// Writes a project's local settings. If the project is trusted, it stays trusted.
    fn write(
        &self,
        root: &AbsPath,
        file: &AbsPath,
        before: Option<&str>,
        after: &str,
    ) -> Result<(), SettingsError> {
        toolgate_files::replace_state_file(file, after.as_bytes())
            .map_err(|problem| grant_error(file, &format!("cannot write the file: {problem}")))?;
        match self.file.parent() {
            Some(dir) => TrustStore::in_dir(&dir).update_after_own_write(root, file, before, after),
            None => Ok(()),
        }
    }
}

/// The text with a changed list of `permissions`. Comments, order and formatting of the rest are kept.
fn edit_list(
    file: &AbsPath,
    text: &str,
    list_name: &str,
    change: ListChange<'_>,
) -> Result<String, SettingsError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let name = file.to_string();
    check_text(&name, text)?;
    let node = SettingsNode::parse(text).map_err(|unreadable| grant_error(file, &unreadable.message))?;
    let mut items: Vec<String> = match node.nearest_node(&["permissions", list_name]) {
        SettingsNode { kind: SettingsNodeKind::List(items), .. } => {
            items.iter().filter_map(|item| item.value().as_str().map(str::to_owned)).collect()
        }
        SettingsNode { kind: SettingsNodeKind::Scalar(_) | SettingsNodeKind::Object(_), .. } => Vec::new(),
    };
    let before = items.clone();
    items.retain(|item| change.keeps(item));
    for item in change.wanted() {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    let tree = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| grant_error(file, &error.to_string()))?;
    let permissions = tree.object_value_or_set().object_value_or_set("permissions");
    let list = permissions.array_value_or_set(list_name);
    list.ensure_multiline();
    for element in list.elements() {
        let item = element.to_serde_value().and_then(|value| value.as_str().map(str::to_owned));
        if item.is_some_and(|item| !items.contains(&item)) {
            element.remove();
        }
    }
    for item in items.iter().filter(|item| !before.contains(item)) {
        list.append(CstInputValue::String(item.clone()));
    }
    let text = tree.to_string();
    // Parse the result: a rule that is lost or changed by the edit must not be written.
    let back = SettingsNode::parse(&text).map_err(|unreadable| grant_error(file, &unreadable.message))?;
    let read_back = back.nearest_node(&["permissions", list_name]).value();
    let expected: Value = items.into_iter().map(Value::String).collect();
    if read_back != expected {
        return Err(grant_error(
            file,
            "the rule could not be added without changing other parts of the file",
        ));
    }
    Ok(text)
}

/// The error for a settings file that a grant cannot be written to.
fn grant_error(file: &AbsPath, message: &str) -> SettingsError {
    SettingsError {
        file: file.to_string(),
        line: 1,
        message: message.to_owned(),
        fix: "edit the file by hand".to_owned(),
    }
}

/// The gate's store for permanent grants.
#[derive(Debug)]
pub(crate) struct LocalGrantStore {
    /// The record and the settings file.
    store: GrantFile,
    /// Serializes writes of this process; the file lock serializes those of other processes.
    write_lock: Mutex<()>,
}

impl LocalGrantStore {
    /// A store in a state directory.
    pub(crate) fn in_dir(state_dir: &AbsPath) -> Self {
        Self { store: GrantFile::in_dir(state_dir), write_lock: Mutex::new(()) }
    }
}

impl GrantStore for LocalGrantStore {
    /// Writes the rules for the first workspace root and returns the path of the file for the message to the user.
    fn write_rules(&self, rules: &[String], workspace: &Workspace) -> Result<String, String> {
        let _lock = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let root = workspace.roots.first().unwrap_or(&workspace.cwd);
        self.store.add(root, rules).map(|file| file.to_string()).map_err(|error| error.message)
    }
}
