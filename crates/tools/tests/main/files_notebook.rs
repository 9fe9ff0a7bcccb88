//! Notebooks, read and edited by cell.

use super::file_fixture::FileFixture;
use serde_json::{Value, json};
use toolgate_proto::OutputBlock;

fn notebook(minor: u64) -> String {
    let mut cells = json!([
        { "cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"] },
        {
            "cell_type": "code", "execution_count": 3, "metadata": { "tags": ["keep"] }, "source": "print(1)",
            "outputs": [
                { "output_type": "stream", "name": "stdout", "text": ["1\n"] },
                { "output_type": "display_data", "metadata": {}, "data": { "image/png": "iVBORw0K\nGgo=", "text/plain": "<Figure>" } },
                { "output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["line 1"] },
            ],
        },
    ]);
    if minor >= 5 {
        cells[0]["id"] = json!("intro");
        cells[1]["id"] = json!("run");
    }
    let root = json!({
        "cells": cells,
        "metadata": { "kernelspec": { "name": "python3", "language": "python" }, "custom": 1 },
        "nbformat": 4, "nbformat_minor": minor,
    });
    let mut text = serde_json::to_string_pretty(&root).unwrap();
    text.push('\n');
    text
}

#[test]
fn cells_are_shown_with_their_ids_and_outputs() {
    let fixture = FileFixture::new();
    let path = fixture.put("a.ipynb", notebook(5));
    let output = fixture.call("Read", json!({ "file_path": path })).unwrap();
    let text = output.model_text();
    assert!(
        text.starts_with(
            "<cell id=\"intro\" type=\"markdown\">\n# Title\ntext\n</cell>\n<cell id=\"run\" type=\"code\">"
        ),
        "{text}"
    );
    assert!(text.contains("<output>\n1\n\n</output>") && text.contains("ValueError: bad\nline 1"), "{text}");
    let images: Vec<&OutputBlock> =
        output.content.iter().filter(|block| matches!(block, OutputBlock::Image { .. })).collect();
    assert_eq!(images, [&OutputBlock::Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() }]);
    let refusal_path = fixture.put("broken.ipynb", "{ \"nbformat\": 4 ");
    let refusal = fixture.call_refusal("Read", json!({ "file_path": refusal_path }));
    assert!(refusal.reason.contains("is not a valid notebook"), "{refusal}");
}

#[test]
fn cells_are_replaced_inserted_and_deleted_and_the_rest_is_unchanged() {
    for minor in [4, 5] {
        let fixture = FileFixture::new();
        let path = fixture.put("a.ipynb", notebook(minor));
        let (first, second) = if minor == 5 { ("intro", "run") } else { ("cell-0", "cell-1") };
        let input =
            |id: &str, source: &str| json!({ "notebook_path": path, "cell_id": id, "new_source": source });
        assert_eq!(fixture.call_refusal("NotebookEdit", input(first, "x")).kind, "FileNotReadError");
        fixture.call_text("Read", json!({ "file_path": path }));
        let output = fixture.call("NotebookEdit", input(second, "a = 1\nprint(a)")).unwrap();
        let structured = output.structured.unwrap();
        assert_eq!(structured["old_source"], "print(1)");
        assert_eq!(structured["language"], "python");
        let now: Value = serde_json::from_str(&fixture.text("a.ipynb")).unwrap();
        let cell = &now["cells"][1];
        assert_eq!(cell["source"], json!(["a = 1\n", "print(a)"]));
        assert_eq!((&cell["outputs"], &cell["execution_count"]), (&json!([]), &json!(null)));
        assert_eq!(cell["metadata"], json!({ "tags": ["keep"] }));
        assert_eq!(now["metadata"]["custom"], 1);

        let mut insert = input(first, "## More");
        insert["edit_mode"] = json!("insert");
        assert_eq!(fixture.call_refusal("NotebookEdit", insert.clone()).kind, "ValidationError");
        insert["cell_type"] = json!("markdown");
        fixture.call_text("NotebookEdit", insert);
        let mut delete = input(first, "");
        delete["edit_mode"] = json!("delete");
        fixture.call_text("NotebookEdit", delete);
        let now: Value = serde_json::from_str(&fixture.text("a.ipynb")).unwrap();
        assert_eq!(now["cells"].as_array().unwrap().len(), 2);
        assert_eq!(now["cells"][0]["source"], json!(["## More"]));
        assert_eq!(now["cells"][0].get("id").is_some(), minor == 5, "ids are part of the format since 4.5");
        assert!(now["cells"][0].get("outputs").is_none());
        assert!(
            fixture.text("a.ipynb").starts_with("{\n  \"cells\"") && fixture.text("a.ipynb").ends_with("}\n")
        );
        let refusal = fixture.call_refusal("NotebookEdit", input("nowhere", "x"));
        assert_eq!(refusal.kind, "EditTargetNotFound");
        assert!(refusal.hint.starts_with("its cells are `"), "{}", refusal.hint);
    }
}
