//! Rules, parsed from their text for every question.

use super::field_text;
use super::generated_call::{GeneratedCall, GeneratedUrl};
use super::path::ReferencePathPattern;
use toolgate_policy::RuleAction;

/// A rule that applies.
#[derive(Debug, Clone)]
pub(super) struct ReferenceRule {
    /// What the rule decides.
    pub(super) action: RuleAction,
    /// The name of the tool, or a pattern for names.
    name: String,
    /// The text in parentheses; `None` for a bare name and for `(*)`.
    content: Option<String>,
    /// The directory where a pattern with a leading `/` starts.
    anchor: &'static str,
}

/// One entry of a rule list.
pub(super) enum ReferenceRuleEntry {
    /// A rule.
    Rule(ReferenceRule),
    /// A well-formed rule that matches nothing.
    NeverMatches,
    /// A text that is not a rule.
    Malformed,
}

/// Old names of tools.
const ALIASES: &[(&str, &str)] = &[("Task", "Agent"), ("KillShell", "TaskStop"), ("KillBash", "TaskStop")];

impl ReferenceRule {
    /// Parses an entry of a rule list.
    pub(super) fn parse(text: &str, action: RuleAction, anchor: &'static str) -> ReferenceRuleEntry {
        let (name, content) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(content) => (name, Some(content)),
                None => return ReferenceRuleEntry::Malformed,
            },
        };
        if name.is_empty() || name.contains(')') || content.is_some_and(|content| content.trim().is_empty()) {
            return ReferenceRuleEntry::Malformed;
        }
        if matches!(name, "bash" | "read" | "edit") {
            return ReferenceRuleEntry::Malformed;
        }
        let content = content.filter(|content| *content != "*").map(str::to_owned);
        let name = ALIASES.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
        if name.starts_with("mcp__") && content.as_ref().is_some_and(|content| !content.contains(':')) {
            return ReferenceRuleEntry::Malformed;
        }
        // A path rule of a tool is about the effect: every write, or every read.
        let name = match name {
            "Write" | "MultiEdit" | "NotebookEdit" if content.is_some() => "Edit",
            "Grep" | "Glob" | "LS" if content.is_some() => "Read",
            name => name,
        };
        let grants = action == RuleAction::Allow;
        if grants && name.contains('*') && !may_grant_by_glob(name) {
            return ReferenceRuleEntry::NeverMatches;
        }
        let rule = Self { action, name: name.to_owned(), content, anchor };
        if grants && rule.parameter().is_some() {
            return ReferenceRuleEntry::NeverMatches;
        }
        ReferenceRuleEntry::Rule(rule)
    }

    /// Returns the content of a rule for exactly this tool, if it is not a field.
    fn content_for_tool(&self, name: &str) -> Option<&str> {
        self.content.as_deref().filter(|_| self.name == name && self.parameter().is_none())
    }

    /// The rule has no content, and matches the tool of the call.
    pub(super) fn matches_tool(&self, call: &GeneratedCall) -> bool {
        if self.content.is_some() {
            return false;
        }
        let names = match self.action {
            RuleAction::Allow => call.names(),
            RuleAction::Ask | RuleAction::Deny => call.restricted_names(),
        };
        names.into_iter().any(|name| {
            matches_wildcard(&self.name, name)
                || (name.starts_with("mcp__") && matches_server(&self.name, name))
        })
    }

    /// The rule has no content, and matches this name.
    pub(super) fn is_bare(&self, name: &str) -> bool {
        self.content.is_none() && matches_wildcard(&self.name, name)
    }

    /// The field and value of a rule such as `Agent(model:big)`.
    fn parameter(&self) -> Option<(&str, &str)> {
        let (field, value) = self.content.as_deref()?.split_once(':')?;
        let is_field = match self.name.as_str() {
            "Bash" | "shell" => matches!(field, "run_in_background" | "background" | "timeout"),
            "Read" => matches!(field, "offset" | "startLine"),
            "Edit" | "edit_file" => matches!(field, "new_string" | "edits"),
            "Agent" => field == "model",
            name => name.starts_with("mcp__"),
        };
        is_field.then_some((field, value))
    }

    /// The rule is about a field of the input, and the field has the value.
    pub(super) fn matches_field(&self, call: &GeneratedCall) -> bool {
        let Some((field, value)) = self.parameter() else { return false };
        let is_for_tool = call.restricted_names().into_iter().any(|name| {
            name == self.name
                || (name.starts_with("mcp__")
                    && (matches_wildcard(&self.name, name) || matches_server(&self.name, name)))
        });
        is_for_tool
            && field_text::has_field_text(call, field, true, |found, is_string| {
                matches_wildcard(value, found)
                    || (!is_string && field_text::other_texts(value, true).iter().any(|text| text == found))
            })
    }

    /// The rule matches this simple command.
    pub(super) fn matches_command(&self, command: &str) -> bool {
        self.content_for_tool("Bash").is_some_and(|content| matches_command(content, command, self.action))
    }

    /// The rule is exactly this command, without a wildcard.
    pub(super) fn is_command(&self, command: &str) -> bool {
        self.content_for_tool("Bash") == Some(command) && !command.contains('*')
    }

    /// The rule is about paths or hosts, or about this program: it may match a command of which the effects are unknown.
    pub(super) fn may_match_program(&self, program: &str) -> bool {
        let Some(content) = &self.content else { return matches!(self.name.as_str(), "Read" | "Edit") };
        match self.name.as_str() {
            _ if self.parameter().is_some() => false,
            "Read" | "Edit" | "WebFetch" => true,
            "Bash" => {
                let first =
                    content.strip_suffix(":*").unwrap_or(content).split(' ').next().unwrap_or_default();
                first == program || first.contains('*')
            }
            _ => false,
        }
    }

    /// The rule of this name (`Read` or `Edit`) matches this path.
    pub(super) fn matches_path(&self, name: &str, path: &str) -> bool {
        match &self.content {
            None => self.name == name,
            Some(_) => self.pattern(name).is_some_and(|pattern| pattern.matches_path(path)),
        }
    }

    /// The pattern of a path rule.
    pub(super) fn pattern(&self, name: &str) -> Option<ReferencePathPattern> {
        let content = self.content_for_tool(name)?;
        Some(ReferencePathPattern::parse(content, self.anchor, self.action == RuleAction::Allow))
    }

    /// The rule matches this host and port.
    pub(super) fn matches_host(&self, address: &GeneratedUrl) -> bool {
        let Some(domain) =
            self.content_for_tool("WebFetch").and_then(|content| content.strip_prefix("domain:"))
        else {
            return false;
        };
        let (host, port) = match domain.split_once(':') {
            Some((host, port)) => (host, port.parse::<u16>().ok()),
            None => (domain, None),
        };
        let port_matches = match port {
            Some(port) => port == address.effective_port(),
            // A rule that restricts applies to every port, and so does one that allows a private host.
            None => {
                self.action != RuleAction::Allow
                    || matches!(address.effective_port(), 80 | 443)
                    || is_private(address.host)
            }
        };
        port_matches && matches_labels(host, address.host)
    }

    /// The rule names exactly this host, and this port if it names one.
    pub(super) fn is_host(&self, address: &GeneratedUrl) -> bool {
        let domain = self.content_for_tool("WebFetch").and_then(|content| content.strip_prefix("domain:"));
        domain.is_some_and(|domain| {
            let (host, port) = domain.split_once(':').unwrap_or((domain, ""));
            host == address.host && (port.is_empty() || port.parse() == Ok(address.effective_port()))
        })
    }

    /// The rule matches this type of agent.
    pub(super) fn matches_agent(&self, agent: &str) -> bool {
        self.content_for_tool("Agent") == Some(agent)
    }

    /// The rule matches this use of a skill.
    pub(super) fn matches_skill(&self, name: &str, args: Option<&str>) -> bool {
        self.content_for_tool("Skill").is_some_and(|content| match content.strip_suffix(" *") {
            Some(prefix) => prefix == name,
            // A rule that restricts a skill applies with and without arguments.
            None => content == name && (args.is_none() || self.action != RuleAction::Allow),
        })
    }
}

