//! What the variables of a line hold, where the text of the line tells.
//!
//! A first pass over the tree notes every place that sets a variable. A name that exactly one place sets, to words
//! that are known, has that value wherever that place has surely been passed; [`AnalysisVisitor`] keeps such values by scope.
//! The guard against removals asks the other way round: could a name hold this value anywhere in the line?

use super::analysis::ShellExpansionKind;
use super::expand::{self, ShellArg};
use super::syntax::{
    BashCommand, BashCompoundCommand, BashProgram, BashRedirect, BashSimpleCommand, CommandList,
    HereDocumentBody, ParameterExpansionForm, ShellWord, VariableAssignment, WordPiece,
};
use super::visitor::AnalysisVisitor;
use std::collections::HashMap;
use std::rc::Rc;

/// A variable with more values than this counts as unknown.
const MAX_VALUES: usize = 64;

/// More variables than this are not followed: what is known is copied wherever a scope begins.
const MAX_KNOWN_VARIABLES: usize = 64;

/// Builtins that set variables in ways that are not followed.
const VARIABLE_SETTERS: &[&str] = &[
    "mapfile",
    "readarray",
    "printf",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "let",
    "getopts",
    "unset",
    "eval",
    "source",
    ".",
    "trap",
    "wait",
    "set",
    "shift",
    "exec",
    "coproc",
    "select",
];

/// Every place of a line that sets a variable.
#[derive(Debug, Default)]
pub(super) struct VariableTable {
    names: HashMap<String, VariableEntry>,
    /// Something sets variables that the text does not name for certain.
    dynamic: bool,
}

#[derive(Debug, Default)]
struct VariableEntry {
    places: usize,
    values: Vec<ShellArg>,
    /// A value comes from a command, an input or another variable.
    live: bool,
}

impl VariableTable {
    /// Looks through a whole program.
    pub(super) fn of(program: &BashProgram) -> Self {
        let mut table = Self::default();
        table.scan_list(&program.list);
        for HereDocumentBody { pieces } in &program.bodies {
            table.scan_pieces(pieces);
        }
        table
    }

    /// Whether exactly one place sets a name.
    pub(super) fn is_set_once(&self, name: &str) -> bool {
        !self.dynamic && self.names.get(name).is_some_and(|setting| setting.places == 1)
    }

    /// Whether nothing in the line sets a name.
    pub(super) fn is_untouched(&self, name: &str) -> bool {
        !self.dynamic && !self.names.contains_key(name)
    }

    /// Whether a name may hold what a command printed or an input held.
    pub(super) fn may_be_live(&self, name: &str) -> bool {
        self.dynamic || self.names.get(name).is_some_and(|setting| setting.live)
    }

    /// Every value that some place of the line gives the name.
    pub(super) fn candidate_values(&self, name: &str) -> &[ShellArg] {
        self.names.get(name).map(|setting| setting.values.as_slice()).unwrap_or_default()
    }

    fn set(&mut self, name: &str, values: impl IntoIterator<Item = ShellArg>) {
        let setting = self.names.entry(name.to_owned()).or_default();
        setting.places += 1;
        for value in values {
            setting.live |= value.live.is_some() && value.pattern.is_none();
            if setting.values.len() < MAX_VALUES {
                setting.values.push(value);
            }
        }
    }

