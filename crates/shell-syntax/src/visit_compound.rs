//! Visits compound commands: groups, subshells, conditionals and loops.
//!
//! The exit status of a condition is not known, so that every body is visited, and the working directories after the
//! command are those of all ways through it. A loop may run its body more than once: if the body changes the directory,
//! the directory of the second iteration is not that of the first.

use crate::bash_program::{BashCommand, BashCompoundCommand, CommandList, ShellWord, WordPiece};
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::word_list::WordList;
use crate::working_dirs::{WorkingDirs, WorkingDirsByStatus};

/// Builtins that may change the working directory, or run code that does.
const DIR_CHANGERS: WordList = WordList("cd pushd popd eval source . trap");

impl AnalysisVisitor<'_> {
    /// Visits a compound command; returns where the shell is afterwards.
    pub(crate) fn visit_compound(
        &mut self,
        compound: &BashCompoundCommand,
        context: &mut CommandContext<'_>,
    ) -> WorkingDirsByStatus {
        match compound {
            BashCompoundCommand::Group(list) => self.visit_list(list, context),
            BashCompoundCommand::Subshell(list) => {
                let before = context.dirs.clone();
                self.visit_list(list, context);
                WorkingDirsByStatus::unchanged(before)
            }
            BashCompoundCommand::If { arms, otherwise } => {
                WorkingDirsByStatus::unchanged(self.visit_if(arms, otherwise.as_ref(), context))
            }
            BashCompoundCommand::While { condition, body } => {
                forget_dirs_of_moving_loop(&[condition, body], context);
                let tested = self.visit_list(condition, context);
                let mut inner = CommandContext { dirs: tested.success.clone(), ..context.clone() };
                let after = self.visit_list(body, &mut inner).either();
                WorkingDirsByStatus::unchanged(tested.either().merge(&after))
            }
            BashCompoundCommand::For { name, words, body } => {
                WorkingDirsByStatus::unchanged(self.visit_for(name, words, body, context))
            }
            BashCompoundCommand::Case { subject, arms } => {
                WorkingDirsByStatus::unchanged(self.visit_case(subject, arms, context))
            }
            BashCompoundCommand::Test(words) => {
                self.visit_test(words, context);
                WorkingDirsByStatus::unchanged(context.dirs.clone())
            }
            BashCompoundCommand::Arithmetic(pieces) => {
                self.visit_arithmetic(pieces, context);
                WorkingDirsByStatus::unchanged(context.dirs.clone())
            }
            BashCompoundCommand::ArithmeticFor(pieces, body) => {
                WorkingDirsByStatus::unchanged(self.visit_arithmetic_for(pieces, body, context))
            }
        }
    }

    /// Visits `if` with its `elif` arms. Each body starts where its condition succeeds, the next condition where it
    /// fails.
    fn visit_if(
        &mut self,
        arms: &[(CommandList, CommandList)],
        otherwise: Option<&CommandList>,
        context: &mut CommandContext<'_>,
    ) -> WorkingDirs {
        let mut after: Option<WorkingDirs> = None;
        let mut join = |outcome: WorkingDirs| {
            after = Some(after.as_ref().map_or(outcome.clone(), |dirs| dirs.merge(&outcome)))
        };
        for (condition, body) in arms {
            let tested = self.visit_list(condition, context);
            let mut inner = CommandContext { dirs: tested.success, ..context.clone() };
            join(self.visit_scoped(|visitor| visitor.visit_list(body, &mut inner)).either());
            context.dirs = tested.failure;
        }
        match otherwise {
            Some(body) => join(self.visit_list(body, context).either()),
            None => join(context.dirs.clone()),
        }
        after.unwrap_or_else(WorkingDirs::unknown)
    }

    /// Visits `for name in words`. With few values, all of them known, the body is visited once per value, so that
    /// `for f in a b; do rm "$f"` shows two removals; otherwise once, with the value of the variable unknown.
    fn visit_for(
        &mut self,
        name: &str,
        words: &[ShellWord],
        body: &CommandList,
        context: &mut CommandContext<'_>,
    ) -> WorkingDirs {
        let mut values = Vec::new();
        for word in words {
            self.visit_pieces(&word.pieces, context);
            self.expand_word(word, &mut values);
        }
        self.visit_loop_variable(name, &values, context);
        self.variables.note_known_values(name, &values);
        forget_dirs_of_moving_loop(&[body], context);
        let before = context.dirs.clone();
        let mut after = before.clone();
        let iterations = self.variables.loop_iterations(name, &values);
        let outer_count = self.variables.iteration_count;
        self.variables.iteration_count = outer_count.saturating_mul(iterations.len());
        for value in iterations {
            self.variables.loop_values.extend(value.map(|value| (name.to_owned(), value)));
            context.dirs = before.clone();
            after = after.merge(&self.visit_list(body, context).either());
            self.variables.loop_values.remove(name);
        }
        self.variables.iteration_count = outer_count;
        after
    }

    /// Visits `case`. At most one arm runs, as far as the directories go: `;&` into the next arm changes nothing
    /// that the merge of all arms does not contain.
    fn visit_case(
        &mut self,
        subject: &ShellWord,
        arms: &[(Vec<ShellWord>, CommandList)],
        context: &CommandContext<'_>,
    ) -> WorkingDirs {
        self.visit_pieces(&subject.pieces, context);
        let mut after = context.dirs.clone();
        for (patterns, body) in arms {
            for pattern in patterns {
                self.visit_pieces(&pattern.pieces, context);
            }
            let mut inner = context.clone();
            let end = self.visit_scoped(|visitor| visitor.visit_list(body, &mut inner)).either();
            after = after.merge(&end);
        }
        after
    }

    /// Visits `for ((…; …; …))`.
    fn visit_arithmetic_for(
        &mut self,
        header: &[WordPiece],
        body: &CommandList,
        context: &mut CommandContext<'_>,
    ) -> WorkingDirs {
        self.note_loop_counter(header);
        self.visit_arithmetic(header, context);
        forget_dirs_of_moving_loop(&[body], context);
        let before = context.dirs.clone();
        let after = self.visit_list(body, context).either();
        before.merge(&after)
    }
}