/// Whether an allow rule may have this pattern as its name: `mcp__server__glob` and `mcp__*__tool` may, others not.
pub(super) fn may_grant_by_glob(name: &str) -> bool {
    let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) else {
        return false;
    };
    !server.contains('*') || (server == "*" && !tool.contains('*'))
}

/// `mcp__server` means every tool of the server.
pub(super) fn matches_server(rule: &str, name: &str) -> bool {
    let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    server.is_some_and(|server| rule.strip_prefix("mcp__").is_some_and(|rule| matches_wildcard(rule, server)))
}

/// Whether a host is not of the public network, among those that are generated.
pub(super) fn is_private(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "10.0.0.7" | "169.254.169.254")
}

/// Matches a host with a pattern, label by label: a leading `*.` matches one or more labels, another `*` stays in its
/// label.
pub(super) fn matches_labels(pattern: &str, host: &str) -> bool {
    let host = host.to_lowercase();
    let host: Vec<&str> = host.trim_end_matches('.').split('.').collect();
    let pattern = pattern.to_lowercase();
    if let Some(rest) = pattern.strip_prefix("*.") {
        let rest: Vec<&str> = rest.split('.').collect();
        let below = host.len().saturating_sub(rest.len());
        return below > 0 && labels_match(&rest, host.get(below..).unwrap_or_default());
    }
    labels_match(&pattern.split('.').collect::<Vec<_>>(), &host)
}

