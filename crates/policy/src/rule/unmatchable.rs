//! Deny and ask rules that parse, and yet never match what their author wrote.
//!
//! Rules are compared with simple commands and with paths. What bash or another program would read first (keywords,
//! quotes, variables, braces, URLs) is plain text in a rule, so that such a rule would stop nothing.

use super::joined_commands::joined_commands;
use super::joined_paths::joined_paths;
use super::syntax::{self, RuleSyntaxError};

/// Keywords of bash that precede a command, which is compared without them.
const PREFIX_KEYWORDS: &[&str] = &["time", "!", "then", "do", "else"];

/// Keywords of bash that begin a compound command, whose commands are compared one by one.
const COMPOUND_KEYWORDS: &[&str] =
    &["for", "if", "while", "until", "case", "function", "elif", "done", "fi", "esac"];

/// The problem of a rule with this fix.
pub(super) fn never(why: &str, fix: impl Into<String>) -> RuleSyntaxError {
    RuleSyntaxError::new(format!("the rule never matches: {why}"), fix)
}

/// `did you mean` with a rule.
fn meant(name: &str, content: &str) -> String {
    format!("did you mean `{}`?", syntax::write_rule(name, content))
}

/// Why a rule is probably two rules in one string: `Bash(rm *), Read(.env)`.
pub(super) fn joined_rules(name: &str, content: &str) -> Option<RuleSyntaxError> {
    let (first, rest) = content.match_indices(')').find_map(|(at, _)| {
        let (first, rest) = (content.get(..at)?, content.get(at + 1..)?);
        let second = rest.trim_start_matches([',', ';', ' ']);
        let (tool, _) = second.split_once('(')?;
        let is_tool = tool.starts_with(|c: char| c.is_ascii_uppercase()) || tool.starts_with("mcp__");
        let is_name = tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_joined = second.len() < rest.len() && is_tool && is_name && !first.contains('(');
        is_joined.then_some((first, second))
    })?;
    let fix = format!("write two strings: `{}` and `{rest})`", syntax::write_rule(name, first));
    Some(never("the string contains two rules", fix))
}

/// Why a rule ends in a parenthesis too many: `Bash(rm *))`. Parentheses in quotes and escaped ones are meant.
pub(super) fn surplus_parenthesis(text: &str, name: &str, content: &str) -> Option<RuleSyntaxError> {
    if text.contains('\\') || !content.ends_with(')') {
        return None;
    }
    let surplus = -unquoted_depth(content).min(0);
    let (mut inner, mut removed) = (content, 0);
    while removed < surplus {
        inner = inner.strip_suffix(')')?;
        removed += 1;
    }
    let is_meant = removed > 0 && !inner.trim().is_empty() && unquoted_depth(inner) == 0;
    is_meant.then(|| {
        // A star alone means every use, which is written without parentheses.
        let meant = if inner == "*" { name.to_owned() } else { syntax::write_rule(name, inner) };
        never(
            "it ends in a parenthesis too many",
            format!("did you mean `{meant}`? A parenthesis of the text itself is written `\\)`"),
        )
    })
}

/// How many more parentheses a text opens than it closes, outside quotes. A quote that is not closed is an apostrophe.
fn unquoted_depth(text: &str) -> i64 {
    let (mut depth, mut rest) = (0, text);
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '\'' | '"' => rest = rest.split_once(c).map_or(rest, |(_, behind)| behind),
            _ => {}
        }
    }
    depth
}

/// Why a deny or ask rule for commands never matches.
pub(super) fn unmatchable_command(name: &str, content: &str) -> Option<RuleSyntaxError> {
    let content = content.trim();
    let (word, rest) = content.split_once(' ').map_or((content, ""), |(word, rest)| (word, rest.trim()));
    let (word, is_older) = word.strip_suffix(":*").map_or((word, false), |word| (word, true));
    if PREFIX_KEYWORDS.contains(&word) {
        let fix = match rest {
            "" | "*" => "name the command behind the keyword".to_owned(),
            rest => meant(name, rest),
        };
        return Some(never(
            &format!("`{word}` is a keyword, and rules are compared with the command behind it"),
            fix,
        ));
    }
    if COMPOUND_KEYWORDS.contains(&word) && (is_older || !rest.is_empty() || word == content) {
        return Some(never(
            &format!("`{word}` is a keyword, and rules are compared with each command of a compound command"),
            format!("write a rule for each command inside, such as `{name}(make *)`"),
        ));
    }
    if let Some(before) =
        content.strip_suffix(":*").filter(|before| before.ends_with(":*") || before.ends_with(" *"))
    {
        let command = before.trim_end_matches(['*', ':', ' ']);
        let fix = match command {
            "" => format!("write `{name}` to match every command"),
            command => meant(name, &format!("{command} *")),
        };
        return Some(never("the text before the final `:*` is not a pattern", fix));
    }
    if let Some(inner) = content.strip_prefix('(') {
        let inner = inner.strip_suffix(')').unwrap_or(inner).trim();
        let fix = match inner.contains(['(', ')']) {
            true => "write a rule for each command inside the parentheses".to_owned(),
            false => meant(name, inner),
        };
        return Some(never("rules are compared with the commands inside a subshell", fix));
    }
    joined_commands(name, content)
}

