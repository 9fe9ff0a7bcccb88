//! Notebooks: cells and what they gave out.

use super::Opened;
use crate::notebook::{Notebook, text_of};
use crate::read_state::{ReadState, Seen, kept};
use serde_json::{Value, json};
use toolgate_os::Hash;
use toolgate_proto::{Block, CallResult, Code, Output, Refusal};

const MOST_BYTES: u64 = 100 << 20;
/// Characters of one output.
const MAX_OUTPUT_CHARS: usize = 10_000;
/// Characters of everything.
const MOST_CHARS: usize = 100_000;

pub(super) async fn read(opened: Opened<'_>) -> CallResult {
    let state = ReadState::of(&opened.cleared.scene().session);
    let (mark, real) = (opened.mark, opened.real.clone());
    let (bytes, path) = opened
        .bytes(MOST_BYTES, |path| {
            Refusal::new(
                Code::FileRead,
                format!("the notebook `{path}` is larger than {} MB", MOST_BYTES >> 20),
            )
        })
        .await?;
    let notebook = Notebook::parse(&bytes).map_err(|words| {
        Refusal::new(Code::FileRead, format!("`{path}` is no valid notebook: {words}"))
            .hint("read it as text with `offset` 1")
    })?;
    let mut text = String::new();
    let mut content = Vec::new();
    let mut cells = Vec::new();
    let mut whole = true;
    for (index, cell) in notebook.cells().iter().enumerate() {
        let id = Notebook::id_of(cell, index);
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("raw");
        let source = text_of(cell.get("source"));
        text.push_str(&format!("<cell id=\"{id}\" type=\"{kind}\">\n{source}\n</cell>\n"));
        let outputs = cell_outputs(cell, &mut content);
        for output in &outputs {
            text.push_str(&format!("<output>\n{output}\n</output>\n"));
        }
        cells.push(json!({ "cell_id": id, "cellType": kind, "source": source, "outputs": outputs }));
        if text.len() > MOST_CHARS {
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
    let hash = Hash::of(&bytes);
    state.saw(real, Seen { mark: Some(mark), hash: Some(hash), whole, content: kept(&bytes) });
    let count = cells.len();
    let structured = json!({ "type": "notebook", "file": { "filePath": path, "cells": cells } });
    let mut output =
        Output::text(text).display(format!("read {count} cells of {path}")).structured(structured);
    output.content.extend(content);
    Ok(output)
}

/// The outputs of a cell as text; pictures go to the side.
fn cell_outputs(cell: &Value, pictures: &mut Vec<Block>) -> Vec<String> {
    let outputs = cell.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut out = Vec::new();
    for output in outputs {
        let data = output.get("data");
        for media_type in ["image/png", "image/jpeg"] {
            if let Some(picture) = data.and_then(|data| data.get(media_type)) {
                let data = text_of(Some(picture)).split_whitespace().collect();
                pictures.push(Block::Image { media_type: media_type.to_owned(), data });
            }
        }
        let text = match output.get("output_type").and_then(Value::as_str) {
            Some("stream") => text_of(output.get("text")),
            Some("error") => {
                let name = text_of(output.get("ename"));
                let value = text_of(output.get("evalue"));
                format!("{name}: {value}\n{}", text_of(output.get("traceback")))
            }
            _ => text_of(data.and_then(|data| data.get("text/plain"))),
        };
        if !text.is_empty() {
            out.push(cut(text));
        }
    }
    out
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_OUTPUT_CHARS) {
        Some((at, _)) => format!("{}… [cut]", text.get(..at).unwrap_or(&text)),
        None => text,
    }
}
