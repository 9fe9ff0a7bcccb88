//! A small model of the policy, with which tests judge an analysis without the policy crate.

use toolgate_policy::Workspace;
use toolgate_proto::{AbsPath, CommandLine, Effect, ShellKind};
use toolgate_shell_syntax::{CommandAnalysis, CommandPart, DangerStanding, EffectOrigin, analyse};

/// The verdict on a line, from the least to the most strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// It runs without an approval.
    Allow,
    /// It needs an approval.
    Ask,
    /// It is denied.
    Deny,
}

/// The rules of a case.
#[derive(Debug, Default, Clone)]
pub(crate) struct SimpleRules {
    /// Patterns of `Bash(…)` rules that allow.
    pub(crate) allow: Vec<String>,
    /// Patterns of `Bash(…)` rules that deny.
    pub(crate) deny: Vec<String>,
    /// Paths of `Read(…)` rules that deny.
    pub(crate) denied_reads: Vec<String>,
    /// Directories that no rule for a command may change.
    pub(crate) protected: Vec<String>,
    /// Read-only commands need no rule.
    pub(crate) read_only: bool,
    /// The kernel limits what a command can read.
    pub(crate) bounded: bool,
}

/// An absolute path.
pub(crate) fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

/// The workspace of all cases.
pub(crate) fn workspace() -> Workspace {
    Workspace::new(path("/ws")).with_home(path("/home/ann"))
}

/// A bash command line in the workspace.
pub(crate) fn line(text: &str) -> CommandLine {
    CommandLine::new(text, ShellKind::Bash, path("/ws"))
}

/// The analysis of a line in the workspace.
pub(crate) fn analysed(text: &str) -> CommandAnalysis {
    analyse(&line(text), &workspace())
}

/// Whether a pattern matches a text: `*` is any text, and ` *` at the end may be missing.
pub(crate) fn matches(rule: &str, text: &str) -> bool {
    let rule = rule.strip_suffix(":*").map_or(rule.to_owned(), |prefix| format!("{prefix} *"));
    if rule.strip_suffix(" *").is_some_and(|prefix| prefix == text) {
        return true;
    }
    let pieces: Vec<&str> = rule.split('*').collect();
    let Some((first, rest)) = pieces.split_first() else { return false };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let Some((last, middle)) = rest.split_last() else { return text.is_empty() };
    for piece in middle {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

/// Whether a path has a sensitive name.
fn is_sensitive(path: &AbsPath) -> bool {
    path.file_name().is_some_and(|name| name == ".env") || path.to_string().contains("/.ssh/")
}

/// Whether an allow rule covers a part.
fn is_covered(part: &CommandPart, rules: &SimpleRules) -> bool {
    let Some(text) = &part.allow_text else { return false };
    text.is_empty()
        || rules.allow.iter().any(|rule| {
            let exact = rule == text || *rule == part.text;
            let restricted = rule == "*" && part.runs_code && !rules.deny.is_empty();
            exact || (part.plain && !restricted && rule.contains('*') && matches(rule, text))
        })
}

/// Judges an analysis by the rules.
pub(crate) fn judge(analysis: &CommandAnalysis, rules: &SimpleRules) -> Answer {
    let root = path("/ws");
    for part in &analysis.parts {
        if part.deny_texts.iter().any(|text| rules.deny.iter().any(|rule| matches(rule, text))) {
            return Answer::Deny;
        }
        for inferred in &part.effects {
            if let Effect::Read { path, .. } = &inferred.effect
                && rules.denied_reads.iter().any(|denied| root.join(denied) == path.lexical())
            {
                return Answer::Deny;
            }
        }
    }
    let binding = analysis.dangers.iter().any(|danger| danger.standing == DangerStanding::Binding);
    if binding || analysis.doubt.is_some() {
        return Answer::Ask;
    }
    let all_allowed = analysis.parts.iter().all(|part| {
        let by_rule = is_covered(part, rules);
        let free = rules.read_only
            && part.read_only
            && part.option_globs.is_empty()
            && (!part.reads_unknown_paths || rules.bounded);
        let effects = part.effects.iter().all(|inferred| match &inferred.effect {
            Effect::Read { path, .. } => path.lexical().is_under(&root) && !is_sensitive(path),
            Effect::Write { path, .. } => {
                inferred.origin != EffectOrigin::Redirect
                    && by_rule
                    && path.lexical().is_under(&root)
                    && !rules.protected.iter().any(|name| path.lexical().is_under(&root.join(name)))
            }
            _ => by_rule,
        });
        (by_rule || free) && effects
    });
    if all_allowed { Answer::Allow } else { Answer::Ask }
}
