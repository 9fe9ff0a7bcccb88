//! Derives the files that git subcommands read and write which change something.
//!
//! What such a subcommand does to the repository is not derived: a rule has to allow it. But the files that its words
//! name are judged like those of any other program, so that a rule for `git *` does not reach out of the workspace and
//! does not read what another rule denies. A word whose meaning is not certain counts as each of its meanings.

use super::ProgramUse;
use super::git_args::cluster_values;
use super::git_runs_program::git_runs_program;
use super::git_shown_files::{GitShownFiles, may_leave};
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// What the arguments of a subcommand name. Options are listed by their letter or their long name.
#[derive(Debug, Clone, Copy)]
struct GitWriterTable {
    /// The subcommands that share the entry.
    names: WordList,
    /// Letters without a value. After any other letter of a cluster it is not certain where a value begins.
    flags: &'static str,
    /// Options whose value is no path.
    texts: WordList,
    /// Options whose value is a file that is read.
    reads: WordList,
    /// Options whose value is a file or directory that is written.
    writes: WordList,
    /// Options with which it shows the content of files.
    shows: WordList,
    /// Options with which its input names the files that it reads.
    reads_names: WordList,
    /// What the arguments are that are no options.
    operands: WriterOperands,
}

/// What the operands of a subcommand are that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterOperands {
    /// Revisions, or paths that git accepts inside of the repository only. The repository may be larger than the
    /// workspace, so that a path that leads out of it counts.
    Names,
    /// Patterns and other text.
    Text,
    /// Files that are read.
    Reads,
    /// Files that are read and written.
    ReadsAndWrites,
    /// Files and directories, the last of which is the destination.
    Moves,
    /// A repository that is copied, and the destination.
    Copies,
}

/// A subcommand without an entry.
const OTHER_WRITER: GitWriterTable = GitWriterTable {
    names: WordList(""),
    flags: "afhnqv",
    texts: WordList("m message"),
    reads: WordList(""),
    writes: WordList(""),
    shows: WordList(""),
    reads_names: WordList(""),
    operands: WriterOperands::Names,
};

/// Options of every subcommand whose value is a file that is read.
const COMMON_READS: WordList = WordList("pathspec-from-file");

/// The subcommands whose options or operands name files.
const WRITERS: &[GitWriterTable] = &[
    GitWriterTable {
        names: WordList("commit"),
        flags: "aeinopqsvz",
        texts: WordList(
            "m message author date trailer C c reuse-message reedit-message fixup squash cleanup",
        ),
        reads: WordList("F file t template"),
        shows: WordList("p patch interactive v verbose"),
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("tag merge notes fmt-merge-msg commit-tree"),
        flags: "adefnqs",
        texts: WordList("m message cleanup trailer into-name ref"),
        reads: WordList("F file"),
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("add"),
        flags: "Afinpuv",
        shows: WordList("p patch i interactive e edit"),
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("reset checkout restore"),
        flags: "SWfklmpq",
        texts: WordList("b B s source conflict"),
        shows: WordList("p patch"),
        ..OTHER_WRITER
    },
    GitWriterTable { names: WordList("stash"), flags: "Sakpqu", shows: WordList("p patch"), ..OTHER_WRITER },
    GitWriterTable {
        names: WordList("rebase"),
        texts: WordList("onto"),
        shows: WordList("show-current-patch"),
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("am"),
        texts: WordList("include exclude whitespace directory patch-format"),
        shows: WordList("show-current-patch"),
        operands: WriterOperands::Reads,
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("apply"),
        texts: WordList("include exclude whitespace"),
        writes: WordList("build-fake-ancestor"),
        operands: WriterOperands::Reads,
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("hash-object verify-pack"),
        flags: "sw",
        texts: WordList("t path"),
        reads_names: WordList("stdin-paths"),
        operands: WriterOperands::Reads,
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("interpret-trailers"),
        texts: WordList("trailer where if-exists if-missing"),
        operands: WriterOperands::ReadsAndWrites,
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("merge-file"),
        flags: "pq",
        texts: WordList("L marker-size diff-algorithm"),
        operands: WriterOperands::ReadsAndWrites,
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("mailinfo mailsplit index-pack"),
        texts: WordList("encoding"),
        writes: WordList("o"),
        operands: WriterOperands::ReadsAndWrites,
        ..OTHER_WRITER
    },
    GitWriterTable { names: WordList("mv"), operands: WriterOperands::Moves, ..OTHER_WRITER },
    GitWriterTable {
        names: WordList("clone"),
        texts: WordList("b branch o origin depth"),
        reads: WordList("reference reference-if-able bundle-uri"),
        writes: WordList("separate-git-dir"),
        operands: WriterOperands::Copies,
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("init"),
        texts: WordList("b initial-branch"),
        writes: WordList("separate-git-dir"),
        ..OTHER_WRITER
    },
    GitWriterTable {
        names: WordList("bugreport diagnose"),
        texts: WordList("s suffix"),
        writes: WordList("o output-directory"),
        ..OTHER_WRITER
    },
    GitWriterTable { names: WordList("checkout-index"), writes: WordList("prefix"), ..OTHER_WRITER },
    GitWriterTable {
        names: WordList("read-tree"),
        reads: WordList("exclude-per-directory"),
        writes: WordList("index-output"),
        ..OTHER_WRITER
    },
    GitWriterTable { names: WordList("archive"), reads: WordList("add-file"), ..OTHER_WRITER },
    GitWriterTable { names: WordList("quiltimport"), reads: WordList("patches series"), ..OTHER_WRITER },
    // Its patterns begin with a slash.
    GitWriterTable { names: WordList("sparse-checkout"), operands: WriterOperands::Text, ..OTHER_WRITER },
];

