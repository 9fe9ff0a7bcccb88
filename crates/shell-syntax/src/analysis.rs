//! The result of an analysis: the commands of a line, their dangers, and a doubt about the whole.

use crate::command_part::base_name;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolgate_proto::{AbsPath, Effect, RiskLevel};

/// What a command line would do, as far as it is known.
///
/// How a policy judges it:
/// - a deny or ask rule matches the line if it matches one of the [`CommandPart::deny_texts`] of a part, or an effect;
/// - with a [`CommandAnalysis::doubt`], only an exact rule for the whole text can allow the line;
/// - without one, the line is allowed if *every* part is: by a rule that matches its [`CommandPart::allow_text`]
///   (a wildcard rule only if the part is [`CommandPart::plain`]), by [`CommandPart::read_only`], or because the mode
///   allows its [`CommandPart::file_edit`]; and if every effect that the rule or mode does not cover is allowed;
/// - a danger with [`DangerStanding::Binding`] needs an approval (or is denied) whatever the rules and the mode are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandAnalysis {
    /// Every simple command in the order of the text. A command that a wrapper runs follows the wrapper.
    pub parts: Vec<CommandPart>,
    /// What an approver should be warned of.
    pub dangers: Vec<CommandDanger>,
    /// Why the line as a whole is not understood. Deny and ask rules are matched against its parts nevertheless.
    pub doubt: Option<CommandDoubt>,
    /// The line uses only the plain subset of bash: literal words, pipes, lists, simple globs, input redirects.
    /// A recogniser that shares no code with the parser decides this, so that one mistake does not affect both.
    #[serde(default)]
    pub plain_syntax: bool,
}

impl CommandAnalysis {
    /// Every program that bash may execute for this line, as spelled and without repetition: wrappers, the commands
    /// that they run, and the programs that known scripts start. Builtins are left out.
    ///
    /// The list is complete only if there is no [`CommandAnalysis::doubt`] and every part has a known
    /// [`CommandPart::program`].
    pub fn programs(&self) -> Vec<String> {
        let mut programs: Vec<String> = Vec::new();
        for name in self.parts.iter().flat_map(|part| &part.executes) {
            if !programs.contains(name) {
                programs.push(name.clone());
            }
        }
        programs
    }
}

