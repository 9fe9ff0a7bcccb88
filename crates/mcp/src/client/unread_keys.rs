//! The keys of a server's entry: which are known, and which are misspelled.
//!
//! Entries are shared with other products, which have keys of their own, so an unknown key is no problem by itself. One
//! that is almost a key of ours is: with `excludTools` every tool would be offered, against what the entry says.

use serde_json::{Map, Value};
use toolgate_proto::find_intended_name;

/// Keys that limit what a server may offer, or whether it is started.
const RESTRICTING_KEYS: [&str; 3] = ["disabled", "excludeTools", "includeTools"];

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
    /// Finds them. An error names a misspelled key that was meant to restrict: without it the server would offer more than
    /// its entry says.
    pub(super) fn find(entry: &Map<String, Value>) -> Result<Self, String> {
        let mut found = Self::default();
        for key in entry.keys() {
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
                None => found.unknown.push(key.clone()),
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
