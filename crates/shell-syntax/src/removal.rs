//! Removals that no rule and no mode may approve: what would be gone is more than a command's business.

use super::analysis::ShellExpansionKind;
use super::edits;
use super::expand::ShellArg;
use super::grammars;
use super::working_dirs::{WorkingDirs, is_null_or_stream_device};
use toolgate_proto::AbsPath;
use toolgate_proto::Workspace;

/// Directories that hold the system; nothing below them is removed unasked, unless the workspace itself is there.
const SYSTEM_DIRS: &[&str] = &[
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr", "System", "Library",
    "Windows",
];

/// What a command removes or overwrites as a whole.
pub(super) struct RemovalTargets {
    /// The files and directories that it names.
    pub(super) files: Vec<ShellArg>,
    /// It overwrites a whole disk, or removes what only its input names.
    pub(super) unbounded: bool,
}

/// Programs that make a file system, or erase one.
fn erases_disks(name: &str) -> bool {
    name.starts_with("mkfs")
        || matches!(
            name,
            "wipefs"
                | "mke2fs"
                | "mkswap"
                | "blkdiscard"
                | "sgdisk"
                | "sfdisk"
                | "fdisk"
                | "parted"
                | "cryptsetup"
                | "badblocks"
                | "hdparm"
                | "nvme"
                | "zpool"
                | "pvcreate"
                | "vgremove"
                | "lvremove"
                | "diskutil"
                | "format"
                | "newfs"
        )
}

/// Whether a path is a disk, or memory: what is written there is not a file.
pub(super) fn is_device(text: &str) -> bool {
    text.strip_prefix("/dev/").is_some_and(|device| {
        !is_null_or_stream_device(text)
            && !matches!(device, "tty" | "full" | "random" | "urandom" | "ptmx")
            && !["pts/", "fd/", "shm/", "tcp/", "udp/"].iter().any(|below| device.starts_with(below))
    })
}

/// What a command removes; `None` if it is none that removes.
/// `starts` are the starting points of the `find` that runs it.
pub(super) fn removal_targets(
    name: &str,
    args: &[ShellArg],
    starts: Option<Vec<ShellArg>>,
) -> Option<RemovalTargets> {
    let files = |files: Vec<ShellArg>| Some(RemovalTargets { files, unbounded: false });
    let recursive = |letters: &[char]| {
        args.iter().any(|arg| match arg.text.strip_prefix("--") {
            Some(long) => long.len() > 2 && "recursive".starts_with(long),
            None => arg.text.starts_with('-') && arg.text.contains(letters),
        })
    };
    match name {
        "find" | "gfind" => {
            let removes = grammars::judge(name, args).is_some_and(|used| used.removes);
            // A bare `find . -name x -delete` tidies up; anything else than `.` is looked at.
            let named = |start: &ShellArg| start.text != ".";
            removes.then(|| RemovalTargets {
                files: grammars::starting_points_of_find(args).into_iter().filter(named).collect(),
                unbounded: false,
            })
        }
        "rm" | "rmdir" | "unlink" | "shred" | "srm" | "trash" | "trash-put" | "rimraf" | "del" => {
            let mut removed = edits::parse_edits(if name == "shred" { "shred" } else { "rm" }, args)?.removed;
            if name == "rimraf" || name == "trash" || name == "trash-put" || name == "srm" {
                removed.retain(|file| !file.text.starts_with('-'));
            }
            // `{}` is what find found, and with a test it is only some of that.
            let added = |file: &ShellArg| {
                file.live == Some(ShellExpansionKind::Substitution) && !file.text.contains(['$', '`'])
            };
            let found = starts.is_some() && removed.iter().any(added);
            let fed = starts.is_none() && removed.iter().any(added);
            if let Some(starts) = starts.filter(|_| found) {
                removed.extend(starts.into_iter().filter(|start| start.text != "."));
            }
            // Words from an input may name anything.
            Some(RemovalTargets { unbounded: fed && recursive(&['r', 'R']), files: removed })
        }
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "chcon" if recursive(&['R']) => {
            let operands = args.iter().filter(|arg| !arg.text.starts_with('-'));
            files(operands.skip(1).filter(|arg| !is_current_dir(arg)).cloned().collect())
        }
        "rsync" => {
            let deletes = args.iter().any(|arg| {
                let text = arg.text.as_str();
                text.starts_with("--del") || text == "--remove-source-files" || text == "--delete"
            });
            let operands: Vec<&ShellArg> = args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
            let last = operands.last().filter(|last| !last.text.contains(':'))?;
            deletes.then(|| RemovalTargets { files: vec![(*last).clone()], unbounded: false })
        }
        "dd" => {
            let target = args.iter().find_map(|arg| arg.text.strip_prefix("of="))?;
            Some(RemovalTargets { files: Vec::new(), unbounded: is_device(target.trim_matches('"')) })
        }
        "tee" | "cp" | "mv" | "truncate" | "install" | "ln" => {
            let device = args.iter().any(|arg| is_device(&arg.text));
            let moved: Vec<ShellArg> = match (name, args.split_last()) {
                ("mv", Some((_, sources))) => {
                    sources.iter().filter(|arg| !arg.text.starts_with('-')).cloned().collect()
                }
                _ => Vec::new(),
            };
            let reads_device = name == "cp" && args.last().is_some_and(|last| !is_device(&last.text));
            Some(RemovalTargets { files: moved, unbounded: device && !reads_device })
        }
        _ if erases_disks(name) => {
            let asks = args.is_empty()
                || args.iter().any(|arg| {
                    matches!(
                        arg.text.as_str(),
                        "-l" | "--list" | "-V" | "--version" | "-h" | "--help" | "status" | "list"
                    )
                });
            Some(RemovalTargets { files: Vec::new(), unbounded: !asks })
        }
        _ => None,
    }
}

/// `chmod -R u+w .` is everyday work in a workspace.
fn is_current_dir(arg: &ShellArg) -> bool {
    arg.live.is_none() && matches!(arg.text.as_str(), "." | "./")
}

/// Whether removing what a word names would take a root, home, working, parent, system or repository directory away.
pub(super) fn is_critical(
    arg: &ShellArg,
    dirs: &WorkingDirs,
    start: &AbsPath,
    workspace: &Workspace,
) -> bool {
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
    from.iter().map(AbsPath::lexical).any(|path| contains_protected_dir(&path, start, workspace))
}

pub(super) fn contains_protected_dir(path: &AbsPath, start: &AbsPath, workspace: &Workspace) -> bool {
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
    !in_workspace && SYSTEM_DIRS.iter().any(|system| path.is_under(&root.join(system)))
}
