//! The names that one built-in tool and its fields have in the toolsets and in other products.

/// Names of the same tool: that of the claude toolset, which is also the name of its family in rules, that of the plain
/// toolset, and those of other products.
const TOOL_SYNONYMS: &[&[&str]] = &[
    &["Bash", "shell", "run_shell_command"],
    &["Read", "read_file", "FileRead"],
    &["Write", "write_file", "FileWrite"],
    &["Edit", "edit_file", "FileEdit", "replace"],
    &["Glob", "glob"],
    &["Grep", "grep", "search_file_content"],
    &["LS", "ls", "list_directory"],
    &["WebFetch", "web_fetch"],
    &["WebSearch", "web_search"],
    &["TodoWrite", "write_todos"],
    &["TaskOutput", "task_output"],
    &["TaskStop", "task_stop"],
    &["Screenshot", "screenshot"],
    &["BrowserOpen", "browser_open"],
    &["BrowserRead", "browser_read"],
    &["BrowserClick", "browser_click"],
    &["BrowserType", "browser_type"],
    &["BrowserWait", "browser_wait"],
    &["BrowserScreenshot", "browser_screenshot"],
];

/// Fields that mean the same in the tools of a family, by the first of the family's names: those of the toolsets, of
/// related tools (`Monitor`, `read_many_files`), and older spellings. `edits[].target` is the field `target` of each item
/// of `edits`, and `paths[]` is each item of `paths`.
const FIELD_SYNONYMS: &[(&str, &[&[&str]])] = &[
    (
        "Bash",
        &[
            &["run_in_background", "background"],
            &["timeout", "timeout_ms"],
            &["dangerouslyDisableSandbox", "dangerously_disable_sandbox"],
        ],
    ),
    ("Read", &[&["file_path", "path", "paths[]"], &["offset", "startLine"]]),
    ("Write", &[&["file_path", "path"]]),
    (
        "Edit",
        &[
            &["file_path", "path", "notebook_path"],
            &["old_string", "edits[].old_string", "edits[].target"],
            &["new_string", "edits[].new_string", "edits[].replacement", "new_source"],
            &["replace_all", "edits[].replace_all"],
        ],
    ),
    (
        "Glob",
        &[
            &["path", "directory"],
            &["maxResults", "max_results", "limit"],
            &["includeHidden", "include_hidden"],
            &["absolutePaths", "absolute_paths"],
        ],
    ),
    (
        "Grep",
        &[
            &["path", "directory"],
            &["glob", "filePattern", "file_pattern"],
            &["context", "-C"],
            &["head_limit", "maxResults", "max_results"],
            &["caseSensitive", "case_sensitive"],
            &["absolutePaths", "absolute_paths"],
        ],
    ),
    ("TaskOutput", &[&["task_id", "bash_id"]]),
    ("TaskStop", &[&["task_id", "shell_id"]]),
    ("WebFetch", &[&["max_length", "maxLength"]]),
    ("WebSearch", &[&["numResults", "num_results"]]),
];

/// Fields of which the other toolset has the parts as fields: family, field, parts. They do not mean the same, but what a
/// rule forbids in the field, it forbids in its parts.
const FIELD_PARTS: &[(&str, &str, &[&str])] = &[
    ("Edit", "edits", &["old_string", "new_string"]),
    ("TodoWrite", "todos", &["task"]),
    ("TodoWrite", "task", &["todos[].content", "todos[].description"]),
];

/// Every name of the built-in tool that has this name in a toolset or in another product, that of the claude toolset
/// first. Empty if there is no such tool, or if it has no other name.
///
/// ```
/// use toolgate_proto::tool_synonyms;
///
/// assert_eq!(tool_synonyms("web_fetch"), ["WebFetch", "web_fetch"]);
/// assert!(tool_synonyms("Deploy").is_empty());
/// ```
pub fn tool_synonyms(name: &str) -> &'static [&'static str] {
    TOOL_SYNONYMS.iter().find(|names| names.contains(&name)).copied().unwrap_or_default()
}

/// The other places where a tool of this family has what a rule names as `field`; `tool` is any name of the family.
/// `edits[].target` stands for a field of each item of a list. Parts of the field are among them if `with_parts` is set.
///
/// ```
/// use toolgate_proto::field_synonyms;
///
/// assert_eq!(field_synonyms("Write", "file_path", false), ["path"]);
/// assert_eq!(field_synonyms("edit_file", "edits", true), ["old_string", "new_string"]);
/// assert!(field_synonyms("Deploy", "path", true).is_empty());
/// ```
pub fn field_synonyms(tool: &str, field: &str, with_parts: bool) -> Vec<&'static str> {
    let family = tool_synonyms(tool).first().copied().unwrap_or(tool);
    let groups = FIELD_SYNONYMS.iter().filter(|(name, _)| *name == family).flat_map(|(_, groups)| *groups);
    let synonyms = groups.filter(|group| group.contains(&field)).flat_map(|group| *group);
    let parts =
        FIELD_PARTS.iter().filter(|(name, whole, _)| with_parts && *name == family && *whole == field);
    let parts = parts.flat_map(|(_, _, parts)| *parts);
    synonyms.chain(parts).copied().filter(|name| *name != field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_means_the_same_in_both_directions_and_once_in_a_family() {
        for (family, groups) in FIELD_SYNONYMS {
            assert_eq!(tool_synonyms(family).first(), Some(family));
            let mut fields: Vec<&str> = groups.iter().flat_map(|group| *group).copied().collect();
            for field in &fields {
                for other in field_synonyms(family, field, false) {
                    assert!(field_synonyms(family, other, false).contains(field), "{family} {field} {other}");
                }
            }
            fields.sort_unstable();
            let count = fields.len();
            fields.dedup();
            assert_eq!(fields.len(), count, "{family} has a field twice");
        }
    }
}