    fn scan_list(&mut self, list: &CommandList) {
        for item in &list.0 {
            let pipelines =
                std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline));
            for command in pipelines.flat_map(|pipeline| &pipeline.commands) {
                self.scan_command(command);
            }
        }
    }

    fn scan_command(&mut self, command: &BashCommand) {
        match command {
            BashCommand::Simple(simple) => self.scan_simple_command(simple),
            BashCommand::Compound(compound, redirects) => {
                self.scan_redirects(redirects);
                self.scan_compound_command(compound);
            }
            BashCommand::Function { body, .. } => {
                self.dynamic = true;
                self.scan_command(body);
            }
        }
    }

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
        match words.next() {
            Some(name) if VARIABLE_SETTERS.contains(&name.as_str()) => {
                self.dynamic |= match name.as_str() {
                    "printf" => words.any(|word| word.starts_with("-v")),
                    "declare" | "typeset" => words.next().as_deref() != Some("-p"),
                    _ => true,
                };
            }
            Some(name) if name == "read" => {
                for name in words.filter(|word| !word.starts_with('-')) {
                    self.set(
                        &name,
                        [ShellArg { live: Some(ShellExpansionKind::Parameter), ..ShellArg::default() }],
                    );
                }
                self.set(
                    "REPLY",
                    [ShellArg { live: Some(ShellExpansionKind::Parameter), ..ShellArg::default() }],
                );
            }
            // A program whose name is not known may be one of these, and so may what follows `command -p`.
            Some(name) => {
                self.dynamic |= name.contains(['$', '`', '"', '\'', '\\', '{']) || name.starts_with('-')
            }
            None => {}
        }
    }

    fn scan_assignment(&mut self, assignment: &VariableAssignment) {
        for value in &assignment.values {
            self.scan_pieces(&value.pieces);
        }
        self.scan_pieces(assignment.subscript.as_deref().unwrap_or_default());
        let appends = assignment.source.split_once('=').is_some_and(|(name, _)| name.ends_with('+'));
        let whole = assignment.subscript.is_none() && !assignment.array && !appends;
        let mut values: Vec<ShellArg> = assignment.values.iter().map(assigned_word_value).collect();
        if !whole {
            values.push(ShellArg { live: Some(ShellExpansionKind::Parameter), ..ShellArg::default() });
        }
        self.set(&assignment.name, values);
    }

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
                        values.push(ShellArg {
                            live: Some(ShellExpansionKind::Parameter),
                            ..ShellArg::default()
                        });
                    }
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
            // What arithmetic sets is a number.
            BashCompoundCommand::Arithmetic(pieces) => self.scan_arithmetic(pieces),
            BashCompoundCommand::ArithmeticFor(pieces, body) => {
                self.scan_arithmetic(pieces);
                self.scan_list(body);
            }
        }
    }

    fn scan_arithmetic(&mut self, pieces: &[WordPiece]) {
        self.scan_pieces(pieces);
        let sets = |text: &str| text.contains('=') || text.contains("++") || text.contains("--");
        self.dynamic |= pieces.iter().any(|piece| match piece {
            WordPiece::Literal { text, .. } => sets(text),
            WordPiece::Parameter { .. } | WordPiece::Command { .. } | WordPiece::Process { .. } => true,
            WordPiece::Arithmetic { .. } => false,
        });
    }

    fn scan_redirects(&mut self, redirects: &[BashRedirect]) {
        for redirect in redirects {
            self.dynamic |= redirect.sets_variable;
            self.scan_pieces(&redirect.target.pieces);
        }
    }

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

/// The value that an assignment gives; nothing is matched in it.
fn assigned_word_value(word: &ShellWord) -> ShellArg {
    let value = expand::expand_single(&word.pieces, &word.source);
    if value.pattern.is_some() { ShellArg::literal(value.emptied()) } else { value }
}

