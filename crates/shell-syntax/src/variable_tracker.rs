//! What a line does to variables: which contain numbers, which contain no secret, and which are evaluated as code.
//!
//! Two kinds of values are tracked. [`VariableTracker::known`] has every value that a variable may have at this
//! place, and is substituted into words such as `"$dir/x"`. [`VariableTracker::loop_values`] has the one value of a
//! loop variable in the iteration that is being visited, and replaces words that are nothing but the variable. They
//! are not one map, because the first names several values at once and is limited by scope, while the second is
//! exact and ends with the iteration.

use crate::analysis::{DoubtKind, ShellExpansionKind};
use crate::bash_program::{ParameterExpansionForm, ShellWord, VariableAssignment, WordPiece};
use crate::command_part::empty_part;
use crate::harmless_variables;
use crate::known_values::KnownValues;
use crate::parser;
use crate::shell_arg::ShellArg;
use crate::variable_table::VariableTable;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::word_list::WordList;
use std::collections::{HashMap, HashSet};

/// Loops with more iterations, those of nested loops multiplied, are visited once instead of once per value.
const MAX_LOOP_ITERATIONS: usize = 16;

/// Builtins that set the variables named by their arguments to values that may or may not be numbers.
const VARIABLE_SETTERS: WordList = WordList(
    "read mapfile readarray getopts printf declare typeset local export readonly let wait unset eval select",
);

/// What the line is known to do to variables.
pub(crate) struct VariableTracker {
    /// Every place of the program that sets a variable, from a first pass over the tree.
    pub(crate) table: VariableTable,
    /// The tables of the shells that run this code (`d=/ sh -c '…'`). Which of their variables are exported is not
    /// derived, so that only the check for removals uses them.
    pub(crate) outer_tables: Vec<VariableTable>,
    /// The arguments of the shell that runs this code: `/` of `sh -c '…' _ /`.
    pub(crate) positional: Vec<ShellArg>,
    /// Names that the line sets to literal text or to numbers, so that printing them reveals nothing.
    pub(crate) literal_names: HashSet<String>,
    /// Names that the line sets to the output of commands, to input, or to other variables that may be printed.
    pub(crate) text_names: HashSet<String>,
    /// Names whose values are evaluated as arithmetic somewhere in the line. Each must be set to numbers only, or the
    /// line
    /// is doubted.
    evaluated_names: HashSet<String>,
    /// Names that the line sets to numbers.
    number_names: HashSet<String>,
    /// Names that the line sets to the output of a command that prints a number or nothing. An empty value is no word,
    /// but evaluating it runs nothing.
    count_names: HashSet<String>,
    /// Names that the line sets to something that may not be a number.
    non_number_names: HashSet<String>,
    /// The values of the loop variables in the iteration that is being visited.
    pub(crate) loop_values: HashMap<String, ShellArg>,
    /// How many iterations the loops around have, multiplied.
    pub(crate) iteration_count: usize,
    /// The values that variables certainly have where the visitor is.
    pub(crate) known: KnownValues,
}

impl Default for VariableTracker {
    fn default() -> Self {
        Self {
            table: VariableTable::default(),
            outer_tables: Vec::new(),
            positional: Vec::new(),
            literal_names: HashSet::new(),
            text_names: HashSet::new(),
            evaluated_names: HashSet::new(),
            number_names: HashSet::new(),
            count_names: HashSet::new(),
            non_number_names: HashSet::new(),
            loop_values: HashMap::new(),
            iteration_count: 1,
            known: KnownValues::new(),
        }
    }
}

impl VariableTracker {
    /// Whether expanding an argument runs or sets more than its words show. Remembers the names that it evaluates.
    pub(crate) fn evaluates(&mut self, arg: &ShellArg) -> bool {
        // Literal text can still name a variable that contains code.
        let is_number = |name: &String| {
            self.number_names.contains(name)
                || self.count_names.contains(name)
                || harmless_variables::is_counter(name)
        };
        let numbers = arg.evaluated.iter().all(is_number);
        self.evaluated_names.extend(arg.evaluated.iter().cloned());
        arg.evaluates || !numbers
    }

