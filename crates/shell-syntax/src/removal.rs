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
    /// It removes directories with what is in them, so that a name which may be any path may be the root directory.
    deep: bool,
}

impl RemovalTargets {
    /// Directories that are removed with what is in them.
    fn trees(files: Vec<ShellArg>) -> Self {
        Self { files, unbounded: false, deep: true }
    }
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
        if name == "ln" {
            let mut operands = args.iter().filter(|arg| !arg.text.starts_with('-'));
            self.links_protected_dir |=
                operands.any(|target| is_critical(target, &context.dirs, self.start, self.workspace));
        }
        let find = self.running_find(context);
        let Some(targets) = removal_targets(name, args, find.as_deref(), &context.dirs, self.start) else {
            return;
        };
        let mut critical = targets.unbounded;
        for file in targets.files {
            // Every value that the line gives a variable counts, and so does the empty value of an unset one.
            let found = self.variables.removal_values(&file, self.start);
            critical |= targets.deep && found.unknown;
            for file in std::iter::once(&file).chain(&found.values) {
                let likely = context.dirs.likely_paths(file, self.workspace);
                critical |= likely
                    .iter()
                    .any(|path| contains_protected_dir(&path.lexical(), self.start, self.workspace))
                    || is_critical(file, &context.dirs, self.start, self.workspace)
                    || self.links_protected_dir && targets.deep && file.text.contains(['/', '*', '?']);
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

    /// The arguments of the `find` that runs a command, if one does.
    fn running_find(&self, context: &CommandContext<'_>) -> Option<Vec<ShellArg>> {
        let runner = self.analysis.parts.get(context.run_by?)?;
        let program = runner.program.as_deref().map(base_name)?;
        let words = runner.argv.iter().skip(1).map(|word| {
            let tilde = word.text == "~" || word.text.starts_with("~/");
            ShellArg { tilde, ..ShellArg::literal(word.text.clone()) }
        });
        matches!(program, "find" | "gfind").then(|| words.collect())
    }
}

/// What a command removes; `None` if it removes nothing.
/// `find` are the arguments of the `find` that runs it.
fn removal_targets(
    name: &str,
    args: &[ShellArg],
    find: Option<&[ShellArg]>,
    dirs: &WorkingDirs,
    start: &AbsPath,
) -> Option<RemovalTargets> {
    let named = |files: Vec<ShellArg>| Some(RemovalTargets { files, unbounded: false, deep: false });
    let unbounded = |unbounded: bool| Some(RemovalTargets { files: Vec::new(), unbounded, deep: false });
    match name {
        "find" | "gfind" => {
            let removes = grammars::judge(name, args).is_some_and(|used| used.removes);
            removes.then(|| RemovalTargets::trees(found_trees(args)))
        }
        "fd" | "fdfind" => fd_targets(args),
        "rm" | "rmdir" | "unlink" | "shred" | "srm" | "trash" | "trash-put" | "rimraf" | "del" | "grm"
        | "wipe" | "rmtrash" | "safe-rm" => rm_targets(name, args, find),
        "gio" | "gtrash" | "coreutils" => {
            let (verb, rest) = args.split_first()?;
            let removes = matches!(verb.text.as_str(), "trash" | "remove" | "put" | "rm");
            removes.then(|| RemovalTargets::trees(operands(rest)))
        }
        "tar" | "gtar" | "bsdtar" => {
            let removes = args.iter().any(|arg| is_abbreviation(&arg.text, "--remove-files", 9));
            removes.then(|| RemovalTargets::trees(operands(args)))
        }
        "zip" => {
            let moves = |text: &str| {
                text == "--move" || text.starts_with('-') && !text.starts_with("--") && text.contains('m')
            };
            args.iter().any(|arg| moves(&arg.text)).then(|| RemovalTargets::trees(operands(args)))
        }
        "git" => git_clean_targets(args, dirs, start),
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "chcon" if is_recursive(args, &['R']) => {
            let operands = operands(args).into_iter().skip(1);
            named(operands.filter(|arg| !is_current_dir(arg)).collect())
        }
        "rsync" => {
            let deletes = args.iter().any(|arg| {
                let text = arg.text.as_str();
                text.starts_with("--del") || text == "--remove-source-files" || text == "--delete"
            });
            let last = operands(args).pop().filter(|last| !last.text.contains(':'))?;
            deletes.then(|| RemovalTargets { files: vec![last], unbounded: false, deep: false })
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

/// The arguments that do not look like options.
fn operands(args: &[ShellArg]) -> Vec<ShellArg> {
    args.iter().filter(|arg| !arg.text.starts_with('-')).cloned().collect()
}

/// Whether a word is a long option, written out or cut after at least `least` characters.
fn is_abbreviation(text: &str, option: &str, least: usize) -> bool {
    text.len() >= least && option.starts_with(text)
}

/// The trees in which `find` removes: its starting points.
///
/// `find . -name x -delete` is ordinary, so that the working directory counts only if nothing selects by name, time
/// or size. Any other starting point is checked in any case.
fn found_trees(args: &[ShellArg]) -> Vec<ShellArg> {
    let selects = finds_selected_only(args);
    let starts = grammars::starting_points_of_find(args).into_iter();
    starts.filter(|start| !(selects && is_current_dir(start))).collect()
}

/// Tests of `find` that select some of the files. `-type f` and `-mindepth 1` select nearly all of them.
const SELECTING_TESTS: WordList = WordList(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -newer -anewer -cnewer \
     -mtime -mmin -ctime -cmin -atime -amin -size -perm -user -group -uid -gid -links -inum -samefile -used",
);

/// Whether every removal of a `find` is behind a test that selects some of the files. A negated test selects nearly
/// all of them, and after `-o` the tests before it do not apply.
fn finds_selected_only(args: &[ShellArg]) -> bool {
    let (mut selected, mut negated, mut depth) = (false, false, 0_usize);
    let mut removed_others = false;
    let mut words = args.iter().map(|arg| arg.text.as_str()).peekable();
    while let Some(word) = words.next() {
        match word {
            "(" | "\\(" => depth += 1,
            ")" | "\\)" => depth = depth.saturating_sub(1),
            "!" | "-not" => {
                negated = true;
                continue;
            }
            "-o" | "-or" | "," if depth == 0 => selected = false,
            "-empty" => selected |= !negated,
            "-delete" | "-exec" | "-execdir" | "-ok" | "-okdir" => removed_others |= !selected,
            test if SELECTING_TESTS.contains(test) || test.starts_with("-newer") => {
                let is_any = words.next().is_none_or(|value| value.chars().all(|sign| "*./".contains(sign)));
                selected |= !negated && !is_any;
            }
            _ => {}
        }
        negated = false;
    }
    !removed_others
}

/// What `fd` removes with `-x rm`: below its search paths, or the working directory if its pattern matches everything.
fn fd_targets(args: &[ShellArg]) -> Option<RemovalTargets> {
    let runs = |arg: &ShellArg| {
        let text = arg.text.as_str();
        is_abbreviation(text, "--exec-batch", 5)
            || text.starts_with('-') && !text.starts_with("--") && text.ends_with(['x', 'X'])
    };
    let at = args.iter().position(runs)?;
    let command = args.get(at + 1).map(|program| base_name(&program.text))?;
    if !matches!(command, "rm" | "rmdir" | "unlink" | "shred" | "srm" | "trash" | "trash-put" | "rimraf") {
        return None;
    }
    let own = args.get(..at).unwrap_or_default();
    let mut paths = operands(own);
    let filters = own.iter().any(|arg| {
        matches!(
            arg.text.as_str(),
            "-e" | "--extension" | "-S" | "--size" | "--changed-within" | "--changed-before"
        )
    });
    let matches_all = |arg: &ShellArg| arg.text.chars().all(|sign| ".*^$".contains(sign));
    let everything = !filters && paths.first().is_none_or(matches_all);
    if !paths.is_empty() {
        paths.remove(0);
    }
    let attached =
        own.iter().filter_map(|arg| arg.text.strip_prefix("--")?.split_once('=')).map(|(_, value)| value);
    paths.extend(attached.map(ShellArg::literal));
    paths.retain(|path| everything || !is_current_dir(path));
    if paths.is_empty() && everything {
        paths.push(ShellArg::literal("."));
    }
    Some(RemovalTargets::trees(paths))
}

/// What `git clean` removes outside the repository in which the line starts. In that repository it is ordinary.
fn git_clean_targets(args: &[ShellArg], dirs: &WorkingDirs, start: &AbsPath) -> Option<RemovalTargets> {
    let at = args.iter().position(|arg| arg.text == "clean")?;
    let (global, own) = args.split_at_checked(at)?;
    let mut files = operands(own.get(1..).unwrap_or_default());
    let mut words = global.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-C" | "--work-tree" => files.extend(words.next().cloned()),
            "-c" | "--git-dir" | "--namespace" => {
                words.next();
            }
            text => files.extend(text.strip_prefix("--work-tree=").map(ShellArg::literal)),
        }
    }
    files.retain(|file| !is_current_dir(file));
    if !dirs.is_only(start) && !dirs.all().iter().any(|directory| directory.is_under(start)) {
        files.push(ShellArg::literal("."));
    }
    Some(RemovalTargets::trees(files))
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
fn rm_targets(name: &str, args: &[ShellArg], find: Option<&[ShellArg]>) -> Option<RemovalTargets> {
    let mut removed = edits::parse_edits(if name == "shred" { "shred" } else { "rm" }, args)?.removed;
    let always_deep = matches!(name, "rimraf" | "trash" | "trash-put" | "srm" | "wipe" | "rmtrash");
    if always_deep {
        removed.retain(|file| !file.text.starts_with('-'));
    }
    // `{}` of `find -exec` or a word that `xargs` appends, as opposed to a substitution in the line.
    let is_added = |file: &ShellArg| {
        file.live == Some(ShellExpansionKind::Substitution) && !file.text.contains(['$', '`'])
    };
    let is_found = find.is_some() && removed.iter().any(is_added);
    let is_fed = find.is_none() && removed.iter().any(is_added);
    // `find` may find everything below its starting points.
    if let Some(find) = find.filter(|_| is_found) {
        removed.extend(found_trees(find));
    }
    let deep = always_deep || is_recursive(args, &['r', 'R']);
    // Words from the input may name anything.
    Some(RemovalTargets { unbounded: is_fed && deep, files: removed, deep })
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
    RemovalTargets { files: moved, unbounded: has_device && !reads_device, deep: false }
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
    let paths = if let Some(paths) = tilde_paths(arg, named, dirs, start) {
        match paths {
            Some(paths) => paths,
            None => return true,
        }
    } else if arg.tilde {
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

/// The paths that `~+`, `~-` or `~user` name; `None` for another word. The inner `None` is a home directory itself, or a
/// directory that is not known.
fn tilde_paths(
    arg: &ShellArg,
    named: &str,
    dirs: &WorkingDirs,
    start: &AbsPath,
) -> Option<Option<Vec<AbsPath>>> {
    let is_tilde = arg.live == Some(ShellExpansionKind::Tilde) || arg.pattern.is_some();
    let rest = named.strip_prefix('~').filter(|_| is_tilde && !arg.tilde)?;
    let (who, below) = rest.split_once('/').unwrap_or((rest, ""));
    let below = |base: &AbsPath| if below.is_empty() { base.clone() } else { base.join(below) };
    Some(match who {
        "+" => (!dirs.is_unknown()).then(|| dirs.all().iter().map(below).collect()),
        "-" => Some(vec![below(start)]),
        // The home directory of another user is not known; what is below it is no protected directory.
        _ => rest.trim_end_matches('/').contains('/').then(Vec::new),
    })
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
