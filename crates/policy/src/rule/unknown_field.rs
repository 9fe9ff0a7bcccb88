//! The fields that `Tool(field:value)` can name, and misspelled ones.
//!
//! A deny rule for a field that does not exist protects nothing, as one for a misspelled tool. Where the content of a rule
//! has a grammar of its own (commands, paths, agents), only a name that is almost that of a field is taken for one.
//! Values that a field cannot have are found here, too: `Bash(run_in_background:True)`.

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
    "-A",
    "-B",
    "-C",
    "-i",
    "-n",
    "-o",
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

/// The fields whose values are the content of the rules of a family: `Agent(Explore)` is about `subagent_type`.
const MAIN_FIELDS: &[(&str, &[&str])] = &[("Agent", &["subagent_type"]), ("Skill", &["skill", "name"])];

/// The content of an `Agent` or `Skill` rule without the name of its principal field: `subagent_type:Explore`.
pub(super) fn strip_main_field<'c>(family: &str, content: &'c str) -> Option<&'c str> {
    let (field, value) = content.split_once(':')?;
    let is_main =
        MAIN_FIELDS.iter().any(|(owner, fields)| *owner == family && fields.contains(&field.trim()));
    Some(value.trim()).filter(|value| is_main && !value.is_empty())
}

/// The problem of an `Agent` rule that misspells the name of its principal field. The names of the fields of `Skill` are too
/// short to tell from those of plugins.
pub(super) fn misspelled_main_field(tool: &str, content: &str) -> Option<RuleSyntaxError> {
    let (field, value) = content.split_once(':')?;
    let value = Some(value.trim()).filter(|value| !value.is_empty())?;
    let is_meant = field == "agent_type" || find_intended_name(field, ["subagent_type"]).is_some();
    (super::tool::family(tool) == "Agent" && is_meant).then(|| {
        RuleSyntaxError::new(
            format!("`{tool}` has no field `{field}`, so the rule never matches"),
            format!("did you mean `{}`?", syntax::write_rule(tool, value)),
        )
    })
}

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

/// Fields whose value is `true` or `false`.
const BOOLEAN_FIELDS: &[&str] = &[
    "run_in_background",
    "background",
    "dangerouslyDisableSandbox",
    "dangerously_disable_sandbox",
    "replace_all",
    "overwrite",
    "-i",
    "-n",
    "-o",
    "multiline",
    "case_sensitive",
    "caseSensitive",
    "include_hidden",
    "includeHidden",
    "include_ignored",
    "includeIgnored",
    "absolute_paths",
    "absolutePaths",
    "recursive",
    "render",
    "screenshot",
];

/// The families of [`known_fields`].
const FAMILIES: &[&str] = &[
    "Bash",
    "Read",
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "LSP",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    "WebSearch",
    "Skill",
    "Agent",
];

/// Fields of built-in tools beside those of [`known_fields`]: the principal ones, and those of tools whose rules can name
/// any field.
const OTHER_FIELDS: &[&str] = &[
    "action",
    "activeForm",
    "addBlockedBy",
    "addBlocks",
    "bash_id",
    "block",
    "command",
    "commands",
    "cron",
    "delaySeconds",
    "directory",
    "discard_changes",
    "durable",
    "fact",
    "file",
    "file_path",
    "full",
    "height",
    "id",
    "key",
    "message",
    "metadata",
    "noop",
    "note",
    "notebook_path",
    "owner",
    "path",
    "paths",
    "plan",
    "questions",
    "reason",
    "recurring",
    "revision",
    "scope",
    "server",
    "setting",
    "shell_id",
    "skill",
    "status",
    "stop",
    "subagent_type",
    "subject",
    "task",
    "taskId",
    "task_id",
    "to",
    "todos",
    "uri",
    "url",
    "value",
    "wait",
    "width",
];

