//! Lints of valid rules: shadowed by another rule, repeated, broader or narrower than they look.

use crate::compile::{CompiledPolicy, RuleEntry};
use crate::raw::{LayerRules, ProblemSeverity, RawRule, RuleAction, RuleProblem};
use crate::rule::command::CommandPattern;
use crate::rule::doubtful_anchor::doubtful_anchor;
use crate::rule::syntax;
use crate::rule::tool::{ToolPattern, family};
use crate::rule::{PermissionRule, PermissionRuleKind};
use std::collections::HashMap;
use toolgate_proto::RuleRef;
use toolgate_proto::host_pattern::HostPattern;

/// Programs that run any code or change any file that their arguments name: a prefix rule for one allows everything.
pub(crate) const ARBITRARY_CODE_RUNNERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "fish",
    "ksh",
    "csh",
    "tcsh",
    "pwsh",
    "powershell",
    "cmd",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "rscript",
    "julia",
    "osascript",
    "sudo",
    "doas",
    "su",
    "env",
    "xargs",
    "eval",
    "exec",
    "source",
    ".",
    "command",
    "builtin",
    "nohup",
    "timeout",
    "nice",
    "time",
    "stdbuf",
    "setsid",
    "watch",
    "flock",
    "ionice",
    "chroot",
    "unshare",
    "nsenter",
    "ssh",
    "parallel",
    "npx",
    "bunx",
    "pnpx",
    "uvx",
    "find",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "git",
    "docker",
    "podman",
    "kubectl",
    "make",
    "rm",
    "curl",
    "wget",
    "dd",
    "chmod",
    "chown",
    "busybox",
    "toybox",
    "gdb",
    "strace",
    "script",
    "expect",
    "tee",
    "ln",
    "crontab",
    "at",
];

/// A problem of weight [`ProblemSeverity::Note`].
pub(crate) fn note(rule: RuleRef, message: &str, fix: &str) -> RuleProblem {
    RuleProblem { rule, weight: ProblemSeverity::Note, message: message.to_owned(), fix: fix.to_owned() }
}

/// A problem of weight [`ProblemSeverity::Warning`].
pub(crate) fn warning(rule: RuleRef, message: &str, fix: &str) -> RuleProblem {
    RuleProblem { rule, weight: ProblemSeverity::Warning, message: message.to_owned(), fix: fix.to_owned() }
}

/// Lints of one rule by itself: message and fix of each.
pub(crate) fn lint_rule(
    rule: &PermissionRule,
    action: RuleAction,
) -> [Option<(&'static str, &'static str)>; 2] {
    let broad = if action == RuleAction::Allow { over_broad_reason(rule) } else { None };
    let caution = match rule {
        PermissionRule::Command(pattern) => pattern.caution(action),
        PermissionRule::Tool(_)
        | PermissionRule::Mcp(_)
        | PermissionRule::Path(_)
        | PermissionRule::Domain(_)
        | PermissionRule::Agent(_)
        | PermissionRule::Skill(_)
        | PermissionRule::Param(_)
        | PermissionRule::Never(_) => None,
    };
    [broad, caution]
}

/// The warning about a deny or ask rule for a path that probably starts at the wrong directory.
pub(crate) fn lint_anchor(
    layer: &LayerRules,
    action: RuleAction,
    parsed: &PermissionRule,
    rule: &RawRule,
) -> Option<RuleProblem> {
    if action == RuleAction::Allow || !matches!(parsed, PermissionRule::Path(_)) {
        return None;
    }
    let (message, fix) = doubtful_anchor(&rule.text, layer.layer, &layer.anchor)?;
    Some(warning(layer.reference(action, rule), &message, &fix))
}

/// The warning about a deny or ask rule for a program, a subcommand or options without arguments: `Bash(rm)` does not match
/// `rm x`, and `Bash(rm -rf)` not `rm -rf x`. There is none if another rule covers the arguments.
fn over_exact_warning(compiled: &CompiledPolicy, entry: &RuleEntry) -> Option<RuleProblem> {
    if entry.action == RuleAction::Allow
        || entry.kind != PermissionRuleKind::Command
        || entry.text.contains('*')
    {
        return None;
    }
    let rule = syntax::parse(&entry.text).ok()?;
    let content = rule.content?;
    let words: Vec<&str> = content.split_whitespace().collect();
    let is_plain =
        |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let names = words.iter().filter(|word| !word.starts_with('-')).count();
    if names > 2 || !words.iter().all(is_plain) {
        return None;
    }
    let with_arguments = format!("{} x", words.join(" "));
    let is_covered = [&compiled.deny, &compiled.ask]
        .into_iter()
        .any(|index| index.commands.find_wildcard(&with_arguments).is_some());
    (!is_covered && compiled.deny.tools.find_restricted_name("Bash").is_none()).then(|| {
        let message = format!("the rule matches `{content}` without arguments only");
        let fix = format!("did you mean `{}`?", syntax::write_rule(&rule.name, &format!("{content} *")));
        warning(compiled.entry_reference(entry), &message, &fix)
    })
}

