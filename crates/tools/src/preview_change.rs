//! What a change would do to a file, for the user who is asked about it.
//!
//! A preview reads the file and computes the new content as the tool would, but changes nothing.
//! What it refuses, the tool would refuse as well; the tool still decides again under the file's lock.
//! A refusal reaches the model before an approver has agreed, so the difference to what was read is left out of it.

use crate::diff::unified_diff;
use toolgate_files::{FileProblem, FileSnapshot, GrantedFiles, run_blocking};
use toolgate_proto::{AbsPath, Refusal};

/// Lines of the diff of a preview.
const MAX_PREVIEW_LINES: usize = 10_000;
/// The preview of a larger file is left out: the user does not wait for it.
const MAX_PREVIEW_BYTES: u64 = 16 << 20;

/// A file before the change that is previewed.
pub(crate) struct PreviewedFile {
    /// The real path of the file.
    pub(crate) real: AbsPath,
    /// Its content; `None` if it does not exist.
    pub(crate) before: Option<FileSnapshot>,
}

impl PreviewedFile {
    /// The content in bytes, if the file exists.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.before.as_ref().map(|before| before.bytes.as_slice())
    }
}

/// The diff to the content that `change` computes. A file that cannot be read has no preview, because the tool says
/// more about it when it runs.
pub(crate) async fn preview_change(
    files: &GrantedFiles,
    path: &AbsPath,
    change: impl FnOnce(&PreviewedFile) -> Result<Option<Vec<u8>>, Refusal> + Send + 'static,
) -> Result<Option<String>, Refusal> {
    let (files, path) = (files.clone(), path.clone());
    let previewing = run_blocking(move || {
        let before = match files.read(&path, MAX_PREVIEW_BYTES) {
            Ok(before) => Some(before),
            Err(FileProblem::Missing) => None,
            Err(_) => return Ok(None),
        };
        let Ok(real) = files.real_path(&path) else { return Ok(None) };
        let file = PreviewedFile { real, before };
        let after = change(&file)?;
        Ok(after.map(|after| unified_diff(&path.to_string(), file.bytes(), Some(&after), MAX_PREVIEW_LINES)))
    });
    previewing.await.unwrap_or(Ok(None))
}
