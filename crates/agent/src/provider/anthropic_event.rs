//! The Messages API: the body of a request and the events of its stream.
//!
//! Breakpoints for prompt caching (`cache_control`) are set at the system prompt, the tools and the last messages, so that
//! each request pays for what is new.

use super::model_client::parse_event;
use super::model_event::{BlockPiece, ModelBlock, ModelCall, ModelEvent, StopReason};
use super::model_request::{ModelRequest, ThinkingMode};
use crate::conversation::{MessageRole, block_type, text_field};
use crate::token_usage::TokenUsage;
use serde::Deserialize;
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
    /// The block as it began.
    block: Value,
    /// What was added to its text.
    text: String,
    /// What was added to its thinking.
    thinking: String,
    /// What was added to its signature.
    signature: String,
    /// The input of a call, as text.
    input: String,
}

/// An event that adds to a block, in the form that nearly every one has: no field but these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: usize,
    #[serde(borrow)]
    delta: DeltaFields<'a>,
}

/// A piece of a block, before its type is known to fit its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaFields<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
}

impl DeltaFields<'_> {
    /// The piece; none if it has other fields than its type says.
    fn into_piece(self) -> Option<BlockPiece> {
        Some(match (self.kind, self.text, self.thinking, self.signature, self.partial_json) {
            ("text_delta", Some(text), None, None, None) => BlockPiece::Text { text },
            ("thinking_delta", None, Some(thinking), None, None) => BlockPiece::Thinking { thinking },
            ("signature_delta", None, None, Some(signature), None) => BlockPiece::Signature { signature },
            ("input_json_delta", None, None, None, Some(partial_json)) => BlockPiece::Input { partial_json },
            _ => return None,
        })
    }
}

impl AnthropicEventReader {
    /// Reads the data of one event.
    pub(super) fn read_data(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), String> {
        // Most of a stream are pieces of blocks; what does not have exactly their form is read as a tree of values, which
        // costs several times as much and loses nothing.
        if let Ok(event) = serde_json::from_str::<DeltaEvent<'_>>(data)
            && event.kind == "content_block_delta"
            && let Some(piece) = event.delta.into_piece()
        {
            return self.add_piece(event.index, piece, out);
        }
        self.read_event(parse_event(data)?, out)
    }

    /// Adds a piece to the block that it belongs to.
    fn add_piece(
        &mut self,
        index: usize,
        delta: BlockPiece,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let open = self.open.get_mut(&index).ok_or("a piece belongs to no block")?;
        open.add_piece(&delta);
        out.push(ModelEvent::BlockDelta { index, delta });
        Ok(())
    }

    /// Reads one event. Large parts are moved out of it.
    fn read_event(&mut self, mut event: Value, out: &mut Vec<ModelEvent>) -> Result<(), String> {
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
                self.open.insert(index, OpenAnthropicBlock::new(block));
            }
            ("content_block_delta", Some(index)) => {
                let delta = event.get_mut("delta").map(Value::take).unwrap_or_default();
                self.add_piece(index, BlockPiece::Other(delta), out)?;
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
            out.push(ModelEvent::BlockFinished { index, block: ModelBlock::Content(open.into_block()) });
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
    /// A block of which nothing but its start has come.
    fn new(block: Value) -> Self {
        Self {
            block,
            text: String::new(),
            thinking: String::new(),
            signature: String::new(),
            input: String::new(),
        }
    }

    /// Adds a piece to the field that it belongs to.
    fn add_piece(&mut self, piece: &BlockPiece) {
        match piece {
            BlockPiece::Text { text } => self.text.push_str(text),
            BlockPiece::Thinking { thinking } => self.thinking.push_str(thinking),
            BlockPiece::Signature { signature } => self.signature.push_str(signature),
            BlockPiece::Input { partial_json } => self.input.push_str(partial_json),
            BlockPiece::Other(delta) => self.add_delta(delta),
        }
    }

    /// Adds a piece of an unusual form.
    fn add_delta(&mut self, delta: &Value) {
        match text_field(delta, "type") {
            "text_delta" => self.text.push_str(text_field(delta, "text")),
            "thinking_delta" => self.thinking.push_str(text_field(delta, "thinking")),
            "signature_delta" => self.signature.push_str(text_field(delta, "signature")),
            "input_json_delta" => self.input.push_str(text_field(delta, "partial_json")),
            "citations_delta" => {
                if let (Some(block), Some(citation)) = (self.block.as_object_mut(), delta.get("citation")) {
                    let list = block.entry("citations").or_insert_with(|| json!([]));
                    if let Some(list) = list.as_array_mut() {
                        list.push(citation.clone());
                    }
                }
            }
            _ => {}
        }
    }

    /// The block with everything that was added to it.
    fn into_block(self) -> Value {
        let mut block = self.block;
        if let Some(fields) = block.as_object_mut() {
            for (key, more) in
                [("text", self.text), ("thinking", self.thinking), ("signature", self.signature)]
            {
                match fields.get_mut(key) {
                    _ if more.is_empty() => {}
                    Some(Value::String(text)) => text.push_str(&more),
                    _ => drop(fields.insert(key.to_owned(), Value::String(more))),
                }
            }
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of an answer whose text comes by these deltas.
    fn read_deltas(deltas: &[&str]) -> Result<Vec<ModelEvent>, String> {
        let mut reader = AnthropicEventReader::default();
        let mut events = Vec::new();
        let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"<"}}"#;
        let data = [start].into_iter().chain(deltas.iter().copied());
        for data in data.chain([r#"{"type":"content_block_stop","index":0}"#]) {
            reader.read_data(data, &mut events)?;
        }
        Ok(events)
    }

    #[test]
    fn a_piece_of_the_usual_form_and_one_with_more_fields_add_the_same_and_reach_hosts_whole() {
        let usual =
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\n\"é"}}"#;
        let reordered =
            r#"{ "delta": {"text":"b","type":"text_delta"}, "index":0, "type":"content_block_delta" }"#;
        let more = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"c","later":[1]},"x":2}"#;
        let events = read_deltas(&[usual, reordered, more]).unwrap();
        let sent: Vec<Value> = events
            .iter()
            .filter_map(ModelEvent::to_messages_event)
            .map(|event| serde_json::to_value(event).unwrap())
            .collect();
        assert_eq!(sent[1], serde_json::from_str::<Value>(usual).unwrap());
        assert_eq!(sent[2], serde_json::from_str::<Value>(reordered).unwrap());
        assert_eq!(sent[3]["delta"], json!({ "type": "text_delta", "text": "c", "later": [1] }));
        let texts: Vec<&str> = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::BlockDelta { delta, .. } => delta.text(),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["a\n\"é", "b", "c"]);
        let block = json!({ "type": "text", "text": "<a\n\"ébc" });
        assert_eq!(
            events.last(),
            Some(&ModelEvent::BlockFinished { index: 0, block: ModelBlock::Content(block) })
        );
    }

    #[test]
    fn a_piece_of_no_block_and_data_that_is_no_json_are_errors() {
        let stray = r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}"#;
        assert_eq!(read_deltas(&[stray]), Err("a piece belongs to no block".to_owned()));
        assert!(read_deltas(&["{\"type\":\"content_block_delta\""]).is_err());
    }
}
