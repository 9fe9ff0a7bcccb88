//! Analyses one simple command whose words have been expanded: its spellings for rules, its program, its effects, and
//! the commands that it runs in turn.
//!
//! `timeout 5 env A=b sh -c 'rm x'` is listed as `env …`, `sh -c …` and `rm x`. `timeout` is transparent: it is removed,
//! and a rule for the command behind it covers it. `env` and `sh` are wrappers: each is a part of its own, followed by
//! the part of the command that it runs, so that a rule against `rm` matches the last one.

use crate::analysis::{DangerKind, DoubtKind};
use crate::command_part::{CommandPartBuilder, add_xargs_words, base_name, join_words};
use crate::executed_programs;
use crate::harmless_variables;
use crate::redirects::RedirectEffects;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::working_dirs::WorkingDirs;
use crate::wrappers::{self, WrapperPayload};
use toolgate_proto::RiskLevel;

/// How many nested wrappers of one command are listed one by one.
const MAX_WRAPPER_LAYERS: usize = 8;

/// A wrapped command with more words is reduced to the innermost command at once, because every layer copies them.
const MAX_WRAPPED_WORDS: usize = 500;

impl AnalysisVisitor<'_> {
    /// Analyses a command with at least one word and adds its part, followed by the parts of what it runs.
    ///
    /// `spelled` is the command as written, `assignments` are those before its words.
    pub(crate) fn analyse_simple_command(
        &mut self,
        spelled: String,
        assignments: &[(&str, ShellArg)],
        args: Vec<ShellArg>,
        redirected: RedirectEffects,
        context: &CommandContext<'_>,
    ) {
        let mut builder = CommandPartBuilder::new(spelled, context);
        let RedirectEffects { effects, unknown, reveals, input, reads } = redirected;
        builder.part.effects = effects;
        builder.part.unknown_effects = reveals || unknown;
        builder.coverable = !unknown;
        // A file as standard input is the same for an interpreter as a pipe.
        let context = &CommandContext { piped: context.piped || reads, ..context.clone() };
        builder.add_spellings(assignments, &args);
        let has_settings = self.check_assignments(&mut builder, assignments, &args);
        let (command, fed_by_xargs) = skip_transparent_wrappers(&mut builder, &args);
        builder.add_deny_texts(command);
        add_variable_spellings(&mut builder, command);
        if !self.unparsed {
            builder.part.argv = command.iter().map(ShellArg::to_command_word).collect();
        }
        builder.part.executes = executed_programs::list_executed_programs(&args, command, context.executed);
        let Some((program, rest)) = command.split_first() else { return };
        // Without a pipe or a redirect `xargs` has no input to add words from.
        let fed = fed_by_xargs && (context.piped || input.is_some());
        let with_added = if fed { add_xargs_words(rest.to_vec()) } else { Vec::new() };
        let rest = if fed { with_added.as_slice() } else { rest };
        if program.live.is_some() {
            self.warn(DangerKind::HiddenProgram, RiskLevel::High, || {
                format!("the program `{}` is not known in advance", program.text)
            });
            builder.coverable = false;
            builder.part.unknown_effects = true;
        } else {
            builder.part.program = Some(program.text.clone());
            self.analyse_program(&mut builder, program, rest, fed, input.clone(), context);
        }
        if args.iter().any(|arg| self.variables.evaluates(arg)) {
            builder.coverable = false;
            builder.part.read_only = false;
        }
        builder.part.read_only &= builder.coverable && !reveals;
        builder.part.file_edit &= !has_settings;
        builder.part.read_only &=
            !has_settings || harmless_variables::is_unsteered_reader(base_name(&program.text));
        // The added words are unknown, so that neither an allow rule nor a deny rule can match them.
        builder.words_unknown |= fed;
        // A variable that a reader may consult can change which files it reads; the kernel limits it to reading.
        builder.part.reads_unknown_paths |= has_settings;
        builder.finish_part(command);
        self.push_with_payloads(builder, input, context);
    }

    /// Checks the assignments before a command; returns whether one of them may be a setting of the program.
    /// A rule for the command covers such a setting; without a rule, its effect is unknown.
    fn check_assignments(
        &mut self,
        builder: &mut CommandPartBuilder,
        assignments: &[(&str, ShellArg)],
        args: &[ShellArg],
    ) -> bool {
        let mut has_settings = false;
        for (name, value) in assignments {
            // `IFS= read -r line` changes how that line is split, and nothing else.
            let for_read = *name == "IFS"
                && value.live.is_none()
                && args.first().and_then(ShellArg::known) == Some("read");
            let harmless = for_read || harmless_variables::is_harmless(name, value);
            has_settings |= !harmless;
            if !harmless && !harmless_variables::is_setting(name, value) {
                builder.coverable = false;
                self.warn(DangerKind::Environment, RiskLevel::High, || {
                    format!("the variable `{name}` is set for the command")
                });
            }
        }
        has_settings
    }

    /// Adds the part of a command, then analyses what the command runs.
    fn push_with_payloads(
        &mut self,
        builder: CommandPartBuilder,
        input: Option<Option<String>>,
        context: &CommandContext<'_>,
    ) {
        let CommandPartBuilder { part, payloads, texts, positional, unknown_dir, .. } = builder;
        let index = self.push_part(part);
        let mut inner = CommandContext { run_by: Some(index), executed: true, ..context.clone() };
        if unknown_dir {
            inner.dirs = WorkingDirs::unknown();
        }
        self.wrapper_depth += 1;
        for words in payloads {
            let deep = self.wrapper_depth >= MAX_WRAPPER_LAYERS || words.len() > MAX_WRAPPED_WORDS;
            let words = if deep { self.unwrap_innermost(words) } else { words };
            let text = join_words(&words);
            // A wrapped command inherits standard input.
            let redirected = RedirectEffects { input: input.clone(), ..RedirectEffects::default() };
            self.analyse_simple_command(text, &[], words, redirected, &inner);
        }
        self.wrapper_depth -= 1;
        let inner = CommandContext { executed: false, ..inner };
        let outer = std::mem::replace(&mut self.variables.positional, positional);
        for text in texts {
            self.visit_text(&text, &inner);
        }
        self.variables.positional = outer;
    }

    /// The command inside all further wrappers: they are nested too deeply to list each, but deny and ask rules still
    /// see
    /// the command that runs in the end.
    ///
    /// The line is doubted then, so that the listing of parts need not be complete.
    fn unwrap_innermost(&mut self, words: Vec<ShellArg>) -> Vec<ShellArg> {
        self.record_doubt(
            DoubtKind::TooDeep,
            "wrapper commands are nested too deeply or have too many arguments",
        );
        let mut rest = words.as_slice();
        while let Some((name, args)) = rest.split_first()
            && let Some(WrapperPayload::Words(at)) = wrappers::wrapper_payload(base_name(&name.text), args)
            && let Some(inner) = args.get(at..)
        {
            rest = inner;
        }
        rest.to_vec()
    }
}

