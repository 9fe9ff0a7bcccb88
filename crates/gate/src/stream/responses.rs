//! The Responses API: an item for each call, which is repeated whole when it is done.

use super::{DecodedStreamEvent, PartialCallInput, str_field, u64_field};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_proto::{CallId, ToolCall};

/// The items of one answer that are calls.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    open: BTreeMap<u64, PartialResponsesCall>,
}

/// A call whose arguments are still arriving.
#[derive(Debug, Default)]
struct PartialResponsesCall {
    id: String,
    input: PartialCallInput,
}

impl ResponsesDecoder {
    /// Handles one event of the stream.
    pub(super) fn decode_event(&mut self, event: &Value) -> DecodedStreamEvent {
        match str_field(event, "type") {
            Some("response.output_item.added") => self.add_item(event),
            Some("response.function_call_arguments.delta") => {
                if let Some(item) =
                    u64_field(event, "output_index").and_then(|place| self.open.get_mut(&place))
                {
                    item.input.add(str_field(event, "delta").unwrap_or_default());
                }
                DecodedStreamEvent::default()
            }
            Some("response.output_item.done") => self.finish_item(event),
            Some("response.completed" | "response.incomplete") => {
                DecodedStreamEvent { finished: true, ..DecodedStreamEvent::default() }
            }
            Some("response.failed") => {
                let said = event.pointer("/response/error/message").and_then(Value::as_str);
                DecodedStreamEvent::broken(format!(
                    "the provider failed: {}",
                    said.unwrap_or("it gave no reason")
                ))
            }
            Some("error") => {
                let said = str_field(event, "message").unwrap_or("it gave no reason");
                DecodedStreamEvent::broken(format!("the provider failed: {said}"))
            }
            _ => DecodedStreamEvent::default(),
        }
    }

    /// A call begins.
    fn add_item(&mut self, event: &Value) -> DecodedStreamEvent {
        let Some((place, item)) = call_item(event) else { return DecodedStreamEvent::default() };
        let Some(id) = str_field(item, "call_id") else {
            return DecodedStreamEvent::broken("a call has no id");
        };
        if self
            .open
            .insert(place, PartialResponsesCall { id: id.to_owned(), input: PartialCallInput::default() })
            .is_some()
        {
            return DecodedStreamEvent::broken("an item starts twice");
        }
        DecodedStreamEvent::default()
    }

    /// A call is complete; its whole input replaces the deltas.
    fn finish_item(&mut self, event: &Value) -> DecodedStreamEvent {
        let Some((place, item)) = call_item(event) else { return DecodedStreamEvent::default() };
        // An item that the provider marks incomplete stays open, and is reported at the end.
        if str_field(item, "status").is_some_and(|status| status != "completed") {
            return DecodedStreamEvent::default();
        }
        let open = self.open.remove(&place);
        let (Some(id), Some(name)) = (str_field(item, "call_id"), str_field(item, "name")) else {
            return DecodedStreamEvent::broken("a call has no id or no name");
        };
        if open.as_ref().is_some_and(|open| open.id != id) {
            return DecodedStreamEvent::broken("a call changes its id");
        }
        let mut input = open.map(|open| open.input).unwrap_or_default();
        if let Some(whole) = str_field(item, "arguments") {
            input = PartialCallInput(whole.to_owned());
        }
        DecodedStreamEvent {
            calls: vec![ToolCall::new(id, name, input.take())],
            ..DecodedStreamEvent::default()
        }
    }

    /// The calls that never became complete.
    pub(super) fn unfinished(&self) -> Vec<CallId> {
        self.open.values().map(|item| item.id.as_str().into()).collect()
    }
}

/// The position and the item of an event that is about a call.
fn call_item(event: &Value) -> Option<(u64, &Value)> {
    let item = event.get("item").filter(|item| str_field(item, "type") == Some("function_call"))?;
    Some((u64_field(event, "output_index")?, item))
}
