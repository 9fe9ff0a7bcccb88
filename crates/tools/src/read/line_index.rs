//! Byte offsets of some lines of large files, so that the next page is found without counting lines from the start.
//!
//! A model reads a large file page by page, so the start of the next page is nearly always known.
//! A complete index of all lines would answer every request, but costs eight bytes per line and a pass over the file.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use toolgate_files::FileFingerprint;
use toolgate_proto::AbsPath;

/// Line starts per file; the oldest is dropped.
const MAX_LINE_STARTS_PER_FILE: usize = 64;
/// Files in the index; at the limit it is cleared, which costs one count of the lines per file.
const MAX_INDEXED_FILES: usize = 256;

/// The start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineStart {
    /// The line number, from 1.
    pub(crate) line: u64,
    /// The byte offset in the file.
    pub(crate) byte: u64,
}

/// Line starts that earlier reads found. They are valid only while the fingerprint of the file is the same.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    /// By real path: the fingerprint for which the line starts are valid, and the line starts.
    files: Mutex<HashMap<AbsPath, (FileFingerprint, Vec<LineStart>)>>,
}

impl LineIndex {
    /// The nearest known start at or before a line. `top` is the offset of line 1, after a byte order mark.
    pub(crate) fn nearest_before(
        &self,
        real: &AbsPath,
        fingerprint: &FileFingerprint,
        line: u64,
        top: u64,
    ) -> LineStart {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.get(real).filter(|(indexed, _)| indexed.is_surely_same(fingerprint));
        let starts = known.map(|(_, starts)| starts.as_slice()).unwrap_or_default();
        let nearest = starts.iter().filter(|start| start.line <= line).max_by_key(|start| start.line);
        nearest.copied().unwrap_or(LineStart { line: 1, byte: top })
    }

    /// Adds a line start. If the file has changed, its earlier starts are dropped.
    pub(crate) fn record_start(&self, real: &AbsPath, fingerprint: &FileFingerprint, start: LineStart) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MAX_INDEXED_FILES {
            files.clear();
        }
        let (indexed, starts) = files.entry(real.clone()).or_insert_with(|| (*fingerprint, Vec::new()));
        if !indexed.is_surely_same(fingerprint) {
            *indexed = *fingerprint;
            starts.clear();
        }
        if !starts.contains(&start) {
            if starts.len() >= MAX_LINE_STARTS_PER_FILE {
                starts.remove(0);
            }
            starts.push(start);
        }
    }
}
