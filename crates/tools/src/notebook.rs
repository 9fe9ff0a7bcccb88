//! Notebook files, as far as reading and editing cells needs to know them.

use serde_json::{Map, Value, json};

/// A notebook of format 4. Everything that is not understood is kept as it is.
#[derive(Debug, Clone)]
pub(crate) struct JupyterNotebook {
    root: Map<String, Value>,
}

impl JupyterNotebook {
    /// Reads a notebook.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let root: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let Value::Object(root) = root else { return Err("it is no JSON object".to_owned()) };
        match root.get("nbformat").and_then(Value::as_u64) {
            Some(4) => {}
            Some(other) => return Err(format!("its format is {other}, not 4")),
            None => return Err("it has no `nbformat`".to_owned()),
        }
        if !root.get("cells").is_some_and(Value::is_array) {
            return Err("it has no `cells`".to_owned());
        }
        Ok(Self { root })
    }

    /// The cells.
    pub(crate) fn cells(&self) -> &[Value] {
        self.root.get("cells").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The cells, to change.
    pub(crate) fn cells_mut(&mut self) -> Option<&mut Vec<Value>> {
        self.root.get_mut("cells").and_then(Value::as_array_mut)
    }

    /// A cell's id; cells of older notebooks have none and go by their number.
    pub(crate) fn cell_id(cell: &Value, index: usize) -> String {
        match cell.get("id").and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => format!("cell-{index}"),
        }
    }

    /// Where the cell of an id is.
    pub(crate) fn cell_position(&self, id: &str) -> Option<usize> {
        self.cells().iter().enumerate().position(|(index, cell)| Self::cell_id(cell, index) == id)
    }

    /// Ids are part of the format since 4.5.
    pub(crate) fn has_ids(&self) -> bool {
        self.root.get("nbformat_minor").and_then(Value::as_u64).unwrap_or(0) >= 5
    }

    /// The language of the code cells.
    pub(crate) fn language(&self) -> String {
        let metadata = self.root.get("metadata");
        let of = |outer: &str, inner: &str| metadata?.get(outer)?.get(inner)?.as_str().map(str::to_owned);
        of("language_info", "name")
            .or_else(|| of("kernelspec", "language"))
            .unwrap_or_else(|| "python".to_owned())
    }

    /// The notebook as a file, with the indentation it had.
    pub(crate) fn render(&self, like: &[u8]) -> Result<Vec<u8>, String> {
        let indent = detect_indent(like);
        let mut out = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(&indent);
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        serde::Serialize::serialize(&self.root, &mut serializer).map_err(|error| error.to_string())?;
        if like.ends_with(b"\n") {
            out.push(b'\n');
        }
        Ok(out)
    }
}

/// The blanks before the first key; one, as the reference implementation writes, where that cannot be told.
fn detect_indent(text: &[u8]) -> Vec<u8> {
    let after = memchr::memchr(b'\n', text).and_then(|end| text.get(end + 1..)).unwrap_or_default();
    let blanks: Vec<u8> = after.iter().copied().take_while(|byte| matches!(byte, b' ' | b'\t')).collect();
    if blanks.is_empty() { b" ".to_vec() } else { blanks }
}

/// Text that is a string or a list of lines.
pub(crate) fn multiline_to_string(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// Text as the format's list of lines.
pub(crate) fn string_to_multiline(text: &str) -> Value {
    text.split_inclusive('\n').map(|line| json!(line)).collect()
}