/// Matches host labels one by one, so that a `*` never spans a dot.
fn labels_match(pattern: &[&str], host: &[&str]) -> bool {
    pattern.len() == host.len()
        && pattern.iter().zip(host).all(|(label, found)| matches_wildcard(label, found))
}

/// Matches a text with a pattern in which `*` matches any characters.
pub(super) fn matches_wildcard(pattern: &str, text: &str) -> bool {
    let pattern: Vec<(char, bool)> = pattern.chars().map(|c| (c, false)).collect();
    matches_chars(&pattern, &text.chars().collect::<Vec<_>>())
}

/// Matches a simple command with the content of a Bash rule.
fn matches_command(content: &str, command: &str, action: RuleAction) -> bool {
    if let Some(prefix) = content.strip_suffix(":*") {
        return command == prefix || command.starts_with(&format!("{prefix} "));
    }
    let pattern: Vec<(char, bool)> = content
        .char_indices()
        .map(|(at, c)| {
            let before = content.get(..at).unwrap_or_default();
            let word = before.rsplit([' ', '*']).next().unwrap_or_default();
            // In an allow rule, a `*` directly after a path or a URL stays in its word.
            (c, action == RuleAction::Allow && c == '*' && !before.ends_with(' ') && word.contains('/'))
        })
        .collect();
    let command: Vec<char> = command.chars().collect();
    if matches_chars(&pattern, &command) {
        return true;
    }
    // A final ` *` also matches nothing.
    content.ends_with(" *")
        && matches_chars(pattern.get(..pattern.len().saturating_sub(2)).unwrap_or_default(), &command)
}

/// Matches a text with a pattern, one character at a time. The flag of a `*` says that it does not match a blank.
fn matches_chars(pattern: &[(char, bool)], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((('*', in_word), rest)) => (0..=text.len())
            .take_while(|skip| !in_word || !text.get(..*skip).unwrap_or_default().contains(&' '))
            .any(|skip| matches_chars(rest, text.get(skip..).unwrap_or_default())),
        Some(((first, _), rest)) => {
            text.split_first().is_some_and(|(c, below)| c == first && matches_chars(rest, below))
        }
    }
}
