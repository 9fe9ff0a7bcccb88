//! A file that a call has opened for reading.

use super::page::{FilePage, PageError, PageRequest};
use super::read_page::read_page;
use crate::file_refusal::{file_refusal, missing_file_refusal};
use crate::read_state::ReadState;
use crate::text_encoding::TextDecodeError;
use std::fs::File;
use toolgate_files::{FileFingerprint, FileProblem, run_blocking};
use toolgate_gate::Cleared;
use toolgate_proto::{AbsPath, Code, Refusal, format_count};

/// A smaller file is read on the async thread: moving the work to a blocking thread would take longer than the read.
const MAX_INLINE_READ_BYTES: u64 = 256 * 1024;

/// An open file, and the call that opened it.
pub(super) struct FileReadHandle<'c> {
    /// Opens further files of the same call, and tells of its cancellation.
    pub(super) cleared: &'c Cleared,
    /// The path as the call gave it, for messages.
    pub(super) path: AbsPath,
    /// The path with symlinks resolved, the key of the read state.
    pub(super) real: AbsPath,
    /// Open for reading, at the start.
    pub(super) file: File,
    /// Taken from the open file, so that it describes what is read even if the path is replaced meanwhile.
    pub(super) fingerprint: FileFingerprint,
}

impl<'c> FileReadHandle<'c> {
    /// Opens a file that the call declared in its intent.
    pub(super) fn open(cleared: &'c Cleared, path: &AbsPath) -> Result<Self, Refusal> {
        let files = cleared.files();
        let opened = files.real_path(path).and_then(|real| Ok((real, files.open_with_fingerprint(path)?)));
        match opened {
            Ok((real, (file, fingerprint))) => {
                Ok(Self { cleared, path: path.clone(), real, file, fingerprint })
            }
            Err(FileProblem::Missing) => Err(missing_file_refusal(files, path)),
            Err(problem) => Err(file_refusal(path, &problem, Code::FileRead)),
        }
    }

    /// Reads some lines and records them in the session's read state.
    pub(super) async fn read_page(self, request: PageRequest) -> Result<FilePage, Refusal> {
        let Self { cleared, path, real, file, fingerprint } = self;
        let state = ReadState::of(&cleared.context().session);
        let cancel = cleared.cancel().clone();
        let work = move || read_page((file, fingerprint), &real, request, &state, &|| cancel.is_cancelled());
        let page = if fingerprint.bytes <= MAX_INLINE_READ_BYTES {
            work()
        } else {
            run_blocking(work).await.map_err(|problem| file_refusal(&path, &problem, Code::FileRead))?
        };
        page.map_err(|problem| page_refusal(&path, problem, request.first))
    }

    /// Reads the whole file, or returns the refusal of `too_large` if it has more than `max_bytes`.
    pub(super) async fn read_bytes(
        self,
        max_bytes: u64,
        too_large: impl FnOnce(&AbsPath) -> Refusal,
    ) -> Result<(Vec<u8>, AbsPath), Refusal> {
        if self.fingerprint.bytes > max_bytes {
            return Err(too_large(&self.path));
        }
        let path = self.path;
        let file = self.file;
        let read = run_blocking(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(file, max_bytes), &mut bytes)?;
            Ok(bytes)
        });
        let read = read.await.and_then(|read: std::io::Result<Vec<u8>>| Ok(read?));
        match read {
            Ok(bytes) => Ok((bytes, path)),
            Err(problem) => Err(file_refusal(&path, &problem, Code::FileRead)),
        }
    }
}

/// The refusal for a page that could not be read. `first` is the requested first line.
pub(super) fn page_refusal(path: &AbsPath, problem: PageError, first: u64) -> Refusal {
    match problem {
        PageError::File(problem) => file_refusal(path, &problem, Code::FileRead),
        PageError::NotText(TextDecodeError::Binary) => {
            Refusal::new(Code::BinaryFile, format!("`{path}` is a binary file, not text"))
        }
        PageError::NotText(TextDecodeError::BrokenUtf16) => {
            Refusal::new(Code::BinaryFile, format!("`{path}` is marked as UTF-16 text but is not valid"))
        }
        PageError::PastEnd(total) => {
            let lines = format_count(total, "line", "lines");
            Refusal::new(Code::PastEnd, format!("`{path}` has {lines}, so there is no line {first}"))
        }
        PageError::Cancelled => Refusal::new(Code::Cancelled, "the read was cancelled"),
    }
}
