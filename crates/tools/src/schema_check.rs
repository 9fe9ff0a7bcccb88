//! Validates files against a JSON Schema before a tool writes them.
//!
//! toolgate uses it for its own settings, hooks and server lists: an edit by a model cannot leave them unreadable.

use serde_json::Value;
use std::fmt;
use toolgate_files::ContentCheck;
use toolgate_gate::schema::SchemaValidator;
use toolgate_proto::AbsPath;

/// A content check for `GateParts::content_checks`: files that match must be valid under a JSON Schema.
///
/// The caller says which files match; this crate knows no settings file by name.
pub struct SchemaCheck {
    /// Compiled at the first use.
    validator: SchemaValidator,
    /// Whether a real path is checked.
    matches: Box<dyn Fn(&AbsPath) -> bool + Send + Sync>,
}

impl SchemaCheck {
    /// Checks the files for which `matches` returns true. `schema` is called and compiled when the first of them is
    /// written; if it does not compile, every write to them is refused.
    pub fn new(
        schema: impl FnOnce() -> Value + Send + Sync + 'static,
        matches: impl Fn(&AbsPath) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { validator: SchemaValidator::deferred(schema), matches: Box::new(matches) }
    }
}

impl fmt::Debug for SchemaCheck {
    /// Omits both fields: neither the compiled schema nor the closure has a useful representation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaCheck").finish_non_exhaustive()
    }
}

impl ContentCheck for SchemaCheck {
    /// Validates matching files. A BOM is skipped, because editors on Windows write one and JSON parsers reject it.
    fn check(&self, real: &AbsPath, content: &[u8]) -> Result<(), Vec<String>> {
        if !(self.matches)(real) {
            return Ok(());
        }
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let value: Value = serde_json::from_slice(content)
            .map_err(|error| vec![format!("it is not valid JSON: {error}")])?;
        self.validator
            .check(&value)
            .map_err(|refusal| refusal.reason.split("; ").map(str::to_owned).collect())
    }
}
