//! The front matter of a Markdown file: YAML between two lines of `---`, and the body below it.
//!
//! About one public file in 150 has front matter that is not YAML, mostly because of a colon or a bracket in a
//! description. Such a file is read line by line (`key: rest of the line`) and reported; dropping it would make a skill
//! disappear silently, and refusing to start would let one bad file disable all the others.

use crate::problem::CapabilityProblem;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Front matter that is longer is read line by line: no public file has a hundredth of it.
const MAX_YAML_BYTES: usize = 64 * 1024;
/// The most nodes of front matter; aliases count with what they repeat.
const MAX_YAML_NODES: usize = 10_000;
/// The deepest nesting.
const MAX_YAML_DEPTH: usize = 32;

/// A file, split and read.
#[derive(Debug, Clone, Default)]
pub struct FrontMatter {
    /// The fields, in the order of the file.
    pub fields: Map<String, Value>,
    /// The text below, with `\n` at the end of each line.
    pub body: String,
    /// The line on which the body begins, from 1.
    pub body_line: usize,
    /// Whether the file has front matter at all.
    pub is_present: bool,
    /// What could not be read as it was written.
    pub problems: Vec<CapabilityProblem>,
    /// The line and the rest of the line of each field at the top level.
    lines: BTreeMap<String, (usize, String)>,
}

impl FrontMatter {
    /// Splits and reads a file. Never fails.
    pub fn read(bytes: &[u8]) -> Self {
        let mut front = Self { body_line: 1, ..Self::default() };
        let text = front.decode(bytes);
        let Some((header, body)) = split_header(&text) else {
            front.read_without_end(&text);
            return front;
        };
        front.is_present = true;
        front.body_line = header.lines().count() + 3;
        front.body = body.to_owned();
        front.lines = scan_keys(header);
        match parse_yaml(header) {
            Ok(fields) => front.fields = fields,
            Err((line, message)) => {
                front.problems.push(CapabilityProblem::warning(
                    line + 1,
                    format!("the front matter is not YAML ({message}); it was read line by line: put quotes around the value"),
                ));
                front.read_line_by_line(header);
            }
        }
        front
    }

    /// The line of a field; the first line if it has none of its own.
    pub fn line_of(&self, key: &str) -> usize {
        self.lines.get(key).map_or(1, |(line, _)| *line)
    }

    /// What stands after the colon of a field, as it was written.
    pub fn raw_value(&self, key: &str) -> Option<&str> {
        self.lines.get(key).map(|(_, rest)| rest.as_str())
    }

    /// The bytes as text: without a byte order mark, with `\n` only, and with bytes that are not UTF-8 replaced.
    fn decode(&mut self, bytes: &[u8]) -> String {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
                let message = "the file is not UTF-8; the bytes that are not were replaced by `\u{FFFD}`";
                self.problems.push(CapabilityProblem::warning(line, message));
                String::from_utf8_lossy(bytes).into_owned()
            }
        };
        if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
    }

    /// Reads a file without front matter, or whose front matter has no end.
    fn read_without_end(&mut self, text: &str) {
        if !is_fence(text.lines().next().unwrap_or_default()) {
            text.clone_into(&mut self.body);
            return;
        }
        // As far as the lines look like fields they are fields: a restriction among them must not be lost.
        let header: Vec<&str> = text.lines().skip(1).take_while(|line| is_header_line(line)).collect();
        self.is_present = true;
        self.body_line = header.len() + 2;
        let below: Vec<&str> = text.lines().skip(header.len() + 1).collect();
        self.body = below.join("\n");
        let header = header.join("\n");
        self.lines = scan_keys(&header);
        self.problems.push(CapabilityProblem::warning(
            1,
            "the front matter has no end; it was read line by line: add a line `---` below the last field",
        ));
        self.read_line_by_line(&header);
    }

    /// Reads `key: rest of the line`; a list or a block of text may follow, indented.
    fn read_line_by_line(&mut self, header: &str) {
        let mut lines = header.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let Some((key, rest)) = split_field(line) else {
                let shown: String = line.chars().take(60).collect();
                let message = format!("this line was not read, because it is not `key: value`: `{shown}`");
                self.problems.push(CapabilityProblem::warning(index + 2, message));
                continue;
            };
            let mut below = Vec::new();
            while let Some((_, next)) = lines.next_if(|(_, next)| is_continuation(next)) {
                below.push(next.trim());
            }
            if self.fields.contains_key(key) {
                let message = format!("`{key}` occurs twice; the last one counts");
                self.problems.push(CapabilityProblem::warning(index + 2, message));
            }
            self.fields.insert(key.to_owned(), loose_value(rest, &below));
        }
    }
}

/// The value of a field that is read line by line.
fn loose_value(rest: &str, below: &[&str]) -> Value {
    let items: Option<Vec<Value>> = below
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| line.strip_prefix("- ").map(|item| Value::String(unquote(item.trim()).to_owned())))
        .collect();
    let is_block = matches!(rest.trim_end_matches(['+', '-']), "" | "|" | ">");
    match items {
        Some(items) if rest.is_empty() && !items.is_empty() => Value::Array(items),
        _ if is_block => Value::String(below.join("\n").trim().to_owned()),
        _ if below.is_empty() => Value::String(unquote(rest).to_owned()),
        _ => Value::String(format!("{} {}", unquote(rest), below.join(" ").trim())),
    }
}

