//! Memory: notes under keys, as Markdown files that people can read and edit, with an index for search.
//!
//! The files are the truth, and the index follows them.
//! A change by another program is found by the stamps of the files when a store is first used, and from then on by a watch
//! on the directory; changes through a store, in any process, are in the index when they return.

mod memory_index;
mod memory_store;
mod note_file;
mod rank_notes;

pub use memory_store::{
    MAX_KEY_BYTES, MAX_NOTES, MAX_VALUE_BYTES, MemoryEntry, MemoryError, MemoryHit, MemoryNote, MemoryStore,
    SaveOutcome,
};
