//! The syntax of a rule: `Tool` or `Tool(content)`, with `\` to escape parentheses.

/// A rule split into name and content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSyntax {
    /// The name before the parenthesis, as written.
    pub(crate) name: String,
    /// The text in the parentheses, unescaped; `None` for a bare rule and for `Tool(*)`, which means the same.
    pub(crate) content: Option<String>,
}

/// Why a rule cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSyntaxError {
    /// What is wrong, lower case, without a full stop.
    pub(crate) message: String,
    /// What to write instead.
    pub(crate) fix: String,
}

impl RuleSyntaxError {
    /// An error with what to write instead.
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { message: message.into(), fix: fix.into() }
    }

    /// The error for a misspelled tool.
    pub(crate) fn unknown_tool(name: &str, meant: &str) -> Self {
        Self::new(
            format!("unknown tool `{name}`, so the rule never matches"),
            format!("did you mean `{meant}`?"),
        )
    }
}

/// Splits a rule. The first unescaped `(` opens the content, the last unescaped `)` closes it and must end the rule, so
/// that `Bash(echo (a))` needs no escapes.
pub(crate) fn parse(text: &str) -> Result<RuleSyntax, RuleSyntaxError> {
    let text = text.trim();
    if text.chars().any(char::is_control) {
        return Err(RuleSyntaxError::new("the rule contains control characters", "remove them"));
    }
    let Some(open) = unescaped_parens(text).find(|(_, c)| *c == '(').map(|(at, _)| at) else {
        if text.contains([')', '(']) {
            return Err(RuleSyntaxError::new("a parenthesis is missing", "write `Tool` or `Tool(content)`"));
        }
        check_name(text)?;
        return Ok(RuleSyntax { name: text.to_owned(), content: None });
    };
    let (name, rest) = text.split_at(open);
    check_name(name)?;
    let inner = rest.strip_prefix('(').unwrap_or(rest);
    let closes = unescaped_parens(inner).filter(|(_, c)| *c == ')').last().map(|(at, _)| at);
    let content = match closes {
        Some(at) if at + 1 == inner.len() => inner.strip_suffix(')').unwrap_or(inner),
        Some(_) => {
            return Err(RuleSyntaxError::new(
                "text follows the closing parenthesis",
                "end the rule with `)`",
            ));
        }
        None => {
            return Err(RuleSyntaxError::new("the closing parenthesis is missing", "end the rule with `)`"));
        }
    };
    if content.trim().is_empty() {
        return Err(RuleSyntaxError::new(
            "the parentheses are empty",
            format!("write `{name}` to match every use"),
        ));
    }
    let depth = unescaped_parens(content).try_fold(0i64, |depth, (_, c)| {
        let depth = if c == '(' { depth + 1 } else { depth - 1 };
        (depth >= 0).then_some(depth)
    });
    let escaped = unescaped_parens(content).count() != content.matches(['(', ')']).count();
    if escaped && depth != Some(0) {
        return Err(RuleSyntaxError::new(
            "the rule mixes escaped parentheses with unbalanced unescaped ones",
            "escape every parenthesis with `\\`",
        ));
    }
    let content = unescape(content);
    Ok(RuleSyntax { name: name.to_owned(), content: (content != "*").then_some(content) })
}

/// Formats a rule so that [`parse`] returns the same content.
pub(crate) fn write_rule(name: &str, content: &str) -> String {
    let mut out = format!("{name}(");
    for c in content.chars() {
        if matches!(c, '(' | ')' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push(')');
    out
}

/// The parentheses that are not escaped by a backslash, with their positions.
fn unescaped_parens(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut escaped = false;
    text.char_indices().filter(move |(_, c)| {
        let plain = !escaped && matches!(c, '(' | ')');
        escaped = !escaped && *c == '\\';
        plain
    })
}

/// Removes the backslash before `(`, `)` and `\`; any other backslash stays.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('\\', Some(next @ ('(' | ')' | '\\'))) => {
                out.push(next);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// Names that users write in lower case by mistake. Such a deny rule would never match and would be missed, so it is
/// an error. Any other lower-case name may be a tool of the host program.
const CAPITALISED_TOOL_NAMES: [&str; 16] = [
    "Bash",
    "Read",
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "WebFetch",
    "WebSearch",
    "Agent",
    "Task",
    "Skill",
    "TodoWrite",
    "PowerShell",
    "Monitor",
    "AskUserQuestion",
];

/// Rejects names that no tool can have, and names that differ from a known tool only by case.
fn check_name(name: &str) -> Result<(), RuleSyntaxError> {
    if name.is_empty() {
        return Err(RuleSyntaxError::new(
            "the name of the tool is missing",
            "begin the rule with the name of a tool",
        ));
    }
    if let Some(odd) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*'))) {
        return Err(RuleSyntaxError::new(
            format!("the name of a tool cannot contain `{odd}`"),
            "write `Tool` or `Tool(content)`",
        ));
    }
    if let Some(meant) =
        CAPITALISED_TOOL_NAMES.iter().find(|known| known.eq_ignore_ascii_case(name) && **known != name)
    {
        return Err(RuleSyntaxError::unknown_tool(name, meant));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(String, Option<String>), String> {
        parse(text).map(|rule| (rule.name, rule.content)).map_err(|bad| bad.message)
    }

    #[test]
    fn rules_are_split_into_name_and_content() {
        for (text, name, content) in [
            ("Bash", "Bash", None),
            ("Bash(*)", "Bash", None),
            ("Bash(ls -la)", "Bash", Some("ls -la")),
            ("Bash(echo (a) b)", "Bash", Some("echo (a) b")),
            (r"Bash(echo \(a)", "Bash", Some("echo (a")),
            (r"Bash(a\\b)", "Bash", Some(r"a\b")),
            (r"Read(\!x)", "Read", Some(r"\!x")),
            ("Bash(echo :))", "Bash", Some("echo :)")),
            ("mcp__gh__get_*", "mcp__gh__get_*", None),
            ("shell(ls)", "shell", Some("ls")),
        ] {
            assert_eq!(check(text), Ok((name.into(), content.map(str::to_owned))), "{text}");
        }
    }

    #[test]
    fn malformed_rules_are_rejected() {
        for text in [
            "",
            "Bash()",
            "Bash( )",
            "bash(ls)",
            "Bash(ls",
            "Bash(ls) x",
            "Bash)",
            "(ls)",
            "B a",
            r"Bash(\(()",
            "Bash(a\u{1}b)",
            r"Bash\(ls)",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_formatted_rule_parses_to_the_same_content(content in r"[a-z()\\ .:]{1,12}") {
            proptest::prop_assume!(!content.trim().is_empty());
            let rule = parse(&write_rule("Bash", &content)).unwrap();
            proptest::prop_assert_eq!(rule.content.as_deref(), Some(content.as_str()));
        }
    }
}
