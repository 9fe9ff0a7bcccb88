//! A directory of notes.

use super::memory_index::{IndexedNote, MemoryIndex};
use super::note_file::{file_name_of, format_note_file, parse_note_file};
use crate::database::StateError;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolgate_files::{DirectoryChanges, DirectoryWatch, FileProblem, FileStamp};
use toolgate_proto::timestamp::may_timestamp_repeat;
use toolgate_proto::{AbsPath, secret_names::contains_secret};

/// Bytes of a key.
pub const MAX_KEY_BYTES: usize = 1_024;
/// Bytes of a value.
pub const MAX_VALUE_BYTES: usize = 65_536;
/// Notes of one directory.
pub const MAX_NOTES: u32 = 200_000;

/// What the names of notes end with.
const NOTE_SUFFIX: &str = ".md";
/// How long the index is used before the files are compared with it again, where the directory cannot be watched.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// Notes that a scan reads and indexes in one transaction.
const MAX_SCAN_BATCH_SIZE: usize = 512;

/// Why an operation on memory was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A key or value is longer than its limit.
    #[error("the {what} is longer than {max_bytes} bytes")]
    TooLong {
        /// Which of them.
        what: &'static str,
        /// The limit.
        max_bytes: usize,
    },
    /// The key is empty.
    #[error("the key is empty")]
    NoKey,
    /// The text has a credential in it.
    #[error("the {0} contains what looks like a credential, and memory is not the place for it")]
    Secret(&'static str),
    /// The directory is full.
    #[error("there are {MAX_NOTES} notes already; delete some first")]
    Full,
    /// A file cannot be read or written.
    #[error("`{file}`: {problem}")]
    File {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// The index cannot be used. It can be removed: it is made again from the files.
    #[error(transparent)]
    Index(#[from] StateError),
}

impl From<rusqlite::Error> for MemoryError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error.into())
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryNote {
    /// Its key.
    pub key: String,
    /// Its text.
    pub value: String,
}

/// A note in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MemoryEntry {
    /// Its key.
    pub key: String,
    /// Bytes of its value.
    pub bytes: u32,
    /// When it was changed, in milliseconds since 1970.
    pub modified_ms: i64,
}

/// A note that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryHit {
    /// Its key.
    pub key: String,
    /// The part of its value with the words.
    pub snippet: String,
}

/// What saving a note did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    /// The key is new.
    Created,
    /// The key had another value.
    Updated,
    /// The key had this value, or keeps the one that it had.
    Unchanged,
}

/// Notes in one directory, for several processes and for people with an editor.
#[derive(Debug)]
pub struct MemoryStore {
    dir: AbsPath,
    index: MemoryIndex,
    /// What is known of changes by others.
    changes: Mutex<ChangeTracker>,
}

/// What is known of changes of the files since the index was compared with them.
#[derive(Debug, Default)]
struct ChangeTracker {
    /// When all files were last compared with the index.
    scanned: Option<Instant>,
    /// Tells which files have changed since. Without one, all are compared again after a while.
    watch: Option<DirectoryWatch>,
}

impl ChangeTracker {
    /// The files to compare with the index.
    fn take_due(&self) -> DueScan {
        match (&self.watch, self.scanned) {
            (_, None) => DueScan::All,
            (Some(watch), Some(_)) => match watch.take_changes() {
                DirectoryChanges::Names(mut names) => {
                    names.retain(|name| name.ends_with(NOTE_SUFFIX) && !name.starts_with('.'));
                    DueScan::Files(names.into_iter().collect())
                }
                DirectoryChanges::Unknown => DueScan::All,
            },
            (None, Some(scanned)) if scanned.elapsed() >= SCAN_INTERVAL => DueScan::All,
            (None, Some(_)) => DueScan::Files(Vec::new()),
        }
    }
}

/// Files to compare with the index.
enum DueScan {
    /// All of them.
    All,
    /// These, and no others.
    Files(Vec<String>),
}

impl MemoryStore {
    /// The notes in a directory, which is created if it is missing.
    pub fn open(dir: &AbsPath) -> Result<Self, MemoryError> {
        toolgate_files::make_private_dir(dir)
            .map_err(|error| MemoryError::File { file: dir.to_string(), problem: error.to_string() })?;
        Ok(Self { dir: dir.clone(), index: MemoryIndex::open(dir)?, changes: Mutex::default() })
    }

    /// The directory.
    pub fn dir(&self) -> &AbsPath {
        &self.dir
    }

    /// The note of a key.
    pub fn get(&self, key: &str) -> Result<Option<MemoryNote>, MemoryError> {
        self.catch_up()?;
        Ok(self.find_note(key)?.map(|(_, note)| note))
    }