/// The problem of an allow rule that names the field of the agent or skill.
pub(super) fn named_field(name: &str, content: &str) -> RuleSyntaxError {
    never("its content is the name alone, without the field", meant(name, content))
}

/// Why a rule for an agent or a skill never matches. Their names have letters, digits, `-`, `_`, `.` and `:`.
pub(super) fn unmatchable_capability(name: &str, content: &str) -> Option<RuleSyntaxError> {
    let unquoted = ['"', '\''].into_iter().find_map(|quote| content.strip_prefix(quote)?.strip_suffix(quote));
    if let Some(inner) = unquoted.map(str::trim).filter(|inner| !inner.is_empty()) {
        return Some(never("quotes are part of the name in a rule", meant(name, inner)));
    }
    let is_skill = super::tool::family(name) == "Skill";
    let is_separator = |c: char| matches!(c, ',' | ';' | '|');
    // The arguments of a skill can contain anything.
    let named = if is_skill { content.split(' ').next().unwrap_or(content) } else { content };
    if named.contains(is_separator) {
        let parts: Vec<String> = content
            .split(is_separator)
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| format!("`{}`", syntax::write_rule(name, part)))
            .collect();
        let fix = match parts.as_slice() {
            [] => "write the name".to_owned(),
            [part] => format!("did you mean {part}?"),
            _ => format!("write one rule for each: {}", parts.join(", ")),
        };
        return Some(never("no name contains `,`, `;` or `|`", fix));
    }
    (!is_skill && content.contains('*')).then(|| {
        let fix = format!("write one rule for each agent, or `{name}` for every one");
        never("the name of an agent has no wildcards", fix)
    })
}

/// Why a rule other than one for paths never matches: it contains a character that no prompt shows. Paths are compared
/// without such characters.
pub(super) fn unreadable_character(name: &str, content: &str) -> Option<RuleSyntaxError> {
    let odd = content.chars().find(|c| is_unreadable(*c))?;
    let plain: String = content
        .chars()
        .filter_map(|c| match (is_unreadable(c), c.is_whitespace()) {
            (false, _) => Some(c),
            (true, true) => Some(' '),
            (true, false) => None,
        })
        .collect();
    let kind = if odd.is_whitespace() { "is not a plain blank" } else { "is invisible" };
    let why = format!("it contains the character U+{:04X}, which {kind}", u32::from(odd));
    Some(never(
        &why,
        if plain.trim().is_empty() { "remove the rule".to_owned() } else { meant(name, &plain) },
    ))
}

