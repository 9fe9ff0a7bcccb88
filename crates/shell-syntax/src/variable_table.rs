//! A table of every place of a program that sets a variable.
//!
//! A first pass over the syntax tree fills it, before any command is analysed: whether a name has one value for
//! certain depends on assignments later in the text too, because a loop may run them first.

use crate::analysis::ShellExpansionKind;
use crate::bash_program::{
    BashCommand, BashCompoundCommand, BashProgram, BashRedirect, BashSimpleCommand, CommandList,
    HereDocumentBody, ParameterExpansionForm, ShellWord, VariableAssignment, WordPiece,
};
use crate::expand;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use std::collections::{HashMap, HashSet};

/// How many values of one variable are kept.
pub(crate) const MAX_VALUES: usize = 64;

/// Builtins that set variables whose names or values the table does not derive.
const UNTRACKED_SETTERS: WordList = WordList(
    "mapfile readarray printf declare typeset local export readonly let getopts unset eval source . \
     trap wait set shift exec coproc select",
);

/// What a program assigns to each variable.
///
/// The table is flow-insensitive: it knows that a place sets a name, not when. `KnownValues` adds the order.
#[derive(Debug, Default)]
pub(crate) struct VariableTable {
    /// The assignments by name.
    names: HashMap<String, VariableEntry>,
    /// A command sets variables that the text does not name, so that every name may have any value.
    dynamic: bool,
    /// The functions that the program defines.
    functions: HashSet<String>,
    /// The first [`MAX_VALUES`] commands that may call a function, with their arguments.
    calls: Vec<(String, Vec<ShellArg>)>,
}

/// What a program assigns to one variable.
#[derive(Debug, Default)]
struct VariableEntry {
    /// How many places set it.
    places: usize,
    /// The first [`MAX_VALUES`] values.
    values: Vec<ShellArg>,
    /// A value comes from a command, from input or from another variable.
    live: bool,
    /// A value is read from an input, or set by a builtin whose value is not derived.
    from_input: bool,
}

impl VariableTable {
    /// Scans a whole program, its here-documents included.
    pub(crate) fn scan_program(program: &BashProgram) -> Self {
        let mut table = Self::default();
        table.scan_list(&program.list);
        for HereDocumentBody { pieces } in &program.here_documents {
            table.scan_pieces(pieces);
        }
        // Functions may be called before the place that defines them, from other functions.
        for (name, args) in std::mem::take(&mut table.calls) {
            if table.functions.contains(&name) {
                table.set("@", args);
            }
        }
        table
    }

    /// Whether exactly one place sets a name, so that it has no other value after that place.
    pub(crate) fn is_set_once(&self, name: &str) -> bool {
        !self.dynamic && self.names.get(name).is_some_and(|entry| entry.places == 1)
    }

    /// Whether nothing in the line sets a name.
    pub(crate) fn is_untouched(&self, name: &str) -> bool {
        !self.dynamic && !self.names.contains_key(name)
    }

    /// Whether a name may contain the output of a command or what was read from input.
    pub(crate) fn may_be_live(&self, name: &str) -> bool {
        self.dynamic || self.names.get(name).is_some_and(|entry| entry.live)
    }

