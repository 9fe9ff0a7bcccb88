//! Brace expansion: `{a,b}`, `{1..5}` and `{a..e}`, nested and combined.
//!
//! bash expands braces before anything else, so that `rm -rf {/,x}` removes `/`. The words are produced as sequences of
//! atoms, because an alternative may contain quotes and expansions. Hostile input grows exponentially
//! (`{a,b}{a,b}{a,b}…`), so that the work has a budget, and a word that exceeds it is refused.

use crate::expand::WordAtom;

/// How many characters brace expansion may read and produce: nested braces grow exponentially.
const MAX_BRACE_CHARS: usize = 20_000;

/// How deep braces may be nested.
const MAX_BRACE_DEPTH: usize = 12;

/// How many words one sequence may become.
const MAX_SEQUENCE_LENGTH: u64 = 256;

/// Words, each as a sequence of atoms.
type AtomWords<'a> = Vec<Vec<WordAtom<'a>>>;

/// The alternatives of a brace and the atoms after it; `None` if the brace is literal text.
type BraceAlternatives<'s, 'a> = Option<(AtomWords<'a>, &'s [WordAtom<'a>])>;

/// Every word that a word with braces becomes; `None` if there are too many.
pub(crate) fn expand_braces<'a>(atoms: &[WordAtom<'a>]) -> Option<AtomWords<'a>> {
    let mut budget = MAX_BRACE_CHARS;
    expand_nested(atoms, &mut budget, 0)
}

/// Expands braces at a nesting depth, within what is left of the budget.
fn expand_nested<'a>(atoms: &[WordAtom<'a>], budget: &mut usize, depth: usize) -> Option<AtomWords<'a>> {
    if depth > MAX_BRACE_DEPTH {
        return None;
    }
    let mut prefix: Vec<WordAtom<'a>> = Vec::new();
    let mut rest = atoms;
    while let Some((atom, after)) = rest.split_first() {
        if let WordAtom::Char('{', false) = atom
            && let Some((alternatives, after)) = parse_brace_alternatives(after, budget, depth)?
        {
            let tails = expand_nested(after, budget, depth + 1)?;
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

/// The alternatives of the brace whose content begins `inside`, and what follows the brace. The outer `None` means
/// too many words, the inner one that the brace is literal text.
///
/// `{a}` and `{}` have no alternatives and are literal, as is a brace that is not closed.
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
                    words.extend(expand_nested(member, budget, depth + 1)?);
                }
                return Some(Some((words, after)));
            }
            WordAtom::Char('}', false) => open -= 1,
            WordAtom::Char(..) | WordAtom::Live(_) => {}
        }
    }
    Some(None)
}

/// The words of `1..5`, `a..e` or `1..9..2`. The outer `None` means too many words, or a sequence on which versions
/// of bash differ; the inner one that the text is no sequence.
fn parse_brace_sequence<'a>(inside: &[WordAtom<'a>]) -> Option<Option<AtomWords<'a>>> {
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
        let is_padded = |text: &str| text.trim_start_matches(['-', '+']).starts_with('0') && text.len() > 1;
        let count = from.abs_diff(to) / step.unsigned_abs();
        if count >= MAX_SEQUENCE_LENGTH || is_padded(first) || is_padded(last) {
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
    // Between `Z` and `a` are characters that quote; versions of bash treat them differently.
    if from.is_ascii_uppercase() != to.is_ascii_uppercase() {
        return None;
    }
    let step = usize::try_from(step).ok()?;
    let letters: Vec<char> = if from <= to { (from..=to).collect() } else { (to..=from).rev().collect() };
    Some(Some(letters.into_iter().step_by(step).map(|character| word(character.into())).collect()))
}
