//! The lines of `check --batch` and `call --batch`, each with one JSON object, and the `id` of a line that is not one.

use super::CliError;
use super::context::CliContext;
use serde_json::{Map, Value};
use std::io::{self, BufRead, BufReader, Read};
use toolgate_proto::json::{JsonError, JsonLimits, parse_object};

/// How many bytes are read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// The lines of a batch that are not blank, read one by one.
pub(crate) struct BatchLines {
    /// The file or standard input.
    reader: BufReader<Box<dyn Read>>,
    /// The number of the last line that was read, from 1.
    number: usize,
}

/// One line of a batch.
pub(crate) struct BatchLine {
    /// Its number in the file, from 1.
    pub(crate) number: usize,
    /// Its text; bytes that are not UTF-8 are replaced.
    text: String,
    /// The first byte that is not UTF-8, from 1.
    invalid_byte: Option<usize>,
}

impl BatchLines {
    /// The lines of a file, or of standard input for `-`.
    pub(crate) fn open(context: &CliContext, file: &str) -> Result<Self, CliError> {
        let reader: Box<dyn Read> = if file == "-" {
            Box::new(io::stdin())
        } else {
            let path = context.ambient.absolute_path(file);
            Box::new(
                toolgate_files::open_named_file(&path)
                    .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?,
            )
        };
        Ok(Self { reader: BufReader::with_capacity(BUFFER_BYTES, reader), number: 0 })
    }
}

impl Iterator for BatchLines {
    type Item = io::Result<BatchLine>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut bytes = Vec::new();
            match self.reader.read_until(b'\n', &mut bytes) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
            self.number += 1;
            let line = BatchLine::from_bytes(self.number, bytes);
            if !line.text.trim().is_empty() {
                return Some(Ok(line));
            }
        }
    }
}

impl BatchLine {
    /// A line from its bytes. One that is not UTF-8 is a line too: it must not end the run of all others.
    fn from_bytes(number: usize, bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self { number, text, invalid_byte: None },
            Err(error) => {
                let invalid_byte = Some(error.utf8_error().valid_up_to() + 1);
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Self { number, text, invalid_byte }
            }
        }
    }

    /// Its text, or why it has none.
    pub(crate) fn text(&self) -> Result<&str, String> {
        match self.invalid_byte {
            None => Ok(&self.text),
            Some(byte) => Err(format!("the line is not valid UTF-8 (byte {byte})")),
        }
    }

    /// Its `id`, for a line that is not a call: `None` if the line does not say with certainty which one is its own.
    pub(crate) fn find_id(&self) -> Option<Value> {
        let id = match parse_object(&self.text, JsonLimits::CALL) {
            Ok(fields) => fields.get("id").cloned(),
            Err(_) => find_id_in_invalid_json(&self.text),
        };
        let is_replaced = |id: &Value| id.as_str().is_some_and(|text| text.contains('\u{fffd}'));
        id.filter(|id| self.invalid_byte.is_none() || !is_replaced(id))
    }
}

/// Removes the `id` of a line, which is a string or a number and is given back as it is.
pub(crate) fn take_id(fields: &mut Map<String, Value>) -> Result<Option<Value>, String> {
    match fields.remove("id") {
        None | Some(Value::Null) => Ok(None),
        Some(id @ (Value::String(_) | Value::Number(_))) => Ok(Some(id)),
        Some(other) => Err(format!(
            "`id` is {}, but must be a string or a number",
            toolgate_proto::json::describe(&other)
        )),
    }
}

/// Removes a field that must be a string, if it is present.
pub(crate) fn take_text(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(format!("`{key}` is {}, but must be a string", toolgate_proto::json::describe(&other)))
        }
    }
}

/// Why a line is not a call, with the column in the line. The parser counts lines too, from 1 in this line, which would
/// contradict the number of the line in its file; an end that is missing has no column.
pub(crate) fn describe_json_problem(problem: &JsonError) -> String {
    match (problem.line, problem.column) {
        (1, 1..) => format!("{} (column {})", problem.message, problem.column),
        (_, _) => problem.message.clone(),
    }
}

/// A token of text that may not be JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonToken<'l> {
    /// A bracket, a colon or a comma.
    Mark(char),
    /// A string with its quotes.
    Text(&'l str),
    /// Anything else, such as a number, or a string that is not closed.
    Word(&'l str),
}

/// The first token of a text, and the text behind it.
fn split_token(text: &str) -> Option<(JsonToken<'_>, &str)> {
    let is_mark = |c: char| matches!(c, '{' | '}' | '[' | ']' | ':' | ',');
    let text = text.trim_start();
    let first = text.chars().next()?;
    if is_mark(first) {
        return Some((JsonToken::Mark(first), text.strip_prefix(first)?));
    }
    if first != '"' {
        let end = text.find(|c: char| is_mark(c) || c == '"' || c.is_whitespace()).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end)?;
        return Some((JsonToken::Word(word), rest));
    }
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    match end.and_then(|(index, _)| text.split_at_checked(index + 1)) {
        Some((string, rest)) => Some((JsonToken::Text(string), rest)),
        None => Some((JsonToken::Word(text), "")),
    }
}