    /// Whether a name gets a value from an input, or from a builtin whose value is not derived.
    pub(crate) fn is_from_input(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|entry| entry.from_input)
    }

    /// The values that the places of the program give a name. Those of `@` are arguments of functions and of `set`.
    pub(crate) fn candidate_values(&self, name: &str) -> &[ShellArg] {
        self.names.get(name).map(|entry| entry.values.as_slice()).unwrap_or_default()
    }

    /// Adds a place that sets a name to one of the values.
    fn set(&mut self, name: &str, values: impl IntoIterator<Item = ShellArg>) {
        let entry = self.names.entry(name.to_owned()).or_default();
        entry.places += 1;
        for value in values {
            entry.live |= value.live.is_some() && value.pattern.is_none();
            if entry.values.len() < MAX_VALUES {
                entry.values.push(value);
            }
        }
    }

    /// Scans the commands of a list.
    fn scan_list(&mut self, list: &CommandList) {
        for item in &list.0 {
            let pipelines =
                std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
            for command in pipelines.flat_map(|pipeline| &pipeline.commands) {
                self.scan_command(command);
            }
        }
    }

    /// Scans one command. A function may be called anywhere, so that its assignments have no certain place.
    fn scan_command(&mut self, command: &BashCommand) {
        match command {
            BashCommand::Simple(simple) => self.scan_simple_command(simple),
            BashCommand::Compound(compound, redirects) => {
                self.scan_redirects(redirects);
                self.scan_compound_command(compound);
            }
            BashCommand::Function { name, body, .. } => {
                self.dynamic = true;
                self.functions.insert(name.clone());
                self.scan_command(body);
            }
        }
    }

    /// Scans assignments, and builtins that set variables.
    ///
    /// `read` sets its arguments to unknown values. The other builtins may set any name, so that the table is marked
    /// as dynamic.
    fn scan_simple_command(&mut self, simple: &BashSimpleCommand) {
        for assignment in &simple.assignments {
            self.scan_assignment(assignment);
        }
        self.scan_redirects(&simple.redirects);
        for word in &simple.words {
            self.scan_pieces(&word.pieces);
        }
        let bare = |word: &ShellWord| word.source.trim_matches(['"', '\'', '\\']).to_owned();
        let mut words = simple.words.iter().map(bare).peekable();
        while words.next_if(|word| matches!(word.as_str(), "command" | "builtin" | "time")).is_some() {}
        let name = words.next();
        self.scan_arguments(name.as_deref(), simple);
        match name {
            Some(name) if UNTRACKED_SETTERS.contains(&name) => {
                self.dynamic |= match name.as_str() {
                    "printf" => words.any(|word| word.starts_with("-v")),
                    "declare" | "typeset" => words.next().as_deref() != Some("-p"),
                    _ => true,
                };
            }
            Some(name) if name == "read" => {
                for name in words.filter(|word| !word.starts_with('-')) {
                    self.set_from_input(&name);
                }
                self.set_from_input("REPLY");
            }
            // A program whose name is not literal may be one of these, and so may the word after `command -p`.
            Some(name) => {
                self.dynamic |= name.contains(['$', '`', '"', '\'', '\\', '{']) || name.starts_with('-')
            }
            None => {}
        }
    }

    /// Adds a place that sets a name to a value from an input.
    fn set_from_input(&mut self, name: &str) {
        self.set(name, [unknown_value()]);
        if let Some(entry) = self.names.get_mut(name) {
            entry.from_input = true;
        }
    }

    /// Scans the arguments of builtins that set variables without an assignment, and of commands that may be calls of
    /// functions. The check for removals needs the values; the table is dynamic for all other purposes.
    fn scan_arguments(&mut self, name: Option<&str>, simple: &BashSimpleCommand) {
        let Some(name) = name else { return };
        let own = simple.words.iter().position(|word| word.source.trim_matches(['"', '\'', '\\']) == name);
        let words = simple.words.iter().skip(own.map_or(1, |at| at + 1));
        let expanded = words.map(|word| expand::expand_single(&word.pieces, &word.source));
        match name {
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                for arg in expanded {
                    let Some((name, value)) = arg.text.split_once('=') else { continue };
                    let value = value.trim_matches(['(', ')']);
                    let emptied = arg.emptied().split_once('=').map_or("", |(_, emptied)| emptied);
                    let tilde = value == "~" || value.starts_with("~/");
                    let first_char_known = !value.trim_start_matches('"').starts_with(['$', '`']);
                    let (value, emptied) = (value.to_owned(), emptied.to_owned());
                    let value = ShellArg { text: value, emptied, tilde, first_char_known, ..arg.clone() };
                    self.set(name.trim_end_matches('+'), [value]);
                }
            }
            "mapfile" | "readarray" | "getopts" => {
                for arg in expanded.filter(|arg| !arg.text.starts_with('-')) {
                    self.set_from_input(&arg.text);
                }
                self.set_from_input(if name == "getopts" { "OPTARG" } else { "MAPFILE" });
            }
            "printf" => {
                let words: Vec<ShellArg> = expanded.collect();
                let variable =
                    words.iter().enumerate().find_map(|(at, arg)| match arg.text.strip_prefix("-v")? {
                        "" => words.get(at + 1).map(|name| name.text.as_str()),
                        attached => Some(attached),
                    });
                if let Some(variable) = variable {
                    self.set_from_input(variable);
                }
            }
            "set" => self.set("@", expanded.filter(|arg| !arg.text.starts_with(['-', '+']))),
            _ if self.calls.len() < MAX_VALUES => self.calls.push((name.to_owned(), expanded.collect())),
            _ => self.set_from_input("@"),
        }
    }

    /// Adds the value of an assignment; an array, an element or `+=` has a value that is not known.
    fn scan_assignment(&mut self, assignment: &VariableAssignment) {
        for value in &assignment.values {
            self.scan_pieces(&value.pieces);
        }
        self.scan_pieces(assignment.subscript.as_deref().unwrap_or_default());
        let appends = assignment.source.split_once('=').is_some_and(|(name, _)| name.ends_with('+'));
        let whole = assignment.subscript.is_none() && !assignment.array && !appends;
        let mut values: Vec<ShellArg> = assignment.values.iter().map(assigned_word_value).collect();
        if !whole {
            values.push(unknown_value());
        }
        self.set(&assignment.name, values);
    }

    /// Scans the parts of a compound command.
    fn scan_compound_command(&mut self, compound: &BashCompoundCommand) {
        match compound {
            BashCompoundCommand::Group(list) | BashCompoundCommand::Subshell(list) => self.scan_list(list),
            BashCompoundCommand::If { arms, otherwise } => {
                for (condition, body) in arms {
                    self.scan_list(condition);
                    self.scan_list(body);
                }
                if let Some(body) = otherwise {
                    self.scan_list(body);
                }
            }
            BashCompoundCommand::While { condition, body } => {
                self.scan_list(condition);
                self.scan_list(body);
            }
            BashCompoundCommand::For { name, words, body } => {
                let mut values = Vec::new();
                for word in words {
                    self.scan_pieces(&word.pieces);
                    if expand::expand(word, &mut values).is_none() {
                        values.push(unknown_value());
                    }
                }
                // Without a list, the values are the arguments of the shell or of the function.
                if words.is_empty() {
                    values.push(ShellArg {
                        text: "$@".to_owned(),
                        variables: vec!["@".to_owned()],
                        ..unknown_value()
                    });
                }
                self.set(name, values);
                self.scan_list(body);
            }
            BashCompoundCommand::Case { subject, arms } => {
                self.scan_pieces(&subject.pieces);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.scan_pieces(&pattern.pieces);
                    }
                    self.scan_list(body);
                }
            }
            BashCompoundCommand::Test(words) => {
                for word in words {
                    self.scan_pieces(&word.pieces);
                }
            }
            BashCompoundCommand::Arithmetic(pieces) => self.scan_arithmetic(pieces),
            BashCompoundCommand::ArithmeticFor(pieces, body) => {
                self.scan_arithmetic(pieces);
                self.scan_list(body);
            }
        }
    }

    /// Scans arithmetic, which may assign to any name in it.
    fn scan_arithmetic(&mut self, pieces: &[WordPiece]) {
        self.scan_pieces(pieces);
        let sets = |text: &str| text.contains('=') || text.contains("++") || text.contains("--");
        self.dynamic |= pieces.iter().any(|piece| match piece {
            WordPiece::Literal { text, .. } => sets(text),
            WordPiece::Parameter { .. } | WordPiece::Command { .. } | WordPiece::Process { .. } => true,
            WordPiece::Arithmetic { .. } => false,
        });
    }

    /// Scans the targets of redirects; `{name}>file` sets a variable.
    fn scan_redirects(&mut self, redirects: &[BashRedirect]) {
        for redirect in redirects {
            self.dynamic |= redirect.sets_variable;
            self.scan_pieces(&redirect.target.pieces);
        }
    }

    /// Scans the expansions in words.
    fn scan_pieces(&mut self, pieces: &[WordPiece]) {
        for piece in pieces {
            match piece {
                WordPiece::Literal { .. } => {}
                WordPiece::Parameter { form, arithmetic, operands, .. } => {
                    self.dynamic |=
                        matches!(form, ParameterExpansionForm::Assigned | ParameterExpansionForm::Evaluated);
                    for expression in arithmetic {
                        self.scan_arithmetic(expression);
                    }
                    for operand in operands {
                        self.scan_pieces(operand);
                    }
                }
                WordPiece::Command { list, .. } | WordPiece::Process { list } => self.scan_list(list),
                WordPiece::Arithmetic { pieces } => self.scan_arithmetic(pieces),
            }
        }
    }
}