    /// Whether a value that is evaluated may be something other than a number.
    pub(crate) fn evaluates_non_number(&self) -> bool {
        self.evaluated_names.intersection(&self.non_number_names).next().is_some()
    }

    /// The iterations of a loop over these values: one per value if all are known and few, otherwise a single one
    /// without a value. A variable that another place of the line sets too may have that value instead.
    pub(crate) fn loop_iterations(&self, name: &str, values: &[ShellArg]) -> Vec<Option<ShellArg>> {
        let is_known = |value: &ShellArg| value.known().is_some() || value.pattern.is_some() && !value.tilde;
        let few =
            !values.is_empty() && values.len().saturating_mul(self.iteration_count) <= MAX_LOOP_ITERATIONS;
        if few && self.table.is_set_once(name) && values.iter().all(is_known) {
            values.iter().cloned().map(Some).collect()
        } else {
            vec![None]
        }
    }

    /// The value of a word that consists of a loop variable and nothing else.
    pub(crate) fn loop_value(&self, word: &ShellWord) -> Option<ShellArg> {
        if self.loop_values.is_empty() {
            return None;
        }
        let is_empty =
            |piece: &&WordPiece| matches!(piece, WordPiece::Literal { text, .. } if text.is_empty());
        let mut pieces = word.pieces.iter().filter(|piece| !is_empty(piece));
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
        let value = self.loop_values.get(name).filter(|_| arithmetic.is_empty() && operands.is_empty())?;
        let is_one_word = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|character| character.is_ascii_alphanumeric() || "_./-".contains(character))
        };
        // Without quotes a value may be split into several words.
        (*quoted || value.known().is_some_and(is_one_word)).then(|| value.clone())
    }

    /// Marks an argument as unsplit if its variable is set to a number, which is one word. Whether it is a number at
    /// every place of the line is checked when the whole line has been visited.
    pub(crate) fn note_unsplit_number(&mut self, arg: &mut ShellArg) {
        if let (Some(ShellExpansionKind::Parameter), true, [name]) =
            (arg.live, arg.splits, arg.variables.as_slice())
            && self.number_names.contains(name)
            && !arg.evaluates
        {
            self.evaluated_names.insert(name.clone());
            arg.splits = false;
        }
    }

    /// Whether a command is `read` with names that steer no program. If so, the names are noted as text.
    pub(crate) fn note_read_builtin(
        &mut self,
        assignments: &[VariableAssignment],
        args: &[ShellArg],
    ) -> bool {
        let sets_separator = |assignment: &VariableAssignment| assignment.name == "IFS" && !assignment.array;
        let is_literal = |assignment: &VariableAssignment| {
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
        let is_local = |name: &&str| {
            parser::is_name(name) && harmless_variables::is_local(name, &ShellArg::literal("x"))
        };
        let harmless = names.peek().is_some()
            && names.clone().all(is_local)
            && assignments.iter().all(|assignment| sets_separator(assignment) && is_literal(assignment));
        if harmless {
            self.text_names.extend(names.map(|name| (*name).to_owned()));
        }
        harmless
    }

    /// Whether a variable contains no secret: by its name, or because the line itself sets it.
    pub(crate) fn is_printable_name(&self, name: &str) -> bool {
        // No program keeps a secret under a name of one letter.
        let short = name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        harmless_variables::is_printable(name)
            || self.literal_names.contains(name)
            || self.text_names.contains(name)
            || short && self.table.is_untouched(name)
    }

    /// Whether the variables in an argument contain no secret, so that it may be printed.
    pub(crate) fn is_printable(&self, arg: &ShellArg) -> bool {
        arg.variables.iter().all(|name| self.is_printable_name(name))
    }

    /// Whether a value that is assigned contains no secret: a number, text, or variables that may be printed.
    pub(crate) fn is_printable_value(&self, value: &ShellArg) -> bool {
        harmless_variables::is_number(value) || self.is_printable(value)
    }
}