/// The words after all transparent wrappers, and whether one of the wrappers is `xargs`.
/// The spelling with each wrapper is kept for deny and ask rules.
fn skip_transparent_wrappers<'w>(
    builder: &mut CommandPartBuilder,
    args: &'w [ShellArg],
) -> (&'w [ShellArg], bool) {
    let mut command = args;
    let mut fed_by_xargs = false;
    let mut layers = 0;
    while let Some((name, rest)) = command.split_first()
        && let Some(skip) =
            name.known().map(base_name).and_then(|name| wrappers::skip_transparent_wrapper(name, rest))
    {
        // A wrapper that is named by a path may be another program of that name.
        builder.coverable &= !name.text.contains('/');
        fed_by_xargs |= name.known().map(base_name) == Some("xargs");
        if layers < MAX_WRAPPER_LAYERS {
            builder.add_deny_texts(command);
        }
        layers += 1;
        command = rest.get(skip..).unwrap_or_default();
    }
    (command, fed_by_xargs)
}

/// Adds a spelling for every value of the first word with several known values. A command with too many words to
/// repeat them for each value is not covered by allow rules.
///
/// A second such word is not multiplied out; then `words_unknown` keeps allow rules away.
fn add_variable_spellings(builder: &mut CommandPartBuilder, command: &[ShellArg]) {
    let Some(at) = command.iter().position(|arg| !arg.one_of.is_empty()) else { return };
    if command.len() > MAX_WRAPPED_WORDS {
        builder.coverable = false;
        return;
    }
    for value in command.get(at).map(|arg| arg.one_of.clone()).unwrap_or_default() {
        let mut words = command.to_vec();
        words.splice(at..=at, [value]);
        builder.add_deny_texts(&words);
    }
}
