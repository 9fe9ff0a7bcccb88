//! From effects to locks: what a call locks until it is over.
//!
//! A lock set may be wider than what the call does, never narrower.
//! Where effects do not tell, the call is exclusive (a barrier): it waits for all before it, and all after it wait for it.

use toolgate_files::{resolve, resolve_tracking_parent_steps};
use toolgate_policy::url::FetchTarget;
use toolgate_policy::{CommandFootprint, Policy};
use toolgate_proto::address::is_certainly_remote;
use toolgate_proto::{
    AbsPath, Effect, EntryKind, Intent, PathFact, PathScope, SourceId, ToolConcurrency, Workspace, WriteKind,
};

use crate::registry::RegisteredTool;

/// What a call locks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LockSet {
    /// It runs beside no other call.
    pub(super) is_exclusive: bool,
    /// It waits for a user or for another agent, and so needs no slot.
    pub(super) needs_no_slot: bool,
    pub(super) locks: Vec<ResourceLock>,
    /// Directories that it reads as well should what it names be gone by then.
    pub(super) parents: Vec<AbsPath>,
    /// It may remove what other calls name.
    pub(super) removes: bool,
}

/// One lock.
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

/// Files with several hard links: a change under one name is seen under the others, which cannot be listed.
const HARD_LINKS: &str = "hard links";
const USER: &str = "user";
const NETWORK: &str = "network";

/// State that decides how later calls are resolved or judged, or (`workspace`) files that are known only while the call
/// runs.
const EXCLUSIVE_STATE_NAMES: [&str; 8] =
    ["mode", "plan mode", "permissions", "rules", "cwd", "tools", "session", "workspace"];

impl LockSet {
    pub(super) fn exclusive() -> Self {
        Self { is_exclusive: true, ..Self::default() }
    }

    fn add_lock(&mut self, resource: LockResource, mode: LockMode) {
        let lock = ResourceLock { resource, mode };
        if !self.locks.contains(&lock) {
            self.locks.push(lock);
        }
    }

    /// Locks the parents of missing paths too. The call has to wait, and what it waits for may remove what is there
    /// now; later calls must not overtake it and change the names that its error message will list.
    pub(super) fn add_parent_locks(&mut self) {
        for parent in std::mem::take(&mut self.parents) {
            self.add_lock(LockResource::Path(parent), LockMode::Shared);
        }
    }

    fn lock_everything(&mut self, mode: LockMode) {
        self.add_lock(LockResource::Path(AbsPath::root()), mode);
    }

    /// The locks of a call whose input a hook may yet rewrite.
    /// A built-in reader stays one, whatever it is made to read; of other tools nothing is known.
    pub(super) fn widened(mut self, tool: &RegisteredTool) -> Self {
        let reads = self.locks.iter().all(|lock| lock.mode == LockMode::Shared);
        let is_trusted = tool.identity.read_only && tool.identity.source == SourceId::Builtin;
        if self.is_exclusive || !reads || !is_trusted {
            return Self::exclusive();
        }
        self.lock_everything(LockMode::Shared);
        self
    }
}

/// What a call with this intent must lock, as the file system stands now.
pub(super) fn required_locks(
    tool: &RegisteredTool,
    intent: &Intent,
    policy: &Policy,
    workspace: &Workspace,
) -> LockSet {
    if tool.spec.concurrency == ToolConcurrency::Alone {
        return LockSet::exclusive();
    }
    let mut locks = LockSet::default();
    for effect in &intent.effects {
        if !lock_effect(&mut locks, effect, tool.spec.read_only, workspace) {
            return LockSet::exclusive();
        }
    }
    let runs_commands = intent.effects.iter().any(|effect| matches!(effect, Effect::Exec { .. }));
    // A tool that promises to only read runs only commands that do.
    if runs_commands && tool.spec.read_only {
        locks.lock_everything(LockMode::Shared);
    } else if runs_commands && !lock_commands(&mut locks, intent, policy, workspace) {
        return LockSet::exclusive();
    }
    locks
}

