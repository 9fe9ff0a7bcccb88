//! Where some lines of large files begin.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use toolgate_files::FileFingerprint;
use toolgate_proto::AbsPath;

/// Places kept per file, and files.
const MAX_LINE_STARTS_PER_FILE: usize = 64;
const MAX_INDEXED_FILES: usize = 256;

/// Where a line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineStart {
    /// From 1.
    pub(crate) line: u64,
    /// From 0.
    pub(crate) byte: u64,
}

/// Places found by earlier reads. They hold only while the file is the same.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    files: Mutex<HashMap<AbsPath, (FileFingerprint, Vec<LineStart>)>>,
}

impl LineIndex {
    /// The nearest known place at or before a line.
    pub(crate) fn nearest_before(
        &self,
        real: &AbsPath,
        mark: &FileFingerprint,
        line: u64,
        top: u64,
    ) -> LineStart {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.get(real).filter(|(then, _)| then.is_surely_same(mark));
        let places = known.map(|(_, places)| places.as_slice()).unwrap_or_default();
        let nearest = places.iter().filter(|place| place.line <= line).max_by_key(|place| place.line);
        nearest.copied().unwrap_or(LineStart { line: 1, byte: top })
    }

    /// Remembers a place.
    pub(crate) fn record_start(&self, real: &AbsPath, mark: &FileFingerprint, place: LineStart) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MAX_INDEXED_FILES {
            files.clear();
        }
        let (then, places) = files.entry(real.clone()).or_insert_with(|| (*mark, Vec::new()));
        if !then.is_surely_same(mark) {
            *then = *mark;
            places.clear();
        }
        if !places.contains(&place) {
            if places.len() >= MAX_LINE_STARTS_PER_FILE {
                places.remove(0);
            }
            places.push(place);
        }
    }
}
