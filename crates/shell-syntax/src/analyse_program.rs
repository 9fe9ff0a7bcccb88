//! Analyses what one program does with its arguments: by the option tables, the grammars, the wrappers, the edits and
//! the network programs.
//!
//! The lookups are tried in a fixed order, and the first that knows the program decides: version queries, wrappers,
//! builtins that change the shell, `git`, then grammars, option tables and edits. A program that none of them knows has
//! unknown effects; a rule may still cover it, unless an unknown word may be an option.

use crate::analysis::{DangerKind, ShellExpansionKind};
use crate::command_part::{CommandPartBuilder, add_xargs_words, base_name, join_words};
use crate::edits;
use crate::grammars::{self, XargsUse};
use crate::harmless_variables;
use crate::option_tables::{self, ProgramUse, builtins, versions};
use crate::runners;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::word_list::WordList;
use crate::wrappers::{self, WrapperPayload};
use toolgate_proto::{PathScope, RiskLevel};

/// How many positions are tried for the command of a wrapper whose options are not known.
const MAX_WRAPPER_GUESSES: usize = 8;

/// Arguments of `set` that make the shell stricter and change nothing else.
const STRICT_SHELL_OPTIONS: WordList = WordList("-e -u -o -eu -euo -eo -uo +e +u pipefail errexit nounset");

/// Wrappers that evaluate code in the current shell, so that later commands may mean something else.
const EVALUATING_BUILTINS: WordList = WordList("eval trap mapfile readarray compgen complete emulate");

/// A program with what decides how it is looked up.
struct ProgramCall<'p> {
    /// The base name, by which the tables know the program.
    name: &'p str,
    /// The program is named by its bare name or by its path in a system directory. Any other path may be another
    /// program of that name, for which no table vouches.
    is_system: bool,
    /// `xargs` appends unknown words.
    fed: bool,
    /// The content of standard input, if the line gives it; the inner `None` if it is not known.
    input: Option<Option<String>>,
}

