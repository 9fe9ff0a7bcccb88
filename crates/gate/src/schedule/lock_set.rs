//! From effects to claims: what a call lays hold of until it is over.
//!
//! A claim may be wider than what the call does, never narrower.
//! Where effects do not tell, the call is alone: it waits for all before it, and all after it wait for it.

use toolgate_files::{resolve, resolve_tracking_parent_steps};
use toolgate_policy::Policy;
use toolgate_policy::url::FetchTarget;
use toolgate_proto::address::is_certainly_remote;
use toolgate_proto::{
    AbsPath, CommandLine, Effect, EntryKind, PathFact, PathScope, SourceId, ToolConcurrency, Workspace,
    WriteKind,
};

use crate::registry::RegisteredTool;

/// What a call lays hold of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LockSet {
    /// It runs beside no other call.
    pub(super) alone: bool,
    /// It waits for a person, and so needs no seat.
    pub(super) needs_no_slot: bool,
    pub(super) locks: Vec<ResourceLock>,
    /// Directories that it looks into as well should what it names be gone by then.
    pub(super) neighbours: Vec<AbsPath>,
    /// It may take away what others name.
    pub(super) removes: bool,
}

/// One thing that a call lays hold of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceLock {
    pub(super) resource: LockResource,
    pub(super) mode: LockMode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LockResource {
    /// A path and all below it.
    Path(AbsPath),
    /// Something else that has a name.
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockMode {
    Shared,
    Exclusive,
}

/// Files with several names: a change under one name is seen under the others, which nobody can list.
const HARD_LINKS: &str = "hard links";
const PERSON: &str = "person";
const NETWORK: &str = "network";

/// State that steers how later calls are read or judged.
const EXCLUSIVE_STATE_NAMES: [&str; 6] = ["mode", "permissions", "rules", "cwd", "tools", "session"];

impl LockSet {
    fn alone() -> Self {
        Self { alone: true, ..Self::default() }
    }

    fn add_lock(&mut self, on: LockResource, how: LockMode) {
        let hold = ResourceLock { resource: on, mode: how };
        if !self.locks.contains(&hold) {
            self.locks.push(hold);
        }
    }

    /// The call has to wait, and what it waits for may take away what is there now. Calls behind it must not get ahead
    /// and change what it will then be told instead.
    pub(super) fn add_parent_locks(&mut self) {
        for parent in std::mem::take(&mut self.neighbours) {
            self.add_lock(LockResource::Path(parent), LockMode::Shared);
        }
    }

    fn lock_everything(&mut self, how: LockMode) {
        self.add_lock(LockResource::Path(AbsPath::root()), how);
    }

    /// The claim of a call whose input a hook may yet rewrite.
    /// A built-in reader stays one, whatever it is made to read; of others nothing is known.
    pub(super) fn widened(mut self, tool: &RegisteredTool) -> Self {
        let reads = self.locks.iter().all(|hold| hold.mode == LockMode::Shared);
        let believed = tool.identity.read_only && tool.identity.source == SourceId::Builtin;
        if self.alone || !reads || !believed {
            return Self::alone();
        }
        self.lock_everything(LockMode::Shared);
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
            Effect::Read { path, scope } => lock_for_read(&mut claim, path, *scope),
            Effect::Write { path, kind } => {
                if *kind == WriteKind::Tree && workspace.roots.iter().any(|root| root.is_under(path)) {
                    return LockSet::alone();
                }
                lock_for_write(&mut claim, path, *kind);
            }
            Effect::Exec { command } => {
                if !is_read_only_command(command, tool, policy, workspace) {
                    return LockSet::alone();
                }
                claim.lock_everything(LockMode::Shared);
            }
            Effect::Fetch { url } => {
                if tool.spec.read_only {
                    claim.add_lock(LockResource::Named(NETWORK.to_owned()), LockMode::Shared);
                    if !is_remote_url(url) {
                        claim.lock_everything(LockMode::Shared);
                    }
                } else {
                    claim.add_lock(LockResource::Named(NETWORK.to_owned()), LockMode::Exclusive);
                    claim.lock_everything(LockMode::Shared);
                }
            }
            Effect::Search { .. } => {
                let how = if tool.spec.read_only { LockMode::Shared } else { LockMode::Exclusive };
                claim.add_lock(LockResource::Named(NETWORK.to_owned()), how);
            }
            // Whatever does the work may touch the workspace as well: all that can be had is its own word.
            Effect::Delegate { .. } | Effect::Skill { .. } | Effect::Remote { .. } => {
                if !tool.spec.read_only {
                    return LockSet::alone();
                }
                claim.add_lock(LockResource::Named(NETWORK.to_owned()), LockMode::Shared);
                claim.lock_everything(LockMode::Shared);
            }
            Effect::Ask => {
                claim.needs_no_slot = true;
                claim.add_lock(LockResource::Named(PERSON.to_owned()), LockMode::Exclusive);
            }
            Effect::State { name } => {
                if EXCLUSIVE_STATE_NAMES.contains(&name.as_str()) {
                    return LockSet::alone();
                }
                claim.add_lock(LockResource::Named(format!("state {name}")), LockMode::Exclusive);
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

fn lock_for_read(claim: &mut LockSet, path: &AbsPath, scope: PathScope) {
    let Some(fact) = lock_path(claim, path, LockMode::Shared) else { return };
    claim.neighbours.extend(fact.real.parent());
    match fact.kind {
        // What is said of a missing file names its neighbours.
        EntryKind::Missing => lock_parent(claim, &fact.real),
        EntryKind::Directory => claim.add_lock(LockResource::Named(HARD_LINKS.to_owned()), LockMode::Shared),
        EntryKind::File | EntryKind::Special => {
            if scope == PathScope::Tree {
                claim.add_lock(LockResource::Named(HARD_LINKS.to_owned()), LockMode::Shared);
            }
        }
    }
}

fn lock_for_write(claim: &mut LockSet, path: &AbsPath, kind: WriteKind) {
    claim.removes |= matches!(kind, WriteKind::Delete | WriteKind::Tree);
    let Some(fact) = lock_path(claim, path, LockMode::Exclusive) else { return };
    match kind {
        WriteKind::Put => {
            if fact.kind == EntryKind::Missing {
                // Directories on the way may be made as well.
                claim.add_lock(LockResource::Path(topmost_missing(&fact.real)), LockMode::Exclusive);
            }
        }
        WriteKind::Edit | WriteKind::Delete => {
            claim.neighbours.extend(fact.real.parent());
            if fact.kind == EntryKind::Missing {
                lock_parent(claim, &fact.real);
            }
        }
        WriteKind::Tree => claim.add_lock(LockResource::Named(HARD_LINKS.to_owned()), LockMode::Exclusive),
    }
}

/// Lays hold of a path as spelled and as resolved, and of all that decided where it leads. Nothing where it could not
/// be resolved: then everything is held.
fn lock_path(claim: &mut LockSet, path: &AbsPath, how: LockMode) -> Option<PathFact> {
    let (fact, turns) = resolve_tracking_parent_steps(path);
    if fact.problem.is_some() {
        claim.lock_everything(how);
        claim.add_lock(LockResource::Named(HARD_LINKS.to_owned()), how);
        return None;
    }
    claim.add_lock(LockResource::Path(fact.real.clone()), how);
    let spelled = fact.asked.lexical();
    if spelled != fact.real {
        claim.add_lock(LockResource::Path(spelled), how);
    }
    for way in fact.links.iter().chain(&turns) {
        claim.add_lock(LockResource::Path(way.clone()), LockMode::Shared);
    }
    if fact.hard_linked {
        claim.add_lock(LockResource::Named(HARD_LINKS.to_owned()), how);
    }
    Some(fact)
}

fn lock_parent(claim: &mut LockSet, real: &AbsPath) {
    if let Some(parent) = real.parent() {
        claim.add_lock(LockResource::Path(parent), LockMode::Shared);
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

/// Whether a URL certainly leads to another machine. A server on this one may read the workspace.
fn is_remote_url(url: &str) -> bool {
    FetchTarget::parse(url).is_ok_and(|target| is_certainly_remote(&target.host))
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
            ("http://box.corp/", false),
            ("http://app.test/", false),
            ("http://168.63.129.16/", false),
            ("http://93.184.216.34/", false),
            ("http://intranet/", false),
            ("file:///etc/hosts", false),
            ("docs.rs", false),
        ] {
            assert_eq!(is_remote_url(url), elsewhere, "{url}");
        }
    }
}
