//! Reading of one settings file: parsing, checking against the schema, and separating what is active from what is not.

use super::intended_key::find_intended_key;
use super::lint::find_violations;
use super::merge::{KeyRule, MergeInput, MergeRule};
use super::node::{SettingsNode, SettingsNodeKind};
use super::schema::{check, settings_check_schema};
use super::trust::UNTIL_TRUSTED;
use super::values::SettingsValues;
use super::{SettingsError, SettingsNote};
use serde_json::Value;
use std::collections::HashMap;
use toolgate_policy::{Layer, LayerRules, RawBook, RawRule};
use toolgate_proto::{AbsPath, Mode};

/// How to fix a file that cannot be used.
pub(super) const CORRECT_FILE_HINT: &str =
    "correct the file; no call runs until then, because the file may contain a deny rule";

/// One settings file, or the value of `--settings`.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Its active rules.
    pub rules: LayerRules,
    /// The rules of its key `policy`; those of an untrusted project can only restrict.
    pub book: Option<RawBook>,
    /// Its active values, independent of other files. See [`merge`](super::merge).
    pub values: SettingsValues,
    /// The whole file as JSON, with unknown and inactive keys.
    pub raw_value: Value,
    /// Whether values that grant something are active.
    pub trusted: bool,
    /// The whole file with absolute paths, as merging needs it.
    pub(super) normalized_value: Value,
    /// Its allow rules that the user granted at a prompt.
    granted: Vec<String>,
    /// The syntax tree, for line numbers.
    pub(crate) node: SettingsNode,
}

impl SettingsFile {
    /// The file as an input of the merge.
    pub(super) fn merge_input(&self) -> MergeInput<'_> {
        MergeInput {
            value: &self.normalized_value,
            layer: self.rules.layer,
            trusted: self.trusted,
            granted: &self.granted,
        }
    }
}

/// Where the text of settings comes from.
pub(super) struct SettingsOrigin<'a> {
    /// The layer of the file.
    pub(super) layer: Layer,
    /// The path or option, for messages.
    pub(super) name: &'a str,
    /// The directory that `/path` patterns and relative paths start from.
    pub(super) anchor: &'a AbsPath,
    /// The home directory, for `~/`.
    pub(super) home: Option<&'a AbsPath>,
    /// Whether values that grant something are active.
    pub(super) trusted: bool,
    /// Allow rules that the user granted in this file; they are active without trust.
    pub(super) granted: &'a [String],
}

/// Reads the text of a settings file. Unknown and inactive keys become notes; a syntax error or a schema violation is
/// an error.
pub(super) fn read_settings(
    text: &str,
    origin: &SettingsOrigin<'_>,
    notes: &mut Vec<SettingsNote>,
) -> Result<SettingsFile, SettingsError> {
    let usage_error = |line: usize, message: String| SettingsError {
        file: origin.name.to_owned(),
        line,
        message,
        fix: CORRECT_FILE_HINT.to_owned(),
    };
    let node = SettingsNode::parse(text).map_err(|error| usage_error(error.line, error.message))?;
    if let Some(first) = find_violations(&node, origin).into_iter().next() {
        return Err(first);
    }
    notes.extend(unknown_key_notes(&node, origin));
    let raw_value = node.value();
    let mut normalized_value = raw_value.clone();
    make_paths_absolute(&mut normalized_value, origin);
    let file = MergeInput {
        value: &normalized_value,
        layer: origin.layer,
        trusted: origin.trusted,
        granted: origin.granted,
    };
    notes.extend(inactive_key_notes(&file, &node, origin));
    let values: SettingsValues = serde_json::from_value(file.effective_values())
        .map_err(|error| usage_error(node.line, error.to_string()))?;
    let rule_book = node.get("policy").filter(|node| !node.value().is_null());
    Ok(SettingsFile {
        rules: read_layer_rules(&node, origin, &values),
        book: rule_book.map(|node| read_rule_book(node, origin)),
        values,
        raw_value,
        trusted: origin.trusted,
        normalized_value,
        granted: origin.granted.to_vec(),
        node,
    })
}

