//! Which files a search may list and quote.

use crate::compile::CompiledPolicy;
use crate::fold::{fold_name, fold_path};
use crate::protect::{ReadOrWrite, strip_root_prefix};
use crate::rule::path::BaseDirectories;
use std::borrow::Cow;
use std::sync::Arc;
use toolgate_proto::AbsPath;
use toolgate_proto::Workspace;

/// Filters the results of a search by the deny and ask rules for reading.
///
/// A search of a tree is judged as one read of its top directory, so a file below it that a rule denies or asks about
/// must not appear in the results. A caller that follows symlinks checks the symlink and its target.
#[derive(Debug, Clone)]
pub struct ReadFilter {
    /// The rules in force.
    compiled: Arc<CompiledPolicy>,
    /// The workspace roots, folded.
    roots: Vec<String>,
    /// The base directories of deny and ask patterns, folded.
    folded: BaseDirectories<'static>,
    /// The base directories of allow patterns, spelled exactly.
    exact: BaseDirectories<'static>,
}

impl ReadFilter {
    /// The filter for a workspace. Its directories are folded once, because a search asks about every file.
    pub(crate) fn new(compiled: Arc<CompiledPolicy>, workspace: &Workspace) -> Self {
        let fold = |path: &AbsPath| fold_path(&path.to_string()).into_owned().into();
        let folded = BaseDirectories { cwd: fold(&workspace.cwd), home: workspace.home.as_ref().map(fold) };
        let text = |path: &AbsPath| path.to_string().into();
        let exact = BaseDirectories { cwd: text(&workspace.cwd), home: workspace.home.as_ref().map(text) };
        let roots = workspace.roots.iter().map(|root| fold_path(&root.to_string()).into_owned()).collect();
        Self { compiled, roots, folded, exact }
    }

    /// Whether a deny or ask rule matches this path, so that it is not listed.
    pub fn is_hidden(&self, path: &AbsPath) -> bool {
        let path = path.to_lexical();
        let text = lossy_path_text(&path);
        let folded = fold_path(&text);
        self.compiled.deny.reads.find(&folded, &self.folded).is_some()
            || self.compiled.ask.reads.find(&folded, &self.folded).is_some()
    }

    /// Whether the content of this path may be a secret, so that it is listed but not quoted.
    pub fn is_sensitive(&self, path: &AbsPath) -> bool {
        let path = path.to_lexical();
        let text = lossy_path_text(&path);
        let folded = fold_path(&text);
        let below = strip_root_prefix(&folded, self.roots.iter().map(String::as_str));
        self.compiled.protection.sensitive_reason(below, ReadOrWrite::Read).is_some()
            && self.compiled.allow.sensitive_reads.find(&text, &self.exact).is_none()
    }

    /// Whether [`ReadFilter::is_sensitive_name`] is sufficient for the files of this directory: no name above them makes
    /// them sensitive.
    pub fn can_check_by_name(&self, directory: &AbsPath) -> bool {
        let directory = directory.to_lexical();
        let text = lossy_path_text(&directory);
        let folded = fold_path(&text);
        self.compiled
            .protection
            .is_neutral_directory(strip_root_prefix(&folded, self.roots.iter().map(String::as_str)))
    }

    /// Whether a file of this name may be sensitive, in a directory for which [`ReadFilter::can_check_by_name`] holds.
    /// `false` is certain; `true` needs [`ReadFilter::is_sensitive`], which also considers allow rules.
    pub fn is_sensitive_name(&self, name: &str) -> bool {
        self.compiled.protection.sensitive_reason(&fold_name(name), ReadOrWrite::Read).is_some()
    }
}

/// The path as text, with invalid UTF-8 replaced. `to_str` first: it is faster, and nearly every path is valid.
fn lossy_path_text(path: &AbsPath) -> Cow<'_, str> {
    let path = path.as_path();
    path.to_str().map_or_else(|| path.to_string_lossy(), Cow::Borrowed)
}
