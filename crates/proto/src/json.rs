//! A strict JSON parser for untrusted input: the input of calls, answers of hooks, project files.
//!
//! When two parsers read the same text differently, a check approves one value and the tool gets another. So this parser
//! rejects a duplicate key (also one spelled with escapes), a second document, a lone surrogate, a number out of range,
//! too much depth and too much text, and names the position, before any other code sees the value.

use crate::format_count;
use crate::{Code, Refusal, Stage};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// The largest JSON text that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Maximum length of the text, in bytes.
    pub bytes: usize,
    /// Maximum nesting of arrays and objects.
    pub depth: usize,
}

impl JsonLimits {
    /// For the input of a call: it may have the content of a large file.
    pub const CALL: Self = Self { bytes: 16 * 1024 * 1024, depth: 64 };
    /// For settings files.
    pub const SETTINGS: Self = Self { bytes: 4 * 1024 * 1024, depth: 64 };
}

/// Why a text was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The code that the refusal will have.
    pub code: Code,
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// Line, from 1; 0 if the problem is the text as a whole.
    pub line: usize,
    /// Column, from 1; 0 if the problem is the text as a whole.
    pub column: usize,
}

impl JsonError {
    /// An error that has no place in the text, such as one about its size.
    fn without_position(code: Code, message: String) -> Self {
        Self { code, message, line: 0, column: 0 }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.line > 0 {
            write!(f, " (line {}, column {})", self.line, self.column)?;
        }
        Ok(())
    }
}

impl std::error::Error for JsonError {}

impl From<JsonError> for Refusal {
    fn from(problem: JsonError) -> Self {
        Refusal::new(problem.code, problem.to_string()).at_stage(Stage::Validate)
    }
}

/// Parses one JSON document.
pub fn parse(text: &str, limits: JsonLimits) -> Result<Value, JsonError> {
    if text.len() > limits.bytes {
        return Err(JsonError::without_position(
            Code::TooLarge,
            format!("the JSON text is {} bytes, more than the {} allowed", text.len(), limits.bytes),
        ));
    }
    let state = JsonParserState {
        depth: limits.depth,
        key_path: RefCell::new(Vec::new()),
        first_error: RefCell::new(None),
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // `StrictJsonVisitor` counts the depth: the error of serde_json's own limit names neither the limit nor a code.
    let seed = StrictJsonVisitor { state: &state, level: 0 };
    let value = seed.deserialize(&mut deserializer).map_err(|error| convert_error(&error, &state))?;
    deserializer.end().map_err(|error| JsonError {
        code: Code::TrailingText,
        message: "there is more text after the end of the JSON document".to_owned(),
        line: error.line(),
        column: error.column(),
    })?;
    Ok(value)
}

/// Parses one JSON document that has to be an object.
pub fn parse_object(text: &str, limits: JsonLimits) -> Result<Map<String, Value>, JsonError> {
    match parse(text, limits)? {
        Value::Object(map) => Ok(map),
        other => Err(JsonError::without_position(
            Code::NotAnObject,
            format!("the input must be a JSON object, got {}", describe(&other)),
        )),
    }
}

/// Describes a value for an error message: its type, and the value itself if it is short.
pub fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 60 => format!("the string {value}"),
        Value::String(text) => {
            format!("a string of {}", format_count(text.chars().count() as u64, "character", "characters"))
        }
        Value::Array(items) => format!("an array of {}", format_count(items.len() as u64, "item", "items")),
        Value::Object(map) => format!("an object with {}", format_count(map.len() as u64, "field", "fields")),
    }
}

/// Escapes one key for use in a JSON pointer (RFC 6901).
pub fn escape_pointer_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// What the visitors of one document share.
struct JsonParserState {
    /// Maximum nesting.
    depth: usize,
    /// Keys and indexes of the value that is being parsed, from the top.
    key_path: RefCell<Vec<String>>,
    /// The first error that `StrictJsonVisitor` itself found, with its code: a serde error has only text.
    first_error: RefCell<Option<(Code, String)>>,
}

impl JsonParserState {
    /// The JSON pointer of the value that is parsed now, for messages.
    fn pointer(&self) -> String {
        let key_path = self.key_path.borrow();
        if key_path.is_empty() {
            return "the top level".to_owned();
        }
        let mut out = String::from("`");
        for key in key_path.iter() {
            out.push('/');
            out.push_str(&escape_pointer_key(key));
        }
        out.push('`');
        out
    }

    /// Keeps the first error with its code, because serde's errors carry only text.
    fn fail<E: serde::de::Error>(&self, code: Code, message: String) -> E {
        let error = E::custom(&message);
        self.first_error.borrow_mut().get_or_insert((code, message));
        error
    }
}

