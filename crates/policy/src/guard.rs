//! Which files a running command may not touch, whatever directories it was granted.
//!
//! The analysis of a command line can be wrong, and a program that a rule allows does what it likes.
//! So the rules for files hold once more while a command runs: the sandbox's supervisor asks this about the real path
//! of what is opened, created, renamed or removed.

use crate::compile::CompiledPolicy;
use crate::facts::Workspace;
use crate::fold::fold_path;
use crate::protect::{ReadOrWrite, is_under, strip_root_prefix};
use crate::rule::ActionIndex;
use crate::rule::path::BaseDirectories;
use std::sync::Arc;
use toolgate_proto::protected_names::{GIT_DATA_NAMES, GIT_DATA_PREFIXES};
use toolgate_proto::secret_names::SYSTEM_CERTIFICATE_PATHS;
use toolgate_proto::{AbsPath, CommandRights};

/// The rules for files, for a command while it runs. Made by [`Policy::command_guard`](crate::Policy::command_guard).
#[derive(Debug, Clone)]
pub struct CommandGuard {
    compiled: Arc<CompiledPolicy>,
    scope: GuardScope,
}

impl CommandGuard {
    pub(crate) fn new(compiled: Arc<CompiledPolicy>, workspace: &Workspace, rights: &CommandRights) -> Self {
        Self { compiled, scope: GuardScope::new(workspace, rights) }
    }

    /// Whether the content at a real path is kept from the command.
    pub fn hides(&self, real: &AbsPath) -> bool {
        self.scope.hides(&self.compiled, real)
    }

    /// Whether what is at a real path, or would be, may not be created, changed, renamed or removed.
    /// What is kept from reading is: under another name it could be read.
    pub fn protects(&self, real: &AbsPath) -> bool {
        self.scope.protects(&self.compiled, real)
    }
}

/// Where the rules are seen from, and what was granted by name.
#[derive(Debug, Clone)]
pub(crate) struct GuardScope {
    workspace: Workspace,
    /// The roots, folded.
    roots: Vec<String>,
    /// For deny and ask rules.
    folded: BaseDirectories<'static>,
    /// For allow rules.
    exact: BaseDirectories<'static>,
    /// What was granted by name.
    named: Vec<AbsPath>,
    git_data: bool,
}

impl GuardScope {
    pub(crate) fn new(workspace: &Workspace, rights: &CommandRights) -> Self {
        let fold = |path: &AbsPath| fold_path(&path.to_string()).into_owned();
        let places = |form: &dyn Fn(&AbsPath) -> String| BaseDirectories {
            cwd: form(&workspace.cwd).into(),
            home: workspace.home.as_ref().map(|home| form(home).into()),
        };
        Self {
            workspace: workspace.clone(),
            roots: workspace.roots.iter().map(fold).collect(),
            folded: places(&fold),
            exact: places(&|path| path.to_string()),
            named: rights.named.clone(),
            git_data: rights.git_data,
        }
    }

    pub(crate) fn hides(&self, compiled: &CompiledPolicy, real: &AbsPath) -> bool {
        let text = real.as_path().to_string_lossy();
        let folded = fold_path(&text);
        let asked = || compiled.ask.reads.find(&folded, &self.folded).is_some();
        compiled.deny.reads.find(&folded, &self.folded).is_some()
            || (asked() || self.is_sensitive(compiled, &text, &folded)) && !self.is_named(real)
    }

    pub(crate) fn protects(&self, compiled: &CompiledPolicy, real: &AbsPath) -> bool {
        let text = real.as_path().to_string_lossy();
        let folded = fold_path(&text);
        let finds = |index: &ActionIndex| {
            index.reads.find(&folded, &self.folded).is_some()
                || index.edits.find(&folded, &self.folded).is_some()
        };
        if finds(&compiled.deny) {
            return true;
        }
        if self.is_named(real) {
            return false;
        }
        if finds(&compiled.ask) || self.is_sensitive(compiled, &text, &folded) {
            return true;
        }
        match self.git_data_at(&folded) {
            Some(is_data) => !is_data,
            // `HEAD` makes a directory a repository for git, whatever the directory is called.
            None => {
                real.file_name().is_some_and(|name| name == "HEAD")
                    || compiled.protection.protected_reason(&folded, &self.workspace).is_some()
            }
        }
    }

    /// For a path in a directory that folds to `.git`: whether it is data that this command may write.
    fn git_data_at(&self, folded: &str) -> Option<bool> {
        let inside = strip_root_prefix(folded, self.roots.iter().map(String::as_str));
        let mut names = inside.split('/').filter(|name| !name.is_empty());
        names.find(|name| name.split(':').next() == Some(".git"))?;
        let rest: Vec<&str> = names.collect();
        let Some(first) = rest.first().filter(|_| self.git_data) else { return Some(false) };
        let first = first.strip_suffix(".lock").or_else(|| first.strip_suffix(".new")).unwrap_or(first);
        // Objects of another repository would be shown as this one's.
        let alternates =
            rest.get(1) == Some(&"info") && rest.get(2).is_some_and(|name| name.contains("alternates"));
        // A list of references for servers without git, made anew when objects are packed.
        let listed =
            first == "info" && rest.len() == 2 && rest.get(1).is_some_and(|name| name.starts_with("refs"));
        let is_data = GIT_DATA_NAMES.contains(&first)
            || GIT_DATA_PREFIXES.iter().any(|prefix| first.starts_with(prefix))
            || listed;
        Some(is_data && !alternates && !rest.contains(&".git"))
    }

    fn is_named(&self, real: &AbsPath) -> bool {
        self.named.iter().any(|named| real.is_under(named))
    }

    fn is_sensitive(&self, compiled: &CompiledPolicy, text: &str, folded: &str) -> bool {
        let inside = strip_root_prefix(folded, self.roots.iter().map(String::as_str));
        compiled.protection.sensitive_reason(inside, ReadOrWrite::Read).is_some()
            && !is_system_certificate(folded)
            && compiled.sensitive_reads.find(text, &self.exact).is_none()
            && compiled.sensitive_edits.find(text, &self.exact).is_none()
    }
}

/// Whether a path (in folded text form) is one of the certificates that the system's programs trust: their names end as
/// those of keys do, and without them no connection is made. Where keys are kept beside them does not count.
fn is_system_certificate(folded: &str) -> bool {
    folded.ends_with(".pem") && SYSTEM_CERTIFICATE_PATHS.iter().any(|directory| is_under(folded, directory))
}
