//! Notebooks: cells and what they gave out.

use super::FileReadHandle;
use crate::notebook::{JupyterNotebook, multiline_to_string};
use crate::read_state::{ReadState, SeenFile, copy_if_small};
use serde_json::{Value, json};
use toolgate_files::ContentHash;
use toolgate_proto::{CallResult, Code, Output, OutputBlock, Refusal};

const MAX_NOTEBOOK_BYTES: u64 = 100 << 20;
/// Characters of one output.
const MAX_OUTPUT_CHARS: usize = 10_000;
/// Characters of everything.
const MAX_RESULT_CHARS: usize = 100_000;

pub(super) async fn read_notebook(opened: FileReadHandle<'_>) -> CallResult {
    let state = ReadState::of(&opened.cleared.context().session);
    let (mark, real) = (opened.mark, opened.real.clone());
    let (bytes, path) = opened
        .read_bytes(MAX_NOTEBOOK_BYTES, |path| {
            Refusal::new(
                Code::FileRead,
                format!("the notebook `{path}` is larger than {} MB", MAX_NOTEBOOK_BYTES >> 20),
            )
        })
        .await?;
    let notebook = JupyterNotebook::parse(&bytes).map_err(|words| {
        Refusal::new(Code::FileRead, format!("`{path}` is no valid notebook: {words}"))
            .hint("read it as text with `offset` 1")
    })?;
    let mut text = String::new();
    let mut content = Vec::new();
    let mut cells = Vec::new();
    let mut whole = true;
    for (index, cell) in notebook.cells().iter().enumerate() {
        let id = JupyterNotebook::cell_id(cell, index);
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("raw");
        let source = multiline_to_string(cell.get("source"));
        text.push_str(&format!("<cell id=\"{id}\" type=\"{kind}\">\n{source}\n</cell>\n"));
        let outputs = cell_outputs(cell, &mut content);
        for output in &outputs {
            text.push_str(&format!("<output>\n{output}\n</output>\n"));
        }
        cells.push(json!({ "cell_id": id, "cellType": kind, "source": source, "outputs": outputs }));
        if text.len() > MAX_RESULT_CHARS {
            whole = false;
            let next = index + 1;
            let left = notebook.cells().len() - next;
            if left > 0 {
                text.push_str(&format!(
                    "[{left} more cells not shown: read the file as text with `offset`]\n"
                ));
            }
            break;
        }
    }
    if cells.is_empty() {
        text.push_str("[the notebook has no cells]\n");
    }
    let hash = ContentHash::of(&bytes);
    state.record_read(
        real,
        SeenFile { mark: Some(mark), hash: Some(hash), whole, content: copy_if_small(&bytes) },
    );
    let count = cells.len();
    let structured = json!({ "type": "notebook", "file": { "filePath": path, "cells": cells } });
    let mut output =
        Output::text(text).display(format!("read {count} cells of {path}")).structured(structured);
    output.content.extend(content);
    Ok(output)
}

/// The outputs of a cell as text; pictures go to the side.
fn cell_outputs(cell: &Value, pictures: &mut Vec<OutputBlock>) -> Vec<String> {
    let outputs = cell.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut out = Vec::new();
    for output in outputs {
        let data = output.get("data");
        for media_type in ["image/png", "image/jpeg"] {
            if let Some(picture) = data.and_then(|data| data.get(media_type)) {
                let data = multiline_to_string(Some(picture)).split_whitespace().collect();
                pictures.push(OutputBlock::Image { media_type: media_type.to_owned(), data });
            }
        }
        let text = match output.get("output_type").and_then(Value::as_str) {
            Some("stream") => multiline_to_string(output.get("text")),
            Some("error") => {
                let name = multiline_to_string(output.get("ename"));
                let value = multiline_to_string(output.get("evalue"));
                format!("{name}: {value}\n{}", multiline_to_string(output.get("traceback")))
            }
            _ => multiline_to_string(data.and_then(|data| data.get("text/plain"))),
        };
        if !text.is_empty() {
            out.push(truncate_output(text));
        }
    }
    out
}

fn truncate_output(text: String) -> String {
    match text.char_indices().nth(MAX_OUTPUT_CHARS) {
        Some((at, _)) => format!("{}… [cut]", text.get(..at).unwrap_or(&text)),
        None => text,
    }
}
