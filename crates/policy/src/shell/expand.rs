//! From words as written to arguments as the program would get them, as far as that is certain.

use super::analysis::{Live, Word as Shown};
use super::syntax::{Form, Piece, Word};

/// One argument after brace expansion and removal of quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Arg {
    /// The value if it is known, the source text if not.
    pub(super) text: String,
    /// What makes the value unknown.
    pub(super) live: Option<Live>,
    /// Begins with a tilde that stands for a home directory.
    pub(super) tilde: bool,
    /// Live and unquoted: it may become several words, or none.
    pub(super) splits: bool,
    /// Its first character is known, so that a live word cannot turn out to be an option.
    pub(super) starts: bool,
    /// The variables in it; an empty name stands for an expansion that looks at more than one.
    pub(super) variables: Vec<String>,
    /// An expansion in it sets a variable or expands a value once more (`${x:=y}`, `${x@P}`, `${!x}`).
    pub(super) evaluates: bool,
    /// Names whose values are evaluated as arithmetic, which can run commands; empty for what is not a name.
    pub(super) evaluated: Vec<String>,
    /// The value with every live piece empty, if it is live.
    pub(super) emptied: String,
    /// The shell pattern, quoted characters escaped, if only a glob makes it live.
    pub(super) pattern: Option<String>,
    /// Live, but every word that it becomes begins with a character that no option begins with.
    pub(super) never_option: bool,
    /// All values that it can have, each one word, if the line itself tells.
    pub(super) one_of: Vec<Arg>,
}

impl Arg {
    /// A literal argument.
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), starts: true, ..Self::default() }
    }

    /// The value, if it is known for certain.
    pub(super) fn known(&self) -> Option<&str> {
        (self.live.is_none() && !self.tilde).then_some(self.text.as_str())
    }

    /// The value with every live piece empty: what `rm -rf "$unset/"` comes to.
    pub(super) fn emptied(&self) -> &str {
        if self.live.is_some() { &self.emptied } else { &self.text }
    }

    /// Whether the program might take it for an option, whatever it turns out to be.
    pub(super) fn may_be_option(&self) -> bool {
        match self.live {
            None => self.text.starts_with('-') && self.text.len() > 1,
            Some(_) if self.never_option => false,
            Some(Live::Harmless) => false,
            Some(Live::Glob | Live::Tilde | Live::Arithmetic | Live::Parameter | Live::Substitution) => {
                !self.starts || self.splits || self.emptied.starts_with('-')
            }
        }
    }

    /// As rules spell it: without needless quotes, with quotes where the word would not hold together without.
    pub(super) fn canonical(&self) -> String {
        let plain = |character: char| {
            character.is_alphanumeric() || "_@%+=:,./-^~#!{}[]*?".contains(character) || !character.is_ascii()
        };
        if self.live.is_some() || self.tilde {
            return self.text.clone();
        }
        if !self.text.is_empty() && self.text.chars().all(plain) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', "'\\''"))
    }

    pub(super) fn shown(&self) -> Shown {
        Shown { text: self.text.clone(), live: self.live }
    }
}

/// A character with its quoting, or an expansion.
#[derive(Debug, Clone, Copy)]
enum Atom<'a> {
    Char(char, bool),
    Live(&'a Piece),
}

/// How many characters brace expansion may look at and make.
const MAX_BRACE_CHARS: usize = 20_000;
const MAX_BRACE_DEPTH: usize = 12;
const MAX_SEQUENCE_LENGTH: u64 = 256;

/// Expands the braces of a word and removes its quotes. `None`: too much to expand.
pub(super) fn expand(word: &Word, out: &mut Vec<Arg>) -> Option<()> {
    let has_braces = word
        .pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Literal { text, quoted: false } if text.contains('{')));
    if !has_braces {
        out.push(single(&word.pieces, &word.source));
        return Some(());
    }
    let atoms: Vec<Atom<'_>> = atoms(&word.pieces).collect();
    let mut budget = MAX_BRACE_CHARS;
    let words = braces(&atoms, &mut budget, 0)?;
    let expanded = words.len() > 1;
    for atoms in words {
        // An alternative that is empty and unquoted is no word at all.
        if expanded && atoms.is_empty() {
            continue;
        }
        out.push(from_atoms(&atoms, if expanded { None } else { Some(&word.source) }));
    }
    Some(())
}