/// Subcommands without an option table that show or copy the content of files.
const CONTENT_SUBCOMMANDS: WordList = WordList(
    "archive bundle checkout-index diff-pairs difftool fast-export format-patch merge-file merge-tree \
     pack-objects rerere request-pull send-email unpack-file upload-archive upload-pack",
);

/// Judges a subcommand that changes something: what its words name, and whether it shows content.
pub(super) fn judge_git_writer(name: &str, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let table = WRITERS.iter().find(|table| table.names.contains(name)).unwrap_or(&OTHER_WRITER);
    let mut scan = WriterScan { table, used: ProgramUse::default(), shows: false, operands: Vec::new() };
    scan.parse(args);
    scan.add_operands();
    let copies_all = name == "worktree" && args.iter().any(|arg| arg.text == "add");
    let used = ProgramUse { hazard: git_runs_program(name, args), ..scan.used };
    let whole_repository = scan.shows || copies_all || CONTENT_SUBCOMMANDS.contains(name);
    (used, GitShownFiles { whole_repository, ..GitShownFiles::default() })
}

/// The arguments of a subcommand as far as they are parsed.
struct WriterScan<'t> {
    /// The table of the subcommand.
    table: &'t GitWriterTable,
    /// The files that it reads and writes.
    used: ProgramUse,
    /// An option asks for content.
    shows: bool,
    /// The arguments that are, or may be, no options.
    operands: Vec<ShellArg>,
}

