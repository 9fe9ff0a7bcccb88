//! A generator of random settings. It draws every key of the schema by the table of merge rules, so that a new key is
//! covered without a change here.

use super::super::merge::{KeyRule, insert_at, key_rules};
use super::super::schema::settings_schema;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use toolgate_proto::Mode;

/// Rules that match, or nearly match, the test calls.
const RULES: &[&str] = &[
    "Bash",
    "Bash(ls *)",
    "Bash(npm test)",
    "Bash(npm *)",
    "Bash(rm *)",
    "Bash(curl *)",
    "Read",
    "Read(.env)",
    "Read(//etc/**)",
    "Edit",
    "Edit(src/**)",
    "Edit(/**)",
    "Write",
    "WebFetch",
    "WebFetch(domain:a.example)",
    "WebFetch(domain:127.0.0.1)",
    "WebSearch",
    "mcp__guard",
    "mcp__guard__check",
    "Agent",
    "Edit(//opt/**)",
];
/// Hosts that the test calls fetch, and patterns for them.
const HOSTS: &[&str] = &["a.example", "*.example", "*", "127.0.0.1", "b.example"];
/// Paths in each form that settings accept.
const PATHS: &[&str] = &["src", "/opt", "~/x", "//etc", "/", "."];

/// Draws random settings from a seed (SplitMix64), so that a failing case can be repeated.
pub(super) struct SettingsGenerator(pub(super) u64);

impl SettingsGenerator {
    /// The next random number.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True once in `n` draws.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the texts.
    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    /// A list of up to three of the texts.
    fn texts(&mut self, from: &[&str]) -> Value {
        (0..self.below(4)).map(|_| json!(self.of(from))).collect()
    }

    /// A value for a key: one that matters to the test calls where there are such values, else any that the schema accepts.
    pub(super) fn value(&mut self, key: &KeyRule) -> Value {
        let name = key.name();
        match name.as_str() {
            "permissions.allow" | "permissions.ask" | "permissions.deny" => self.texts(RULES),
            "permissions.defaultMode" => json!(Mode::ALL[self.below(Mode::ALL.len())].as_str()),
            "ledger.anchor" => json!(self.of(&["/opt/anchor.log", "~/anchor.log", "syslog"])),
            "disabledTools" | "managed.disabledTools" => self.texts(&["Bash", "Read", "mcp__guard__check"]),
            "policy" => self.book(),
            "hooks" => self.hooks(),
            "mcpServers" | "managedMcpServers" => {
                json!({ self.of(&["guard", "x"]): { "command": self.of(&["true", "false"]) } })
            }
            "env" => json!({ self.of(&["PATH", "A", "TOKEN"]): self.of(&["/evil", "1"]) }),
            _ if name.to_ascii_lowercase().ends_with("domains") || name == "preApproval.allowPrivate" => {
                self.texts(HOSTS)
            }
            _ if name.starts_with("sandbox.filesystem")
                || name.ends_with("Directories") && !name.contains("block") =>
            {
                self.texts(PATHS)
            }
            "sandbox.environment.pass" => self.texts(&["A", "*", "TOKEN"]),
            "enabledMcpjsonServers" | "disabledMcpjsonServers" => self.texts(&["p", "guard"]),
            "allowedHttpHookUrls" => self.texts(&["http://127.0.0.1/*", "http://localhost:1/*", "*"]),
            "httpHookAllowedEnvVars" => self.texts(&["TOKEN", "A"]),
            _ => {
                let path: Vec<String> = key.path.clone();
                let schema = path.iter().fold(settings_schema(), |schema, name| &schema["properties"][name]);
                self.by_schema(schema)
            }
        }
    }

    /// A value that the schema accepts.
    fn by_schema(&mut self, schema: &Value) -> Value {
        if let Some(options) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
            let options: Vec<&Value> = options.iter().filter(|option| option["type"] != "null").collect();
            let option = options[self.below(options.len())];
            return self.by_schema(option);
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return words[self.below(words.len())].clone();
        }
        if let Some(one) = schema.get("const") {
            return one.clone();
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            _ => return [json!(true), json!("5m"), json!({ "a": 1 })][self.below(3)].clone(),
        };
        match kinds[self.below(kinds.len())] {
            "boolean" => json!(self.one_in(2)),
            "integer" | "number" => {
                let least = schema.get("minimum").and_then(Value::as_u64).unwrap_or(0);
                json!(least + self.next() % 1000)
            }
            "array" => (0..self.below(3)).map(|_| self.by_schema(&schema["items"])).collect(),
            "object" => {
                let mut out = Map::new();
                for (name, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
                {
                    if self.one_in(2) {
                        out.insert(name.clone(), self.by_schema(below));
                    }
                }
                if schema.get("properties").is_none() {
                    let below = &schema["additionalProperties"];
                    out.insert(self.of(&["a", "b"]).to_owned(), self.by_schema(below));
                }
                Value::Object(out)
            }
            _ => json!(self.of(&["a", "Bash", "/opt", "a.example"])),
        }
    }

    /// Rules for the key `policy`.
    fn book(&mut self) -> Value {
        let mut book = Map::new();
        if !self.one_in(3) {
            book.insert("defaultAction".to_owned(), json!(self.of(&["allow", "ask", "deny"])));
        }
        let rules = (0..self.below(4)).map(|_| {
            let mut rule = json!({
                "tool": self.of(&["*", "Bash", "Read", "Write", "WebFetch", "mcp__guard__check"]),
                "action": self.of(&["allow", "ask", "deny"]),
                "risk": self.of(&["low", "high"]),
            });
            if self.one_in(2) {
                let text = self.of(&["npm", "ls", "x"]);
                // A field that a built-in tool does not have is an error.
                let param = match rule["tool"].as_str() {
                    Some("Read" | "Write") => "file_path",
                    Some("WebFetch") => "url",
                    _ => "command",
                };
                rule["conditions"] = json!([{ "param": param, "operator": "contains", "value": text }]);
            }
            rule
        });
        book.insert("rules".to_owned(), rules.collect());
        Value::Object(book)
    }

    /// A hook of one of three types.
    fn hooks(&mut self) -> Value {
        let handler = match self.below(3) {
            0 => json!({ "type": "command", "command": self.of(&["exit 2", "./guard.sh", "touch ran"]) }),
            1 => json!({ "type": "http", "url": "http://127.0.0.1:1/x", "onFailure": "continue",
                         "headers": { "A": "$TOKEN" }, "allowedEnvVars": ["TOKEN"] }),
            _ => json!({ "type": "mcp_tool", "server": "guard", "tool": "check" }),
        };
        json!({ self.of(&["PreToolUse", "PermissionRequest"]): [{ "matcher": self.of(&["Bash", "*"]), "hooks": [handler] }] })
    }

    /// Settings in which each key occurs once in `chance` draws. The drawn keys are added to `drawn`.
    pub(super) fn settings(&mut self, chance: usize, drawn: &mut BTreeSet<String>) -> Value {
        let mut out = Map::new();
        for key in key_rules() {
            if self.one_in(chance) {
                insert_at(&mut out, &key.path, self.value(key));
                drawn.insert(key.name());
            }
        }
        Value::Object(out)
    }
}