/// The error with its place in the text: ours if there is one, else that of the JSON parser.
fn convert_error(error: &serde_json::Error, state: &JsonParserState) -> JsonError {
    let (code, message) = state.first_error.borrow_mut().take().unwrap_or_else(|| {
        let text = error.to_string();
        // serde_json appends " at line L column C", which `JsonError` has as fields.
        let plain = text.split(" at line ").next().unwrap_or(&text);
        let plain = if error.is_eof() { "unexpected end of input" } else { plain };
        (Code::InvalidJson, format!("not valid JSON: {plain}"))
    });
    JsonError { code, message, line: error.line(), column: error.column() }
}

/// Builds a [`Value`] as serde_json does, but fails on duplicate keys and too much depth.
#[derive(Clone, Copy)]
struct StrictJsonVisitor<'s> {
    state: &'s JsonParserState,
    level: usize,
}

impl<'s> StrictJsonVisitor<'s> {
    /// Goes one level deeper, unless the limit is reached.
    fn enter<E: serde::de::Error>(self) -> Result<StrictJsonVisitor<'s>, E> {
        let level = self.level + 1;
        if level > self.state.depth {
            return Err(self.state.fail(
                Code::TooDeep,
                format!("arrays and objects are nested more than {} levels deep", self.state.depth),
            ));
        }
        Ok(StrictJsonVisitor { state: self.state, level })
    }
}

impl<'de> DeserializeSeed<'de> for StrictJsonVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJsonVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.enter()?;
        let mut items = Vec::new();
        loop {
            self.state.key_path.borrow_mut().push(items.len().to_string());
            let next = access.next_element_seed(inner)?;
            self.state.key_path.borrow_mut().pop();
            match next {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.enter()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                let place = self.state.pointer();
                return Err(self
                    .state
                    .fail(Code::DuplicateKey, format!("the key `{key}` appears more than once in {place}")));
            }
            self.state.key_path.borrow_mut().push(key.clone());
            let value = access.next_value_seed(inner)?;
            self.state.key_path.borrow_mut().pop();
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> (Code, String) {
        let problem = parse_object(text, JsonLimits::CALL).unwrap_err();
        (problem.code, problem.to_string())
    }

    #[test]
    fn ambiguous_or_malformed_text_is_rejected() {
        for (text, code, expected) in [
            (r#"{"a":1,"a":2}"#, Code::DuplicateKey, "the key `a` appears more than once in the top level"),
            (r#"{"a":1,"\u0061":2}"#, Code::DuplicateKey, "`a` appears more than once"),
            (r#"{"x":[{"a~/b":{"c":1,"c":1}}]}"#, Code::DuplicateKey, "in `/x/0/a~0~1b`"),
            (r#"{"a":1} {"a":2}"#, Code::TrailingText, "more text after the end"),
            (r#"{"a":1}x"#, Code::TrailingText, "(line 1, column 8)"),
            ("[1]", Code::NotAnObject, "got an array of 1 item"),
            ("\"x\"", Code::NotAnObject, "got the string \"x\""),
            ("{\"a\":", Code::InvalidJson, "unexpected end of input"),
            ("{a:1}", Code::InvalidJson, "key must be a string"),
            (r#"{"a":1e400}"#, Code::InvalidJson, "number out of range"),
            (r#"{"a":"\ud800"}"#, Code::InvalidJson, "not valid JSON"),
            ("{\"a\":\"\u{1}\"}", Code::InvalidJson, "control character"),
            ("", Code::InvalidJson, "unexpected end of input"),
            ("{\"a\":NaN}", Code::InvalidJson, "not valid JSON"),
        ] {
            let (got, message) = error_of(text);
            assert_eq!(got, code, "{text}");
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(error_of(&deep).0, Code::TooDeep);
        let fits = format!("{{\"a\":{}{}}}", "[".repeat(63), "]".repeat(63));
        assert!(parse_object(&fits, JsonLimits::CALL).is_ok());
        let limits = JsonLimits { bytes: 10, depth: 4 };
        assert_eq!(parse(r#"{"a":"123456"}"#, limits).unwrap_err().code, Code::TooLarge);
    }

    proptest::proptest! {
        /// The strict parser accepts a subset, and agrees on it with serde_json.
        #[test]
        fn accepted_text_parses_as_in_serde_json(text in r#"[\{\}\[\]",:a1 \\]{0,24}"#) {
            if let Ok(value) = parse(&text, JsonLimits::CALL) {
                proptest::prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            }
        }
    }
}
