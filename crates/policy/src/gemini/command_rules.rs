//! Rules on commands, from priorities to lists.
//!
//! A prefix becomes `Bash(prefix *)`. A regular expression becomes patterns with `*` where that says exactly the same;
//! else a rule that holds back looks for the expression anywhere in the line, which is stricter.

use super::{GeminiDecision, GeminiRule, StringOrList, bash_rule};
use crate::raw::RuleAction;
use serde_json::{Value, json};

/// What is known of commands so far, strongest first.
#[derive(Debug, Default)]
pub(super) struct GeminiCommandRules {
    entries: Vec<GeminiCommandEntry>,
    /// A rule for every command: nothing below it counts.
    closed: Option<(RuleAction, usize)>,
}

#[derive(Debug)]
struct GeminiCommandEntry {
    action: RuleAction,
    /// Contents of Bash rules.
    patterns: Vec<String>,
    line: usize,
}

/// Most patterns that one expression may become.
const MAX_PATTERNS: usize = 64;

/// Commands that mode acceptEdits frees although no rule allows them.
const ACCEPT_EDITS_COMMANDS: &[&str] = &["mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed", "ln"];

impl GeminiCommandRules {
    /// Takes a rule on commands. An error says why it cannot be kept.
    pub(super) fn add(
        &mut self,
        rule: &GeminiRule,
        book: &mut Vec<Value>,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        let action = rule.decision.action();
        if self.closed.is_some() {
            notes.push("left out: a stronger rule decides about every command before it".to_owned());
            return Ok(());
        }
        if rule.deny_message.is_some() {
            notes.push("the message is not kept: rules on commands have none".to_owned());
        }
        let expression = match (&rule.command_prefix, &rule.command_regex, &rule.args_pattern) {
            (Some(prefixes), _, _) => {
                let patterns = prefix_patterns(prefixes)?;
                self.entries.push(GeminiCommandEntry { action, patterns, line: rule.line });
                return Ok(());
            }
            (None, Some(expression), _) => expression.as_str(),
            (None, None, Some(pattern)) => match pattern.strip_prefix("\"command\":\"") {
                Some(expression) => expression,
                None => return self.add_opaque_expression(rule, pattern, book, notes),
            },
            (None, None, None) => {
                self.closed = Some((action, rule.line));
                return Ok(());
            }
        };
        if let Some(rest) = expression.strip_prefix('^') {
            if rule.decision == GeminiDecision::Allow {
                notes.push(
                    "left out: `^` never matches inside the input, so it never allowed anything".to_owned(),
                );
                return Ok(());
            }
            return self.add_expression(rule, rest, book, notes);
        }
        self.add_expression(rule, expression, book, notes)
    }

    fn add_expression(
        &mut self,
        rule: &GeminiRule,
        expression: &str,
        book: &mut Vec<Value>,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        match regex_to_globs(expression, rule.decision == GeminiDecision::Allow) {
            Some(patterns) => {
                self.entries.push(GeminiCommandEntry {
                    action: rule.decision.action(),
                    patterns,
                    line: rule.line,
                });
                Ok(())
            }
            None => self.add_opaque_expression(rule, expression, book, notes),
        }
    }

    /// An expression that is no pattern of ours.
    fn add_opaque_expression(
        &mut self,
        rule: &GeminiRule,
        expression: &str,
        book: &mut Vec<Value>,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        if rule.decision == GeminiDecision::Allow {
            notes.push(format!("left out: `{expression}` cannot be written as a command pattern"));
            return Ok(());
        }
        if regex::Regex::new(expression).is_err() || expression.contains('"') {
            return Err(format!("`{expression}` cannot be kept, so what it holds back would be lost"));
        }
        notes.push(format!("stricter: `{expression}` is looked for anywhere in the line"));
        let out = json!({
            "tool": "Bash",
            "action": rule.decision.action().to_string(),
            "conditions": [{ "param": "command", "operator": "matches", "value": expression }],
        });
        book.push(out);
        Ok(())
    }

    /// Whether questions are left to the default, which mode bypass skips.
    pub(super) fn default_ask_line(&self) -> Option<usize> {
        self.closed.filter(|(action, _)| *action == RuleAction::Ask).map(|(_, line)| line)
    }

