//! A second thread swaps files and directories for links while tools read.
//!
//! Changes under the same race are tried below the gate, in the crate that makes them: there the hands have been
//! granted a path inside, and the question is only whether they can be led out of it.

use super::files_room::Room;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use toolgate_proto::Mode;

const SWAPS: usize = 100_000;

fn race(tool: &str, inputs: &[Value]) {
    // In the default mode reads inside are free, and one that leads outside asks, and there is nobody to ask.
    let room = Room::with(Mode::Default, Vec::new());
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("f"), "secret\n").unwrap();
    std::fs::write(outside.path().join("g"), "secret\n").unwrap();
    room.put("d/f", "inside\n");
    room.put("g", "inside\n");
    symlink(outside.path(), room.path("d.other")).unwrap();
    symlink(outside.path().join("g"), room.path("g.other")).unwrap();
    let swaps = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let (mut read, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..SWAPS / 2 {
                for name in ["d", "g"] {
                    let (one, other) = (room.path(name), room.path(&format!("{name}.other")));
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        while !over.load(Ordering::SeqCst) {
            for input in inputs {
                match room.call(tool, input_for(&room, input)) {
                    Ok(output) => {
                        let text = output.model_text();
                        assert!(!text.contains("secret"), "{tool} read outside: {text}");
                        read += 1;
                    }
                    Err(refusal) => {
                        assert!(!refusal.reason.contains("secret"));
                        refused += 1;
                    }
                }
            }
        }
    });
    println!("{tool}: {} swaps, {read} reads, {refused} refused", swaps.load(Ordering::Relaxed));
    assert_eq!(swaps.load(Ordering::Relaxed), SWAPS);
    assert!(read > 0 && refused > 0, "{tool}: {read} reads, {refused} refused: the race was none");
}

fn input_for(room: &Room, input: &Value) -> Value {
    serde_json::from_str(&input.to_string().replace("$WS", &room.top.to_string())).unwrap()
}

#[test]
fn read_cannot_be_led_outside() {
    race("Read", &[json!({ "file_path": "$WS/d/f" }), json!({ "file_path": "$WS/g" })]);
}

#[test]
fn read_many_files_cannot_be_led_outside() {
    race("read_many_files", &[json!({ "paths": ["d/f", "g"] }), json!({ "paths": ["d/*"] })]);
}
