//! Calls out of a model's stream, each the moment its input is complete.
//!
//! A [`CallAssembler`] takes the bytes of a provider's answer as they come, cut anywhere, and gives [`ToolCall`]s.
//! Handed to a [`CallBatch`](crate::CallBatch) they start while the model is still writing the next one.
//!
//! A call is given only when nothing can be added to it any more.
//! The input is not judged here: text that is not JSON is passed on as it is, and the gate refuses it with
//! a message that the model understands.
//! A stream that ends without its end event, or that contradicts itself, is truncated: from there on no call is
//! given, because the end of a call that looks complete may be missing.
//!
//! There is no I/O here, and no clock.
//!
//! ```
//! use toolgate_gate::{CallAssembler, ProviderApi};
//!
//! let mut assembler = CallAssembler::new(ProviderApi::OpenAiChat);
//! let start = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"ls","arguments":"{\"path\""}}]}}]}"#;
//! let end = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":\".\"}"}}]},"finish_reason":"tool_calls"}]}"#;
//! assert!(assembler.push(format!("{start}\n\n").as_bytes()).is_empty());
//! let calls = assembler.push(format!("{end}\n\ndata: [DONE]\n\n").as_bytes());
//! assert_eq!(calls[0].input, r#"{"path":"."}"#);
//! assert!(assembler.end().is_ok());
//! ```

mod anthropic;
mod chat;
mod responses;
mod sse;

pub use sse::{SseEventTooLong, SseReader};

use crate::call_options::{CallOptions, CallOutcome};
use crate::gate::Gate;
use crate::session::Session;
use futures_util::{Stream, StreamExt};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use toolgate_proto::{CallId, ToolCall, json};

/// The API of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderApi {
    /// The Messages API: content blocks.
    Anthropic,
    /// Chat Completions, as many servers speak it.
    OpenAiChat,
    /// The Responses API.
    OpenAiResponses,
}

/// Puts calls together from a stream.
#[derive(Debug)]
pub struct CallAssembler {
    sse: sse::SseReader,
    reader: ProviderDecoder,
    state: AssemblerState,
}

/// Why a stream is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallStreamError {
    /// What happened, lower case, without a full stop.
    pub reason: String,
    /// Calls that were begun and never given.
    pub unfinished: Vec<CallId>,
}

impl fmt::Display for CallStreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if let Some(first) = self.unfinished.first() {
            match self.unfinished.len() {
                1 => write!(f, "; the call `{first}` was not complete")?,
                count => write!(f, "; {count} calls were not complete, the first is `{first}`")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for CallStreamError {}

/// The decoder of one provider's events.
#[derive(Debug)]
enum ProviderDecoder {
    Anthropic(anthropic::AnthropicDecoder),
    Chat(chat::ChatDecoder),
    Responses(responses::ResponsesDecoder),
}

/// Whether the stream is open, finished or broken.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AssemblerState {
    Open,
    /// The end event was received.
    Finished,
    /// An error ended the stream: no more calls.
    Broken(String),
}

/// What one event means.
#[derive(Debug, Default)]
struct DecodedStreamEvent {
    calls: Vec<ToolCall>,
    /// The end event was received.
    finished: bool,
    /// The stream is broken.
    broken: Option<String>,
}

impl DecodedStreamEvent {
    /// An event that ends the stream with an error.
    fn broken(reason: impl Into<String>) -> Self {
        Self { broken: Some(reason.into()), ..Self::default() }
    }
}

impl CallAssembler {
    /// For the stream of one answer.
    pub fn new(provider: ProviderApi) -> Self {
        let reader = match provider {
            ProviderApi::Anthropic => ProviderDecoder::Anthropic(anthropic::AnthropicDecoder::default()),
            ProviderApi::OpenAiChat => ProviderDecoder::Chat(chat::ChatDecoder::default()),
            ProviderApi::OpenAiResponses => {
                ProviderDecoder::Responses(responses::ResponsesDecoder::default())
            }
        };
        Self { sse: sse::SseReader::default(), reader, state: AssemblerState::Open }
    }

    /// Takes more bytes of the stream, and gives the calls that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<ToolCall> {
        let mut sse = std::mem::take(&mut self.sse);
        let mut calls = Vec::new();
        let read = sse.push(bytes, |data| calls.append(&mut self.push_event(data)));
        self.sse = sse;
        if read.is_err() && self.state == AssemblerState::Open {
            self.state = AssemblerState::Broken("an event of the stream never ends".to_owned());
        }
        calls
    }

