//! Removals that nobody may approve by rule or mode: what would be gone is more than a command's business.

use super::dirs::Dirs;
use super::expand::Arg;
use crate::facts::Workspace;
use toolgate_proto::AbsPath;

/// Directories that hold the system; nothing below them is removed unasked, unless the workspace itself is there.
const SYSTEM: &[&str] = &[
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr", "System", "Library",
    "Windows",
];

/// Whether removing what a word names would take a root, home, working, parent, system or repository directory away.
pub(super) fn is_critical(arg: &Arg, dirs: &Dirs, start: &AbsPath, workspace: &Workspace) -> bool {
    // What is live may be empty: `"$dir"/*` is then `/*`.
    let text = arg.emptied();
    let everything = text.rsplit('/').next().is_some_and(|last| {
        !last.is_empty()
            && last.chars().all(|character| "*.?".contains(character))
            && last.contains(['*', '?'])
    });
    let named = if everything {
        text.rsplit_once('/').map_or(".", |(head, _)| if head.is_empty() { "/" } else { head })
    } else {
        text
    };
    if named.is_empty() {
        return false;
    }
    let from = if arg.tilde {
        match &workspace.home {
            Some(home) => vec![home.join(named.trim_start_matches('~').trim_start_matches('/'))],
            None => return true,
        }
    } else if named.starts_with('/') {
        AbsPath::new(named).into_iter().collect()
    } else if dirs.is_unknown() {
        // In a directory that nobody knows, everything may be anything.
        return everything || named.split('/').all(|component| matches!(component, "." | ".." | ""));
    } else {
        dirs.all().iter().map(|directory| directory.join(named)).collect()
    };
    from.iter().map(AbsPath::lexical).any(|path| holds_too_much(&path, start, workspace))
}

pub(super) fn holds_too_much(path: &AbsPath, start: &AbsPath, workspace: &Workspace) -> bool {
    let kept = [start, &workspace.cwd].into_iter().chain(&workspace.roots).chain(&workspace.home);
    if kept.clone().any(|directory| directory.is_under(path)) {
        return true;
    }
    let root = AbsPath::root();
    if path.parent().is_none_or(|parent| parent == root) {
        return true;
    }
    if path.file_name().is_some_and(|name| name == ".git") {
        return true;
    }
    let in_workspace = workspace.roots.iter().chain([&workspace.cwd]).any(|root| path.is_under(root));
    !in_workspace && SYSTEM.iter().any(|system| path.is_under(&root.join(system)))
}
