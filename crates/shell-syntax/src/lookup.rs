//! What is known of one program and its words: tables, grammars, wrappers, edits, the network.

use super::analysis::{DangerKind, EffectOrigin, InferredEffect, ShellExpansionKind};
use super::command_part::{
    CommandPartBuilder, add_xargs_words, base_name, inferred_effect, is_pipe, join_words,
};
use super::edits;
use super::expand::ShellArg;
use super::grammars::{self, XargsUse};
use super::network;
use super::option_tables::{self, ProgramUse, builtins, git, versions};
use super::runners;
use super::variable_safety;
use super::visitor::{AnalysisVisitor, CommandContext};
use super::working_dirs::is_null_or_stream_device;
use super::wrappers::{self, WrapperPayload};
use toolgate_proto::{AbsPath, Effect, PathScope, RiskLevel, WriteKind};

/// How many places are tried for the command of a wrapper whose options are not known.
const MAX_WRAPPER_GUESSES: usize = 8;

/// How many directories above the working directory are looked at for a file that chooses a program.
const MAX_PARENT_DIRS: usize = 32;

impl AnalysisVisitor<'_> {
    /// Looks up what is known of the program.
    pub(super) fn analyse_program(
        &mut self,
        draft: &mut CommandPartBuilder,
        program: &ShellArg,
        args: &[ShellArg],
        fed: bool,
        input: Option<Option<String>>,
        place: &CommandContext<'_>,
    ) {
        let name = base_name(&program.text).to_owned();
        let name = name.as_str();
        // Only the bare word, or its place in the system, is the program that the tables speak of; any other path may
        // lead to anything of that name.
        let bare = is_system_program(&program.text, name) && !program.tilde;
        draft.part.plain &= !wrappers::NEVER_BY_WILDCARD.contains(&name);
        self.check_removals(draft, name, args, place);
        self.add_guessed_commands(draft, name, args, place);
        if matches!(name, "sudo" | "doas" | "su" | "pkexec") {
            self.warn(DangerKind::Privilege, RiskLevel::High, || {
                format!("`{}` changes rights", draft.part.text)
            });
        }
        if is_program_lookup(name, args) {
            draft.part.read_only = bare;
            return;
        }
        let words: Option<Vec<&str>> = args.iter().map(ShellArg::known).collect();
        if let Some(chosen_by) = words.and_then(|words| versions::asks_version(name, &words)) {
            let used = ProgramUse { read_only: true, text: true, chosen_by, ..ProgramUse::default() };
            self.apply_program_use(draft, used, args, place);
            draft.part.read_only = bare && !draft.part.unknown_effects;
            return;
        }
        if name == "xargs"
            && let Some(XargsUse { payload, reads }) = grammars::parse_xargs(args)
        {
            let reads = reads.into_iter().map(|file| (file, PathScope::Entry)).collect();
            self.apply_program_use(
                draft,
                ProgramUse { read_only: true, text: true, silent: true, reads, ..ProgramUse::default() },
                &[],
                place,
            );
            draft.part.read_only = bare && !fed && !draft.part.unknown_effects;
            draft.part.unknown_effects |= !draft.part.read_only;
            draft.payloads.push(payload);
            return;
        }
        if let Some(runs) = wrappers::wrapper_payload(name, args) {
            // The words that `xargs` adds may be what runs.
            draft.coverable &= !fed;
            self.analyse_wrapper(draft, name, args, runs, input, place);
            return;
        }
        if let Some(names) = grammars::printed_variables(name, args) {
            draft.part.read_only = bare && names.iter().all(|name| self.is_printable_name(name));
            draft.part.unknown_effects = !draft.part.read_only;
            draft.coverable &= name == "printenv" || draft.part.read_only;
            return;
        }
        let harmless =
            if name == "read" { self.note_read_names(args) } else { is_harmless_state_change(name, args) };
        if builtins::STATE_BUILTINS.contains(&name) && !harmless {
            draft.coverable = false;
            self.warn(DangerKind::ShellState, RiskLevel::Medium, || {
                format!("`{}` changes the shell", draft.part.text)
            });
            return;
        }
        if matches!(name, "source" | ".") {
            self.warn(DangerKind::CodeFromText, RiskLevel::High, || {
                format!("`{}` runs a file in the shell", draft.part.text)
            });
            let files = args.first().map(|file| (file.clone(), PathScope::Entry)).into_iter().collect();
            self.apply_program_use(draft, ProgramUse { reads: files, ..ProgramUse::default() }, args, place);
            draft.part.unknown_effects = true;
            return;
        }
        if name == "git" {
            self.analyse_git(draft, args, bare, place);
            return;
        }
        if runners::reads_code(name, args) && (place.piped || input.is_some()) {
            draft.part.plain = false;
            self.warn(DangerKind::CodeFromText, RiskLevel::High, || {
                format!("`{}` runs what it is sent", draft.part.text)
            });
        }
        let known = if name == "read" || is_harmless_state_change(name, args) {
            Some(ProgramUse { read_only: true, text: true, ..ProgramUse::default() })
        } else {
            grammars::judge(name, args)
                .or_else(|| option_tables::find_option_table(name).map(|entry| entry.judge(args)))
        };
        if name == "find" || name == "gfind" {
            for payload in grammars::find_payloads(args) {
                draft.unknown_dir |= payload.in_its_directory;
                draft.payloads.push(payload.words);
            }
        }
        // A test may evaluate words that nobody outside the line can choose, and no others.
        let known = known.map(|used| {
            let outside = |arg: &ShellArg| {
                let live = arg.variables.iter().any(|name| self.variables.may_be_live(name));
                arg.splits
                    && arg.pattern.is_none()
                    && (live || arg.live != Some(ShellExpansionKind::Parameter))
            };
            let unknown =
                used.maybe_unknown_option && matches!(name, "test" | "[") && args.iter().any(outside);
            ProgramUse { unknown: used.unknown | unknown, read_only: used.read_only && !unknown, ..used }
        });
        let only_reads = known.as_ref().is_some_and(|used| used.read_only);
        let edit = if only_reads { None } else { edits::parse_edits(name, args) };
        let is_known = known.is_some();
        if let Some(used) = known {
            let read_only = used.read_only && edit.is_none();
            let text = used.text;
            self.apply_program_use(draft, used, args, place);
            // Text is no path, but who knows what is printed.
            draft.part.reads_unknown_paths |= fed && text && read_only;
            draft.part.read_only = read_only && bare && !draft.part.unknown_effects;
            draft.part.unknown_effects |= !read_only && edit.is_none();
        }
        if let Some(edit) = edit {
            self.apply_edits(draft, edit, place);
            draft.part.file_edit &= bare;
        } else if !is_known {
            draft.part.unknown_effects = true;
            self.check_live_arguments(draft, name, args);
        }
        draft.part.unknown_effects |= fed && !draft.part.read_only;
        self.analyse_network(draft, name, args, place);
    }

    fn analyse_wrapper(
        &mut self,
        draft: &mut CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
        runs: WrapperPayload,
        input: Option<Option<String>>,
        place: &CommandContext<'_>,
    ) {
        draft.part.unknown_effects = true;
        let is_shell = wrappers::SHELLS.contains(&name);
        match runs {
            WrapperPayload::Words(at) => {
                let payload: Vec<ShellArg> = args.get(at..).unwrap_or_default().to_vec();
                // With an option of unknown meaning the command may begin later than it seems.
                if args.iter().take(at).any(|arg| arg.text.starts_with("--") || arg.live.is_some()) {
                    for later in (at..args.len()).take(MAX_WRAPPER_GUESSES) {
                        draft.add_deny_text(join_words(args.get(later..).unwrap_or_default()));
                    }
                }
                draft.payloads.push(if matches!(name, "xargs" | "parallel") {
                    add_xargs_words(payload)
                } else {
                    payload
                });
            }
            WrapperPayload::Text(Some(text)) => {
                self.warn(DangerKind::CodeFromText, RiskLevel::High, || {
                    format!("`{name}` runs a text as a program")
                });
                draft.texts.push(text);
            }
            WrapperPayload::Text(None) => {
                self.warn(DangerKind::HiddenProgram, RiskLevel::High, || {
                    format!("what `{}` runs cannot be known", draft.part.text)
                });
                draft.coverable = false;
            }
            WrapperPayload::Nothing if is_shell && wrappers::reads_program(args) => match input {
                Some(Some(text)) => draft.texts.push(text),
                Some(None) => draft.coverable = false,
                None => {
                    // What comes through a pipe is a program that nobody has seen.
                    if place.piped {
                        draft.part.plain = false;
                        self.warn(DangerKind::CodeFromText, RiskLevel::High, || {
                            format!("`{}` runs what it is sent", draft.part.text)
                        });
                    }
                }
            },
            WrapperPayload::Nothing => {
                // `bash <(…)`, `bash "$x"`: a program that the line itself makes up.
                draft.part.plain &= !(is_shell && args.iter().any(|arg| arg.live.is_some()));
                if is_shell
                    && let Some(script) = args.iter().position(|arg| !arg.text.starts_with(['-', '+']))
                {
                    // A rule against the file holds for the shell that runs it.
                    draft.add_deny_texts(args.get(script..).unwrap_or_default());
                }
                if name == "exec" {
                    draft.coverable = false;
                    self.warn(DangerKind::ShellState, RiskLevel::Medium, || {
                        "`exec` changes the shell's own streams".to_owned()
                    });
                }
            }
        }
        if matches!(name, "eval" | "trap" | "mapfile" | "readarray" | "compgen" | "complete" | "emulate") {
            draft.coverable = false;
        }
        self.check_live_arguments(draft, name, args);
        self.analyse_network(draft, name, args, place);
    }

    fn analyse_git(
        &mut self,
        draft: &mut CommandPartBuilder,
        args: &[ShellArg],
        bare: bool,
        place: &CommandContext<'_>,
    ) {
        let judged = git::judge(args);
        if let Some(at) = judged.subcommand
            && at > 0
        {
            let words: Vec<&str> = std::iter::once("git")
                .chain(args.get(at..).unwrap_or_default().iter().map(|arg| arg.text.as_str()))
                .collect();
            draft.add_deny_text(words.join(" "));
        }
        let mut read_only = judged.used.read_only && bare;
        if judged.used.hazard {
            self.warn(DangerKind::UnusualOption, RiskLevel::High, || {
                format!("`{}` carries an option that can run or write something", draft.part.text)
            });
        }
        if read_only && !place.dirs.is_only(self.start) {
            read_only = false;
            self.warn(DangerKind::Directory, RiskLevel::Medium, || {
                "git runs in another directory, which may be another repository".to_owned()
            });
        }
        draft.part.git_reader = read_only;
        let known = judged.used.read_only;
        let shows = judged.shows;
        let used =
            ProgramUse { reads: judged.used.reads.into_iter().chain(shows.here).collect(), ..judged.used };
        self.apply_program_use(draft, used, args, place);
        self.add_git_reads(draft, shows.whole_repository, &shows.top, place);
        // What a repository keeps is not bounded by the paths that may be read.
        if draft.part.reads_unknown_paths || args.iter().any(|arg| !arg.one_of.is_empty()) {
            draft.part.reads_unknown_paths = false;
            draft.part.unknown_effects = true;
            draft.coverable = false;
        }
        draft.part.read_only = read_only && !draft.part.unknown_effects;
        draft.part.unknown_effects |= !known;
    }

    /// Notes the variables that `read` sets; tells whether all of them are names that steer nothing.
    fn note_read_names(&mut self, args: &[ShellArg]) -> bool {
        let Some(names) = grammars::read_builtin_names(args) else { return false };
        let harmless = names.iter().all(|name| variable_safety::is_local(name, &ShellArg::literal("x")));
        if harmless {
            self.text_here.extend(names.into_iter().map(str::to_owned));
        }
        harmless
    }

    /// Adds the reads of what git shows from the top of the repository down. Where the top is cannot be known: it is
    /// the working directory or one above it, and git that only reads does not run if it lies outside the workspace.
    fn add_git_reads(
        &mut self,
        draft: &mut CommandPartBuilder,
        whole: bool,
        top: &[(String, PathScope)],
        place: &CommandContext<'_>,
    ) {
        let start = [self.start.clone()];
        let dirs = if place.dirs.is_unknown() { &start[..] } else { place.dirs.all() };
        for dir in dirs {
            let dir = dir.lexical();
            let root = self.workspace.roots.iter().filter(|root| dir.is_under(root));
            let root = root.min_by_key(|root| root.as_path().as_os_str().len()).unwrap_or(&dir);
            if whole {
                let effect = Effect::Read { path: root.clone(), scope: PathScope::Tree };
                draft.part.effects.push(inferred_effect(effect, EffectOrigin::Program));
            }
            let mut above = Some(dir.clone());
            while let Some(candidate) = above.filter(|candidate| candidate.is_under(root)) {
                for (path, scope) in top {
                    let effect = Effect::Read { path: candidate.join(path), scope: *scope };
                    draft.part.effects.push(inferred_effect(effect, EffectOrigin::Argument));
                }
                above = candidate.parent();
            }
        }
    }

    /// Turns what a table says into effects, and decides whether a rule may cover the words.
    fn apply_program_use(
        &mut self,
        draft: &mut CommandPartBuilder,
        used: ProgramUse,
        args: &[ShellArg],
        place: &CommandContext<'_>,
    ) {
        let mut unknown = used.unknown;
        let mut unknown_reads = used.maybe_unknown_option;
        for (file, scope) in &used.reads {
            unknown_reads |= self.add_reads(draft, file, *scope, place);
        }
        for file in &used.writes {
            unknown |= self.add_writes(draft, file, WriteKind::Put, Vec::new(), place);
        }
        if let Some(scope) = used.here {
            unknown |= place.dirs.is_unknown();
            for path in place.dirs.all() {
                draft
                    .part
                    .effects
                    .push(inferred_effect(Effect::Read { path: path.clone(), scope }, EffectOrigin::Program));
            }
        }
        if !used.chosen_by.is_empty() {
            unknown |= place.dirs.is_unknown();
            for directory in place.dirs.all() {
                let above = std::iter::successors(Some(directory.lexical()), AbsPath::parent);
                for directory in above.take(MAX_PARENT_DIRS) {
                    draft.part.chosen_by.extend(used.chosen_by.iter().map(|name| directory.join(name)));
                }
            }
        }
        draft.part.helpers.extend(used.helpers.iter().map(|name| (*name).to_owned()));
        let home = self.workspace.home.as_ref();
        draft.part.looks_in.extend(used.looks_in.iter().filter_map(|place| match place.strip_prefix("~/") {
            Some(below) => home.map(|home| home.join(below)),
            None => AbsPath::new(*place).ok(),
        }));
        draft.part.plain &= !used.hazard;
        if used.hazard {
            let text = format!("`{}` can write or run something", draft.part.text);
            self.warn(DangerKind::UnusualOption, RiskLevel::Medium, || text);
        }
        if unknown || unknown_reads {
            self.warn(DangerKind::HiddenArgument, RiskLevel::Medium, || {
                format!("which files `{}` means cannot be known", draft.part.text)
            });
        }
        // A reader may be given names that are not known; the kernel holds it to what may be read.
        draft.part.reads_unknown_paths |= used.reads_beyond_args && used.read_only;
        let reads_unknown = unknown_reads && !unknown && used.read_only;
        if reads_unknown {
            draft.part.reads_unknown_paths = true;
            draft.words_unknown = true;
        } else if unknown || unknown_reads {
            draft.coverable = false;
            draft.part.unknown_effects = true;
        }
        if used.text {
            self.check_printed_words(draft, args, used.silent, place);
            return;
        }
        // A name that cannot be opened is printed.
        if used.read_only && args.iter().any(|arg| !self.is_printable(arg)) {
            draft.part.unknown_effects = true;
        }
        if !reads_unknown {
            let name = draft.part.program.clone().unwrap_or_default();
            let bound: Vec<ShellArg> = if used.read_only {
                args.iter().filter(|arg| arg.one_of.is_empty()).cloned().collect()
            } else {
                args.to_vec()
            };
            self.check_live_arguments(draft, &name, &bound);
            // A rule speaks of words that can be seen; of a reader every spelling is shown to deny rules.
            let chosen = args.iter().filter(|arg| !arg.one_of.is_empty()).count();
            draft.words_unknown |= chosen > 1 || chosen == 1 && !used.read_only;
        }
    }

    /// Words that are only printed: what they tell must be no secret.
    fn check_printed_words(
        &mut self,
        draft: &mut CommandPartBuilder,
        args: &[ShellArg],
        silent: bool,
        place: &CommandContext<'_>,
    ) {
        for arg in args {
            if arg.pattern.is_some() {
                self.add_reads(draft, arg, PathScope::Entry, place);
            }
            if !silent && !self.is_printable(arg) {
                draft.part.unknown_effects = true;
            }
        }
    }

    /// Whether a variable holds no secret: by its name, or because the line itself set it.
    pub(super) fn is_printable_name(&self, name: &str) -> bool {
        // No program keeps a secret under a name of one letter.
        let short = name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        variable_safety::is_printable(name, &self.set_here, &self.text_here)
            || short && self.variables.is_untouched(name)
    }

    /// A live word that may turn out to be an option leaves a command that no rule covers.
    fn check_live_arguments(&mut self, draft: &mut CommandPartBuilder, name: &str, args: &[ShellArg]) {
        let mut before: Option<&ShellArg> = None;
        for arg in args {
            if before.and_then(ShellArg::known) == Some("--") {
                break;
            }
            let is_value = before.and_then(ShellArg::known).is_some_and(|option| takes_text(name, option))
                && !arg.splits;
            if arg.live.is_some() && arg.pattern.is_none() && arg.may_be_option() && !is_value {
                draft.coverable = false;
                self.warn(DangerKind::HiddenArgument, RiskLevel::Medium, || {
                    format!("`{}` may turn out to be an option", arg.text)
                });
            }
            before = Some(arg);
        }
    }

    /// Adds the effects of reading a file; tells whether it is unknown.
    fn add_reads(
        &mut self,
        draft: &mut CommandPartBuilder,
        file: &ShellArg,
        scope: PathScope,
        place: &CommandContext<'_>,
    ) -> bool {
        if !file.one_of.is_empty() {
            let unknown = file.one_of.iter().map(|value| self.add_reads(draft, value, scope, place));
            return unknown.fold(false, |any, one| any | one);
        }
        if file.known().is_some_and(|text| text == "-" || text.is_empty() || is_null_or_stream_device(text))
            || is_pipe(file)
            || self.is_private_temp(file)
        {
            return false;
        }
        let effects = place.dirs.read_effects(file, scope, EffectOrigin::Argument, self.workspace);
        let unknown = effects.is_none();
        draft.part.effects.extend(effects.unwrap_or_default());
        for path in place.dirs.likely_paths(file, self.workspace) {
            draft.part.effects.push(inferred_effect(Effect::Read { path, scope }, EffectOrigin::Argument));
        }
        unknown
    }

    fn add_writes(
        &mut self,
        draft: &mut CommandPartBuilder,
        file: &ShellArg,
        kind: WriteKind,
        entries: Vec<String>,
        place: &CommandContext<'_>,
    ) -> bool {
        let nowhere = file.known().is_some_and(|text| text.is_empty() || is_null_or_stream_device(text));
        if nowhere || is_pipe(file) || self.is_private_temp(file) {
            return false;
        }
        let effects = place.dirs.write_effects(file, kind, EffectOrigin::Argument, self.workspace);
        let unknown = effects.is_none();
        draft.part.effects.extend(
            effects
                .unwrap_or_default()
                .into_iter()
                .map(|inferred| InferredEffect { entries: entries.clone(), ..inferred }),
        );
        for path in place.dirs.likely_paths(file, self.workspace) {
            draft.part.effects.push(inferred_effect(Effect::Write { path, kind }, EffectOrigin::Argument));
        }
        unknown
    }

    fn apply_edits(
        &mut self,
        draft: &mut CommandPartBuilder,
        edit: edits::CommandEdits,
        place: &CommandContext<'_>,
    ) {
        let mut unknown = false;
        for (file, scope) in &edit.reads {
            unknown |= self.add_reads(draft, file, *scope, place);
        }
        for target in edit.writes {
            unknown |= self.add_writes(draft, &target.file, target.kind, target.entries, place);
        }
        draft.part.file_edit = edit.accept_edits_command && edit.complete && !unknown;
        draft.part.unknown_effects |= unknown || !edit.complete;
        if unknown {
            draft.coverable = false;
            self.warn(DangerKind::HiddenArgument, RiskLevel::High, || {
                format!("which files `{}` changes cannot be known", draft.part.text)
            });
        }
    }

    fn analyse_network(
        &mut self,
        draft: &mut CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
        place: &CommandContext<'_>,
    ) {
        if !network::uses_network(name) {
            return;
        }
        draft.part.unknown_effects = true;
        self.warn(DangerKind::Network, RiskLevel::Medium, || {
            format!("`{}` reaches the network", draft.part.text)
        });
        for url in network::addresses(name, args) {
            draft.part.effects.push(inferred_effect(Effect::Fetch { url }, EffectOrigin::Argument));
        }
        for file in network::sent_files(name, args) {
            if self.add_reads(draft, &file, PathScope::Entry, place) {
                draft.coverable = false;
            }
        }
    }
}

