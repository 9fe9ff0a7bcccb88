//! Matchers of hooks that select no tool because of a typo: misspelled names, names in a form that is none of a matcher's
//! (`Bash Edit`, `"Bash"`, `/Bash/`), and permission rules where names are expected.
//!
//! A program that embeds toolgate can register tools of any name, so an expression that matches no known tool is not
//! wrong by itself; one that almost matches a tool is, and so is one that names a tool and yet cannot match it.

use super::matcher::HookMatcher;
use super::mcp_reference::is_mcp_name;
use super::split_pieces::{
    is_balanced, is_name_char, is_separator, remove_negations, split_alternatives, split_flags, split_pieces,
    strip_ends, strip_group,
};
use crate::settings::builtin_names;
use fancy_regex::Regex;
use toolgate_policy::{McpNames, find_intended_tool, is_known_tool};
use toolgate_proto::tool_synonyms;

/// From how many letters on the start of a tool's name is recognised although it is misspelled.
const MIN_PREFIX_CHARS: usize = 6;
/// How deep groups are looked into; an expression with deeper ones cannot be compiled.
const MAX_GROUP_DEPTH: usize = 64;
/// Words between names that name nothing.
const CONNECTIVES: [&str; 2] = ["and", "or"];
/// Separators with which a text is an expression of another language rather than a list of names.
const OPERATORS: [char; 9] = ['=', '<', '>', ':', '!', '%', '~', '@', '#'];
/// What stands between two names where an expression was not meant: `Bash.Edit`, `Bash+Edit`, `Bash-Edit`.
const JOINTS: [char; 5] = ['.', '+', '*', '?', '-'];
/// An expression that matches nothing.
const NO_MATCH: &str = "(?!)";

/// A part of a matcher that selects no tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MisspelledMatcher {
    /// What is wrong, and what to write.
    pub(super) problem: String,
    /// The names that were meant.
    pub(super) tools: Vec<String>,
}

/// What is wrong with a matcher of tools, if it is misspelled. `mcp` finds the names of MCP servers; it reads files, so it
/// is called only if the matcher may name one.
pub(crate) fn find_matcher_problem(matcher: &str, mcp: &dyn Fn() -> McpNames) -> Option<String> {
    let parsed = HookMatcher::parse_tools(Some(matcher)).ok()?;
    parsed.find_misspellings(mcp).into_iter().next().map(|misspelled| misspelled.problem)
}

/// Whether a matcher is an expression that matches no built-in tool and names no server.
pub(crate) fn matches_no_known_tool(matcher: &str) -> bool {
    let Ok(HookMatcher::Pattern { expression, .. }) = HookMatcher::parse_tools(Some(matcher)) else {
        return false;
    };
    !matcher.contains("mcp") && !matches_known_tool(&expression)
}

/// The misspelled ones of a list of names.
pub(super) fn find_in_names(names: &[String]) -> Vec<MisspelledMatcher> {
    let find = |name: &String| match find_meant(name) {
        Some(meant) => Some(misspelled_name(name, meant)),
        None => find_named_tools(name, None),
    };
    names.iter().filter_map(find).collect()
}

/// The known tool that a name misspells.
fn find_meant(name: &str) -> Option<String> {
    find_intended_tool(name, builtin_names())
}

/// Whether a tool of toolgate or of another product has this name.
fn is_known(name: &str) -> bool {
    is_known_tool(name, builtin_names())
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
        check_alternative(flags, alternative, 0, &mut found);
    }
    found
}

/// Adds an alternative that matches no tool because of a typo; of a group at this depth, those alternatives, each with the
/// anchors and wildcards of the group: `write` matches `write_file`, and `^(write)$` does not.
fn check_alternative(flags: &str, alternative: &str, depth: usize, found: &mut Vec<MisspelledMatcher>) {
    let word = strip_ends(alternative);
    let around = alternative.split_once(word).filter(|_| depth < MAX_GROUP_DEPTH);
    if let (Some(inner), Some((before, behind))) = (strip_group(word), around) {
        for part in split_alternatives(inner) {
            check_alternative(flags, &format!("{before}{part}{behind}"), depth + 1, found);
        }
        return;
    }
    // One that cannot be compiled is a permission rule, which matches nothing.
    let expression = Regex::new(&format!("{flags}{alternative}")).ok();
    if !expression.as_ref().is_some_and(matches_known_tool) {
        found.extend(find_in_alternative(alternative, expression.as_ref()));
    }
}

