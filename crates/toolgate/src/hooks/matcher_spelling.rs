//! Matchers of hooks that select no tool because of a typo: misspelled names, and permission rules where names are
//! expected.
//!
//! A program that embeds toolgate can register tools of any name, so an expression that matches no known tool is not
//! wrong by itself; one that almost matches a tool is.

use super::matcher::HookMatcher;
use crate::settings::builtin_names;
use fancy_regex::Regex;
use std::collections::BTreeSet;
use toolgate_policy::{find_intended_tool, is_known_tool};
use toolgate_proto::tool_synonyms;

/// What an alternative can begin or end with without changing which word it is about.
const ENDS: [&str; 7] = ["^", "$", "\\b", ".*", ".+", "\\A", "\\z"];
/// From how many letters on the start of a tool's name is recognised although it is misspelled.
const MIN_PREFIX_CHARS: usize = 6;

/// A part of a matcher that selects no tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MisspelledMatcher {
    /// What is wrong, and what to write.
    pub(super) problem: String,
    /// The names that were meant.
    pub(super) tools: Vec<String>,
}

/// What is wrong with a matcher of tools, if it is misspelled.
pub(crate) fn find_matcher_problem(matcher: &str) -> Option<String> {
    let parsed = HookMatcher::parse(Some(matcher)).ok()?;
    parsed.find_misspellings().into_iter().next().map(|misspelled| misspelled.problem)
}

/// Whether a matcher is an expression that matches no built-in tool and names no server.
pub(crate) fn matches_no_known_tool(matcher: &str) -> bool {
    let Ok(HookMatcher::Pattern { expression, .. }) = HookMatcher::parse(Some(matcher)) else { return false };
    !matcher.contains("mcp") && !matches_known_tool(&expression)
}

/// The misspelled ones of a list of names.
pub(super) fn find_in_names(names: &[String]) -> Vec<MisspelledMatcher> {
    let find = |name: &String| Some(misspelled_name(name, find_intended_tool(name, &BTreeSet::new())?));
    names.iter().filter_map(find).collect()
}

/// A misspelled name.
fn misspelled_name(name: &str, meant: String) -> MisspelledMatcher {
    let problem = format!("unknown tool `{name}` in `matcher`; did you mean `{meant}`?");
    MisspelledMatcher { problem, tools: vec![meant] }
}

/// The alternatives of an expression that match no tool because of a typo.
pub(super) fn find_in_expression(text: &str) -> Vec<MisspelledMatcher> {
    let (flags, text) = split_flags(text);
    let mut found = Vec::new();
    for alternative in split_alternatives(text) {
        let word = strip_ends(alternative);
        match strip_group(word) {
            Some(inner) => found.extend(find_in_expression(&format!("{flags}{inner}"))),
            None => {
                let is_unmatched = || {
                    let expression = Regex::new(&format!("{flags}{alternative}"));
                    expression.is_ok_and(|expression| !matches_known_tool(&expression))
                };
                found.extend(find_in_alternative(alternative, word).filter(|_| is_unmatched()));
            }
        }
    }
    found
}

/// What was probably meant with an alternative of which `word` is the text without anchors and wildcards.
fn find_in_alternative(alternative: &str, word: &str) -> Option<MisspelledMatcher> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !word.chars().all(is_letter) {
        return find_rule(word);
    }
    let is_open = !alternative.ends_with('$');
    if let Some(server) = word.strip_prefix("mcp__") {
        let tools = vec![word.to_owned()];
        let problem = format!("`{alternative}` in `matcher` matches no tool; write `{word}__.*`");
        return (!is_open && !server.contains("__")).then_some(MisspelledMatcher { problem, tools });
    }
    let name = word.trim_end_matches('_');
    match find_intended_tool(name, &BTreeSet::new()) {
        // `memory_.*` can be about tools of a program, which are named after one of toolgate's.
        Some(meant) if is_open && word.to_lowercase().starts_with(&meant.to_lowercase()) => None,
        Some(meant) => Some(misspelled_name(name, meant)),
        None if is_open => find_misspelled_start(word),
        None => None,
    }
}

/// The tools whose names begin almost like this.
fn find_misspelled_start(word: &str) -> Option<MisspelledMatcher> {
    let length = word.chars().count();
    if length < MIN_PREFIX_CHARS {
        return None;
    }
    let fold = |text: &str| text.to_lowercase().replace(['_', '-'], "");
    let is_start = |start: &str| strsim::damerau_levenshtein(word, start) == 1 && fold(word) != fold(start);
    let begins_so = |name: &&String| {
        (length.saturating_sub(1)..=length + 1)
            .filter(|length| name.chars().count() >= *length)
            .any(|length| is_start(&name.chars().take(length).collect::<String>()))
    };
    let tools: Vec<String> = builtin_names().iter().filter(begins_so).cloned().collect();
    let meant = tools.first()?;
    let problem = format!("no tool begins with `{word}`, which is in `matcher`; did you mean `{meant}`?");
    Some(MisspelledMatcher { problem, tools })
}

