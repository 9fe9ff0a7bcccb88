//! Removals that no rule and no mode may approve, because they destroy more than the files of one task: the root
//! directory, the home directory, the workspace itself, a repository, or a disk.
//!
//! A removal is checked in its worst case: an unset variable is empty, a variable may have any value that the line
//! gives
//! it, and words from an input may name anything. A false alarm costs a question; the opposite cannot be undone.

use crate::analysis::{CommandDanger, DangerKind, DangerResponse, DangerStanding, ShellExpansionKind};
use crate::command_part::{CommandPartBuilder, base_name};
use crate::edits;
use crate::grammars;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::word_list::WordList;
use crate::working_dirs::{WorkingDirs, is_null_or_stream_device};
use toolgate_proto::{AbsPath, RiskLevel, Workspace};

/// Top-level directories of the system. Removing anything below them is dangerous, unless the workspace is there.
const SYSTEM_DIRS: WordList =
    WordList("bin boot dev etc lib lib32 lib64 proc sbin sys usr System Library Windows");

/// Programs that create a file system, or erase or partition a disk. `mkfs.*` is matched by its prefix.
const DISK_ERASERS: WordList = WordList(
    "wipefs mke2fs mkswap blkdiscard sgdisk sfdisk fdisk parted cryptsetup badblocks hdparm nvme zpool \
     pvcreate vgremove lvremove diskutil format newfs",
);

/// Arguments with which the disk programs only report.
const DISK_QUERIES: WordList = WordList("-l --list -V --version -h --help status list");

/// What a command removes or overwrites as a whole.
struct RemovalTargets {
    /// The files and directories that it names.
    files: Vec<ShellArg>,
    /// It overwrites a whole disk, or removes what only its input names.
    unbounded: bool,
}

impl AnalysisVisitor<'_> {
    /// Records a binding danger if a command removes a directory that must not be removed.
    pub(crate) fn check_removals(
        &mut self,
        builder: &CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) {
        let Some(targets) = removal_targets(name, args, self.starting_points_of_find(context)) else {
            return;
        };
        let mut critical = targets.unbounded;
        for file in targets.files {
            // Every value that the line gives a variable counts, and so does the empty value of an unset one.
            let candidates = self.variables.candidate_values(&file);
            for file in std::iter::once(&file).chain(&candidates) {
                let likely = context.dirs.likely_paths(file, self.workspace);
                critical |= likely
                    .iter()
                    .any(|path| contains_protected_dir(&path.lexical(), self.start, self.workspace))
                    || is_critical(file, &context.dirs, self.start, self.workspace);
            }
        }
        if critical {
            self.record_danger(CommandDanger {
                kind: DangerKind::DangerousRemoval,
                severity: RiskLevel::Critical,
                phase: DangerResponse::Ask,
                standing: DangerStanding::Binding,
                text: format!(
                    "`{}` removes or overwrites a system, home, workspace or repository directory, or a disk",
                    builder.part.text
                ),
            });
        }
    }

    /// The starting points of the `find` that runs a command, if one does.
    fn starting_points_of_find(&self, context: &CommandContext<'_>) -> Option<Vec<ShellArg>> {
        let runner = self.analysis.parts.get(context.run_by?)?;
        let program = runner.program.as_deref().map(base_name)?;
        let words = runner.argv.iter().skip(1).map(|word| {
            let tilde = word.text == "~" || word.text.starts_with("~/");
            ShellArg { tilde, ..ShellArg::literal(word.text.clone()) }
        });
        matches!(program, "find" | "gfind")
            .then(|| grammars::starting_points_of_find(&words.collect::<Vec<_>>()))
    }
}

/// What a command removes; `None` if it removes nothing.
/// `starts` are the starting points of the `find` that runs it.
fn removal_targets(name: &str, args: &[ShellArg], starts: Option<Vec<ShellArg>>) -> Option<RemovalTargets> {
    let named = |files: Vec<ShellArg>| Some(RemovalTargets { files, unbounded: false });
    let unbounded = |unbounded: bool| Some(RemovalTargets { files: Vec::new(), unbounded });
    match name {
        "find" | "gfind" => {
            let removes = grammars::judge(name, args).is_some_and(|used| used.removes);
            // `find . -name x -delete` is ordinary; any other starting point is checked.
            let starts = grammars::starting_points_of_find(args);
            removes.then(|| RemovalTargets {
                files: starts.into_iter().filter(|start| start.text != ".").collect(),
                unbounded: false,
            })
        }
        "rm" | "rmdir" | "unlink" | "shred" | "srm" | "trash" | "trash-put" | "rimraf" | "del" => {
            rm_targets(name, args, starts)
        }
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "chcon" if is_recursive(args, &['R']) => {
            let operands = args.iter().filter(|arg| !arg.text.starts_with('-'));
            named(operands.skip(1).filter(|arg| !is_current_dir(arg)).cloned().collect())
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
            unbounded(is_device(target.trim_matches('"')))
        }
        "tee" | "cp" | "mv" | "truncate" | "install" | "ln" => Some(overwrite_targets(name, args)),
        _ if name.starts_with("mkfs") || DISK_ERASERS.contains(name) => {
            let queries = args.is_empty() || args.iter().any(|arg| DISK_QUERIES.contains(arg.text.as_str()));
            unbounded(!queries)
        }
        _ => None,
    }
}

