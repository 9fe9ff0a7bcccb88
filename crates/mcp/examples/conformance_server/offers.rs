//! Resources, prompts and completions.

use super::rounds::{elicit, requests};
use super::tools::PNG;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_mcp::model::{
    CompleteRequestParams, CompletionInfo, GetPromptRequestParams, GetPromptResult, Prompt,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use toolgate_mcp::{ClientConversation, ErrorData, ServerFeatureError, ServerFeatureSet, ServerFeatures};

/// What the suite asks for by name.
pub(crate) struct Fixtures;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a fixture")
}

impl ServerFeatures for Fixtures {
    fn feature_set(&self) -> ServerFeatureSet {
        ServerFeatureSet {
            resources: true,
            resource_updates: true,
            prompts: true,
            completions: true,
            logging: true,
        }
    }

    fn resources(&self) -> BoxFuture<'_, Vec<Resource>> {
        let all = [
            ("static-text", "text/plain"),
            ("static-binary", "image/png"),
            ("watched-resource", "text/plain"),
        ];
        let all = all.map(|(name, kind)| {
            Resource::new(format!("test://{name}"), name)
                .with_description(format!("The fixture {name}."))
                .with_mime_type(kind)
        });
        Box::pin(std::future::ready(all.to_vec()))
    }

    fn templates(&self) -> BoxFuture<'_, Vec<ResourceTemplate>> {
        let template = json!({ "uriTemplate": "test://template/{id}/data", "name": "template",
            "description": "A fixture with a parameter.", "mimeType": "application/json" });
        Box::pin(std::future::ready(vec![read(template)]))
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        _: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<ReadResourceResult, ServerFeatureError>> {
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text", _) => {
                ResourceContents::text("This is the content of the static text resource.", uri)
            }
            ("test://static-binary", _) => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            ("test://watched-resource", _) => ResourceContents::text("Watched resource content", uri),
            (_, Some(id)) => {
                let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                ResourceContents::text(text.to_string(), uri).with_mime_type("application/json")
            }
            _ => {
                let missing =
                    ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })));
                return Box::pin(std::future::ready(Err(missing.into())));
            }
        };
        Box::pin(std::future::ready(Ok(ReadResourceResult::new(vec![contents]))))
    }

    fn prompts(&self) -> BoxFuture<'_, Vec<Prompt>> {
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
        Box::pin(std::future::ready(read(all)))
    }

    fn get_prompt<'a>(
        &'a self,
        request: &'a GetPromptRequestParams,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<GetPromptResult, ServerFeatureError>> {
        let argument = |name: &str| {
            let found = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let text = |text: String| json!({ "type": "text", "text": text });
        let content = match request.name.as_str() {
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
                let missing = ErrorData::invalid_params(format!("there is no prompt `{other}`"), None);
                return Box::pin(std::future::ready(Err(missing.into())));
            }
        };
        let messages: Vec<Value> =
            content.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
        Box::pin(std::future::ready(Ok(read(json!({ "messages": messages })))))
    }

    fn complete<'a>(&'a self, request: &'a CompleteRequestParams) -> BoxFuture<'a, CompletionInfo> {
        let words = ["paris", "park", "party", "test"];
        let values = words.iter().filter(|word| word.starts_with(&request.argument.value));
        let info = CompletionInfo::new(values.map(|word| (*word).to_owned()).collect()).unwrap_or_default();
        Box::pin(std::future::ready(info))
    }
}
