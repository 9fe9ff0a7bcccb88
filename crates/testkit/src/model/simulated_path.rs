//! A simulated file system: a few directories, symlinks and hard links, and how paths resolve in it.

/// The working directory, and the first root of the workspace.
pub(super) const CWD: &str = "/ws";
/// The second root of the workspace.
pub(super) const EXTRA_ROOT: &str = "/extra";
/// The home directory.
pub(super) const HOME: &str = "/home/u";

/// The symlinks of the simulated file system, and their targets.
pub(super) const SYMLINKS: &[(&str, &str)] = &[
    ("/ws/in", "/ws/src"),
    ("/ws/out", "/outside"),
    ("/outside/back", "/ws/src"),
    ("/ws/docs/key", "/ws/private/key"),
    ("/ws/hop", "/ws/docs/key"),
    ("/ws/store", "/ws/.git"),
];

/// Files with a second hard link.
pub(super) const HARD_LINKED_FILES: &[&str] = &["/ws/src/shared.rs"];

/// What a path resolves to.
#[derive(Debug, Clone)]
pub(super) struct SimulatedPath {
    /// The path with `.` and `..` removed by text alone.
    pub(super) spelled: String,
    /// The path with every symlink and `..` resolved.
    pub(super) real: String,
    /// Each symlink that was followed.
    pub(super) links: Vec<String>,
    /// The file has a second hard link.
    pub(super) shared: bool,
}

/// Resolves a path name by name, as the kernel does.
pub(super) fn resolve_path(path: &str) -> SimulatedPath {
    let mut spelled: Vec<&str> = Vec::new();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        if name == ".." {
            spelled.pop();
        } else {
            spelled.push(name);
        }
    }
    let mut links = Vec::new();
    let mut real: Vec<String> = Vec::new();
    let mut pending: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    while let Some(name) = pending.pop() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                real.pop();
                continue;
            }
            _ => real.push(name),
        }
        let here = format!("/{}", real.join("/"));
        if let Some((_, to)) = SYMLINKS.iter().find(|(from, _)| *from == here) {
            links.push(here);
            real.clear();
            pending.extend(to.split('/').rev().map(str::to_owned));
        }
    }
    let real = format!("/{}", real.join("/"));
    let shared = HARD_LINKED_FILES.contains(&real.as_str());
    SimulatedPath { spelled: format!("/{}", spelled.join("/")), real, links, shared }
}

/// Whether a path is `dir` or below it.
pub(super) fn is_in(path: &str, dir: &str) -> bool {
    path == dir || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}
