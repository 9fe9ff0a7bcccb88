//! From words as written to arguments as the program would get them, as far as that is certain.

use super::analysis::{CommandWord as Shown, ShellExpansionKind};
use super::syntax::{ParameterExpansionForm, ShellWord, WordPiece};

/// One argument after brace expansion and removal of quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ShellArg {
    /// The value if it is known, the source text if not.
    pub(super) text: String,
    /// What makes the value unknown.
    pub(super) live: Option<ShellExpansionKind>,
    /// Begins with a tilde that stands for a home directory.
    pub(super) tilde: bool,
    /// Live and unquoted: it may become several words, or none.
    pub(super) splits: bool,
    /// Its first character is known, so that a live word cannot turn out to be an option.
    pub(super) first_char_known: bool,
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
    pub(super) one_of: Vec<ShellArg>,
}

impl ShellArg {
    /// A literal argument.
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), first_char_known: true, ..Self::default() }
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
            Some(ShellExpansionKind::Harmless) => false,
            Some(
                ShellExpansionKind::Glob
                | ShellExpansionKind::Tilde
                | ShellExpansionKind::Arithmetic
                | ShellExpansionKind::Parameter
                | ShellExpansionKind::Substitution,
            ) => !self.first_char_known || self.splits || self.emptied.starts_with('-'),
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

    pub(super) fn to_command_word(&self) -> Shown {
        Shown { text: self.text.clone(), live: self.live }
    }
}

/// A character with its quoting, or an expansion.
#[derive(Debug, Clone, Copy)]
enum WordAtom<'a> {
    Char(char, bool),
    Live(&'a WordPiece),
}

/// How many characters brace expansion may look at and make.
const MAX_BRACE_CHARS: usize = 20_000;
const MAX_BRACE_DEPTH: usize = 12;
const MAX_SEQUENCE_LENGTH: u64 = 256;

/// Expands the braces of a word and removes its quotes. `None`: too much to expand.
pub(super) fn expand(word: &ShellWord, out: &mut Vec<ShellArg>) -> Option<()> {
    let has_braces = word
        .pieces
        .iter()
        .any(|piece| matches!(piece, WordPiece::Literal { text, quoted: false } if text.contains('{')));
    if !has_braces {
        out.push(expand_single(&word.pieces, &word.source));
        return Some(());
    }
    let atoms: Vec<WordAtom<'_>> = word_atoms(&word.pieces).collect();
    let mut budget = MAX_BRACE_CHARS;
    let words = expand_braces(&atoms, &mut budget, 0)?;
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
pub(super) fn expand_single(pieces: &[WordPiece], source: &str) -> ShellArg {
    if let [WordPiece::Literal { text, quoted: false }] = pieces
        && !text.contains(['*', '?', '[', '~'])
    {
        return ShellArg::literal(text.clone());
    }
    let atoms: Vec<WordAtom<'_>> = word_atoms(pieces).collect();
    from_atoms(&atoms, Some(source))
}

fn word_atoms(pieces: &[WordPiece]) -> impl Iterator<Item = WordAtom<'_>> {
    pieces.iter().flat_map(|piece| {
        let (text, quoted, live) = match piece {
            WordPiece::Literal { text, quoted } => (text.as_str(), *quoted, None),
            WordPiece::Parameter { .. }
            | WordPiece::Command { .. }
            | WordPiece::Process { .. }
            | WordPiece::Arithmetic { .. } => ("", false, Some(WordAtom::Live(piece))),
        };
        text.chars().map(move |character| WordAtom::Char(character, quoted)).chain(live)
    })
}

