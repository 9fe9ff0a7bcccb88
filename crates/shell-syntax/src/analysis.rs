//! The answer of the analysis: parts, dangers, doubt.

use super::command_part::base_name;
use serde::{Deserialize, Serialize};
use toolgate_proto::{AbsPath, Effect, RiskLevel};

/// What a command line would do, as far as it can be known.
///
/// How to judge one:
/// - a deny or ask rule matches the line if it matches any of [`CommandPart::deny_texts`] of any part, or any effect;
/// - while [`CommandAnalysis::record_doubt`] stands, only an exact rule for the whole text can allow the line;
/// - otherwise the line is allowed if *every* part is: by a rule that matches its [`CommandPart::allow_text`]
///   (a wildcard rule only if the part is [`CommandPart::plain_syntax`]), by [`CommandPart::read_only`], or because the mode frees its
///   [`CommandPart::file_edit`]; and if every effect that the rule or mode does not speak for is allowed by itself;
/// - a danger with [`DangerStanding::RequestStateBinding`] is asked about (or denied) whatever rules and modes say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandAnalysis {
    /// Every simple command, in the order in which the text has them; the payload of a wrapper follows its wrapper.
    pub parts: Vec<CommandPart>,
    /// What a person should be warned of.
    pub dangers: Vec<CommandDanger>,
    /// Why the line as a whole is not understood. The parts found nevertheless count for deny and ask rules.
    pub doubt: Option<CommandDoubt>,
    /// The line uses only the plain subset of bash: literal words, pipes, lists, simple globs, input redirects.
    /// Found out by a recogniser that shares no code with the parser, so that one mistake does not make both wrong.
    #[serde(default)]
    pub plain_syntax: bool,
}

impl CommandAnalysis {
    /// Every program that bash may execute for this line, as spelled and without repetition: wrappers, what they
    /// run, and the programs that known scripts start in turn. Builtins that the shell itself runs are left out.
    ///
    /// Complete only where [`CommandAnalysis::record_doubt`] is `None` and every part has a known [`CommandPart::program`].
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

/// One simple command of a command line, or a redirect or assignment that stands alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPart {
    /// As written, blanks normalised: for display, and for exact rules.
    pub text: String,
    /// What allow rules are matched against: transparent wrappers and harmless assignments removed, quotes round
    /// plain words removed, words joined by one blank, redirects left out.
    /// `None`: no allow rule can cover it, not even an exact one for the part
    /// (something live picks the program, an option or a path; an assignment steers the program; …).
    /// Empty: nothing runs here (a redirect or assignment that stands alone); only the effects need an answer.
    pub allow_text: Option<String>,
    /// Every spelling that deny and ask rules are matched against.
    pub deny_texts: Vec<String>,
    /// The program that runs after transparent wrappers, as spelled; `None` if nothing runs or it cannot be known.
    pub program: Option<String>,
    /// The programs that running this part executes, as spelled: wrappers from the outside in, then the program.
    /// What a wrapper runs that is not transparent is a part of its own.
    #[serde(default)]
    pub executes: Vec<String>,
    /// The words of [`CommandPart::allow_text`]: program first, transparent wrappers, assignments and redirects left out.
    pub argv: Vec<CommandWord>,
    /// What it would read, write or fetch, as far as its words tell. Redirects are always here.
    pub effects: Vec<InferredEffect>,
    /// The command itself cannot write, run other programs, reach the network or change shell state.
    /// Says nothing about redirects: a write or fetch in [`CommandPart::path_effects`] is judged apart, and so is whether the
    /// paths it reads may be read.
    pub read_only: bool,
    /// `false`: a wildcard allow rule does not cover this use of the program (`find -exec`, `git -c`, …);
    /// an exact rule still does.
    pub plain: bool,
    /// One of the file-changing commands that mode `acceptEdits` frees inside the workspace; all that it
    /// changes is in [`CommandPart::path_effects`].
    pub file_edit: bool,
    /// The command may touch paths or hosts that are not in [`CommandPart::path_effects`].
    pub unknown_effects: bool,
    /// It only reads, but which files is decided when it runs: by the value of a variable, the output of a command,
    /// or the words that `xargs` and `find -exec` add.
    /// Then [`CommandPart::read_only`] is true and [`CommandPart::unknown_effects`] false, and no allow rule covers it
    /// ([`CommandPart::allow_text`] is `None`) unless its words are all known (`pip list` reads what is installed).
    /// It may pass unasked only where the kernel limits what is read, written, run and sent to what was judged.
    /// An unknown word can also be an option; the flag is set only for programs none of whose options writes, runs
    /// a program, loads code or reaches the network, and for words that cannot be options.
    pub reads_unknown_paths: bool,
    /// Files that choose which program runs behind a name (`rust-toolchain.toml`, `.python-version`).
    /// Read-only holds only while none of them exists.
    pub chosen_by: Vec<AbsPath>,
    /// Programs that this one starts as a matter of course (`man` starts `groff`); they are in [`CommandPart::executes`] too.
    pub helpers: Vec<String>,
    /// Places of the system, and of the user's settings, that it looks at by itself (`dpkg` at its database).
    /// They hold no secret, and no rule is asked about them; a sandbox has to let it read them.
    pub looks_in: Vec<AbsPath>,
    /// It goes on running after the line has ended (`&`).
    pub background: bool,
    /// The part that runs this one (`env`, `find -exec`, `sh -c`): an exact rule for that part covers this one too.
    pub run_by: Option<usize>,
    /// Read-only on the terms that the runtime sets for git: no pager, no helpers chosen by the repository.
    pub git_reader: bool,
}

