//! Keeping what a person granted beyond the session.

use toolgate_proto::Workspace;

/// Somewhere to keep allow rules that a person granted for good.
///
/// Called only with rules that the person was shown and chose.
/// Where keeping fails, the rules count for the session and the person is told.
pub trait GrantStore: Send + Sync {
    /// Keeps the rules, and says where.
    fn write_rules(&self, rules: &[String], workspace: &Workspace) -> Result<String, String>;
}
