//! The option tables of the subcommands of git that only read.
//!
//! They have the form of [`OptionTable`], but are parsed by [`GitArgs`](super::git_args::GitArgs), because which files
//! a subcommand shows depends on its options.
//!
//! `name=` only stands for an option that git gives the next word. An option whose value is optional, or that git only
//! knows with `=`, is `name?`: the next word is then a revision or a path. A test of the policy crate compares the
//! tables with git.

use super::{EMPTY_OPTION_TABLE, OperandKind, OptionTable};
use crate::word_list::WordList;

/// Options that make any subcommand write a file, run a program or use the network.
const HAZARDS: WordList = WordList(
    "--output --ext-diff --textconv --open-files-in-pager -O --upload-pack --receive-pack --exec -x \
     --no-index --gpg-sign --show-signature --strategy --edit --template --config --hook-path",
);

/// Options of all subcommands that show differences.
const DIFF_OPTIONS: &str = "patch no-patch unified? raw patch-with-raw indent-heuristic no-indent-heuristic minimal patience \
        histogram anchored= diff-algorithm= stat? compact-summary numstat shortstat dirstat? cumulative \
        summary patch-with-stat name-only name-status submodule? color? no-color color-moved? \
        no-color-moved color-moved-ws= word-diff? word-diff-regex= color-words? no-renames rename-empty \
        no-rename-empty check ws-error-highlight= full-index binary abbrev? break-rewrites? \
        find-renames? find-copies? find-copies-harder irreversible-delete diff-filter= pickaxe-all \
        pickaxe-regex relative? no-relative text ignore-cr-at-eol ignore-space-at-eol \
        ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= \
        inter-hunk-context= function-context exit-code quiet no-ext-diff no-textconv ignore-submodules? \
        src-prefix= dst-prefix= no-prefix default-prefix line-prefix= merge-base cached staged cc";

/// Options of all subcommands that walk over history.
const LOG_OPTIONS: &str = "follow decorate? no-decorate decorate-refs= decorate-refs-exclude= source mailmap no-mailmap \
        use-mailmap full-diff log-size max-count= skip= since= after= until= before= since-as-filter= \
        author= committer= grep-reflog= grep= all-match invert-grep regexp-ignore-case basic-regexp \
        extended-regexp fixed-strings perl-regexp remove-empty merges no-merges min-parents? \
        max-parents? no-min-parents no-max-parents first-parent exclude-first-parent-only not all \
        branches? tags? remotes? glob= exclude= exclude-hidden= reflog single-worktree \
        ignore-missing bisect cherry-mark cherry-pick left-only right-only cherry walk-reflogs merge \
        boundary simplify-by-decoration show-pulls full-history dense sparse simplify-merges \
        ancestry-path? date-order author-date-order topo-order reverse no-walk? do-walk pretty? format? \
        abbrev-commit no-abbrev-commit oneline encoding= expand-tabs? no-expand-tabs notes? no-notes \
        show-notes? relative-date date= parents children left-right graph no-graph show-linear-break? \
        count timestamp header objects diff-merges= no-diff-merges combined-all-paths dd";

