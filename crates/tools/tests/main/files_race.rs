//! A second thread swaps files and directories for links that lead out of the workspace while each tool works.
//!
//! Every call goes through the gate, so judgement, hands and tool are all raced at once.

use super::files_room::Room;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use toolgate_proto::Mode;

const SWAPS: usize = 100_000;

/// A notebook of one cell.
const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"code","execution_count":null,"id":"one","metadata":{},"outputs":[],"source":["inside"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}"#;

/// Two turns of a tool: each `$WS` is the workspace.
fn race(tool: &str, turns: &[Value]) {
    // Reads inside are free and so are changes; what leads outside asks, and there is nobody to ask.
    let room = Room::with(Mode::AcceptEdits, Vec::new());
    let outside = tempfile::tempdir().unwrap();
    for name in ["f", "g", "n.ipynb", "only_outside"] {
        std::fs::write(outside.path().join(name), "secret\n").unwrap();
    }
    room.put("d/f", "inside\n");
    room.put("d/n.ipynb", NOTEBOOK);
    room.put("g", "inside\n");
    symlink(outside.path(), room.path("d.other")).unwrap();
    symlink(outside.path().join("g"), room.path("g.other")).unwrap();
    for name in ["d/f", "d/n.ipynb", "g"] {
        room.said("Read", json!({ "file_path": room.path(name) }));
    }
    let swaps = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let (mut done, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while swaps.load(Ordering::Relaxed) < SWAPS {
                for name in ["d", "g"] {
                    let (one, other) = (room.path(name), room.path(&format!("{name}.other")));
                    // A name is gone for a moment where a change took it away to look at it.
                    if renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        while !over.load(Ordering::SeqCst) {
            for turn in turns {
                let input = turn.to_string().replace("$WS", &room.top.to_string());
                match room.call(tool, serde_json::from_str(&input).unwrap()) {
                    Ok(output) => {
                        let said = output.model_text();
                        assert!(!said.contains("secret"), "{tool} read outside: {said}");
                        assert!(!said.contains("only_outside"), "{tool} looked outside: {said}");
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
    assert!(done > 0 && refused > 0, "{tool}: {done} done, {refused} refused: the race was none");
    unharmed(tool, outside.path());
}

fn unharmed(tool: &str, outside: &Path) {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(outside).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(std::fs::read_to_string(entry.path()).unwrap(), "secret\n", "{tool} wrote outside");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["f", "g", "n.ipynb", "only_outside"], "{tool} made or removed files outside");
}

/// The same turn for the file below the directory and for the file itself.
fn both(turn: impl Fn(&str) -> Value) -> [Value; 2] {
    [turn("$WS/d/f"), turn("$WS/g")]
}

#[test]
fn reading_tools_cannot_be_led_outside() {
    race("Read", &both(|path| json!({ "file_path": path })));
    race("read_file", &both(|path| json!({ "path": path })));
    race("read_many_files", &[json!({ "paths": ["d/f", "g"] }), json!({ "paths": ["d/*"] })]);
}

#[test]
fn searching_tools_cannot_be_led_outside() {
    let grep = |path: &str| json!({ "pattern": "inside|secret", "path": path, "output_mode": "content" });
    race("Grep", &[grep("$WS/d"), grep("$WS/g"), grep("$WS")]);
    race("grep", &[json!({ "pattern": "inside|secret", "directory": "d" })]);
    race("Glob", &[json!({ "pattern": "**/*", "path": "$WS/d" }), json!({ "pattern": "d/*" })]);
    race("ls", &[json!({ "path": "$WS/d" }), json!({ "path": "$WS", "recursive": true })]);
}

#[test]
fn writing_tools_cannot_be_led_outside() {
    race("Write", &both(|path| json!({ "file_path": path, "content": "inside, written\n" })));
    race("Write", &[json!({ "file_path": "$WS/d/new/deep", "content": "inside\n" })]);
    race("write_file", &both(|path| json!({ "path": path, "content": "inside\n", "overwrite": true })));
}

#[test]
fn editing_tools_cannot_be_led_outside() {
    let edit = |tool: &str, turn: &dyn Fn(&str, &str, &str) -> Value| {
        let mut turns = Vec::new();
        for (old, new) in [("inside", "within"), ("within", "inside")] {
            turns.extend(both(|path| turn(path, old, new)));
        }
        race(tool, &turns);
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