impl CommandPart {
    /// Whether git is the program, and may search the files of the worktree.
    pub fn searches_by_git(&self) -> bool {
        self.runs_git() && self.argv.iter().any(|word| word.text == "grep" || word.live.is_some())
    }

    /// Whether git is the program.
    pub fn runs_git(&self) -> bool {
        self.program.as_deref().is_some_and(|program| base_name(program) == "git")
    }

    /// Whether nothing but its reads stands between this part and running unasked.
    pub fn only_reads(&self) -> bool {
        self.reads_if_bounded() && !self.reads_unknown_paths
    }

    /// The same where the kernel limits what can be read, so that unknown paths do not matter.
    pub fn reads_if_bounded(&self) -> bool {
        self.read_only
            && !self.unknown_effects
            && self.effects.iter().all(|inferred| matches!(inferred.effect, Effect::Read { .. }))
    }
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandWord {
    /// The value if it is literal, the source text if it is live.
    pub text: String,
    /// What makes its value unknown before it runs; `None` for a literal word.
    pub live: Option<ShellExpansionKind>,
}

/// Why the value of a word is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellExpansionKind {
    /// A number or name that bash itself makes up and that holds no secret (`$?`, `$#`, `$PWD`).
    Harmless,
    /// Names of files that exist (`*.rs`): it depends on the directory, and may be several words.
    Glob,
    /// A home directory or a directory of the stack that is not known here.
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
pub struct InferredEffect {
    /// A read, write or fetch. For a glob: the directory that the literal part of the pattern names.
    pub effect: Effect,
    /// Where it was seen.
    pub origin: EffectOrigin,
    /// The absolute shell pattern, if the effect is on whatever matches it.
    /// As in bash, a leading dot is matched only by a dot that is spelled out.
    pub glob: Option<String>,
    /// If the path turns out to be a directory: the names under which entries are put into it (`cp a b` with `b/`).
    pub entries: Vec<String>,
}

/// Where an effect was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectOrigin {
    /// A redirect: a read or write of its own, which no rule for the command covers.
    Redirect,
    /// An argument of the command.
    Argument,
    /// What the program does without being told (`ls` reads the working directory).
    Program,
}

/// Something that a person should be warned of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandDanger {
    /// Which kind.
    pub kind: DangerKind,
    /// How bad.
    pub severity: RiskLevel,
    /// What it calls for.
    pub phase: DangerResponse,
    /// Whether rules and modes can lift it.
    pub standing: DangerStanding,
    /// In words, with the text concerned.
    pub text: String,
}

/// What a danger calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerResponse {
    /// A person decides.
    Ask,
    /// It is refused.
    Deny,
}

/// Whether rules and modes can lift a danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerStanding {
    /// Shown in a prompt that happens anyway; by itself it stops nothing.
    Advisory,
    /// No mode and no allow rule lifts it.
    Binding,
}

/// The kinds of danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerKind {
    /// Output of a command becomes part of another.
    CommandSubstitution,
    /// Which program runs is not known before it runs.
    HiddenProgram,
    /// A live word picks an option or a path.
    HiddenArgument,
    /// A string is run as code (`eval`, `sh -c`, `python -c`).
    CodeFromText,
    /// Removal of a root, system, home, working or parent directory.
    DangerousRemoval,
    /// Functions, aliases, traps, options: later words mean something else.
    ShellState,
    /// A variable that steers programs.
    Environment,
    /// Something fetched is piped into an interpreter.
    NetworkPipeToShell,
    /// A redirect whose target is not known, or that is a network socket.
    Redirect,
    /// Another user's rights.
    Privilege,
    /// It reaches the network.
    Network,
    /// It starts processes without end.
    ForkBomb,
    /// Characters that a prompt does not show as they are.
    InvisibleText,
    /// An option that makes a harmless program write or run something.
    UnusualOption,
    /// The directory in which later commands run is not known, or is another repository.
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
pub struct CommandDoubt {
    /// Which kind.
    pub kind: DoubtKind,
    /// In words.
    pub text: String,
}

/// The kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoubtKind {
    /// Not valid bash, or not readable by the parser.
    Unparsable,
    /// Longer than people look at, or than the parser is given.
    TooLong,
    /// Nested deeper than the analysis goes.
    TooDeep,
    /// More commands than the analysis lists.
    TooMany,
    /// Another shell will read it.
    OtherShell,
    /// Control, bidirectional or invisible characters.
    InvisibleText,
    /// A construct whose meaning is not known for certain.
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
