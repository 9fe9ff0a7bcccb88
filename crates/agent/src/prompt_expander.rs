//! Prompts that stand for a longer text: `/name arguments`.

use crate::agent_event::AgentEvent;
use crate::agent_hook::AgentHookEvent;
use crate::agent_loop::AgentLoop;
use crate::conversation::text_block;
use crate::turn_report::TurnEnding;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
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

/// A prompt that stands for a longer text: `/name arguments`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptCommand {
    /// The name, without the slash.
    pub name: String,
    /// What follows it.
    pub arguments: String,
}

impl PromptCommand {
    /// Creates the prompt `/name arguments`.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: arguments.into() }
    }
}

/// Replaces prompts of the user by the texts that they stand for.
pub trait PromptExpander: Send + Sync {
    /// The command that a prompt names; none if it stands for itself. Nothing runs.
    fn find_command(&self, prompt: &str) -> Option<PromptCommand>;

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
        let added = match expander.find_command(text) {
            Some(command) => self.screen_expansion(text, command, cancel).await?,
            None => None,
        };
        match expander.expand(text, cancel).await {
            Ok(None) => Ok(prompt),
            Ok(Some(expanded)) => {
                for note in expanded.notes {
                    self.observe(&AgentEvent::Noticed(note));
                }
                Ok([Some(expanded.text), added].into_iter().flatten().map(text_block).collect())
            }
            Err(reason) => Err(TurnEnding::PromptRefused(reason)),
        }
    }

    /// Runs the hooks before a command is expanded, because that may run programs. Gives their text for the model.
    async fn screen_expansion(
        &self,
        prompt: &str,
        command: PromptCommand,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, TurnEnding> {
        let fields = Map::from_iter([
            ("expansion_type".to_owned(), json!("slash_command")),
            ("command_name".to_owned(), json!(command.name)),
            ("command_args".to_owned(), json!(command.arguments)),
            ("prompt".to_owned(), json!(prompt)),
        ]);
        let answer = self.run_hooks_until(AgentHookEvent::UserPromptExpansion, fields, cancel).await;
        let answer = answer.ok_or(TurnEnding::Interrupted { in_tools: false })?;
        match answer.stop.or(answer.block) {
            Some(reason) => Err(TurnEnding::HookStopped(format!("a hook blocked the prompt: {reason}"))),
            None => Ok(answer.context),
        }
    }
}