impl AnalysisVisitor<'_> {
    /// Looks up what is known of a program. `fed`: `xargs` appends unknown words to `args`.
    pub(crate) fn analyse_program(
        &mut self,
        builder: &mut CommandPartBuilder,
        program: &ShellArg,
        args: &[ShellArg],
        fed: bool,
        input: Option<Option<String>>,
        context: &CommandContext<'_>,
    ) {
        let name = base_name(&program.text);
        let is_system = is_system_program(&program.text, name) && !program.tilde;
        let call = ProgramCall { name, is_system, fed, input };
        builder.part.plain &= !wrappers::NEVER_BY_WILDCARD.contains(name);
        self.check_removals(builder, name, args, context);
        self.add_guessed_commands(builder, name, args, context);
        if matches!(name, "sudo" | "doas" | "su" | "pkexec") {
            self.warn(DangerKind::Privilege, RiskLevel::High, || {
                format!("`{}` runs with the privileges of another user", builder.part.text)
            });
        }
        if self.analyse_query(builder, &call, args, context)
            || self.analyse_runner(builder, &call, args, context)
            || self.analyse_builtin(builder, &call, args, context)
        {
            return;
        }
        if name == "git" {
            self.analyse_git(builder, args, is_system, context);
            return;
        }
        if runners::reads_code(name, args) && (context.piped || call.input.is_some()) {
            builder.part.plain = false;
            builder.part.runs_code = true;
            self.warn_of_code_from_input(builder);
        }
        self.analyse_known_use(builder, &call, args, context);
        self.analyse_network(builder, name, args, context);
    }

    /// Analyses `command -v` and questions for a version, which run nothing else. Returns whether this is one.
    fn analyse_query(
        &mut self,
        builder: &mut CommandPartBuilder,
        call: &ProgramCall<'_>,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) -> bool {
        if is_program_lookup(call.name, args) {
            builder.part.read_only = call.is_system;
            return true;
        }
        let words: Option<Vec<&str>> = args.iter().map(ShellArg::known).collect();
        let Some(chosen_by) = words.and_then(|words| versions::asks_version(call.name, &words)) else {
            return false;
        };
        let used = ProgramUse { read_only: true, text: true, chosen_by, ..ProgramUse::default() };
        self.apply_program_use(builder, used, args, context);
        builder.part.read_only = call.is_system && !builder.part.unknown_effects;
        true
    }

    /// Analyses `xargs` and other wrappers. Returns whether the program is one.
    fn analyse_runner(
        &mut self,
        builder: &mut CommandPartBuilder,
        call: &ProgramCall<'_>,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) -> bool {
        if call.name == "xargs"
            && let Some(XargsUse { payload, reads }) = grammars::parse_xargs(args)
        {
            let reads = reads.into_iter().map(|file| (file, PathScope::Entry)).collect();
            let used =
                ProgramUse { read_only: true, text: true, silent: true, reads, ..ProgramUse::default() };
            self.apply_program_use(builder, used, &[], context);
            builder.part.read_only = call.is_system && !call.fed && !builder.part.unknown_effects;
            builder.part.unknown_effects |= !builder.part.read_only;
            builder.payloads.push(payload);
            return true;
        }
        let Some(payload) = wrappers::wrapper_payload(call.name, args) else { return false };
        // The words that `xargs` appends may be the command.
        builder.coverable &= !call.fed;
        self.analyse_wrapper(builder, call, args, payload, context);
        true
    }

    /// Analyses builtins that print variables, change the state of the shell, or run a file in it. Returns whether
    /// the program is one that needs no further lookup.
    fn analyse_builtin(
        &mut self,
        builder: &mut CommandPartBuilder,
        call: &ProgramCall<'_>,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) -> bool {
        let name = call.name;
        if let Some(names) = grammars::printed_variables(name, args) {
            builder.part.read_only =
                call.is_system && names.iter().all(|name| self.variables.is_printable_name(name));
            builder.part.unknown_effects = !builder.part.read_only;
            builder.coverable &= name == "printenv" || builder.part.read_only;
            return true;
        }
        let harmless =
            if name == "read" { self.note_read_names(args) } else { is_harmless_state_change(name, args) };
        if builtins::STATE_BUILTINS.contains(name) && !harmless {
            builder.coverable = false;
            self.warn(DangerKind::ShellState, RiskLevel::Medium, || {
                format!("`{}` changes the state of the shell", builder.part.text)
            });
            return true;
        }
        if !matches!(name, "source" | ".") {
            return false;
        }
        self.warn(DangerKind::CodeFromText, RiskLevel::High, || {
            format!("`{}` runs a script in the current shell", builder.part.text)
        });
        let reads = args.first().map(|file| (file.clone(), PathScope::Entry)).into_iter().collect();
        self.apply_program_use(builder, ProgramUse { reads, ..ProgramUse::default() }, args, context);
        builder.part.unknown_effects = true;
        true
    }

    /// Analyses a program by its grammar or option table, and by the files that it edits.
    fn analyse_known_use(
        &mut self,
        builder: &mut CommandPartBuilder,
        call: &ProgramCall<'_>,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) {
        let name = call.name;
        let used = if name == "read" || is_harmless_state_change(name, args) {
            Some(ProgramUse { read_only: true, text: true, ..ProgramUse::default() })
        } else {
            grammars::judge(name, args)
                .or_else(|| option_tables::find_option_table(name).map(|table| table.judge(args)))
        };
        if name == "find" || name == "gfind" {
            for payload in grammars::find_payloads(args) {
                builder.unknown_dir |= payload.in_its_directory;
                builder.payloads.push(payload.words);
            }
        }
        let used = used.map(|used| self.check_test_operators(name, used, args));
        let is_known = used.is_some();
        let only_reads = used.as_ref().is_some_and(|used| used.read_only);
        let edit = if only_reads { None } else { edits::parse_edits(name, args) };
        if let Some(used) = used {
            let read_only = used.read_only && edit.is_none();
            let text = used.text;
            self.apply_program_use(builder, used, args, context);
            // Words that are only printed are no paths, but the added ones may contain anything.
            builder.part.reads_unknown_paths |= call.fed && text && read_only;
            builder.part.read_only = read_only && call.is_system && !builder.part.unknown_effects;
            builder.part.unknown_effects |= !read_only && edit.is_none();
        }
        if let Some(edit) = edit {
            self.apply_edits(builder, edit, context);
            builder.part.file_edit &= call.is_system;
        } else if !is_known {
            builder.part.unknown_effects = true;
            self.check_live_arguments(builder, name, args);
        }
        builder.part.unknown_effects |= call.fed && !builder.part.read_only;
    }

    /// Treats a use of `test` as unknown if a word from outside of the line may become an operator: `-v` would
    /// evaluate the word after it.
    fn check_test_operators(&self, name: &str, used: ProgramUse, args: &[ShellArg]) -> ProgramUse {
        let from_outside = |arg: &ShellArg| {
            let live = arg.variables.iter().any(|name| self.variables.table.may_be_live(name));
            arg.splits && arg.pattern.is_none() && (live || arg.live != Some(ShellExpansionKind::Parameter))
        };
        let unknown =
            used.maybe_unknown_option && matches!(name, "test" | "[") && args.iter().any(from_outside);
        ProgramUse { unknown: used.unknown | unknown, read_only: used.read_only && !unknown, ..used }
    }

    /// Analyses a program that runs another one.
    ///
    /// The effects of a wrapper itself are unknown, because it may change the user, the directory or the environment.
    fn analyse_wrapper(
        &mut self,
        builder: &mut CommandPartBuilder,
        call: &ProgramCall<'_>,
        args: &[ShellArg],
        payload: WrapperPayload,
        context: &CommandContext<'_>,
    ) {
        let name = call.name;
        builder.part.unknown_effects = true;
        if wrappers::SHELLS.contains(name) {
            builder.positional = args.iter().filter(|arg| !arg.text.starts_with('-')).cloned().collect();
        }
        match payload {
            WrapperPayload::Words(at) => add_wrapped_command(builder, name, args, at),
            WrapperPayload::Text(Some(text)) => {
                self.warn(DangerKind::CodeFromText, RiskLevel::High, || {
                    format!("`{name}` runs a string as shell code")
                });
                builder.texts.push(text);
            }
            WrapperPayload::Text(None) => {
                self.warn(DangerKind::HiddenProgram, RiskLevel::High, || {
                    format!("the command that `{}` runs is not known in advance", builder.part.text)
                });
                builder.coverable = false;
            }
            WrapperPayload::Nothing => {
                // The words of an argument may be the command: `timeout [1r]*`.
                builder.coverable &=
                    wrappers::SHELLS.contains(name) || !args.iter().any(wrappers::may_move_command);
                self.analyse_wrapper_without_command(builder, call, args, context);
            }
        }
        if EVALUATING_BUILTINS.contains(name) {
            builder.coverable = false;
        }
        self.check_live_arguments(builder, name, args);
        self.analyse_network(builder, name, args, context);
    }

    /// Analyses a wrapper whose arguments name no command: a shell that runs a script or its input, or `exec` with
    /// nothing but redirects.
    fn analyse_wrapper_without_command(
        &mut self,
        builder: &mut CommandPartBuilder,
        call: &ProgramCall<'_>,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) {
        let is_shell = wrappers::SHELLS.contains(call.name);
        if is_shell && wrappers::reads_program(args) {
            match &call.input {
                Some(Some(text)) => builder.texts.push(text.clone()),
                Some(None) => builder.coverable = false,
                None if context.piped => {
                    builder.part.plain = false;
                    builder.part.runs_code = true;
                    self.warn_of_code_from_input(builder);
                }
                None => {}
            }
            return;
        }
        // `bash <(…)`, `bash "$x"`: the line itself makes the program.
        let is_made = is_shell && args.iter().any(|arg| arg.live.is_some());
        builder.part.plain &= !is_made;
        builder.part.runs_code |= is_made;
        if is_shell && let Some(script) = args.iter().position(|arg| !arg.text.starts_with(['-', '+'])) {
            // A deny rule for the script also matches the shell that runs it.
            builder.add_deny_texts(args.get(script..).unwrap_or_default());
        }
        if call.name == "exec" {
            builder.coverable = false;
            self.warn(DangerKind::ShellState, RiskLevel::Medium, || {
                "`exec` redirects the shell itself".to_owned()
            });
        }
    }

    /// Warns that a program runs code that it reads from its input.
    fn warn_of_code_from_input(&mut self, builder: &CommandPartBuilder) {
        self.warn(DangerKind::CodeFromText, RiskLevel::High, || {
            format!("`{}` runs code from its input", builder.part.text)
        });
    }

    /// Notes the variables that `read` sets; returns whether none of them steers a program.
    fn note_read_names(&mut self, args: &[ShellArg]) -> bool {
        let Some(names) = grammars::read_builtin_names(args) else { return false };
        let harmless = names.iter().all(|name| harmless_variables::is_local(name, &ShellArg::literal("x")));
        if harmless {
            self.variables.text_names.extend(names.into_iter().map(str::to_owned));
        }
        harmless
    }
}

