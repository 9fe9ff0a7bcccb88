//! Jupyter notebook files (`.ipynb`): parsing, cells and rendering.
//!
//! Only the parts that `Read` and `NotebookEdit` need are interpreted. Everything else stays in the JSON tree as it was
//! read, so that an edit of one cell keeps metadata of other programs.

use serde_json::{Map, Value, json};

/// A notebook of format 4.
#[derive(Debug, Clone)]
pub(crate) struct JupyterNotebook {
    /// The whole document; [`JupyterNotebook::parse`] has checked that `cells` is an array.
    root: Map<String, Value>,
}

impl JupyterNotebook {
    /// Parses a notebook file. The error is a reason without the path, for the caller's message.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let root: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let Value::Object(root) = root else { return Err("it is not a JSON object".to_owned()) };
        match root.get("nbformat").and_then(Value::as_u64) {
            Some(4) => {}
            Some(other) => return Err(format!("`nbformat` is {other}, but only 4 is supported")),
            None => return Err("`nbformat` is missing".to_owned()),
        }
        if !root.get("cells").is_some_and(Value::is_array) {
            return Err("`cells` is missing".to_owned());
        }
        Ok(Self { root })
    }

    /// The cells in notebook order.
    pub(crate) fn cells(&self) -> &[Value] {
        self.root.get("cells").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The cells for editing.
    pub(crate) fn cells_mut(&mut self) -> Option<&mut Vec<Value>> {
        self.root.get_mut("cells").and_then(Value::as_array_mut)
    }

    /// A cell's id; `cell-<index>` for notebooks before format 4.5, whose cells have none.
    pub(crate) fn cell_id(cell: &Value, index: usize) -> String {
        match cell.get("id").and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => format!("cell-{index}"),
        }
    }

    /// The index of the cell with this id.
    pub(crate) fn cell_position(&self, id: &str) -> Option<usize> {
        self.cells().iter().enumerate().position(|(index, cell)| Self::cell_id(cell, index) == id)
    }

    /// Whether cells of this notebook have ids: they are part of the format since 4.5, and invalid before.
    pub(crate) fn has_ids(&self) -> bool {
        self.root.get("nbformat_minor").and_then(Value::as_u64).unwrap_or(0) >= 5
    }

    /// The language of the code cells, from the kernel's metadata; `python` if the metadata names none.
    pub(crate) fn language(&self) -> String {
        let metadata = self.root.get("metadata");
        let field = |outer: &str, inner: &str| metadata?.get(outer)?.get(inner)?.as_str().map(str::to_owned);
        field("language_info", "name")
            .or_else(|| field("kernelspec", "language"))
            .unwrap_or_else(|| "python".to_owned())
    }

    /// Renders the notebook with the indentation and the final line end of `original`, so that a diff shows only the
    /// edit.
    pub(crate) fn render(&self, original: &[u8]) -> Result<Vec<u8>, String> {
        let indent = detect_indent(original);
        let mut out = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(&indent);
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        serde::Serialize::serialize(&self.root, &mut serializer).map_err(|error| error.to_string())?;
        if original.ends_with(b"\n") {
            out.push(b'\n');
        }
        Ok(out)
    }
}

/// The indentation of the first key. The default is one space, as the reference implementation writes.
fn detect_indent(text: &[u8]) -> Vec<u8> {
    let second_line = memchr::memchr(b'\n', text).and_then(|end| text.get(end + 1..)).unwrap_or_default();
    let indent: Vec<u8> =
        second_line.iter().copied().take_while(|byte| matches!(byte, b' ' | b'\t')).collect();
    if indent.is_empty() { b" ".to_vec() } else { indent }
}

/// A multiline string of the format, which is a string or an array of lines.
pub(crate) fn multiline_to_string(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// Text as the format's array of lines, each with its line end.
pub(crate) fn string_to_multiline(text: &str) -> Value {
    text.split_inclusive('\n').map(|line| json!(line)).collect()
}
