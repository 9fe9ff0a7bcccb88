//! Rules for command lines, from priorities to lists.
//!
//! A prefix becomes `Bash(prefix *)`. A regular expression becomes patterns with `*` if they match exactly the same
//! commands; otherwise a deny or ask rule searches for the expression anywhere in the line, which is stricter.

use super::regex_globs::regex_to_globs;
use super::{GeminiDecision, GeminiRule, StringOrList};
use crate::raw::RuleAction;
use crate::rule::syntax;
use serde_json::{Value, json};

/// Rules for command lines, strongest first.
#[derive(Debug, Default)]
pub(super) struct GeminiCommandRules {
    /// Rules for some commands.
    entries: Vec<GeminiCommandEntry>,
    /// The first rule for every command, with its line: no weaker rule applies.
    catch_all: Option<(RuleAction, usize)>,
}

/// One rule for some commands.
#[derive(Debug)]
struct GeminiCommandEntry {
    /// What it decides.
    action: RuleAction,
    /// Contents of `Bash` rules that match the same commands.
    patterns: Vec<String>,
    /// Its line, for notes.
    line: usize,
}

/// Commands that mode acceptEdits allows without a rule.
const ACCEPT_EDITS_COMMANDS: &[&str] = &["mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed", "ln"];

impl GeminiCommandRules {
    /// Adds a rule for command lines. An error says why it cannot be translated.
    pub(super) fn add(
        &mut self,
        rule: &GeminiRule,
        book: &mut Vec<Value>,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        let action = rule.decision.action();
        if self.catch_all.is_some() {
            notes.push("omitted: a stronger rule for every command always decides first".to_owned());
            return Ok(());
        }
        if rule.deny_message.is_some() {
            notes.push("the message is dropped: rules for commands have none".to_owned());
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
                self.catch_all = Some((action, rule.line));
                return Ok(());
            }
        };
        if let Some(rest) = expression.strip_prefix('^') {
            if rule.decision == GeminiDecision::Allow {
                notes.push(
                    "omitted: `^` never matches inside the input, so the rule never allowed anything"
                        .to_owned(),
                );
                return Ok(());
            }
            return self.add_expression(rule, rest, book, notes);
        }
        self.add_expression(rule, expression, book, notes)
    }

    /// Adds a rule for a regular expression, as patterns if there are equivalent ones.
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

    /// An expression without an equivalent pattern.
    fn add_opaque_expression(
        &mut self,
        rule: &GeminiRule,
        expression: &str,
        book: &mut Vec<Value>,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        if rule.decision == GeminiDecision::Allow {
            notes.push(format!("omitted: `{expression}` cannot be written as a command pattern"));
            return Ok(());
        }
        if regex::Regex::new(expression).is_err() || expression.contains('"') {
            return Err(format!("`{expression}` cannot be translated, so the rule would be lost"));
        }
        notes.push(format!("stricter: `{expression}` is searched anywhere in the line"));
        let out = json!({
            "tool": "Bash",
            "action": rule.decision.action().to_string(),
            "conditions": [{ "param": "command", "operator": "matches", "value": expression }],
        });
        book.push(out);
        Ok(())
    }

    /// The line of an ask rule for every command. toolgate asks by default, but mode bypass would skip that question.
    pub(super) fn default_ask_line(&self) -> Option<usize> {
        self.catch_all.filter(|(action, _)| *action == RuleAction::Ask).map(|(_, line)| line)
    }

    /// Adds the rules to the lists of `permissions`, and notes what became stricter.
    pub(super) fn finish(
        self,
        allow: &mut Vec<String>,
        ask: &mut Vec<String>,
        deny: &mut Vec<String>,
        notes: &mut Vec<(usize, String)>,
    ) {
        let allowed: Vec<(&String, usize)> = self
            .entries
            .iter()
            .filter(|entry| entry.action == RuleAction::Allow)
            .flat_map(|entry| entry.patterns.iter().map(|pattern| (pattern, entry.line)))
            .collect();
        match self.catch_all {
            Some((RuleAction::Allow, _)) => allow.push("Bash".to_owned()),
            Some((RuleAction::Ask, line)) => ask_about_accepted_edits(line, &allowed, ask, notes),
            Some((RuleAction::Deny, line)) => {
                deny.push("Bash".to_owned());
                for entry in self.entries.iter().filter(|entry| entry.action != RuleAction::Deny) {
                    let message = format!("stricter: the weaker rule on line {line} denies every command");
                    notes.push((entry.line, message));
                }
            }
            None => {}
        }
        for (at, entry) in self.entries.iter().enumerate() {
            let stronger = self.entries.get(..at).unwrap_or_default();
            for other in stronger.iter().filter(|other| other.action < entry.action && other.overlaps(entry))
            {
                let message = format!(
                    "stricter: the weaker rule on line {} takes precedence where both match",
                    entry.line
                );
                notes.push((other.line, message));
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

impl GeminiCommandEntry {
    /// Whether some command may match both rules.
    fn overlaps(&self, other: &Self) -> bool {
        self.patterns.iter().any(|one| other.patterns.iter().any(|two| may_overlap(one, two)))
    }
}

/// An ask rule for every command needs no rule, because toolgate asks by default, except for what mode acceptEdits
/// allows. `allowed` are the patterns of stronger allow rules, with their lines.
fn ask_about_accepted_edits(
    line: usize,
    allowed: &[(&String, usize)],
    ask: &mut Vec<String>,
    notes: &mut Vec<(usize, String)>,
) {
    for program in ACCEPT_EDITS_COMMANDS.iter().map(|program| format!("{program} *")) {
        if allowed.iter().any(|(pattern, _)| **pattern == program || *pattern == "*") {
            continue;
        }
        for (_, allowed_line) in allowed.iter().filter(|(pattern, _)| may_overlap(pattern, &program)) {
            let message = format!("stricter: the weaker rule on line {line} asks about `{program}`");
            notes.push((*allowed_line, message));
        }
        ask.push(bash_rule(&program));
    }
}

/// The text of a `Bash` rule.
fn bash_rule(content: &str) -> String {
    syntax::write_rule("Bash", content)
}

/// The contents of `Bash` rules for command prefixes.
fn prefix_patterns(prefixes: &StringOrList) -> Result<Vec<String>, String> {
    prefixes
        .texts()
        .into_iter()
        .map(|prefix| match prefix.trim() {
            "" => Err("`commandPrefix` is empty".to_owned()),
            // In the older form with `:*`, a `*` in the prefix is a literal character.
            prefix if prefix.contains('*') => Ok(format!("{prefix}:*")),
            prefix => Ok(format!("{prefix} *")),
        })
        .collect()
}

/// Whether some command may match both patterns. If that is not certain, the answer is yes.
fn may_overlap(one: &str, two: &str) -> bool {
    let head =
        |text: &str| text.split('*').next().unwrap_or_default().trim_end_matches(':').trim_end().to_owned();
    let (one, two) = (head(one), head(two));
    one.starts_with(&two) || two.starts_with(&one)
}
