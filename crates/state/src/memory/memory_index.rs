//! The index of a directory of notes: which file has which key, and full-text search with FTS5.

use super::memory_store::{MemoryEntry, MemoryError, MemoryHit};
use super::rank_notes::{NoteCandidate, QueryWord, rank_notes, split_words, word_weight};
use crate::database::{SchemaMigrations, StateDatabase};
use rusqlite::{OptionalExtension, Transaction, params};
use std::collections::{BTreeMap, BTreeSet};
use toolgate_proto::AbsPath;

/// Words of a query that are used.
const MAX_QUERY_WORDS: usize = 16;
/// Notes with all words that are ranked; the newest of more.
const MAX_CANDIDATES: u32 = 400;
/// Notes with one word that are ranked where no note has all of them.
const MAX_WORD_CANDIDATES: u32 = 100;
/// Characters that a word must have for longer words with the same beginning to count: most words have a beginning of one.
const MIN_PREFIX_CHARS: usize = 2;

/// The tables, by version. The columns `key` and `value` of `notes` are what the full-text table was given: FTS5 needs
/// the old text to remove it.
const MEMORY_MIGRATIONS: SchemaMigrations = &[
    "
    CREATE TABLE notes (
        id INTEGER PRIMARY KEY,
        file TEXT NOT NULL UNIQUE,
        stamp TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        modified_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX notes_by_key ON notes (key, file);
    CREATE VIRTUAL TABLE words USING fts5 (
        key, value, content = 'notes', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER notes_added AFTER INSERT ON notes BEGIN
        INSERT INTO words (rowid, key, value) VALUES (new.id, new.key, new.value);
    END;
    CREATE TRIGGER notes_removed AFTER DELETE ON notes BEGIN
        INSERT INTO words (words, rowid, key, value) VALUES ('delete', old.id, old.key, old.value);
    END;
    CREATE TRIGGER notes_changed AFTER UPDATE OF key, value ON notes BEGIN
        INSERT INTO words (words, rowid, key, value) VALUES ('delete', old.id, old.key, old.value);
        INSERT INTO words (rowid, key, value) VALUES (new.id, new.key, new.value);
    END;
",
    "
    DROP TRIGGER notes_changed;
    CREATE TRIGGER notes_changed AFTER UPDATE OF key, value ON notes
    WHEN old.key IS NOT new.key OR old.value IS NOT new.value BEGIN
        INSERT INTO words (words, rowid, key, value) VALUES ('delete', old.id, old.key, old.value);
        INSERT INTO words (rowid, key, value) VALUES (new.id, new.key, new.value);
    END;
",
];

/// The index in a directory.
#[derive(Debug)]
pub(super) struct MemoryIndex {
    database: StateDatabase,
}

/// A file as the index shall have it.
pub(super) struct IndexedNote<'n> {
    pub(super) file: &'n str,
    /// What tells an unchanged file from a changed one.
    pub(super) stamp: &'n str,
    pub(super) key: &'n str,
    pub(super) value: &'n str,
    pub(super) modified_ms: i64,
}

impl MemoryIndex {
    /// Opens the index of a directory. It is derived from the files, and made again where it is missing.
    pub(super) fn open(dir: &AbsPath) -> Result<Self, MemoryError> {
        Ok(Self { database: StateDatabase::open(&dir.join(".index.db"), MEMORY_MIGRATIONS)? })
    }

    /// The stamps of all files, by name.
    pub(super) fn stamps(&self) -> Result<BTreeMap<String, String>, MemoryError> {
        self.database.read(|rows| {
            let mut statement = rows.prepare_cached("SELECT file, stamp FROM notes")?;
            let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(pairs.collect::<Result<_, _>>()?)
        })
    }

    /// Adds or replaces notes, and removes those of files that are gone, in one transaction.
    pub(super) fn update(&self, changed: &[IndexedNote<'_>], gone: &[String]) -> Result<(), MemoryError> {
        self.database.write(|rows| {
            for file in gone {
                rows.prepare_cached("DELETE FROM notes WHERE file = ?1")?.execute([file])?;
            }
            changed.iter().try_for_each(|note| put(rows, note))
        })
    }

    /// The file of a key. Of several with one key the first by name counts.
    pub(super) fn file_of(&self, key: &str) -> Result<Option<String>, MemoryError> {
        self.database.read(|rows| {
            let mut statement =
                rows.prepare_cached("SELECT file FROM notes WHERE key = ?1 ORDER BY file LIMIT 1")?;
            Ok(statement.query_row([key], |row| row.get(0)).optional()?)
        })
    }

    /// Every key, in order.
    pub(super) fn entries(&self) -> Result<Vec<MemoryEntry>, MemoryError> {
        self.database.read(|rows| {
            let mut statement = rows.prepare_cached(
                "SELECT key, length(CAST(value AS BLOB)), modified_ms FROM notes AS note
                 WHERE NOT EXISTS (SELECT 1 FROM notes WHERE key = note.key AND file < note.file)
                 ORDER BY key",
            )?;
            let entry = |row: &rusqlite::Row<'_>| {
                Ok(MemoryEntry { key: row.get(0)?, bytes: row.get(1)?, modified_ms: row.get(2)? })
            };
            Ok(statement.query_map([], entry)?.collect::<Result<_, _>>()?)
        })
    }

    /// The number of notes.
    pub(super) fn count(&self) -> Result<u32, MemoryError> {
        self.database.read(|rows| {
            Ok(rows.prepare_cached("SELECT count(*) FROM notes")?.query_row([], |row| row.get(0))?)
        })
    }

    /// Notes with all words of a query, the best first; where no note has all, those with any. The last word may be the
    /// beginning of one. Of many notes that fit, the newest are ranked.
    pub(super) fn search(&self, query: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError> {
        let mut words = query_words(query);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.database.read(|rows| {
            let mut found = find_candidates(rows, &render_all(&words), MAX_CANDIDATES)?;
            if found.len() < limit as usize && widen_last(&mut words) {
                let known: BTreeSet<i64> = found.iter().map(|note| note.id).collect();
                let more = find_candidates(rows, &render_all(&words), MAX_CANDIDATES)?;
                found.extend(more.into_iter().filter(|note| !known.contains(&note.id)));
            }
            if found.is_empty() && words.len() > 1 {
                found = find_any(rows, &mut words)?;
            }
            Ok(rank_notes(found, &words, limit as usize))
        })
    }
}

/// The words of a query, in lower case and without repetition.
fn query_words(query: &str) -> Vec<QueryWord> {
    let lower = query.to_lowercase();
    let mut words: Vec<QueryWord> = Vec::new();
    for text in split_words(&lower) {
        if words.len() < MAX_QUERY_WORDS && words.iter().all(|word| word.text != text) {
            words.push(QueryWord { text: text.to_owned(), is_prefix: false, weight: 1.0 });
        }
    }
    words
}

/// Lets the last word be the beginning of one; false if it is too short for that.
fn widen_last(words: &mut [QueryWord]) -> bool {
    let last = words.last_mut().filter(|last| last.text.chars().count() >= MIN_PREFIX_CHARS);
    last.map(|last| last.is_prefix = true).is_some()
}

/// A word as an FTS5 string, so that no operator of its language is read from it.
fn render_word(word: &QueryWord) -> String {
    format!("\"{}\"{}", word.text, if word.is_prefix { "*" } else { "" })
}

/// All of the words.
fn render_all(words: &[QueryWord]) -> String {
    words.iter().map(render_word).collect::<Vec<_>>().join(" ")
}

/// The newest notes that fit an expression.
fn find_candidates(
    rows: &Transaction<'_>,
    expression: &str,
    limit: u32,
) -> Result<Vec<NoteCandidate>, MemoryError> {
    // The index walks its rows backwards and stops at the limit; nothing is sorted.
    let mut statement = rows.prepare_cached(
        "SELECT rowid, key, value FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?2",
    )?;
    let note =
        |row: &rusqlite::Row<'_>| Ok(NoteCandidate { id: row.get(0)?, key: row.get(1)?, value: row.get(2)? });
    Ok(statement.query_map(params![expression, limit], note)?.collect::<Result<_, _>>()?)
}

/// The newest notes with each word. Words are weighted by how many notes have them.
fn find_any(rows: &Transaction<'_>, words: &mut [QueryWord]) -> Result<Vec<NoteCandidate>, MemoryError> {
    let all: i64 = rows.prepare_cached("SELECT count(*) FROM notes")?.query_row([], |row| row.get(0))?;
    let mut found: BTreeMap<i64, NoteCandidate> = BTreeMap::new();
    for word in words {
        let notes = find_candidates(rows, &render_word(word), MAX_WORD_CANDIDATES)?;
        word.weight = word_weight(notes.len(), usize::try_from(all).unwrap_or_default());
        found.extend(notes.into_iter().map(|note| (note.id, note)));
    }
    Ok(found.into_values().collect())
}

/// Adds a note, or replaces what the index has of its file.
fn put(rows: &Transaction<'_>, note: &IndexedNote<'_>) -> Result<(), MemoryError> {
    let mut statement = rows.prepare_cached(
        "INSERT INTO notes (file, stamp, key, value, modified_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (file) DO UPDATE SET stamp = ?2, key = ?3, value = ?4, modified_ms = ?5",
    )?;
    statement.execute(params![note.file, note.stamp, note.key, note.value, note.modified_ms])?;
    Ok(())
}
