//! What a command may come to in the worst case: what a runner starts, and what a removal takes away.
//! Nothing found here allows anything; it is shown to deny and ask rules, and to the guard against removals.

use super::analysis::{CommandDanger, DangerKind, DangerResponse, DangerStanding};
use super::command_part::{CommandPartBuilder, base_name, join_words};
use super::expand::ShellArg;
use super::grammars;
use super::redirects::RedirectEffects;
use super::removal;
use super::runners;
use super::visitor::{AnalysisVisitor, CommandContext};
use toolgate_proto::RiskLevel;

/// How many words a command may have to be guessed at, how many are guessed at in one line, and how deep.
const MAX_GUESSED_WORDS: usize = 256;
const MAX_GUESSED_COMMANDS: usize = 256;
const MAX_GUESS_DEPTH: usize = 3;

impl AnalysisVisitor<'_> {
    /// Shows to deny and ask rules what a runner may start.
    pub(super) fn add_guessed_commands(
        &mut self,
        draft: &mut CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
        place: &CommandContext<'_>,
    ) {
        if args.len() > MAX_GUESSED_WORDS {
            draft.part.plain &= !runners::is_runner(name);
            return;
        }
        let Some(guesses) = runners::guess_commands(name, args) else { return };
        draft.part.plain &= !guesses.by_option;
        for words in guesses.words.into_iter().filter(|words| !words.is_empty()) {
            self.visit_guess(draft, |walk| {
                walk.analyse_simple_command(join_words(&words), &[], words, RedirectEffects::default(), place)
            });
        }
        for text in guesses.texts {
            self.visit_guess(draft, |walk| walk.visit_text(&text, place));
        }
    }

    /// Visits a command that may run, and keeps only the spellings that deny and ask rules are matched against,
    /// and what binds.
    fn visit_guess(&mut self, draft: &mut CommandPartBuilder, visit: impl FnOnce(&mut Self)) {
        if self.guess_count >= MAX_GUESSED_COMMANDS || self.guess_depth >= MAX_GUESS_DEPTH {
            // A line that hides commands so deep is not what a rule was written for.
            draft.part.plain = false;
            return;
        }
        self.guess_count += 1;
        self.guess_depth += 1;
        let first = self.found.parts.len();
        let doubt = self.found.doubt.clone();
        let dangers = std::mem::take(&mut self.found.dangers);
        visit(self);
        for part in self.found.parts.split_off(first) {
            for text in part.deny_texts {
                draft.add_deny_text(text);
            }
        }
        let found = std::mem::replace(&mut self.found.dangers, dangers);
        for danger in found.into_iter().filter(|danger| danger.standing == DangerStanding::Binding) {
            self.record_danger(danger);
        }
        self.found.doubt = doubt;
        self.guess_depth -= 1;
    }

    pub(super) fn check_removals(
        &mut self,
        draft: &CommandPartBuilder,
        name: &str,
        args: &[ShellArg],
        place: &CommandContext<'_>,
    ) {
        let Some(removed) = removal::removal_targets(name, args, self.starting_points_of_find(place)) else {
            return;
        };
        let mut critical = removed.unbounded;
        for file in removed.files {
            // What its variables may hold counts as much as what they are when they are empty.
            let candidates = self.candidate_values(&file);
            for file in std::iter::once(&file).chain(&candidates) {
                let likely = place.dirs.likely_paths(file, self.workspace);
                critical |= likely
                    .iter()
                    .any(|path| removal::contains_protected_dir(&path.lexical(), self.start, self.workspace))
                    || removal::is_critical(file, &place.dirs, self.start, self.workspace);
            }
        }
        if critical {
            self.record_danger(CommandDanger {
                kind: DangerKind::DangerousRemoval,
                severity: RiskLevel::Critical,
                phase: DangerResponse::Ask,
                standing: DangerStanding::Binding,
                text: format!("`{}` removes or overwrites what much depends on", draft.part.text),
            });
        }
    }

    /// The starting points of the `find` that runs a command, if one does.
    fn starting_points_of_find(&self, place: &CommandContext<'_>) -> Option<Vec<ShellArg>> {
        let runner = self.found.parts.get(place.run_by?)?;
        let program = runner.program.as_deref().map(base_name)?;
        let words = runner.argv.iter().skip(1).map(|word| {
            let tilde = word.text == "~" || word.text.starts_with("~/");
            ShellArg { tilde, ..ShellArg::literal(word.text.clone()) }
        });
        matches!(program, "find" | "gfind")
            .then(|| grammars::starting_points_of_find(&words.collect::<Vec<_>>()))
    }
}
