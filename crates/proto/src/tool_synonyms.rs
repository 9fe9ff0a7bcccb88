//! The names that one built-in tool has in the toolsets and in other products.

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
