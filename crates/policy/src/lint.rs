//! What is odd about rules that can be read: shadowed, repeated, over-broad.

use crate::compile::{CompiledPolicy, RuleEntry};
use crate::raw::{ProblemSeverity, RuleAction, RuleProblem};
use crate::rule::bash::CommandPattern;
use crate::rule::tool::{ToolPattern, family};
use crate::rule::{PermissionRule, PermissionRuleKind};
use std::collections::HashMap;
use toolgate_proto::RuleRef;
use toolgate_proto::host_pattern::HostPattern;

/// Programs that run whatever they are given: a prefix rule for one allows everything.
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

pub(crate) fn note(rule: RuleRef, message: &str, fix: &str) -> RuleProblem {
    RuleProblem { rule, weight: ProblemSeverity::Note, message: message.to_owned(), fix: fix.to_owned() }
}

pub(crate) fn warning(rule: RuleRef, message: &str, fix: &str) -> RuleProblem {
    RuleProblem { rule, weight: ProblemSeverity::Warning, message: message.to_owned(), fix: fix.to_owned() }
}

/// What is odd about a rule by itself.
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
        | PermissionRule::Never(..) => None,
    };
    [broad, caution]
}

/// Looks over all rules together.
pub(crate) fn lint_all_rules(compiled: &CompiledPolicy, problems: &mut Vec<RuleProblem>) {
    let mut strictest: HashMap<&str, (&RuleEntry, usize)> = HashMap::with_capacity(compiled.rules.len());
    for written in &compiled.rules {
        let seen = strictest.entry(written.text.trim()).or_insert((written, 0));
        seen.1 += 1;
        if written.action > seen.0.action {
            seen.0 = written;
        }
    }
    for written in &compiled.rules {
        let Some((first, count)) = strictest.get(written.text.trim()) else { continue };
        let by = if first.action > written.action {
            Some(compiled.entry_reference(first))
        } else {
            shadowed_by_name(compiled, written)
        };
        if let Some(by) = by {
            let message = format!("the rule has no effect, because of the {by}");
            problems.push(warning(compiled.entry_reference(written), &message, "remove one of the two"));
        } else if *count > 1 && first.action == written.action && !std::ptr::eq(*first, written) {
            let rule = compiled.entry_reference(written);
            problems.push(note(rule, "the rule stands here twice", "remove one of the two"));
        }
    }
}

/// A bare deny for the tool makes every other rule for it idle.
fn shadowed_by_name(compiled: &CompiledPolicy, written: &RuleEntry) -> Option<RuleRef> {
    if written.action == RuleAction::Deny {
        return None;
    }
    let name = match written.kind {
        PermissionRuleKind::Command => "Bash",
        PermissionRuleKind::Domain => "WebFetch",
        PermissionRuleKind::Agent => "Agent",
        PermissionRuleKind::Skill => "Skill",
        PermissionRuleKind::Read => "Read",
        PermissionRuleKind::Edit => "Edit",
        PermissionRuleKind::Other => return None,
    };
    compiled.deny.tools.find_name(name).and_then(|id| compiled.reference(id))
}

/// Why an allow rule lets more pass than people tend to mean.
pub(crate) fn over_broad_reason(rule: &PermissionRule) -> Option<(&'static str, &'static str)> {
    match rule {
        PermissionRule::Tool(ToolPattern::Name(name)) => match family(name) {
            "Bash" => Some(("every command is allowed", "name the commands: `Bash(npm run *)`")),
            "WebFetch" => Some(("every host is allowed", "name the hosts: `WebFetch(domain:example.com)`")),
            "Edit" => Some(("every file may be changed", "name the directories: `Edit(src/**)`")),
            _ => None,
        },
        PermissionRule::Command(CommandPattern::Prefix(prefix)) => (!prefix.contains(' ')
            && ARBITRARY_CODE_RUNNERS.contains(&prefix.rsplit('/').next().unwrap_or(prefix)))
        .then_some(("the program can run or change anything", "name the sub-command or the script")),
        PermissionRule::Domain(pattern) if pattern.hosts == HostPattern::Every => {
            Some(("every host is allowed", "name the hosts"))
        }
        PermissionRule::Path(pattern) if matches!(pattern.folded_text.as_str(), "" | "**") => {
            Some(("every path is allowed", "name the directories"))
        }
        PermissionRule::Mcp(pattern) if pattern.has_wildcard_server() => {
            Some(("a tool of this name is allowed on every server", "name the server"))
        }
        PermissionRule::Tool(ToolPattern::Glob(_))
        | PermissionRule::Command(CommandPattern::Exact(_) | CommandPattern::Wild { .. })
        | PermissionRule::Domain(_)
        | PermissionRule::Path(_)
        | PermissionRule::Mcp(_)
        | PermissionRule::Agent(_)
        | PermissionRule::Skill(_)
        | PermissionRule::Param(_)
        | PermissionRule::Never(..) => None,
    }
}
