//! The properties of file tools, by the numbers of the design.

use super::files_room::{Room, scratch};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_proto::Mode;

thread_local! {
    static ROOM: Room = Room::within(scratch(), Mode::Bypass, Vec::new());
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A name that no case had before.
fn fresh(kind: &str) -> String {
    format!("{kind}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn in_room(check: impl FnOnce(&Room) -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    ROOM.with(check)
}

/// Text of all kinds: line ends of both kinds, no line end at the end, tabs, letters of other scripts.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~\\t]{0,30}(\n[ -~\\t]{0,30}){0,12}\n?",
        "[a-zäöü€漢🦀]{0,12}(\r\n[a-zäöü€漢🦀 ]{0,12}){0,8}(\r\n)?",
        "(\n|\r|\r\n|a|é){0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn property_06_file_read_round_trip(content in text()) {
        in_room(|room| {
            let name = fresh("p06");
            room.said("write_file", json!({ "path": name, "content": content }));
            prop_assert_eq!(room.said("read_file", json!({ "path": name })), content.clone());
            let output = room.call("Read", json!({ "file_path": room.path(&name) })).unwrap();
            let structured = output.structured.unwrap();
            let lines = structured["file"]["content"].as_str().unwrap();
            prop_assert_eq!(lines, content.strip_suffix('\n').unwrap_or(&content));
            Ok(())
        })?;
    }

    #[test]
    fn property_07_file_read_line_range_slicing(
        lines in proptest::collection::vec("[ -~]{0,20}", 1..40),
        ends in any::<bool>(),
        a in 0_usize..40,
        b in 0_usize..40,
    ) {
        in_room(|room| {
            let count = lines.len();
            let (start, end) = (a.min(b) % count, (a.max(b) % count).max(a.min(b) % count));
            let mut content = lines.join("\n");
            if ends {
                content.push('\n');
            }
            let name = fresh("p07");
            room.put(&name, &content);
            // The last line of such a text is there only if it has something in it or an end.
            let last_is_there = ends || !lines.last().unwrap().is_empty();
            let there = if last_is_there { count } else { count - 1 };
            if end < there {
                let expected = lines[start..=end].join("\n");
                let input = json!({ "path": name, "startLine": start + 1, "endLine": end + 1 });
                prop_assert_eq!(room.said("read_file", input), expected.clone());
                let input = json!({ "file_path": room.path(&name), "offset": start + 1, "limit": end - start + 1 });
                let numbered: String = lines[start..=end]
                    .iter()
                    .enumerate()
                    .map(|(at, line)| format!("{:>6}\t{line}\n", start + 1 + at))
                    .collect();
                let said = room.said("Read", input);
                prop_assert!(said.starts_with(&numbered), "{said}");
                let rest = &said[numbered.len()..];
                prop_assert_eq!(rest.contains("go on with"), end + 1 < there, "{}", said);
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_08_file_read_error_handling(name in "[a-z]{1,12}(/[a-z]{1,8}){0,3}") {
        in_room(|room| {
            let name = format!("{}/{name}", fresh("p08"));
            for (tool, input) in [
                ("read_file", json!({ "path": name })),
                ("Read", json!({ "file_path": room.path(&name) })),
            ] {
                prop_assert_eq!(room.refused(tool, input).kind, "FileNotFoundError");
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_09_multiple_file_read_formatting(
        files in proptest::collection::vec((any::<bool>(), text()), 1..20),
    ) {
        in_room(|room| {
            let dir = fresh("p09");
            let mut expected = Vec::new();
            let mut paths = Vec::new();
            for (index, (exists, content)) in files.iter().enumerate() {
                let name = format!("{dir}/f{index}");
                if *exists {
                    room.put(&name, content);
                    expected.push(format!("=== {name} ===\n{content}\n"));
                } else {
                    expected.push(format!("=== {name} ===\nError: there is no file"));
                }
                paths.push(name);
            }
            let said = room.said("read_many_files", json!({ "paths": paths }));
            let mut rest = said.as_str();
            for part in expected {
                let at = rest.find(&part);
                prop_assert!(at.is_some(), "{part:?} is missing, or in the wrong place, in {said:?}");
                rest = &rest[at.unwrap() + part.len()..];
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_10_file_write_overwrite_protection(old in text(), new in text(), said in any::<bool>()) {
        in_room(|room| {
            let name = fresh("p10");
            room.put(&name, &old);
            let mut input = json!({ "path": name, "content": new });
            if said {
                input["overwrite"] = json!(false);
            }
            prop_assert_eq!(room.refused("write_file", input).kind, "FileExistsError");
            prop_assert_eq!(room.text(&name), old.clone());
            Ok(())
        })?;
    }

    #[test]
    fn property_11_file_write_overwrite_behavior(old in text(), new in text()) {
        in_room(|room| {
            let name = fresh("p11");
            room.put(&name, &old);
            room.said("write_file", json!({ "path": name, "content": new, "overwrite": true }));
            prop_assert_eq!(room.text(&name), new.clone());
            prop_assert_eq!(room.said("read_file", json!({ "path": name })), new.clone());
            Ok(())
        })?;
    }

    #[test]
    fn property_12_parent_directory_creation(dirs in proptest::collection::vec("[a-z]{1,8}", 1..6), content in text()) {
        in_room(|room| {
            let name = format!("{}/{}/file", fresh("p12"), dirs.join("/"));
            room.said("write_file", json!({ "path": name, "content": content }));
            prop_assert_eq!(room.text(&name), content.clone());
            let other = format!("{}/{}/file", fresh("p12"), dirs.join("/"));
            room.said("Write", json!({ "file_path": room.path(&other), "content": content }));
            prop_assert_eq!(room.text(&other), content.clone());
            Ok(())
        })?;
    }

    #[test]
    fn property_13_file_edit_target_uniqueness(
        before in "[a-m \n]{0,60}",
        target in "[n-z]{1,3}[a-z\n]{0,10}",
        replacement in "[a-z\n]{0,20}",
        after in "[a-m \n]{0,60}",
    ) {
        prop_assume!(target != replacement);
        let content = format!("{before}{target}{after}");
        prop_assume!(content.match_indices(&target).count() == 1 && overlapping(&content, &target) == 1);
        in_room(|room| {
            let name = fresh("p13");
            let expected = format!("{before}{replacement}{after}");
            room.put(&name, &content);
            let edits = json!([{ "target": target, "replacement": replacement }]);
            room.said("edit_file", json!({ "path": name, "edits": edits }));
            prop_assert_eq!(room.text(&name), expected.clone());

            let name = fresh("p13");
            let path = room.put(&name, &content);
            room.said("Read", json!({ "file_path": path }));
            room.said("Edit", json!({ "file_path": path, "old_string": target, "new_string": replacement }));
            prop_assert_eq!(room.text(&name), expected);
            Ok(())
        })?;
    }

    #[test]
    fn property_14_file_edit_target_not_found(content in text(), target in "[A-Z]{3,8}[0-9]{2}", replacement in text()) {
        prop_assume!(!content.contains(&target) && target != replacement);
        in_room(|room| {
            let name = fresh("p14");
            let path = room.put(&name, &content);
            let edits = json!([{ "target": target, "replacement": replacement }]);
            let refusal = room.refused("edit_file", json!({ "path": name, "edits": edits }));
            prop_assert_eq!(refusal.kind, "EditTargetNotFound");
            room.said("Read", json!({ "file_path": path }));
            let input = json!({ "file_path": path, "old_string": target, "new_string": replacement });
            prop_assert_eq!(room.refused("Edit", input).kind, "EditTargetNotFound");
            prop_assert_eq!(room.text(&name), content.clone());
            Ok(())
        })?;
    }

    #[test]
    fn property_15_file_edit_target_ambiguity(
        parts in proptest::collection::vec("[a-m \n]{0,20}", 3..8),
        target in "[n-z]{1,8}",
        replacement in "[a-m]{0,10}",
    ) {
        let content = parts.join(&target);
        in_room(|room| {
            let name = fresh("p15");
            let path = room.put(&name, &content);
            let edits = json!([{ "target": target, "replacement": replacement }]);
            let refusal = room.refused("edit_file", json!({ "path": name, "edits": edits }));
            prop_assert_eq!(&refusal.kind, "EditTargetAmbiguous");
            prop_assert!(refusal.reason.contains(&format!("{} times", overlapping(&content, &target))), "{refusal}");
            prop_assert_eq!(room.text(&name), content.clone());
            room.said("Read", json!({ "file_path": path }));
            let mut input = json!({ "file_path": path, "old_string": target, "new_string": replacement });
            prop_assert_eq!(room.refused("Edit", input.clone()).kind, "EditTargetAmbiguous");
            input["replace_all"] = json!(true);
            room.said("Edit", input);
            prop_assert_eq!(room.text(&name), content.replace(&target, &replacement));
            Ok(())
        })?;
    }

    /// The read-before-edit flow: whatever happens between a read and a change, the change is made only where
    /// nothing of anybody is lost.
    #[test]
    fn read_before_edit_never_loses_an_update(
        steps in proptest::collection::vec(0_u8..7, 1..12),
    ) {
        in_room(|room| {
            let name = fresh("flow");
            let path = room.put(&name, "alpha\nbeta\n");
            let session = super::files_room::session(&room.top, &fresh("session"));
            // What the model knows, and whether it knows all of it.
            let (mut seen, mut outside) = (None::<(String, bool)>, 0);
            for step in steps {
                let now = room.text(&name);
                match step {
                    0 | 1 => {
                        room.call_in(&session, "Read", json!({ "file_path": path })).unwrap();
                        seen = Some((now, true));
                    }
                    2 => {
                        outside += 1;
                        std::fs::write(&path, format!("alpha\nbeta\noutside {outside}\n")).unwrap();
                    }
                    3 => std::fs::write(&path, &now).unwrap(),
                    4 => {
                        let new = format!("{now}written\n");
                        let result = room.call_in(&session, "Write", json!({ "file_path": path, "content": new }));
                        match (&seen, result) {
                            (None, Err(refusal)) => prop_assert_eq!(refusal.kind, "FileNotReadError"),
                            (Some((known, whole)), Ok(_)) => {
                                prop_assert_eq!(known, &now);
                                prop_assert!(whole);
                                prop_assert_eq!(room.text(&name), new.clone());
                                seen = Some((new, true));
                            }
                            (Some((_, false)), Err(refusal)) => {
                                prop_assert_eq!(refusal.kind, "FileNotReadError");
                            }
                            (Some((known, true)), Err(refusal)) => {
                                prop_assert_ne!(known, &now);
                                prop_assert_eq!(refusal.kind, "FileChangedError");
                                prop_assert_eq!(room.text(&name), now);
                            }
                            (None, Ok(_)) => prop_assert!(false, "written without a read"),
                        }
                    }
                    _ => {
                        let swap = if now.contains("beta") { ("beta", "gamma") } else { ("gamma", "beta") };
                        let input = json!({ "file_path": path, "old_string": swap.0, "new_string": swap.1 });
                        match (&seen, room.call_in(&session, "Edit", input)) {
                            (None, Err(refusal)) => prop_assert_eq!(refusal.kind, "FileNotReadError"),
                            (Some((known, whole)), Ok(_)) => {
                                let new = now.replacen(swap.0, swap.1, 1);
                                prop_assert_eq!(room.text(&name), new.clone());
                                // What somebody else changed elsewhere in the file is not known to the model.
                                seen = Some((new, *whole && *known == now));
                            }
                            (_, other) => prop_assert!(false, "{other:?}"),
                        }
                    }
                }
            }
            Ok(())
        })?;
    }
}

fn overlapping(text: &str, target: &str) -> usize {
    (0..text.len()).filter(|at| text.as_bytes()[*at..].starts_with(target.as_bytes())).count()
}