/// The `id` of the object that begins a text of invalid JSON. A program finds its call by it, so another value is worse
/// than none: it must be the only `id` at the top level, in front of which all brackets and quotes are in pairs.
fn find_id_in_invalid_json(line: &str) -> Option<Value> {
    let mut rest = line.trim_start().strip_prefix('{')?;
    let mut open = vec!['}'];
    let mut before = JsonToken::Mark('{');
    let mut found = None;
    while let Some((token, behind)) = split_token(rest) {
        rest = behind;
        match token {
            JsonToken::Mark('{') => open.push('}'),
            JsonToken::Mark('[') => open.push(']'),
            JsonToken::Mark(mark @ ('}' | ']')) => {
                if open.pop() != Some(mark) {
                    return None;
                }
                if open.is_empty() {
                    // A second object on the line may be a call with an id of its own.
                    return found.filter(|_| !rest.contains("\"id\""));
                }
            }
            JsonToken::Mark(_) => {}
            JsonToken::Text(_) | JsonToken::Word(_) => {
                // Two values side by side: a quote is missing, so what is inside of strings is not known.
                if found.is_none() && !matches!(before, JsonToken::Mark(_)) {
                    return None;
                }
                if let JsonToken::Text(key) = token
                    && matches!(before, JsonToken::Mark('{' | ','))
                    && open.len() == 1
                    && serde_json::from_str::<String>(key).is_ok_and(|key| key == "id")
                {
                    if found.is_some() {
                        return None;
                    }
                    found = Some(read_id(rest)?);
                }
            }
        }
        before = token;
    }
    found
}

/// The value of a field, from the colon on. It must be a string or a number, and whole.
fn read_id(text: &str) -> Option<Value> {
    let (JsonToken::Mark(':'), text) = split_token(text)? else { return None };
    let (JsonToken::Text(value) | JsonToken::Word(value), text) = split_token(text)? else { return None };
    let (JsonToken::Mark(',' | '}'), _) = split_token(text)? else { return None };
    serde_json::from_str(value).ok().filter(|id: &Value| id.is_string() || id.is_number())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_id_of_an_invalid_line_is_its_own_or_none() {
        for (line, id) in [
            (r#"{"input":{"id":"inner"},"tool":"x","id":"real",}"#, json!("real")),
            (r#"{"id":"c","tool": "#, json!("c")),
            (r#"{"id" : 7 ,"tool":}"#, json!(7)),
            (r#"{tool: x, "id":"a b"}"#, json!("a b")),
            (r#"{"\u0069d":"a","tool"}"#, json!("a")),
            (r#"{"input":"{\"id\":\"inner\"}","id":"real" x}"#, json!(null)),
            (r#"{"input":"{\"id\":\"inner\"}","id":"real",,}"#, json!("real")),
            (r#"{"id":"a","input":{"x":True,"id":"inner"}}"#, json!("a")),
            (r#"{"id":1,"tool":"x"} text"#, json!(1)),
            // Not certain: only an inner one, two, one behind a mistake that hides where strings or objects end.
            (r#"{"input":{"id":"inner"},"tool":"x",}"#, json!(null)),
            (r#"{"id":2,"id":3}"#, json!(null)),
            (r#"{"input":{"a":1,"id":"real"}"#, json!(null)),
            (r#"{"input":[1,2},"id":"a"}"#, json!(null)),
            (r#"{"tool":"x, "id":"a"}"#, json!(null)),
            (r#"{"input":"{"a":1,"id":"inner"}","tool":"x"}"#, json!(null)),
            (r#"{"id":1,"tool":"x"}{"id":2,"tool":"x"}"#, json!(null)),
            (r#"{"id":12"#, json!(null)),
            (r#"{"id":{"a":1},}"#, json!(null)),
            (r#"["id",1]"#, json!(null)),
            ("no json", json!(null)),
            ("{", json!(null)),
        ] {
            let found = BatchLine::from_bytes(1, line.into()).find_id();
            assert_eq!(found.unwrap_or_default(), id, "{line}");
        }
    }

    #[test]
    fn a_line_that_is_not_utf8_keeps_an_id_that_can_be_read() {
        for (line, byte, id) in [
            (&b"{\"id\":\"a\",\"tool\":\"\xff\"}"[..], 19, json!("a")),
            (b"{\"id\":\"a\xff\",\"tool\":\"x\"}", 9, json!(null)),
        ] {
            let line = BatchLine::from_bytes(1, line.to_vec());
            assert_eq!(line.text(), Err(format!("the line is not valid UTF-8 (byte {byte})")));
            assert_eq!(line.find_id().unwrap_or_default(), id);
        }
    }
}
