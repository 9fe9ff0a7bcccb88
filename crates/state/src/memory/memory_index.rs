//! The index of a directory of notes: which file has which key, and full-text search with FTS5.

use super::memory_store::{MemoryEntry, MemoryError, MemoryHit};
use crate::database::{SchemaMigrations, StateDatabase};
use rusqlite::{OptionalExtension, Transaction, params};
use std::collections::BTreeMap;
use toolgate_proto::AbsPath;

/// Words of a query that are used.
const MAX_QUERY_WORDS: usize = 16;
/// Words around a hit.
const SNIPPET_WORDS_COUNT: u32 = 24;

/// The tables, by version. The columns `key` and `value` of `notes` are what the full-text table was given: FTS5 needs
/// the old text to remove it.
const MEMORY_MIGRATIONS: SchemaMigrations = &["
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
"];

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

    /// Notes with all words of a query, the best first; where no note has all, those with any.
    pub(super) fn search(&self, query: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError> {
        let words = query_words(query);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.database.read(|rows| {
            let hits = find(rows, &words.join(" "), limit)?;
            match hits.is_empty() && words.len() > 1 {
                true => find(rows, &words.join(" OR "), limit),
                false => Ok(hits),
            }
        })
    }
}

/// The words of a query as FTS5 strings, so that no operator of its language is read from them; the last one is a prefix.
fn query_words(query: &str) -> Vec<String> {
    let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.take(MAX_QUERY_WORDS).map(|word| format!("\"{word}\"")).collect();
    if let Some(last) = words.last_mut() {
        last.push('*');
    }
    words
}

fn find(rows: &Transaction<'_>, expression: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError> {
    let mut statement = rows.prepare_cached(
        "SELECT key, snippet(words, 1, '', '', '…', ?3) FROM words WHERE words MATCH ?1 ORDER BY rank LIMIT ?2",
    )?;
    let hit = |row: &rusqlite::Row<'_>| Ok(MemoryHit { key: row.get(0)?, snippet: row.get(1)? });
    let hits = statement.query_map(params![expression, limit, SNIPPET_WORDS_COUNT], hit)?;
    Ok(hits.collect::<Result<_, _>>()?)
}

fn put(rows: &Transaction<'_>, note: &IndexedNote<'_>) -> Result<(), MemoryError> {
    let mut statement = rows.prepare_cached(
        "INSERT INTO notes (file, stamp, key, value, modified_ms) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (file) DO UPDATE SET stamp = ?2, key = ?3, value = ?4, modified_ms = ?5",
    )?;
    statement.execute(params![note.file, note.stamp, note.key, note.value, note.modified_ms])?;
    Ok(())
}
