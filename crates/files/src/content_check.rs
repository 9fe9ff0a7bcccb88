//! Contents that must be well-formed before they are put in place.

use std::fmt::Debug;
use toolgate_proto::AbsPath;

/// Looks at what a file is about to hold. Settings are the case in point: a broken settings file may hold a deny rule
/// that can no longer be read.
///
/// It is asked under the lock, by the hands themselves, so that no tool can forget it.
pub trait ContentCheck: Debug + Send + Sync {
    /// What is wrong with this content at this path. A file that is none of its business is fine.
    fn check(&self, real: &AbsPath, content: &[u8]) -> Result<(), Vec<String>>;
}
