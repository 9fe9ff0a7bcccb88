//! The result of translating rules of another product.

use serde::Serialize;
use serde_json::Value;

/// Settings that are never looser than the rules that they were made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleTranslation {
    /// A settings file as JSON.
    pub settings: Value,
    /// Rules whose meaning changed, sorted by line.
    pub notes: Vec<TranslationNote>,
}

/// A rule that the settings make stricter or omit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TranslationNote {
    /// The line of the rule, from 1.
    pub line: usize,
    /// What changed and why, lower case, without a full stop.
    pub message: String,
}
