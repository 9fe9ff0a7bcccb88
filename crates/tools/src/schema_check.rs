//! Settings must stay valid, whoever edits them.

use serde_json::Value;
use std::fmt;
use toolgate_files::ContentCheck;
use toolgate_gate::schema::SchemaValidator;
use toolgate_proto::AbsPath;

/// Holds files of a kind to a JSON Schema. Give it to `GateParts::content_checks`.
///
/// Which files are settings, hooks or server lists, and what their published schema is, the caller knows.
pub struct SchemaCheck {
    checker: SchemaValidator,
    fits: Box<dyn Fn(&AbsPath) -> bool + Send + Sync>,
}

impl SchemaCheck {
    /// Checks the files for which `fits` says yes. The schema is made and compiled when the first of them is written;
    /// one that cannot be compiled refuses them all.
    pub fn new(
        schema: impl FnOnce() -> Value + Send + Sync + 'static,
        fits: impl Fn(&AbsPath) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { checker: SchemaValidator::deferred(schema), fits: Box::new(fits) }
    }
}

impl fmt::Debug for SchemaCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaCheck").finish_non_exhaustive()
    }
}

impl ContentCheck for SchemaCheck {
    fn check(&self, real: &AbsPath, content: &[u8]) -> Result<(), Vec<String>> {
        if !(self.fits)(real) {
            return Ok(());
        }
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let value: Value =
            serde_json::from_slice(content).map_err(|error| vec![format!("it is no valid JSON: {error}")])?;
        self.checker.check(&value).map_err(|refusal| refusal.reason.split("; ").map(str::to_owned).collect())
    }
}
