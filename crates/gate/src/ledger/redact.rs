//! Redaction: what of an input may stand in a record.

use super::sha256_hex;
use serde_json::{Map, Value, json};
use toolgate_proto::secret_names::{contains_secret, is_secret_field};

/// Text longer than this is recorded by hash and preview.
const MAX_RECORDED_TEXT_BYTES: usize = 256;
/// How much of a long text stays readable in a record.
const MAX_PREVIEW_CHARS: usize = 80;

/// The input with secrets replaced by their hash, and long text by hash and preview.
pub fn redact(input: &Map<String, Value>) -> Value {
    Value::Object(redact_map(input))
}

/// Redacts each field, by its name and by its value.
fn redact_map(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .map(|(key, value)| {
            let value = if is_secret_field(key) { hash_secret(value) } else { redact_value(value) };
            (key.clone(), value)
        })
        .collect()
}

/// Redacts a value whose name is harmless: by what it looks like, and by its length.
fn redact_value(value: &Value) -> Value {
    match value {
        Value::String(text) if contains_secret(text) => hash_secret(value),
        Value::String(text) if text.len() > MAX_RECORDED_TEXT_BYTES => {
            let preview: String = text.chars().take(MAX_PREVIEW_CHARS).collect();
            json!({ "sha256": sha256_hex(text.as_bytes()), "chars": text.chars().count(), "preview": preview })
        }
        Value::Array(items) => items.iter().map(redact_value).collect(),
        Value::Object(map) => Value::Object(redact_map(map)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The hash in place of a secret, so that equal secrets are recognisable and none is readable.
fn hash_secret(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    json!({ "secret_sha256": sha256_hex(text.as_bytes()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let input = json!({
            "file_path": "/a",
            "api_key": "hunter2",
            "nested": { "Authorization": "Bearer x", "list": ["ghp_0123456789abcdefghij", "plain"] },
            "command": "curl -H 'x: sk-ant-REDACTED0123'",
            "content": "y".repeat(300),
        });
        let out = redact(input.as_object().unwrap()).to_string();
        for gone in ["hunter2", "Bearer", "ghp_", "sk-ant"] {
            assert!(!out.contains(gone), "{gone} in {out}");
        }
        assert!(out.contains("\"/a\"") && out.contains("plain") && out.contains("\"chars\":300"));
    }
}
