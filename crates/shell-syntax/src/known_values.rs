//! Substitutes the values of variables that the line itself sets.
//!
//! A name that exactly one place of the line sets, to words that are known, has that value wherever that place has
//! certainly been passed. [`AnalysisVisitor::visit_scoped`] restores the known values after commands that may not run.
//! The check for removals asks the opposite question, in `removal_values`: could a name have this value anywhere in the
//! line?
//!
//! [`AnalysisVisitor::visit_scoped`]: crate::visitor::AnalysisVisitor::visit_scoped

use crate::analysis::ShellExpansionKind;
use crate::shell_arg::ShellArg;
use crate::variable_table::MAX_VALUES;
use crate::variable_tracker::VariableTracker;
use std::collections::HashMap;
use std::rc::Rc;

/// How many variables are tracked at once: the map is cloned wherever a scope begins, and hostile input could
/// otherwise make that quadratic.
const MAX_KNOWN_VARIABLES: usize = 64;

/// For each name, the values that it may have at one place; each of them is one word.
pub(crate) type KnownValues = HashMap<String, Rc<[ShellArg]>>;

impl VariableTracker {
    /// Notes that the line has certainly just set a name to one of these values.
    ///
    /// A value with a tilde or a variable is not certain. A glob is: its words are existing files that match it.
    pub(crate) fn note_known_values(&mut self, name: &str, values: &[ShellArg]) {
        let is_certain = |value: &ShellArg| {
            !value.tilde && (value.live.is_none() || value.pattern.is_some() && value.variables.is_empty())
        };
        if self.table.is_set_once(name)
            && !values.is_empty()
            && values.len() <= MAX_VALUES
            && self.known.len() < MAX_KNOWN_VARIABLES
            && values.iter().all(is_certain)
        {
            self.known.insert(name.to_owned(), values.into());
        }
    }

    /// Substitutes the known value of the variable that an argument begins with: after `dir=src`, `"$dir/a"` is
    /// `src/a`.
    /// Several values, of a loop, become [`ShellArg::one_of`].
    pub(crate) fn substitute(&self, arg: &mut ShellArg) {
        if self.is_private_temp(arg) {
            arg.never_option = true;
            return;
        }
        let Some((name, rest)) = split_leading_variable(arg) else { return };
        let Some(values) = self.known.get(name) else { return };
        let quoted = arg.text.starts_with('"');
        let is_one_word = |value: &ShellArg| {
            let text = value.emptied();
            let splits = text.is_empty() || text.contains([' ', '\t', '\n', '*', '?', '[', '\\']);
            quoted || value.pattern.is_none() && !splits
        };
        if !values.iter().all(is_one_word) {
            return;
        }
        let joined = |value: &ShellArg| ShellArg {
            text: format!("{}{rest}", value.text),
            emptied: format!("{}{rest}", value.emptied),
            // The text after a variable is literal, also after the file name that a glob became.
            pattern: value.pattern.as_ref().map(|pattern| format!("{pattern}{}", escape_glob(rest))),
            splits: false,
            ..value.clone()
        };
        match &**values {
            [value] if value.live.is_none() => *arg = joined(value),
            values => arg.one_of = values.iter().map(joined).collect(),
        }
    }

    /// Whether a word names a file in the private temporary directory of the command.
    /// The runtime sets `TMPDIR` to a directory that it has just created and that only the session can open.
    pub(crate) fn is_private_temp(&self, arg: &ShellArg) -> bool {
        let Some(("TMPDIR", rest)) = split_leading_variable(arg) else { return false };
        let inside = rest.strip_prefix('/').is_some_and(|name| {
            !name.is_empty() && name.split('/').all(|component| !matches!(component, "" | "." | ".."))
        });
        inside && self.table.is_untouched("TMPDIR")
    }
}

/// The value of a word such as `${T:-/}`, `${T-/}`, `${T:=/}` or `${T:+/}` when its operand is used.
pub(crate) fn default_value(text: &str) -> Option<ShellArg> {
    let (before, rest) = text.split_once("${")?;
    let (inside, after) = rest.split_once('}')?;
    let in_name = |character: char| character == '_' || character.is_alphanumeric();
    let operator = inside.trim_start_matches(in_name);
    let default = operator.trim_start_matches(':').strip_prefix(['-', '=', '+'])?;
    let text = format!("{before}{}{after}", default.trim_matches(['"', '\'']));
    let Some(rest) = text.strip_prefix('$') else {
        return Some(ShellArg { tilde: text.starts_with('~'), ..ShellArg::literal(text) });
    };
    let rest = rest.trim_start_matches('{');
    let after = rest.trim_start_matches(in_name);
    let variable = rest.strip_suffix(after).unwrap_or(rest).to_owned();
    let emptied = after.trim_start_matches('}').to_owned();
    Some(ShellArg {
        live: Some(ShellExpansionKind::Parameter),
        variables: vec![variable],
        emptied,
        text,
        ..ShellArg::default()
    })
}

/// Escapes the characters that a shell pattern treats specially.
fn escape_glob(text: &str) -> String {
    text.chars()
        .flat_map(|character| "*?[]\\".contains(character).then_some('\\').into_iter().chain([character]))
        .collect()
}

/// The variable that a word begins with, and the literal text after it. `None` for a word of any other form.
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
