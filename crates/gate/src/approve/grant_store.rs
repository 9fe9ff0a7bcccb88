//! Remembering rules beyond the session.

use toolgate_proto::Workspace;

/// Stores allow rules that a user granted for good.
///
/// Called only with rules that the user was shown and chose.
/// Where writing fails, the rules last for the session and the user gets a message.
pub trait GrantStore: Send + Sync {
    /// Writes the rules, and returns where.
    fn write_rules(&self, rules: &[String], workspace: &Workspace) -> Result<String, String>;
}
