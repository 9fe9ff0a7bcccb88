//! The values that a word may have where it is removed: every value that the line gives its variables anywhere.
//!
//! A variable of the environment counts as empty, as if it were unset: `rm -rf "$BUILD_DIR"` is ordinary. A value that
//! the line itself takes from an input or from the output of a command may be anything, the root directory included.

use crate::analysis::ShellExpansionKind;
use crate::known_values::default_value;
use crate::shell_arg::ShellArg;
use crate::variable_tracker::VariableTracker;
use toolgate_proto::AbsPath;

/// How many variables may get their values from one another (`d=/; e=$d; f=$e`).
const MAX_CHAIN: usize = 4;

/// How many values of one word are checked.
const MAX_REMOVAL_VALUES: usize = 256;

/// What a word may become.
#[derive(Debug, Default)]
pub(crate) struct RemovalValues {
    /// The values that can be derived.
    pub(crate) values: Vec<ShellArg>,
    /// It may also be any other path.
    pub(crate) unknown: bool,
}

impl VariableTracker {
    /// Every value that a word would have if its variables had any value that the line gives them anywhere, or the
    /// default value in the word itself. `start` is the directory in which the line starts.
    pub(crate) fn removal_values(&self, arg: &ShellArg, start: &AbsPath) -> RemovalValues {
        let mut found = RemovalValues::default();
        self.add_removal_values(arg, start, 0, &mut found);
        found
    }

    /// Adds the values of a word; `depth` counts the variables that led to it.
    fn add_removal_values(&self, arg: &ShellArg, start: &AbsPath, depth: usize, found: &mut RemovalValues) {
        if depth > MAX_CHAIN || found.values.len() >= MAX_REMOVAL_VALUES {
            found.unknown = true;
            return;
        }
        let text = arg.text.trim_matches('"');
        found.values.extend(arg.one_of.iter().cloned());
        found.values.extend(default_value(text));
        // What follows the unknown text bounds what it names: `"$d/a/b"` is never the root directory.
        let is_open = !arg.first_char_known && arg.emptied().trim_matches(['/', '*', '.']).is_empty();
        // At depth 0, the words that `find` and `xargs` add are the caller's.
        let is_substituted = depth > 0 || text.contains("$(") || text.contains('`');
        if arg.live == Some(ShellExpansionKind::Substitution) && is_substituted && is_open {
            found.unknown |= !is_new_temporary(text);
        }
        // As an argument of `sh -c`, they are not.
        found.unknown |= depth > 0 && arg.live.is_some() && text == "{}";
        for name in &arg.variables {
            if name.is_empty() {
                found.unknown |= is_open;
                continue;
            }
            let Some(expansion) = ParameterUse::find(text, name) else { continue };
            found.unknown |= is_open && self.is_from_input(name);
            if matches!(name.as_str(), "HOME" | "PWD" | "OLDPWD") && expansion.cuts() {
                found.unknown = true;
            }
            let own = (name == "OLDPWD").then(|| ShellArg::literal(start.to_string()));
            for value in self.assigned_values(name).chain(&own) {
                let Some(changed) = expansion.apply(&value.text) else {
                    // Cut in a way that is not followed, such a path may lose its last components.
                    found.unknown |= value.live.is_some() || value.text.starts_with(['/', '~', '.']);
                    continue;
                };
                let joined = |value: &str| format!("{}{value}{}", expansion.before, expansion.after);
                let others = arg.variables.iter().filter(|other| *other != name).cloned();
                let emptied = if value.live.is_some() { value.emptied().to_owned() } else { changed.clone() };
                let next = ShellArg {
                    text: joined(changed.trim_matches('"')),
                    emptied: joined(&emptied),
                    first_char_known: !expansion.before.is_empty() || value.first_char_known,
                    variables: value.variables.iter().cloned().chain(others).collect(),
                    ..value.clone()
                };
                if next.live.is_some() {
                    self.add_removal_values(&next, start, depth + 1, found);
                }
                found.values.push(next);
            }
        }
    }

