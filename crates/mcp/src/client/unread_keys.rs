//! The keys of a server's entry: which are known, and which are misspelled.
//!
//! Entries are shared with other products, which have keys of their own, so an unknown key is no problem by itself. One
//! that is almost a key of ours is: with `excludTools` every tool would be offered, against what the entry says.

use serde_json::{Map, Value};
use toolgate_proto::find_intended_name;

/// Keys that limit what a server may offer, or whether it is started.
const RESTRICTING_KEYS: [&str; 4] = ["disabled", "enabled", "excludeTools", "includeTools"];

/// Names of other products and common guesses for keys that limit the tools, with the key that means the same here.
const RENAMED_KEYS: [(&str, &str); 39] = [
    ("allow", INCLUDE),
    ("allowTools", INCLUDE),
    ("allowed", INCLUDE),
    ("allowedTools", INCLUDE),
    ("allowlist", INCLUDE),
    ("blacklist", EXCLUDE),
    ("block", EXCLUDE),
    ("blockTools", EXCLUDE),
    ("blocked", EXCLUDE),
    ("blockedTools", EXCLUDE),
    ("blocklist", EXCLUDE),
    ("denied", EXCLUDE),
    ("deniedTools", EXCLUDE),
    ("deny", EXCLUDE),
    ("denyTools", EXCLUDE),
    ("denylist", EXCLUDE),
    ("disableTools", EXCLUDE),
    ("disabledTools", EXCLUDE),
    ("disallow", EXCLUDE),
    ("disallowed", EXCLUDE),
    ("disallowedTools", EXCLUDE),
    ("enableTools", INCLUDE),
    ("enabledTools", INCLUDE),
    ("exclude", EXCLUDE),
    ("forbiddenTools", EXCLUDE),
    ("hiddenTools", EXCLUDE),
    ("ignoredTools", EXCLUDE),
    ("include", INCLUDE),
    ("only", INCLUDE),
    ("onlyTools", INCLUDE),
    ("toolAllowlist", INCLUDE),
    ("toolBlocklist", EXCLUDE),
    ("toolDenylist", EXCLUDE),
    ("toolFilter", EITHER),
    ("toolFilters", EITHER),
    ("toolWhitelist", INCLUDE),
    ("tools", INCLUDE),
    ("toolsFilter", EITHER),
    ("whitelist", INCLUDE),
];

/// The key that names the only tools.
const INCLUDE: &str = "includeTools";
/// The key that withholds tools.
const EXCLUDE: &str = "excludeTools";
/// One of these keys.
const EITHER: &str = "includeTools` or `excludeTools";

/// From how many letters on a misspelling of a name of [`RENAMED_KEYS`] is recognised whatever its value; shorter names are
/// near too many other words.
const MIN_MISSPELLED_CHARS: usize = 6;

/// Names of other products and common guesses for the switch of an entry, each with the value that switches it off and
/// the key that means the same here.
const SWITCH_KEYS: [(&str, bool, &str); 9] = [
    ("active", false, "enabled"),
    ("autoStart", false, "enabled"),
    ("inactive", true, "disabled"),
    ("isActive", false, "enabled"),
    ("isDisabled", true, "disabled"),
    ("isEnabled", false, "enabled"),
    ("off", true, "disabled"),
    ("on", false, "enabled"),
    ("skip", true, "disabled"),
];

/// The other keys that are read.
const OTHER_KEYS: [&str; 13] = [
    "alwaysLoad",
    "args",
    "command",
    "connectTimeout",
    "cwd",
    "env",
    "headers",
    "httpUrl",
    "oauth",
    "roots",
    "timeout",
    "type",
    "url",
];

/// The keys of the object `oauth`.
const OAUTH_KEYS: [&str; 4] = ["callbackPort", "clientId", "clientSecret", "scopes"];

/// The keys of an entry that are not read.
#[derive(Debug, Default)]
pub(super) struct UnreadKeys {
    /// Misspelled keys, each with the key that was meant, as a message.
    pub(super) misspelled: Vec<String>,
    /// Keys that are like none of ours.
    pub(super) unknown: Vec<String>,
}

