//! Visits simple commands: their assignments, words and redirects, and where they leave the shell.
//!
//! A command that consists of assignments changes variables of the shell itself; assignments before a program change
//! its environment only. The former are noted for the words of later commands, the latter are checked in
//! `simple_command`.

use crate::analysis::DangerKind;
use crate::bash_program::{BashSimpleCommand, VariableAssignment, WordPiece};
use crate::evaluated_names;
use crate::expand;
use crate::harmless_variables;
use crate::redirects::RedirectEffects;
use crate::shell_arg::ShellArg;
use crate::variable_table::assignment_value;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::working_dirs::{WorkingDirs, WorkingDirsByStatus};
use toolgate_proto::RiskLevel;

impl AnalysisVisitor<'_> {
    /// Visits a simple command; returns where the shell is afterwards.
    pub(crate) fn visit_simple(
        &mut self,
        simple: &BashSimpleCommand,
        context: &CommandContext<'_>,
    ) -> WorkingDirsByStatus {
        for assignment in &simple.assignments {
            self.visit_assignment(assignment, context);
        }
        let mut args = Vec::new();
        for word in &simple.words {
            self.visit_pieces(&word.pieces, context);
            self.expand_word(word, &mut args);
        }
        for arg in &mut args {
            self.variables.substitute(arg);
        }
        let redirected = self.analyse_redirects(&simple.redirects, context);
        for assignment in &simple.assignments {
            if is_count(assignment) {
                self.note_count(&assignment.name);
                continue;
            }
            let number = assignment.subscript.is_none()
                && harmless_variables::is_number(&assignment_value(assignment));
            self.note_value(&assignment.name, number && !assignment.source.contains("+="));
        }
        self.note_builtin(&args);
        let spelled = simple.spelled.join(" ");
        let outcome = self.dirs_after_command(&args, context);
        if args.is_empty() {
            self.add_assignments(&simple.assignments, spelled, redirected, context);
        } else if self.variables.note_read_builtin(&simple.assignments, &args) {
            self.add_bare_part(spelled, redirected, true, context);
        } else {
            let assignments: Vec<(&str, ShellArg)> = simple
                .assignments
                .iter()
                .map(|assignment| (assignment.name.as_str(), assignment_value(assignment)))
                .collect();
            self.analyse_simple_command(spelled, &assignments, args, redirected, context);
        }
        outcome
    }

    /// Visits the substitutions in the values and the subscript of an assignment.
    fn visit_assignment(&mut self, assignment: &VariableAssignment, context: &CommandContext<'_>) {
        for value in &assignment.values {
            self.visit_pieces(&value.pieces, context);
        }
        if let Some(subscript) = &assignment.subscript {
            self.visit_pieces(subscript, context);
        }
    }

    /// Adds the part for a command that consists of assignments and redirects, and notes what the variables contain.
    ///
    /// A literal value is harmless; an unknown one is harmless if the variable steers no program and the value is not
    /// evaluated. Anything else leaves a part that needs an approval.
    fn add_assignments(
        &mut self,
        assignments: &[VariableAssignment],
        spelled: String,
        redirected: RedirectEffects,
        context: &CommandContext<'_>,
    ) {
        let values: Vec<(&VariableAssignment, ShellArg)> =
            assignments.iter().map(|assignment| (assignment, assignment_value(assignment))).collect();
        let harmless = values.iter().all(|(assignment, value)| is_harmless_assignment(assignment, value));
        for (assignment, value) in &values {
            if assignment.subscript.is_none() && !assignment.array {
                self.variables.note_known_values(&assignment.name, std::slice::from_ref(value));
            }
        }
        if harmless {
            let names = values.iter().map(|(assignment, _)| assignment.name.clone());
            self.variables.literal_names.extend(names);
        } else {
            for (assignment, _) in &values {
                self.warn(DangerKind::Environment, RiskLevel::Medium, || {
                    format!("the command sets the variable `{}`", assignment.name)
                });
            }
        }
        // The output of a command is text: harmless, unless the name of the variable steers a program.
        let local = values.iter().all(|(assignment, value)| {
            assignment.subscript.is_none()
                && (harmless_variables::is_local(&assignment.name, &ShellArg::literal("x"))
                    || harmless_variables::is_neutral(&assignment.name))
                && (value.live.is_some() || harmless_variables::is_inert(value))
                && !self.variables.evaluates(value)
        });
        let printable = values.iter().all(|(_, value)| self.variables.is_printable_value(value));
        if local && printable && !harmless {
            for (assignment, value) in &values {
                let names = if harmless_variables::is_number(value) {
                    &mut self.variables.literal_names
                } else {
                    &mut self.variables.text_names
                };
                names.insert(assignment.name.clone());
            }
        }
        let index = self.add_bare_part(spelled, redirected, harmless || local, context);
        let remembered = harmless || local && printable;
        if !remembered && let Some(part) = self.analysis.parts.get_mut(index) {
            part.read_only = false;
        }
    }

    /// Where the shell is after a simple command.
    ///
    /// `pushd`, `source` and a program whose name is unknown may change the directory to any other.
    fn dirs_after_command(&self, args: &[ShellArg], context: &CommandContext<'_>) -> WorkingDirsByStatus {
        let mut words = args;
        while let Some((first, rest)) = words.split_first() {
            match first.text.as_str() {
                "command" | "builtin" => words = rest,
                "cd" => {
                    return WorkingDirsByStatus {
                        success: context.dirs.after_cd(rest, self.workspace),
                        failure: context.dirs.clone(),
                    };
                }
                "pushd" | "popd" | "eval" | "source" | "." | "trap" => {
                    return WorkingDirsByStatus::unchanged(WorkingDirs::unknown());
                }
                _ if first.live.is_some() => return WorkingDirsByStatus::unchanged(WorkingDirs::unknown()),
                _ => break,
            }
        }
        WorkingDirsByStatus::unchanged(context.dirs.clone())
    }
}

/// Whether an assignment sets a variable to the output of a command that prints a number or nothing.
fn is_count(assignment: &VariableAssignment) -> bool {
    let is_plain = assignment.subscript.is_none() && !assignment.array && !assignment.source.contains("+=");
    let pieces = assignment.values.first().map(|value| value.pieces.as_slice());
    is_plain
        && matches!(pieces, Some([WordPiece::Command { list, .. }]) if evaluated_names::prints_number(list))
}

/// Whether an assignment gives a variable that steers no program a literal value.
fn is_harmless_assignment(assignment: &VariableAssignment, value: &ShellArg) -> bool {
    let name = &assignment.name;
    assignment.subscript.is_none()
        && if assignment.array {
            is_literal_array(assignment)
        } else {
            harmless_variables::is_local(name, value) || harmless_variables::is_harmless(name, value)
        }
}

/// Whether every element of an array is literal and has no subscript of its own, which bash would evaluate.
fn is_literal_array(assignment: &VariableAssignment) -> bool {
    assignment.values.iter().all(|word| {
        let value = expand::expand_single(&word.pieces, &word.source);
        harmless_variables::is_local(&assignment.name, &value)
            && !value.tilde
            && !word.source.starts_with('[')
    })
}
