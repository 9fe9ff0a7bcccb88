//! OpenAI responses. Nothing is stored at the provider: reasoning items come encrypted and go back unchanged.

use super::chat_chunk::{empty_prose, image_url, result_text};
use super::model_event::{BlockPiece, ModelBlock, ModelCall, ModelEvent, StopReason};
use super::model_request::{ModelRequest, ThinkingMode};
use super::short_names::{ShortNames, shorten_name};
use crate::conversation::{ConversationMessage, MessageRole, block_text, block_type, text_field};
use crate::token_usage::TokenUsage;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate_proto::{DefinitionFormat, render_definitions};

/// The body of a request.
pub(super) fn build_responses_body(request: &ModelRequest) -> Value {
    let mut input: Vec<Value> = Vec::new();
    for message in &request.messages {
        push_items(message, &mut input);
    }
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("input".into(), Value::Array(input));
    body.insert("stream".into(), json!(true));
    body.insert("store".into(), json!(false));
    body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    if !request.system.trim().is_empty() {
        body.insert("instructions".into(), json!(request.system));
    }
    if !request.tools.is_empty() {
        let tools = render_definitions(&request.tools, DefinitionFormat::Openai);
        let flat = tools.as_array().into_iter().flatten().map(|tool| {
            let function = tool.get("function").cloned().unwrap_or_default();
            json!({
                "type": "function",
                "name": shorten_name(text_field(&function, "name")),
                "description": function.get("description"),
                "parameters": function.get("parameters"),
                "strict": false,
            })
        });
        body.insert("tools".into(), flat.collect());
    }
    let effort = match (&request.effort, request.thinking) {
        (Some(effort), _) => Some(effort.clone()),
        (None, ThinkingMode::Disabled) => Some("minimal".to_owned()),
        (None, ThinkingMode::Unset | ThinkingMode::Adaptive | ThinkingMode::Budget(_)) => None,
    };
    if let Some(effort) = effort {
        body.insert("reasoning".into(), json!({ "effort": effort }));
    }
    Value::Object(body)
}