/// Locks what an effect touches. False if the call must be a barrier.
fn lock_effect(locks: &mut LockSet, effect: &Effect, read_only: bool, workspace: &Workspace) -> bool {
    let network = || LockResource::Named(NETWORK.to_owned());
    match effect {
        Effect::Read { path, scope } => lock_for_read(locks, path, *scope),
        Effect::Write { path, kind } => {
            if *kind == WriteKind::Tree && workspace.roots.iter().any(|root| root.is_under(path)) {
                return false;
            }
            lock_for_write(locks, path, *kind);
        }
        // Locked from the analysis of the command line.
        Effect::Exec { .. } => {}
        Effect::Fetch { url } => {
            locks.add_lock(network(), if read_only { LockMode::Shared } else { LockMode::Exclusive });
            if !read_only || !is_remote_url(url) {
                locks.lock_everything(LockMode::Shared);
            }
        }
        Effect::Search { .. } => {
            locks.add_lock(network(), if read_only { LockMode::Shared } else { LockMode::Exclusive });
        }
        // The work may touch the workspace as well: only the tool's own declaration is known.
        Effect::Delegate { .. } | Effect::Skill { .. } | Effect::Remote { .. } => {
            if !read_only {
                return false;
            }
            // An agent has a limit of its own, and each of its calls takes a slot: one that held a slot while it waits for
            // its model would keep calls from running.
            locks.needs_no_slot |= matches!(effect, Effect::Delegate { .. });
            locks.add_lock(network(), LockMode::Shared);
            locks.lock_everything(LockMode::Shared);
        }
        Effect::Ask => {
            locks.needs_no_slot = true;
            locks.add_lock(LockResource::Named(USER.to_owned()), LockMode::Exclusive);
        }
        Effect::State { name } => {
            if EXCLUSIVE_STATE_NAMES.contains(&name.as_str()) {
                return false;
            }
            locks.add_lock(LockResource::Named(format!("state {name}")), LockMode::Exclusive);
        }
        Effect::Opaque => return false,
    }
    true
}

/// Locks what command lines touch. False if that cannot be known.
fn lock_commands(locks: &mut LockSet, intent: &Intent, policy: &Policy, workspace: &Workspace) -> bool {
    for command in &policy.survey(intent, workspace).commands {
        let CommandFootprint::Known { effects, reads_anything } = command.footprint() else { return false };
        if reads_anything {
            locks.lock_everything(LockMode::Shared);
        }
        for effect in &effects {
            match effect {
                Effect::Read { path, scope } => lock_for_read(locks, path, *scope),
                Effect::Write { path, kind } => lock_for_write(locks, path, *kind),
                // INVARIANT: a footprint has reads and writes only.
                Effect::Exec { .. }
                | Effect::Fetch { .. }
                | Effect::Search { .. }
                | Effect::Delegate { .. }
                | Effect::Skill { .. }
                | Effect::Remote { .. }
                | Effect::Ask
                | Effect::State { .. }
                | Effect::Opaque => return false,
            }
        }
    }
    true
}

fn lock_for_read(locks: &mut LockSet, path: &AbsPath, scope: PathScope) {
    let Some(fact) = lock_path(locks, path, LockMode::Shared) else { return };
    locks.parents.extend(fact.real.parent());
    match fact.kind {
        // The error for a missing file lists the names beside it.
        EntryKind::Missing => lock_parent(locks, &fact.real),
        EntryKind::Directory => locks.add_lock(LockResource::Named(HARD_LINKS.to_owned()), LockMode::Shared),
        EntryKind::File | EntryKind::Special => {
            if scope == PathScope::Tree {
                locks.add_lock(LockResource::Named(HARD_LINKS.to_owned()), LockMode::Shared);
            }
        }
    }
}

fn lock_for_write(locks: &mut LockSet, path: &AbsPath, kind: WriteKind) {
    locks.removes |= matches!(kind, WriteKind::Delete | WriteKind::Tree);
    let Some(fact) = lock_path(locks, path, LockMode::Exclusive) else { return };
    match kind {
        WriteKind::Put => {
            if fact.kind == EntryKind::Missing {
                // Missing parent directories may be made as well.
                locks.add_lock(LockResource::Path(topmost_missing(&fact.real)), LockMode::Exclusive);
            }
        }
        WriteKind::Edit | WriteKind::Delete => {
            locks.parents.extend(fact.real.parent());
            if fact.kind == EntryKind::Missing {
                lock_parent(locks, &fact.real);
            }
        }
        WriteKind::Tree => locks.add_lock(LockResource::Named(HARD_LINKS.to_owned()), LockMode::Exclusive),
    }
}

/// Locks a path as spelled and as resolved, and every symlink on the way. `None` where it could not
/// be resolved: then everything is locked.
fn lock_path(locks: &mut LockSet, path: &AbsPath, mode: LockMode) -> Option<PathFact> {
    let (fact, turns) = resolve_tracking_parent_steps(path);
    if fact.problem.is_some() {
        locks.lock_everything(mode);
        locks.add_lock(LockResource::Named(HARD_LINKS.to_owned()), mode);
        return None;
    }
    locks.add_lock(LockResource::Path(fact.real.clone()), mode);
    let spelled = fact.asked.lexical();
    if spelled != fact.real {
        locks.add_lock(LockResource::Path(spelled), mode);
    }
    for way in fact.links.iter().chain(&turns) {
        locks.add_lock(LockResource::Path(way.clone()), LockMode::Shared);
    }
    if fact.hard_linked {
        locks.add_lock(LockResource::Named(HARD_LINKS.to_owned()), mode);
    }
    Some(fact)
}

fn lock_parent(locks: &mut LockSet, real: &AbsPath) {
    if let Some(parent) = real.parent() {
        locks.add_lock(LockResource::Path(parent), LockMode::Shared);
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
