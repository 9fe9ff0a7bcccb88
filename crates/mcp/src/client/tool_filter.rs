//! Which of a server's tools are offered: the lists `includeTools` and `excludeTools`, compared with what it has.

use super::server_entry::ServerEntry;
use std::collections::BTreeSet;
use toolgate_proto::find_intended_name;

/// The lists of an entry, for the tools that the server lists now.
pub(super) struct ToolFilter<'e> {
    /// The entry with the lists.
    entry: &'e ServerEntry,
    /// Tools that misspelled names of `excludeTools` mean.
    misspelled: BTreeSet<String>,
    /// The names of both lists that no tool has.
    pub(super) problems: Vec<String>,
}

impl<'e> ToolFilter<'e> {
    /// Compares the lists with the names of the tools. A misspelled name of `excludeTools` excludes the tool that it
    /// means: ignoring it would offer what the user wanted to withhold.
    pub(super) fn new<'n>(entry: &'e ServerEntry, listed: impl IntoIterator<Item = &'n str>) -> Self {
        let listed: BTreeSet<&str> = listed.into_iter().collect();
        let mut filter = Self { entry, misspelled: BTreeSet::new(), problems: Vec::new() };
        for name in entry.exclude.iter().filter(|name| !listed.contains(name.as_str())) {
            let problem = format!("`excludeTools` names `{name}`, which the server does not have");
            match find_meant_tool(name, &entry.name, &listed) {
                Some(meant) => {
                    filter.misspelled.insert(meant.to_owned());
                    filter
                        .problems
                        .push(format!("{problem}; `{meant}` is excluded instead: correct the name"));
                }
                None => filter.problems.push(format!("{problem}: correct the name, or remove it")),
            }
        }
        for name in entry.include.iter().flatten().filter(|name| !listed.contains(name.as_str())) {
            let problem = format!("`includeTools` names `{name}`, which the server does not have");
            filter.problems.push(match find_meant_tool(name, &entry.name, &listed) {
                Some(meant) => format!("{problem}; did you mean `{meant}`?"),
                None => format!("{problem}: correct the name, or remove it"),
            });
        }
        filter
    }

    /// Whether a tool is offered.
    pub(super) fn includes(&self, tool: &str) -> bool {
        self.entry.includes_tool(tool) && !self.misspelled.contains(tool)
    }
}

/// What to write in place of a name in `includeTools` or `excludeTools` of a server that no tool can have.
pub(super) fn find_unusable_name(name: &str, server: &str) -> Option<String> {
    let is_name_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let pattern = "a deny rule can have a pattern, and `disabled` is for the whole server";
    let parts: Vec<&str> = name.split([',', '|', ';', ' ', '\t', '\n']).map(str::trim).collect();
    let names: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if name.trim().is_empty() {
        return Some("write the name of a tool".to_owned());
    }
    if name.trim() != name {
        return Some(format!("write `{}`", name.trim()));
    }
    if names.len() > 1 && names.iter().all(|name| name.chars().all(is_name_char)) {
        let list: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        return Some(format!("write one entry for each tool: `[{}]`", list.join(", ")));
    }
    if name.strip_prefix("mcp__").is_some_and(|rest| !rest.contains("__")) {
        return Some(pattern.to_owned());
    }
    if !name.chars().all(is_name_char) {
        return Some(match name.split_once(':') {
            Some((_, tool)) if !tool.is_empty() && tool.chars().all(is_name_char) => {
                format!("write the name that the server gives the tool, such as `{tool}`")
            }
            _ => pattern.to_owned(),
        });
    }
    // `files__write_file`, `mcp__Files__write_file`: tools whose names could be read in two ways are never offered.
    let (_, tool) = name.rsplit_once("__")?;
    Some(match tool.is_empty() {
        true => pattern.to_owned(),
        false => {
            format!("write `{tool}`, or `mcp__{server}__{tool}`, if that is a tool of this server")
        }
    })
}

/// The tool of a server that a name misspells, or names with the server before it: `files.write_file`.
fn find_meant_tool<'n>(name: &str, server: &str, listed: &BTreeSet<&'n str>) -> Option<&'n str> {
    let rest = name.strip_prefix(server).and_then(|rest| rest.strip_prefix(['.', '/', '_', '-']));
    rest.and_then(|rest| listed.get(rest).copied())
        .or_else(|| find_intended_name(name, listed.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::super::server_entry::{ServerListOrigin, read_server};
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use toolgate_proto::AbsPath;

    /// The tools that are offered of `read_file` and `delete_file`, and the problems.
    fn filter(lists: &Value) -> (Vec<&'static str>, String) {
        let (base, env) = (AbsPath::root(), BTreeMap::new());
        let origin = ServerListOrigin { file: "mcp.json", base: &base, env: &env, trusted: true };
        let mut entry = lists.clone();
        entry["command"] = json!("server");
        let entry = read_server("files", &entry, &origin, &mut Vec::new()).unwrap().unwrap();
        let listed = ["read_file", "delete_file"];
        let filter = ToolFilter::new(&entry, listed);
        (listed.into_iter().filter(|tool| filter.includes(tool)).collect(), filter.problems.join("\n"))
    }

    #[test]
    fn lists_that_name_tools_of_the_server_have_no_problem() {
        assert_eq!(filter(&json!({})), (vec!["read_file", "delete_file"], String::new()));
        assert_eq!(filter(&json!({ "excludeTools": ["delete_file"] })), (vec!["read_file"], String::new()));
        assert_eq!(filter(&json!({ "includeTools": ["read_file"] })), (vec!["read_file"], String::new()));
    }

    #[test]
    fn a_misspelled_name_excludes_the_tool_that_it_means() {
        let with_server = ["files.delete_file", "files/delete_file", "files_delete_file"];
        for misspelled in ["delte_file", "deleteFile", "Delete_File"].into_iter().chain(with_server) {
            let (offered, problems) = filter(&json!({ "excludeTools": [misspelled] }));
            assert_eq!(offered, ["read_file"], "{misspelled}");
            assert!(problems.contains("`delete_file` is excluded instead"), "{problems}");
        }
    }

    #[test]
    fn a_name_that_no_tool_has_is_reported() {
        let (offered, problems) = filter(&json!({ "excludeTools": ["drop_table"] }));
        assert_eq!(offered, ["read_file", "delete_file"]);
        assert!(problems.contains("`drop_table`, which the server does not have: correct"), "{problems}");
        let (offered, problems) = filter(&json!({ "includeTools": ["read_fil"] }));
        assert!(offered.is_empty());
        assert!(problems.contains("did you mean `read_file`?"), "{problems}");
    }
}