/// Whether an option asks for recursion: `--recursive`, abbreviated or not, or one of the letters in a cluster.
fn is_recursive(args: &[ShellArg], letters: &[char]) -> bool {
    args.iter().any(|arg| match arg.text.strip_prefix("--") {
        Some(long) => long.len() > 2 && "recursive".starts_with(long),
        None => arg.text.starts_with('-') && arg.text.contains(letters),
    })
}

/// What `rm` and its relatives remove.
///
/// Options are parsed as for `rm`; programs with options of another form only lose those words.
fn rm_targets(name: &str, args: &[ShellArg], starts: Option<Vec<ShellArg>>) -> Option<RemovalTargets> {
    let mut removed = edits::parse_edits(if name == "shred" { "shred" } else { "rm" }, args)?.removed;
    if matches!(name, "rimraf" | "trash" | "trash-put" | "srm") {
        removed.retain(|file| !file.text.starts_with('-'));
    }
    // `{}` of `find -exec` or a word that `xargs` appends, as opposed to a substitution in the line.
    let is_added = |file: &ShellArg| {
        file.live == Some(ShellExpansionKind::Substitution) && !file.text.contains(['$', '`'])
    };
    let is_found = starts.is_some() && removed.iter().any(is_added);
    let is_fed = starts.is_none() && removed.iter().any(is_added);
    // `find` may find everything below its starting points.
    if let Some(starts) = starts.filter(|_| is_found) {
        removed.extend(starts.into_iter().filter(|start| start.text != "."));
    }
    // Words from the input may name anything.
    Some(RemovalTargets { unbounded: is_fed && is_recursive(args, &['r', 'R']), files: removed })
}

/// What a program that writes files overwrites or moves away: a device is overwritten as a whole.
fn overwrite_targets(name: &str, args: &[ShellArg]) -> RemovalTargets {
    let has_device = args.iter().any(|arg| is_device(&arg.text));
    let moved: Vec<ShellArg> = match (name, args.split_last()) {
        ("mv", Some((_, sources))) => {
            sources.iter().filter(|arg| !arg.text.starts_with('-')).cloned().collect()
        }
        _ => Vec::new(),
    };
    let reads_device = name == "cp" && args.last().is_some_and(|last| !is_device(&last.text));
    RemovalTargets { files: moved, unbounded: has_device && !reads_device }
}

/// Whether a path is a disk or memory device, where a write destroys more than a file.
pub(crate) fn is_device(text: &str) -> bool {
    text.strip_prefix("/dev/").is_some_and(|device| {
        !is_null_or_stream_device(text)
            && !matches!(device, "tty" | "full" | "random" | "urandom" | "ptmx")
            && !["pts/", "fd/", "shm/", "tcp/", "udp/"].iter().any(|below| device.starts_with(below))
    })
}

/// Whether an argument is `.`: `chmod -R u+w .` is ordinary work in a workspace.
fn is_current_dir(arg: &ShellArg) -> bool {
    arg.live.is_none() && matches!(arg.text.as_str(), "." | "./")
}

/// Whether removing what a word names would remove a root, home, working, parent, system or repository directory.
///
/// A trailing `*` or `.*` names everything in the directory, so that the directory itself is checked.
fn is_critical(arg: &ShellArg, dirs: &WorkingDirs, start: &AbsPath, workspace: &Workspace) -> bool {
    // An unset variable is empty: `"$dir"/*` is then `/*`.
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
    let paths = if arg.tilde {
        match &workspace.home {
            Some(home) => vec![home.join(named.trim_start_matches('~').trim_start_matches('/'))],
            None => return true,
        }
    } else if named.starts_with('/') {
        AbsPath::new(named).into_iter().collect()
    } else if dirs.is_unknown() {
        // The unknown directory may be one whose content must not be removed.
        return everything || named.split('/').all(|component| matches!(component, "." | ".." | ""));
    } else {
        dirs.all().iter().map(|directory| directory.join(named)).collect()
    };
    paths.iter().map(AbsPath::lexical).any(|path| contains_protected_dir(&path, start, workspace))
}

/// Whether a path is, or contains, a directory that must not be removed.
fn contains_protected_dir(path: &AbsPath, start: &AbsPath, workspace: &Workspace) -> bool {
    let mut protected = [start, &workspace.cwd].into_iter().chain(&workspace.roots).chain(&workspace.home);
    if protected.any(|directory| directory.is_under(path)) {
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