    /// The values that the line gives a name, and the shells around give it if this is the code of another shell.
    fn assigned_values(&self, name: &str) -> impl Iterator<Item = &ShellArg> {
        let key = if is_positional(name) { "@" } else { name };
        let tables = std::iter::once(&self.table).chain(&self.outer_tables);
        // The positional parameters of a shell are its own.
        let tables = tables.take(if key == "@" { 1 } else { usize::MAX });
        let arguments = self.positional.iter().filter(move |_| key == "@");
        tables.flat_map(move |table| table.candidate_values(key)).chain(arguments)
    }

    /// Whether the line sets a name to what it reads from an input, or by a builtin whose value is not derived.
    fn is_from_input(&self, name: &str) -> bool {
        std::iter::once(&self.table).chain(&self.outer_tables).any(|table| table.is_from_input(name))
    }
}

/// Whether a name is a positional parameter: `1`, `@`, `*`. `$0` of `sh -c '…' x` is `x`.
fn is_positional(name: &str) -> bool {
    matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is the output of `mktemp` and nothing else: a path that did not exist before.
fn is_new_temporary(text: &str) -> bool {
    let inside = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    inside.is_some_and(|command| {
        command.split_whitespace().next() == Some("mktemp")
            && !command.contains(['$', '`', ';', '|', '&', '\n', '(', ')'])
    })
}

/// One use of a parameter in a word.
struct ParameterUse<'a> {
    /// The text before it.
    before: &'a str,
    /// What stands between the name and the closing brace: `%x` of `${d%x}`.
    operator: &'a str,
    /// The text after it.
    after: &'a str,
}

impl<'a> ParameterUse<'a> {
    /// The first use of a name in a word.
    fn find(text: &'a str, name: &str) -> Option<Self> {
        let in_name = |character: char| character == '_' || character.is_alphanumeric();
        let braced = format!("${{{name}");
        for (at, _) in text.match_indices('$') {
            let (before, rest) = text.split_at_checked(at)?;
            if let Some(rest) = rest.strip_prefix(&braced).filter(|rest| !rest.starts_with(in_name)) {
                let (operator, after) = rest.split_once('}')?;
                return Some(Self { before, operator, after });
            }
            let bare = rest.strip_prefix('$').and_then(|rest| rest.strip_prefix(name));
            if let Some(after) = bare.filter(|rest| is_positional(name) || !rest.starts_with(in_name)) {
                return Some(Self { before, operator: "", after });
            }
        }
        None
    }

    /// The operator without a subscript: `%x` of `${d[0]%x}`.
    fn change(&self) -> &str {
        let behind = self.operator.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        behind.map_or(self.operator, |(_, rest)| rest)
    }

    /// Whether it removes a part of the value.
    fn cuts(&self) -> bool {
        let change = self.change();
        let is_offset = change.strip_prefix(':').is_some_and(|rest| !rest.starts_with(['-', '=', '+', '?']));
        is_offset || change.starts_with(['%', '#', '/'])
    }

    /// What it makes of a value; `None` if that is not derived.
    ///
    /// A pattern is followed if it is literal, or literal but for a `*` at the end that is removed.
    fn apply(&self, value: &str) -> Option<String> {
        let change = self.change();
        if !self.cuts() {
            return Some(value.to_owned());
        }
        let is_literal = |pattern: &str| !pattern.contains(['*', '?', '[', '$', '`', '\\', '"', '\'', '{']);
        let (longest, suffix, pattern) = match change.strip_prefix('%') {
            Some(rest) => (rest.starts_with('%'), true, rest.trim_start_matches('%')),
            None => {
                let rest = change.strip_prefix('#')?;
                (rest.starts_with('#'), false, rest.trim_start_matches('#'))
            }
        };
        if is_literal(pattern) {
            let cut = if suffix { value.strip_suffix(pattern) } else { value.strip_prefix(pattern) };
            return Some(cut.unwrap_or(value).to_owned());
        }
        let mark = if suffix { pattern.strip_suffix('*') } else { pattern.strip_prefix('*') }?;
        if mark.is_empty() || !is_literal(mark) {
            return None;
        }
        let split = if longest == suffix { value.split_once(mark) } else { value.rsplit_once(mark) };
        Some(split.map_or(value, |(head, tail)| if suffix { head } else { tail }).to_owned())
    }
}
