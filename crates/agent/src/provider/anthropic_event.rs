//! The Messages API: the body of a request and the events of its stream.
//!
//! Breakpoints for prompt caching (`cache_control`) are set at the system prompt, the tools and the last messages, so that
//! each request pays for what is new.

use super::model_event::{ModelBlock, ModelCall, ModelEvent, StopReason};
use super::model_request::{ModelRequest, ThinkingMode};
use crate::conversation::{MessageRole, block_type, text_field};
use crate::token_usage::TokenUsage;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate_proto::{DefinitionFormat, render_definitions};

/// How many of the last messages of the user get a cache breakpoint. With tools and system that makes the four that the
/// service accepts.
const MAX_CACHED_MESSAGES: usize = 2;

/// How many tokens an answer may have beside a budget for thinking, at least.
const MIN_ANSWER_TOKENS: u64 = 4_096;

/// The body of a request.
pub(super) fn build_anthropic_body(request: &ModelRequest) -> Value {
    let breakpoint = || json!({ "type": "ephemeral" });
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("max_tokens".into(), json!(request.max_tokens));
    body.insert("stream".into(), json!(true));
    if !request.system.trim().is_empty() {
        let system = json!([{ "type": "text", "text": request.system, "cache_control": breakpoint() }]);
        body.insert("system".into(), system);
    }
    let mut tools = render_definitions(&request.tools, DefinitionFormat::Anthropic);
    if let Some(Value::Object(last)) = tools.as_array_mut().and_then(|tools| tools.last_mut()) {
        last.insert("cache_control".into(), breakpoint());
        body.insert("tools".into(), tools);
    }
    body.insert("messages".into(), Value::Array(render_messages(request)));
    let thinking = match request.thinking {
        ThinkingMode::Unset => None,
        ThinkingMode::Disabled => Some(json!({ "type": "disabled" })),
        ThinkingMode::Adaptive => Some(json!({ "type": "adaptive" })),
        ThinkingMode::Budget(tokens) => {
            // The service wants room for the answer beside the thinking.
            let max_tokens = request.max_tokens.max(tokens.saturating_add(MIN_ANSWER_TOKENS));
            body.insert("max_tokens".into(), json!(max_tokens));
            Some(json!({ "type": "enabled", "budget_tokens": tokens }))
        }
    };
    if let Some(mut thinking) = thinking {
        let display = request.thinking_display.as_ref();
        let display = display.filter(|_| request.thinking != ThinkingMode::Disabled);
        if let (Some(display), Some(fields)) = (display, thinking.as_object_mut()) {
            fields.insert("display".into(), json!(display));
        }
        body.insert("thinking".into(), thinking);
    }
    let mut output = Map::new();
    if let Some(effort) = &request.effort {
        output.insert("effort".into(), json!(effort));
    }
    if let Some(total) = request.task_budget {
        output.insert("task_budget".into(), json!({ "type": "tokens", "total": total }));
    }
    if !output.is_empty() {
        body.insert("output_config".into(), Value::Object(output));
    }
    Value::Object(body)
}

/// The messages, with breakpoints for the prompt cache at the last ones of the user.
fn render_messages(request: &ModelRequest) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        // Thinking of another provider has no signature, and the service refuses it.
        let sendable = |block: &&Value| match block_type(block) {
            "thinking" => !text_field(block, "signature").is_empty(),
            "reasoning_item" => false,
            _ => true,
        };
        let content: Vec<Value> = message.content.iter().filter(sendable).cloned().collect();
        if !content.is_empty() {
            messages.push(json!({ "role": message.role, "content": content }));
        }
    }
    let users = messages.iter_mut().rev().filter(|message| message["role"] == json!(MessageRole::User));
    for message in users.take(MAX_CACHED_MESSAGES) {
        let last =
            message.get_mut("content").and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut());
        if let Some(Value::Object(last)) = last {
            last.insert("cache_control".into(), json!({ "type": "ephemeral" }));
        }
    }
    messages
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(super) struct AnthropicEventReader {
    /// The tokens, as far as the service has said.
    usage: TokenUsage,
    /// The blocks that are not complete, by their index.
    open: BTreeMap<usize, OpenAnthropicBlock>,
    /// Calls whose input is no whole object. Only the reason why the model stopped tells whether they were cut.
    doubtful: Vec<(usize, ModelCall)>,
}

/// A block that is not complete yet.
#[derive(Debug)]
struct OpenAnthropicBlock {
    block: Value,
    /// The input of a call, as text.
    input: String,
}

