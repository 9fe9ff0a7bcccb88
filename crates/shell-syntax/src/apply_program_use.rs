//! Applies what the tables know of a use of a program to its part: effects, warnings, and whether a rule may cover it.
//!
//! Two kinds of unknown are kept apart. An unknown path of a program that only reads is harmless where the kernel
//! limits
//! reading ([`CommandPart::reads_unknown_paths`]). An unknown write, or an unknown word that may be an option of
//! another
//! program, leaves a part that no rule covers.
//!
//! [`CommandPart::reads_unknown_paths`]: crate::analysis::CommandPart::reads_unknown_paths

use crate::analysis::{DangerKind, EffectOrigin, InferredEffect};
use crate::command_part::{CommandPartBuilder, inferred_effect, is_pipe};
use crate::edits;
use crate::network;
use crate::option_tables::{ProgramUse, git};
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::working_dirs::is_null_or_stream_device;
use toolgate_proto::{AbsPath, Effect, PathScope, RiskLevel, WriteKind};

/// How many directories above the working directory are searched for a file that chooses a program.
const MAX_PARENT_DIRS: usize = 32;

impl AnalysisVisitor<'_> {
    /// Adds the effects of a use of a program, and decides whether a rule may cover its words.
    ///
    /// The caller decides afterwards whether the part is read-only, since that also depends on which program file
    /// runs.
    pub(crate) fn apply_program_use(
        &mut self,
        builder: &mut CommandPartBuilder,
        used: ProgramUse,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) {
        let mut unknown = used.unknown;
        let mut unknown_reads = used.maybe_unknown_option;
        for (file, scope) in &used.reads {
            unknown_reads |= self.add_reads(builder, file, *scope, context);
        }
        for file in &used.writes {
            unknown |= self.add_writes(builder, file, WriteKind::Put, Vec::new(), context);
        }
        unknown |= self.add_implicit_effects(builder, &used, context);
        for arg in &used.option_globs {
            let effects =
                context.dirs.read_effects(arg, PathScope::Entry, EffectOrigin::Argument, self.workspace);
            unknown |= effects.is_none();
            let globs = effects.unwrap_or_default().into_iter().filter_map(|inferred| inferred.glob);
            builder.part.option_globs.extend(globs);
        }
        builder.part.plain &= !used.hazard;
        if used.hazard {
            let text = format!("`{}` can run a program or write a file", builder.part.text);
            self.warn(DangerKind::UnusualOption, RiskLevel::Medium, || text);
        }
        if unknown || unknown_reads {
            self.warn(DangerKind::HiddenArgument, RiskLevel::Medium, || {
                format!("the files that `{}` reads are not known in advance", builder.part.text)
            });
        }
        builder.part.reads_unknown_paths |= used.reads_beyond_args && used.read_only;
        // A reader may get unknown paths where the kernel limits what can be read.
        let reads_unknown = unknown_reads && !unknown && used.read_only;
        if reads_unknown {
            builder.part.reads_unknown_paths = true;
            builder.words_unknown = true;
        } else if unknown || unknown_reads {
            builder.coverable = false;
            builder.part.unknown_effects = true;
        }
        if used.text {
            self.check_printed_words(builder, args, used.silent, context);
            return;
        }
        // A program prints the name of a file that it cannot open.
        if used.read_only && args.iter().any(|arg| !self.variables.is_printable(arg)) {
            builder.part.unknown_effects = true;
        }
        if !reads_unknown {
            self.check_covered_words(builder, used.read_only, args);
        }
    }

    /// Adds what a program reads or starts without an argument that names it; returns whether that is unknown.
    fn add_implicit_effects(
        &self,
        builder: &mut CommandPartBuilder,
        used: &ProgramUse,
        context: &CommandContext<'_>,
    ) -> bool {
        let part = &mut builder.part;
        let mut unknown = false;
        if let Some(scope) = used.here {
            unknown |= context.dirs.is_unknown();
            part.effects.extend(context.dirs.all().iter().map(|path| {
                inferred_effect(Effect::Read { path: path.clone(), scope }, EffectOrigin::Program)
            }));
        }
        if !used.chosen_by.is_empty() {
            unknown |= context.dirs.is_unknown();
            for directory in context.dirs.all() {
                let above = std::iter::successors(Some(directory.lexical()), AbsPath::parent);
                for directory in above.take(MAX_PARENT_DIRS) {
                    part.chosen_by.extend(used.chosen_by.iter().map(|name| directory.join(name)));
                }
            }
        }
        part.helpers.extend(used.helpers.iter().map(|name| (*name).to_owned()));
        let home = self.workspace.home.as_ref();
        part.looks_in.extend(used.looks_in.iter().filter_map(|path| match path.strip_prefix("~/") {
            Some(below) => home.map(|home| home.join(below)),
            None => AbsPath::new(*path).ok(),
        }));
        unknown
    }

    /// Decides whether a rule may cover words whose values are not all known.
    fn check_covered_words(&mut self, builder: &mut CommandPartBuilder, read_only: bool, args: &[ShellArg]) {
        let name = builder.part.program.clone().unwrap_or_default();
        let checked: Vec<ShellArg> = if read_only {
            args.iter().filter(|arg| arg.one_of.is_empty()).cloned().collect()
        } else {
            args.to_vec()
        };
        self.check_live_arguments(builder, &name, &checked);
        // A rule matches words that are visible. For one word with several values, deny and ask rules see every
        // spelling.
        let chosen = args.iter().filter(|arg| !arg.one_of.is_empty()).count();
        builder.words_unknown |= chosen > 1 || chosen == 1 && !read_only;
    }

    /// Checks words that the program only prints: they must not contain a secret. `silent`: it prints none of them.
    fn check_printed_words(
        &mut self,
        builder: &mut CommandPartBuilder,
        args: &[ShellArg],
        silent: bool,
        context: &CommandContext<'_>,
    ) {
        for arg in args {
            if arg.pattern.is_some() {
                self.add_reads(builder, arg, PathScope::Entry, context);
            }
            if !silent && !self.variables.is_printable(arg) {
                builder.part.unknown_effects = true;
            }
        }
    }

    /// Makes a command uncoverable if an unknown word may turn out to be an option.
    ///
    /// A word after `--` is never an option, and neither is the value of an option that takes prose.
    pub(crate) fn check_live_arguments(
        &mut self,
        builder: &mut CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
    ) {
        let mut before: Option<&ShellArg> = None;
        for arg in args {
            if before.and_then(ShellArg::known) == Some("--") {
                break;
            }
            let is_value = before.and_then(ShellArg::known).is_some_and(|option| takes_prose(name, option))
                && !arg.splits;
            if arg.live.is_some() && arg.pattern.is_none() && arg.may_be_option() && !is_value {
                builder.coverable = false;
                self.warn(DangerKind::HiddenArgument, RiskLevel::Medium, || {
                    format!("`{}` may expand to an option", arg.text)
                });
            }
            before = Some(arg);
        }
    }

    /// Adds the effects of reading a file; returns whether its path is unknown.
    ///
    /// Standard input, the null device, pipes of process substitutions and files in the private temporary directory
    /// need no permission.
    fn add_reads(
        &mut self,
        builder: &mut CommandPartBuilder,
        file: &ShellArg,
        scope: PathScope,
        context: &CommandContext<'_>,
    ) -> bool {
        if !file.one_of.is_empty() {
            let unknown = file.one_of.iter().map(|value| self.add_reads(builder, value, scope, context));
            return unknown.fold(false, |any, one| any | one);
        }
        let is_stream =
            file.known().is_some_and(|text| text == "-" || text.is_empty() || is_null_or_stream_device(text));
        if is_stream || is_pipe(file) || self.variables.is_private_temp(file) {
            return false;
        }
        let effects = context.dirs.read_effects(file, scope, EffectOrigin::Argument, self.workspace);
        let unknown = effects.is_none();
        builder.part.effects.extend(effects.unwrap_or_default());
        for path in context.dirs.likely_paths(file, self.workspace) {
            builder.part.effects.push(inferred_effect(Effect::Read { path, scope }, EffectOrigin::Argument));
        }
        unknown
    }

    /// Adds the effects of writing a file; returns whether its path is unknown.
    fn add_writes(
        &mut self,
        builder: &mut CommandPartBuilder,
        file: &ShellArg,
        kind: WriteKind,
        entries: Vec<String>,
        context: &CommandContext<'_>,
    ) -> bool {
        let is_stream = file.known().is_some_and(|text| text.is_empty() || is_null_or_stream_device(text));
        if is_stream || is_pipe(file) || self.variables.is_private_temp(file) {
            return false;
        }
        let effects = context.dirs.write_effects(file, kind, EffectOrigin::Argument, self.workspace);
        let unknown = effects.is_none();
        builder.part.effects.extend(
            effects
                .unwrap_or_default()
                .into_iter()
                .map(|inferred| InferredEffect { entries: entries.clone(), ..inferred }),
        );
        for path in context.dirs.likely_paths(file, self.workspace) {
            builder.part.effects.push(inferred_effect(Effect::Write { path, kind }, EffectOrigin::Argument));
        }
        unknown
    }

    /// Adds the effects of a command that changes files.
    pub(crate) fn apply_edits(
        &mut self,
        builder: &mut CommandPartBuilder,
        edit: edits::CommandEdits,
        context: &CommandContext<'_>,
    ) {
        let mut unknown = false;
        for (file, scope) in &edit.reads {
            unknown |= self.add_reads(builder, file, *scope, context);
        }
        for target in edit.writes {
            unknown |= self.add_writes(builder, &target.file, target.kind, target.entries, context);
        }
        builder.part.file_edit = edit.accept_edits_command && edit.complete && !unknown;
        builder.part.unknown_effects |= unknown || !edit.complete;
        if unknown {
            builder.coverable = false;
            self.warn(DangerKind::HiddenArgument, RiskLevel::High, || {
                format!("the files that `{}` changes are not known in advance", builder.part.text)
            });
        }
    }

    /// Adds the addresses that a network program connects to, and the files that it sends.
    pub(crate) fn analyse_network(
        &mut self,
        builder: &mut CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) {
        if !network::uses_network(name) {
            return;
        }
        builder.part.unknown_effects = true;
        self.warn(DangerKind::Network, RiskLevel::Medium, || {
            format!("`{}` uses the network", builder.part.text)
        });
        for url in network::addresses(name, args) {
            builder.part.effects.push(inferred_effect(Effect::Fetch { url }, EffectOrigin::Argument));
        }
        for file in network::sent_files(name, args) {
            if self.add_reads(builder, &file, PathScope::Entry, context) {
                builder.coverable = false;
            }
        }
    }
}

/// Whether the value of an option is prose, such as a commit message: an unknown one selects nothing.
fn takes_prose(program: &str, option: &str) -> bool {
    match program {
        "git" => git::takes_prose(option),
        "gh" | "glab" => matches!(option, "-t" | "--title" | "-b" | "--body" | "-n" | "--notes"),
        "jj" | "hg" | "svn" => matches!(option, "-m" | "--message"),
        _ => false,
    }
}