/// One note for each unknown key that is not an error: one of another program, or a misspelled one that grants something.
pub(super) fn unknown_key_notes(node: &SettingsNode, origin: &SettingsOrigin<'_>) -> Vec<SettingsNote> {
    let unknown = check(node, settings_check_schema()).unknown;
    let note = |message: String, line| SettingsNote { file: origin.name.to_owned(), line, message };
    unknown
        .into_iter()
        .filter_map(|key| {
            let message = format!("unknown key `{}` has no effect", key.path);
            match find_intended_key(&key) {
                None => Some(note(message, key.line)),
                Some(intended) if intended.is_fatal => None,
                Some(intended) => Some(note(format!("{message}; {}", intended.fix), key.line)),
            }
        })
        .collect()
}

/// One note for each key that has no effect in this file.
fn inactive_key_notes(
    file: &MergeInput<'_>,
    node: &SettingsNode,
    origin: &SettingsOrigin<'_>,
) -> Vec<SettingsNote> {
    let note = |key: &KeyRule| {
        let path: Vec<&str> = key.path.iter().map(String::as_str).collect();
        let message = match key.rule {
            MergeRule::ManagedOnly(_) => format!("`{}` has an effect only in managed settings", key.name()),
            MergeRule::UserOnly(_) => {
                format!("`{}` has an effect only in your own settings, not in a project's", key.name())
            }
            _ => inactive_key_message(&key.name()),
        };
        SettingsNote { file: origin.name.to_owned(), line: node.nearest_node(&path).line, message }
    };
    file.inactive_keys().into_iter().map(note).collect()
}

/// The real path, if a path contains `..`: rules are compared with paths that have none.
fn resolve_parent_steps(path: AbsPath) -> AbsPath {
    if path == path.lexical() {
        return path;
    }
    let fact = toolgate_files::resolve(&path);
    if fact.problem.is_none() { fact.real } else { path }
}

/// The active rules of a file with their lines. All ask and deny rules are active; of the allow rules those in
/// `values`.
pub(super) fn read_layer_rules(
    node: &SettingsNode,
    origin: &SettingsOrigin<'_>,
    values: &SettingsValues,
) -> LayerRules {
    let mut rules = LayerRules::new(origin.layer, resolve_parent_steps(origin.anchor.clone()));
    rules.file = Some(origin.name.to_owned());
    let mut active = values.permissions.allow.clone();
    rules.allow = read_rules(node, "allow");
    rules.allow.retain(|rule| {
        let index = active.iter().position(|text| *text == rule.text);
        index.map(|index| active.swap_remove(index)).is_some()
    });
    rules.ask = read_rules(node, "ask");
    rules.deny = read_rules(node, "deny");
    rules.deny.extend(read_disabled_mcp_tools(node));
    rules
}

/// The entries of `disabledTools` that name MCP servers or their tools, as deny rules: the policy compiler knows names of
/// whole servers (`mcp__server`, `mcp__server__*`), and checks that names are those of configured servers.
fn read_disabled_mcp_tools(node: &SettingsNode) -> Vec<RawRule> {
    let of_managed = node.get("managed").and_then(|managed| managed.get("disabledTools"));
    let lists = node.get("disabledTools").into_iter().chain(of_managed);
    let is_mcp = |rule: &RawRule| rule.text.starts_with("mcp__");
    lists.flat_map(read_rule_list).filter(is_mcp).collect()
}

/// The note for a key that needs trust.
pub(super) fn inactive_key_message(key: &str) -> String {
    format!("`{key}` {UNTIL_TRUSTED} (`toolgate trust add`, or --trust-workspace)")
}