/// Forgets the working directory if a loop may change it: from the second iteration on it may be anywhere.
fn forget_dirs_of_moving_loop(bodies: &[&CommandList], context: &mut CommandContext<'_>) {
    if bodies.iter().any(|body| may_change_dir(body)) {
        context.dirs = WorkingDirs::unknown();
    }
}

/// Whether a list may change the working directory of the shell that runs it.
fn may_change_dir(list: &CommandList) -> bool {
    let pipelines = list
        .0
        .iter()
        .flat_map(|item| std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline)));
    pipelines.flat_map(|pipeline| &pipeline.commands).any(command_may_change_dir)
}

/// Whether a command may change the working directory of the shell that runs it.
fn command_may_change_dir(command: &BashCommand) -> bool {
    match command {
        // `builtin command cd` is the longest way to write `cd`; a first word that is not literal may be any of them.
        BashCommand::Simple(simple) => simple.words.iter().take(3).enumerate().any(|(position, word)| {
            DIR_CHANGERS.contains(word.source.trim_matches(['"', '\'', '\\']))
                || position == 0 && word.source.contains(['$', '\\', '"', '\''])
        }),
        BashCommand::Compound(compound, _) => match compound {
            BashCompoundCommand::Group(list) => may_change_dir(list),
            BashCompoundCommand::Subshell(_)
            | BashCompoundCommand::Test(_)
            | BashCompoundCommand::Arithmetic(_) => false,
            BashCompoundCommand::If { arms, otherwise } => {
                arms.iter().any(|(condition, body)| may_change_dir(condition) || may_change_dir(body))
                    || otherwise.as_ref().is_some_and(may_change_dir)
            }
            BashCompoundCommand::While { condition, body } => {
                may_change_dir(condition) || may_change_dir(body)
            }
            BashCompoundCommand::For { body, .. } | BashCompoundCommand::ArithmeticFor(_, body) => {
                may_change_dir(body)
            }
            BashCompoundCommand::Case { arms, .. } => arms.iter().any(|(_, body)| may_change_dir(body)),
        },
        BashCommand::Function { .. } => false,
    }
}
