//! `/name arguments` in the prompts of an agent.

use crate::toolgate::Toolgate;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use toolgate_agent::{ExpandedPrompt, PromptCommand, PromptExpander};

/// Replaces `/name arguments` by the text of that skill or command.
///
/// ```
/// use std::sync::Arc;
/// use toolgate::Toolgate;
/// use toolgate::agent::AgentLoop;
/// use toolgate::skills::SkillExpander;
///
/// fn expand_skills(agent: AgentLoop, toolgate: &Toolgate) -> AgentLoop {
///     agent.with_prompt_expander(Arc::new(SkillExpander::new(toolgate.clone())))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SkillExpander {
    /// Loads the skills under its policy.
    toolgate: Toolgate,
}

impl SkillExpander {
    /// The skills of a toolgate.
    pub fn new(toolgate: Toolgate) -> Self {
        Self { toolgate }
    }
}

impl PromptExpander for SkillExpander {
    fn find_command(&self, prompt: &str) -> Option<PromptCommand> {
        let (names, arguments) = self.toolgate.find_prompt_skills(prompt);
        let name = names.first()?;
        Some(PromptCommand::new((*name).to_owned(), arguments.to_owned()))
    }

    /// Loads the skill for the user. A refusal keeps the prompt from the model, which would only guess what it means.
    fn expand<'a>(
        &'a self,
        prompt: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<ExpandedPrompt>, String>> {
        Box::pin(async move {
            match self.toolgate.expand_prompt(prompt, cancel.child_token()).await {
                Ok(loaded) => Ok(loaded.map(|loaded| ExpandedPrompt::new(loaded.text, loaded.notes))),
                Err(refusal) if refusal.hint.is_empty() => Err(refusal.to_string()),
                Err(refusal) => Err(format!("{refusal}; {}", refusal.hint)),
            }
        })
    }
}
