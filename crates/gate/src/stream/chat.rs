//! Chat Completions: deltas of calls, identified by index, without an end event for each.
//!
//! So a call is given when its input is a whole object *and* a later one has begun; else when the answer is finished.
//! An input of `{}` waits for that as well: some servers send it first and the fields after it.

use super::{DecodedStreamEvent, PartialCallInput, str_field, u64_field};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_proto::{CallId, ToolCall};

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct ChatDecoder {
    calls: BTreeMap<u64, PartialChatCall>,
    /// The index of the last delta, for servers that leave it out.
    last: Option<u64>,
}

/// A call whose arguments are still arriving.
#[derive(Debug, Default)]
struct PartialChatCall {
    id: Option<String>,
    name: String,
    input: PartialCallInput,
    given: bool,
}

impl ChatDecoder {
    /// Handles one chunk of the stream.
    pub(super) fn decode_event(&mut self, event: &Value) -> DecodedStreamEvent {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            let said = str_field(error, "message").unwrap_or("it gave no reason");
            return DecodedStreamEvent::broken(format!("the provider failed: {said}"));
        }
        let choices = event.get("choices").and_then(Value::as_array).into_iter().flatten();
        // One answer is asked for; of several only the first can be acted on.
        let Some(choice) = choices.into_iter().find(|choice| u64_field(choice, "index").unwrap_or(0) == 0)
        else {
            return DecodedStreamEvent::default();
        };
        let pieces = choice.pointer("/delta/tool_calls").and_then(Value::as_array).into_iter().flatten();
        for piece in pieces {
            if let Err(reason) = self.add(piece) {
                return DecodedStreamEvent::broken(reason);
            }
        }
        match str_field(choice, "finish_reason") {
            None => DecodedStreamEvent { calls: self.take_complete_calls(), ..DecodedStreamEvent::default() },
            Some(reason) => DecodedStreamEvent {
                calls: self.take_remaining_calls(reason),
                finished: true,
                ..DecodedStreamEvent::default()
            },
        }
    }

    /// Adds a piece to the call that it belongs to, by its index or its id.
    fn add(&mut self, piece: &Value) -> Result<(), &'static str> {
        let id = str_field(piece, "id").filter(|id| !id.is_empty());
        let function = piece.get("function").unwrap_or(&Value::Null);
        let place = match (u64_field(piece, "index"), id) {
            (Some(place), _) => place,
            (None, Some(id)) => match self.calls.iter().find(|(_, call)| call.id.as_deref() == Some(id)) {
                Some((place, _)) => *place,
                None => self.calls.keys().next_back().map_or(0, |last| last + 1),
            },
            (None, None) => self.last.ok_or("a piece of a call belongs to none")?,
        };
        self.last = Some(place);
        let call = self.calls.entry(place).or_default();
        match (&call.id, id) {
            (Some(known), Some(id)) if known != id => return Err("a call changes its id"),
            (None, Some(id)) => call.id = Some(id.to_owned()),
            (Some(_) | None, Some(_) | None) => {}
        }
        // The name comes once, whole; servers that repeat it repeat it whole.
        if let Some(name) = str_field(function, "name").filter(|name| !name.is_empty()) {
            if call.name.is_empty() {
                call.name = name.to_owned();
            } else if call.name != name {
                return Err("a call changes its name");
            }
        }
        let more = str_field(function, "arguments").unwrap_or_default();
        if call.given && !more.trim().is_empty() {
            return Err("a call goes on after its end");
        }
        call.input.add(more);
        Ok(())
    }

    /// The calls that are whole though the answer goes on, in order, as far as the first that is not.
    fn take_complete_calls(&mut self) -> Vec<ToolCall> {
        let newest = self.calls.keys().next_back().copied();
        let mut given = Vec::new();
        for (place, call) in &mut self.calls {
            if call.given {
                continue;
            }
            if Some(*place) == newest || call.name.is_empty() || !call.input.is_complete_object() {
                break;
            }
            given.push(call.take_call(*place));
        }
        given
    }

    /// The calls that were not returned yet, at the end of the answer.
    fn take_remaining_calls(&mut self, reason: &str) -> Vec<ToolCall> {
        // Where the model was stopped, the last call may lack its end; one that is whole does not.
        let whole_only = matches!(reason, "length" | "content_filter" | "error");
        let mut given = Vec::new();
        for (place, call) in &mut self.calls {
            let fits = !whole_only || call.input.is_complete_object();
            if !call.given && !call.name.is_empty() && fits {
                given.push(call.take_call(*place));
            }
        }
        given
    }

    /// The calls that never became complete.
    pub(super) fn unfinished(&self) -> Vec<CallId> {
        self.calls
            .iter()
            .filter(|(_, call)| !call.given)
            .map(|(place, call)| call.id(*place).into())
            .collect()
    }
}

impl PartialChatCall {
    /// Returns the call, and marks it as returned.
    fn take_call(&mut self, place: u64) -> ToolCall {
        self.given = true;
        ToolCall::new(self.id(place), self.name.clone(), self.input.take())
    }

    /// Some servers give no ids; the result must still carry one.
    fn id(&self, place: u64) -> String {
        self.id.clone().unwrap_or_else(|| format!("call_{place}"))
    }
}