/// The value of a word that is not subject to brace expansion (an assignment, a redirect target, a here-string).
pub(super) fn single(pieces: &[Piece], source: &str) -> Arg {
    if let [Piece::Literal { text, quoted: false }] = pieces
        && !text.contains(['*', '?', '[', '~'])
    {
        return Arg::literal(text.clone());
    }
    let atoms: Vec<Atom<'_>> = atoms(pieces).collect();
    from_atoms(&atoms, Some(source))
}

fn atoms(pieces: &[Piece]) -> impl Iterator<Item = Atom<'_>> {
    pieces.iter().flat_map(|piece| {
        let (text, quoted, live) = match piece {
            Piece::Literal { text, quoted } => (text.as_str(), *quoted, None),
            Piece::Parameter { .. }
            | Piece::Command { .. }
            | Piece::Process { .. }
            | Piece::Arithmetic { .. } => ("", false, Some(Atom::Live(piece))),
        };
        text.chars().map(move |character| Atom::Char(character, quoted)).chain(live)
    })
}

fn from_atoms(atoms: &[Atom<'_>], source: Option<&str>) -> Arg {
    let mut arg = Arg::default();
    let mut spelled = String::new();
    let mut pattern = String::new();
    let globs = has_glob(atoms);
    for (position, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Char(character, quoted) => {
                arg.starts |= position == 0 && !(globs && !quoted && "*?[".contains(*character));
                if *quoted && "*?[]\\{}~!^-".contains(*character) {
                    pattern.push('\\');
                }
                arg.emptied.push(*character);
                spelled.push(*character);
                pattern.push(*character);
            }
            Atom::Live(piece) => {
                spelled.push('$');
                add_live_piece(piece, &mut arg);
            }
        }
    }
    if let Some(Atom::Char('~', false)) = atoms.first() {
        match atoms.get(1) {
            None | Some(Atom::Char('/', _)) => arg.tilde = true,
            Some(Atom::Char(..) | Atom::Live(_)) => raise(&mut arg, Live::Tilde),
        }
    }
    if globs {
        arg.pattern = arg.live.is_none().then_some(pattern);
        raise(&mut arg, Live::Glob);
        arg.splits = true;
    }
    arg.text = match (arg.live, source) {
        (Some(_), Some(source)) => source.to_owned(),
        (Some(_), None) => spelled,
        (None, _) => std::mem::take(&mut arg.emptied),
    };
    arg
}

fn raise(arg: &mut Arg, live: Live) {
    arg.live = arg.live.max(Some(live));
}

fn add_live_piece(piece: &Piece, arg: &mut Arg) {
    match piece {
        Piece::Literal { .. } => {}
        Piece::Parameter { name, form, arithmetic, operands, quoted } => {
            let number = matches!(name.as_str(), "?" | "#" | "$" | "!") && *form == Form::Value;
            if number || *form == Form::Length {
                raise(arg, Live::Harmless);
            } else {
                raise(arg, Live::Parameter);
                // `"$@"` is several words even between quotes.
                let all = |pieces: &Vec<Piece>| matches!(pieces.as_slice(), [Piece::Literal { text, .. }] if text == "@");
                arg.splits |= !quoted || name == "@" || arithmetic.iter().chain(operands).any(all);
            }
            arg.evaluates |= evaluation(std::slice::from_ref(piece), &mut arg.evaluated);
            let evaluated = matches!(form, Form::Evaluated | Form::Assigned);
            arg.variables.push(if evaluated { String::new() } else { name.clone() });
            for operand in operands {
                collect_variables(operand, &mut arg.variables);
            }
        }
        Piece::Command { quoted, .. } => {
            raise(arg, Live::Substitution);
            arg.splits |= !quoted;
        }
        // The name of a pipe: one word that begins with a slash, and what is read there is the output of its commands.
        Piece::Process { .. } => {
            raise(arg, Live::Harmless);
            arg.starts |= arg.emptied.is_empty();
        }
        Piece::Arithmetic { .. } => {
            let before = arg.evaluated.len();
            arg.evaluates |= evaluation(std::slice::from_ref(piece), &mut arg.evaluated);
            let names = arg.evaluated.len() > before;
            raise(arg, if names { Live::Arithmetic } else { Live::Harmless });
            // A name may hold anything.
            arg.splits |= names;
            // A number is not the name of a pipe, which has no variables.
            arg.variables.push("#".to_owned());
            arg.variables.extend(arg.evaluated.iter().skip(before).cloned());
        }
    }
}

