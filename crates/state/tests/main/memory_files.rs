//! Notes as files: people edit them, processes share them, and a model gives the same answers.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use toolgate_proto::AbsPath;
use toolgate_state::{MemoryStore, SaveOutcome};

fn store() -> (tempfile::TempDir, MemoryStore) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let store = MemoryStore::open(&AbsPath::new(dir.path()).unwrap()).unwrap();
    (dir, store)
}

/// An operation, by this store, by another process or by the user with an editor.
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

/// The keys of notes that have a word, by the plainest means. The index knows no accents, and a word is a whole one: the
/// texts of the operations have words of one letter, which nothing else begins with.
fn keys_with_word(model: &BTreeMap<String, String>, word: &str) -> Vec<String> {
    let plain = |text: &str| text.replace('é', "e");
    let has_word =
        |text: &str| plain(text).split(|c: char| !c.is_alphanumeric()).any(|part| part == plain(word));
    let fits = |(key, value): &(&String, &String)| has_word(key) || has_word(value);
    model.iter().filter(fits).map(|(key, _)| key.clone()).collect()
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
                    // Into the file as it is, as some editors do; no scan is asked for.
                    std::fs::write(dir.path().join(format!("{name}.md")), &text).unwrap();
                    model.insert(name, text);
                }
                NoteOperation::RemoveFile { name } => {
                    let _ = std::fs::remove_file(dir.path().join(format!("{name}.md")));
                    model.remove(&name);
                }
            }
            for (key, value) in &model {
                let note = store.get(key).unwrap().map(|note| (note.key, note.value));
                prop_assert_eq!(note, Some((key.clone(), value.clone())));
            }
            for word in ["a", "b", "é", "---"] {
                let mut found: Vec<String> =
                    store.search(word, 50).unwrap().into_iter().map(|hit| hit.key).collect();
                found.sort();
                prop_assert_eq!(found, keys_with_word(&model, word), "notes with the word {}", word);
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

#[test]
fn a_note_that_is_added_again_keeps_what_the_user_made_of_it() {
    let (_dir, store) = store();
    assert_eq!(store.add("tabs", "Use tabs.").unwrap(), SaveOutcome::Created);
    std::fs::write(store.path_of("tabs").unwrap().unwrap(), "---\nkey: tabs\n---\nexcept in YAML\n").unwrap();
    assert_eq!(store.add("tabs", "use tabs").unwrap(), SaveOutcome::Unchanged);
    assert_eq!(store.get("tabs").unwrap().unwrap().value, "except in YAML");
}

#[test]
fn the_best_notes_come_first_and_the_last_word_may_be_a_beginning() {
    let (_dir, store) = store();
    store.set("release", "tag, build, publish").unwrap();
    store.set("notes of a meeting", "the release was late; the build failed; nothing was published").unwrap();
    store.set("café", "opens at nine").unwrap();
    let keys = |query: &str| -> Vec<String> {
        store.search(query, 5).unwrap().into_iter().map(|hit| hit.key).collect()
    };
    assert_eq!(keys("release"), ["release", "notes of a meeting"]);
    assert_eq!(keys("build rel"), ["release", "notes of a meeting"]);
    assert_eq!(keys("CAFE"), ["café"]);
    assert_eq!(keys("zebra meeting"), ["notes of a meeting"], "where no note has all words, one suffices");
    assert!(keys("zebra").is_empty() && keys("\"* OR").is_empty() && keys("").is_empty());
    assert!(store.search("meeting failed", 5).unwrap()[0].snippet.contains("the build failed"));
}

const DIR_VARIABLE: &str = "TOOLGATE_TEST_MEMORY_DIR";
const WORKER_VARIABLE: &str = "TOOLGATE_TEST_MEMORY_WORKER";
/// Notes that each process saves; absent for a process that is killed.
const COUNT_VARIABLE: &str = "TOOLGATE_TEST_MEMORY_COUNT";
/// Operations of each process, and how often processes are killed; set for a long run.
const OPERATIONS_VARIABLE: &str = "TOOLGATE_STATE_OPERATIONS";
const KILLS_VARIABLE: &str = "TOOLGATE_STATE_KILLS";

fn number_from_env(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

/// Not a test of its own: the body of a worker. Without the variables it does nothing.
#[test]
fn memory_worker_process() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let worker = std::env::var(WORKER_VARIABLE).unwrap();
    let store = MemoryStore::open(&AbsPath::new(&dir).unwrap()).unwrap();
    // Beside the directory of the notes, so that the reports are none.
    let mut report = std::fs::File::create(report_path(Path::new(&dir), &worker)).unwrap();
    for step in 0..number_from_env(COUNT_VARIABLE, usize::MAX) {
        store.set(&format!("{worker}/{step}"), &format!("value {worker} {step}")).unwrap();
        writeln!(report, "set {step}").unwrap();
        if step % 3 == 2 {
            assert!(store.delete(&format!("{worker}/{}", step - 1)).unwrap());
            writeln!(report, "deleted {}", step - 1).unwrap();
        }
        store.set("shared", &worker.repeat(2_000)).unwrap();
        let shared = store.get("shared").unwrap().unwrap().value;
        assert!(shared.len() == 2_000 && shared.chars().all(|c| shared.starts_with(c)), "a torn read");
    }
}

fn report_path(dir: &Path, worker: &str) -> PathBuf {
    dir.parent().unwrap().join(format!("report-{worker}"))
}

fn start_worker(dir: &Path, worker: usize, count: Option<usize>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "main::memory_files::memory_worker_process", "--test-threads=1"])
        .env(DIR_VARIABLE, dir)
        .env(WORKER_VARIABLE, worker.to_string())
        .stdout(Stdio::null());
    if let Some(count) = count {
        command.env(COUNT_VARIABLE, count.to_string());
    }
    command.spawn().unwrap()
}