/// What was probably meant with an alternative that matches no known tool.
fn find_in_alternative(alternative: &str, expression: Option<&Regex>) -> Option<MisspelledMatcher> {
    let word = strip_ends(alternative);
    // `^Bash $`, `Edit.+`.
    let is_named = is_known(word) && !is_mcp_name(word);
    if is_named || !word.chars().all(is_name_char) {
        return find_named_tools(alternative, expression);
    }
    // The end of a longer name: `.*__write.*`.
    if word.starts_with(['_', '-']) && !alternative.starts_with(['^', '\\']) {
        return None;
    }
    let is_open = !alternative.ends_with('$');
    if let Some(server) = word.strip_prefix("mcp__") {
        let tools = vec![word.to_owned()];
        let problem = format!("`{alternative}` in `matcher` matches no tool; write `{word}__.*`");
        return (!is_open && !server.contains("__")).then_some(MisspelledMatcher { problem, tools });
    }
    let name = word.trim_end_matches('_');
    // `memory_.*` can be about tools of a program, which are named after one of toolgate's; `bash.*` cannot.
    let is_start = |meant: &str| {
        is_open && word.len() > meant.len() && word.to_lowercase().starts_with(&meant.to_lowercase())
    };
    match find_meant(name) {
        Some(meant) if is_start(&meant) => None,
        Some(meant) => Some(misspelled_name(name, meant)),
        None if is_open => find_misspelled_start(word),
        None => None,
    }
}

/// The tools that a part of a matcher names although it matches none of them.
fn find_named_tools(part: &str, expression: Option<&Regex>) -> Option<MisspelledMatcher> {
    let text = remove_negations(part);
    let mut named = NamedTools::default();
    named.add_pieces(&text, 0);
    let is_list = text.contains(is_separator)
        && text.chars().all(|c| is_name_char(c) || is_separator(c) && !OPERATORS.contains(&c));
    if is_list && !named.has_server {
        // No name has a separator, so a list of other names selects nothing either.
        named.tools.append(&mut named.unknown);
    }
    // What exceeds the backtracking limit counts as a match, as it does when hooks run.
    let is_matched =
        |tool: &str| expression.map_or(tool == part, |expression| expression.is_match(tool).unwrap_or(true));
    named.tools.retain(|tool| !is_matched(tool));
    let tools = named.tools;
    if tools.is_empty() {
        return None;
    }
    let problem = named.rule_problem.unwrap_or_else(|| {
        format!("`{}` in `matcher` matches no tool; write `{}`", part.trim(), tools.join("|"))
    });
    Some(MisspelledMatcher { problem, tools })
}

/// What the words of a part of a matcher name.
#[derive(Default)]
struct NamedTools {
    /// The tools.
    tools: Vec<String>,
    /// Other words.
    unknown: Vec<String>,
    /// What is wrong with the first permission rule among them.
    rule_problem: Option<String>,
    /// Whether a word begins like the name of an MCP server.
    has_server: bool,
}

impl NamedTools {
    /// Adds what the words of a text name. `depth` is that of the group that has them.
    fn add_pieces(&mut self, text: &str, depth: usize) {
        // `mcp:files` and `mcp__files/write_file` name one server.
        for piece in split_pieces(text, |c| !matches!(c, '/' | ':')) {
            if !is_mcp_name(piece) {
                split_pieces(piece, |_| true).into_iter().for_each(|word| self.add_word(word, depth));
                continue;
            }
            self.has_server = true;
            match find_rule(piece) {
                Some(rule) => self.add_rule(rule),
                None if piece.starts_with("mcp__") && piece.chars().all(is_name_char) => {
                    self.tools.push(piece.to_owned());
                }
                None => {}
            }
        }
    }

    /// Adds what a word names: a tool, a permission rule, or a group of words.
    fn add_word(&mut self, word: &str, depth: usize) {
        // The start or the end of a longer name.
        let is_part = word.starts_with(['_', '-']) || word.ends_with(['_', '-']);
        let is_name = word.chars().all(is_name_char);
        if let Some(rule) = find_rule(word) {
            self.add_rule(rule);
        } else if let Some(inner) = strip_group(word).filter(|_| depth < MAX_GROUP_DEPTH) {
            split_alternatives(inner).into_iter().for_each(|part| self.add_pieces(part, depth + 1));
        } else if is_name && is_known(word) {
            self.tools.push(word.to_owned());
        } else if let Some(meant) = find_meant(word).filter(|_| is_name && !is_part) {
            self.tools.push(meant);
        } else {
            let joined = find_joined_tools(word);
            let is_connective = CONNECTIVES.iter().any(|it| word.eq_ignore_ascii_case(it));
            if joined.is_empty() && is_name && !is_connective {
                self.unknown.push(word.to_owned());
            }
            self.tools.extend(joined);
        }
    }

    /// Adds the tool of a permission rule.
    fn add_rule(&mut self, rule: MisspelledMatcher) {
        self.tools.extend(rule.tools);
        self.rule_problem.get_or_insert(rule.problem);
    }
}

