//! What is odd about rules that can be read: shadowed, repeated, over-broad.

use crate::compile::Compiled;
use crate::raw::{Action, Problem, Weight};
use crate::rule::Rule;
use crate::rule::bash::CommandPattern;
use crate::rule::domain::Hosts;
use crate::rule::tool::{ToolPattern, family};
use std::collections::HashMap;
use toolgate_proto::RuleRef;

/// Programs that run whatever they are given: a prefix rule for one allows everything.
pub(crate) const RUNS_ANYTHING: &[&str] = &[
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

pub(crate) fn note(rule: RuleRef, message: &str, fix: &str) -> Problem {
    Problem { rule, weight: Weight::Note, message: message.to_owned(), fix: fix.to_owned() }
}

pub(crate) fn warning(rule: RuleRef, message: &str, fix: &str) -> Problem {
    Problem { rule, weight: Weight::Warning, message: message.to_owned(), fix: fix.to_owned() }
}

/// Looks over all rules together.
pub(crate) fn look_over(compiled: &Compiled, problems: &mut Vec<Problem>) {
    let mut first: HashMap<(&str, &str), &RuleRef> = HashMap::with_capacity(compiled.references.len());
    let texts = compiled.references.iter().map(|reference| (reference.text.trim(), reference));
    for (text, reference) in texts.clone() {
        first.entry((text, reference.action.as_str())).or_insert(reference);
    }
    for (reference, rule) in compiled.references.iter().zip(&compiled.rules) {
        let text = reference.text.trim();
        let stricter: &[&str] = match reference.action.as_str() {
            "allow" => &["deny", "ask"],
            "ask" => &["deny"],
            _ => &[],
        };
        if let Some(by) = stricter.iter().find_map(|action| first.get(&(text, *action))) {
            problems.push(warning(
                reference.clone(),
                &format!("the rule has no effect, because of the {by}"),
                "remove one of the two",
            ));
        } else if let Some(by) = shadowed_by_name(compiled, reference, rule) {
            problems.push(warning(
                reference.clone(),
                &format!("the rule has no effect, because of the {by}"),
                "remove one of the two",
            ));
        } else if first
            .get(&(text, reference.action.as_str()))
            .is_some_and(|own| !std::ptr::eq(*own, reference))
        {
            problems.push(note(reference.clone(), "the rule stands here twice", "remove one of the two"));
        }
        if reference.action == "allow"
            && let Some((message, fix)) = over_broad(rule)
        {
            problems.push(note(reference.clone(), message, fix));
        }
        if let Rule::Command(pattern) = rule {
            let action = if reference.action == "allow" { Action::Allow } else { Action::Deny };
            if let Some((message, fix)) = pattern.caution(action) {
                problems.push(note(reference.clone(), message, fix));
            }
        }
    }
}

/// A bare deny for the tool makes every other rule for it idle.
fn shadowed_by_name<'c>(compiled: &'c Compiled, reference: &RuleRef, rule: &Rule) -> Option<&'c RuleRef> {
    if reference.action == "deny" {
        return None;
    }
    let name = match rule {
        Rule::Command(_) => "Bash",
        Rule::Domain(_) => "WebFetch",
        Rule::Agent(_) => "Agent",
        Rule::Skill(_) => "Skill",
        Rule::Path(pattern) => match pattern.usage {
            crate::rule::path::PathUse::Read => "Read",
            crate::rule::path::PathUse::Edit => "Edit",
        },
        Rule::Tool(ToolPattern::Name(name)) => family(name),
        Rule::Tool(ToolPattern::Glob(_)) | Rule::Mcp(_) | Rule::Param(_) | Rule::Never(..) => return None,
    };
    compiled.deny.tools.find_name(name).and_then(|id| compiled.reference(id))
}

/// Why an allow rule lets more pass than people tend to mean.
pub(crate) fn over_broad(rule: &Rule) -> Option<(&'static str, &'static str)> {
    match rule {
        Rule::Tool(ToolPattern::Name(name)) => match family(name) {
            "Bash" => Some(("every command is allowed", "name the commands: `Bash(npm run *)`")),
            "WebFetch" => Some(("every host is allowed", "name the hosts: `WebFetch(domain:example.com)`")),
            "Edit" => Some(("every file may be changed", "name the directories: `Edit(src/**)`")),
            _ => None,
        },
        Rule::Command(CommandPattern::Prefix(prefix)) => (!prefix.contains(' ')
            && RUNS_ANYTHING.contains(&prefix.rsplit('/').next().unwrap_or(prefix)))
        .then_some(("the program can run or change anything", "name the sub-command or the script")),
        Rule::Domain(pattern) if pattern.hosts == Hosts::Every => {
            Some(("every host is allowed", "name the hosts"))
        }
        Rule::Path(pattern) if matches!(pattern.spoken.as_str(), "" | "**") => {
            Some(("every path is allowed", "name the directories"))
        }
        Rule::Mcp(pattern) if pattern.leaves_server_open() => {
            Some(("a tool of this name is allowed on every server", "name the server"))
        }
        Rule::Tool(ToolPattern::Glob(_))
        | Rule::Command(CommandPattern::Exact(_) | CommandPattern::Wild { .. })
        | Rule::Domain(_)
        | Rule::Path(_)
        | Rule::Mcp(_)
        | Rule::Agent(_)
        | Rule::Skill(_)
        | Rule::Param(_)
        | Rule::Never(..) => None,
    }
}
