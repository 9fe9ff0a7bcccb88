//! TOCTOU races: a second thread replaces files and directories with symlinks to the outside while each tool runs.
//!
//! Every call goes through the gate, so that resolution, judgement, open and tool are all raced.

use super::file_fixture::FileFixture;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use toolgate_proto::Mode;

const SWAPS: usize = 100_000;

/// A notebook of one cell.
const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"code","execution_count":null,"id":"one","metadata":{},"outputs":[],"source":["inside"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}"#;

/// Calls a tool with these inputs in turn while a thread swaps its files. `$WS` is replaced with the workspace.
fn race(tool: &str, inputs: &[Value]) {
    // Reads and edits inside the workspace are allowed; a path outside needs approval, and no approver is available.
    let fixture = FileFixture::with(Mode::AcceptEdits, Vec::new());
    let outside = tempfile::tempdir().unwrap();
    for name in ["f", "g", "n.ipynb", "only_outside"] {
        std::fs::write(outside.path().join(name), "secret\n").unwrap();
    }
    fixture.put("d/f", "inside\n");
    fixture.put("d/n.ipynb", NOTEBOOK);
    fixture.put("g", "inside\n");
    symlink(outside.path(), fixture.path("d.other")).unwrap();
    symlink(outside.path().join("g"), fixture.path("g.other")).unwrap();
    for name in ["d/f", "d/n.ipynb", "g"] {
        fixture.call_text("Read", json!({ "file_path": fixture.path(name) }));
    }
    let swaps = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let (mut done, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while swaps.load(Ordering::Relaxed) < SWAPS {
                for name in ["d", "g"] {
                    let (one, other) = (fixture.path(name), fixture.path(&format!("{name}.other")));
                    // The name does not exist for a moment while a change renames it.
                    if renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        while !over.load(Ordering::SeqCst) {
            for input in inputs {
                let input = input.to_string().replace("$WS", &fixture.top.to_string());
                match fixture.call(tool, serde_json::from_str(&input).unwrap()) {
                    Ok(output) => {
                        let text = output.model_text();
                        assert!(!text.contains("secret"), "{tool} read outside: {text}");
                        assert!(!text.contains("only_outside"), "{tool} looked outside: {text}");
                        done += 1;
                    }
                    Err(refusal) => {
                        assert!(!format!("{refusal:?}").contains("secret"), "{tool}: {refusal:?}");
                        refused += 1;
                    }
                }
            }
        }
    });
    println!("{tool}: {} swaps, {done} done, {refused} refused", swaps.load(Ordering::Relaxed));
    assert!(done > 0 && refused > 0, "{tool}: {done} done, {refused} refused: there was no race");
    check_outside(tool, outside.path());
}

/// Checks that no file outside was changed, created or removed.
fn check_outside(tool: &str, outside: &Path) {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(outside).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(std::fs::read_to_string(entry.path()).unwrap(), "secret\n", "{tool} wrote outside");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["f", "g", "n.ipynb", "only_outside"], "{tool} made or removed files outside");
}

/// The input for a file below the swapped directory and for the swapped file.
fn both(input: impl Fn(&str) -> Value) -> [Value; 2] {
    [input("$WS/d/f"), input("$WS/g")]
}

#[test]
fn reading_tools_follow_no_swapped_symlink() {
    race("Read", &both(|path| json!({ "file_path": path })));
    race("read_file", &both(|path| json!({ "path": path })));
    race("read_many_files", &[json!({ "paths": ["d/f", "g"] }), json!({ "paths": ["d/*"] })]);
}

#[test]
fn searching_tools_follow_no_swapped_symlink() {
    let grep = |path: &str| json!({ "pattern": "inside|secret", "path": path, "output_mode": "content" });
    race("Grep", &[grep("$WS/d"), grep("$WS/g"), grep("$WS")]);
    race("grep", &[json!({ "pattern": "inside|secret", "directory": "d" })]);
    race("Glob", &[json!({ "pattern": "**/*", "path": "$WS/d" }), json!({ "pattern": "d/*" })]);
    race("ls", &[json!({ "path": "$WS/d" }), json!({ "path": "$WS", "recursive": true })]);
}

#[test]
fn writing_tools_follow_no_swapped_symlink() {
    race("Write", &both(|path| json!({ "file_path": path, "content": "inside, written\n" })));
    race("Write", &[json!({ "file_path": "$WS/d/new/deep", "content": "inside\n" })]);
    race("write_file", &both(|path| json!({ "path": path, "content": "inside\n", "overwrite": true })));
}

#[test]
fn editing_tools_follow_no_swapped_symlink() {
    let edit = |tool: &str, input: &dyn Fn(&str, &str, &str) -> Value| {
        let mut inputs = Vec::new();
        for (old, new) in [("inside", "within"), ("within", "inside")] {
            inputs.extend(both(|path| input(path, old, new)));
        }
        race(tool, &inputs);
    };
    edit("Edit", &|path, old, new| json!({ "file_path": path, "old_string": old, "new_string": new }));
    edit(
        "MultiEdit",
        &|path, old, new| json!({ "file_path": path, "edits": [{ "old_string": old, "new_string": new }] }),
    );
    edit(
        "edit_file",
        &|path, old, new| json!({ "path": path, "edits": [{ "target": old, "replacement": new }] }),
    );
    let cell =
        |source: &str| json!({ "notebook_path": "$WS/d/n.ipynb", "cell_id": "one", "new_source": source });
    race("NotebookEdit", &[cell("inside"), cell("within")]);
}