/// The rules of the key `policy`, with their lines.
pub(super) fn read_rule_book(node: &SettingsNode, origin: &SettingsOrigin<'_>) -> RawBook {
    let mut book = RawBook::new(origin.layer, node.value());
    book.file = Some(origin.name.to_owned());
    book.line = Some(node.line);
    book.tighten_only = !origin.trusted;
    if let Some(SettingsNode { kind: SettingsNodeKind::List(rules), .. }) = node.get("rules") {
        book.rule_lines = rules.iter().map(|rule| rule.line).collect();
    }
    collect_lines(node, String::new(), &mut book.value_lines);
    book
}

/// The line of each value below a node, by its JSON pointer.
fn collect_lines(node: &SettingsNode, pointer: String, lines: &mut HashMap<String, usize>) {
    match &node.kind {
        SettingsNodeKind::Scalar(_) => {}
        SettingsNodeKind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_lines(item, format!("{pointer}/{index}"), lines);
            }
        }
        SettingsNodeKind::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect_lines(value, format!("{pointer}/{name}"), lines);
            }
        }
    }
    lines.insert(pointer, node.line);
}

/// Refuses an unknown mode: ignoring it would apply a mode that may be less strict.
pub(super) fn check_mode(node: &SettingsNode, origin: &SettingsOrigin<'_>) -> Result<(), SettingsError> {
    let path = ["permissions", "defaultMode"];
    let Some(mode) = node.get("permissions").and_then(|node| node.get("defaultMode")) else { return Ok(()) };
    let SettingsNodeKind::Scalar(Value::String(text)) = &mode.kind else { return Ok(()) };
    match text.parse::<Mode>() {
        Ok(_) => Ok(()),
        Err(problem) => {
            let text = problem.to_string();
            let (message, fix) = text.split_once("; ").unwrap_or((&text, "use the name of a mode"));
            Err(SettingsError {
                file: origin.name.to_owned(),
                line: node.nearest_node(&path).line,
                message: format!("`permissions.defaultMode`: {message}"),
                fix: fix.to_owned(),
            })
        }
    }
}

/// The keys whose values are lists of paths.
pub(super) const PATH_LISTS: [&[&str]; 5] = [
    &["permissions", "additionalDirectories"],
    &["sandbox", "filesystem", "allowWrite"],
    &["sandbox", "filesystem", "denyWrite"],
    &["sandbox", "filesystem", "denyRead"],
    &["sandbox", "network", "allowUnixSockets"],
];

/// Makes paths absolute before files are merged, because a relative path has another meaning in each file.
fn make_paths_absolute(settings: &mut Value, origin: &SettingsOrigin<'_>) {
    for list in PATH_LISTS {
        let found = list.iter().try_fold(&mut *settings, |value, name| value.get_mut(name));
        for path in found.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::String(text) = path {
                *text = to_absolute(text, origin).to_string();
            }
        }
    }
}

/// Resolves a path as rules do: `~/` is the home directory, `//` the root of the file system, and other paths start from
/// the anchor.
fn to_absolute(text: &str, origin: &SettingsOrigin<'_>) -> AbsPath {
    match (text.strip_prefix("~/"), origin.home, text.strip_prefix("//")) {
        (Some(rest), Some(home), _) => home.join(rest),
        (_, _, Some(rest)) => origin.anchor.join(format!("/{rest}")),
        _ => origin.anchor.join(text),
    }
}

/// The rules of one list with their lines.
pub(super) fn read_rules(node: &SettingsNode, list: &str) -> Vec<RawRule> {
    let list = node.get("permissions").and_then(|node| node.get(list));
    list.map(read_rule_list).unwrap_or_default()
}

/// The strings of a list as rules. The file matches the schema, so every entry is a string.
fn read_rule_list(list: &SettingsNode) -> Vec<RawRule> {
    let SettingsNodeKind::List(items) = &list.kind else { return Vec::new() };
    items
        .iter()
        .filter_map(|item| match &item.kind {
            SettingsNodeKind::Scalar(Value::String(text)) => {
                Some(RawRule::new(text.clone()).with_line(item.line))
            }
            SettingsNodeKind::Scalar(_) | SettingsNodeKind::List(_) | SettingsNodeKind::Object(_) => None,
        })
        .collect()
}
