//! From effects to claims: what a call lays hold of until it is over.
//!
//! A claim may be wider than what the call does, never narrower.
//! Where effects do not tell, the call is alone: it waits for all before it, and all after it wait for it.

use toolgate_os::{resolve, resolve_tracking_parent_steps};
use toolgate_policy::Policy;
use toolgate_proto::{
    AbsPath, CommandLine, Effect, EntryKind, PathFact, Scope, SourceId, ToolConcurrency, Workspace, WriteKind,
};

use crate::registry::RegisteredTool;

/// What a call lays hold of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LockSet {
    /// It runs beside no other call.
    pub(super) alone: bool,
    /// It waits for a person, and so needs no seat.
    pub(super) seatless: bool,
    pub(super) holds: Vec<ResourceLock>,
    /// Directories that it looks into as well should what it names be gone by then.
    pub(super) neighbours: Vec<AbsPath>,
    /// It may take away what others name.
    pub(super) removes: bool,
}

/// One thing that a call lays hold of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceLock {
    pub(super) on: On,
    pub(super) how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum On {
    /// A path and all below it.
    Path(AbsPath),
    /// Something else that has a name.
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Look,
    Change,
}

/// Files with several names: a change under one name is seen under the others, which nobody can list.
const HARD_LINKS: &str = "hard links";
const PERSON: &str = "person";
const NETWORK: &str = "network";

/// State that steers how later calls are read or judged.
const STEERING: [&str; 6] = ["mode", "permissions", "rules", "cwd", "tools", "session"];

impl LockSet {
    fn alone() -> Self {
        Self { alone: true, ..Self::default() }
    }

    fn hold(&mut self, on: On, how: How) {
        let hold = ResourceLock { on, how };
        if !self.holds.contains(&hold) {
            self.holds.push(hold);
        }
    }

    /// The call has to wait, and what it waits for may take away what is there now. Calls behind it must not get ahead
    /// and change what it will then be told instead.
    pub(super) fn add_parent_locks(&mut self) {
        for parent in std::mem::take(&mut self.neighbours) {
            self.hold(On::Path(parent), How::Look);
        }
    }

    fn everything(&mut self, how: How) {
        self.hold(On::Path(AbsPath::root()), how);
    }

    /// The claim of a call whose input a hook may yet rewrite.
    /// A built-in reader stays one, whatever it is made to read; of others nothing is known.
    pub(super) fn widened(mut self, tool: &RegisteredTool) -> Self {
        let reads = self.holds.iter().all(|hold| hold.how == How::Look);
        let believed = tool.identity.read_only && tool.identity.source == SourceId::Builtin;
        if self.alone || !reads || !believed {
            return Self::alone();
        }
        self.everything(How::Look);
        self
    }
}

/// What a call with these effects lays hold of, as the file system stands now.
pub(super) fn required_locks(
    tool: &RegisteredTool,
    effects: &[Effect],
    policy: &Policy,
    workspace: &Workspace,
) -> LockSet {
    if tool.spec.concurrency == ToolConcurrency::Alone {
        return LockSet::alone();
    }
    let mut claim = LockSet::default();
    for effect in effects {
        match effect {
            Effect::Read { path, scope } => look(&mut claim, path, *scope),
            Effect::Write { path, kind } => {
                if *kind == WriteKind::Tree && workspace.roots.iter().any(|root| root.is_under(path)) {
                    return LockSet::alone();
                }
                change(&mut claim, path, *kind);
            }
            Effect::Exec { command } => {
                if !is_read_only_command(command, tool, policy, workspace) {
                    return LockSet::alone();
                }
                claim.everything(How::Look);
            }
            Effect::Fetch { url } => {
                if tool.spec.read_only {
                    claim.hold(On::Named(NETWORK.to_owned()), How::Look);
                    if !is_remote_url(url) {
                        claim.everything(How::Look);
                    }
                } else {
                    claim.hold(On::Named(NETWORK.to_owned()), How::Change);
                    claim.everything(How::Look);
                }
            }
            Effect::Search { .. } => {
                let how = if tool.spec.read_only { How::Look } else { How::Change };
                claim.hold(On::Named(NETWORK.to_owned()), how);
            }
            // Whatever does the work may touch the workspace as well: all that can be had is its own word.
            Effect::Delegate { .. } | Effect::Skill { .. } | Effect::Remote { .. } => {
                if !tool.spec.read_only {
                    return LockSet::alone();
                }
                claim.hold(On::Named(NETWORK.to_owned()), How::Look);
                claim.everything(How::Look);
            }
            Effect::Ask => {
                claim.seatless = true;
                claim.hold(On::Named(PERSON.to_owned()), How::Change);
            }
            Effect::State { name } => {
                if STEERING.contains(&name.as_str()) {
                    return LockSet::alone();
                }
                claim.hold(On::Named(format!("state {name}")), How::Change);
            }
            Effect::Opaque => return LockSet::alone(),
        }
    }
    claim
}

