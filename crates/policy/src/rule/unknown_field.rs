//! The fields that `Tool(field:value)` can name, and misspelled ones.
//!
//! A deny rule for a field that does not exist protects nothing, as one for a misspelled tool. Where the content of a rule
//! has a grammar of its own (commands, paths, agents), only a name that is almost that of a field is taken for one.

use super::path_use;
use super::syntax::{self, RuleSyntaxError};
use crate::tool_names::find_intended_name;

/// Fields of `Glob` and `glob` beside the directory.
const GLOB_FIELDS: &[&str] = &[
    "pattern",
    "limit",
    "offset",
    "max_results",
    "maxResults",
    "include_hidden",
    "includeHidden",
    "include_ignored",
    "absolute_paths",
    "absolutePaths",
];

/// Fields of `Grep` and `grep` beside the directory.
const GREP_FIELDS: &[&str] = &[
    "pattern",
    "glob",
    "type",
    "output_mode",
    "head_limit",
    "offset",
    "multiline",
    "context",
    "file_pattern",
    "filePattern",
    "case_sensitive",
    "caseSensitive",
    "max_results",
    "maxResults",
    "absolute_paths",
    "absolutePaths",
];

/// Fields of `LS` and `ls` beside the directory.
const LS_FIELDS: &[&str] =
    &["recursive", "includeHidden", "includeIgnored", "maxDepth", "limit", "offset", "ignore"];

/// Fields of `WebFetch` and `web_fetch` beside the address.
const FETCH_FIELDS: &[&str] =
    &["prompt", "offset", "format", "max_length", "maxLength", "render", "screenshot", "selector", "timeout"];

/// Fields of `Bash`, `shell` and `Monitor` beside the command.
const COMMAND_FIELDS: &[&str] = &[
    "timeout",
    "timeout_ms",
    "description",
    "run_in_background",
    "background",
    "cwd",
    "ws",
    "dangerouslyDisableSandbox",
    "dangerously_disable_sandbox",
];

/// Fields of `Agent`.
const AGENT_FIELDS: &[&str] = &[
    "description",
    "prompt",
    "model",
    "effort",
    "run_in_background",
    "name",
    "isolation",
    "team_name",
    "mode",
];

/// The fields of the tools of a family that a rule can name, if they are known; a rule for another tool can name any.
pub(super) fn known_fields(family: &str) -> Option<&'static [&'static str]> {
    Some(match family {
        "Bash" | "PowerShell" => COMMAND_FIELDS,
        "Read" => &["offset", "limit", "pages", "allow_large", "startLine", "endLine"],
        "Edit" => &["old_string", "new_string", "replace_all", "edits"],
        "Write" => &["content", "overwrite"],
        "MultiEdit" => &["edits"],
        "NotebookEdit" => &["cell_id", "cell_type", "edit_mode", "new_source"],
        "NotebookRead" | "LSP" => &["operation", "line", "character"],
        "Glob" => GLOB_FIELDS,
        "Grep" => GREP_FIELDS,
        "LS" => LS_FIELDS,
        "WebFetch" => FETCH_FIELDS,
        "WebSearch" => &["query", "allowed_domains", "blocked_domains", "numResults", "num_results"],
        "Skill" => &["args"],
        "Agent" => AGENT_FIELDS,
        _ => return None,
    })
}

/// The problem of a rule `tool(field:value)` whose field is not known; `None` if the content is probably something else.
pub(super) fn unknown_field_problem(tool: &str, content: &str) -> Option<RuleSyntaxError> {
    /// Agents and skills of plugins are named `plugin:agent`; a shorter name of a plugin is easily almost a field.
    const MIN_PLUGIN_TYPO_CHARS: usize = 5;
    let (field, value) = content.split_once(':')?;
    let family = super::tool::family(tool);
    let known = known_fields(family)?;
    let meant = find_intended_name(field, known.iter().copied());
    let is_typo = match family {
        // `Bash(name:*)` is the older spelling of `Bash(name *)`.
        "Bash" | "PowerShell" => value != "*",
        "Agent" | "Skill" => {
            field.chars().count() >= MIN_PLUGIN_TYPO_CHARS
                && meant.is_none_or(|meant| field.strip_suffix('s') != Some(meant))
        }
        _ => true,
    };
    let fix = match meant.filter(|_| is_typo) {
        Some(meant) => {
            let meant = syntax::write_rule(tool, &format!("{meant}:{value}"));
            let path = match path_use(family) {
                Some(_) => format!(" A path is written `./{content}`"),
                None => String::new(),
            };
            format!("did you mean `{meant}`?{path}")
        }
        // The content of these rules has no other meaning.
        None if family == "WebSearch" => format!("use one of {}", known.join(", ")),
        None => return None,
    };
    Some(RuleSyntaxError::new(format!("`{tool}` has no field `{field}`, so the rule never matches"), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_almost_one_of_the_tool_is_recognised() {
        for (tool, content, fix) in [
            ("WebSearch", "qery:x", "did you mean `WebSearch(query:x)`?"),
            ("web_search", "Query:x", "did you mean `web_search(query:x)`?"),
            (
                "WebSearch",
                "site:x",
                "use one of query, allowed_domains, blocked_domains, numResults, num_results",
            ),
            ("Agent", "modle:big", "did you mean `Agent(model:big)`?"),
            ("Task", "run_in_backgrund:true", "did you mean `Task(run_in_background:true)`?"),
            (
                "Edit",
                "replace_al:true",
                "did you mean `Edit(replace_all:true)`? A path is written `./replace_al:true`",
            ),
            ("Bash", "timeot:5", "did you mean `Bash(timeout:5)`?"),
            ("WebFetch", "promt:x*", "did you mean `WebFetch(prompt:x*)`?"),
        ] {
            let problem = unknown_field_problem(tool, content);
            assert_eq!(problem.map(|problem| problem.fix).as_deref(), Some(fix), "{tool}({content})");
        }
    }

    #[test]
    fn commands_paths_hosts_and_agents_are_no_misspelled_fields() {
        for (tool, content) in [
            ("Bash", "npm:*"),
            ("Bash", "timeouts:*"),
            ("Bash", "make:all"),
            ("Read", "C:/x"),
            ("Edit", "notes:today"),
            ("WebFetch", "domain:a.example"),
            ("Agent", "code:reviewer"),
            ("Agent", "prompts:reviewer"),
            ("Agent", "models:big"),
            ("Skill", "tools:x"),
            ("Deploy", "taget:x"),
        ] {
            assert_eq!(unknown_field_problem(tool, content), None, "{tool}({content})");
        }
    }
}
