//! The outer form of a rule: `Tool` or `Tool(content)`.

/// A rule taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSyntax {
    /// The name before the parenthesis, as written.
    pub(crate) name: String,
    /// What stands in the parentheses, escapes resolved; `None` for a bare rule (also `Tool(*)`).
    pub(crate) content: Option<String>,
}

/// Why a rule is not of that form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSyntaxError {
    pub(crate) message: String,
    pub(crate) fix: String,
}

impl RuleSyntaxError {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { message: message.into(), fix: fix.into() }
    }
}

/// Takes a rule apart. The first plain `(` opens, the last plain `)` closes and must end the rule.
pub(crate) fn parse(text: &str) -> Result<RuleSyntax, RuleSyntaxError> {
    let text = text.trim();
    if text.chars().any(char::is_control) {
        return Err(RuleSyntaxError::new("the rule holds control characters", "remove them"));
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
            format!("write `{name}` for every use"),
        ));
    }
    let depth = unescaped_parens(content).try_fold(0i64, |depth, (_, c)| {
        let depth = if c == '(' { depth + 1 } else { depth - 1 };
        (depth >= 0).then_some(depth)
    });
    let escaped = unescaped_parens(content).count() != content.matches(['(', ')']).count();
    if escaped && depth != Some(0) {
        return Err(RuleSyntaxError::new(
            "escaped and unbalanced plain parentheses are mixed",
            "escape every parenthesis with `\\`",
        ));
    }
    let content = unescape(content);
    Ok(RuleSyntax { name: name.to_owned(), content: (content != "*").then_some(content) })
}

/// Writes a rule so that [`parse`] gives the same content back.
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

/// The parentheses that no backslash escapes.
fn unescaped_parens(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut escaped = false;
    text.char_indices().filter(move |(_, c)| {
        let plain = !escaped && matches!(c, '(' | ')');
        escaped = !escaped && *c == '\\';
        plain
    })
}

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

/// Names that people write without their capital letter. Such a rule would never match, and as a deny it would be
/// missed; any other lower-case name may be a tool of the embedding program.
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

fn check_name(name: &str) -> Result<(), RuleSyntaxError> {
    if name.is_empty() {
        return Err(RuleSyntaxError::new("the rule names no tool", "begin with the name of a tool"));
    }
    if let Some(odd) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*'))) {
        return Err(RuleSyntaxError::new(
            format!("`{odd}` cannot stand in the name of a tool"),
            "write `Tool` or `Tool(content)`",
        ));
    }
    if let Some(meant) =
        CAPITALISED_TOOL_NAMES.iter().find(|known| known.eq_ignore_ascii_case(name) && **known != name)
    {
        return Err(RuleSyntaxError::new(
            format!("no tool is called `{name}`"),
            format!("did you mean `{meant}`?"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(String, Option<String>), String> {
        parse(text).map(|form| (form.name, form.content)).map_err(|bad| bad.message)
    }

    #[test]
    fn rules_are_taken_apart() {
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
    fn anything_else_is_malformed() {
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
        fn what_is_written_is_read_back(content in r"[a-z()\\ .:]{1,12}") {
            proptest::prop_assume!(!content.trim().is_empty());
            let form = parse(&write_rule("Bash", &content)).unwrap();
            proptest::prop_assert_eq!(form.content.as_deref(), Some(content.as_str()));
        }
    }
}