/// Whether a command line changes nothing. The word of a tool that runs only such commands is taken.
fn is_read_only_command(
    _command: &CommandLine,
    tool: &RegisteredTool,
    _policy: &Policy,
    _workspace: &Workspace,
) -> bool {
    tool.spec.read_only
}

fn look(claim: &mut LockSet, path: &AbsPath, scope: Scope) {
    let Some(fact) = lock_path(claim, path, How::Look) else { return };
    claim.neighbours.extend(fact.real.parent());
    match fact.kind {
        // What is said of a missing file names its neighbours.
        EntryKind::Missing => lock_parent(claim, &fact.real),
        EntryKind::Directory => claim.hold(On::Named(HARD_LINKS.to_owned()), How::Look),
        EntryKind::File | EntryKind::Special => {
            if scope == Scope::Tree {
                claim.hold(On::Named(HARD_LINKS.to_owned()), How::Look);
            }
        }
    }
}

fn change(claim: &mut LockSet, path: &AbsPath, kind: WriteKind) {
    claim.removes |= matches!(kind, WriteKind::Delete | WriteKind::Tree);
    let Some(fact) = lock_path(claim, path, How::Change) else { return };
    match kind {
        WriteKind::Put => {
            if fact.kind == EntryKind::Missing {
                // Directories on the way may be made as well.
                claim.hold(On::Path(topmost_missing(&fact.real)), How::Change);
            }
        }
        WriteKind::Edit | WriteKind::Delete => {
            claim.neighbours.extend(fact.real.parent());
            if fact.kind == EntryKind::Missing {
                lock_parent(claim, &fact.real);
            }
        }
        WriteKind::Tree => claim.hold(On::Named(HARD_LINKS.to_owned()), How::Change),
    }
}

/// Lays hold of a path as spelled and as resolved, and of all that decided where it leads. Nothing where it could not
/// be resolved: then everything is held.
fn lock_path(claim: &mut LockSet, path: &AbsPath, how: How) -> Option<PathFact> {
    let (fact, turns) = resolve_tracking_parent_steps(path);
    if fact.problem.is_some() {
        claim.everything(how);
        claim.hold(On::Named(HARD_LINKS.to_owned()), how);
        return None;
    }
    claim.hold(On::Path(fact.real.clone()), how);
    let spelled = fact.asked.lexical();
    if spelled != fact.real {
        claim.hold(On::Path(spelled), how);
    }
    for way in fact.links.iter().chain(&turns) {
        claim.hold(On::Path(way.clone()), How::Look);
    }
    if fact.hard_linked {
        claim.hold(On::Named(HARD_LINKS.to_owned()), how);
    }
    Some(fact)
}

fn lock_parent(claim: &mut LockSet, real: &AbsPath) {
    if let Some(parent) = real.parent() {
        claim.hold(On::Path(parent), How::Look);
    }
}

fn topmost_missing(real: &AbsPath) -> AbsPath {
    let mut top = real.clone();
    while let Some(parent) = top.parent() {
        if resolve(&parent).kind != EntryKind::Missing {
            break;
        }
        top = parent;
    }
    top
}

/// Whether an address certainly leads to another machine. A server on this one may read the workspace.
fn is_remote_url(url: &str) -> bool {
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") => rest,
        _ => return false,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let top = match host.rsplit_once('.') {
        Some((_, top)) => top,
        None => return false,
    };
    let number = top.starts_with(|c: char| c.is_ascii_digit());
    !number && !matches!(top, "localhost" | "local" | "internal" | "lan" | "home" | "test")
}

#[cfg(test)]
mod tests {
    use super::is_remote_url;

    #[test]
    fn only_a_full_name_is_surely_elsewhere() {
        for (url, elsewhere) in [
            ("https://docs.rs/tokio", true),
            ("http://user@example.com:8080/x", true),
            ("http://localhost:3000/", false),
            ("http://127.0.0.1/", false),
            ("http://[::1]:80/", false),
            ("http://0x7f.1/", false),
            ("http://box.local/", false),
            ("http://intranet/", false),
            ("file:///etc/hosts", false),
            ("docs.rs", false),
        ] {
            assert_eq!(is_remote_url(url), elsewhere, "{url}");
        }
    }
}
