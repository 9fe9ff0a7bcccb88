//! Reads a Jupyter notebook: its cells with their ids, sources and outputs.
//!
//! Each cell is shown between tags with its id, which `NotebookEdit` takes, followed by its outputs.
//! Images in outputs become image blocks; all other rich output is shown in its plain text form.

use super::FileReadHandle;
use crate::notebook::{JupyterNotebook, multiline_to_string};
use crate::read_state::{ReadState, SeenFile, copy_if_small};
use serde_json::{Value, json};
use toolgate_files::ContentHash;
use toolgate_proto::{CallResult, Code, Output, OutputBlock, Refusal, format_count};

/// A larger notebook can only be read as text.
const MAX_NOTEBOOK_BYTES: u64 = 100 << 20;
/// Characters of one cell output.
const MAX_OUTPUT_CHARS: usize = 10_000;
/// Characters of the result, after which no further cell is shown.
const MAX_RESULT_CHARS: usize = 100_000;

/// Reads a notebook and records it in the read state.
pub(super) async fn read_notebook(handle: FileReadHandle<'_>) -> CallResult {
    let state = ReadState::of(&handle.cleared.context().session);
    let (fingerprint, real) = (handle.fingerprint, handle.real.clone());
    let (bytes, path) = handle
        .read_bytes(MAX_NOTEBOOK_BYTES, |path| {
            Refusal::new(
                Code::FileRead,
                format!("the notebook `{path}` is larger than {} MB", MAX_NOTEBOOK_BYTES >> 20),
            )
        })
        .await?;
    let notebook = JupyterNotebook::parse(&bytes).map_err(|reason| {
        Refusal::new(Code::FileRead, format!("`{path}` is not a valid notebook: {reason}"))
            .hint("read it as text with `offset` 1")
    })?;
    let mut text = String::new();
    let mut images = Vec::new();
    let mut cells = Vec::new();
    let mut whole = true;
    for (index, cell) in notebook.cells().iter().enumerate() {
        let id = JupyterNotebook::cell_id(cell, index);
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("raw");
        let source = multiline_to_string(cell.get("source"));
        text.push_str(&format!("<cell id=\"{id}\" type=\"{kind}\">\n{source}\n</cell>\n"));
        let outputs = cell_outputs(cell, &mut images);
        for output in &outputs {
            text.push_str(&format!("<output>\n{output}\n</output>\n"));
        }
        cells.push(json!({ "cell_id": id, "cellType": kind, "source": source, "outputs": outputs }));
        if text.len() > MAX_RESULT_CHARS {
            whole = false;
            let omitted = notebook.cells().len() - (index + 1);
            if omitted > 0 {
                text.push_str(&format!(
                    "[{omitted} more cells not shown: read the file as text with `offset`]\n"
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
        SeenFile { fingerprint: Some(fingerprint), hash: Some(hash), whole, content: copy_if_small(&bytes) },
    );
    let count = cells.len();
    let structured = json!({ "type": "notebook", "file": { "filePath": path, "cells": cells } });
    let mut output = Output::text(text)
        .display(format!("read {} of {path}", format_count(count as u64, "cell", "cells")))
        .structured(structured);
    output.content.extend(images);
    Ok(output)
}

/// The outputs of a cell as text. Images are appended to `images`, because they are content blocks of their own.
fn cell_outputs(cell: &Value, images: &mut Vec<OutputBlock>) -> Vec<String> {
    let outputs = cell.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut texts = Vec::new();
    for output in outputs {
        let data = output.get("data");
        for media_type in ["image/png", "image/jpeg"] {
            if let Some(image) = data.and_then(|data| data.get(media_type)) {
                let data = multiline_to_string(Some(image)).split_whitespace().collect();
                images.push(OutputBlock::Image { media_type: media_type.to_owned(), data });
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
            texts.push(truncate_output(text));
        }
    }
    texts
}

/// Truncates one output: a single table or log must not push the other cells out of the result.
fn truncate_output(text: String) -> String {
    match text.char_indices().nth(MAX_OUTPUT_CHARS) {
        Some((end, _)) => format!("{}… [truncated]", text.get(..end).unwrap_or(&text)),
        None => text,
    }
}
