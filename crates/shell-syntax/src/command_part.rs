//! One simple command becomes a [`Part`]: unwrapped, matched with what is known of its program, resolved to effects.

use super::analysis::{CommandPart, DangerKind, DoubtKind, EffectOrigin, InferredEffect, ShellExpansionKind};
use super::executed_programs;
use super::expand::ShellArg;
use super::redirects::RedirectEffects;
use super::variable_safety;
use super::visitor::{AnalysisVisitor, CommandContext};
use super::working_dirs::WorkingDirs;
use super::wrappers::{self, WrapperPayload};
use toolgate_proto::{Effect, RiskLevel};

/// How many wrappers round one command are looked at one by one.
const MAX_WRAPPER_LAYERS: usize = 8;

/// A wrapper with more words than this is looked through at once.
const MAX_WRAPPED_WORDS: usize = 500;

/// A part of which nothing good is known yet.
pub(super) fn empty_part(text: String, place: &CommandContext<'_>) -> CommandPart {
    CommandPart {
        text,
        allow_text: None,
        deny_texts: Vec::new(),
        program: None,
        executes: Vec::new(),
        argv: Vec::new(),
        effects: Vec::new(),
        read_only: false,
        plain: true,
        file_edit: false,
        unknown_effects: false,
        reads_unknown_paths: false,
        chosen_by: Vec::new(),
        helpers: Vec::new(),
        looks_in: Vec::new(),
        background: place.background,
        run_by: place.run_by,
        git_reader: false,
    }
}

pub(super) fn inferred_effect(effect: Effect, origin: EffectOrigin) -> InferredEffect {
    InferredEffect { effect, origin, glob: None, entries: Vec::new() }
}

/// What is being found out about one command.
pub(super) struct CommandPartBuilder {
    pub(super) part: CommandPart,
    /// An allow rule may cover it.
    pub(super) coverable: bool,
    /// Words of a reader are not known, so that no allow rule covers it; what it may do by itself stays as it is.
    pub(super) words_unknown: bool,
    /// What it runs, with the words of each.
    pub(super) payloads: Vec<Vec<ShellArg>>,
    pub(super) texts: Vec<String>,
    /// What it runs, it runs in a directory that is not known.
    pub(super) unknown_dir: bool,
}

impl AnalysisVisitor<'_> {
    /// A redirect or assignment that stands alone.
    pub(super) fn add_bare_part(
        &mut self,
        text: String,
        redirected: RedirectEffects,
        harmless: bool,
        place: &CommandContext<'_>,
    ) -> usize {
        let mut part = empty_part(text, place);
        part.deny_texts.push(part.text.clone());
        let known = harmless && !redirected.unknown;
        part.read_only = known && !redirected.reveals;
        part.unknown_effects = redirected.unknown || redirected.reveals;
        part.allow_text = (known && !redirected.reveals).then(String::new);
        part.effects = redirected.effects;
        self.push_part(part)
    }

    /// A command with at least one word.
    pub(super) fn analyse_simple_command(
        &mut self,
        spelled: String,
        assignments: &[(&str, ShellArg)],
        args: Vec<ShellArg>,
        redirected: RedirectEffects,
        place: &CommandContext<'_>,
    ) {
        let mut draft = CommandPartBuilder {
            part: empty_part(spelled, place),
            coverable: true,
            words_unknown: false,
            payloads: Vec::new(),
            texts: Vec::new(),
            unknown_dir: false,
        };
        draft.part.effects = redirected.effects;
        let input = redirected.input;
        let reveals = redirected.reveals;
        draft.part.unknown_effects |= reveals;
        // What comes from a file or another command is an input like that of a pipe.
        let piped = CommandContext { piped: place.piped || redirected.reads, ..place.clone() };
        let place = &piped;
        draft.coverable &= !redirected.unknown;
        draft.part.unknown_effects |= redirected.unknown;
        draft.add_deny_text(draft.part.text.clone());
        if !assignments.is_empty() {
            draft.add_deny_text(
                assignments
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value.text))
                    .chain([join_words(&args)])
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
        draft.add_deny_text(join_words(&args));
        // A rule for the command covers a variable that it may look at; without one, that it looks is not known.
        let mut settings = false;
        for (name, value) in assignments {
            // `IFS= read -r line` splits that line in another way, and nothing else.
            let for_read = *name == "IFS"
                && value.live.is_none()
                && args.first().and_then(ShellArg::known) == Some("read");
            let harmless = for_read || variable_safety::is_harmless(name, value);
            settings |= !harmless;
            if !harmless && !variable_safety::is_setting(name, value) {
                draft.coverable = false;
                self.warn(DangerKind::Environment, RiskLevel::High, || {
                    format!("`{name}` is set for the command")
                });
            }
        }
        let mut current = args.as_slice();
        let mut fed = false;
        let mut layers = 0;
        while let Some((name, rest)) = current.split_first()
            && let Some(skip) =
                name.known().map(base_name).and_then(|name| wrappers::skip_transparent_wrapper(name, rest))
        {
            // A wrapper with a path is another program of that name, as far as a grant goes.
            draft.coverable &= !name.text.contains('/');
            fed |= name.known().map(base_name) == Some("xargs");
            if layers < MAX_WRAPPER_LAYERS {
                draft.add_deny_texts(current);
            }
            layers += 1;
            current = rest.get(skip..).unwrap_or_default();
        }
        draft.add_deny_texts(current);
        if let Some(at) = current.iter().position(|arg| !arg.one_of.is_empty()) {
            // Too many words to spell them out for every value.
            draft.coverable &= current.len() <= MAX_WRAPPED_WORDS;
            for value in current
                .get(at)
                .filter(|_| current.len() <= MAX_WRAPPED_WORDS)
                .map(|arg| arg.one_of.clone())
                .unwrap_or_default()
            {
                let mut words = current.to_vec();
                words.splice(at..=at, [value]);
                draft.add_deny_texts(&words);
            }
        }
        if !self.brief {
            draft.part.argv = current.iter().map(ShellArg::to_command_word).collect();
        }
        draft.part.executes = executed_programs::list_executed_programs(&args, current, place.executed);
        let Some((program, rest)) = current.split_first() else { return };
        // Without a pipe or a redirect there is nothing that `xargs` could add.
        fed &= place.piped || input.is_some();
        let added = if fed { add_xargs_words(rest.to_vec()) } else { Vec::new() };
        let rest = if fed { added.as_slice() } else { rest };
        if program.live.is_some() {
            self.warn(DangerKind::HiddenProgram, RiskLevel::High, || {
                format!("which program `{}` is cannot be known", program.text)
            });
            draft.coverable = false;
            draft.part.unknown_effects = true;
        } else {
            draft.part.program = Some(program.text.clone());
            self.analyse_program(&mut draft, program, rest, fed, input.clone(), place);
        }
        if args.iter().any(|arg| self.evaluates(arg)) {
            draft.coverable = false;
            draft.part.read_only = false;
        }
        draft.part.read_only &= draft.coverable && !reveals;
        draft.part.file_edit &= !settings;
        // Which words are added is not known, so that neither an allow nor a deny rule can speak of them.
        draft.words_unknown |= fed;
        // What a variable of unknown meaning makes of a reader, the kernel keeps to reading.
        draft.part.reads_unknown_paths |= settings;
        draft.part.reads_unknown_paths &= draft.part.read_only && !draft.part.unknown_effects;
        for helper in &draft.part.helpers {
            if !draft.part.executes.contains(helper) {
                draft.part.executes.push(helper.clone());
            }
        }
        if draft.coverable && !draft.words_unknown {
            let words: Vec<String> = current.iter().map(ShellArg::canonical).collect();
            draft.part.allow_text = Some(words.join(" "));
        }
        let CommandPartBuilder { part, payloads, texts, unknown_dir: anywhere, .. } = draft;
        let index = self.push_part(part);
        let mut inner = CommandContext { run_by: Some(index), executed: true, ..place.clone() };
        if anywhere {
            inner.dirs = WorkingDirs::unknown();
        }
        self.wrappers += 1;
        for words in payloads {
            let deep = self.wrappers >= MAX_WRAPPER_LAYERS || words.len() > MAX_WRAPPED_WORDS;
            let words = if deep { self.unwrap_innermost(words) } else { words };
            let text = join_words(&words);
            // What it runs has its standard input.
            let redirected = RedirectEffects { input: input.clone(), ..RedirectEffects::default() };
            self.analyse_simple_command(text, &[], words, redirected, &inner);
        }
        self.wrappers -= 1;
        let inner = CommandContext { executed: false, ..inner };
        for text in texts {
            self.visit_text(&text, &inner);
        }
    }
}