/// Lints that compare rules with each other.
pub(crate) fn lint_all_rules(compiled: &CompiledPolicy, problems: &mut Vec<RuleProblem>) {
    let mut strictest: HashMap<&str, (&RuleEntry, usize)> = HashMap::with_capacity(compiled.rules.len());
    for entry in compiled.rules.iter() {
        let seen = strictest.entry(entry.text.trim()).or_insert((entry, 0));
        seen.1 += 1;
        if entry.action > seen.0.action {
            seen.0 = entry;
        }
    }
    for entry in compiled.rules.iter() {
        let Some((first, count)) = strictest.get(entry.text.trim()) else { continue };
        let stronger = if first.action > entry.action {
            Some(compiled.entry_reference(first))
        } else {
            shadowing_name_rule(compiled, entry)
        };
        if let Some(stronger) = stronger {
            let message = format!("the rule has no effect: the {stronger} takes precedence");
            problems.push(warning(compiled.entry_reference(entry), &message, "remove one of the two"));
        } else if *count > 1 && first.action == entry.action && !std::ptr::eq(*first, entry) {
            let rule = compiled.entry_reference(entry);
            problems.push(note(rule, "the rule is listed twice", "remove one of the two"));
        }
        problems.extend(over_exact_warning(compiled, entry));
    }
}

/// The deny rule for a whole tool that makes a rule for the same tool useless.
fn shadowing_name_rule(compiled: &CompiledPolicy, entry: &RuleEntry) -> Option<RuleRef> {
    if entry.action == RuleAction::Deny {
        return None;
    }
    let name = match entry.kind {
        PermissionRuleKind::Command => "Bash",
        PermissionRuleKind::Domain => "WebFetch",
        PermissionRuleKind::Agent => "Agent",
        PermissionRuleKind::Skill => "Skill",
        PermissionRuleKind::Read => "Read",
        PermissionRuleKind::Edit => "Edit",
        PermissionRuleKind::Other => return None,
    };
    compiled.deny.tools.find_restricted_name(name).and_then(|id| compiled.reference(id))
}

/// Why an allow rule allows more than its author probably meant: message and fix.
pub(crate) fn over_broad_reason(rule: &PermissionRule) -> Option<(&'static str, &'static str)> {
    match rule {
        PermissionRule::Tool(ToolPattern::Name(name)) => match family(name) {
            "Bash" => Some(("the rule allows every command", "name the commands: `Bash(npm run *)`")),
            "WebFetch" => {
                Some(("the rule allows every host", "name the hosts: `WebFetch(domain:example.com)`"))
            }
            "Edit" => Some(("the rule allows writing every file", "name the directories: `Edit(src/**)`")),
            _ => None,
        },
        PermissionRule::Command(CommandPattern::Prefix(prefix)) => (!prefix.contains(' ')
            && ARBITRARY_CODE_RUNNERS.contains(&prefix.rsplit('/').next().unwrap_or(prefix)))
        .then_some(("the program can run any code or change any file", "name the subcommand or the script")),
        PermissionRule::Domain(pattern) if pattern.hosts == HostPattern::Every => {
            Some(("the rule allows every host", "name the hosts"))
        }
        PermissionRule::Path(pattern) if matches!(pattern.folded_text.as_str(), "" | "**") => {
            Some(("the rule allows every path", "name the directories"))
        }
        PermissionRule::Mcp(pattern) if pattern.has_wildcard_server() => {
            Some(("the rule allows a tool of this name on every server", "name the server"))
        }
        PermissionRule::Tool(ToolPattern::Glob(_))
        | PermissionRule::Command(
            CommandPattern::Exact(_) | CommandPattern::Wild { .. } | CommandPattern::Quoted(_),
        )
        | PermissionRule::Domain(_)
        | PermissionRule::Path(_)
        | PermissionRule::Mcp(_)
        | PermissionRule::Agent(_)
        | PermissionRule::Skill(_)
        | PermissionRule::Param(_)
        | PermissionRule::Never(_) => None,
    }
}
