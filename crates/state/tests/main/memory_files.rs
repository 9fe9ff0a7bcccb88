//! Notes as files: people edit them, processes share them, and a model gives the same answers.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use toolgate_proto::AbsPath;
use toolgate_state::{MemoryNote, MemoryStore, SaveOutcome};

fn store() -> (tempfile::TempDir, MemoryStore) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let store = MemoryStore::open(&AbsPath::new(dir.path()).unwrap()).unwrap();
    (dir, store)
}

/// An operation, by this store, by another process or by a person with an editor.
#[derive(Debug, Clone)]
enum NoteOperation {
    Set { key: String, value: String },
    Delete { key: String },
    SetElsewhere { key: String, value: String },
    WriteFile { name: String, text: String },
    RemoveFile { name: String },
}

fn operation() -> impl Strategy<Value = NoteOperation> {
    let key = || "[abc]";
    let value = || "(\n|a|b|---|é ){0,5}";
    prop_oneof![
        (key(), value()).prop_map(|(key, value)| NoteOperation::Set { key, value }),
        key().prop_map(|key| NoteOperation::Delete { key }),
        (key(), value()).prop_map(|(key, value)| NoteOperation::SetElsewhere { key, value }),
        ("[xyz]", "[a-z]{0,6}").prop_map(|(name, text)| NoteOperation::WriteFile { name, text }),
        "[xyz]".prop_map(|name| NoteOperation::RemoveFile { name }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_memory_store_answers_as_its_model(operations in prop::collection::vec(operation(), 1..12)) {
        let (dir, store) = store();
        let other = MemoryStore::open(&AbsPath::new(dir.path()).unwrap()).unwrap();
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        for operation in operations {
            match operation {
                NoteOperation::Set { key, value } => {
                    let outcome = match model.insert(key.clone(), value.clone()) {
                        None => SaveOutcome::Created,
                        Some(old) if old == value => SaveOutcome::Unchanged,
                        Some(_) => SaveOutcome::Updated,
                    };
                    prop_assert_eq!(store.set(&key, &value).unwrap(), outcome);
                }
                NoteOperation::Delete { key } => {
                    prop_assert_eq!(store.delete(&key).unwrap(), model.remove(&key).is_some());
                }
                NoteOperation::SetElsewhere { key, value } => {
                    other.set(&key, &value).unwrap();
                    model.insert(key, value);
                }
                NoteOperation::WriteFile { name, text } => {
                    std::fs::write(dir.path().join(format!("{name}.md")), &text).unwrap();
                    store.scan().unwrap();
                    model.insert(name, text);
                }
                NoteOperation::RemoveFile { name } => {
                    let _ = std::fs::remove_file(dir.path().join(format!("{name}.md")));
                    store.scan().unwrap();
                    model.remove(&name);
                }
            }
            for (key, value) in &model {
                let note = MemoryNote { key: key.clone(), value: value.clone() };
                prop_assert_eq!(store.get(key).unwrap(), Some(note));
            }
            let keys: Vec<String> = store.list().unwrap().into_iter().map(|entry| entry.key).collect();
            prop_assert_eq!(keys, model.keys().cloned().collect::<Vec<_>>());
        }
        // An index that is lost is made again from the files.
        drop((store, other));
        for file in [".index.db", ".index.db-wal", ".index.db-shm"] {
            let _ = std::fs::remove_file(dir.path().join(file));
        }
        let store = MemoryStore::open(&AbsPath::new(dir.path()).unwrap()).unwrap();
        for (key, value) in model {
            prop_assert_eq!(store.get(&key).unwrap().map(|note| note.value), Some(value));
        }
    }
}

#[test]
fn an_edited_file_is_found_under_its_new_key_and_words() {
    let (_dir, store) = store();
    store.set("build", "make").unwrap();
    let path = store.path_of("build").unwrap().unwrap();
    std::fs::write(&path, "---\nkey: compile\n---\nninja\n").unwrap();
    // A stale index does not hide the change, nor does a save overwrite it.
    assert_eq!(store.get("build").unwrap(), None);
    store.set("build", "make again").unwrap();
    store.scan().unwrap();
    assert_eq!(store.get("compile").unwrap().unwrap().value, "ninja");
    assert_eq!(store.search("ninja", 5).unwrap().len(), 1);
    assert_eq!(store.search("make", 5).unwrap().len(), 1);
}

const DIR_VARIABLE: &str = "TOOLGATE_TEST_MEMORY_DIR";
const WORKER_VARIABLE: &str = "TOOLGATE_TEST_MEMORY_WORKER";

/// Not a test of its own: the body of a worker. Without the variables it does nothing.
#[test]
fn memory_worker_process() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let worker = std::env::var(WORKER_VARIABLE).unwrap();
    let store = MemoryStore::open(&AbsPath::new(&dir).unwrap()).unwrap();
    for step in 0..20 {
        store.set(&format!("{worker}/{step}"), &format!("value {worker} {step}")).unwrap();
        store.set("shared", &worker.repeat(2_000)).unwrap();
        let shared = store.get("shared").unwrap().unwrap().value;
        assert!(shared.len() == 2_000 && shared.chars().all(|c| shared.starts_with(c)), "a torn read");
    }
}

#[test]
fn eight_processes_lose_no_note() {
    let (dir, store) = store();
    let workers: Vec<Child> = (0..8)
        .map(|worker| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "main::memory_files::memory_worker_process", "--test-threads=1"])
                .env(DIR_VARIABLE, dir.path())
                .env(WORKER_VARIABLE, worker.to_string())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    assert_eq!(store.list().unwrap().len(), 8 * 20 + 1);
    for worker in 0..8 {
        for step in 0..20 {
            let note = store.get(&format!("{worker}/{step}")).unwrap().unwrap();
            assert_eq!(note.value, format!("value {worker} {step}"));
        }
    }
}