fn from_atoms(atoms: &[WordAtom<'_>], source: Option<&str>) -> ShellArg {
    let mut arg = ShellArg::default();
    let mut spelled = String::new();
    let mut pattern = String::new();
    let globs = has_glob(atoms);
    for (position, atom) in atoms.iter().enumerate() {
        match atom {
            WordAtom::Char(character, quoted) => {
                arg.first_char_known |= position == 0 && !(globs && !quoted && "*?[".contains(*character));
                if *quoted && "*?[]\\{}~!^-".contains(*character) {
                    pattern.push('\\');
                }
                arg.emptied.push(*character);
                spelled.push(*character);
                pattern.push(*character);
            }
            WordAtom::Live(piece) => {
                spelled.push('$');
                add_live_piece(piece, &mut arg);
            }
        }
    }
    if let Some(WordAtom::Char('~', false)) = atoms.first() {
        match atoms.get(1) {
            None | Some(WordAtom::Char('/', _)) => arg.tilde = true,
            Some(WordAtom::Char(..) | WordAtom::Live(_)) => {
                raise_expansion_kind(&mut arg, ShellExpansionKind::Tilde)
            }
        }
    }
    if globs {
        arg.pattern = arg.live.is_none().then_some(pattern);
        raise_expansion_kind(&mut arg, ShellExpansionKind::Glob);
        arg.splits = true;
    }
    arg.text = match (arg.live, source) {
        (Some(_), Some(source)) => source.to_owned(),
        (Some(_), None) => spelled,
        (None, _) => std::mem::take(&mut arg.emptied),
    };
    arg
}

fn raise_expansion_kind(arg: &mut ShellArg, live: ShellExpansionKind) {
    arg.live = arg.live.max(Some(live));
}

fn add_live_piece(piece: &WordPiece, arg: &mut ShellArg) {
    match piece {
        WordPiece::Literal { .. } => {}
        WordPiece::Parameter { name, form, arithmetic, operands, quoted } => {
            let number =
                matches!(name.as_str(), "?" | "#" | "$" | "!") && *form == ParameterExpansionForm::Value;
            if number || *form == ParameterExpansionForm::Length {
                raise_expansion_kind(arg, ShellExpansionKind::Harmless);
            } else {
                raise_expansion_kind(arg, ShellExpansionKind::Parameter);
                // `"$@"` is several words even between quotes.
                let all = |pieces: &Vec<WordPiece>| matches!(pieces.as_slice(), [WordPiece::Literal { text, .. }] if text == "@");
                arg.splits |= !quoted || name == "@" || arithmetic.iter().chain(operands).any(all);
            }
            arg.evaluates |= collect_evaluation(std::slice::from_ref(piece), &mut arg.evaluated);
            let evaluated =
                matches!(form, ParameterExpansionForm::Evaluated | ParameterExpansionForm::Assigned);
            arg.variables.push(if evaluated { String::new() } else { name.clone() });
            for operand in operands {
                collect_variables(operand, &mut arg.variables);
            }
        }
        WordPiece::Command { quoted, .. } => {
            raise_expansion_kind(arg, ShellExpansionKind::Substitution);
            arg.splits |= !quoted;
        }
        // The name of a pipe: one word that begins with a slash, and what is read there is the output of its commands.
        WordPiece::Process { .. } => {
            raise_expansion_kind(arg, ShellExpansionKind::Harmless);
            arg.first_char_known |= arg.emptied.is_empty();
        }
        WordPiece::Arithmetic { .. } => {
            let before = arg.evaluated.len();
            arg.evaluates |= collect_evaluation(std::slice::from_ref(piece), &mut arg.evaluated);
            let names = arg.evaluated.len() > before;
            raise_expansion_kind(
                arg,
                if names { ShellExpansionKind::Arithmetic } else { ShellExpansionKind::Harmless },
            );
            // A name may hold anything.
            arg.splits |= names;
            // A number is not the name of a pipe, which has no variables.
            arg.variables.push("#".to_owned());
            arg.variables.extend(arg.evaluated.iter().skip(before).cloned());
        }
    }
}

/// The variables in the operand of an expansion, which may be what it comes to.
fn collect_variables(pieces: &[WordPiece], variables: &mut Vec<String>) {
    for piece in pieces {
        match piece {
            WordPiece::Literal { .. } | WordPiece::Command { .. } | WordPiece::Process { .. } => {}
            WordPiece::Parameter { name, form, operands, .. } => {
                let evaluated =
                    matches!(form, ParameterExpansionForm::Evaluated | ParameterExpansionForm::Assigned);
                variables.push(if evaluated { String::new() } else { name.clone() });
                for operand in operands {
                    collect_variables(operand, variables);
                }
            }
            WordPiece::Arithmetic { pieces } => {
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
pub(super) fn collect_evaluation(pieces: &[WordPiece], names: &mut Vec<String>) -> bool {
    let mut evaluates = false;
    for piece in pieces {
        match piece {
            WordPiece::Literal { .. } | WordPiece::Command { .. } | WordPiece::Process { .. } => {}
            WordPiece::Parameter { form, arithmetic, operands, .. } => {
                evaluates |=
                    matches!(form, ParameterExpansionForm::Evaluated | ParameterExpansionForm::Assigned);
                for expression in arithmetic {
                    if !is_index(expression) {
                        collect_evaluated_names(expression, names);
                    }
                    evaluates |= collect_evaluation(expression, names);
                }
                for operand in operands {
                    evaluates |= collect_evaluation(operand, names);
                }
            }
            WordPiece::Arithmetic { pieces } => {
                collect_evaluated_names(pieces, names);
                evaluates |= collect_evaluation(pieces, names);
            }
        }
    }
    evaluates
}

/// The names whose values arithmetic evaluates in turn; an empty name stands for what cannot be told.
pub(super) fn collect_evaluated_names(pieces: &[WordPiece], names: &mut Vec<String>) {
    let in_name = |character: char| character == '_' || character.is_alphanumeric();
    let begins_name = |first: char| first == '_' || first.is_alphabetic();
    // A name that goes on with an expansion is another name than the one that is written.
    let mut unfinished = false;
    for piece in pieces {
        match piece {
            WordPiece::Literal { text, .. } => {
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
            WordPiece::Parameter {
                name,
                form: ParameterExpansionForm::Value | ParameterExpansionForm::Changed,
                operands,
                ..
            } => {
                if !matches!(name.as_str(), "?" | "#" | "$" | "!") {
                    names.push(name.clone());
                }
                for operand in operands {
                    collect_evaluated_names(operand, names);
                }
            }
            WordPiece::Parameter { form: ParameterExpansionForm::Length, .. } => {}
            WordPiece::Parameter {
                form: ParameterExpansionForm::Assigned | ParameterExpansionForm::Evaluated,
                ..
            }
            | WordPiece::Command { .. }
            | WordPiece::Process { .. } => names.push(String::new()),
            WordPiece::Arithmetic { pieces } => collect_evaluated_names(pieces, names),
        }
        if unfinished {
            names.push(String::new());
            unfinished = false;
        }
    }
}

/// A subscript that is a number, or all elements.
fn is_index(pieces: &[WordPiece]) -> bool {
    matches!(pieces, [WordPiece::Literal { text, .. }] if text == "@" || text == "*" || text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_glob(atoms: &[WordAtom<'_>]) -> bool {
    let bracket = atoms.iter().position(|atom| matches!(atom, WordAtom::Char('[', false)));
    let closed = bracket.is_some_and(|open| {
        atoms.iter().skip(open + 2).any(|atom| matches!(atom, WordAtom::Char(']', false)))
    });
    closed || atoms.iter().any(|atom| matches!(atom, WordAtom::Char('*' | '?', false)))
}

/// All words that a word with braces stands for.
fn expand_braces<'a>(
    atoms: &[WordAtom<'a>],
    budget: &mut usize,
    depth: usize,
) -> Option<Vec<Vec<WordAtom<'a>>>> {
    if depth > MAX_BRACE_DEPTH {
        return None;
    }
    let mut prefix: Vec<WordAtom<'a>> = Vec::new();
    let mut rest = atoms;
    while let Some((atom, after)) = rest.split_first() {
        if let WordAtom::Char('{', false) = atom
            && let Some((alternatives, after)) = parse_brace_alternatives(after, budget, depth)?
        {
            let tails = expand_braces(after, budget, depth + 1)?;
            let mut words = Vec::new();
            for alternative in &alternatives {
                for tail in &tails {
                    let word: Vec<WordAtom<'a>> =
                        prefix.iter().chain(alternative).chain(tail).copied().collect();
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

type BraceAlternatives<'s, 'a> = Option<(Vec<Vec<WordAtom<'a>>>, &'s [WordAtom<'a>])>;

/// The alternatives of the brace whose inside comes next, and what follows it; `Some(None)` if it is plain text.
fn parse_brace_alternatives<'s, 'a>(
    inside: &'s [WordAtom<'a>],
    budget: &mut usize,
    depth: usize,
) -> Option<BraceAlternatives<'s, 'a>> {
    let mut open = 0_usize;
    let mut members: Vec<&'s [WordAtom<'a>]> = Vec::new();
    let mut start = 0;
    for (at, atom) in inside.iter().enumerate() {
        *budget = budget.checked_sub(1)?;
        match atom {
            WordAtom::Char('{', false) => open += 1,
            WordAtom::Char(',', false) if open == 0 => {
                members.push(inside.get(start..at)?);
                start = at + 1;
            }
            WordAtom::Char('}', false) if open == 0 => {
                let last = inside.get(start..at)?;
                let after = inside.get(at + 1..)?;
                if members.is_empty() {
                    return Some(parse_brace_sequence(last)?.map(|words| (words, after)));
                }
                members.push(last);
                let mut words = Vec::new();
                for member in members {
                    words.extend(expand_braces(member, budget, depth + 1)?);
                }
                return Some(Some((words, after)));
            }
            WordAtom::Char('}', false) => open -= 1,
            WordAtom::Char(..) | WordAtom::Live(_) => {}
        }
    }
    Some(None)
}

/// `1..5`, `a..e`, `1..9..2`; `Some(None)` if it is plain text, `None` if it is too much.
fn parse_brace_sequence<'a>(inside: &[WordAtom<'a>]) -> Option<Option<Vec<Vec<WordAtom<'a>>>>> {
    let text: Option<String> = inside
        .iter()
        .map(|atom| match atom {
            WordAtom::Char(character, false) => Some(*character),
            WordAtom::Char(_, true) | WordAtom::Live(_) => None,
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
    let word = |text: String| -> Vec<WordAtom<'a>> {
        text.chars().map(|character| WordAtom::Char(character, true)).collect()
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
