//! Visits the commands that a runner may start, and keeps only what deny and ask rules and the check for removals
//! need.

use super::guess_commands::guess_commands;
use super::inline_code::has_inline_code;
use super::other_project::chooses_other_project;
use super::{is_runner, reads_build_file};
use crate::analysis::DangerStanding;
use crate::command_part::{CommandPartBuilder, join_words};
use crate::redirects::RedirectEffects;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};

/// How many words a command may have for guesses to be made: every guess copies them.
const MAX_GUESSED_WORDS: usize = 256;

/// How many guesses are made for one line.
const MAX_GUESSED_COMMANDS: usize = 256;

/// How many guesses may be made inside one another (`npx npx npx …`).
const MAX_GUESS_DEPTH: usize = 3;

impl AnalysisVisitor<'_> {
    /// Adds the spellings of the commands that a runner may start, for deny and ask rules.
    pub(crate) fn add_guessed_commands(
        &mut self,
        builder: &mut CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
        context: &CommandContext<'_>,
    ) {
        builder.part.plain &= !chooses_other_project(name, args);
        if reads_build_file(name, args) {
            builder.part.plain = false;
            builder.part.runs_code = true;
        }
        builder.part.runs_code |= has_inline_code(name, args);
        if args.len() > MAX_GUESSED_WORDS {
            builder.part.plain &= !is_runner(name);
            return;
        }
        let Some(guesses) = guess_commands(name, args) else { return };
        builder.part.plain &= !guesses.by_option;
        for words in guesses.words.into_iter().filter(|words| !words.is_empty()) {
            self.visit_guess(builder, |visitor| {
                let redirected = RedirectEffects::default();
                visitor.analyse_simple_command(join_words(&words), &[], words, redirected, context)
            });
        }
        for text in guesses.texts {
            self.visit_guess(builder, |visitor| visitor.visit_text(&text, context));
        }
    }

    /// Visits a command that may run. Of what is found, only the spellings for deny and ask rules and the binding
    /// dangers are kept; a doubt or a warning about a mere guess would be misleading.
    ///
    /// The parts of the guess are removed again, because it is not certain that the command runs.
    fn visit_guess(&mut self, builder: &mut CommandPartBuilder, visit: impl FnOnce(&mut Self)) {
        if self.guess_count >= MAX_GUESSED_COMMANDS || self.guess_depth >= MAX_GUESS_DEPTH {
            // A wildcard rule was not written for commands that are hidden this deep.
            builder.part.plain = false;
            return;
        }
        self.guess_count += 1;
        self.guess_depth += 1;
        let first = self.analysis.parts.len();
        let doubt = self.analysis.doubt.clone();
        let dangers = std::mem::take(&mut self.analysis.dangers);
        visit(self);
        for part in self.analysis.parts.split_off(first) {
            builder.part.runs_code |= part.runs_code;
            for text in part.deny_texts {
                builder.add_deny_text(text);
            }
        }
        let found = std::mem::replace(&mut self.analysis.dangers, dangers);
        for danger in found.into_iter().filter(|danger| danger.standing == DangerStanding::Binding) {
            self.record_danger(danger);
        }
        self.analysis.doubt = doubt;
        self.guess_depth -= 1;
    }
}