impl WriterScan<'_> {
    /// Parses all arguments.
    fn parse(&mut self, args: &[ShellArg]) {
        let mut rest = args;
        let mut divided = false;
        while let Some((arg, after)) = rest.split_first() {
            rest = after;
            if arg.text == "--" && arg.live.is_none() {
                divided = true;
                continue;
            }
            let is_option = arg.may_be_option() && arg.live.is_none();
            // `--` may be the value of an option that is not listed, so that options may follow.
            if !is_option || divided {
                self.operands.push(arg.clone());
            }
            if is_option {
                let takes_next = match arg.text.strip_prefix("--") {
                    Some(long) => self.parse_long_option(long, rest.first()),
                    None => self.parse_cluster(arg.text.strip_prefix('-').unwrap_or_default(), rest.first()),
                };
                rest = rest.get(usize::from(takes_next)..).unwrap_or_default();
            }
        }
    }

    /// Parses a long option, written out or abbreviated; returns whether the next word is certainly its value.
    fn parse_long_option(&mut self, long: &str, next: Option<&ShellArg>) -> bool {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(ShellArg::literal(value))),
            None => (long, None),
        };
        let table = self.table;
        let is_exact = |list: WordList| name.len() > 1 && list.contains(name);
        let may_be = |list: WordList| list.iter().any(|full| full.len() > 1 && full.starts_with(name));
        self.shows |= may_be(table.shows);
        self.used.unknown |= may_be(table.reads_names);
        if is_exact(table.texts) {
            return attached.is_none();
        }
        let reads = may_be(table.reads) || may_be(COMMON_READS);
        let writes = may_be(table.writes);
        if let Some(value) = attached.as_ref().or(next) {
            self.add_value(value, reads, writes);
        }
        if let Some(value) = attached.as_ref().filter(|_| !reads && !writes) {
            self.add_name(value);
        }
        attached.is_none() && (is_exact(table.reads) || is_exact(COMMON_READS) || is_exact(table.writes))
    }

    /// Parses a cluster of letters; returns whether the next word is certainly the value of the last one.
    fn parse_cluster(&mut self, cluster: &str, next: Option<&ShellArg>) -> bool {
        let table = self.table;
        let mut is_certain = true;
        let mut letters = cluster.chars();
        while let Some(letter) = letters.next() {
            let after = letters.as_str();
            let has = |list: WordList| list.iter().any(|name| name.chars().eq([letter]));
            self.shows |= has(table.shows);
            let (reads, writes) = (has(table.reads), has(table.writes));
            let attached = Some(after).filter(|after| !after.is_empty()).map(ShellArg::literal);
            if let Some(value) = attached.as_ref().or(next) {
                self.add_value(value, reads, writes);
            }
            if is_certain && (reads || writes || has(table.texts)) {
                return attached.is_none();
            }
            if is_certain && !table.flags.contains(letter) {
                is_certain = false;
                for value in cluster_values(after) {
                    self.add_name(&value);
                }
            }
        }
        false
    }

    /// Adds the value of an option that names a file.
    fn add_value(&mut self, value: &ShellArg, reads: bool, writes: bool) {
        if reads {
            self.used.reads.push((value.clone(), PathScope::Entry));
        }
        if writes {
            self.used.writes.push(value.clone());
        }
    }

    /// Adds a word that counts only if it is a path that leads out of the working directory.
    fn add_name(&mut self, word: &ShellArg) {
        let Some(word) = local_path(word).filter(may_leave) else { return };
        self.used.reads.push((word.clone(), PathScope::Tree));
        self.used.writes.push(word);
    }

    /// Adds what the operands name.
    fn add_operands(&mut self) {
        let operands = std::mem::take(&mut self.operands);
        match self.table.operands {
            WriterOperands::Text => {}
            WriterOperands::Names => operands.iter().for_each(|word| self.add_name(word)),
            WriterOperands::Reads | WriterOperands::ReadsAndWrites => {
                for file in &operands {
                    let writes = self.table.operands == WriterOperands::ReadsAndWrites;
                    self.add_value(file, true, writes);
                }
            }
            WriterOperands::Moves => self.add_moves(&operands),
            WriterOperands::Copies => {
                for word in operands.iter().filter_map(local_path) {
                    self.add_name(&word);
                    self.used.reads.push((word, PathScope::Tree));
                }
            }
        }
    }

    /// Adds the operands of `mv`: a source is read, because its content is then at the destination.
    fn add_moves(&mut self, operands: &[ShellArg]) {
        let Some((target, sources)) = operands.split_last() else { return };
        for source in sources {
            self.used.reads.push((source.clone(), PathScope::Tree));
            self.used.writes.push(source.clone());
            // The destination may be a directory.
            if let (Some(directory), Some(source)) = (target.known(), source.known()) {
                let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                self.used.writes.push(ShellArg::literal(format!("{directory}/{name}")));
            }
        }
        self.used.writes.push(target.clone());
    }
}

/// The path of a word that may be an address; `None` for an address of another machine.
fn local_path(word: &ShellArg) -> Option<ShellArg> {
    match word.text.strip_prefix("file://") {
        Some(path) => Some(ShellArg::literal(path)),
        // `:` also separates the two sides of a refspec, and a revision from a path of the repository.
        None => (word.tilde || word.text.starts_with(['/', '.']) || !word.text.contains(':'))
            .then(|| word.clone()),
    }
}