/// Whether a character is displayed as nothing or as a blank. The joiner and the selector of emoji are not meant.
fn is_unreadable(c: char) -> bool {
    (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Why a deny or ask rule for paths never matches.
pub(super) fn unmatchable_path(name: &str, content: &str) -> Option<RuleSyntaxError> {
    let unquoted =
        ['"', '\''].into_iter().find_map(|quote| content.trim().strip_prefix(quote)?.strip_suffix(quote));
    if let Some(inner) = unquoted.filter(|inner| !inner.is_empty()) {
        return Some(never("quotes are part of the name in a rule", meant(name, inner)));
    }
    let trimmed = content.trim_start();
    if trimmed.len() < content.len() {
        return Some(never("the pattern begins with a blank", meant(name, trimmed)));
    }
    if let Some((scheme, rest)) = content.split_once("://")
        && !scheme.is_empty()
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    {
        let fix = match (scheme, rest.split('/').next()) {
            ("file", _) => meant(name, &format!("//{}", rest.trim_start_matches('/'))),
            (_, Some(host)) if !host.is_empty() => meant("WebFetch", &format!("domain:{host}")),
            _ => "write the path of the file".to_owned(),
        };
        return Some(never("a URL is not a path", fix));
    }
    if let Some(fix) = variable_fix(name, content) {
        return Some(never("variables are not expanded in rules", fix));
    }
    if let Some(problem) = joined_paths(name, content) {
        return Some(problem);
    }
    let alternatives = expand_braces(content)?;
    let rules: Vec<String> =
        alternatives.iter().map(|path| format!("`{}`", syntax::write_rule(name, path))).collect();
    Some(never("braces are not expanded in rules", format!("write one rule for each: {}", rules.join(", "))))
}

/// What to write instead of a path with a variable. A name such as `$id.tsx` is none, and a lower-case one is only
/// taken for a variable where the path begins with it.
fn variable_fix(name: &str, content: &str) -> Option<String> {
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_shouted = |text: &str| is_name(text) && !text.chars().any(|c| c.is_ascii_lowercase());
    let variable = content.split('/').enumerate().find_map(|(at, part)| {
        let plain =
            part.strip_prefix('$').filter(|text| if at == 0 { is_name(text) } else { is_shouted(text) });
        let percent =
            part.strip_prefix('%').and_then(|rest| rest.strip_suffix('%')).filter(|text| is_name(text));
        let braced = part.split_once("${").and_then(|(_, rest)| rest.split_once('}'));
        let braced =
            braced.map(|(text, _)| text).filter(|text| is_name(text.split(':').next().unwrap_or(text)));
        plain.or(percent).or(braced)
    })?;
    let rest = content.split_once('/').map(|(_, rest)| rest);
    let is_first = content.split('/').next().is_some_and(|part| part.contains(variable));
    Some(match (variable, rest) {
        ("HOME" | "USERPROFILE", Some(rest)) if is_first => meant(name, &format!("~/{rest}")),
        ("PWD", Some(rest)) if is_first => meant(name, &format!("./{rest}")),
        _ => "write the path itself; `~/` is the home directory, and `./` the working directory".to_owned(),
    })
}

/// The paths that the first braces of a pattern stand for in a shell, if they contain a comma.
fn expand_braces(content: &str) -> Option<Vec<String>> {
    let (before, rest) = content.split_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    let is_list = inner.contains(',') && !inner.contains('{') && !before.ends_with(['\\', '[']);
    is_list.then(|| inner.split(',').map(|choice| format!("{before}{choice}{after}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_and_subshells_are_not_compared_with_rules() {
        for (content, fix) in [
            ("time make *", "did you mean `Bash(make *)`?"),
            ("! make", "did you mean `Bash(make)`?"),
            ("time *", "name the command behind the keyword"),
            ("for *", "write a rule for each command inside, such as `Bash(make *)`"),
            ("if:*", "write a rule for each command inside, such as `Bash(make *)`"),
            ("while make; do x; done", "write a rule for each command inside, such as `Bash(make *)`"),
            ("(make)", "did you mean `Bash(make)`?"),
        ] {
            assert_eq!(
                unmatchable_command("Bash", content).map(|problem| problem.fix).as_deref(),
                Some(fix),
                "{content}"
            );
        }
        for content in
            ["timeout 5 make", "format x", "ifconfig", "!x", "select x", "[[ -f x ]]", "echo (a)", "*"]
        {
            assert_eq!(unmatchable_command("Bash", content), None, "{content}");
        }
    }

    #[test]
    fn what_a_shell_would_expand_is_not_compared_with_paths() {
        for (content, fix) in [
            ("\".env\"", "did you mean `Read(.env)`?"),
            ("'.env'", "did you mean `Read(.env)`?"),
            (" .env", "did you mean `Read(.env)`?"),
            ("$PWD/.env", "did you mean `Read(./.env)`?"),
            ("${HOME}/.ssh/**", "did you mean `Read(~/.ssh/**)`?"),
            ("%USERPROFILE%/.ssh", "did you mean `Read(~/.ssh)`?"),
            ("file:///x/.env", "did you mean `Read(//x/.env)`?"),
            ("https://a.example/b", "did you mean `WebFetch(domain:a.example)`?"),
            ("src/{.env,x}", "write one rule for each: `Read(src/.env)`, `Read(src/x)`"),
        ] {
            assert_eq!(
                unmatchable_path("Read", content).map(|problem| problem.fix).as_deref(),
                Some(fix),
                "{content}"
            );
        }
        for content in ["$CONF/x", "a/$CONF/x", "//srv/${NAME}.d/x", "$HOMER/x", "$dir"] {
            assert!(unmatchable_path("Read", content).is_some(), "{content}");
        }
        for content in [
            "app/routes/$id.tsx",
            "app/$id/x",
            "$RECYCLE.BIN/**",
            "Foo$Bar.class",
            "it's",
            "a b",
            "{{x}}/y",
            "{x}",
            "//a:/b",
            "100%/x",
            "[{]a,b}",
            ".env ",
        ] {
            assert_eq!(unmatchable_path("Read", content), None, "{content}");
        }
    }

    #[test]
    fn two_rules_in_one_string_are_detected() {
        let problem = joined_rules("Bash", "rm *), Read(.env").map(|problem| problem.fix);
        assert_eq!(problem.as_deref(), Some("write two strings: `Bash(rm *)` and `Read(.env)`"));
        for content in ["rm *) Read(.env", "rm *);mcp__a__b(x:y"] {
            assert!(joined_rules("Bash", content).is_some(), "{content}");
        }
        for content in ["echo (a), b (c", "echo :), x", "f(x), Read(y", "a)B(c"] {
            assert!(joined_rules("Bash", content).is_none(), "{content}");
        }
    }

    #[test]
    fn unreadable_characters_are_named() {
        for (content, fix) in
            [("rm\u{a0}x", "did you mean `Bash(rm x)`?"), ("r\u{200b}m *", "did you mean `Bash(rm *)`?")]
        {
            assert_eq!(
                unreadable_character("Bash", content).map(|problem| problem.fix).as_deref(),
                Some(fix)
            );
        }
        for content in ["rm x", "echo 👨‍👩‍👧 ⚠️", "echo 漢字", "echo é"] {
            assert_eq!(unreadable_character("Bash", content), None, "{content}");
        }
    }
}