impl UnreadKeys {
    /// Finds them. An error names a key that was meant to restrict, misspelled or under a name of another product: without
    /// it the server would offer more than its entry says.
    pub(super) fn find(entry: &Map<String, Value>) -> Result<Self, String> {
        let mut found = Self::default();
        for (key, value) in entry {
            if RESTRICTING_KEYS.contains(&key.as_str()) || OTHER_KEYS.contains(&key.as_str()) {
                continue;
            }
            match find_intended_name(key, RESTRICTING_KEYS.into_iter().chain(OTHER_KEYS)) {
                Some(meant) => {
                    let message = format!("unknown key `{key}`; did you mean `{meant}`?");
                    if RESTRICTING_KEYS.contains(&meant) {
                        return Err(message);
                    }
                    found.misspelled.push(message);
                }
                None => match find_switch(key, value).or_else(|| find_renamed_key(key, value)) {
                    Some(meant) => return Err(format!("unknown key `{key}`; did you mean `{meant}`?")),
                    None => found.unknown.push(key.clone()),
                },
            }
        }
        let oauth = entry.get("oauth").and_then(Value::as_object);
        for key in oauth.into_iter().flat_map(Map::keys).filter(|key| !OAUTH_KEYS.contains(&key.as_str())) {
            match find_intended_name(key, OAUTH_KEYS) {
                Some(meant) => {
                    found.misspelled.push(format!("unknown key `oauth.{key}`; did you mean `oauth.{meant}`?"))
                }
                None => found.unknown.push(format!("oauth.{key}")),
            }
        }
        Ok(found)
    }
}

/// The key of ours that one of [`RENAMED_KEYS`] stands for, also if it is misspelled, where its value withholds a tool.
fn find_renamed_key(key: &str, value: &Value) -> Option<&'static str> {
    let fold = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let is_same = |name: &str| fold(name) == fold(key);
    let (same, meant) = match RENAMED_KEYS.iter().find(|(name, _)| is_same(name)) {
        Some((_, meant)) => (true, *meant),
        None => {
            let name = find_intended_name(key, RENAMED_KEYS.iter().map(|(name, _)| *name))?;
            (false, RENAMED_KEYS.iter().find(|(other, _)| *other == name).map(|(_, meant)| *meant)?)
        }
    };
    // A list is one of tools more likely than a switch or a text.
    let is_clear = same || value.is_array() || key.chars().count() >= MIN_MISSPELLED_CHARS;
    (is_clear && limits_tools(meant, value)).then_some(meant)
}

/// Whether a value of such a key withholds a tool. Other products write `"disabledTools": []` and `"tools": ["*"]` into
/// every entry.
fn limits_tools(meant: &str, value: &Value) -> bool {
    let is_all = |value: &Value| value.as_str() == Some("*");
    let includes = meant == INCLUDE;
    match value {
        Value::Null => false,
        Value::Bool(is_on) => *is_on != includes,
        Value::Array(names) if includes => !names.iter().any(is_all),
        Value::Array(names) => !names.is_empty(),
        Value::Object(fields) => includes || !fields.is_empty(),
        other => !includes || !is_all(other),
    }
}

/// The switch of ours that one of [`SWITCH_KEYS`] stands for, if its value switches the entry off.
fn find_switch(key: &str, value: &Value) -> Option<&'static str> {
    let fold = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let (_, off, meant) = SWITCH_KEYS.iter().find(|(name, ..)| fold(name) == fold(key))?;
    let is_off = match value {
        Value::Bool(value) => value == off,
        Value::String(text) => {
            let is_true = matches!(text.to_lowercase().as_str(), "true" | "yes" | "on" | "1");
            let is_false = matches!(text.to_lowercase().as_str(), "false" | "no" | "off" | "0");
            if *off { is_true } else { is_false }
        }
        Value::Number(number) => number.as_f64().is_some_and(|number| (number != 0.0) == *off),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    is_off.then_some(*meant)
}

#[cfg(test)]
mod tests {
    use super::super::server_entry::{ServerListOrigin, read_servers};
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;
    use toolgate_proto::AbsPath;

