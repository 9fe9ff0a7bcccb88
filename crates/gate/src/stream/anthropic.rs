//! The Messages API: a block of content for each call, ended by its own mark.

use super::{Heard, PartialCallInput, index, text};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_proto::{CallId, ToolCall};

/// The blocks of one message that are calls.
#[derive(Debug, Default)]
pub(super) struct AnthropicDecoder {
    open: BTreeMap<u64, Block>,
    /// Ended without any input. Whether that means no fields, or that the model was stopped before the first, only
    /// the reason why it stopped can tell.
    empty: Vec<ToolCall>,
}

#[derive(Debug)]
struct Block {
    call: ToolCall,
    input: PartialCallInput,
}

impl AnthropicDecoder {
    pub(super) fn hear(&mut self, event: &Value) -> Heard {
        match text(event, "type") {
            Some("content_block_start") => self.start(event),
            Some("content_block_delta") => self.delta(event),
            Some("content_block_stop") => self.stop(event),
            Some("message_delta") => self.handle_stop_reason(event),
            Some("message_stop") => Heard { finished: true, ..Heard::default() },
            Some("error") => {
                let said = event.get("error").and_then(|error| text(error, "message"));
                Heard::broken(format!("the provider failed: {}", said.unwrap_or("it gave no reason")))
            }
            // Pings, text, thinking, and whatever comes to be.
            _ => Heard::default(),
        }
    }

    fn start(&mut self, event: &Value) -> Heard {
        let (Some(place), Some(block)) = (index(event, "index"), event.get("content_block")) else {
            return Heard::broken("a content block starts nowhere");
        };
        // Tools that the provider runs itself are none of ours.
        if text(block, "type") != Some("tool_use") {
            return Heard::default();
        }
        let (Some(id), Some(name)) = (text(block, "id"), text(block, "name")) else {
            return Heard::broken("a call has no id or no name");
        };
        let mut input = PartialCallInput::default();
        if let Some(given) =
            block.get("input").filter(|given| given.as_object().is_none_or(|map| !map.is_empty()))
        {
            input.add(&given.to_string());
        }
        let block = Block { call: ToolCall::new(id, name, ""), input };
        if self.open.insert(place, block).is_some() {
            return Heard::broken("a content block starts twice");
        }
        Heard::default()
    }

    fn delta(&mut self, event: &Value) -> Heard {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        if text(delta, "type") == Some("input_json_delta")
            && let Some(block) = index(event, "index").and_then(|place| self.open.get_mut(&place))
        {
            block.input.add(text(delta, "partial_json").unwrap_or_default());
        }
        Heard::default()
    }

    fn stop(&mut self, event: &Value) -> Heard {
        let Some(mut block) = index(event, "index").and_then(|place| self.open.remove(&place)) else {
            return Heard::default();
        };
        let empty = block.input.0.trim().is_empty();
        block.call.input = block.input.take();
        if empty {
            self.empty.push(block.call);
            return Heard::default();
        }
        Heard { calls: vec![block.call], ..Heard::default() }
    }

    fn handle_stop_reason(&mut self, event: &Value) -> Heard {
        let reason = event.get("delta").and_then(|delta| text(delta, "stop_reason"));
        match reason {
            Some("tool_use" | "end_turn" | "stop_sequence" | "pause_turn") => {
                Heard { calls: std::mem::take(&mut self.empty), ..Heard::default() }
            }
            _ => Heard::default(),
        }
    }

    pub(super) fn unfinished(&self) -> Vec<CallId> {
        let open = self.open.values().map(|block| &block.call);
        open.chain(&self.empty).map(|call| call.id.clone()).collect()
    }
}
