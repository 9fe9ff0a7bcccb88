//! Judges `git` command lines.
//!
//! git only reads on the terms that the runtime sets: no pager, no external diff, no file-system monitor, no text
//! conversion, no optional locks, and no repository but that of the starting directory. Even so, git reads the
//! configuration of the repository that it finds, so that another directory needs another decision.

use super::ProgramUse;
use super::git_readers::READERS;
use super::git_shown_files::GitShownFiles;
use super::git_subcommands::judge_git_subcommand;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Global options that leave git the same program in the same repository.
const HARMLESS_GLOBAL_OPTIONS: WordList = WordList(
    "--no-pager -P --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs \
     --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice",
);

/// Global options whose value is the next word.
const VALUED_GLOBAL_OPTIONS: WordList =
    WordList("-c -C --git-dir --work-tree --namespace --exec-path --config-env --super-prefix");

/// Global options that need an approval, but cannot run a program or write a file.
const OTHER_GLOBAL_OPTIONS: WordList = WordList("-p --paginate --bare --version -v --help -h");

/// Subcommands that only read in some of their forms, besides those with an option table.
const PARTIAL_READERS: WordList =
    WordList("branch tag remote stash reflog worktree submodule notes config symbolic-ref help");

/// What is known of a git command line.
pub(crate) struct GitCommandUse {
    /// What the subcommand does.
    pub(crate) used: ProgramUse,
    /// The position of the subcommand among the arguments.
    pub(crate) subcommand: Option<usize>,
    /// The files whose content it shows.
    pub(crate) shows: GitShownFiles,
}

/// The options before a subcommand.
struct GlobalOptions {
    /// How many arguments they are.
    count: usize,
    /// All of them leave git the same program in the same repository.
    harmless: bool,
    /// One of them may run a program or write a file.
    hazard: bool,
}

/// Judges the arguments of `git`.
pub(crate) fn judge_git(args: &[ShellArg]) -> GitCommandUse {
    let global = parse_global_options(args);
    let Some(subcommand) = args.get(global.count) else {
        // Without a subcommand git prints its help.
        let read_only = !args.is_empty()
            && args.iter().all(|arg| matches!(arg.known(), Some("--help" | "-h" | "--no-pager" | "-P")));
        let used = ProgramUse { hazard: global.hazard, read_only, ..ProgramUse::default() };
        return GitCommandUse { used, subcommand: None, shows: GitShownFiles::default() };
    };
    let rest = args.get(global.count + 1..).unwrap_or_default();
    let (mut used, mut shows) = match subcommand.known() {
        Some(name) => judge_git_subcommand(name, rest),
        None => (ProgramUse { hazard: true, ..ProgramUse::default() }, GitShownFiles::default()),
    };
    used.read_only &= global.harmless;
    used.hazard |= global.hazard;
    // These options change which files a pathspec matches.
    if args.iter().take(global.count).any(|arg| arg.text.ends_with("-pathspecs")) {
        shows.whole_repository |= !shows.here.is_empty() || !shows.top.is_empty();
    }
    GitCommandUse { used, subcommand: Some(global.count), shows }
}

/// Parses the options before the subcommand.
///
/// They come before the subcommand. `-C .` changes nothing; any other directory may be another repository.
fn parse_global_options(args: &[ShellArg]) -> GlobalOptions {
    let mut global = GlobalOptions { count: 0, harmless: true, hazard: false };
    while let Some(arg) = args.get(global.count).filter(|arg| arg.may_be_option()) {
        let text = arg.text.as_str();
        let value = args.get(global.count + 1).and_then(ShellArg::known);
        let is_current_dir = text == "-C" && value == Some(".");
        if text == "-c" && value.is_some_and(sets_nothing) {
            global.harmless = false;
        } else if !is_current_dir && (arg.live.is_some() || !HARMLESS_GLOBAL_OPTIONS.contains(text)) {
            global.harmless = false;
            global.hazard |= arg.live.is_some() || !OTHER_GLOBAL_OPTIONS.contains(text);
        }
        global.count += if VALUED_GLOBAL_OPTIONS.contains(text) { 2 } else { 1 };
    }
    global
}

/// The names of all subcommands that only read in some form.
///
/// A test of the tools crate runs each of them in repositories with hostile settings.
pub(crate) fn git_readers() -> Vec<&'static str> {
    READERS.iter().flat_map(|table| table.names.iter().copied()).chain(PARTIAL_READERS.iter()).collect()
}

/// The options of a subcommand that has an option table: letters as `-x`, long options as in the table (`--name=`).
pub(crate) fn git_reader_options(name: &str) -> Vec<String> {
    let tables = READERS.iter().filter(|table| table.names.contains(&name));
    tables
        .flat_map(|table| {
            let letters = [table.flags, table.valued, table.attached, table.files];
            let long = [table.long, table.more_long];
            let letters = letters.into_iter().flat_map(str::chars).map(|letter| format!("-{letter}"));
            let long = long.into_iter().flat_map(str::split_ascii_whitespace);
            letters.chain(long.map(|option| format!("--{option}"))).collect::<Vec<_>>()
        })
        .collect()
}

/// Whether a setting has no section: git refuses it, so that it cannot make git run a program.
fn sets_nothing(setting: &str) -> bool {
    let key = setting.split_once('=').map_or(setting, |(key, _)| key);
    !key.contains('.')
}

/// Whether the value of an option is prose, such as a commit message: an unknown one selects nothing.
///
/// `-F` is none: its value is a file that is read.
pub(crate) fn takes_prose(option: &str) -> bool {
    let in_cluster = |letters: &str| letters.chars().all(|letter| "aeinpqsv".contains(letter));
    option == "--message"
        || option.strip_prefix('-').and_then(|cluster| cluster.strip_suffix('m')).is_some_and(in_cluster)
}
