//! Skills and commands as prompts of an MCP server: a client shows them to its user as `/name`.

use super::capability_file::CatalogSkill;
use crate::settings::values::SkillOverride;
use crate::toolgate::Toolgate;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{
    ClientConversation, CompletionRequest, CompletionValues, PromptEntry, PromptRequest, PromptResult,
    ProtocolError, ResourceEntry, ResourceReadResult, ResourceTemplateEntry, ServerFeatureError,
    ServerFeatureSet, ServerFeatures,
};

/// The argument of a skill that names none of its own.
const ARGUMENTS_NAME: &str = "arguments";

/// Adds skills to what a server offers beside tools.
pub struct SkillPrompts {
    /// Loads the skills under its policy.
    toolgate: Toolgate,
    /// The features to which everything except skills is forwarded.
    others: Arc<dyn ServerFeatures>,
}

impl SkillPrompts {
    /// The skills of a toolgate, and everything else that is offered.
    pub fn new(toolgate: Toolgate, others: Arc<dyn ServerFeatures>) -> Self {
        Self { toolgate, others }
    }

    /// The skills that a user may call.
    fn offered(&self) -> Vec<Arc<CatalogSkill>> {
        let Some(skills) = self.toolgate.skills() else { return Vec::new() };
        let is_on = |skill: &&Arc<CatalogSkill>| {
            skill.plugin.is_some() || skills.find_override(&skill.name) != SkillOverride::Off
        };
        let catalog = skills.current();
        catalog.skills().filter(|skill| skill.definition.is_user_invocable).filter(is_on).cloned().collect()
    }

    /// Loads a skill as a prompt of one user message. Dropping the request cancels the commands of the skill.
    async fn load(
        &self,
        skill: &CatalogSkill,
        request: &PromptRequest,
    ) -> Result<PromptResult, ServerFeatureError> {
        let arguments = join_arguments(skill, request);
        let cancel = CancellationToken::new();
        let _cancel_on_drop = cancel.clone().drop_guard();
        match self.toolgate.load_skill(&skill.name, &arguments, cancel).await {
            Ok(loaded) => {
                let message = json!({ "role": "user", "content": { "type": "text", "text": loaded.text } });
                // The text is for the model; what had no effect is for the user.
                let notes = loaded.notes.iter().map(|note| format!("\n[{note}]"));
                let description = format!("{}{}", skill.definition.description, notes.collect::<String>());
                let value = json!({ "description": description, "messages": [message] });
                PromptResult::from_json(value).map_err(|problem| ProtocolError::internal(problem).into())
            }
            Err(refusal) => {
                let hint = &refusal.hint;
                Err(ProtocolError::invalid_params(format!("{refusal}\n  hint: {hint}")).into())
            }
        }
    }
}

/// An entry of the list of prompts.
fn prompt_entry(skill: &CatalogSkill) -> Option<PromptEntry> {
    let definition = &skill.definition;
    let hint = definition.argument_hint.as_deref();
    let arguments: Vec<Value> = match definition.argument_names.as_slice() {
        [] => vec![
            json!({ "name": ARGUMENTS_NAME, "description": hint.unwrap_or("what to do it with"), "required": false }),
        ],
        names => names.iter().map(|name| json!({ "name": name, "required": false })).collect(),
    };
    let value = json!({ "name": skill.name, "description": definition.description, "arguments": arguments });
    PromptEntry::from_json(value).ok()
}

/// The arguments of a request as one text. Named ones are quoted, so that each stays one argument.
fn join_arguments(skill: &CatalogSkill, request: &PromptRequest) -> String {
    let text = |name: &str| match request.argument(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    match skill.definition.argument_names.as_slice() {
        [] => text(ARGUMENTS_NAME),
        names if names.iter().all(|name| text(name).is_empty()) => String::new(),
        names => {
            let quoted: Vec<String> =
                names.iter().map(|name| format!("'{}'", text(name).replace('\'', "'\\''"))).collect();
            quoted.join(" ")
        }
    }
}

impl ServerFeatures for SkillPrompts {
    /// Announces prompts even if the inner features have none.
    fn feature_set(&self) -> ServerFeatureSet {
        let mut features = self.others.feature_set();
        features.prompts = true;
        features
    }

    fn wait_until_ready(&self) -> BoxFuture<'_, ()> {
        self.others.wait_until_ready()
    }

    fn resources(&self) -> BoxFuture<'_, Vec<ResourceEntry>> {
        self.others.resources()
    }

    fn templates(&self) -> BoxFuture<'_, Vec<ResourceTemplateEntry>> {
        self.others.templates()
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<ResourceReadResult, ServerFeatureError>> {
        self.others.read_resource(uri, conversation)
    }

    /// Lists skills first, then the prompts of the inner features.
    fn prompts(&self) -> BoxFuture<'_, Vec<PromptEntry>> {
        Box::pin(async move {
            let offered = self.offered();
            let mut prompts: Vec<PromptEntry> =
                offered.iter().filter_map(|skill| prompt_entry(skill)).collect();
            prompts.extend(self.others.prompts().await);
            prompts
        })
    }

    /// Prefers a skill to an inner prompt of the same name, in agreement with the order of the list.
    fn get_prompt<'a>(
        &'a self,
        request: &'a PromptRequest,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<PromptResult, ServerFeatureError>> {
        Box::pin(async move {
            match self.offered().iter().find(|skill| skill.name == request.name()) {
                Some(skill) => self.load(skill, request).await,
                None => self.others.get_prompt(request, conversation).await,
            }
        })
    }

    /// Forwards completion requests to the inner features; arguments of skills are not completed.
    fn complete<'a>(&'a self, request: &'a CompletionRequest) -> BoxFuture<'a, CompletionValues> {
        self.others.complete(request)
    }
}
