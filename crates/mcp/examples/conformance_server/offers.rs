//! Resources, prompts and completions.

use super::rounds::{elicit, requests};
use super::tools::PNG;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_mcp::{
    ClientConversation, CompletionRequest, CompletionValues, PromptEntry, PromptRequest, PromptResult,
    ProtocolError, ResourceEntry, ResourceReadResult, ResourceTemplateEntry, ServerFeatureError,
    ServerFeatureSet, ServerFeatures,
};

/// What the suite asks for by name.
pub(crate) struct Fixtures;

impl ServerFeatures for Fixtures {
    fn feature_set(&self) -> ServerFeatureSet {
        let mut features = ServerFeatureSet::default();
        (features.resources, features.resource_updates) = (true, true);
        (features.prompts, features.completions, features.logging) = (true, true, true);
        features
    }

    fn resources(&self) -> BoxFuture<'_, Vec<ResourceEntry>> {
        let all = [
            ("static-text", "text/plain"),
            ("static-binary", "image/png"),
            ("watched-resource", "text/plain"),
        ];
        let all = all.map(|(name, kind)| {
            ResourceEntry::from_json(json!({ "uri": format!("test://{name}"), "name": name,
                "description": format!("The fixture {name}."), "mimeType": kind }))
            .expect("a fixture")
        });
        Box::pin(std::future::ready(all.to_vec()))
    }

    fn templates(&self) -> BoxFuture<'_, Vec<ResourceTemplateEntry>> {
        let template = json!({ "uriTemplate": "test://template/{id}/data", "name": "template",
            "description": "A fixture with a parameter.", "mimeType": "application/json" });
        Box::pin(std::future::ready(vec![ResourceTemplateEntry::from_json(template).expect("a fixture")]))
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        _: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<ResourceReadResult, ServerFeatureError>> {
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            ("test://static-binary", _) => json!({ "uri": uri, "blob": PNG, "mimeType": "image/png" }),
            ("test://watched-resource", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "Watched resource content" })
            }
            (_, Some(id)) => {
                let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "text": text.to_string(), "mimeType": "application/json" })
            }
            _ => {
                let missing = ProtocolError::resource_not_found(uri, "Resource not found");
                return Box::pin(std::future::ready(Err(missing.into())));
            }
        };
        Box::pin(std::future::ready(Ok(
            ResourceReadResult::from_json(json!({ "contents": [contents] })).expect("a fixture")
        )))
    }

    fn prompts(&self) -> BoxFuture<'_, Vec<PromptEntry>> {
        let argument =
            |name: &str| json!({ "name": name, "description": "A test argument.", "required": true });
        let all = json!([
            { "name": "test_simple_prompt", "description": "A fixture." },
            { "name": "test_prompt_with_arguments", "description": "A fixture.",
                "arguments": [argument("arg1"), argument("arg2")] },
            { "name": "test_prompt_with_embedded_resource", "description": "A fixture.",
                "arguments": [argument("resourceUri")] },
            { "name": "test_prompt_with_image", "description": "A fixture." },
            { "name": "test_input_required_result_prompt", "description": "A fixture." },
        ]);
        let all = all.as_array().cloned().unwrap_or_default().into_iter();
        let all = all.map(|prompt| PromptEntry::from_json(prompt).expect("a fixture"));
        Box::pin(std::future::ready(all.collect()))
    }

    fn get_prompt<'a>(
        &'a self,
        request: &'a PromptRequest,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<PromptResult, ServerFeatureError>> {
        let argument =
            |name: &str| request.argument(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let text = |text: String| json!({ "type": "text", "text": text });
        let content = match request.name() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
            "test_prompt_with_arguments" => {
                let said = format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    argument("arg1"),
                    argument("arg2")
                );
                vec![text(said)]
            }
            "test_prompt_with_embedded_resource" => vec![
                json!({ "type": "resource", "resource": { "uri": argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing." } }),
                text("Please process the embedded resource above.".to_owned()),
            ],
            "test_prompt_with_image" => vec![
                json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
                text("Please analyze the image above.".to_owned()),
            ],
            "test_input_required_result_prompt" => {
                match conversation
                    .response("user_context")
                    .and_then(|answer| answer.pointer("/content/context"))
                {
                    Some(context) => vec![text(format!("Use this context: {context}"))],
                    None => {
                        let asked = elicit("What context should the prompt use?", "context", "string");
                        let more = conversation.require_input(requests(&[("user_context", asked)]), None);
                        return Box::pin(std::future::ready(Err(ServerFeatureError::Round(more))));
                    }
                }
            }
            other => {
                let missing = ProtocolError::invalid_params(format!("there is no prompt `{other}`"));
                return Box::pin(std::future::ready(Err(missing.into())));
            }
        };
        let messages: Vec<Value> =
            content.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
        Box::pin(std::future::ready(Ok(
            PromptResult::from_json(json!({ "messages": messages })).expect("a fixture")
        )))
    }

    fn complete<'a>(&'a self, request: &'a CompletionRequest) -> BoxFuture<'a, CompletionValues> {
        let words = ["paris", "park", "party", "test"];
        let values = words.iter().filter(|word| word.starts_with(request.argument_value()));
        let values = CompletionValues::new(values.map(|word| (*word).to_owned()));
        Box::pin(std::future::ready(values))
    }
}