/// A value that is not known.
fn unknown_value() -> ShellArg {
    ShellArg { live: Some(ShellExpansionKind::Parameter), ..ShellArg::default() }
}

/// The value of one assigned word. Assignments are not subject to globbing, so that a pattern is literal.
fn assigned_word_value(word: &ShellWord) -> ShellArg {
    let value = expand::expand_single(&word.pieces, &word.source);
    if value.pattern.is_some() { ShellArg::literal(value.emptied()) } else { value }
}

/// The value of an assignment; for an array, all elements joined by blanks.
///
/// An array with a subscripted element, or with braces that make too many words, is unknown and counts as evaluated.
pub(crate) fn assignment_value(assignment: &VariableAssignment) -> ShellArg {
    let unknown = || ShellArg {
        text: assignment.source.clone(),
        live: Some(ShellExpansionKind::Parameter),
        evaluates: true,
        ..ShellArg::default()
    };
    match assignment.values.as_slice() {
        [value] if !assignment.array => assigned_word_value(value),
        // The subscript of an element is evaluated.
        elements if assignment.array && elements.iter().all(|word| !word.source.starts_with('[')) => {
            let mut values = Vec::new();
            if !elements.iter().all(|word| expand::expand(word, &mut values).is_some()) {
                return unknown();
            }
            let joined = |text: fn(&ShellArg) -> &str| values.iter().map(text).collect::<Vec<_>>().join(" ");
            ShellArg {
                text: joined(|value| &value.text),
                emptied: joined(|value| value.emptied()),
                live: values
                    .iter()
                    .filter(|value| value.pattern.is_none())
                    .filter_map(|value| value.live)
                    .max(),
                variables: values.iter().flat_map(|value| value.variables.clone()).collect(),
                evaluates: values.iter().any(|value| value.evaluates),
                evaluated: values.iter().flat_map(|value| value.evaluated.clone()).collect(),
                ..ShellArg::default()
            }
        }
        _ => unknown(),
    }
}
