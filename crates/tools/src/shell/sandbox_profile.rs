//! The sandbox profile of one command: the rights that its verdict grants, without what settings and toolgate deny.
//!
//! A verdict has three levels of rights.
//! A read-only command and one with named writes get exactly the paths and programs that its judgement lists, and no
//! network.
//! A command that was allowed as a whole may use the workspace, and settings may widen that; what they deny applies to
//! all.

use super::config::{SandboxSettings, ShellConfig};
use super::tasks::SessionScratchDir;
use std::sync::Arc;
use toolgate_files::{CommandSnapshots, resolve};
use toolgate_gate::Cleared;
use toolgate_process::SandboxProxy;
use toolgate_process::sandbox::{SandboxNetworkAccess, SandboxProfile, WithheldFileMode};
use toolgate_process::{CommandEnvironment, find_git_referenced_files, find_programs};
use toolgate_proto::protected_names::SANDBOX_PROTECTED_PATHS;
use toolgate_proto::{AbsPath, CommandRights, EntryKind, NetworkAccess, PathScope, RightsLevel, Terms};

/// Builds the sandbox profile of a command: what its terms grant, limited by the settings.
pub(super) fn build_sandbox_profile(
    cleared: &Cleared,
    (config, scratch_dir, proxy): (&ShellConfig, &SessionScratchDir, Option<&SandboxProxy>),
    snapshots: Option<&Arc<CommandSnapshots>>,
    (environment, git_reads, cwd): (&CommandEnvironment, &[AbsPath], &AbsPath),
) -> SandboxProfile {
    let (terms, settings) = (cleared.terms(), &config.sandbox);
    let rights = &terms.rights;
    let allowed_as_whole = rights.level == RightsLevel::Workspace;
    let writes_of = |scope: PathScope| {
        let rights = rights.write.iter().filter(move |right| right.scope == scope);
        rights.map(|right| right.path.clone())
    };
    let mut writable: Vec<AbsPath> = writes_of(PathScope::Tree).collect();
    if allowed_as_whole {
        writable.extend(settings.writable.iter().cloned());
    }
    // A tree that the command names is an entry as well: the command may remove or replace it, not only its content.
    let entries =
        writes_of(PathScope::Entry).chain(writes_of(PathScope::Tree).filter(|_| !allowed_as_whole)).collect();
    let roots = &cleared.context().workspace.roots;
    // A program in a directory in which commands can write is not the one that the judgement meant.
    let untrusted: Vec<AbsPath> =
        roots.iter().chain(&writable).chain([&scratch_dir.temporary]).cloned().collect();
    let search_path = environment.get("PATH").unwrap_or_default();
    let mut guard = cleared.file_guard().clone();
    if let Some(snapshots) = snapshots {
        let snapshots = Arc::clone(snapshots);
        guard = guard.with_change_observer(Arc::new(move |real| snapshots.capture(real)));
    }
    SandboxProfile {
        entries,
        private: vec![scratch_dir.temporary.clone()],
        readable: readable_paths(rights, scratch_dir, git_reads),
        executable: rights
            .execute
            .as_ref()
            .map(|programs| find_programs(programs, search_path, cwd, &untrusted)),
        guard,
        named: rights.named.clone(),
        // A search must continue with the next file, so a reader sees an empty one. Any other program could take the
        // empty file for its content, so it gets an error.
        withheld: if allowed_as_whole { WithheldFileMode::Refused } else { WithheldFileMode::Empty },
        protected: protected_paths(terms, settings, scratch_dir, (&writable, roots)),
        unreadable: terms.unreadable.iter().chain(&settings.unreadable).cloned().collect(),
        net: network_access(terms, settings, proxy),
        sockets: if allowed_as_whole { settings.sockets.clone() } else { Vec::new() },
        limits: settings.limits,
        backend: settings.backend,
        required: settings.required,
        writable,
    }
}

/// The paths that a command may read; `None` if reading is not limited.
fn readable_paths(
    rights: &CommandRights,
    scratch_dir: &SessionScratchDir,
    git_reads: &[AbsPath],
) -> Option<Vec<AbsPath>> {
    let mut paths = rights.read.clone()?;
    paths.push(scratch_dir.startup.clone());
    paths.extend(git_reads.iter().cloned());
    Some(paths)
}

/// The paths that a command may not change although they are below writable directories.
fn protected_paths(
    terms: &Terms,
    settings: &SandboxSettings,
    scratch_dir: &SessionScratchDir,
    (writable, roots): (&[AbsPath], &[AbsPath]),
) -> Vec<AbsPath> {
    // If a file in a protected directory was granted by name, the guard decides about each file of that directory.
    let is_granted = |path: &AbsPath| terms.rights.named.iter().any(|named| named.is_under(path));
    let mut protected: Vec<AbsPath> =
        terms.protected.iter().filter(|path| !is_granted(path)).cloned().collect();
    protected.extend(settings.protected.iter().cloned());
    // Below a tree that the command names, only existing names are protected: a missing one would keep the tree from
    // being moved.
    let exists = |path: &AbsPath| resolve(path).kind != EntryKind::Missing;
    for root in writable {
        let names =
            SANDBOX_PROTECTED_PATHS.iter().map(|name| root.join(name)).filter(|path| !is_granted(path));
        protected.extend(names.filter(|path| roots.contains(root) || exists(path)));
    }
    if terms.rights.level != RightsLevel::ReadOnly {
        let referenced = find_git_referenced_files(roots).into_iter();
        protected.extend(referenced.filter(|path| !is_granted(path)));
    }
    // The private directory is inside the workspace if the user's temporary directory is.
    protected.push(scratch_dir.startup.clone());
    if !scratch_dir.output.is_under(scratch_dir.dir()) {
        protected.push(scratch_dir.output.clone());
    }
    protected
}

/// The network of the sandbox. A proxy needs loopback to its port and nothing else.
fn network_access(
    terms: &Terms,
    settings: &SandboxSettings,
    proxy: Option<&SandboxProxy>,
) -> SandboxNetworkAccess {
    if terms.rights.level != RightsLevel::Workspace {
        return SandboxNetworkAccess::None;
    }
    match (&terms.network, settings.local_binding, proxy) {
        (NetworkAccess::Full, _, _) => SandboxNetworkAccess::Full,
        (NetworkAccess::None | NetworkAccess::Hosts(_), true, _) => SandboxNetworkAccess::Loopback(None),
        (NetworkAccess::None | NetworkAccess::Hosts(_), false, Some(proxy)) => {
            SandboxNetworkAccess::Loopback(Some(proxy.port()))
        }
        (NetworkAccess::None | NetworkAccess::Hosts(_), false, None) => SandboxNetworkAccess::None,
    }
}