/// One simple command of a command line, or a redirect or assignment without a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandPart {
    /// The command as written, with blanks normalised: for prompts, and for exact rules.
    pub text: String,
    /// The spelling that allow rules are matched against: without transparent wrappers, harmless assignments, redirects
    /// and needless quotes, the words joined by one blank.
    /// `None`: no allow rule covers the part, not even an exact one, because an expansion decides the program, an
    /// option or a path, or an assignment steers the program.
    /// Empty: nothing runs (a redirect or assignment without a command), so that only the effects are judged.
    pub allow_text: Option<String>,
    /// Every spelling that deny and ask rules are matched against: with and without wrappers, with the base name of the
    /// program, and of the commands that a runner may start.
    pub deny_texts: Vec<String>,
    /// The program behind transparent wrappers, as spelled; `None` if nothing runs, or if it is not known.
    pub program: Option<String>,
    /// The programs that this part executes, as spelled: wrappers from the outside in, then the program.
    /// The command of a wrapper that is not transparent is a part of its own.
    #[serde(default)]
    pub executes: Vec<String>,
    /// The words of the command, the program first, without transparent wrappers, assignments and redirects.
    pub argv: Vec<CommandWord>,
    /// What it would read, write or fetch, as far as its words tell. The effects of redirects are always included.
    pub effects: Vec<InferredEffect>,
    /// The command itself cannot write, run other programs, use the network or change the state of the shell.
    /// This does not include redirects: a write or fetch in [`CommandPart::effects`] is judged by itself, and so is
    /// whether the paths in it may be read.
    pub read_only: bool,
    /// A wildcard allow rule may cover this use of the program. `false` for `find -exec`, `git -c` and other uses that
    /// run something else; an exact rule covers them.
    pub plain: bool,
    /// It runs code that no table follows (`perl -e`, a script from a pipe), so that the programs which it starts are
    /// not known. A rule for all commands covers it only while no other rule denies or asks about some of them.
    #[serde(default)]
    pub runs_code: bool,
    /// It is one of the commands that mode `acceptEdits` allows inside the workspace; everything that it changes is in
    /// [`CommandPart::effects`].
    pub file_edit: bool,
    /// The command may read, write or fetch what is not in [`CommandPart::effects`].
    pub unknown_effects: bool,
    /// It only reads, but which files is decided when it runs: by the value of a variable, the output of a command,
    /// or the words that `xargs` and `find -exec` add.
    /// Then [`CommandPart::read_only`] is true and [`CommandPart::unknown_effects`] false, and no allow rule covers it
    /// ([`CommandPart::allow_text`] is `None`), unless its words are all known (`pip list` reads what is installed).
    /// It needs no approval only where the kernel limits what is read, written, run and sent to what was judged.
    /// An unknown word may also be an option. The flag is set only for words that cannot be options, and for programs
    /// none of whose options writes a file, runs a program, loads code or uses the network.
    pub reads_unknown_paths: bool,
    /// Files that choose the program behind a name (`rust-toolchain.toml`, `.python-version`).
    /// The part is read-only only while none of them exists.
    pub chosen_by: Vec<AbsPath>,
    /// Absolute globs whose files the program would take for options if their names began like one. The part is
    /// read-only only while no glob matches such a name.
    pub option_globs: Vec<String>,
    /// Programs that this one always starts (`man` starts `groff`). They are also in [`CommandPart::executes`].
    pub helpers: Vec<String>,
    /// Files and directories of the system, and of the user's settings, that it reads by itself (`dpkg` its database).
    /// They contain no secret and are not judged by rules; a sandbox has to make them readable.
    pub looks_in: Vec<AbsPath>,
    /// The directories in which it may run; empty if they are not known before the line runs.
    #[serde(skip)]
    pub working_dirs: Arc<[AbsPath]>,
    /// It runs in the background (`&`), and may continue after the line has ended.
    pub background: bool,
    /// The index of the part that runs this one (`env`, `find -exec`, `sh -c`). An exact rule for that part covers this
    /// one too.
    pub run_by: Option<usize>,
    /// It is a git command that is read-only on the terms that the runtime sets: no pager, and no helper program that
    /// the repository chooses.
    pub git_reader: bool,
}

impl CommandPart {
    /// Whether the program is git, and may search the files of the worktree.
    pub fn searches_by_git(&self) -> bool {
        self.runs_git() && self.argv.iter().any(|word| word.text == "grep" || word.live.is_some())
    }

    /// Whether the program is git.
    pub fn runs_git(&self) -> bool {
        self.program.as_deref().is_some_and(|program| base_name(program) == "git")
    }

    /// Whether the part does nothing but read known paths, so that only these reads are judged.
    pub fn only_reads(&self) -> bool {
        self.reads_if_bounded() && !self.reads_unknown_paths
    }

    /// Whether the part does nothing but read, known paths or unknown ones. The latter need a kernel that limits what
    /// can be read.
    pub fn reads_if_bounded(&self) -> bool {
        self.read_only
            && !self.unknown_effects
            && self.effects.iter().all(|inferred| matches!(inferred.effect, Effect::Read { .. }))
    }
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandWord {
    /// The value if it is known, the source text if not.
    pub text: String,
    /// The expansion that makes its value unknown before the command runs; `None` for a literal word.
    pub live: Option<ShellExpansionKind>,
}

/// Why the value of a word is not known before the command runs, from the most to the least predictable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellExpansionKind {
    /// A number or name that bash itself generates and that contains no secret (`$?`, `$#`, `<(…)`).
    Harmless,
    /// The names of existing files (`*.rs`), which may be several words.
    Glob,
    /// The home directory of another user, or an entry of the directory stack.
    Tilde,
    /// An arithmetic expansion.
    Arithmetic,
    /// The value of a variable.
    Parameter,
    /// The output of a command.
    Substitution,
}

