//! A small stand-in for the decision law, so that the analysis can be tested by what would come of it.

use toolgate_policy::Workspace;
use toolgate_proto::{AbsPath, CommandLine, Effect, ShellKind};
use toolgate_shell_syntax::{CommandAnalysis, CommandPart, DangerStanding, EffectOrigin, analyse};

/// What would come of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Allow,
    Ask,
    Deny,
}

/// The rules of a case, without their `Bash(…)`.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rules {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) denied_reads: Vec<String>,
    pub(crate) protected: Vec<String>,
    pub(crate) read_only: bool,
    /// The kernel limits what a command can read to what may be read.
    pub(crate) bounded: bool,
}

pub(crate) fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

pub(crate) fn workspace() -> Workspace {
    Workspace { cwd: path("/ws"), roots: vec![path("/ws")], home: Some(path("/home/ann")) }
}

pub(crate) fn line(text: &str) -> CommandLine {
    CommandLine { text: text.to_owned(), shell: ShellKind::Bash, cwd: path("/ws"), unsandboxed: false }
}

pub(crate) fn analysed(text: &str) -> CommandAnalysis {
    analyse(&line(text), &workspace())
}

/// `*` is any text; a rule that ends with ` *` also matches without it.
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

fn sensitive(path: &AbsPath) -> bool {
    path.file_name().is_some_and(|name| name == ".env") || path.to_string().contains("/.ssh/")
}

fn covered(part: &CommandPart, rules: &Rules) -> bool {
    let Some(text) = &part.allow_text else { return false };
    text.is_empty()
        || rules.allow.iter().any(|rule| {
            let exact = rule == text || *rule == part.text;
            exact || (part.plain && rule.contains('*') && matches(rule, text))
        })
}

pub(crate) fn judge(analysis: &CommandAnalysis, rules: &Rules) -> Answer {
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
    let every = analysis.parts.iter().all(|part| {
        let by_rule = covered(part, rules);
        let free = rules.read_only && part.read_only && (!part.reads_unknown_paths || rules.bounded);
        let effects = part.effects.iter().all(|inferred| match &inferred.effect {
            Effect::Read { path, .. } => path.lexical().is_under(&root) && !sensitive(path),
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
    if every { Answer::Allow } else { Answer::Ask }
}
