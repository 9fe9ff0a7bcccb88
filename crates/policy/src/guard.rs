//! The rules for files that apply while a command runs.
//!
//! The analysis of a command line can be wrong, and a program that a rule allows may open anything. So the rules are
//! applied a second time, to real paths: the seccomp notification handler asks [`CommandGuard`] about every path that
//! the command opens, creates, renames or removes.

use crate::compile::CompiledPolicy;
use crate::fold::fold_path;
use crate::protect::{ReadOrWrite, is_under, strip_root_prefix};
use crate::rule::ActionIndex;
use crate::rule::path::BaseDirectories;
use std::sync::Arc;
use toolgate_proto::protected_names::{GIT_DATA_NAMES, GIT_DATA_PREFIXES};
use toolgate_proto::secret_names::SYSTEM_CERTIFICATE_PATHS;
use toolgate_proto::{AbsPath, CommandRights, Workspace};

/// Answers which real paths a running command may not access, whatever directories its rights include. Made by
/// [`Policy::command_guard`](crate::Policy::command_guard).
#[derive(Debug, Clone)]
pub struct CommandGuard {
    /// The rules in force when the command was started.
    compiled: Arc<CompiledPolicy>,
    /// The workspace and the rights of the command.
    scope: GuardScope,
}

impl CommandGuard {
    pub(crate) fn new(compiled: Arc<CompiledPolicy>, workspace: &Workspace, rights: &CommandRights) -> Self {
        Self { compiled, scope: GuardScope::new(workspace, rights) }
    }

    /// Whether the content at a real path is withheld from the command.
    pub fn hides(&self, real: &AbsPath) -> bool {
        self.scope.hides(&self.compiled, real)
    }

    /// Whether the entry at a real path may not be created, changed, renamed or removed. This includes every path that
    /// is hidden: renamed, it could be read.
    pub fn protects(&self, real: &AbsPath) -> bool {
        self.scope.protects(&self.compiled, real)
    }
}

/// The workspace that patterns are relative to, and the exceptions that the rights contain.
#[derive(Debug, Clone)]
pub(crate) struct GuardScope {
    /// For names that are protected outside the workspace only.
    workspace: Workspace,
    /// The workspace roots, folded.
    roots: Vec<String>,
    /// The base directories of deny and ask patterns, folded.
    folded: BaseDirectories<'static>,
    /// The base directories of allow patterns, spelled exactly.
    exact: BaseDirectories<'static>,
    /// Paths that the command line names: ask rules and default protection do not apply to them, deny rules do.
    named: Vec<AbsPath>,
    /// The command may write [`GIT_DATA`].
    git_data: bool,
}

impl GuardScope {
    pub(crate) fn new(workspace: &Workspace, rights: &CommandRights) -> Self {
        let fold = |path: &AbsPath| fold_path(&path.to_string()).into_owned();
        let bases = |form: &dyn Fn(&AbsPath) -> String| BaseDirectories {
            cwd: form(&workspace.cwd).into(),
            home: workspace.home.as_ref().map(|home| form(home).into()),
        };
        Self {
            workspace: workspace.clone(),
            roots: workspace.roots.iter().map(fold).collect(),
            folded: bases(&fold),
            exact: bases(&|path| path.to_string()),
            named: rights.named.clone(),
            git_data: rights.git_data,
        }
    }

    /// See [`CommandGuard::hides`].
    pub(crate) fn hides(&self, compiled: &CompiledPolicy, real: &AbsPath) -> bool {
        let text = real.as_path().to_string_lossy();
        let folded = fold_path(&text);
        let is_asked = || compiled.ask.reads.find(&folded, &self.folded).is_some();
        compiled.deny.reads.find(&folded, &self.folded).is_some()
            || (is_asked() || self.is_sensitive(compiled, &text, &folded)) && !self.is_named(real)
    }

    /// See [`CommandGuard::protects`].
    pub(crate) fn protects(&self, compiled: &CompiledPolicy, real: &AbsPath) -> bool {
        let text = real.as_path().to_string_lossy();
        let folded = fold_path(&text);
        let matches = |index: &ActionIndex| {
            index.reads.find(&folded, &self.folded).is_some()
                || index.edits.find(&folded, &self.folded).is_some()
        };
        if matches(&compiled.deny) {
            return true;
        }
        if self.is_named(real) {
            return false;
        }
        if matches(&compiled.ask) || self.is_sensitive(compiled, &text, &folded) {
            return true;
        }
        match self.git_data_at(&folded) {
            Some(is_data) => !is_data,
            // A file `HEAD` makes git treat its directory as a repository, whatever the directory is called.
            None => {
                real.file_name().is_some_and(|name| name == "HEAD")
                    || compiled.protection.protected_reason(&folded, &self.workspace).is_some()
            }
        }
    }

    /// For a path below a directory whose folded name is `.git`: whether it is data that this command may write.
    /// `None` for every other path.
    fn git_data_at(&self, folded: &str) -> Option<bool> {
        let inside = strip_root_prefix(folded, self.roots.iter().map(String::as_str));
        let mut names = inside.split('/').filter(|name| !name.is_empty());
        names.find(|name| name.split(':').next() == Some(".git"))?;
        let rest: Vec<&str> = names.collect();
        let Some(first) = rest.first().filter(|_| self.git_data) else { return Some(false) };
        let first = first.strip_suffix(".lock").or_else(|| first.strip_suffix(".new")).unwrap_or(first);
        // `objects/info/alternates` would make git show objects of another repository.
        let is_alternates =
            rest.get(1) == Some(&"info") && rest.get(2).is_some_and(|name| name.contains("alternates"));
        // `info/refs` is a list of references that git writes when it packs objects.
        let is_reference_list =
            first == "info" && rest.len() == 2 && rest.get(1).is_some_and(|name| name.starts_with("refs"));
        let is_data = GIT_DATA_NAMES.contains(&first)
            || GIT_DATA_PREFIXES.iter().any(|prefix| first.starts_with(prefix))
            || is_reference_list;
        Some(is_data && !is_alternates && !rest.contains(&".git"))
    }

    /// Whether the command line names this path or a directory above it.
    fn is_named(&self, real: &AbsPath) -> bool {
        self.named.iter().any(|named| real.is_under(named))
    }

    /// Whether the path is sensitive, and no allow rule names it.
    fn is_sensitive(&self, compiled: &CompiledPolicy, text: &str, folded: &str) -> bool {
        let inside = strip_root_prefix(folded, self.roots.iter().map(String::as_str));
        compiled.protection.sensitive_reason(inside, ReadOrWrite::Read).is_some()
            && !is_system_certificate(folded)
            && compiled.allow.sensitive_reads.find(text, &self.exact).is_none()
            && compiled.allow.sensitive_edits.find(text, &self.exact).is_none()
    }
}

/// Whether a folded path is one of the system's CA certificates. They have the extension of private keys, and no TLS
/// connection works without them. Directories that also contain keys are not listed.
fn is_system_certificate(folded: &str) -> bool {
    folded.ends_with(".pem") && SYSTEM_CERTIFICATE_PATHS.iter().any(|directory| is_under(folded, directory))
}
