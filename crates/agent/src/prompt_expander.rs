//! Prompts that stand for a longer text: `/name arguments`.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// What a prompt stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpandedPrompt {
    /// The text for the model.
    pub text: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl ExpandedPrompt {
    /// A text with notes.
    pub fn new(text: impl Into<String>, notes: Vec<String>) -> Self {
        Self { text: text.into(), notes }
    }
}

/// Replaces prompts of the user by the texts that they stand for.
pub trait PromptExpander: Send + Sync {
    /// The text that a prompt stands for; none if it stands for itself. The error says why the prompt must not go to the
    /// model.
    fn expand<'a>(
        &'a self,
        prompt: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<ExpandedPrompt>, String>>;
}
