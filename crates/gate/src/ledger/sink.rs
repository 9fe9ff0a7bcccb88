//! The ledger as a sink.

use super::ExternalAnchor;
use super::chain::{next_line, parse_note};
use crate::sink::Sink;
use std::io;
use std::sync::{Mutex, PoisonError};
use toolgate_files::AppendLog;
use toolgate_proto::{AbsPath, CallRecord};

/// The name of the ledger's files.
pub const LEDGER_NAME: &str = "ledger";

/// The size of most records, to allocate once.
const DEFAULT_RECORD_BYTES: usize = 1024;

/// The space that is reserved for the next record where records are required. Inputs are cut long before this.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;

/// Appends records to the ledger's file.
#[derive(Debug)]
pub struct LedgerSink {
    dir: AbsPath,
    log: Mutex<AppendLog>,
    external_anchor: Mutex<Option<ExternalAnchor>>,
    last_error: Mutex<Option<String>>,
}

impl LedgerSink {
    /// Opens the ledger in a directory, and starts a new file when the current one would pass `rotate_at` bytes.
    /// The anchor is kept in a directory below; [`LedgerSink::open_anchored`] keeps it elsewhere, which is better.
    pub fn open(dir: &AbsPath, rotate_at: u64) -> io::Result<Self> {
        Self::open_anchored(dir, &AppendLog::default_anchor_dir(dir), rotate_at)
    }

    /// Opens the ledger in a directory, with its anchor in another.
    pub fn open_anchored(dir: &AbsPath, anchor_dir: &AbsPath, rotate_at: u64) -> io::Result<Self> {
        let log = AppendLog::open_anchored(dir, anchor_dir, LEDGER_NAME, rotate_at)?;
        Ok(Self {
            dir: dir.clone(),
            log: Mutex::new(log),
            external_anchor: Mutex::default(),
            last_error: Mutex::new(None),
        })
    }

    /// Names the end of the ledger in another place as well, from the next record on.
    pub fn set_external_anchor(&self, anchor: Option<ExternalAnchor>) {
        *self.external_anchor.lock().unwrap_or_else(PoisonError::into_inner) = anchor;
    }

    /// The external anchor, if there is one.
    fn external_anchor(&self) -> Option<ExternalAnchor> {
        self.external_anchor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends a record, and names it in the external anchor.
    fn append(&self, text: &str) -> Result<(), String> {
        let mut head = String::new();
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.append(|end| {
            let (line, new_head) = next_line(end, text);
            head.clone_from(&new_head);
            (line, new_head)
        })
        .map_err(|error| error.to_string())?;
        // Under the lock, so that the lines of the anchor are in the order of the records.
        match (self.external_anchor(), parse_note(&head)) {
            (Some(anchor), Some((seq, hash))) => anchor
                .write(&self.dir, seq, hash)
                .map_err(|error| format!("the external anchor could not be written: {error}")),
            (_, _) => Ok(()),
        }
    }

    /// Why a record could not be written, if that happened.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for LedgerSink {
    /// Reserves space for the next record, and looks whether the external anchor can be written.
    fn check_ready(&self) -> Option<Result<(), String>> {
        let reserved = self.log.lock().unwrap_or_else(PoisonError::into_inner).reserve(MAX_RECORD_BYTES);
        let ready = reserved.map_err(|error| format!("{}: {error}", self.dir)).and_then(|()| {
            match self.external_anchor() {
                Some(anchor) => anchor.check_ready().map_err(|error| format!("external anchor: {error}")),
                None => Ok(()),
            }
        });
        Some(ready)
    }

    fn record(&self, record: &CallRecord) {
        let mut text = Vec::with_capacity(DEFAULT_RECORD_BYTES);
        let written = match serde_json::to_writer(&mut text, record) {
            Ok(()) => {
                let text = String::from_utf8_lossy(&text);
                self.append(&text)
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::error!(%error, "the ledger could not be written");
            *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}
