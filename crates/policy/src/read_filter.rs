//! Which files a search may show.

use crate::compile::CompiledPolicy;
use crate::facts::Workspace;
use crate::fold::{fold_name, fold_path};
use crate::protect::{ReadOrWrite, strip_root_prefix};
use crate::rule::path::BaseDirectories;
use std::borrow::Cow;
use std::sync::Arc;
use toolgate_proto::AbsPath;

/// Drops what deny and ask rules for reading cover from the results of a search.
///
/// A search over a tree is judged as one read of its top; a file below that a rule keeps back must not turn up in
/// the results. A caller that follows links asks for the link and for its target.
#[derive(Debug, Clone)]
pub struct ReadFilter {
    compiled: Arc<CompiledPolicy>,
    /// The roots, folded.
    roots: Vec<String>,
    /// For deny and ask rules.
    places: BaseDirectories<'static>,
    /// For allow rules.
    exact: BaseDirectories<'static>,
}

impl ReadFilter {
    pub(crate) fn new(compiled: Arc<CompiledPolicy>, workspace: &Workspace) -> Self {
        let folded = |path: &AbsPath| fold_path(&path.to_string()).into_owned().into();
        let places =
            BaseDirectories { cwd: folded(&workspace.cwd), home: workspace.home.as_ref().map(folded) };
        let plain = |path: &AbsPath| path.to_string().into();
        let exact = BaseDirectories { cwd: plain(&workspace.cwd), home: workspace.home.as_ref().map(plain) };
        let roots = workspace.roots.iter().map(|root| fold_path(&root.to_string()).into_owned()).collect();
        Self { compiled, roots, places, exact }
    }

    /// Whether a rule keeps this path back.
    pub fn is_hidden(&self, path: &AbsPath) -> bool {
        let path = path.to_lexical();
        let text = lossy_path_text(&path);
        let folded = fold_path(&text);
        self.compiled.deny.reads.find(&folded, &self.places).is_some()
            || self.compiled.ask.reads.find(&folded, &self.places).is_some()
    }

    /// Whether the content of this path may be a secret: it may be listed, not quoted.
    pub fn is_sensitive(&self, path: &AbsPath) -> bool {
        let path = path.to_lexical();
        let text = lossy_path_text(&path);
        let folded = fold_path(&text);
        let below = strip_root_prefix(&folded, self.roots.iter().map(String::as_str));
        self.compiled.protection.sensitive_reason(below, ReadOrWrite::Read).is_some()
            && self.compiled.sensitive_reads.find(&text, &self.exact).is_none()
    }

    /// Whether the files of this directory can be told by their names ([`ReadFilter::is_sensitive_name`]).
    pub fn can_check_by_name(&self, directory: &AbsPath) -> bool {
        let directory = directory.to_lexical();
        let text = lossy_path_text(&directory);
        let folded = fold_path(&text);
        self.compiled
            .protection
            .is_neutral_directory(strip_root_prefix(&folded, self.roots.iter().map(String::as_str)))
    }

    /// Whether a file of this name may be sensitive, in a directory where names tell. Where not, it is not.
    pub fn is_sensitive_name(&self, name: &str) -> bool {
        self.compiled.protection.sensitive_reason(&fold_name(name), ReadOrWrite::Read).is_some()
    }
}

/// As text; what is no UTF-8 is replaced. Checking first is faster than replacing, and nearly all are fine.
fn lossy_path_text(path: &AbsPath) -> Cow<'_, str> {
    let path = path.as_path();
    path.to_str().map_or_else(|| path.to_string_lossy(), Cow::Borrowed)
}
