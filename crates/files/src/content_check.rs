//! Checks of new content before it replaces a file.

use std::fmt::Debug;
use toolgate_proto::AbsPath;

/// Validates the content that a file is about to get. The case in point are settings files: one with a syntax error may
/// contain a deny rule that can no longer be read.
///
/// [`LockedFile::put`](crate::LockedFile::put) calls it under the lock of the file, so that no tool can forget to.
pub trait ContentCheck: Debug + Send + Sync {
    /// Lists what is wrong with this content for this path. A path that the check is not concerned with is always `Ok`.
    fn check(&self, real: &AbsPath, content: &[u8]) -> Result<(), Vec<String>>;
}