/// The variables in the operand of an expansion, which may be what it comes to.
fn collect_variables(pieces: &[Piece], variables: &mut Vec<String>) {
    for piece in pieces {
        match piece {
            Piece::Literal { .. } | Piece::Command { .. } | Piece::Process { .. } => {}
            Piece::Parameter { name, form, operands, .. } => {
                let evaluated = matches!(form, Form::Evaluated | Form::Assigned);
                variables.push(if evaluated { String::new() } else { name.clone() });
                for operand in operands {
                    collect_variables(operand, variables);
                }
            }
            Piece::Arithmetic { pieces } => {
                let before = variables.len();
                collect_evaluated_names(pieces, variables);
                if variables.len() > before {
                    variables.push(String::new());
                }
            }
        }
    }
}

/// Whether expanding pieces expands a value once more or sets a variable, at any depth; adds the names whose
/// values are evaluated as arithmetic. Commands inside are not looked at: they have words of their own.
pub(super) fn evaluation(pieces: &[Piece], names: &mut Vec<String>) -> bool {
    let mut evaluates = false;
    for piece in pieces {
        match piece {
            Piece::Literal { .. } | Piece::Command { .. } | Piece::Process { .. } => {}
            Piece::Parameter { form, arithmetic, operands, .. } => {
                evaluates |= matches!(form, Form::Evaluated | Form::Assigned);
                for expression in arithmetic {
                    if !is_index(expression) {
                        collect_evaluated_names(expression, names);
                    }
                    evaluates |= evaluation(expression, names);
                }
                for operand in operands {
                    evaluates |= evaluation(operand, names);
                }
            }
            Piece::Arithmetic { pieces } => {
                collect_evaluated_names(pieces, names);
                evaluates |= evaluation(pieces, names);
            }
        }
    }
    evaluates
}

/// The names whose values arithmetic evaluates in turn; an empty name stands for what cannot be told.
pub(super) fn collect_evaluated_names(pieces: &[Piece], names: &mut Vec<String>) {
    let in_name = |character: char| character == '_' || character.is_alphanumeric();
    let begins_name = |first: char| first == '_' || first.is_alphabetic();
    // A name that goes on with an expansion is another name than the one that is written.
    let mut unfinished = false;
    for piece in pieces {
        match piece {
            Piece::Literal { text, .. } => {
                let words = text.split(|character: char| !in_name(character));
                names.extend(words.filter(|word| word.starts_with(begins_name)).map(str::to_owned));
                // An element of an array, or code that has come through a quote.
                if text.contains(['[', '$', '`', '\\']) {
                    names.push(String::new());
                }
                unfinished = text
                    .rsplit(|character: char| !in_name(character))
                    .next()
                    .is_some_and(|word| word.starts_with(begins_name));
                continue;
            }
            Piece::Parameter { name, form: Form::Value | Form::Changed, operands, .. } => {
                if !matches!(name.as_str(), "?" | "#" | "$" | "!") {
                    names.push(name.clone());
                }
                for operand in operands {
                    collect_evaluated_names(operand, names);
                }
            }
            Piece::Parameter { form: Form::Length, .. } => {}
            Piece::Parameter { form: Form::Assigned | Form::Evaluated, .. }
            | Piece::Command { .. }
            | Piece::Process { .. } => names.push(String::new()),
            Piece::Arithmetic { pieces } => collect_evaluated_names(pieces, names),
        }
        if unfinished {
            names.push(String::new());
            unfinished = false;
        }
    }
}

/// A subscript that is a number, or all elements.
fn is_index(pieces: &[Piece]) -> bool {
    matches!(pieces, [Piece::Literal { text, .. }] if text == "@" || text == "*" || text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_glob(atoms: &[Atom<'_>]) -> bool {
    let bracket = atoms.iter().position(|atom| matches!(atom, Atom::Char('[', false)));
    let closed = bracket
        .is_some_and(|open| atoms.iter().skip(open + 2).any(|atom| matches!(atom, Atom::Char(']', false))));
    closed || atoms.iter().any(|atom| matches!(atom, Atom::Char('*' | '?', false)))
}

/// All words that a word with braces stands for.
fn braces<'a>(atoms: &[Atom<'a>], budget: &mut usize, depth: usize) -> Option<Vec<Vec<Atom<'a>>>> {
    if depth > MAX_BRACE_DEPTH {
        return None;
    }
    let mut prefix: Vec<Atom<'a>> = Vec::new();
    let mut rest = atoms;
    while let Some((atom, after)) = rest.split_first() {
        if let Atom::Char('{', false) = atom
            && let Some((alternatives, after)) = alternatives(after, budget, depth)?
        {
            let tails = braces(after, budget, depth + 1)?;
            let mut words = Vec::new();
            for alternative in &alternatives {
                for tail in &tails {
                    let word: Vec<Atom<'a>> = prefix.iter().chain(alternative).chain(tail).copied().collect();
                    *budget = budget.checked_sub(word.len() + 1)?;
                    words.push(word);
                }
            }
            return Some(words);
        }
        prefix.push(*atom);
        rest = after;
    }
    Some(vec![prefix])
}

