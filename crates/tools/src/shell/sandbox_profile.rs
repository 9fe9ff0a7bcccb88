//! The sandbox of one command: the rights that its verdict grants, less what settings and toolgate itself keep out.

use super::config::{SandboxSettings, ShellConfig};
use super::tasks::SessionScratchDir;
use toolgate_files::resolve;
use toolgate_gate::Cleared;
use toolgate_process::SandboxProxy;
use toolgate_process::sandbox::{SandboxNetworkAccess, SandboxProfile, WithheldFileMode};
use toolgate_process::{CommandEnvironment, find_git_referenced_files, find_programs};
use toolgate_proto::protected_names::SANDBOX_PROTECTED_PATHS;
use toolgate_proto::{AbsPath, CommandRights, EntryKind, NetworkAccess, PathScope, RightsLevel, Terms};

/// Cuts the sandbox for a command.
pub(super) fn build_sandbox_profile(
    cleared: &Cleared,
    (surroundings, place, proxy): (&ShellConfig, &SessionScratchDir, Option<&SandboxProxy>),
    (environment, git_reads, cwd): (&CommandEnvironment, &[AbsPath], &AbsPath),
) -> SandboxProfile {
    let (terms, settings) = (cleared.terms(), &surroundings.sandbox);
    let rights = &terms.rights;
    let whole = rights.level == RightsLevel::Workspace;
    let pick = |scope: PathScope| {
        let rights = rights.write.iter().filter(move |right| right.scope == scope);
        rights.map(|right| right.path.clone())
    };
    let mut writable: Vec<AbsPath> = pick(PathScope::Tree).collect();
    if whole {
        writable.extend(settings.writable.iter().cloned());
    }
    // What was named is written as a whole: a tree may be removed or replaced, and not only what is in it.
    let entries = pick(PathScope::Entry).chain(pick(PathScope::Tree).filter(|_| !whole)).collect();
    let roots = &cleared.context().workspace.roots;
    let untrusted: Vec<AbsPath> = roots.iter().chain(&writable).chain([&place.temporary]).cloned().collect();
    let search_path = environment.get("PATH").unwrap_or_default();
    SandboxProfile {
        entries,
        private: vec![place.temporary.clone()],
        readable: readable_paths(rights, place, git_reads),
        executable: rights
            .execute
            .as_ref()
            .map(|programs| find_programs(programs, search_path, cwd, &untrusted)),
        guard: cleared.file_guard().clone(),
        named: rights.named.clone(),
        // A search goes on to the next file; a program of which more is expected is told.
        withheld: if whole { WithheldFileMode::Refused } else { WithheldFileMode::Empty },
        protected: protected_paths(terms, settings, place, (&writable, roots)),
        unreadable: terms.unreadable.iter().chain(&settings.unreadable).cloned().collect(),
        net: network_access(terms, settings, proxy),
        sockets: if whole { settings.sockets.clone() } else { Vec::new() },
        limits: settings.limits,
        backend: settings.backend,
        required: settings.required,
        writable,
    }
}

fn readable_paths(
    rights: &CommandRights,
    place: &SessionScratchDir,
    git_reads: &[AbsPath],
) -> Option<Vec<AbsPath>> {
    let mut paths = rights.read.clone()?;
    paths.push(place.startup.clone());
    paths.extend(git_reads.iter().cloned());
    Some(paths)
}

fn protected_paths(
    terms: &Terms,
    settings: &SandboxSettings,
    place: &SessionScratchDir,
    (writable, roots): (&[AbsPath], &[AbsPath]),
) -> Vec<AbsPath> {
    // A directory of which a file was granted by name is left to the rules for files, which know that file.
    let granted = |path: &AbsPath| terms.rights.named.iter().any(|named| named.is_under(path));
    let mut protected: Vec<AbsPath> = terms.protected.iter().filter(|path| !granted(path)).cloned().collect();
    protected.extend(settings.protected.iter().cloned());
    // Nothing is held back below a single thing that was named, unless it is there: it could not be moved.
    let there = |path: &AbsPath| resolve(path).kind != EntryKind::Missing;
    for root in writable {
        let names = SANDBOX_PROTECTED_PATHS.iter().map(|name| root.join(name)).filter(|path| !granted(path));
        protected.extend(names.filter(|path| roots.contains(root) || there(path)));
    }
    if terms.rights.level != RightsLevel::ReadOnly {
        let chosen = find_git_referenced_files(roots).into_iter();
        protected.extend(chosen.filter(|path| !granted(path)));
    }
    // A workspace may hold toolgate's own private directory, if a user keeps temporary files there.
    protected.push(place.startup.clone());
    if !place.output.is_under(place.dir()) {
        protected.push(place.output.clone());
    }
    protected
}

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