/// A permission rule with content in place of a name.
fn find_rule(word: &str) -> Option<MisspelledMatcher> {
    let (name, content) = word.split_once('(')?;
    let none = BTreeSet::new();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name || !content.ends_with(')') {
        return None;
    }
    let meant = match is_known_tool(name, &none) {
        true => name.to_owned(),
        false => find_intended_tool(name, &none)?,
    };
    let problem = format!(
        "`{word}` in `matcher` is a permission rule, and a matcher names tools; write `\"matcher\": \"{meant}\"`, and \
         `\"if\": \"{meant}({content}\"` in the hook"
    );
    Some(MisspelledMatcher { problem, tools: vec![meant] })
}

/// Whether an expression matches a built-in tool, under any of its names.
fn matches_known_tool(expression: &Regex) -> bool {
    builtin_names()
        .iter()
        .flat_map(|name| std::iter::once(name.as_str()).chain(tool_synonyms(name).iter().copied()))
        // What exceeds the backtracking limit counts as a match, as it does when hooks run.
        .any(|name| expression.is_match(name).unwrap_or(true))
}

/// The flags that an expression begins with, such as `(?i)`, and the rest.
fn split_flags(text: &str) -> (&str, &str) {
    let end = text.strip_prefix("(?").and_then(|rest| {
        let length = rest.find(|c: char| !c.is_ascii_lowercase())?;
        rest.get(length..)?.starts_with(')').then_some("(?".len() + length + ")".len())
    });
    text.split_at_checked(end.unwrap_or(0)).unwrap_or(("", text))
}

/// The alternatives of an expression: the parts between those `|` that stand in no group and no class.
fn split_alternatives(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

/// An alternative without anchors and wildcards at its ends.
fn strip_ends(alternative: &str) -> &str {
    let mut word = alternative.trim();
    loop {
        let before = word.len();
        for end in ENDS {
            word = word.strip_prefix(end).unwrap_or(word);
            word = word.strip_suffix(end).unwrap_or(word);
        }
        if word.len() == before {
            return word;
        }
    }
}

/// The content of a text that is one group.
fn strip_group(word: &str) -> Option<&str> {
    let inner = word.strip_prefix('(')?.strip_suffix(')')?;
    let inner = inner.strip_prefix("?:").unwrap_or(inner);
    let mut depth = 0_usize;
    for c in inner.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    (depth == 0 && !inner.starts_with('?')).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_almost_match_a_tool_are_recognised() {
        for (matcher, part) in [
            ("Bsah", "did you mean `Bash`?"),
            ("^Bahs$", "unknown tool `Bahs` in `matcher`; did you mean `Bash`?"),
            ("Bsah.*", "did you mean `Bash`?"),
            ("^(Edit|Wirte)$", "did you mean `Write`?"),
            ("^(?:Edit|Wirte)$|Read", "did you mean `Write`?"),
            ("^bash$", "did you mean `Bash`?"),
            ("(?i)^bahs$", "did you mean `Bash`?"),
            ("Notebok.*", "did you mean `NotebookEdit`?"),
            ("mcp_files__.*", "did you mean `mcp__files`?"),
            ("^mcp__files$", "write `mcp__files__.*`"),
            ("Bash(touch *)", "write `\"matcher\": \"Bash\"`, and `\"if\": \"Bash(touch *)\"` in the hook"),
            ("Edit|Bash(rm *)", "is a permission rule"),
            ("Bsah(rm *)", "`\"if\": \"Bash(rm *)\"`"),
            ("Bash(npm run test:*)", "is a permission rule"),
        ] {
            let found = find_matcher_problem(matcher);
            assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{matcher}: {found:?}");
        }
    }

    #[test]
    fn expressions_that_match_or_are_about_other_tools_are_left_alone() {
        for matcher in [
            "",
            "*",
            ".*",
            "Edit|Write",
            "^(Write|Edit|MultiEdit)$",
            "Edit.*",
            "Edi.*",
            "Bash(Output)?",
            "(?i)bash",
            "^web_",
            "Web.*",
            "Ba(sh|t)",
            "^(?!Read|ls).*$",
            "mcp__files",
            "mcp__files__.*",
            "mcp__.*__write.*",
            "Deploy.*",
            "Dep.*",
            "^memory_.*",
            "Tasks.*",
            "Team.*",
            "^KillBash$",
        ] {
            assert_eq!(find_matcher_problem(matcher), None, "{matcher}");
        }
        assert!(matches_no_known_tool("Deploy.*"));
        assert!(!matches_no_known_tool("Edit.*") && !matches_no_known_tool("mcp__.*"));
    }
}