/// Whether a program is named by its bare name, or by its path in a directory of the system.
fn is_system_program(text: &str, name: &str) -> bool {
    let directory = text.strip_suffix(name).and_then(|head| head.strip_suffix('/'));
    !text.contains('/') || matches!(directory, Some("/bin" | "/usr/bin" | "/sbin" | "/usr/sbin"))
}

/// Options whose value is prose, so that a live one picks nothing.
fn takes_text(program: &str, option: &str) -> bool {
    match program {
        "git" => git::takes_prose(option),
        "gh" | "glab" => matches!(option, "-t" | "--title" | "-b" | "--body" | "-n" | "--notes"),
        "jj" | "hg" | "svn" => matches!(option, "-m" | "--message"),
        _ => false,
    }
}

/// Uses of stateful builtins that change nothing a later command could trip over.
fn is_harmless_state_change(name: &str, args: &[ShellArg]) -> bool {
    match name {
        "set" => {
            !args.is_empty()
                && args.iter().all(|arg| {
                    matches!(
                        arg.known(),
                        Some(
                            "-e" | "-u"
                                | "-o"
                                | "-eu"
                                | "-euo"
                                | "-eo"
                                | "-uo"
                                | "+e"
                                | "+u"
                                | "pipefail"
                                | "errexit"
                                | "nounset"
                        )
                    )
                })
        }
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            !args.is_empty()
                && args.iter().all(|arg| {
                    arg.known().and_then(|text| text.split_once('=')).is_some_and(|(name, value)| {
                        variable_safety::is_harmless(name, &ShellArg::literal(value))
                    })
                })
        }
        "umask" | "caller" | "shift" => args.is_empty(),
        "ulimit" => matches!(args, [] | [_]) && args.iter().all(|arg| arg.known() == Some("-a")),
        _ => false,
    }
}

/// `command -v` finds a program and runs nothing.
fn is_program_lookup(name: &str, args: &[ShellArg]) -> bool {
    let asks = matches!(args.first().and_then(ShellArg::known), Some("-v" | "-V"));
    name == "command" && asks && args.iter().all(|arg| arg.live.is_none())
}
