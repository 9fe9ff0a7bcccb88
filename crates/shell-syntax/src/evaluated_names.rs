//! Finds the variables that an expansion reads, and those whose values it evaluates.
//!
//! bash evaluates the value of a name in arithmetic as arithmetic again, and expands what is in a subscript of it:
//! with `x='a[$(cmd)]'`, `$((x))` runs `cmd`. Such names must be known to contain numbers.

use crate::bash_program::{
    AndOrList, BashCommand, BashRedirect, BashRedirectKind, CommandList, ParameterExpansionForm, WordPiece,
};

/// Appends the variables whose values are part of what pieces expand to. An empty name stands for an expansion that
/// may read any variable.
pub(crate) fn collect_variables(pieces: &[WordPiece], variables: &mut Vec<String>) {
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

/// Whether expanding pieces sets a variable or expands a value a second time, at any depth. Appends the names whose
/// values are evaluated as arithmetic. Substituted commands are not searched: their words are visited by themselves.
///
/// `${x:=y}` sets a variable; `${!x}` and `${x@P}` expand a value again; a subscript or an offset is arithmetic.
pub(crate) fn collect_evaluation(pieces: &[WordPiece], names: &mut Vec<String>) -> bool {
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

/// Appends the names whose values an arithmetic expression evaluates. An empty name stands for a name that is not
/// known.
pub(crate) fn collect_evaluated_names(pieces: &[WordPiece], names: &mut Vec<String>) {
    let in_name = |character: char| character == '_' || character.is_alphanumeric();
    let begins_name = |first: char| first == '_' || first.is_alphabetic();
    // In `x$y` the expansion continues the name, which is then not `x`.
    let mut unfinished = false;
    for piece in pieces {
        match piece {
            WordPiece::Literal { text, .. } => {
                let words = text.split(|character: char| !in_name(character));
                names.extend(words.filter(|word| word.starts_with(begins_name)).map(str::to_owned));
                // An element of an array, or code that a quote has hidden from the parser.
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
            | WordPiece::Process { .. } => names.push(String::new()),
            WordPiece::Command { list, .. } => {
                if !prints_number(list) {
                    names.push(String::new());
                }
            }
            WordPiece::Arithmetic { pieces } => collect_evaluated_names(pieces, names),
        }
        if unfinished {
            names.push(String::new());
            unfinished = false;
        }
    }
}

/// Whether the commands of a substitution print a number or nothing, whatever they read: they end with `wc -l` or
/// another count of standard input, `nproc`, or `date` with a format of digits.
pub(crate) fn prints_number(list: &CommandList) -> bool {
    let [AndOrList { first, rest, background: false }] = list.0.as_slice() else { return false };
    let Some(BashCommand::Simple(last)) = first.commands.last().filter(|_| rest.is_empty()) else {
        return false;
    };
    let is_input = |redirect: &BashRedirect| redirect.kind == BashRedirectKind::Read;
    if !last.assignments.is_empty() || !last.redirects.iter().all(is_input) {
        return false;
    }
    let words: Vec<&str> = last.words.iter().map(|word| word.source.as_str()).collect();
    match words.as_slice() {
        ["wc", "-l" | "-w" | "-c" | "-m"] | ["nproc"] => true,
        ["date", format] => {
            let format = format.trim_matches(['"', '\'']).strip_prefix("+%");
            format.is_some_and(|format| {
                format
                    .split('%')
                    .all(|digits| matches!(digits, "s" | "H" | "M" | "S" | "Y" | "m" | "d" | "j" | "u"))
            })
        }
        _ => false,
    }
}

/// Whether a subscript is a number or stands for all elements, so that it evaluates no name.
fn is_index(pieces: &[WordPiece]) -> bool {
    matches!(pieces, [WordPiece::Literal { text, .. }] if text == "@" || text == "*" || text.bytes().all(|byte| byte.is_ascii_digit()))
}