/// The value of an assignment; for an array all elements as one.
pub(super) fn assignment_value(assignment: &VariableAssignment) -> ShellArg {
    let unknown = || ShellArg {
        text: assignment.source.clone(),
        live: Some(ShellExpansionKind::Parameter),
        evaluates: true,
        ..ShellArg::default()
    };
    match assignment.values.as_slice() {
        [value] if !assignment.array => {
            let value = expand::expand_single(&value.pieces, &value.source);
            // Nothing is matched in an assignment.
            if value.pattern.is_some() { ShellArg::literal(value.emptied()) } else { value }
        }
        // An element with a subscript is evaluated.
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

/// Values by name that are certain at one place.
pub(super) type KnownValues = HashMap<String, Rc<[ShellArg]>>;

impl AnalysisVisitor<'_> {
    /// Notes that the line has surely just set a name to one of these values.
    pub(super) fn note_known_values(&mut self, name: &str, values: &[ShellArg]) {
        let certain = |value: &ShellArg| {
            !value.tilde && (value.live.is_none() || value.pattern.is_some() && value.variables.is_empty())
        };
        if self.variables.is_set_once(name)
            && !values.is_empty()
            && values.len() <= MAX_VALUES
            && self.known.len() < MAX_KNOWN_VARIABLES
            && values.iter().all(certain)
        {
            self.known.insert(name.to_owned(), values.into());
        }
    }

    /// Puts what is known of variables into an argument: the value itself if there is only one.
    pub(super) fn substitute(&self, arg: &mut ShellArg) {
        if self.is_private_temp(arg) {
            arg.never_option = true;
            return;
        }
        let Some((name, rest)) = split_leading_variable(arg) else { return };
        let Some(values) = self.known.get(name) else { return };
        let quoted = arg.text.starts_with('"');
        let whole = |value: &ShellArg| {
            let text = value.emptied();
            let blank = text.is_empty() || text.contains([' ', '\t', '\n', '*', '?', '[', '\\']);
            quoted || value.pattern.is_none() && !blank
        };
        if !values.iter().all(whole) {
            return;
        }
        let joined = |value: &ShellArg| ShellArg {
            text: format!("{}{rest}", value.text),
            emptied: format!("{}{rest}", value.emptied),
            // What a pattern matched is followed by text that is not part of the pattern.
            pattern: value.pattern.as_ref().map(|pattern| format!("{pattern}{}", escape_glob(rest))),
            splits: false,
            ..value.clone()
        };
        match &**values {
            [value] if value.live.is_none() => *arg = joined(value),
            values => arg.one_of = values.iter().map(joined).collect(),
        }
    }

    /// Whether a word names a file in the temporary directory that every command line has for itself.
    /// The runtime sets `TMPDIR` to a directory that it has just made and that only the session can look into.
    pub(super) fn is_private_temp(&self, arg: &ShellArg) -> bool {
        let Some(("TMPDIR", rest)) = split_leading_variable(arg) else { return false };
        let inside = rest.strip_prefix('/').is_some_and(|name| {
            !name.is_empty() && name.split('/').all(|component| !matches!(component, "" | "." | ".."))
        });
        inside && self.variables.is_untouched("TMPDIR")
    }

    /// Everything that a word could come to if its variable held any value that the line gives it anywhere,
    /// or the default that the word itself has for it.
    pub(super) fn candidate_values(&self, arg: &ShellArg) -> Vec<ShellArg> {
        let text = arg.text.trim_matches('"');
        let mut found: Vec<ShellArg> = arg.one_of.clone();
        for name in &arg.variables {
            for spelled in [format!("${name}"), format!("${{{name}}}")] {
                let Some((before, after)) = text.split_once(&spelled) else { continue };
                let values = self.variables.candidate_values(name).iter();
                found.extend(values.map(|value| ShellArg {
                    text: format!("{before}{}{after}", value.text),
                    emptied: format!("{before}{}{after}", value.emptied()),
                    ..value.clone()
                }));
            }
        }
        // `${T:-/}`, `${T-/}`, `${T:=/}`, `${T:+/}`.
        if let Some((before, rest)) = text.split_once("${")
            && let Some((inside, after)) = rest.split_once('}')
        {
            let name = |character: char| character == '_' || character.is_alphanumeric();
            let operator = inside.trim_start_matches(name);
            if let Some(default) = operator.trim_start_matches(':').strip_prefix(['-', '=', '+']) {
                let text = format!("{before}{}{after}", default.trim_matches(['"', '\'']));
                found.push(match text.strip_prefix('$') {
                    Some(rest) => {
                        let rest = rest.trim_start_matches('{');
                        let after = rest.trim_start_matches(name);
                        let variable = rest.strip_suffix(after).unwrap_or(rest).to_owned();
                        let emptied = after.trim_start_matches('}').to_owned();
                        ShellArg {
                            live: Some(ShellExpansionKind::Parameter),
                            variables: vec![variable],
                            emptied,
                            text,
                            ..ShellArg::default()
                        }
                    }
                    None => ShellArg { tilde: text.starts_with('~'), ..ShellArg::literal(text) },
                });
            }
        }
        found
    }
}

fn escape_glob(text: &str) -> String {
    text.chars()
        .flat_map(|character| "*?[]\\".contains(character).then_some('\\').into_iter().chain([character]))
        .collect()
}

/// The variable that a word begins with, and the literal text after it.
fn split_leading_variable(arg: &ShellArg) -> Option<(&str, &str)> {
    let [name] = arg.variables.as_slice() else { return None };
    if arg.live != Some(ShellExpansionKind::Parameter)
        || arg.evaluates
        || !arg.evaluated.is_empty()
        || arg.tilde
    {
        return None;
    }
    let text = arg.text.as_str();
    let text = match text.strip_prefix('"') {
        Some(inner) => inner.strip_suffix('"')?,
        None => text,
    };
    let rest = text.strip_prefix('$')?;
    let rest = match rest.strip_prefix('{') {
        Some(braced) => braced.strip_prefix(name.as_str())?.strip_prefix('}')?,
        None => rest.strip_prefix(name.as_str())?,
    };
    (rest == arg.emptied && !rest.contains(['"', '\'', '\\', '*', '?', '[', '{'])).then_some((name, rest))
}
