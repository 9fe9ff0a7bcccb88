//! OpenAI chat completions, as many servers speak it.
//!
//! Servers are lax in many ways: calls without an id or an index, arguments as an object or in one piece, thinking in
//! `reasoning_content`, no usage, no `[DONE]`, the reason `stop` although there are calls.

use super::model_event::{BlockPiece, ModelBlock, ModelCall, ModelEvent, StopReason};
use super::model_request::{ModelRequest, ThinkingMode};
use super::short_names::{ShortNames, shorten_name};
use crate::conversation::{ConversationMessage, MessageRole, block_text, block_type, text_field};
use crate::token_usage::TokenUsage;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolgate_proto::{DefinitionFormat, render_definitions};

/// The body of a request.
pub(super) fn build_chat_body(request: &ModelRequest) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message.role {
            MessageRole::User => push_user_messages(message, &mut messages),
            MessageRole::Assistant => messages.extend(render_assistant(message)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("messages".into(), Value::Array(messages));
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    if !request.tools.is_empty() {
        body.insert("tools".into(), shortened_tools(request));
    }
    if let Some(effort) = &request.effort {
        body.insert("reasoning_effort".into(), json!(effort));
    } else if request.thinking == ThinkingMode::Disabled {
        body.insert("reasoning_effort".into(), json!("minimal"));
    }
    Value::Object(body)
}

/// The tools, with names that fit.
fn shortened_tools(request: &ModelRequest) -> Value {
    let mut tools = render_definitions(&request.tools, DefinitionFormat::Openai);
    for tool in tools.as_array_mut().into_iter().flatten() {
        if let Some(name) = tool.pointer_mut("/function/name") {
            *name = json!(shorten_name(name.as_str().unwrap_or_default()));
        }
    }
    tools
}

/// Results first, each a message of its own, then the rest.
fn push_user_messages(message: &ConversationMessage, out: &mut Vec<Value>) {
    let mut parts: Vec<Value> = Vec::new();
    for block in &message.content {
        match block_type(block) {
            "tool_result" => out.push(json!({
                "role": "tool",
                "tool_call_id": text_field(block, "tool_use_id"),
                "content": result_text(block),
            })),
            "image" => parts.extend(
                image_url(block).map(|url| json!({ "type": "image_url", "image_url": { "url": url } })),
            ),
            _ => parts.extend(block_text(block).map(|text| json!({ "type": "text", "text": text }))),
        }
    }
    match parts.as_slice() {
        [] => {}
        [only] if only.get("text").is_some() => {
            out.push(json!({ "role": "user", "content": text_field(only, "text") }));
        }
        _ => out.push(json!({ "role": "user", "content": parts })),
    }
}

/// A message of the model; none if nothing of it can be sent.
fn render_assistant(message: &ConversationMessage) -> Option<Value> {
    let text = message.text();
    let calls: Vec<Value> = message
        .content
        .iter()
        .filter(|block| block_type(block) == "tool_use")
        .map(|block| {
            json!({
                "id": text_field(block, "id"),
                "type": "function",
                "function": {
                    "name": shorten_name(text_field(block, "name")),
                    "arguments": block.get("input").map(Value::to_string).unwrap_or_default(),
                },
            })
        })
        .collect();
    match (text.is_empty(), calls.is_empty()) {
        (true, true) => None,
        (false, true) => Some(json!({ "role": "assistant", "content": text })),
        (is_silent, false) => {
            let content = if is_silent { Value::Null } else { json!(text) };
            Some(json!({ "role": "assistant", "content": content, "tool_calls": calls }))
        }
    }
}

/// The text of a result. The protocol has no error flag, so an error says so in its first word.
pub(super) fn result_text(block: &Value) -> String {
    let text = match block.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().map(|part| match block_text(part) {
                Some(text) => text.to_owned(),
                None => format!("[{} left out]", block_type(part)),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    if is_error && !text.starts_with("Error") { format!("Error: {text}") } else { text }
}

/// An image as a URL.
pub(super) fn image_url(block: &Value) -> Option<String> {
    let source = block.get("source")?;
    match text_field(source, "type") {
        "base64" => {
            Some(format!("data:{};base64,{}", text_field(source, "media_type"), text_field(source, "data")))
        }
        "url" => Some(text_field(source, "url").to_owned()),
        _ => None,
    }
}

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(super) struct ChatChunkReader {
    /// The names of tools, as they were sent.
    names: ShortNames,
    /// Whether a chunk was read.
    started: bool,
    /// The place of the next block.
    next_index: usize,
    /// The open block of text or thinking: its place, its key, what it holds.
    prose: Option<(usize, &'static str, String)>,
    /// Open calls by the provider's index.
    calls: BTreeMap<u64, OpenChatCall>,
    /// The call that got the last piece.
    last_call: Option<u64>,
    /// Why the model stopped, in the provider's word.
    finish: Option<String>,
    /// Whether it refused.
    refusal: bool,
    /// Whether it called a tool.
    has_calls: bool,
    /// The tokens, once they are known.
    usage: TokenUsage,
    /// Whether the end was reported.
    ended: bool,
}

/// A call that is not complete yet.
#[derive(Debug)]
struct OpenChatCall {
    index: usize,
    /// Its id; empty if the server gave none.
    id: String,
    /// The tool.
    name: String,
    /// The start of its input, as JSON text.
    input: String,
}

impl ChatChunkReader {
    /// For an answer to a request with these tools.
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self { names: ShortNames::new(&request.tools), ..Self::default() }
    }

    /// Reads one chunk.
    pub(super) fn read_chunk(&mut self, chunk: &Value, out: &mut Vec<ModelEvent>) -> Result<(), String> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            let message = error.as_str().unwrap_or_else(|| text_field(error, "message"));
            out.push(ModelEvent::Failed {
                kind: text_field(error, "type").to_owned(),
                message: message.to_owned(),
            });
            return Ok(());
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_chat_usage(usage);
        }
        if !std::mem::replace(&mut self.started, true) {
            out.push(ModelEvent::Started {
                id: text_field(chunk, "id").to_owned(),
                model: text_field(chunk, "model").to_owned(),
                usage: TokenUsage::default(),
            });
        }
        let Some(choice) = chunk.pointer("/choices/0") else { return Ok(()) };
        // A server that does not stream puts the whole message into one chunk.
        let delta = choice.get("delta").filter(|delta| delta.is_object()).or_else(|| choice.get("message"));
        if let Some(delta) = delta {
            self.read_delta(delta, out);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(reason.to_owned());
            self.close_blocks(reason == "length", out);
        }
        Ok(())
    }

    /// Reads text, thinking, a refusal and pieces of calls, in this order.
    fn read_delta(&mut self, delta: &Value, out: &mut Vec<ModelEvent>) {
        for (key, kind) in [("reasoning_content", "thinking"), ("reasoning", "thinking"), ("content", "text")]
        {
            let piece = text_field(delta, key);
            if !piece.is_empty() {
                self.add_prose(kind, piece, out);
            }
        }
        let refusal = text_field(delta, "refusal");
        if !refusal.is_empty() {
            self.refusal = true;
            self.add_prose("text", refusal, out);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.add_call_piece(call, out);
        }
    }

    /// Adds text or thinking, in a block of its own where the kind changes.
    fn add_prose(&mut self, kind: &'static str, piece: &str, out: &mut Vec<ModelEvent>) {
        if self.prose.as_ref().is_some_and(|(_, open, _)| *open != kind) {
            self.close_prose(out);
        }
        let index = match &self.prose {
            Some((index, ..)) => *index,
            None => {
                let index = self.take_index();
                out.push(ModelEvent::BlockStarted { index, block: empty_prose(kind) });
                self.prose = Some((index, kind, String::new()));
                index
            }
        };
        if let Some((_, _, text)) = &mut self.prose {
            text.push_str(piece);
        }
        let delta = match kind {
            "thinking" => BlockPiece::Thinking { thinking: piece.to_owned() },
            _ => BlockPiece::Text { text: piece.to_owned() },
        };
        out.push(ModelEvent::BlockDelta { index, delta });
    }

    /// Adds a piece of a call, by its index or by guessing where servers leave it out.
    fn add_call_piece(&mut self, piece: &Value, out: &mut Vec<ModelEvent>) {
        self.close_prose(out);
        let function = piece.get("function").cloned().unwrap_or_default();
        let (id, name) = (text_field(piece, "id"), text_field(&function, "name"));
        let key = match piece.get("index").and_then(Value::as_u64) {
            Some(key) => key,
            // Without an index a name begins another call, and a piece without one continues the last.
            None if name.is_empty() => self.last_call.unwrap_or_default(),
            None => self.last_call.map_or(0, |last| last + 1),
        };
        if !self.calls.contains_key(&key) {
            self.close_complete_calls(out);
            let index = self.take_index();
            let id = if id.is_empty() {
                format!("call_{}", toolgate_call_suffix(index, name))
            } else {
                id.to_owned()
            };
            let name = self.names.long_name(name).to_owned();
            let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
            out.push(ModelEvent::BlockStarted { index, block });
            self.calls.insert(key, OpenChatCall { index, id, name, input: String::new() });
            self.has_calls = true;
        }
        self.last_call = Some(key);
        let text = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        if let Some(open) = self.calls.get_mut(&key).filter(|_| !text.is_empty()) {
            open.input.push_str(&text);
            let delta = BlockPiece::Input { partial_json: text };
            out.push(ModelEvent::BlockDelta { index: open.index, delta });
        }
    }

    /// The calls whose input is whole: when another one begins, nothing is added to them any more.
    fn close_complete_calls(&mut self, out: &mut Vec<ModelEvent>) {
        let complete: Vec<u64> =
            self.calls.iter().filter(|(_, call)| call.is_complete()).map(|(key, _)| *key).collect();
        for key in complete {
            out.extend(self.calls.remove(&key).map(OpenChatCall::finish));
        }
    }

    /// Closes everything. Of an answer that was cut, a call that is not whole is dropped.
    fn close_blocks(&mut self, was_cut: bool, out: &mut Vec<ModelEvent>) {
        self.close_prose(out);
        for (_, call) in std::mem::take(&mut self.calls) {
            if !was_cut || call.is_complete() {
                out.push(call.finish());
            }
        }
    }

    /// Ends the open block of text or thinking.
    fn close_prose(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some((index, kind, text)) = self.prose.take() {
            let mut block = empty_prose(kind);
            if let Some(block) = block.as_object_mut() {
                block.insert(kind.to_owned(), json!(text));
            }
            out.push(ModelEvent::BlockFinished { index, block: ModelBlock::Content(block) });
        }
    }

    /// The stream is over.
    pub(super) fn end(&mut self, out: &mut Vec<ModelEvent>) {
        let Some(finish) = self.finish.take().filter(|_| !self.ended) else { return };
        self.ended = true;
        let reason = match finish.as_str() {
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refused,
            _ if self.refusal => StopReason::Refused,
            // Some servers say `stop` although there are calls.
            _ if self.has_calls => StopReason::ToolUse,
            _ => StopReason::Done,
        };
        out.push(reason.stopped(self.usage));
        out.push(ModelEvent::Ended);
    }

    /// The place of the next block.
    fn take_index(&mut self) -> usize {
        self.next_index += 1;
        self.next_index - 1
    }
}

impl OpenChatCall {
    /// Whether the input is one whole object.
    fn is_complete(&self) -> bool {
        matches!(serde_json::from_str::<Value>(&self.input), Ok(Value::Object(_)))
    }

    /// The event that the call is complete.
    fn finish(self) -> ModelEvent {
        let input = if self.input.trim().is_empty() { "{}".to_owned() } else { self.input };
        let call = ModelCall { id: self.id, name: self.name, input };
        ModelEvent::BlockFinished { index: self.index, block: ModelBlock::Call(call) }
    }
}

/// A block of text or thinking with nothing in it.
pub(super) fn empty_prose(kind: &str) -> Value {
    match kind {
        "thinking" => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        _ => json!({ "type": "text", "text": "" }),
    }
}

/// An id for a call that came without one. It must differ from those of earlier answers.
fn toolgate_call_suffix(index: usize, name: &str) -> String {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let number = CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{number:04}_{index}_{name}")
}

/// The tokens, of which cached ones are counted apart.
fn read_chat_usage(usage: &Value) -> TokenUsage {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let cached = count("/prompt_tokens_details/cached_tokens");
    TokenUsage {
        input_tokens: count("/prompt_tokens").saturating_sub(cached),
        output_tokens: count("/completion_tokens"),
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: 0,
    }
}