/// The items of one message: texts in between calls stay in their order.
fn push_items(message: &ConversationMessage, out: &mut Vec<Value>) {
    let mut parts: Vec<Value> = Vec::new();
    let text_type = match message.role {
        MessageRole::User => "input_text",
        MessageRole::Assistant => "output_text",
    };
    let flush = |parts: &mut Vec<Value>, out: &mut Vec<Value>| {
        if !parts.is_empty() {
            out.push(json!({ "type": "message", "role": message.role, "content": std::mem::take(parts) }));
        }
    };
    for block in &message.content {
        match block_type(block) {
            "tool_result" => out.push(json!({
                "type": "function_call_output",
                "call_id": text_field(block, "tool_use_id"),
                "output": result_text(block),
            })),
            "tool_use" => {
                flush(&mut parts, out);
                out.push(json!({
                    "type": "function_call",
                    "call_id": text_field(block, "id"),
                    "name": shorten_name(text_field(block, "name")),
                    "arguments": block.get("input").map(Value::to_string).unwrap_or_default(),
                }));
            }
            "reasoning_item" => {
                flush(&mut parts, out);
                out.extend(block.get("item").cloned());
            }
            "image" => {
                parts.extend(image_url(block).map(|url| json!({ "type": "input_image", "image_url": url })))
            }
            _ => parts.extend(block_text(block).map(|text| json!({ "type": text_type, "text": text }))),
        }
    }
    flush(&mut parts, out);
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(super) struct ResponsesEventReader {
    /// The names of tools, as they were sent.
    names: ShortNames,
    /// Whether the start was reported.
    started: bool,
    /// Whether the model called a tool.
    has_calls: bool,
    /// Whether it refused.
    refusal: bool,
    /// Open items by their place in the answer.
    open: BTreeMap<usize, Value>,
}

impl ResponsesEventReader {
    /// For an answer to a request with these tools.
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self { names: ShortNames::new(&request.tools), ..Self::default() }
    }

    /// Reads one event.
    pub(super) fn read_event(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<(), String> {
        let index = event.get("output_index").and_then(Value::as_u64);
        let index = index.and_then(|index| usize::try_from(index).ok()).unwrap_or_default();
        let response = event.get("response");
        match text_field(event, "type") {
            "response.created" | "response.in_progress" => self.start(response, out),
            "response.output_item.added" => self.start_item(index, event, out),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.refusal |= text_field(event, "type") == "response.refusal.delta";
                let delta = BlockPiece::Text { text: text_field(event, "delta").to_owned() };
                out.push(ModelEvent::BlockDelta { index, delta });
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let delta = BlockPiece::Thinking { thinking: text_field(event, "delta").to_owned() };
                out.push(ModelEvent::BlockDelta { index, delta });
            }
            "response.function_call_arguments.delta" => {
                let delta = BlockPiece::Input { partial_json: text_field(event, "delta").to_owned() };
                out.push(ModelEvent::BlockDelta { index, delta });
            }
            "response.output_item.done" => self.finish_item(index, event, out),
            "response.completed" | "response.incomplete" => self.finish(response, out),
            "response.failed" => {
                let error = response.and_then(|response| response.get("error")).cloned().unwrap_or_default();
                out.push(ModelEvent::Failed {
                    kind: text_field(&error, "code").to_owned(),
                    message: text_field(&error, "message").to_owned(),
                });
            }
            "error" => {
                let error = event.get("error").filter(|error| error.is_object()).unwrap_or(event);
                let kind = [text_field(error, "code"), text_field(error, "type")];
                let kind = kind.into_iter().find(|kind| !kind.is_empty() && *kind != "error");
                out.push(ModelEvent::Failed {
                    kind: kind.unwrap_or_default().to_owned(),
                    message: text_field(error, "message").to_owned(),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// The answer begins; servers say so more than once.
    fn start(&mut self, response: Option<&Value>, out: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            let response = response.cloned().unwrap_or_default();
            out.push(ModelEvent::Started {
                id: text_field(&response, "id").to_owned(),
                model: text_field(&response, "model").to_owned(),
                usage: TokenUsage::default(),
            });
        }
    }

    /// An item begins.
    fn start_item(&mut self, index: usize, event: &Value, out: &mut Vec<ModelEvent>) {
        let item = event.get("item").cloned().unwrap_or_default();
        let block = match text_field(&item, "type") {
            "function_call" => {
                let name = self.names.long_name(text_field(&item, "name"));
                json!({ "type": "tool_use", "id": text_field(&item, "call_id"), "name": name, "input": {} })
            }
            "reasoning" => empty_prose("thinking"),
            _ => empty_prose("text"),
        };
        out.push(ModelEvent::BlockStarted { index, block });
        self.open.insert(index, item);
    }

    /// An item is complete; a call that was cut is dropped.
    fn finish_item(&mut self, index: usize, event: &Value, out: &mut Vec<ModelEvent>) {
        if !self.open.contains_key(&index) {
            self.start_item(index, event, out);
        }
        self.open.remove(&index);
        let item = event.get("item").cloned().unwrap_or_default();
        // An item that is not completed was cut by a limit.
        let was_cut = text_field(&item, "status") == "incomplete";
        let block = match text_field(&item, "type") {
            "function_call" if was_cut => return,
            "function_call" => {
                self.has_calls = true;
                let input = text_field(&item, "arguments");
                ModelBlock::Call(ModelCall {
                    id: text_field(&item, "call_id").to_owned(),
                    name: self.names.long_name(text_field(&item, "name")).to_owned(),
                    input: if input.trim().is_empty() { "{}".to_owned() } else { input.to_owned() },
                })
            }
            "message" => ModelBlock::Content(json!({ "type": "text", "text": message_text(&item) })),
            // Reasoning and whatever else the provider wants back unchanged.
            _ => ModelBlock::Content(json!({ "type": "reasoning_item", "item": item })),
        };
        out.push(ModelEvent::BlockFinished { index, block });
    }

    /// The answer is complete, or was cut by a limit.
    fn finish(&mut self, response: Option<&Value>, out: &mut Vec<ModelEvent>) {
        let response = response.cloned().unwrap_or_default();
        let why = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let reason = match why {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some(_) => StopReason::Refused,
            None if self.refusal => StopReason::Refused,
            None if self.has_calls => StopReason::ToolUse,
            None => StopReason::Done,
        };
        let count = |path: &str| response.pointer(path).and_then(Value::as_u64).unwrap_or_default();
        let cached = count("/usage/input_tokens_details/cached_tokens");
        out.push(reason.stopped(TokenUsage {
            input_tokens: count("/usage/input_tokens").saturating_sub(cached),
            output_tokens: count("/usage/output_tokens"),
            cache_read_input_tokens: cached,
            cache_creation_input_tokens: 0,
        }));
        out.push(ModelEvent::Ended);
    }
}

/// The text of a message, a refusal included.
fn message_text(item: &Value) -> String {
    let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
    let text = parts.map(|part| match text_field(part, "type") {
        "refusal" => text_field(part, "refusal"),
        _ => text_field(part, "text"),
    });
    text.collect()
}
