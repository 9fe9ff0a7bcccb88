//! The tools that lists of skills and agents name: which are misspelled.

use crate::settings::builtin_names;
use toolgate_policy::find_intended_tool;

/// What is wrong with the entries of a list, such as `disallowedTools`: each that is almost the name of a tool.
///
/// ```
/// use toolgate::skills::find_misspelled_tools;
///
/// let found = find_misspelled_tools("disallowedTools", &["Bahs(rm *)".to_owned(), "Deploy".to_owned()]);
/// assert_eq!(found, ["unknown tool `Bahs` in `disallowedTools`; did you mean `Bash`?"]);
/// ```
pub fn find_misspelled_tools(list: &str, names: &[String]) -> Vec<String> {
    let bare = names.iter().map(|entry| entry.split('(').next().unwrap_or_default().trim());
    let describe = |name: &str| {
        let meant = find_intended_tool(name, builtin_names())?;
        Some(format!("unknown tool `{name}` in `{list}`; did you mean `{meant}`?"))
    };
    bare.filter_map(describe).collect()
}
