//! The Messages API: a content block for each call, with an end event of its own.

use super::{DecodedStreamEvent, PartialCallInput, str_field, u64_field};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_proto::{CallId, ToolCall};

/// The blocks of one message that are calls.
#[derive(Debug, Default)]
pub(super) struct AnthropicDecoder {
    open: BTreeMap<u64, PartialAnthropicCall>,
    /// Ended without any input. Whether that means no fields, or that the model was stopped before the first, only
    /// the reason why it stopped can tell.
    empty: Vec<ToolCall>,
}

/// A call whose input is still arriving.
#[derive(Debug)]
struct PartialAnthropicCall {
    call: ToolCall,
    input: PartialCallInput,
}

impl AnthropicDecoder {
    /// Handles one event of the stream.
    pub(super) fn decode_event(&mut self, event: &Value) -> DecodedStreamEvent {
        match str_field(event, "type") {
            Some("content_block_start") => self.start_block(event),
            Some("content_block_delta") => self.add_delta(event),
            Some("content_block_stop") => self.finish_block(event),
            Some("message_delta") => self.handle_stop_reason(event),
            Some("message_stop") => DecodedStreamEvent { finished: true, ..DecodedStreamEvent::default() },
            Some("error") => {
                let said = event.get("error").and_then(|error| str_field(error, "message"));
                DecodedStreamEvent::broken(format!(
                    "the provider failed: {}",
                    said.unwrap_or("it gave no reason")
                ))
            }
            // Pings, text, thinking, and event types of the future.
            _ => DecodedStreamEvent::default(),
        }
    }

    /// A content block begins; only `tool_use` is a call of ours.
    fn start_block(&mut self, event: &Value) -> DecodedStreamEvent {
        let (Some(place), Some(block)) = (u64_field(event, "index"), event.get("content_block")) else {
            return DecodedStreamEvent::broken("a content block starts nowhere");
        };
        // Server tools are run by the provider, not here.
        if str_field(block, "type") != Some("tool_use") {
            return DecodedStreamEvent::default();
        }
        let (Some(id), Some(name)) = (str_field(block, "id"), str_field(block, "name")) else {
            return DecodedStreamEvent::broken("a call has no id or no name");
        };
        let mut input = PartialCallInput::default();
        if let Some(given) =
            block.get("input").filter(|given| given.as_object().is_none_or(|map| !map.is_empty()))
        {
            input.add(&given.to_string());
        }
        let block = PartialAnthropicCall { call: ToolCall::new(id, name, ""), input };
        if self.open.insert(place, block).is_some() {
            return DecodedStreamEvent::broken("a content block starts twice");
        }
        DecodedStreamEvent::default()
    }

    /// A piece of a call's input.
    fn add_delta(&mut self, event: &Value) -> DecodedStreamEvent {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        if str_field(delta, "type") == Some("input_json_delta")
            && let Some(block) = u64_field(event, "index").and_then(|place| self.open.get_mut(&place))
        {
            block.input.add(str_field(delta, "partial_json").unwrap_or_default());
        }
        DecodedStreamEvent::default()
    }

    /// A content block is complete. A call without input waits for the stop reason, because it may have been cut.
    fn finish_block(&mut self, event: &Value) -> DecodedStreamEvent {
        let Some(mut block) = u64_field(event, "index").and_then(|place| self.open.remove(&place)) else {
            return DecodedStreamEvent::default();
        };
        let empty = block.input.0.trim().is_empty();
        block.call.input = block.input.take();
        if empty {
            self.empty.push(block.call);
            return DecodedStreamEvent::default();
        }
        DecodedStreamEvent { calls: vec![block.call], ..DecodedStreamEvent::default() }
    }

    /// The reason why the model stopped decides about calls without input.
    fn handle_stop_reason(&mut self, event: &Value) -> DecodedStreamEvent {
        let reason = event.get("delta").and_then(|delta| str_field(delta, "stop_reason"));
        match reason {
            Some("tool_use" | "end_turn" | "stop_sequence" | "pause_turn") => {
                DecodedStreamEvent { calls: std::mem::take(&mut self.empty), ..DecodedStreamEvent::default() }
            }
            _ => DecodedStreamEvent::default(),
        }
    }

    /// The calls that never became complete.
    pub(super) fn unfinished(&self) -> Vec<CallId> {
        let open = self.open.values().map(|block| &block.call);
        open.chain(&self.empty).map(|call| call.id.clone()).collect()
    }
}
