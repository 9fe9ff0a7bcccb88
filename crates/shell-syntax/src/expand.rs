//! Expands words into the arguments that a program would get, as far as that is certain: brace expansion and quote
//! removal are carried out; parameters, substitutions and globs leave an argument that is live.
//!
//! A live argument keeps what is certain about it: whether it may split into several words, whether it may turn out to
//! be an option, which variables it contains, and its value if the live pieces expand to nothing.

use crate::analysis::ShellExpansionKind;
use crate::bash_program::{ParameterExpansionForm, ShellWord, WordPiece};
use crate::brace_expansion;
use crate::evaluated_names::{collect_evaluation, collect_variables};
use crate::shell_arg::ShellArg;

/// One character of a word with its quoting, or one expansion. Braces and globs are recognised over a sequence of
/// atoms, because they may span several [`WordPiece`]s.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WordAtom<'a> {
    /// A character, and whether it is quoted.
    Char(char, bool),
    /// An expansion whose value is not known.
    Live(&'a WordPiece),
}

/// Expands the braces of a word, removes its quotes, and appends the arguments that it becomes.
/// `None` if it becomes too many.
pub(crate) fn expand(word: &ShellWord, args: &mut Vec<ShellArg>) -> Option<()> {
    let has_braces = word
        .pieces
        .iter()
        .any(|piece| matches!(piece, WordPiece::Literal { text, quoted: false } if text.contains('{')));
    if !has_braces {
        args.push(expand_single(&word.pieces, &word.source));
        return Some(());
    }
    let atoms: Vec<WordAtom<'_>> = word_atoms(&word.pieces).collect();
    let words = brace_expansion::expand_braces(&atoms)?;
    let expanded = words.len() > 1;
    for atoms in words {
        // An alternative that is empty and unquoted becomes no word.
        if expanded && atoms.is_empty() {
            continue;
        }
        args.push(from_atoms(&atoms, if expanded { None } else { Some(&word.source) }));
    }
    Some(())
}

/// The value of a word that is not subject to brace expansion: an assignment, a redirect target, a here-string.
pub(crate) fn expand_single(pieces: &[WordPiece], source: &str) -> ShellArg {
    if let [WordPiece::Literal { text, quoted: false }] = pieces
        && !text.contains(['*', '?', '[', '~'])
    {
        return ShellArg::literal(text.clone());
    }
    let atoms: Vec<WordAtom<'_>> = word_atoms(pieces).collect();
    from_atoms(&atoms, Some(source))
}

/// The characters and expansions of a word in order.
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

/// The argument that atoms become. `source` is the text of a live word; a word that brace expansion made has none.
///
/// A glob character counts only if it is unquoted; the pattern keeps quoted ones escaped, as bash would match them.
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

/// Marks an argument as live, unless it has a less predictable expansion already.
fn raise_expansion_kind(arg: &mut ShellArg, kind: ShellExpansionKind) {
    arg.live = arg.live.max(Some(kind));
}

/// Adds what an expansion makes of an argument: whether it splits, and which variables it reads and evaluates.
///
/// The kinds are ordered by how little is known, and an argument has the highest kind of its pieces.
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
                // `"$@"` and `"${x[@]}"` are several words even in double quotes.
                let is_all = |pieces: &Vec<WordPiece>| matches!(pieces.as_slice(), [WordPiece::Literal { text, .. }] if text == "@");
                arg.splits |= !quoted || name == "@" || arithmetic.iter().chain(operands).any(is_all);
            }
            arg.evaluates |= collect_evaluation(std::slice::from_ref(piece), &mut arg.evaluated);
            collect_variables(std::slice::from_ref(piece), &mut arg.variables);
        }
        WordPiece::Command { quoted, .. } => {
            raise_expansion_kind(arg, ShellExpansionKind::Substitution);
            arg.splits |= !quoted;
        }
        // The name of a pipe: one word that begins with a slash. What is read from it is the output of its commands.
        WordPiece::Process { .. } => {
            raise_expansion_kind(arg, ShellExpansionKind::Harmless);
            arg.first_char_known |= arg.emptied.is_empty();
        }
        WordPiece::Arithmetic { .. } => {
            let before = arg.evaluated.len();
            arg.evaluates |= collect_evaluation(std::slice::from_ref(piece), &mut arg.evaluated);
            let has_names = arg.evaluated.len() > before;
            let kind = if has_names { ShellExpansionKind::Arithmetic } else { ShellExpansionKind::Harmless };
            raise_expansion_kind(arg, kind);
            // The value of a name may be anything, a number only as far as the line tells.
            arg.splits |= has_names;
            // A variable tells the result, a number, from the name of a pipe, which has no variables.
            arg.variables.push("#".to_owned());
            arg.variables.extend(arg.evaluated.iter().skip(before).cloned());
        }
    }
}

/// Whether atoms contain an unquoted glob. A bracket counts only if it is closed.
fn has_glob(atoms: &[WordAtom<'_>]) -> bool {
    let bracket = atoms.iter().position(|atom| matches!(atom, WordAtom::Char('[', false)));
    let closed = bracket.is_some_and(|open| {
        atoms.iter().skip(open + 2).any(|atom| matches!(atom, WordAtom::Char(']', false)))
    });
    closed || atoms.iter().any(|atom| matches!(atom, WordAtom::Char('*' | '?', false)))
}