impl AnalysisVisitor<'_> {
    /// The command inside all further wrappers: too deep to list each, but what runs in the end still counts.
    fn unwrap_innermost(&mut self, words: Vec<ShellArg>) -> Vec<ShellArg> {
        self.record_doubt(DoubtKind::TooDeep, "wrappers are nested too deeply or have too many words");
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

impl CommandPartBuilder {
    /// Adds a spelling that deny and ask rules are matched against.
    pub(super) fn add_deny_text(&mut self, text: String) {
        if !self.part.deny_texts.contains(&text) {
            self.part.deny_texts.push(text);
        }
    }

    /// Adds the spellings of one layer: as it is, and by the base name of its program.
    pub(super) fn add_deny_texts(&mut self, words: &[ShellArg]) {
        self.add_deny_text(join_words(words));
        let Some((program, rest)) = words.split_first() else { return };
        let name = base_name(program.emptied());
        // `=curl` is how zsh spells the path of a program.
        let name = name.strip_prefix('=').unwrap_or(name);
        if name != program.text {
            let text: Vec<&str> =
                std::iter::once(name).chain(rest.iter().map(|arg| arg.text.as_str())).collect();
            self.add_deny_text(text.join(" "));
        }
    }
}

/// The last component of a program's path.
pub(super) fn base_name(program: &str) -> &str {
    program.trim_end_matches('/').rsplit('/').next().unwrap_or(program)
}

pub(super) fn join_words(args: &[ShellArg]) -> String {
    let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    words.join(" ")
}

/// The name of a pipe that a process substitution makes.
pub(super) fn is_pipe(arg: &ShellArg) -> bool {
    arg.live == Some(ShellExpansionKind::Harmless) && arg.emptied().is_empty() && arg.variables.is_empty()
}

/// `{}` stands for names that are not known.
pub(super) fn mark_placeholders(args: Vec<ShellArg>) -> Vec<ShellArg> {
    args.into_iter()
        .map(|arg| {
            if arg.text.contains("{}") {
                ShellArg {
                    live: Some(ShellExpansionKind::Parameter),
                    splits: arg.text == "{}",
                    emptied: arg.text.clone(),
                    ..arg
                }
            } else {
                arg
            }
        })
        .collect()
}

/// `xargs` adds words that are not known.
pub(super) fn add_xargs_words(args: Vec<ShellArg>) -> Vec<ShellArg> {
    let fed = ShellArg {
        text: "…".to_owned(),
        live: Some(ShellExpansionKind::Substitution),
        splits: true,
        ..ShellArg::default()
    };
    mark_placeholders(args).into_iter().chain([fed]).collect()
}