impl AnalysisVisitor<'_> {
    /// Notes whether a variable is set to a number. A loop that assigns to its own variable is doubted, because its
    /// iterations were derived from the values in its header.
    ///
    /// A name may be set to a number at one place and to text at another; then it is in both sets.
    pub(crate) fn note_value(&mut self, name: &str, number: bool) {
        if self.variables.loop_values.contains_key(name) {
            self.record_doubt(DoubtKind::Unclear, "a loop assigns to its own variable");
        }
        let names =
            if number { &mut self.variables.number_names } else { &mut self.variables.non_number_names };
        names.insert(name.to_owned());
    }

    /// Notes that a variable is set to the output of a command that prints a number or nothing.
    pub(crate) fn note_count(&mut self, name: &str) {
        if self.variables.loop_values.contains_key(name) {
            self.record_doubt(DoubtKind::Unclear, "a loop assigns to its own variable");
        }
        self.variables.count_names.insert(name.to_owned());
    }

    /// Notes the counter of `for ((i=0; …))`, which is a number before anything is evaluated.
    pub(crate) fn note_loop_counter(&mut self, pieces: &[WordPiece]) {
        let Some(WordPiece::Literal { text, .. }) = pieces.first() else { return };
        let Some((name, value)) = text.split(';').next().and_then(|first| first.split_once('=')) else {
            return;
        };
        let (name, value) = (name.trim(), ShellArg::literal(value.trim()));
        let is_counter = harmless_variables::is_number(&value) && harmless_variables::is_local(name, &value);
        if is_counter && !name.is_empty() {
            self.variables.literal_names.insert(name.to_owned());
            self.note_value(name, true);
        }
    }

    /// Notes the variable of a loop. Values that may be evaluated as code leave a part that no rule covers.
    ///
    /// `for x in $(cmd)` gives the output of a command to `x`, which is text, and not code unless something evaluates
    /// it.
    pub(crate) fn visit_loop_variable(
        &mut self,
        name: &str,
        values: &[ShellArg],
        context: &CommandContext<'_>,
    ) {
        let harmless = values.iter().all(|value| {
            harmless_variables::is_local(name, value) || harmless_variables::is_harmless(name, value)
        });
        // Without a list, the values are the arguments of the shell.
        self.note_value(name, !values.is_empty() && values.iter().all(harmless_variables::is_number));
        if harmless {
            self.variables.literal_names.insert(name.to_owned());
            return;
        }
        let mut part = empty_part(format!("{name}=…"), context);
        // Unknown values are harmless in a variable that steers no program, as long as they are not code.
        let local = harmless_variables::is_local(name, &ShellArg::literal("x"));
        let inert = values.iter().all(|value| {
            (value.live.is_some() || harmless_variables::is_inert(value)) && !self.variables.evaluates(value)
        });
        if local && inert {
            part.allow_text = Some(String::new());
            part.read_only = values.iter().all(|value| self.variables.is_printable_value(value));
            // A secret is still one under another name.
            if part.read_only {
                self.variables.text_names.insert(name.to_owned());
            }
        }
        self.push_part(part);
    }

    /// Notes the variables that a builtin sets to values that may or may not be numbers.
    pub(crate) fn note_builtin(&mut self, args: &[ShellArg]) {
        let mut words = args.iter().skip_while(|arg| matches!(arg.text.as_str(), "command" | "builtin"));
        if !words.next().is_some_and(|arg| VARIABLE_SETTERS.contains(arg.text.as_str())) {
            return;
        }
        for word in words {
            let ends_name = |character: char| character != '_' && !character.is_ascii_alphanumeric();
            let name = word.text.split(ends_name).next().unwrap_or_default();
            if !name.is_empty() {
                self.note_value(name, false);
            }
        }
    }
}