/// The subcommands that only read with these options.
pub(super) const READERS: &[OptionTable] = &[
    OptionTable {
        names: &["status"],
        flags: "sbvz",
        attached: "u",
        long: "short branch show-stash porcelain? long verbose untracked-files? ignore-submodules? ignored? \
            column? no-column ahead-behind no-ahead-behind renames no-renames find-renames?",
        ..GIT
    },
    OptionTable {
        names: &["diff", "diff-tree", "diff-index", "diff-files"],
        flags: "puszDabwWRtrcm",
        attached: "UBMCX",
        valued: "SGIl",
        long: DIFF_OPTIONS,
        more_long: "no-index root no-commit-id always",
        ..GIT
    },
    OptionTable {
        names: &["log", "show", "whatchanged", "reflog"],
        flags: "puszDabwWRtrcmgiEFPq",
        attached: "UBMCX",
        valued: "SGInLl",
        long: LOG_OPTIONS,
        more_long: DIFF_OPTIONS,
        numbers: true,
        ..GIT
    },
    OptionTable {
        names: &["rev-list"],
        flags: "giEFP",
        valued: "n",
        long: LOG_OPTIONS,
        numbers: true,
        ..GIT
    },
    OptionTable {
        names: &["shortlog"],
        flags: "nsecw",
        long: "numbered summary email committer group= format? no-merges since= until= all",
        ..GIT
    },
    OptionTable {
        names: &["blame", "annotate"],
        flags: "bclfnsewtkp",
        attached: "MC",
        valued: "L",
        files: "S",
        long: "contents< ignore-revs-file< root show-stats porcelain line-porcelain incremental score-debug show-name show-number \
            show-email abbrev? date= since= ignore-rev= first-parent color-lines color-by-age",
        ..GIT
    },
    OptionTable {
        names: &["rev-parse"],
        flags: "q",
        long: "verify quiet sq short? symbolic symbolic-full-name abbrev-ref? all branches? tags? remotes? \
            show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir \
            is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository \
            show-superproject-working-tree revs-only no-revs flags no-flags show-object-format? \
            show-ref-format",
        ..GIT
    },
    OptionTable {
        names: &["ls-files"],
        flags: "cdmoikstuvfzS",
        valued: "x",
        files: "X",
        long: "cached deleted modified others ignored stage unmerged killed directory no-empty-directory \
            eol exclude= exclude-standard error-unmatch full-name abbrev? deduplicate format= \
            with-tree=",
        ..GIT
    },
    OptionTable {
        names: &["ls-tree"],
        flags: "drtlz",
        long: "long name-only name-status object-only full-name full-tree abbrev? format=",
        ..GIT
    },
    OptionTable {
        names: &["describe"],
        long: "tags all always long contains exact-match first-parent dirty? broken? abbrev? candidates= \
            debug match= exclude=",
        ..GIT
    },
    OptionTable {
        names: &["merge-base"],
        flags: "a",
        long: "all octopus independent is-ancestor fork-point",
        ..GIT
    },
    OptionTable {
        names: &["cat-file"],
        flags: "tsep",
        long: "batch-check? batch? batch-all-objects unordered buffer",
        ..GIT
    },
    OptionTable {
        names: &["name-rev"],
        long: "tags refs= all name-only always undefined no-undefined",
        ..GIT
    },
    OptionTable {
        names: &["for-each-ref", "show-ref"],
        flags: "dhqs",
        attached: "",
        valued: "",
        long: "count= sort= format= points-at= merged= no-merged= contains= no-contains= ignore-case \
            omit-empty head heads tags branches dereference hash? verify abbrev? quiet",
        ..GIT
    },
    OptionTable {
        names: &["show-branch"],
        flags: "ar",
        long: "all remotes current topo-order date-order sparse more? list no-name sha1-name no-color \
            color?",
        ..GIT
    },
    OptionTable { names: &["count-objects"], flags: "vH", long: "verbose human-readable", ..GIT },
    OptionTable {
        names: &["check-ignore"],
        flags: "qvznk",
        long: "quiet verbose non-matching no-index",
        hazards: WordList(""),
        ..GIT
    },
    OptionTable { names: &["check-attr"], flags: "az", long: "all cached", ..GIT },
    OptionTable {
        names: &["grep"],
        flags: "aIiwvhHEGFPnlLzcopWq",
        valued: "eABCm",
        pattern: "e",
        long: "cached untracked no-index text ignore-case word-regexp invert-match \
            full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column \
            files-with-matches name-only files-without-match null only-matching count color? no-color \
            break heading show-function function-context context= after-context= before-context= \
            max-count= max-depth= threads= and or not all-match quiet",
        ..GIT
    },
    OptionTable {
        names: &["range-diff", "cherry"],
        flags: "v",
        long: "no-color color? no-dual-color left-only right-only stat? abbrev?",
        ..GIT
    },
    OptionTable {
        names: &["var", "version"],
        flags: "l",
        long: "build-options",
        operands: OperandKind::Text,
        ..GIT
    },
];

/// The base of every table of git.
pub(super) const GIT: OptionTable =
    OptionTable { operands: OperandKind::Revisions, hazards: HAZARDS, ..EMPTY_OPTION_TABLE };

/// `git branch` when it lists branches.
pub(super) const BRANCH: OptionTable = OptionTable {
    flags: "arvliq",
    long: "all remotes list verbose show-current no-color color? column? no-column abbrev? no-abbrev \
            sort= format= ignore-case contains= no-contains= merged= no-merged= points-at= omit-empty",
    ..GIT
};

/// `git help` when it lists commands and guides.
pub(super) const HELP: OptionTable = OptionTable {
    flags: "agc",
    long: "all guides config no-external-commands no-aliases no-verbose user-interfaces developer-interfaces",
    ..GIT
};

/// `git tag` when it lists tags.
pub(super) const TAG: OptionTable = OptionTable {
    flags: "li",
    attached: "n",
    long: "list sort= format= color? no-color column? no-column ignore-case contains= no-contains= \
            merged= no-merged= points-at= omit-empty",
    ..GIT
};

/// `git config` when it reads settings.
pub(super) const CONFIG: OptionTable = OptionTable {
    flags: "lz",
    long: "get get-all get-regexp get-urlmatch list local worktree name-only show-origin show-scope \
            null includes no-includes bool int bool-or-int path type= default=",
    operands: OperandKind::Text,
    ..GIT
};