    /// The path of the note of a key.
    pub fn path_of(&self, key: &str) -> Result<Option<AbsPath>, MemoryError> {
        self.catch_up()?;
        Ok(self.index.file_of(key)?.map(|file| self.dir.join(file)))
    }

    /// Saves a note, in place of the one that the key had.
    pub fn set(&self, key: &str, value: &str) -> Result<SaveOutcome, MemoryError> {
        self.save(key, value, true)
    }

    /// Saves a note unless the key has one: what the user made of that stays.
    pub fn add(&self, key: &str, value: &str) -> Result<SaveOutcome, MemoryError> {
        self.save(key, value, false)
    }

    /// Saves a note; one that the key has is replaced or stays.
    fn save(&self, key: &str, value: &str, replaces: bool) -> Result<SaveOutcome, MemoryError> {
        check_text("key", key, MAX_KEY_BYTES)?;
        check_text("value", value, MAX_VALUE_BYTES)?;
        if key.is_empty() {
            return Err(MemoryError::NoKey);
        }
        self.catch_up()?;
        // One writer at a time, so that a key does not get two files.
        let _lock = self.lock()?;
        let (file, outcome) = match self.find_note(key)? {
            Some((_, note)) if !replaces || note.value == value => return Ok(SaveOutcome::Unchanged),
            Some((file, _)) => (file, SaveOutcome::Updated),
            None if self.index.count()? >= MAX_NOTES => return Err(MemoryError::Full),
            None => (self.free_file_name(key), SaveOutcome::Created),
        };
        let path = self.dir.join(&file);
        toolgate_files::replace_state_file(&path, format_note_file(key, value).as_bytes())
            .map_err(|problem| self.file_error(&file, &problem))?;
        let (stamp, modified_ms) = describe_own_stamp(toolgate_files::read_file_stamp(&path));
        self.index.update(&[IndexedNote { file: &file, stamp: &stamp, key, value, modified_ms }], &[])?;
        Ok(outcome)
    }

    /// Deletes the note of a key. False if there is none.
    pub fn delete(&self, key: &str) -> Result<bool, MemoryError> {
        self.catch_up()?;
        let _lock = self.lock()?;
        let mut deleted = false;
        // Files of people may give one key twice.
        while let Some((file, _)) = self.find_note(key)? {
            toolgate_files::remove_state_file(&self.dir.join(&file))
                .map_err(|problem| self.file_error(&file, &problem))?;
            self.index.update(&[], std::slice::from_ref(&file))?;
            deleted = true;
        }
        Ok(deleted)
    }

    /// Every note without its value, by key.
    pub fn list(&self) -> Result<Vec<MemoryEntry>, MemoryError> {
        self.catch_up()?;
        self.index.entries()
    }

    /// Notes that have the words of a query, the best first.
    pub fn search(&self, query: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError> {
        self.catch_up()?;
        self.index.search(query, limit)
    }

    /// Compares all files with the index now.
    pub fn scan(&self) -> Result<(), MemoryError> {
        let seen_at = i128::from(toolgate_files::now_millis()) * 1_000_000;
        let found = toolgate_files::list_file_stamps(&self.dir, NOTE_SUFFIX)
            .map_err(|problem| self.file_error("", &problem))?;
        let mut known = self.index.stamps()?;
        let mut changed: Vec<(String, String, i64)> = Vec::new();
        for (name, stamp) in found {
            let (stamp, modified) = describe_stamp(stamp, seen_at);
            if stamp.is_empty() || known.get(&name) != Some(&stamp) {
                changed.push((name.clone(), stamp, modified));
            }
            known.remove(&name);
        }
        self.index_files(&changed)?;
        let gone: Vec<String> = known.into_keys().collect();
        if gone.is_empty() { Ok(()) } else { self.index.update(&[], &gone) }
    }

    /// Reads files and writes them to the index; those that are gone, or no text, are removed from it.
    fn index_files(&self, files: &[(String, String, i64)]) -> Result<(), MemoryError> {
        for batch in files.chunks(MAX_SCAN_BATCH_SIZE) {
            let mut read = Vec::new();
            let mut gone = Vec::new();
            for (file, stamp, modified_ms) in batch {
                match self.read_file(file) {
                    Ok(Some(note)) => read.push((file, stamp, *modified_ms, note)),
                    Ok(None) | Err(_) => gone.push(file.clone()),
                }
            }
            let notes: Vec<IndexedNote<'_>> = read
                .iter()
                .map(|(file, stamp, modified_ms, note)| IndexedNote {
                    file: file.as_str(),
                    stamp: stamp.as_str(),
                    key: &note.key,
                    value: &note.value,
                    modified_ms: *modified_ms,
                })
                .collect();
            self.index.update(&notes, &gone)?;
        }
        Ok(())
    }

    /// Brings the index up to what others have done to the files.
    fn catch_up(&self) -> Result<(), MemoryError> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let due = changes.take_due();
        if matches!(&due, DueScan::Files(files) if files.is_empty()) {
            return Ok(());
        }
        // What was taken is lost if this fails, so the next call compares everything.
        let scanned = changes.scanned.take();
        // The lock keeps a writer of another process from being taken for a change that the index missed.
        let _lock = self.lock()?;
        match due {
            DueScan::Files(files) => {
                self.index_files(&self.stamp_files(files))?;
                changes.scanned = scanned;
            }
            DueScan::All => {
                // Before the scan, so that no change falls between the two.
                changes.watch = DirectoryWatch::new(&self.dir).ok();
                self.scan()?;
                changes.scanned = Some(Instant::now());
            }
        }
        Ok(())
    }

