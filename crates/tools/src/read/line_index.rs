//! Where some lines of large files begin.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use toolgate_os::Mark;
use toolgate_proto::AbsPath;

/// Places kept per file, and files.
const MOST_PLACES: usize = 64;
const MOST_FILES: usize = 256;

/// Where a line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// From 1.
    pub(crate) line: u64,
    /// From 0.
    pub(crate) byte: u64,
}

/// Places found by earlier reads. They hold only while the file is the same.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    files: Mutex<HashMap<AbsPath, (Mark, Vec<Start>)>>,
}

impl LineIndex {
    /// The nearest known place at or before a line.
    pub(crate) fn before(&self, real: &AbsPath, mark: &Mark, line: u64, top: u64) -> Start {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.get(real).filter(|(then, _)| then.is_surely_same(mark));
        let places = known.map(|(_, places)| places.as_slice()).unwrap_or_default();
        let nearest = places.iter().filter(|place| place.line <= line).max_by_key(|place| place.line);
        nearest.copied().unwrap_or(Start { line: 1, byte: top })
    }

    /// Remembers a place.
    pub(crate) fn note(&self, real: &AbsPath, mark: &Mark, place: Start) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MOST_FILES {
            files.clear();
        }
        let (then, places) = files.entry(real.clone()).or_insert_with(|| (*mark, Vec::new()));
        if !then.is_surely_same(mark) {
            *then = *mark;
            places.clear();
        }
        if !places.contains(&place) {
            if places.len() >= MOST_PLACES {
                places.remove(0);
            }
            places.push(place);
        }
    }
}