/// Adds the command of a wrapper, whose words begin at position `at`.
fn add_wrapped_command(builder: &mut CommandPartBuilder, name: &str, args: &[ShellArg], at: usize) {
    let payload: Vec<ShellArg> = args.get(at..).unwrap_or_default().to_vec();
    builder.coverable &= !args.iter().take(at).any(wrappers::may_move_command);
    // An option of unknown meaning may take a value, and then the command begins later.
    if args.iter().take(at).any(|arg| arg.text.starts_with("--") || arg.live.is_some()) {
        for later in (at..args.len()).take(MAX_WRAPPER_GUESSES) {
            builder.add_deny_text(join_words(args.get(later..).unwrap_or_default()));
        }
    }
    builder.payloads.push(if matches!(name, "xargs" | "parallel") {
        add_xargs_words(payload)
    } else {
        payload
    });
}

/// Whether a program is named by its bare name, or by its path in a system directory.
fn is_system_program(text: &str, name: &str) -> bool {
    let directory = text.strip_suffix(name).and_then(|head| head.strip_suffix('/'));
    !text.contains('/') || matches!(directory, Some("/bin" | "/usr/bin" | "/sbin" | "/usr/sbin"))
}

/// Whether a use of a builtin that can change the state of the shell changes nothing that affects later commands.
///
/// `set -euo pipefail` is common and only makes a script stricter.
fn is_harmless_state_change(name: &str, args: &[ShellArg]) -> bool {
    match name {
        "set" => {
            !args.is_empty()
                && args.iter().all(|arg| arg.known().is_some_and(|text| STRICT_SHELL_OPTIONS.contains(text)))
        }
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            !args.is_empty()
                && args.iter().all(|arg| {
                    arg.known().and_then(|text| text.split_once('=')).is_some_and(|(name, value)| {
                        harmless_variables::is_harmless(name, &ShellArg::literal(value))
                    })
                })
        }
        "umask" | "caller" | "shift" => args.is_empty(),
        "ulimit" => matches!(args, [] | [_]) && args.iter().all(|arg| arg.known() == Some("-a")),
        _ => false,
    }
}

/// Whether a command is `command -v`, which finds a program and runs nothing.
fn is_program_lookup(name: &str, args: &[ShellArg]) -> bool {
    let asks = matches!(args.first().and_then(ShellArg::known), Some("-v" | "-V"));
    name == "command" && asks && args.iter().all(|arg| arg.live.is_none())
}