    /// The stamps of files that have changed.
    fn stamp_files(&self, files: Vec<String>) -> Vec<(String, String, i64)> {
        let seen_at = i128::from(toolgate_files::now_millis()) * 1_000_000;
        let stamp = |file: String| {
            let found = toolgate_files::read_file_stamp(&self.dir.join(&file));
            let (stamp, modified) = describe_stamp(found, seen_at);
            (file, stamp, modified)
        };
        files.into_iter().map(stamp).collect()
    }

    /// The file of a key, and the note in it. An editor may have changed the key since the index saw it: the index is
    /// corrected, and another file with the key is looked for.
    fn find_note(&self, key: &str) -> Result<Option<(String, MemoryNote)>, MemoryError> {
        while let Some(file) = self.index.file_of(key)? {
            match self.read_file(&file)? {
                Some(note) if note.key == key => return Ok(Some((file, note))),
                // The next scan finds the file as a new one.
                Some(_) | None => self.index.update(&[], std::slice::from_ref(&file))?,
            }
        }
        Ok(None)
    }

    /// A name for the file of a new key. The user may have given another key to the file that has the usual one.
    fn free_file_name(&self, key: &str) -> String {
        let is_free =
            |name: &String| toolgate_files::read_file_stamp(&self.dir.join(name)) == FileStamp::Absent;
        let mut names = (0_u32..).map(|attempt| file_name_of(key, attempt));
        names.find(is_free).unwrap_or_else(|| file_name_of(key, 0))
    }

    /// Keeps writers of other processes out until it is dropped.
    fn lock(&self) -> Result<toolgate_files::StateFileLock, MemoryError> {
        toolgate_files::lock_state_file(&self.dir.join(".notes"))
            .map_err(|problem| self.file_error(".notes.lock", &problem))
    }

    /// The note in a file; none if the file is gone.
    fn read_file(&self, file: &str) -> Result<Option<MemoryNote>, MemoryError> {
        // The user may write more than a model may.
        let text = toolgate_files::read_settings_text(&self.dir.join(file), 16 * MAX_VALUE_BYTES as u64)
            .map_err(|problem| self.file_error(file, &problem))?;
        Ok(text.map(|text| {
            let (key, value) = parse_note_file(file, &text);
            MemoryNote { key, value }
        }))
    }

    /// The error for a file of the directory.
    fn file_error(&self, file: &str, problem: &FileProblem) -> MemoryError {
        MemoryError::File { file: self.dir.join(file).to_string(), problem: problem.to_string() }
    }
}

/// Refuses a text that is too long or has a credential in it.
fn check_text(what: &'static str, text: &str, max_bytes: usize) -> Result<(), MemoryError> {
    if text.len() > max_bytes {
        return Err(MemoryError::TooLong { what, max_bytes });
    }
    if contains_secret(text) {
        return Err(MemoryError::Secret(what));
    }
    Ok(())
}

/// The stamp of a file that this store has just replaced, and the modification time in milliseconds.
fn describe_own_stamp(stamp: FileStamp) -> (String, i64) {
    match stamp {
        FileStamp::Absent => (String::new(), 0),
        FileStamp::Present { id, size, modified, changed } => {
            let millis = i64::try_from(modified / 1_000_000).unwrap_or_default();
            (format!("{}:{}:{size}:{changed}", id.0, id.1), millis)
        }
    }
}

/// The same of a file that others may be writing to. A stamp that a further change may leave as it is tells nothing, and
/// becomes empty: the file is read again.
fn describe_stamp(stamp: FileStamp, seen_at: i128) -> (String, i64) {
    let (text, millis) = describe_own_stamp(stamp);
    match stamp {
        FileStamp::Present { changed, .. } if may_timestamp_repeat(changed, seen_at) => {
            (String::new(), millis)
        }
        FileStamp::Present { .. } | FileStamp::Absent => (text, millis),
    }
}