impl AnthropicEventReader {
    /// Reads one event. Large parts are moved out of it: a fast stream has many events.
    pub(super) fn read_event(&mut self, mut event: Value, out: &mut Vec<ModelEvent>) -> Result<(), String> {
        let index = event.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        match (text_field(&event, "type"), index) {
            ("message_start", _) => {
                let message = event.get("message").cloned().unwrap_or_default();
                self.add_usage(message.get("usage"));
                out.push(ModelEvent::Started {
                    id: text_field(&message, "id").to_owned(),
                    model: text_field(&message, "model").to_owned(),
                    usage: self.usage,
                });
            }
            ("content_block_start", Some(index)) => {
                let block = event.get("content_block").cloned().unwrap_or_default();
                out.push(ModelEvent::BlockStarted { index, block: block.clone() });
                self.open.insert(index, OpenAnthropicBlock { block, input: String::new() });
            }
            ("content_block_delta", Some(index)) => {
                let delta = event.get_mut("delta").map(Value::take).unwrap_or_default();
                let open = self.open.get_mut(&index).ok_or("a piece belongs to no block")?;
                open.add_delta(&delta);
                out.push(ModelEvent::BlockDelta { index, delta });
            }
            ("content_block_stop", Some(index)) => {
                let open = self.open.remove(&index).ok_or("the end of a block that never began")?;
                self.finish_block(index, open, out);
            }
            ("message_delta", _) => self.read_stop(&event, out),
            ("message_stop", _) => out.push(ModelEvent::Ended),
            ("error", _) => {
                let error = event.get("error").cloned().unwrap_or_default();
                out.push(ModelEvent::Failed {
                    kind: text_field(&error, "type").to_owned(),
                    message: text_field(&error, "message").to_owned(),
                });
            }
            // Pings, and events of later versions.
            _ => {}
        }
        Ok(())
    }

    /// A block is complete; a call without a whole input waits for the reason why the model stopped.
    fn finish_block(&mut self, index: usize, open: OpenAnthropicBlock, out: &mut Vec<ModelEvent>) {
        if block_type(&open.block) != "tool_use" {
            out.push(ModelEvent::BlockFinished { index, block: ModelBlock::Content(open.block) });
            return;
        }
        let input = match open.input.trim().is_empty() {
            // Some servers put the whole input into the first event.
            true => open.block.get("input").map_or_else(|| "{}".to_owned(), Value::to_string),
            false => open.input,
        };
        let call = ModelCall {
            id: text_field(&open.block, "id").to_owned(),
            name: text_field(&open.block, "name").to_owned(),
            input,
        };
        match serde_json::from_str::<Value>(&call.input) {
            Ok(Value::Object(map)) if !map.is_empty() => {
                out.push(ModelEvent::BlockFinished { index, block: ModelBlock::Call(call) });
            }
            Ok(_) | Err(_) => self.doubtful.push((index, call)),
        }
    }

    /// The reason why the model stopped, which settles the calls that wait for it.
    fn read_stop(&mut self, event: &Value, out: &mut Vec<ModelEvent>) {
        self.add_usage(event.get("usage"));
        let words = event.pointer("/delta/stop_reason").and_then(Value::as_str).unwrap_or("end_turn");
        let reason = match words {
            "tool_use" => StopReason::ToolUse,
            "max_tokens" => StopReason::MaxTokens,
            "model_context_window_exceeded" => StopReason::ContextFull,
            "pause_turn" => StopReason::Pause,
            "refusal" => StopReason::Refused,
            _ => StopReason::Done,
        };
        let was_cut = matches!(reason, StopReason::MaxTokens | StopReason::ContextFull | StopReason::Refused);
        for (index, call) in std::mem::take(&mut self.doubtful) {
            if !was_cut {
                out.push(ModelEvent::BlockFinished { index, block: ModelBlock::Call(call) });
            }
        }
        out.push(ModelEvent::Stopped { reason, words: words.to_owned(), usage: self.usage });
    }

    /// Counts in an event are totals so far, and absent where they did not change.
    fn add_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let update = |count: &mut u64, key: &str| {
            if let Some(value) = usage.get(key).and_then(Value::as_u64) {
                *count = value;
            }
        };
        update(&mut self.usage.input_tokens, "input_tokens");
        update(&mut self.usage.output_tokens, "output_tokens");
        update(&mut self.usage.cache_creation_input_tokens, "cache_creation_input_tokens");
        update(&mut self.usage.cache_read_input_tokens, "cache_read_input_tokens");
    }
}

impl OpenAnthropicBlock {
    /// Adds a piece to the field that it belongs to.
    fn add_delta(&mut self, delta: &Value) {
        let key = match text_field(delta, "type") {
            "text_delta" => "text",
            "thinking_delta" => "thinking",
            "signature_delta" => "signature",
            "input_json_delta" => {
                self.input.push_str(text_field(delta, "partial_json"));
                return;
            }
            "citations_delta" => {
                if let (Some(block), Some(citation)) = (self.block.as_object_mut(), delta.get("citation")) {
                    let list = block.entry("citations").or_insert_with(|| json!([]));
                    if let Some(list) = list.as_array_mut() {
                        list.push(citation.clone());
                    }
                }
                return;
            }
            _ => return,
        };
        if let Some(block) = self.block.as_object_mut() {
            let piece = text_field(delta, key);
            match block.get_mut(key) {
                Some(Value::String(text)) => text.push_str(piece),
                _ => drop(block.insert(key.to_owned(), json!(piece))),
            }
        }
    }
}
