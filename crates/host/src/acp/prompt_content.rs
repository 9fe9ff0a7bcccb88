//! Prompts of an editor, and how a turn ended in its words.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource, StopReason};
use serde_json::{Value, json};
use toolgate_agent::conversation::text_block;
use toolgate_agent::{TurnEnding, TurnReport};

/// The content of a prompt as the model gets it.
pub(super) fn prompt_content(prompt: &[ContentBlock]) -> Result<Vec<Value>, String> {
    prompt.iter().map(content_block).collect()
}

/// One block. A link is named and not opened: the model reads it by a call, which policy judges.
fn content_block(block: &ContentBlock) -> Result<Value, String> {
    Ok(match block {
        ContentBlock::Text(text) => text_block(text.text.clone()),
        ContentBlock::Image(image) => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": image.mime_type, "data": image.data },
        }),
        ContentBlock::ResourceLink(link) => {
            let place = link.uri.strip_prefix("file://").unwrap_or(&link.uri);
            text_block(format!("[{}]({place})", link.name))
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(resource) => {
                let place = resource.uri.strip_prefix("file://").unwrap_or(&resource.uri);
                text_block(format!("<context ref=\"{place}\">\n{}\n</context>", resource.text))
            }
            EmbeddedResourceResource::BlobResourceContents(resource) => {
                text_block(format!("[{}] (binary content, left out)", resource.uri))
            }
            _ => return Err("a resource of the prompt has an unknown kind".to_owned()),
        },
        ContentBlock::Audio(_) => return Err("audio in prompts is not supported".to_owned()),
        _ => return Err("a block of the prompt has an unknown kind".to_owned()),
    })
}

/// How a turn ended; the text tells the user what the reason alone does not.
pub(super) fn stop_reason(report: &TurnReport) -> Result<(StopReason, Option<String>), Error> {
    let message = report.ending.message();
    Ok(match &report.ending {
        TurnEnding::Completed => match report.stop_reason.as_deref() {
            Some("refusal") => (StopReason::Refusal, None),
            Some("max_tokens") => (StopReason::MaxTokens, None),
            _ => (StopReason::EndTurn, None),
        },
        TurnEnding::Interrupted { .. } => (StopReason::Cancelled, None),
        TurnEnding::MaxTurns(_) | TurnEnding::MaxBudget(_) => (StopReason::MaxTurnRequests, message),
        TurnEnding::RequestFailed(error) => {
            return Err(Error::new(Error::internal_error().code, error.to_string()));
        }
        TurnEnding::HookStopped(_)
        | TurnEnding::PromptRefused(_)
        | TurnEnding::StructuredOutputFailed
        | _ => (StopReason::EndTurn, message),
    })
}
