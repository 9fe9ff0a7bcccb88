//! What a command may come to in the worst case: what a runner starts, and what a removal takes away.
//! Nothing found here allows anything; it is shown to deny and ask rules, and to the guard against removals.

use super::analysis::{CommandDanger, DangerKind, Phase, Standing};
use super::expand::Arg;
use super::grammars;
use super::part::{Draft, base_name, joined};
use super::redirects::RedirectEffects;
use super::removal;
use super::runners;
use super::walk::{Place, Walk};
use toolgate_proto::Severity;

/// How many words a command may have to be guessed at, how many are guessed at in one line, and how deep.
const MAX_GUESSED_WORDS: usize = 256;
const MAX_GUESSED_COMMANDS: usize = 256;
const MAX_GUESS_DEPTH: usize = 3;

impl Walk<'_> {
    /// Shows to deny and ask rules what a runner may start.
    pub(super) fn add_guessed_commands(
        &mut self,
        draft: &mut Draft,
        name: &str,
        args: &[Arg],
        place: &Place<'_>,
    ) {
        if args.len() > MAX_GUESSED_WORDS {
            draft.part.plain &= !runners::is_runner(name);
            return;
        }
        let Some(guesses) = runners::guess(name, args) else { return };
        draft.part.plain &= !guesses.by_option;
        for words in guesses.words.into_iter().filter(|words| !words.is_empty()) {
            self.shadow(draft, |walk| {
                walk.part(joined(&words), &[], words, RedirectEffects::default(), place)
            });
        }
        for text in guesses.texts {
            self.shadow(draft, |walk| walk.text(&text, place));
        }
    }

    /// Visits a command that may run, and keeps only the spellings that deny and ask rules are matched against,
    /// and what binds.
    fn shadow(&mut self, draft: &mut Draft, visit: impl FnOnce(&mut Self)) {
        if self.shadows >= MAX_GUESSED_COMMANDS || self.shadow_depth >= MAX_GUESS_DEPTH {
            // A line that hides commands so deep is not what a rule was written for.
            draft.part.plain = false;
            return;
        }
        self.shadows += 1;
        self.shadow_depth += 1;
        let first = self.found.parts.len();
        let doubt = self.found.doubt.clone();
        let dangers = std::mem::take(&mut self.found.dangers);
        visit(self);
        for part in self.found.parts.split_off(first) {
            for text in part.deny_texts {
                draft.deny(text);
            }
        }
        let found = std::mem::replace(&mut self.found.dangers, dangers);
        for danger in found.into_iter().filter(|danger| danger.standing == Standing::Binding) {
            self.danger(danger);
        }
        self.found.doubt = doubt;
        self.shadow_depth -= 1;
    }

    pub(super) fn removals(&mut self, draft: &Draft, name: &str, args: &[Arg], place: &Place<'_>) {
        let Some(removed) = removal::removed(name, args, self.starting_points_of_find(place)) else { return };
        let mut critical = removed.whole;
        for file in removed.files {
            // What its variables may hold counts as much as what they are when they are empty.
            let candidates = self.candidates(&file);
            for file in std::iter::once(&file).chain(&candidates) {
                let likely = place.dirs.likely(file, self.workspace);
                critical |= likely
                    .iter()
                    .any(|path| removal::contains_protected_dir(&path.lexical(), self.start, self.workspace))
                    || removal::is_critical(file, &place.dirs, self.start, self.workspace);
            }
        }
        if critical {
            self.danger(CommandDanger {
                kind: DangerKind::DangerousRemoval,
                severity: Severity::Critical,
                phase: Phase::Ask,
                standing: Standing::Binding,
                text: format!("`{}` removes or overwrites what much depends on", draft.part.text),
            });
        }
    }

    /// The starting points of the `find` that runs a command, if one does.
    fn starting_points_of_find(&self, place: &Place<'_>) -> Option<Vec<Arg>> {
        let runner = self.found.parts.get(place.run_by?)?;
        let program = runner.program.as_deref().map(base_name)?;
        let words = runner.argv.iter().skip(1).map(|word| {
            let tilde = word.text == "~" || word.text.starts_with("~/");
            Arg { tilde, ..Arg::literal(word.text.clone()) }
        });
        matches!(program, "find" | "gfind")
            .then(|| grammars::starting_points_of_find(&words.collect::<Vec<_>>()))
    }
}