    /// Takes the data of one event, for those who read server-sent events themselves.
    pub fn push_event(&mut self, data: &str) -> Vec<ToolCall> {
        if self.state != AssemblerState::Open {
            return Vec::new();
        }
        if data.trim() == "[DONE]" {
            // Servers send this after the end event. Without one it is only an end.
            return Vec::new();
        }
        let decoded = match serde_json::from_str::<Value>(data) {
            Ok(event) => match &mut self.reader {
                ProviderDecoder::Anthropic(blocks) => blocks.decode_event(&event),
                ProviderDecoder::Chat(deltas) => deltas.decode_event(&event),
                ProviderDecoder::Responses(items) => items.decode_event(&event),
            },
            Err(_) => DecodedStreamEvent::broken("an event of the stream is not valid JSON"),
        };
        if let Some(reason) = decoded.broken {
            self.state = AssemblerState::Broken(reason);
        } else if decoded.finished {
            self.state = AssemblerState::Finished;
        }
        decoded.calls
    }

    /// Whether the end event was received.
    pub fn is_finished(&self) -> bool {
        self.state == AssemblerState::Finished
    }

    /// The stream is over. An error if it was truncated: the calls given before stand, and there are no more.
    pub fn end(&self) -> Result<(), CallStreamError> {
        let unfinished = match &self.reader {
            ProviderDecoder::Anthropic(blocks) => blocks.unfinished(),
            ProviderDecoder::Chat(deltas) => deltas.unfinished(),
            ProviderDecoder::Responses(items) => items.unfinished(),
        };
        let reason = match &self.state {
            AssemblerState::Finished if unfinished.is_empty() => return Ok(()),
            AssemblerState::Finished => "the answer was cut short by the provider".to_owned(),
            AssemblerState::Open => "the stream ended before the answer did".to_owned(),
            AssemblerState::Broken(reason) => reason.clone(),
        };
        Err(CallStreamError { reason, unfinished })
    }
}

/// The outcome of the calls of one stream.
#[derive(Debug)]
#[non_exhaustive]
pub struct StreamedCalls {
    /// Every call that was given, in order.
    pub calls: Vec<CallOutcome>,
    /// Whether the stream was complete.
    pub ended: Result<(), CallStreamError>,
}

impl Gate {
    /// Runs the calls of a model's stream as a batch, each as soon as it is complete, while the stream goes on.
    pub async fn call_stream<B, E>(
        self: &Arc<Self>,
        session: &Session,
        provider: ProviderApi,
        bytes: impl Stream<Item = Result<B, E>> + Send,
        limits: CallOptions,
    ) -> StreamedCalls
    where
        B: AsRef<[u8]>,
        E: fmt::Display,
    {
        let mut bytes = std::pin::pin!(bytes);
        let mut assembler = CallAssembler::new(provider);
        let mut batch = self.batch(session, limits.clone());
        loop {
            let chunk = tokio::select! {
                biased;
                () = limits.cancel.cancelled() => break,
                chunk = bytes.next() => chunk,
            };
            match chunk {
                Some(Ok(chunk)) => {
                    for call in assembler.push(chunk.as_ref()) {
                        batch.push(call);
                    }
                }
                Some(Err(error)) => {
                    if assembler.state == AssemblerState::Open {
                        assembler.state = AssemblerState::Broken(format!("the stream broke off: {error}"));
                    }
                    break;
                }
                None => break,
            }
        }
        let ended = assembler.end();
        StreamedCalls { calls: batch.finish().await, ended }
    }
}

/// The input of a call while it is received. What exceeds the limit of a call is dropped: the gate refuses it by its length.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct PartialCallInput(String);

impl PartialCallInput {
    /// Appends a piece. Beyond the limit of an input nothing is kept; the gate refuses what is that long.
    fn add(&mut self, text: &str) {
        if self.0.len() <= json::JsonLimits::CALL.bytes {
            self.0.push_str(text);
        }
    }

    /// One JSON object, whole, with something in it.
    fn is_complete_object(&self) -> bool {
        self.0.trim_end().ends_with('}')
            && matches!(serde_json::from_str::<Value>(&self.0), Ok(Value::Object(map)) if !map.is_empty())
    }

    /// The input to call with: no text at all stands for no fields at all.
    fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.0);
        if text.trim().is_empty() { "{}".to_owned() } else { text }
    }
}

/// A field as text.
fn str_field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// A field as a number.
fn u64_field(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}