/// A text without the quotes around it.
fn unquote(text: &str) -> &str {
    let inner = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// Whether a line is the fence around front matter.
fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Whether a line can belong to front matter that has no end.
fn is_header_line(line: &str) -> bool {
    split_field(line).is_some()
        || line.starts_with([' ', '\t']) && !line.trim().is_empty()
        || line.starts_with("- ")
}

/// Whether a line continues the field above it.
fn is_continuation(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with([' ', '\t']) || line.starts_with("- ")
}

/// The key and the rest of a line at the top level.
fn split_field(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let fits = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    (fits && (rest.is_empty() || rest.starts_with([' ', '\t']))).then(|| (key, rest.trim()))
}

/// Where each field of the top level stands, counted from the first line of the file.
fn scan_keys(header: &str) -> BTreeMap<String, (usize, String)> {
    let mut lines = BTreeMap::new();
    for (index, line) in header.lines().enumerate() {
        if let Some((key, rest)) = split_field(line) {
            lines.entry(key.to_owned()).or_insert_with(|| (index + 2, rest.to_owned()));
        }
    }
    lines
}

/// The text between the fences, and the text below them.
fn split_header(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if !is_fence(first) {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if is_fence(line) {
            return Some((rest.get(..end)?, rest.get(end + line.len()..)?));
        }
        end += line.len();
    }
    None
}

/// Reads YAML; the error has its line in the header, from 1.
fn parse_yaml(header: &str) -> Result<Map<String, Value>, (usize, String)> {
    if header.len() > MAX_YAML_BYTES {
        return Err((1, format!("it is longer than {MAX_YAML_BYTES} bytes")));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_YAML_NODES,
            max_events: 4 * MAX_YAML_NODES,
            max_depth: MAX_YAML_DEPTH,
            max_aliases: 64,
            max_anchors: 64,
            max_total_scalar_bytes: 4 * MAX_YAML_BYTES,
        },
        with_snippet: false,
        // `y`, `on` and `no` are words here; switches are read as what they are meant to be.
        strict_booleans: true,
    };
    match serde_saphyr::from_str_with_options::<Value>(header, options) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err((1, "it is not a list of fields".to_owned())),
        Err(error) => {
            let line = error.location().map_or(1, |place| usize::try_from(place.line()).unwrap_or(1));
            let message = error.without_snippet().to_string();
            // Its lines are counted from the fence, ours from the start of the file.
            let first = message.lines().next().and_then(|line| line.split(" at line ").next());
            Err((line.max(1), first.unwrap_or("unreadable").chars().take(120).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_as_yaml() {
        let front =
            FrontMatter::read(b"---\nname: a\nlist:\n  - x\n  - y\ntext: |\n  one\n  two\n---\n\nBody\n");
        assert_eq!(front.fields["list"], serde_json::json!(["x", "y"]));
        assert_eq!(front.fields["text"], "one\ntwo\n");
        assert_eq!((front.body.as_str(), front.body_line, front.line_of("text")), ("\nBody\n", 10, 6));
        assert!(front.problems.is_empty(), "{:?}", front.problems);
    }

    #[test]
    fn what_is_not_yaml_is_read_line_by_line_and_reported() {
        for (header, key, wanted, line) in [
            ("description: one: two", "description", "one: two", 2),
            ("name: a\nargument-hint: [a] [b]", "argument-hint", "[a] [b]", 3),
            ("description: \"open\nname: b", "name", "b", 3),
            ("a: 1\na: 2", "a", "2", 3),
        ] {
            let front = FrontMatter::read(format!("---\n{header}\n---\nbody").as_bytes());
            assert_eq!(front.fields[key], wanted, "{header}");
            assert_eq!(front.problems[0].line, line, "{header}: {:?}", front.problems);
            assert_eq!(front.body, "body");
        }
    }

    #[test]
    fn line_ends_marks_and_bytes_of_other_systems_are_read() {
        let front = FrontMatter::read(b"\xEF\xBB\xBF---\r\nname: a\r\n---\r\nBody\r\n");
        assert_eq!((front.fields["name"].as_str(), front.body.as_str()), (Some("a"), "Body\n"));
        let front = FrontMatter::read(b"---\nname: a\xFF\n---\n");
        assert_eq!((front.fields["name"].as_str(), front.problems[0].line), (Some("a\u{FFFD}"), 2));
    }

    #[test]
    fn a_file_without_front_matter_or_without_its_end_is_kept() {
        let front = FrontMatter::read(b"# Title\n\ntext");
        assert_eq!((front.body.as_str(), front.is_present), ("# Title\n\ntext", false));
        let front = FrontMatter::read(b"---\nname: a\ndisable-model-invocation: true\n\nBody: text\n");
        assert_eq!(front.fields["disable-model-invocation"], "true");
        assert_eq!((front.body.as_str(), front.problems.len()), ("\nBody: text", 1));
    }

    #[test]
    fn a_bomb_of_aliases_is_refused_within_the_budget() {
        let mut header = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..12 {
            let last = level - 1;
            let aliases = vec![format!("*a{last}"); 10].join(",");
            header.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        let front = FrontMatter::read(format!("---\n{header}---\n").as_bytes());
        assert_eq!(front.problems.len(), 1, "{:?}", front.problems);
        assert!(front.fields["a11"].is_string());
    }
}