/// The tools of which a word consists, with joints between them: `Bash.Edit`, `Bash-Edit`, and `functions.Bash`.
fn find_joined_tools(word: &str) -> Vec<String> {
    let is_joint = |c: char| JOINTS.contains(&c);
    if !word.chars().all(|c| is_name_char(c) || is_joint(c)) {
        return Vec::new();
    }
    let names: Vec<&str> = word.split(is_joint).filter(|name| !name.is_empty()).collect();
    let find = |name: &str| match is_known(name) {
        true => Some(name.to_owned()),
        false => find_meant(name).filter(|meant| meant.eq_ignore_ascii_case(name)),
    };
    let tools: Vec<String> = names.iter().filter_map(|name| find(name)).collect();
    if names.len() > 1 && tools.len() == names.len() {
        return tools;
    }
    // Ordinary words are tools in small letters: `notes.replace`.
    let is_dotted = word.contains('.') && word.chars().all(|c| c == '.' || is_name_char(c));
    let is_tool = |name: &&&str| is_known(name) && name.starts_with(|c: char| c.is_ascii_uppercase());
    names.iter().filter(is_tool).filter(|_| is_dotted).map(|name| (*name).to_owned()).collect()
}

/// An expression without those alternatives that consist of permission rules, which matches what the others do. None if
/// there are no such alternatives.
pub(super) fn remove_rules(text: &str) -> Option<String> {
    let (flags, text) = split_flags(text);
    let is_rule = |word: &&str| find_rule(word).is_some();
    let is_of_rules = |alternative: &&str| {
        let words = split_pieces(alternative, |_| true);
        words.iter().any(is_rule)
            && words.iter().all(|word| find_rule(word).is_some() || word.chars().all(is_name_char))
    };
    let (rules, others): (Vec<&str>, Vec<&str>) = split_alternatives(text).into_iter().partition(is_of_rules);
    (!rules.is_empty()).then(|| match others.is_empty() {
        true => NO_MATCH.to_owned(),
        false => format!("{flags}{}", others.join("|")),
    })
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
    let (name, rest) = word.split_once('(')?;
    let content = rest.strip_suffix(')')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // `mcp__files__(read|write)`, `mcp__files__write(_file|_dir)` and `Bash(?:Output)` are expressions.
    let is_expression =
        name.ends_with('_') || content.starts_with('?') || is_mcp_name(name) && !content.contains([':', '*']);
    if !is_name || !is_balanced(content) || is_expression {
        return None;
    }
    let meant = match is_known(name) {
        true => name.to_owned(),
        false => find_meant(name)?,
    };
    let problem = format!(
        "`{word}` in `matcher` is a permission rule, and a matcher names tools; write `\"matcher\": \"{meant}\"`, and \
         `\"if\": \"{meant}({content})\"` in the hook"
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a matcher where no server is configured.
    fn find(matcher: &str) -> Option<String> {
        find_matcher_problem(matcher, &McpNames::default)
    }

    /// The tools that were meant with the parts of a matcher that select none.
    fn find_tools(matcher: &str) -> Vec<String> {
        let parsed = HookMatcher::parse_tools(Some(matcher)).unwrap();
        let mut tools: Vec<String> = Vec::new();
        for tool in parsed.find_misspellings(&McpNames::default).into_iter().flat_map(|it| it.tools) {
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        tools
    }

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
            ("mcp_files__.*", "write `mcp__files`"),
            ("^mcp__files$", "write `mcp__files__.*`"),
            ("Bash(touch *)", "write `\"matcher\": \"Bash\"`, and `\"if\": \"Bash(touch *)\"` in the hook"),
            ("Edit|Bash(rm *)", "is a permission rule"),
            ("Bsah(rm *)", "`\"if\": \"Bash(rm *)\"`"),
            ("Bash(npm run test:*)", "is a permission rule"),
            ("Screenshto", "did you mean `Screenshot`?"),
        ] {
            let found = find(matcher);
            assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{matcher}: {found:?}");
        }
    }

    #[test]
    fn a_name_in_another_case_is_no_start_of_a_longer_one() {
        for (matcher, tools) in [
            ("bash.*", &["Bash"][..]),
            ("^bash", &["Bash"]),
            (".*bash", &["Bash"]),
            ("(bash)", &["Bash"]),
            ("(bash|webfetch)", &["Bash", "WebFetch"]),
            ("bash|webfetch.*", &["Bash", "WebFetch"]),
            // `edit_file` is the other one.
            ("(bash|edit)", &["Bash"]),
            ("BASH.+", &["Bash"]),
            ("^(edit|write)$", &["Edit", "Write"]),
            ("^(?:Read|write)$", &["Write"]),
            ("\\A(write|edit)\\z", &["Write", "Edit"]),
            ("^((write)|bash)$", &["Write", "Bash"]),
            ("^(Shell|Edit)$", &["shell"]),
            ("^(Edits|Writes)$", &["Edit", "Write"]),
            ("^(mcp__files|Edit)$", &["mcp__files"]),
            ("web-fetch.*", &["web_fetch"]),
        ] {
            assert_eq!(find_tools(matcher), tools, "{matcher}");
        }
    }

    #[test]
    fn a_matcher_that_names_tools_and_selects_none_means_these_tools() {
        for (matcher, tools) in [
            ("Bash Edit", &["Bash", "Edit"][..]),
            ("Bash or Edit", &["Bash", "Edit"]),
            ("bash AND Wirte", &["Bash", "Write"]),
            ("\"Bash\"", &["Bash"]),
            ("'Bash'", &["Bash"]),
            ("/Bash/", &["Bash"]),
            ("Bash;Edit", &["Bash", "Edit"]),
            ("Bash/Edit", &["Bash", "Edit"]),
            ("^Bash $", &["Bash"]),
            ("Bash & Edit", &["Bash", "Edit"]),
            ("tool == 'Bash'", &["Bash"]),
            ("tool in (Bash, Edit)", &["Bash", "Edit"]),
            ("Bash\\|Edit", &["Bash", "Edit"]),
            ("Bash\nEdit", &["Bash", "Edit"]),
            ("Bash-Edit", &["Bash", "Edit"]),
            ("Bash.Edit", &["Bash", "Edit"]),
            ("functions.Bash", &["Bash"]),
            ("Edit.+", &["Edit"]),
            ("bash(?!Output)", &["Bash"]),
            ("^(?!Read).*bash$", &["Bash"]),
            ("Bash mcp__files", &["mcp__files", "Bash"]),
            // Tools of a program, which cannot have such names either.
            ("Deploy Release", &["Deploy", "Release"]),
            ("Bash Deploy", &["Bash", "Deploy"]),
        ] {
            assert_eq!(find_tools(matcher), tools, "{matcher}");
        }
        let problem = find("Bash or Edit").unwrap();
        assert_eq!(problem, "`Bash or Edit` in `matcher` matches no tool; write `Bash|Edit`");
        for (written, tools) in [("Bash Edit", "Bash|Edit"), ("\"Bash\"", "Bash"), ("tool == 'Bash'", "Bash")]
        {
            let hint = format!("write `{tools}`");
            assert!(find(written).unwrap().ends_with(&hint), "{written}");
            assert_eq!(find(tools), None, "{written}");
        }
    }

    #[test]
    fn a_permission_rule_is_one_whether_it_can_be_compiled_or_not() {
        for (matcher, tools) in [
            ("Bash(*)", &["Bash"][..]),
            ("Edit(src/**)", &["Edit"]),
            ("Write(*.py)", &["Write"]),
            ("Bash(*)|Write(*.py)", &["Bash", "Write"]),
            ("Bash(*), Edit(src/**)", &["Bash", "Edit"]),
            ("Bash(touch *), Edit(src/x)", &["Bash", "Edit"]),
            ("mcp__files__write(*)", &["mcp__files__write"]),
        ] {
            assert_eq!(find_tools(matcher), tools, "{matcher}");
            assert!(find(matcher).unwrap().contains("is a permission rule"), "{matcher}");
        }
        for matcher in ["Bash(", "(Bash(*)|Edit)", "Bash(*)|Edit(", "Deploy(*)"] {
            assert!(HookMatcher::parse_tools(Some(matcher)).is_err(), "{matcher}");
        }
    }

    #[test]
    fn expressions_that_match_or_are_about_other_tools_are_left_alone() {
        for matcher in [
            "",
            "*",
            ".*",
            "Edit|Write",
            "Edit, Write",
            "^(Write|Edit|MultiEdit)$",
            "Edit.*",
            "Edi.*",
            "Bash(Output)?",
            "Bash( |$)",
            "(?i)bash",
            "^web_",
            "Web.*",
            "Notebook.*",
            "Ba(sh|t)",
            "^(?!Read|ls).*$",
            "^(?!memory)memory_.*",
            "mcp__files",
            "mcp__files__.*",
            "mcp__.*",
            "mcp__.*__write.*",
            ".*__write.*",
            ".*_write_.*",
            "__bash$",
            "^.*__(write|edit).*$",
            "mcp__files__(read|write)",
            "mcp__files__write(_file|_dir)",
            "mcp__(files|git)__.*",
            "Deploy",
            "deploy-bash-x",
            "Deploy.*",
            "Dep.*",
            "^memory_.*",
            "bash_.*",
            "notes.replace",
            "^deploy_(read|write)$",
            "Tasks.*",
            "Team.*",
            "^KillBash$",
            "^ToolSearch$",
        ] {
            assert_eq!(find(matcher), None, "{matcher}");
        }
        assert!(matches_no_known_tool("Deploy.*"));
        assert!(!matches_no_known_tool("Edit.*") && !matches_no_known_tool("mcp__.*"));
    }
}