    /// Writes the lists.
    pub(super) fn finish(
        self,
        allow: &mut Vec<String>,
        ask: &mut Vec<String>,
        deny: &mut Vec<String>,
        notes: &mut Vec<(usize, String)>,
    ) {
        let granted: Vec<(&String, usize)> = self
            .entries
            .iter()
            .filter(|entry| entry.action == RuleAction::Allow)
            .flat_map(|entry| entry.patterns.iter().map(|pattern| (pattern, entry.line)))
            .collect();
        match self.closed {
            Some((RuleAction::Allow, _)) => allow.push("Bash".to_owned()),
            Some((RuleAction::Ask, line)) => {
                // Whatever no rule allows asks anyway, but for what mode acceptEdits frees.
                for program in ACCEPT_EDITS_COMMANDS.iter().map(|program| format!("{program} *")) {
                    if granted.iter().any(|(pattern, _)| **pattern == program || *pattern == "*") {
                        continue;
                    }
                    for (_, granted) in granted.iter().filter(|(pattern, _)| may_overlap(pattern, &program)) {
                        let message =
                            format!("stricter: the weaker rule on line {line} asks about `{program}`");
                        notes.push((*granted, message));
                    }
                    ask.push(bash_rule(&program));
                }
            }
            Some((RuleAction::Deny, line)) => {
                deny.push("Bash".to_owned());
                for entry in self.entries.iter().filter(|entry| entry.action != RuleAction::Deny) {
                    let message =
                        format!("stricter: the weaker rule on line {line} denies every command here");
                    notes.push((entry.line, message));
                }
            }
            None => {}
        }
        for (at, entry) in self.entries.iter().enumerate() {
            let stronger = self.entries.get(..at).unwrap_or_default();
            for other in stronger.iter().filter(|other| other.action < entry.action) {
                let meet =
                    other.patterns.iter().any(|one| entry.patterns.iter().any(|two| may_overlap(one, two)));
                if meet {
                    let message = format!(
                        "stricter: the weaker rule on line {} comes first where both fit",
                        entry.line
                    );
                    notes.push((other.line, message));
                }
            }
            let list = match entry.action {
                RuleAction::Allow => &mut *allow,
                RuleAction::Ask => &mut *ask,
                RuleAction::Deny => &mut *deny,
            };
            list.extend(entry.patterns.iter().map(|pattern| bash_rule(pattern)));
        }
    }
}

fn prefix_patterns(prefixes: &StringOrList) -> Result<Vec<String>, String> {
    prefixes
        .texts()
        .into_iter()
        .map(|prefix| match prefix.trim() {
            "" => Err("an empty `commandPrefix` names no command".to_owned()),
            // The older form takes a star for a star.
            prefix if prefix.contains('*') => Ok(format!("{prefix}:*")),
            prefix => Ok(format!("{prefix} *")),
        })
        .collect()
}

/// Whether some command may fit both. Doubt counts as yes.
fn may_overlap(one: &str, two: &str) -> bool {
    let head =
        |text: &str| text.split('*').next().unwrap_or_default().trim_end_matches(':').trim_end().to_owned();
    let (one, two) = (head(one), head(two));
    one.starts_with(&two) || two.starts_with(&one)
}

/// The patterns that say the same as an expression at the start of a command, if there are such.
/// `exactly`: they may take nothing more.
fn regex_to_globs(expression: &str, exactly: bool) -> Option<Vec<String>> {
    let mut out = vec![String::new()];
    let mut chars = expression.chars().peekable();
    let mut ended = false;
    while let Some(c) = chars.next() {
        if ended {
            return None;
        }
        let mut choices: Vec<String> = match c {
            '$' | '"' => {
                ended = true;
                continue;
            }
            '.' => match chars.next() {
                Some('*') => vec!["*".to_owned()],
                Some('+') if !exactly => vec!["*".to_owned()],
                _ => return None,
            },
            '(' => {
                if chars.peek() == Some(&'?') {
                    chars.next();
                    if chars.next() != Some(':') {
                        return None;
                    }
                }
                let mut group = String::new();
                loop {
                    match chars.next()? {
                        ')' => break,
                        '\\' => {
                            group.push('\\');
                            group.push(chars.next()?);
                        }
                        c => group.push(c),
                    }
                }
                group.split('|').map(unescape_literal).collect::<Option<_>>()?
            }
            '\\' => match chars.next()? {
                's' => {
                    if chars.peek() == Some(&'+') {
                        chars.next();
                    }
                    vec![" ".to_owned()]
                }
                c if c.is_ascii_alphanumeric() => return None,
                '*' => return None,
                c => vec![c.to_string()],
            },
            '*' | '+' | '?' | '[' | ']' | '{' | '}' | ')' | '|' | '^' => return None,
            c => vec![c.to_string()],
        };
        match chars.peek() {
            Some('?') => {
                chars.next();
                choices.push(String::new());
            }
            Some('*' | '+' | '{') => return None,
            Some(_) | None => {}
        }
        out =
            out.iter().flat_map(|head| choices.iter().map(move |choice| format!("{head}{choice}"))).collect();
        if out.len() > MAX_PATTERNS {
            return None;
        }
    }
    let finish = |pattern: String| match ended || pattern.ends_with('*') {
        true => pattern,
        false => format!("{pattern}*"),
    };
    let out: Vec<String> = out.into_iter().map(finish).collect();
    // A pattern that ends in `:*` or ` *` would be read as a prefix that ends at a word.
    let readable =
        |pattern: &String| !pattern.trim().is_empty() && !pattern.ends_with(":*") && !pattern.ends_with(" *");
    let wider = |pattern: &String| !exactly && pattern.ends_with(" *");
    out.iter().all(|pattern| readable(pattern) || wider(pattern)).then_some(out)
}

/// Text without anything that means more than itself.
fn unescape_literal(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                c if c.is_ascii_alphanumeric() || c == '*' => return None,
                c => out.push(c),
            },
            '.' | '*' | '+' | '?' | '[' | ']' | '{' | '}' | '(' | ')' | '^' | '$' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}