/// Compares what the workers reported as done with the notes. A kill between an operation and its report leaves one
/// operation more.
fn check_notes(dir: &Path, store: &MemoryStore) {
    for worker in 0..8 {
        let report = std::fs::read_to_string(report_path(dir, &worker.to_string())).unwrap_or_default();
        let mut notes: BTreeMap<usize, bool> = BTreeMap::new();
        for line in report.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let (verb, step) = line.trim_end().split_once(' ').unwrap();
            notes.insert(step.parse().unwrap(), verb == "set");
        }
        let newest = notes.keys().copied().max().unwrap_or_default();
        for (step, is_there) in notes {
            let note = store.get(&format!("{worker}/{step}")).unwrap();
            let expected = is_there.then(|| format!("value {worker} {step}"));
            // The deletion before the newest note may be done and not reported.
            if expected != note.as_ref().map(|note| note.value.clone()) {
                assert!(note.is_none() && step + 1 == newest, "note {worker}/{step}: {note:?}");
            }
        }
    }
    let listed: Vec<String> = store.list().unwrap().into_iter().map(|entry| entry.key).collect();
    for key in listed {
        assert!(store.get(&key).unwrap().is_some(), "`{key}` is listed and has no note");
    }
}

#[test]
fn eight_processes_lose_no_note() {
    let top = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let dir = top.path().join("notes");
    let store = MemoryStore::open(&AbsPath::new(&dir).unwrap()).unwrap();
    // A note takes longer than a task: it is a file.
    let count = number_from_env(OPERATIONS_VARIABLE, 200).div_ceil(10);
    let workers: Vec<Child> = (0..8).map(|worker| start_worker(&dir, worker, Some(count))).collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    assert_eq!(store.list().unwrap().len(), 8 * (count - count / 3) + 1);
    check_notes(&dir, &store);
}

#[test]
fn a_killed_process_leaves_notes_that_open_and_are_whole() {
    let top = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let dir = top.path().join("notes");
    for round in 0..number_from_env(KILLS_VARIABLE, 5) {
        let mut workers: Vec<Child> = (0..8).map(|worker| start_worker(&dir, worker, None)).collect();
        std::thread::sleep(Duration::from_millis(30 + (round as u64 * 17) % 150));
        for worker in &mut workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        // One that sees the notes for the first time.
        let store = MemoryStore::open(&AbsPath::new(&dir).unwrap()).unwrap();
        check_notes(&dir, &store);
        store.set("after", &format!("round {round}")).unwrap();
        assert_eq!(store.search("round", 5).unwrap().len(), 1);
        for worker in 0..8 {
            let _ = std::fs::remove_file(report_path(&dir, &worker.to_string()));
        }
    }
}