/// An effect that follows from the words of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InferredEffect {
    /// A read, write or fetch. For a glob, the directory that the literal part of the pattern names.
    pub effect: Effect,
    /// What in the command causes it.
    pub origin: EffectOrigin,
    /// The absolute shell pattern, if the effect is on everything that matches it.
    /// As in bash, only a literal dot matches a leading dot.
    pub glob: Option<String>,
    /// If the path turns out to be a directory, the names of the entries that are created in it (`cp a b` with `b/`).
    pub entries: Vec<String>,
}

/// What in a command causes an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectOrigin {
    /// A redirect, which no rule for the command covers.
    Redirect,
    /// An argument of the command.
    Argument,
    /// The program by itself, without an argument that names the path (`ls` reads the working directory).
    Program,
}

/// Something in a command line that an approver should be warned of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandDanger {
    /// The kind, by which policies and records refer to it.
    pub kind: DangerKind,
    /// How much damage is possible.
    pub severity: RiskLevel,
    /// Whether a binding danger needs an approval or is denied.
    pub phase: DangerResponse,
    /// Whether rules and modes can override it.
    pub standing: DangerStanding,
    /// The description for a user, with the text of the command.
    pub text: String,
}

/// How a policy responds to a binding danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerResponse {
    /// An approver decides.
    Ask,
    /// The line is denied.
    Deny,
}

/// Whether rules and modes can override a danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerStanding {
    /// It is shown in a prompt that other reasons cause; by itself it causes none.
    Advisory,
    /// No mode and no allow rule overrides it.
    Binding,
}

/// The kinds of danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerKind {
    /// The output of one command becomes part of another.
    CommandSubstitution,
    /// Which program runs is not known before it runs.
    HiddenProgram,
    /// An expansion decides an option or a path.
    HiddenArgument,
    /// A string or an input runs as code (`eval`, `sh -c`, `curl … | sh`).
    CodeFromText,
    /// It removes a root, system, home, working, parent or repository directory, or overwrites a disk.
    DangerousRemoval,
    /// A function, alias, trap or shell option changes what later words mean.
    ShellState,
    /// An assignment to a variable that may steer programs.
    Environment,
    /// An interpreter runs what another command downloads.
    NetworkPipeToShell,
    /// A redirect has an unknown target.
    Redirect,
    /// It runs with the privileges of another user.
    Privilege,
    /// It uses the network.
    Network,
    /// It starts processes without a limit.
    ForkBomb,
    /// It contains characters that a prompt does not display as they are.
    InvisibleText,
    /// An option makes a reading program write a file or run a program.
    UnusualOption,
    /// It runs in another directory, which may be another repository.
    Directory,
}

impl DangerKind {
    /// The name used in records and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CommandSubstitution => "command_substitution",
            Self::HiddenProgram => "hidden_program",
            Self::HiddenArgument => "hidden_argument",
            Self::CodeFromText => "code_from_text",
            Self::DangerousRemoval => "dangerous_removal",
            Self::ShellState => "shell_state",
            Self::Environment => "environment",
            Self::NetworkPipeToShell => "network_pipe_to_shell",
            Self::Redirect => "redirect",
            Self::Privilege => "privilege",
            Self::Network => "network",
            Self::ForkBomb => "fork_bomb",
            Self::InvisibleText => "invisible_text",
            Self::UnusualOption => "unusual_option",
            Self::Directory => "directory",
        }
    }
}

/// Why a line as a whole is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandDoubt {
    /// The kind, by which records refer to it.
    pub kind: DoubtKind,
    /// The description for a user.
    pub text: String,
}

/// The kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoubtKind {
    /// It is not valid bash, or not supported by the parser.
    Unparsable,
    /// It is longer than a user reads in a prompt.
    TooLong,
    /// It is nested too deeply.
    TooDeep,
    /// It has too many commands or words.
    TooMany,
    /// It runs in a shell other than bash.
    OtherShell,
    /// It contains control, bidirectional or invisible characters.
    InvisibleText,
    /// It has a construct that bash may read in more than one way.
    Unclear,
}

impl DoubtKind {
    /// The name used in records and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unparsable => "unparsable",
            Self::TooLong => "too_long",
            Self::TooDeep => "too_deep",
            Self::TooMany => "too_many",
            Self::OtherShell => "other_shell",
            Self::InvisibleText => "invisible_text",
            Self::Unclear => "unclear",
        }
    }
}
