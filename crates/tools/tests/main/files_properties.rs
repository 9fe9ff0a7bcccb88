//! The properties of file tools that the design lists, by their numbers.

use super::file_fixture::{FileFixture, memory_dir};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_proto::Mode;

thread_local! {
    static FIXTURE: FileFixture = FileFixture::within(memory_dir(), Mode::Bypass, Vec::new());
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A file name that no other case uses.
fn fresh(kind: &str) -> String {
    format!("{kind}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn with_fixture(check: impl FnOnce(&FileFixture) -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    FIXTURE.with(check)
}

/// Text with LF and CRLF, with and without a final line end, with tabs and non-ASCII letters.
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
        with_fixture(|fixture| {
            let name = fresh("p06");
            fixture.call_text("write_file", json!({ "path": name, "content": content }));
            prop_assert_eq!(fixture.call_text("read_file", json!({ "path": name })), content.clone());
            let output = fixture.call("Read", json!({ "file_path": fixture.path(&name) })).unwrap();
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
        with_fixture(|fixture| {
            let count = lines.len();
            let (start, end) = (a.min(b) % count, (a.max(b) % count).max(a.min(b) % count));
            let mut content = lines.join("\n");
            if ends {
                content.push('\n');
            }
            let name = fresh("p07");
            fixture.put(&name, &content);
            // An empty last line without a line end does not count as a line.
            let last_is_there = ends || !lines.last().unwrap().is_empty();
            let there = if last_is_there { count } else { count - 1 };
            if end < there {
                let expected = lines[start..=end].join("\n");
                let input = json!({ "path": name, "startLine": start + 1, "endLine": end + 1 });
                prop_assert_eq!(fixture.call_text("read_file", input), expected.clone());
                let input = json!({ "file_path": fixture.path(&name), "offset": start + 1, "limit": end - start + 1 });
                let numbered: String = lines[start..=end]
                    .iter()
                    .enumerate()
                    .map(|(at, line)| format!("{:>6}\t{line}\n", start + 1 + at))
                    .collect();
                let text = fixture.call_text("Read", input);
                prop_assert!(text.starts_with(&numbered), "{text}");
                let rest = &text[numbered.len()..];
                prop_assert_eq!(rest.contains("continue with"), end + 1 < there, "{}", text);
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_08_file_read_error_handling(name in "[a-z]{1,12}(/[a-z]{1,8}){0,3}") {
        with_fixture(|fixture| {
            let name = format!("{}/{name}", fresh("p08"));
            for (tool, input) in [
                ("read_file", json!({ "path": name })),
                ("Read", json!({ "file_path": fixture.path(&name) })),
            ] {
                prop_assert_eq!(fixture.call_refusal(tool, input).kind, "FileNotFoundError");
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_09_multiple_file_read_formatting(
        files in proptest::collection::vec((any::<bool>(), text()), 1..20),
    ) {
        with_fixture(|fixture| {
            let dir = fresh("p09");
            let mut expected = Vec::new();
            let mut paths = Vec::new();
            for (index, (exists, content)) in files.iter().enumerate() {
                let name = format!("{dir}/f{index}");
                if *exists {
                    fixture.put(&name, content);
                    expected.push(format!("=== {name} ===\n{content}\n"));
                } else {
                    expected.push(format!("=== {name} ===\nError: there is no file"));
                }
                paths.push(name);
            }
            let text = fixture.call_text("read_many_files", json!({ "paths": paths }));
            let mut rest = text.as_str();
            for part in expected {
                let at = rest.find(&part);
                prop_assert!(at.is_some(), "{part:?} is missing, or in the wrong place, in {text:?}");
                rest = &rest[at.unwrap() + part.len()..];
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_10_file_write_overwrite_protection(old in text(), new in text(), explicit in any::<bool>()) {
        with_fixture(|fixture| {
            let name = fresh("p10");
            fixture.put(&name, &old);
            let mut input = json!({ "path": name, "content": new });
            if explicit {
                input["overwrite"] = json!(false);
            }
            prop_assert_eq!(fixture.call_refusal("write_file", input).kind, "FileExistsError");
            prop_assert_eq!(fixture.text(&name), old.clone());
            Ok(())
        })?;
    }

    #[test]
    fn property_11_file_write_overwrite_behavior(old in text(), new in text()) {
        with_fixture(|fixture| {
            let name = fresh("p11");
            fixture.put(&name, &old);
            fixture.call_text("write_file", json!({ "path": name, "content": new, "overwrite": true }));
            prop_assert_eq!(fixture.text(&name), new.clone());
            prop_assert_eq!(fixture.call_text("read_file", json!({ "path": name })), new.clone());
            Ok(())
        })?;
    }

    #[test]
    fn property_12_parent_directory_creation(dirs in proptest::collection::vec("[a-z]{1,8}", 1..6), content in text()) {
        with_fixture(|fixture| {
            let name = format!("{}/{}/file", fresh("p12"), dirs.join("/"));
            fixture.call_text("write_file", json!({ "path": name, "content": content }));
            prop_assert_eq!(fixture.text(&name), content.clone());
            let other = format!("{}/{}/file", fresh("p12"), dirs.join("/"));
            fixture.call_text("Write", json!({ "file_path": fixture.path(&other), "content": content }));
            prop_assert_eq!(fixture.text(&other), content.clone());
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
        with_fixture(|fixture| {
            let name = fresh("p13");
            let expected = format!("{before}{replacement}{after}");
            fixture.put(&name, &content);
            let edits = json!([{ "target": target, "replacement": replacement }]);
            fixture.call_text("edit_file", json!({ "path": name, "edits": edits }));
            prop_assert_eq!(fixture.text(&name), expected.clone());

            let name = fresh("p13");
            let path = fixture.put(&name, &content);
            fixture.call_text("Read", json!({ "file_path": path }));
            fixture.call_text("Edit", json!({ "file_path": path, "old_string": target, "new_string": replacement }));
            prop_assert_eq!(fixture.text(&name), expected);
            Ok(())
        })?;
    }

    #[test]
    fn property_14_file_edit_target_not_found(content in text(), target in "[A-Z]{3,8}[0-9]{2}", replacement in text()) {
        prop_assume!(!content.contains(&target) && target != replacement);
        with_fixture(|fixture| {
            let name = fresh("p14");
            let path = fixture.put(&name, &content);
            let edits = json!([{ "target": target, "replacement": replacement }]);
            let refusal = fixture.call_refusal("edit_file", json!({ "path": name, "edits": edits }));
            prop_assert_eq!(refusal.kind, "EditTargetNotFound");
            fixture.call_text("Read", json!({ "file_path": path }));
            let input = json!({ "file_path": path, "old_string": target, "new_string": replacement });
            prop_assert_eq!(fixture.call_refusal("Edit", input).kind, "EditTargetNotFound");
            prop_assert_eq!(fixture.text(&name), content.clone());
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
        with_fixture(|fixture| {
            let name = fresh("p15");
            let path = fixture.put(&name, &content);
            let edits = json!([{ "target": target, "replacement": replacement }]);
            let refusal = fixture.call_refusal("edit_file", json!({ "path": name, "edits": edits }));
            prop_assert_eq!(&refusal.kind, "EditTargetAmbiguous");
            prop_assert!(refusal.reason.contains(&format!("{} times", overlapping(&content, &target))), "{refusal}");
            prop_assert_eq!(fixture.text(&name), content.clone());
            fixture.call_text("Read", json!({ "file_path": path }));
            let mut input = json!({ "file_path": path, "old_string": target, "new_string": replacement });
            prop_assert_eq!(fixture.call_refusal("Edit", input.clone()).kind, "EditTargetAmbiguous");
            input["replace_all"] = json!(true);
            fixture.call_text("Edit", input);
            prop_assert_eq!(fixture.text(&name), content.replace(&target, &replacement));
            Ok(())
        })?;
    }

    /// Read before edit: whatever happens between a read and a change, the change is made only if no update of another
    /// program is lost.
    #[test]
    fn read_before_edit_never_loses_an_update(
        steps in proptest::collection::vec(0_u8..7, 1..12),
    ) {
        with_fixture(|fixture| {
            let name = fresh("flow");
            let path = fixture.put(&name, "alpha\nbeta\n");
            let session = super::file_fixture::session(&fixture.top, &fresh("session"));
            // The content that the model has seen, and whether it has seen all of it.
            let (mut seen, mut outside) = (None::<(String, bool)>, 0);
            for step in steps {
                let now = fixture.text(&name);
                match step {
                    0 | 1 => {
                        fixture.call_in(&session, "Read", json!({ "file_path": path })).unwrap();
                        seen = Some((now, true));
                    }
                    2 => {
                        outside += 1;
                        std::fs::write(&path, format!("alpha\nbeta\noutside {outside}\n")).unwrap();
                    }
                    3 => std::fs::write(&path, &now).unwrap(),
                    4 => {
                        let new = format!("{now}written\n");
                        let result = fixture.call_in(&session, "Write", json!({ "file_path": path, "content": new }));
                        match (&seen, result) {
                            (None, Err(refusal)) => prop_assert_eq!(refusal.kind, "FileNotReadError"),
                            (Some((known, whole)), Ok(_)) => {
                                prop_assert_eq!(known, &now);
                                prop_assert!(whole);
                                prop_assert_eq!(fixture.text(&name), new.clone());
                                seen = Some((new, true));
                            }
                            (Some((_, false)), Err(refusal)) => {
                                prop_assert_eq!(refusal.kind, "FileNotReadError");
                            }
                            (Some((known, true)), Err(refusal)) => {
                                prop_assert_ne!(known, &now);
                                prop_assert_eq!(refusal.kind, "FileChangedError");
                                prop_assert_eq!(fixture.text(&name), now);
                            }
                            (None, Ok(_)) => prop_assert!(false, "written without a read"),
                        }
                    }
                    _ => {
                        let swap = if now.contains("beta") { ("beta", "gamma") } else { ("gamma", "beta") };
                        let input = json!({ "file_path": path, "old_string": swap.0, "new_string": swap.1 });
                        match (&seen, fixture.call_in(&session, "Edit", input)) {
                            (None, Err(refusal)) => prop_assert_eq!(refusal.kind, "FileNotReadError"),
                            (Some((known, whole)), Ok(_)) => {
                                let new = now.replacen(swap.0, swap.1, 1);
                                prop_assert_eq!(fixture.text(&name), new.clone());
                                // The model has not seen what another program changed elsewhere in the file.
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
