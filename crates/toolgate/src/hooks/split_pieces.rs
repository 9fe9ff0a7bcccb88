//! The parts of a matcher: alternatives, groups, and pieces between characters that no tool's name has.

/// What an alternative can begin or end with without changing which word it is about.
const ENDS: [&str; 7] = ["^", "$", "\\b", ".*", ".+", "\\A", "\\z"];
/// Characters that mean themselves in an expression, or whose meaning makes no part of a name, and that no name has.
const SEPARATORS: &str = "\"'`/;,&:=<>@#%!~{}";
/// Escaped characters that can stand for a part of a name: `\w`, `\d`, `\S`, `\D`, `\-`, `\_`.
const ESCAPED_NAME_PARTS: &str = "wdSDpP-_";
/// The starts of groups that exclude what they match.
const NEGATIONS: [&str; 2] = ["(?!", "(?<!"];

/// Whether the name of a tool can have a character; the gate registers no other names.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Whether a character separates names: an expression that needs it matches no tool.
pub(super) fn is_separator(c: char) -> bool {
    c.is_whitespace() || !c.is_ascii() || SEPARATORS.contains(c)
}

/// The flags that an expression begins with, such as `(?i)`, and the rest.
pub(super) fn split_flags(text: &str) -> (&str, &str) {
    let end = text.strip_prefix("(?").and_then(|rest| {
        let length = rest.find(|c: char| !c.is_ascii_lowercase())?;
        rest.get(length..)?.starts_with(')').then_some("(?".len() + length + ")".len())
    });
    text.split_at_checked(end.unwrap_or(0)).unwrap_or(("", text))
}

/// The alternatives of an expression: the parts between those `|` that stand in no group and no class.
pub(super) fn split_alternatives(text: &str) -> Vec<&str> {
    split_outside_groups(text, |c, is_escaped| c == '|' && !is_escaped)
}

/// The pieces of an alternative between separators that stand in no group and no class, without anchors and wildcards at
/// their ends. Of characters that are separators only those count that `is_cut` selects.
pub(super) fn split_pieces(alternative: &str, is_cut: impl Fn(char) -> bool) -> Vec<&str> {
    let ends_piece = |c: char, is_escaped: bool| match is_escaped {
        true => !ESCAPED_NAME_PARTS.contains(c),
        false => is_separator(c) && is_cut(c),
    };
    let pieces = split_outside_groups(alternative, ends_piece).into_iter().map(strip_ends);
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// The parts of a text between those characters outside of groups and classes that `ends_part` selects. It is told
/// whether the character is escaped; the backslash then belongs to no part either.
fn split_outside_groups(text: &str, ends_part: impl Fn(char, bool) -> bool) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut escaped_at = None;
    for (at, c) in text.char_indices() {
        let backslash = escaped_at.take();
        match c {
            '\\' if backslash.is_none() => escaped_at = Some(at),
            '(' | '[' if backslash.is_none() => depth += 1,
            ')' | ']' if backslash.is_none() => depth = depth.saturating_sub(1),
            _ if depth == 0 && ends_part(c, backslash.is_some()) => {
                parts.extend(text.get(start..backslash.unwrap_or(at)));
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

/// A text without anchors, wildcards and blanks at its ends.
pub(super) fn strip_ends(text: &str) -> &str {
    let mut word = text.trim();
    loop {
        let before = word.len();
        for end in ENDS {
            word = word.strip_prefix(end).unwrap_or(word);
            word = word.strip_suffix(end).unwrap_or(word);
        }
        word = word.trim();
        if word.len() == before {
            return word;
        }
    }
}

/// The content of a text that is one group.
pub(super) fn strip_group(word: &str) -> Option<&str> {
    let inner = word.strip_prefix('(')?.strip_suffix(')')?;
    let inner = inner.strip_prefix("?:").unwrap_or(inner);
    (is_balanced(inner) && !inner.starts_with('?')).then_some(inner)
}

/// Whether every parenthesis of a text that closes was opened in it, and every opened one is closed.
pub(super) fn is_balanced(text: &str) -> bool {
    let depth = text.chars().try_fold(0_usize, |depth, c| match c {
        '(' => Some(depth + 1),
        ')' => depth.checked_sub(1),
        _ => Some(depth),
    });
    depth == Some(0)
}

/// An expression without the groups that exclude what they match.
pub(super) fn remove_negations(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = NEGATIONS.iter().filter_map(|start| rest.find(start)).min() {
        let (before, group) = rest.split_at_checked(at).unwrap_or((rest, ""));
        kept.push_str(before);
        let mut depth = 0_usize;
        let end = group.char_indices().find_map(|(at, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (depth == 0).then_some(at + c.len_utf8())
        });
        rest = end.and_then(|end| group.get(end..)).unwrap_or_default();
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_between_characters_that_no_name_has() {
        let split = |text| split_pieces(text, |_| true);
        for (text, pieces) in [
            ("Bash", &["Bash"][..]),
            ("\"Bash\"", &["Bash"]),
            ("^Bash $", &["Bash"]),
            ("Bash & ^Edit.*", &["Bash", "Edit"]),
            ("tool == 'Bash'", &["tool", "Bash"]),
            ("Bash\\|Edit\\s", &["Bash", "Edit"]),
            ("a\\w/b", &["a\\w", "b"]),
            ("Bash(rm *), (Edit|Write)", &["Bash(rm *)", "(Edit|Write)"]),
            ("„Bash“", &["Bash"]),
            ("[a b]", &["[a b]"]),
            ("", &[]),
        ] {
            assert_eq!(split(text), pieces, "{text}");
        }
        assert_eq!(split_pieces("mcp:a/b c", |c| c.is_whitespace()), ["mcp:a/b", "c"]);
    }

    #[test]
    fn groups_that_exclude_are_removed() {
        for (text, rest) in [
            ("^(?!Read|ls).*$", "^.*$"),
            ("bash(?!(Output|x))y", "bashy"),
            ("(?<!a)b(?!c", "b"),
            ("(a|b)", "(a|b)"),
        ] {
            assert_eq!(remove_negations(text), rest, "{text}");
        }
    }
}
