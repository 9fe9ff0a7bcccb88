//! Builds the [`CommandPart`] of one command.
//!
//! A part starts out coverable and without effects. Each step of the analysis may add effects and spellings, or take
//! away that a rule covers it; none can give that back.

use crate::analysis::{CommandPart, EffectOrigin, InferredEffect, ShellExpansionKind};
use crate::redirects::RedirectEffects;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use toolgate_proto::Effect;

/// A part that no rule covers and that has no effects: the starting point of every part.
pub(crate) fn empty_part(text: String, context: &CommandContext<'_>) -> CommandPart {
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
        runs_code: false,
        file_edit: false,
        unknown_effects: false,
        reads_unknown_paths: false,
        chosen_by: Vec::new(),
        option_globs: Vec::new(),
        helpers: Vec::new(),
        looks_in: Vec::new(),
        working_dirs: context.dirs.share(),
        background: context.background,
        run_by: context.run_by,
        git_reader: false,
    }
}

/// An effect on exactly one path or address.
pub(crate) fn inferred_effect(effect: Effect, origin: EffectOrigin) -> InferredEffect {
    InferredEffect { effect, origin, glob: None, entries: Vec::new() }
}

/// A [`CommandPart`] under construction, with what only the construction needs.
pub(crate) struct CommandPartBuilder {
    /// The part so far.
    pub(crate) part: CommandPart,
    /// An allow rule may cover the command: its program and its options are known, and no assignment steers it.
    pub(crate) coverable: bool,
    /// Words of a reader are unknown, so that no allow rule covers it; that it only reads is still certain.
    pub(crate) words_unknown: bool,
    /// The commands that this one runs, each with its words (`env`, `find -exec`, `xargs`).
    pub(crate) payloads: Vec<Vec<ShellArg>>,
    /// The strings that this command runs as shell code (`sh -c`, `eval`, a here-document for a shell).
    pub(crate) texts: Vec<String>,
    /// The words that may be positional parameters of that code (`sh -c 'rm "$1"' _ x`).
    pub(crate) positional: Vec<ShellArg>,
    /// The payloads run in a directory that is not known (`find -execdir`).
    pub(crate) unknown_dir: bool,
}

impl AnalysisVisitor<'_> {
    /// Adds the part of a redirect or an assignment that has no command; returns its index.
    ///
    /// Its allow text is empty if nothing in it needs a rule, so that only its effects are judged.
    pub(crate) fn add_bare_part(
        &mut self,
        text: String,
        redirected: RedirectEffects,
        harmless: bool,
        context: &CommandContext<'_>,
    ) -> usize {
        let mut part = empty_part(text, context);
        part.deny_texts.push(part.text.clone());
        let known = harmless && !redirected.unknown;
        part.read_only = known && !redirected.reveals;
        part.unknown_effects = redirected.unknown || redirected.reveals;
        part.allow_text = (known && !redirected.reveals).then(String::new);
        part.effects = redirected.effects;
        self.push_part(part)
    }
}

impl CommandPartBuilder {
    /// A builder of a part that is coverable until something is found that no rule can cover.
    pub(crate) fn new(text: String, context: &CommandContext<'_>) -> Self {
        Self {
            part: empty_part(text, context),
            coverable: true,
            words_unknown: false,
            payloads: Vec::new(),
            texts: Vec::new(),
            positional: Vec::new(),
            unknown_dir: false,
        }
    }

    /// Adds a spelling that deny and ask rules are matched against.
    pub(crate) fn add_deny_text(&mut self, text: String) {
        if !self.part.deny_texts.contains(&text) {
            self.part.deny_texts.push(text);
        }
    }

    /// Adds the spellings of one wrapper layer: as written, and with the base name of its program.
    pub(crate) fn add_deny_texts(&mut self, words: &[ShellArg]) {
        self.add_deny_text(join_words(words));
        let Some((program, rest)) = words.split_first() else { return };
        let name = base_name(program.emptied());
        // `=curl` is the path of `curl` in zsh.
        let name = name.strip_prefix('=').unwrap_or(name);
        if name != program.text {
            let text: Vec<&str> =
                std::iter::once(name).chain(rest.iter().map(|arg| arg.text.as_str())).collect();
            self.add_deny_text(text.join(" "));
        }
    }

    /// Adds the whole command as written, with its assignments, and without them.
    pub(crate) fn add_spellings(&mut self, assignments: &[(&str, ShellArg)], args: &[ShellArg]) {
        self.add_deny_text(self.part.text.clone());
        if !assignments.is_empty() {
            let words: Vec<String> = assignments
                .iter()
                .map(|(name, value)| format!("{name}={}", value.text))
                .chain([join_words(args)])
                .collect();
            self.add_deny_text(words.join(" "));
        }
        self.add_deny_text(join_words(args));
    }

    /// Derives the fields that depend on others. `command` are the words without transparent wrappers.
    ///
    /// It has to run last, after every step that may change whether the part is coverable.
    pub(crate) fn finish_part(&mut self, command: &[ShellArg]) {
        let part = &mut self.part;
        part.reads_unknown_paths &= part.read_only && !part.unknown_effects;
        for helper in &part.helpers {
            if !part.executes.contains(helper) {
                part.executes.push(helper.clone());
            }
        }
        if self.coverable && !self.words_unknown {
            let words: Vec<String> = command.iter().map(ShellArg::canonical).collect();
            part.allow_text = Some(words.join(" "));
        }
    }
}

/// The last component of a program's path.
pub(crate) fn base_name(program: &str) -> &str {
    program.trim_end_matches('/').rsplit('/').next().unwrap_or(program)
}

/// The words as rules spell them: joined by single blanks.
pub(crate) fn join_words(args: &[ShellArg]) -> String {
    let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    words.join(" ")
}

/// Whether an argument is the name of the pipe that a process substitution creates.
pub(crate) fn is_pipe(arg: &ShellArg) -> bool {
    arg.live == Some(ShellExpansionKind::Harmless) && arg.emptied().is_empty() && arg.variables.is_empty()
}

/// Marks words with `{}` as unknown: `xargs -I {}` and `parallel` replace it with their input.
fn mark_placeholders(args: Vec<ShellArg>) -> Vec<ShellArg> {
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

/// The words of a command with one word more, which stands for the unknown words that `xargs` appends.
pub(crate) fn add_xargs_words(args: Vec<ShellArg>) -> Vec<ShellArg> {
    let added = ShellArg {
        text: "…".to_owned(),
        live: Some(ShellExpansionKind::Substitution),
        splits: true,
        ..ShellArg::default()
    };
    mark_placeholders(args).into_iter().chain([added]).collect()
}
