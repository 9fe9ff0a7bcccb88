//! Names of other servers' tools: which pairs can be told apart.
//!
//! A tool's identity is the pair (server, tool). Its joined name `mcp__server__tool` is what models and rules use, so
//! a pair whose joined name could be read as another pair, or that falls on the same name as another, is refused at
//! registration instead of being guessed at later.
//!
//! And what paths their arguments name, by themselves or as `file:` URIs.

use crate::rule::mcp::normalise;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toolgate_proto::{AbsPath, Workspace};
use url::Url;

/// Longest joined name that providers take.
pub const MAX_JOINED_NAME_BYTES: usize = 128;

/// The name that models and rules use for a pair.
pub fn joined_name(server: &str, tool: &str) -> String {
    format!("mcp__{}__{}", normalise(server), normalise(tool))
}

/// Why a pair cannot be registered by itself, if so.
pub fn name_problem(server: &str, tool: &str) -> Option<String> {
    let (server_name, tool_name) = (normalise(server), normalise(tool));
    if server.is_empty() || tool.is_empty() {
        return Some("a server and a tool need a name".to_owned());
    }
    for (what, name) in [("server", &server_name), ("tool", &tool_name)] {
        if name.contains("__") {
            return Some(format!("the {what} name `{name}` holds `__`, which separates server and tool"));
        }
        if name.starts_with('_') || (what == "server" && name.ends_with('_')) {
            return Some(format!(
                "the {what} name `{name}` has `_` at its edge, so the joined name is ambiguous"
            ));
        }
    }
    if joined_name(server, tool).len() > MAX_JOINED_NAME_BYTES {
        return Some(format!("the joined name is longer than {MAX_JOINED_NAME_BYTES} characters"));
    }
    None
}

/// Pairs that fall on one joined name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNameCollision {
    /// The name they share.
    pub name: String,
    /// The pairs, as spelled by configuration and servers. None of them may be registered.
    pub pairs: Vec<(String, String)>,
}

/// Finds every name that more than one pair falls on. Asked by the registry whenever tools are added.
pub fn find_collisions<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<ToolNameCollision> {
    let mut by_name: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (server, tool) in pairs {
        by_name.entry(joined_name(server, tool)).or_default().push((server.to_owned(), tool.to_owned()));
    }
    by_name
        .into_iter()
        .filter(|(_, pairs)| pairs.len() > 1)
        .map(|(name, pairs)| ToolNameCollision { name, pairs })
        .collect()
}

/// Longest text that is taken for a path.
const MAX_PATH_BYTES: usize = 4096;
/// How often a percent-encoded path is decoded: a server may decode what its caller decoded before.
const MAX_DECODINGS: usize = 3;

/// Every path that the arguments of another server's tool may name.
pub(crate) fn argument_paths(input: &Map<String, Value>, workspace: &Workspace) -> Vec<AbsPath> {
    let mut texts: Vec<&str> = Vec::new();
    let mut pending: Vec<&Value> = input.values().collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => {
                texts.extend(map.keys().map(String::as_str));
                pending.extend(map.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut paths: Vec<AbsPath> = texts.into_iter().flat_map(|text| named_paths(text, workspace)).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn named_paths(text: &str, workspace: &Workspace) -> Vec<AbsPath> {
    if let Some(rest) = strip_file_scheme(text) {
        return file_uri_paths(&rest, workspace);
    }
    if !looks_like_path(text) {
        return Vec::new();
    }
    vec![match (text.strip_prefix("~/"), &workspace.home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_) | None, _) => workspace.cwd.join(text),
    }]
}

fn looks_like_path(text: &str) -> bool {
    let short = text.len() <= MAX_PATH_BYTES && !text.contains('\n');
    short
        && (text.starts_with(['/', '~', '.'])
            || (text.contains('/') && !text.contains("://") && !text.contains(' ')))
}

/// What follows `file:`, in the reading of URL parsers: blanks around it and line ends in it do not count.
fn strip_file_scheme(text: &str) -> Option<String> {
    let start = text.trim_start_matches(|c: char| c <= ' ' || c.is_whitespace());
    let mut rest = start.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    for wanted in "file:".chars() {
        if rest.next()?.to_ascii_lowercase() != wanted {
            return None;
        }
    }
    let rest: String = rest.take(4 * MAX_PATH_BYTES).collect();
    Some(rest.trim_end_matches(|c: char| c <= ' ').to_owned())
}

/// A server may read a URI as the standard does, or cut its scheme off and take the rest as it stands; the path is
/// every one of those.
fn file_uri_paths(rest: &str, workspace: &Workspace) -> Vec<AbsPath> {
    let mut texts: Vec<String> = Vec::new();
    if let Ok(url) = Url::parse(&format!("file:{rest}")) {
        texts.push(url.path().to_owned());
    }
    let mut plain = vec![rest];
    if let Some(after) = rest.strip_prefix("//") {
        plain.push(after);
        // What stands before the path names a machine, most likely this one.
        plain.extend(after.find('/').and_then(|slash| after.get(slash..)));
    }
    for text in plain {
        texts.push(text.to_owned());
        texts.extend(text.split(['?', '#']).next().map(str::to_owned));
    }
    let mut paths = Vec::new();
    for mut text in texts {
        for _ in 0..=MAX_DECODINGS {
            let turned = text.replace('\\', "/");
            paths.extend([&text, &turned].map(|text| workspace.cwd.join(text)));
            let decoded = percent_decode(&text);
            if decoded == text {
                break;
            }
            text = decoded;
        }
    }
    paths
}

fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let value = digit(0).zip(digit(1)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        match value.filter(|_| *first == b'%') {
            Some(value) => {
                out.push(value);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_pairs_are_refused() {
        for (server, tool) in [
            ("fs_", "_read"),
            ("a__b", "c"),
            ("a", "b__c"),
            ("", "x"),
            ("x", ""),
            ("fs", &"x".repeat(300)),
            ("fѕ", "x"),
        ] {
            assert!(name_problem(server, tool).is_some(), "{server} {tool}");
        }
        for (server, tool) in [("fs", "read_text_file"), ("my-server", "list_items"), ("gh", "x_")] {
            assert_eq!(name_problem(server, tool), None, "{server} {tool}");
        }
        let found = find_collisions([("a_b", "c"), ("a.b", "c"), ("x", "y")]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "mcp__a_b__c");
    }
}
