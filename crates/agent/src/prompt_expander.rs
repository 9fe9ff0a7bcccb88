//! Prompts that stand for a longer text: `/name arguments`.

use crate::agent_event::AgentEvent;
use crate::agent_loop::AgentLoop;
use crate::conversation::text_block;
use crate::turn_report::TurnEnding;
use futures_util::future::BoxFuture;
use serde_json::Value;
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

impl AgentLoop {
    /// Replaces a prompt that is one text by the text that it stands for.
    pub(crate) async fn expand_prompt(
        &self,
        prompt: Vec<Value>,
        cancel: &CancellationToken,
    ) -> Result<Vec<Value>, TurnEnding> {
        let text = match prompt.as_slice() {
            [only] => only.get("text").and_then(Value::as_str),
            _ => None,
        };
        let (Some(text), Some(expander)) = (text, &self.expander) else { return Ok(prompt) };
        match expander.expand(text, cancel).await {
            Ok(None) => Ok(prompt),
            Ok(Some(expanded)) => {
                for note in expanded.notes {
                    self.observe(&AgentEvent::Noticed(note));
                }
                Ok(vec![text_block(expanded.text)])
            }
            Err(reason) => Err(TurnEnding::PromptRefused(reason)),
        }
    }
}
