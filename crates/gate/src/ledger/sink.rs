//! The ledger as a sink.

use super::chain::next_line;
use crate::sink::Sink;
use std::io;
use std::sync::{Mutex, PoisonError};
use toolgate_files::AppendLog;
use toolgate_proto::{AbsPath, CallRecord};

/// The name of the ledger's files.
pub const LEDGER_NAME: &str = "ledger";

/// The size of most records, to allocate once.
const DEFAULT_RECORD_BYTES: usize = 1024;

/// Appends records to the ledger's file.
#[derive(Debug)]
pub struct LedgerSink {
    log: Mutex<AppendLog>,
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
        Ok(Self { log: Mutex::new(log), last_error: Mutex::new(None) })
    }

    /// Why a record could not be written, if that happened.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for LedgerSink {
    fn record(&self, record: &CallRecord) {
        let mut text = Vec::with_capacity(DEFAULT_RECORD_BYTES);
        let written = match serde_json::to_writer(&mut text, record) {
            Ok(()) => {
                let text = String::from_utf8_lossy(&text);
                let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
                log.append(|end| next_line(end, &text)).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::error!(%error, "the ledger could not be written");
            *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}
