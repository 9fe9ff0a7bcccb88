//! Paths that the arguments of an MCP tool name: as text that looks like a path, or as `file:` URIs.
//!
//! toolgate does not know which of a server's fields are paths, so every string of the input is examined, keys of
//! objects included. A string that is wrongly taken for a path costs a stricter check; one that is missed would
//! bypass the rules for that path.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use toolgate_proto::{AbsPath, Workspace};
use url::Url;

/// `PATH_MAX` of Linux: no longer text is a path.
const MAX_PATH_BYTES: usize = 4096;
/// How often a percent-encoded path is decoded: a server may decode what its client has already decoded.
const MAX_DECODINGS: usize = 3;

/// Every path that the input may name, sorted and without repetition.
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

/// The paths that one string may name: none, the path itself, or every reading of a `file:` URI.
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

/// Whether a string is probably a path. Prose and URLs of other schemes are not: they would make many calls ask.
fn looks_like_path(text: &str) -> bool {
    let short = text.len() <= MAX_PATH_BYTES && !text.contains('\n');
    short
        && (text.starts_with(['/', '~', '.'])
            || (text.contains('/') && !text.contains("://") && !text.contains(' ')))
}

/// What follows `file:` as URL parsers read it: they ignore whitespace around the URL, and tabs and newlines in it.
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

/// Every path that a server could take the URI for: by the URL standard, or with the scheme cut off and the rest used
/// as it is, decoded or not.
fn file_uri_paths(rest: &str, workspace: &Workspace) -> Vec<AbsPath> {
    let mut texts: Vec<String> = Vec::new();
    if let Ok(url) = Url::parse(&format!("file:{rest}")) {
        texts.push(url.path().to_owned());
    }
    let mut plain = vec![rest];
    if let Some(after) = rest.strip_prefix("//") {
        plain.push(after);
        // The authority names a machine, most likely this one.
        plain.extend(after.find('/').and_then(|slash| after.get(slash..)));
    }
    for text in plain {
        texts.push(text.to_owned());
        texts.extend(text.split(['?', '#']).next().map(str::to_owned));
    }
    let mut paths = Vec::new();
    for mut text in texts {
        for _ in 0..=MAX_DECODINGS {
            let with_slashes = text.replace('\\', "/");
            paths.extend([&text, &with_slashes].map(|text| workspace.cwd.join(text)));
            // An incomplete escape stays as it is, as in most decoders.
            let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
            if decoded == text {
                break;
            }
            text = decoded;
        }
    }
    paths
}
