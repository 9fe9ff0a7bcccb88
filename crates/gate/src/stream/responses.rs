//! The Responses API: an item for each call, which is repeated whole when it is done.

use super::{Heard, PartialCallInput, index, text};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_proto::{CallId, ToolCall};

/// The items of one answer that are calls.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    open: BTreeMap<u64, Item>,
}

#[derive(Debug, Default)]
struct Item {
    id: String,
    input: PartialCallInput,
}

impl ResponsesDecoder {
    pub(super) fn hear(&mut self, event: &Value) -> Heard {
        match text(event, "type") {
            Some("response.output_item.added") => self.added(event),
            Some("response.function_call_arguments.delta") => {
                if let Some(item) = index(event, "output_index").and_then(|place| self.open.get_mut(&place)) {
                    item.input.add(text(event, "delta").unwrap_or_default());
                }
                Heard::default()
            }
            Some("response.output_item.done") => self.done(event),
            Some("response.completed" | "response.incomplete") => {
                Heard { finished: true, ..Heard::default() }
            }
            Some("response.failed") => {
                let said = event.pointer("/response/error/message").and_then(Value::as_str);
                Heard::broken(format!("the provider failed: {}", said.unwrap_or("it gave no reason")))
            }
            Some("error") => {
                let said = text(event, "message").unwrap_or("it gave no reason");
                Heard::broken(format!("the provider failed: {said}"))
            }
            _ => Heard::default(),
        }
    }

    fn added(&mut self, event: &Value) -> Heard {
        let Some((place, item)) = call_item(event) else { return Heard::default() };
        let Some(id) = text(item, "call_id") else { return Heard::broken("a call has no id") };
        if self.open.insert(place, Item { id: id.to_owned(), input: PartialCallInput::default() }).is_some() {
            return Heard::broken("an item starts twice");
        }
        Heard::default()
    }

    fn done(&mut self, event: &Value) -> Heard {
        let Some((place, item)) = call_item(event) else { return Heard::default() };
        // An item that the provider itself calls incomplete stays open, and is told of at the end.
        if text(item, "status").is_some_and(|status| status != "completed") {
            return Heard::default();
        }
        let open = self.open.remove(&place);
        let (Some(id), Some(name)) = (text(item, "call_id"), text(item, "name")) else {
            return Heard::broken("a call has no id or no name");
        };
        if open.as_ref().is_some_and(|open| open.id != id) {
            return Heard::broken("a call changes its id");
        }
        let mut input = open.map(|open| open.input).unwrap_or_default();
        if let Some(whole) = text(item, "arguments") {
            input = PartialCallInput(whole.to_owned());
        }
        Heard { calls: vec![ToolCall::new(id, name, input.take())], ..Heard::default() }
    }

    pub(super) fn unfinished(&self) -> Vec<CallId> {
        self.open.values().map(|item| item.id.as_str().into()).collect()
    }
}

fn call_item(event: &Value) -> Option<(u64, &Value)> {
    let item = event.get("item").filter(|item| text(item, "type") == Some("function_call"))?;
    Some((index(event, "output_index")?, item))
}
