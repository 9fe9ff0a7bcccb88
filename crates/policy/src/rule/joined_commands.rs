//! Several commands in one deny or ask rule: `Bash(rm *, curl *)`, `Bash({rm,mv} *)`.
//!
//! A rule has one command, so that such a rule matches no command line. A comma and braces also occur in the words of one
//! command (`echo a, b`, `jq {a,b} *`; quotes are gone when commands are compared), so they count only where no word has
//! them: in the name of the program or its subcommand, and between wildcards.

use super::syntax::{self, RuleSyntaxError};
use super::unmatchable::never;
use crate::decide::suggestions::PROGRAMS_WITH_SUBCOMMANDS;

/// Names of the command's field, with which the content of a rule does not begin.
const FIELD_PREFIXES: &[&str] = &["command=", "command:", "cmd:"];

/// Why a rule is probably several rules in one string, or begins with the name of the field.
pub(super) fn joined_commands(name: &str, content: &str) -> Option<RuleSyntaxError> {
    let content = content.trim();
    if let Some(command) = FIELD_PREFIXES.iter().find_map(|prefix| content.strip_prefix(prefix)) {
        let command = command.trim();
        return (!command.is_empty() && command != "*").then(|| {
            let fix = format!("did you mean `{}`?", syntax::write_rule(name, command));
            never("its content is the command alone, without the field", fix)
        });
    }
    let commands = split_list(content).or_else(|| expand_first_braces(content))?;
    let rules: Vec<String> =
        commands.iter().map(|command| format!("`{}`", syntax::write_rule(name, command))).collect();
    let fix = format!("write one rule for each: {}", rules.join(", "));
    Some(never("a rule has one command, and this content is several", fix))
}

/// The commands of a list with commas: one behind the name of a program (`rm,curl`), or behind a wildcard (`rm *, curl *`).
fn split_list(content: &str) -> Option<Vec<String>> {
    let is_plain = |text: &str| !text.contains(['\'', '"', '`', '\\', '{', '$']);
    let program = content.split(' ').next().unwrap_or(content);
    let is_program_list = program.contains(',') && is_plain(program);
    // Each part but the last ends in a wildcard, and so does a later one: `echo *, world` is one command.
    let items: Vec<&str> = content.split(',').map(str::trim).collect();
    let is_pattern = |item: &&&str| item.ends_with(" *") || item.ends_with(":*");
    let begins_with_letter = |item: &&str| item.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_wildcard_list =
        items.iter().filter(is_pattern).count() > 1 && items.iter().all(begins_with_letter);
    if !is_plain(content) || !(is_program_list || is_wildcard_list) {
        return None;
    }
    let commands = content.split(',').map(str::trim).filter(|command| !command.is_empty());
    let commands: Vec<String> = commands.map(str::to_owned).collect();
    (commands.len() > 1).then_some(commands)
}

/// The commands that braces stand for in the name of the program or of its subcommand, where the shell expands them.
fn expand_first_braces(content: &str) -> Option<Vec<String>> {
    let (before, rest) = content.split_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    let is_name = match before.split_once(' ') {
        None => !before.ends_with('$'),
        Some((program, rest)) => rest.is_empty() && PROGRAMS_WITH_SUBCOMMANDS.contains(&program),
    };
    let is_word = |choice: &str| choice.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_list = inner.contains(',') && !inner.contains(' ') && inner.split(',').all(is_word);
    (is_list && is_name).then(|| inner.split(',').map(|choice| format!("{before}{choice}{after}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_commands_are_recognised() {
        for (content, fix) in [
            ("rm *, curl *", "write one rule for each: `Bash(rm *)`, `Bash(curl *)`"),
            ("rm *,curl *", "write one rule for each: `Bash(rm *)`, `Bash(curl *)`"),
            ("rm:*, curl:*", "write one rule for each: `Bash(rm:*)`, `Bash(curl:*)`"),
            ("rm,curl", "write one rule for each: `Bash(rm)`, `Bash(curl)`"),
            ("rm *, curl *, mv", "write one rule for each: `Bash(rm *)`, `Bash(curl *)`, `Bash(mv)`"),
            ("{rm,mv} *", "write one rule for each: `Bash(rm *)`, `Bash(mv *)`"),
            ("git {push,pull} *", "write one rule for each: `Bash(git push *)`, `Bash(git pull *)`"),
            ("cmd:rm *", "did you mean `Bash(rm *)`?"),
            ("command=rm *", "did you mean `Bash(rm *)`?"),
        ] {
            assert_eq!(
                joined_commands("Bash", content).map(|problem| problem.fix).as_deref(),
                Some(fix),
                "{content}"
            );
        }
    }

    #[test]
    fn commas_and_braces_in_the_words_of_one_command_are_meant() {
        for content in [
            "echo a, b",
            "awk '{print $1,$2}' *",
            "awk -F, *",
            "cut -d, -f1,2 *",
            "sort -k1,2 *",
            "find . -name *.{js} *",
            "echo ${a,b}",
            "git log --format=%h,%s *",
            "jq '{a,b}' *",
            "sed s/a,/b/ *",
            "rm *",
            "grep -E a{1,3} *",
            "jq {a,b} *",
            "sed s/{a,b}/c/ *",
            "gh pr list --json number,title --jq {a,b}",
            "kubectl delete *,svc",
            "kubectl get pods,svc *",
            "echo *, world",
            "cmd=foo ./run *",
            "cmd *",
            "cmd:*",
            "x, ",
        ] {
            assert_eq!(joined_commands("Bash", content), None, "{content}");
        }
    }
}
