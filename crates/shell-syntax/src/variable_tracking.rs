//! Variables of a line: which hold numbers, which may be shown, and what follows from evaluating them.

use super::analysis::{DoubtKind, ShellExpansionKind};
use super::expand::ShellArg;
use super::syntax::{ParameterExpansionForm, ShellWord, VariableAssignment, WordPiece};
use super::variable_safety;
use super::visitor::{AnalysisVisitor, CommandContext};

/// Loops of more turns, those inside one another multiplied, are looked at once and not turn by turn.
const MAX_LOOP_ITERATIONS: usize = 16;

impl AnalysisVisitor<'_> {
    /// Whether expanding an argument runs or sets more than its words show.
    pub(super) fn evaluates(&mut self, arg: &ShellArg) -> bool {
        // A text that is inert by itself may still name a variable that is not.
        let number = |name: &String| self.numbers.contains(name) || variable_safety::is_counter(name);
        let known = arg.evaluated.iter().all(number);
        self.evaluated.extend(arg.evaluated.iter().cloned());
        arg.evaluates || !known
    }

    /// The turns of a loop over these values: each by itself if all are known, otherwise one of which nothing is.
    /// A variable that another place of the line sets as well may hold that value instead.
    pub(super) fn loop_iterations(&self, name: &str, values: &[ShellArg]) -> Vec<Option<ShellArg>> {
        let known = |value: &ShellArg| value.known().is_some() || value.pattern.is_some() && !value.tilde;
        let few =
            !values.is_empty() && values.len().saturating_mul(self.iteration_count) <= MAX_LOOP_ITERATIONS;
        if few && self.variables.is_set_once(name) && values.iter().all(known) {
            values.iter().cloned().map(Some).collect()
        } else {
            vec![None]
        }
    }

    /// What a word comes to that is nothing but the variable of a loop.
    pub(super) fn bound_value(&self, word: &ShellWord) -> Option<ShellArg> {
        if self.bound.is_empty() {
            return None;
        }
        let empty = |piece: &&WordPiece| matches!(piece, WordPiece::Literal { text, .. } if text.is_empty());
        let mut pieces = word.pieces.iter().filter(|piece| !empty(piece));
        let (
            Some(WordPiece::Parameter {
                name,
                form: ParameterExpansionForm::Value,
                arithmetic,
                operands,
                quoted,
            }),
            None,
        ) = (pieces.next(), pieces.next())
        else {
            return None;
        };
        let value = self.bound.get(name).filter(|_| arithmetic.is_empty() && operands.is_empty())?;
        let whole = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|character| character.is_ascii_alphanumeric() || "_./-".contains(character))
        };
        // Without quotes a value may fall apart into words.
        (*quoted || value.known().is_some_and(whole)).then(|| value.clone())
    }

    /// A number does not fall apart into words. Whether it stays a number is seen when the whole line is known.
    pub(super) fn note_unsplit_number(&mut self, arg: &mut ShellArg) {
        if let (Some(ShellExpansionKind::Parameter), true, [name]) =
            (arg.live, arg.splits, arg.variables.as_slice())
            && self.numbers.contains(name)
            && !arg.evaluates
        {
            self.evaluated.insert(name.clone());
            arg.splits = false;
        }
    }

    /// Whether a command is `read` with names that nothing else looks at: then they hold text.
    pub(super) fn note_read_builtin(
        &mut self,
        assignments: &[VariableAssignment],
        args: &[ShellArg],
    ) -> bool {
        let separates = |assignment: &VariableAssignment| assignment.name == "IFS" && !assignment.array;
        let literal = |assignment: &VariableAssignment| {
            assignment
                .values
                .iter()
                .flat_map(|value| &value.pieces)
                .all(|piece| matches!(piece, WordPiece::Literal { .. }))
        };
        let Some(words) = args.iter().map(ShellArg::known).collect::<Option<Vec<&str>>>() else {
            return false;
        };
        let Some((&"read", words)) = words.split_first() else { return false };
        let mut names = words.iter().skip_while(|word| matches!(**word, "-r" | "-s" | "--")).peekable();
        let local = |name: &&str| {
            super::parser::is_name(name) && variable_safety::is_local(name, &ShellArg::literal("x"))
        };
        let plain = names.peek().is_some()
            && names.clone().all(local)
            && assignments.iter().all(|assignment| separates(assignment) && literal(assignment));
        if plain {
            self.text_here.extend(names.map(|name| (*name).to_owned()));
        }
        plain
    }

    /// Notes whether a variable holds a number, as far as this line sets it.
    pub(super) fn note_value(&mut self, name: &str, number: bool) {
        if self.bound.contains_key(name) {
            self.record_doubt(DoubtKind::Unclear, "a loop sets its own variable");
        }
        let names = if number { &mut self.numbers } else { &mut self.not_numbers };
        names.insert(name.to_owned());
    }

    /// Whether what an argument shows is no secret.
    pub(super) fn is_printable(&self, arg: &ShellArg) -> bool {
        arg.variables.iter().all(|name| self.is_printable_name(name))
    }

    /// `for ((i=0; …` sets a variable to a number before anything is evaluated.
    pub(super) fn note_loop_counter(&mut self, pieces: &[WordPiece]) {
        let Some(WordPiece::Literal { text, .. }) = pieces.first() else { return };
        let Some((name, value)) = text.split(';').next().and_then(|first| first.split_once('=')) else {
            return;
        };
        let (name, value) = (name.trim(), ShellArg::literal(value.trim()));
        if variable_safety::is_number(&value) && variable_safety::is_local(name, &value) && !name.is_empty() {
            self.set_here.insert(name.to_owned());
            self.note_value(name, true);
        }
    }

    /// Notes a variable of the line; one that something might evaluate leaves a part that no rule covers.
    pub(super) fn visit_loop_variable(
        &mut self,
        name: &str,
        values: &[ShellArg],
        place: &CommandContext<'_>,
    ) {
        let harmless = values
            .iter()
            .all(|value| variable_safety::is_local(name, value) || variable_safety::is_harmless(name, value));
        // Without a list, the values are the arguments of the shell.
        self.note_value(name, !values.is_empty() && values.iter().all(variable_safety::is_number));
        if harmless {
            self.set_here.insert(name.to_owned());
            return;
        }
        let mut part = super::command_part::empty_part(format!("{name}=…"), place);
        // Live values are fine for a name that nobody looks at; they only must not be code.
        let local = variable_safety::is_local(name, &ShellArg::literal("x"));
        let inert = values.iter().all(|value| {
            (value.live.is_some() || variable_safety::is_inert(value)) && !self.evaluates(value)
        });
        if local && inert {
            part.allow_text = Some(String::new());
            part.read_only = self.are_printable(values);
            // What may be secret stays so under another name.
            if part.read_only {
                self.text_here.insert(name.to_owned());
            }
        }
        self.push_part(part);
    }

    /// Whether values tell nothing that a prompt should guard: text, and variables that may be printed.
    pub(super) fn are_printable(&self, values: &[ShellArg]) -> bool {
        values.iter().all(|value| variable_safety::is_number(value) || self.is_printable(value))
    }

    /// Notes the variables that a builtin sets to what cannot be told: it may be a number or not.
    pub(super) fn note_builtin(&mut self, args: &[ShellArg]) {
        const VARIABLE_SETTERS: &[&str] = &[
            "read",
            "mapfile",
            "readarray",
            "getopts",
            "printf",
            "declare",
            "typeset",
            "local",
            "export",
            "readonly",
            "let",
            "wait",
            "unset",
            "eval",
            "select",
        ];
        let mut words = args.iter().skip_while(|arg| matches!(arg.text.as_str(), "command" | "builtin"));
        if !words.next().is_some_and(|arg| VARIABLE_SETTERS.contains(&arg.text.as_str())) {
            return;
        }
        for word in words {
            let end = |character: char| character != '_' && !character.is_ascii_alphanumeric();
            let name = word.text.split(end).next().unwrap_or_default();
            if !name.is_empty() {
                self.note_value(name, false);
            }
        }
    }
}