type BraceAlternatives<'s, 'a> = Option<(Vec<Vec<Atom<'a>>>, &'s [Atom<'a>])>;

/// The alternatives of the brace whose inside comes next, and what follows it; `Some(None)` if it is plain text.
fn alternatives<'s, 'a>(
    inside: &'s [Atom<'a>],
    budget: &mut usize,
    depth: usize,
) -> Option<BraceAlternatives<'s, 'a>> {
    let mut open = 0_usize;
    let mut members: Vec<&'s [Atom<'a>]> = Vec::new();
    let mut start = 0;
    for (at, atom) in inside.iter().enumerate() {
        *budget = budget.checked_sub(1)?;
        match atom {
            Atom::Char('{', false) => open += 1,
            Atom::Char(',', false) if open == 0 => {
                members.push(inside.get(start..at)?);
                start = at + 1;
            }
            Atom::Char('}', false) if open == 0 => {
                let last = inside.get(start..at)?;
                let after = inside.get(at + 1..)?;
                if members.is_empty() {
                    return Some(sequence(last)?.map(|words| (words, after)));
                }
                members.push(last);
                let mut words = Vec::new();
                for member in members {
                    words.extend(braces(member, budget, depth + 1)?);
                }
                return Some(Some((words, after)));
            }
            Atom::Char('}', false) => open -= 1,
            Atom::Char(..) | Atom::Live(_) => {}
        }
    }
    Some(None)
}

/// `1..5`, `a..e`, `1..9..2`; `Some(None)` if it is plain text, `None` if it is too much.
fn sequence<'a>(inside: &[Atom<'a>]) -> Option<Option<Vec<Vec<Atom<'a>>>>> {
    let text: Option<String> = inside
        .iter()
        .map(|atom| match atom {
            Atom::Char(character, false) => Some(*character),
            Atom::Char(_, true) | Atom::Live(_) => None,
        })
        .collect();
    let Some(text) = text else { return Some(None) };
    let bounds: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match bounds.as_slice() {
        [first, last] => (*first, *last, 1),
        [first, last, step] => match step.parse::<i64>() {
            Ok(step) => (*first, *last, step.checked_abs()?.max(1)),
            Err(_) => return Some(None),
        },
        _ => return Some(None),
    };
    let word = |text: String| -> Vec<Atom<'a>> {
        text.chars().map(|character| Atom::Char(character, true)).collect()
    };
    if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let padded = |text: &str| text.trim_start_matches(['-', '+']).starts_with('0') && text.len() > 1;
        let count = from.abs_diff(to) / step.unsigned_abs();
        if count >= MAX_SEQUENCE_LENGTH || padded(first) || padded(last) {
            return None;
        }
        let sign = if to < from { -step } else { step };
        let numbers = (0..=i64::try_from(count).ok()?).map(|at| from.checked_add(sign.checked_mul(at)?));
        return numbers.map(|number| Some(word(number?.to_string()))).collect::<Option<Vec<_>>>().map(Some);
    }
    let letter = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|character| character.is_ascii_alphabetic() && characters.next().is_none())
    };
    let (Some(from), Some(to)) = (letter(first), letter(last)) else { return Some(None) };
    // Between `Z` and `a` lie characters that quote; bash's own treatment of them has varied.
    if from.is_ascii_uppercase() != to.is_ascii_uppercase() {
        return None;
    }
    let step = usize::try_from(step).ok()?;
    let letters: Vec<char> = if from <= to { (from..=to).collect() } else { (to..=from).rev().collect() };
    Some(Some(letters.into_iter().step_by(step).map(|character| word(character.into())).collect()))
}