    #[test]
    fn a_misspelled_key_that_restricts_makes_an_entry_unusable_and_others_are_noted() {
        let (env, base) = (BTreeMap::new(), AbsPath::root());
        let origin = ServerListOrigin { file: "f", base: &base, env: &env, trusted: true };
        let read = |key: &str, value: Value| {
            let mut entry = json!({ "command": "x" });
            entry[key] = value;
            let (servers, problems) = read_servers(&json!({ "srv": entry }), &origin);
            (servers.into_iter().next(), problems)
        };
        for (key, value, meant) in [
            ("excludTools", json!(["w"]), "excludeTools"),
            ("exclude_tools", json!(["w"]), "excludeTools"),
            ("excludedTools", json!(["w"]), "excludeTools"),
            ("includeTool", json!(["w"]), "includeTools"),
            ("IncludeTools", json!(["w"]), "includeTools"),
            ("disable", json!(true), "disabled"),
            ("enable", json!(false), "enabled"),
            ("disabledTools", json!(["w"]), "excludeTools"),
            ("disabled_tools", json!(["w"]), "excludeTools"),
            ("blockedTools", json!(["w"]), "excludeTools"),
            ("exclude", json!(["w"]), "excludeTools"),
            ("exclud", json!(["w"]), "excludeTools"),
            ("allowedTools", json!([]), "includeTools"),
            ("tools", json!(["r"]), "includeTools"),
            ("tools", json!({ "read": true }), "includeTools"),
            ("deny", json!(["w"]), "excludeTools"),
            ("Deny", json!("w"), "excludeTools"),
            ("denny", json!(["w"]), "excludeTools"),
            ("block", json!(["w"]), "excludeTools"),
            ("blocked", json!(["w"]), "excludeTools"),
            ("denied", json!(["w"]), "excludeTools"),
            ("disallow", json!(["w"]), "excludeTools"),
            ("denylist", json!(["w"]), "excludeTools"),
            ("deny_list", json!(["w"]), "excludeTools"),
            ("allow", json!(["r"]), "includeTools"),
            ("allowed", json!(["r"]), "includeTools"),
            ("only", json!(["r"]), "includeTools"),
            ("allowlist", json!(["r"]), "includeTools"),
            ("toolFilter", json!(["r"]), "includeTools` or `excludeTools"),
            ("tool_filter", json!({ "exclude": ["w"] }), "includeTools` or `excludeTools"),
            ("active", json!(false), "enabled"),
            ("active", json!("false"), "enabled"),
            ("is_active", json!(0), "enabled"),
            ("inactive", json!(true), "disabled"),
        ] {
            let (server, problems) = read(key, value);
            let wanted = format!("f: server `srv`: unknown key `{key}`; did you mean `{meant}`?");
            assert_eq!((server, problems), (None, vec![wanted]));
        }
        for (key, value, says) in [
            ("alwaysload", json!(true), "`alwaysload`; did you mean `alwaysLoad`?"),
            ("connect_timeout", json!(1), "did you mean `connectTimeout`?"),
            ("oauth", json!({ "clientid": "x" }), "`oauth.clientid`; did you mean `oauth.clientId`?"),
        ] {
            let (server, problems) = read(key, value);
            assert!(server.is_some() && problems.len() == 1 && problems[0].contains(says), "{problems:?}");
        }
        let keys = ["autoApprove", "alwaysAllow", "description", "trust", "icon", "transport", "_meta"];
        let of_others = keys.map(|key| (key, json!(true))).into_iter();
        // What other products write where nothing is withheld.
        let without_effect =
            [("disabledTools", json!([])), ("tools", json!(["*"])), ("exclude", Value::Null)].into_iter();
        let without_limit = [
            ("active", json!(true)),
            ("inactive", json!(false)),
            ("allow", json!(true)),
            ("deny", json!([])),
            ("toolFilter", json!({})),
            ("deno", json!("x")),
        ];
        for (key, value) in of_others.chain(without_effect).chain(without_limit) {
            let (server, problems) = read(key, value);
            assert_eq!((server.unwrap().unknown_keys, problems), (vec![key.to_owned()], Vec::new()));
        }
    }
}