/// The fields of the tools of a family that a rule can name, if they are known; a rule for another tool can name any.
pub(super) fn known_fields(family: &str) -> Option<&'static [&'static str]> {
    Some(match family {
        "Bash" | "PowerShell" => COMMAND_FIELDS,
        "Read" => &["offset", "limit", "pages", "allow_large", "startLine", "endLine"],
        "Edit" => &["old_string", "new_string", "replace_all", "edits"],
        "Write" => &["content", "overwrite"],
        "MultiEdit" => &["edits", "old_string", "new_string", "replace_all"],
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

/// A field that is probably a misspelled one of a built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MisspelledField {
    /// The field that was meant.
    pub(crate) meant: &'static str,
    /// The name is no word, so that hardly any MCP tool has such a field.
    pub(crate) is_certain: bool,
}

/// The field of a built-in tool that a name misspells, if none of them has a field of this name.
///
/// A tool of an MCP server may have any field. `patch` is none of `path`, and `files` is none of `file`: a short name must
/// have the same letters in another order. `filePath` may be the field of such a tool.
pub(crate) fn find_misspelled_field(field: &str) -> Option<MisspelledField> {
    /// The length from which a name with one letter changed is hardly another word.
    const LONG_NAME_CHARS: usize = 7;
    let own = FAMILIES.iter().filter_map(|family| known_fields(family)).flatten();
    let known: Vec<&'static str> = own.chain(OTHER_FIELDS).copied().collect();
    if known.contains(&field) {
        return None;
    }
    let meant = find_intended_name(field, known.iter().copied())?;
    let fold = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let (folded, folded_meant) = (fold(field), fold(meant));
    if folded == folded_meant {
        return Some(MisspelledField { meant, is_certain: false });
    }
    let letters = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_other_number = folded.strip_suffix('s') == Some(folded_meant.as_str())
        || folded_meant.strip_suffix('s') == Some(folded.as_str());
    let is_exchanged = letters(&folded) == letters(&folded_meant);
    let is_long = folded_meant.chars().count() >= LONG_NAME_CHARS
        && folded.chars().next() == folded_meant.chars().next()
        && strsim::damerau_levenshtein(&folded, &folded_meant) == 1;
    (!is_other_number && (is_exchanged || is_long)).then_some(MisspelledField { meant, is_certain: true })
}

/// The problem of a rule that names a field of its tool with a value that the field cannot have, or with `=`.
pub(super) fn unusable_value_problem(tool: &str, content: &str) -> Option<RuleSyntaxError> {
    let family = super::tool::family(tool);
    let at = content.find([':', '='])?;
    let (field, value) = (content.get(..at)?, content.get(at + 1..)?);
    let is_equation = content.get(at..)?.starts_with('=');
    let names_main = MAIN_FIELDS.iter().any(|(owner, fields)| *owner == family && fields.contains(&field));
    if value.trim().is_empty() || !(known_fields(family)?.contains(&field) || (names_main && is_equation)) {
        return None;
    }
    let plain = value.trim();
    let is_boolean = BOOLEAN_FIELDS.contains(&field);
    let spelled = match plain.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" if is_boolean => "true",
        "false" | "no" | "off" | "0" if is_boolean => "false",
        _ => plain,
    };
    let meant = if names_main { spelled.to_owned() } else { format!("{field}:{spelled}") };
    let fix = format!("did you mean `{}`?", syntax::write_rule(tool, &meant));
    if is_equation {
        // `type=a/x` is a path, and `timeout=5 make` a command.
        let may_be_other = match family {
            "Bash" | "PowerShell" => content.contains(' '),
            _ => path_use(family).is_some() && content.contains(['/', '*', '.', ' ']),
        };
        let path = match path_use(family) {
            Some(_) => format!(" A path is written `./{content}`"),
            None => String::new(),
        };
        let message = format!("a field and its value are joined by `:`, so `{content}` never matches");
        return (!may_be_other).then(|| RuleSyntaxError::new(message, format!("{fix}{path}")));
    }
    if is_boolean && !value.contains('*') && !matches!(value, "true" | "false") {
        let fix = match spelled {
            "true" | "false" => fix,
            _ => "write `true` or `false`".to_owned(),
        };
        let message = format!("`{field}` is `true` or `false`, never `{value}`, so the rule never matches");
        return Some(RuleSyntaxError::new(message, fix));
    }
    value.starts_with(' ').then(|| {
        RuleSyntaxError::new(
            format!("the value of `{field}` begins with a blank, so the rule never matches"),
            fix,
        )
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
            ("Grep", "i:true", "did you mean `Grep(-i:true)`? A path is written `./i:true`"),
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
