//! The conversation with a model, in one shape for every provider.
//!
//! Content blocks are JSON in the shape of the Messages API, because that is the richest of the three and because
//! thinking blocks must go back to the provider exactly as they came.
//! The codecs of the other providers translate.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    /// The user, or the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConversationMessage {
    /// Who wrote it.
    pub role: MessageRole,
    /// Its content blocks.
    pub content: Vec<Value>,
}

impl ConversationMessage {
    /// A message of the user.
    pub fn user(content: Vec<Value>) -> Self {
        Self { role: MessageRole::User, content }
    }

    /// A message of the model.
    pub fn assistant(content: Vec<Value>) -> Self {
        Self { role: MessageRole::Assistant, content }
    }

    /// The texts of the message, joined.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(|block| block_text(block)).collect::<Vec<_>>().join("")
    }
}

/// A text block.
pub fn text_block(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// The type of a block.
pub fn block_type(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The text of a text block.
pub fn block_text(block: &Value) -> Option<&str> {
    (block_type(block) == "text").then(|| block.get("text").and_then(Value::as_str)).flatten()
}

/// A field of a block as text.
pub(crate) fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The messages as providers take them: roles alternate, no message and no text is empty, every call has exactly one
/// result, in the message right after it and before anything else.
///
/// A conversation that a crash or an interrupt cut is completed here: a call without a result gets one that says so.
pub fn well_formed_messages(messages: &[ConversationMessage]) -> Vec<ConversationMessage> {
    let mut merged: Vec<ConversationMessage> = Vec::new();
    for message in messages {
        let content: Vec<Value> = message.content.iter().filter(|block| !is_blank(block)).cloned().collect();
        push_message(&mut merged, ConversationMessage { role: message.role, content });
    }
    let mut out: Vec<ConversationMessage> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for message in merged {
        let open = open_calls(out.last());
        match message.role {
            MessageRole::User => push_message(&mut out, with_results_first(message, &open)),
            MessageRole::Assistant => {
                push_message(&mut out, with_results_first(ConversationMessage::user(Vec::new()), &open));
                let mut message = message;
                message.content.retain(|block| {
                    block_type(block) != "tool_use" || seen.insert(text_field(block, "id").to_owned())
                });
                if out.is_empty() && !message.content.is_empty() {
                    out.push(ConversationMessage::user(vec![text_block("(the conversation goes on)")]));
                }
                push_message(&mut out, message);
            }
        }
    }
    let open = open_calls(out.last());
    push_message(&mut out, with_results_first(ConversationMessage::user(Vec::new()), &open));
    out
}

/// Adds a message unless it is empty. One of the same role as the last is joined with it, so that roles alternate
/// whatever was left out between the two.
fn push_message(messages: &mut Vec<ConversationMessage>, message: ConversationMessage) {
    match messages.last_mut() {
        _ if message.content.is_empty() => {}
        Some(last) if last.role == message.role => last.content.extend(message.content),
        _ => messages.push(message),
    }
}

/// Whether a block is a text of nothing: providers refuse those.
fn is_blank(block: &Value) -> bool {
    block_text(block).is_some_and(|text| text.trim().is_empty())
}

/// The ids of the calls in the last message, if it is the model's.
fn open_calls(last: Option<&ConversationMessage>) -> Vec<String> {
    let Some(last) = last.filter(|last| last.role == MessageRole::Assistant) else { return Vec::new() };
    let calls = last.content.iter().filter(|block| block_type(block) == "tool_use");
    calls.map(|call| text_field(call, "id").to_owned()).collect()
}

/// The message with one result for each open call, in order, before everything else.
fn with_results_first(message: ConversationMessage, open: &[String]) -> ConversationMessage {
    let (results, rest): (Vec<Value>, Vec<Value>) =
        message.content.into_iter().partition(|block| block_type(block) == "tool_result");
    let mut content: Vec<Value> = open
        .iter()
        .map(|id| {
            let found = results.iter().find(|result| text_field(result, "tool_use_id") == id);
            found.cloned().unwrap_or_else(|| missing_result(id))
        })
        .collect();
    content.extend(rest);
    ConversationMessage::user(content)
}

/// The result of a call that never got one.
fn missing_result(id: &str) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": id,
        "content": [text_block("the call was interrupted, and whether it had any effect is not known")],
        "is_error": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(id: u8) -> Value {
        json!({ "type": "tool_use", "id": format!("c{id}"), "name": "x", "input": {} })
    }

    fn result(id: u8) -> Value {
        json!({ "type": "tool_result", "tool_use_id": format!("c{id}"), "content": "" })
    }

    fn any_message() -> impl Strategy<Value = ConversationMessage> {
        let block = prop_oneof![
            (0u8..6).prop_map(call),
            (0u8..6).prop_map(result),
            "[a ]{0,3}".prop_map(text_block),
        ];
        (any::<bool>(), prop::collection::vec(block, 0..5)).prop_map(|(is_user, content)| {
            // Only the model calls, and only the user brings results.
            let fits = |block: &Value| match block_type(block) {
                "tool_use" => !is_user,
                "tool_result" => is_user,
                _ => true,
            };
            let content = content.into_iter().filter(fits).collect();
            if is_user { ConversationMessage::user(content) } else { ConversationMessage::assistant(content) }
        })
    }

    proptest! {
        #[test]
        fn whatever_was_cut_away_results_match_calls_one_to_one_in_order(
            messages in prop::collection::vec(any_message(), 0..8)
        ) {
            let formed = well_formed_messages(&messages);
            prop_assert!(formed.first().is_none_or(|first| first.role == MessageRole::User));
            for pair in formed.windows(2) {
                prop_assert_ne!(pair[0].role, pair[1].role);
            }
            let mut seen = BTreeSet::new();
            for (index, message) in formed.iter().enumerate() {
                prop_assert!(!message.content.is_empty());
                let wanted = index.checked_sub(1).map(|before| open_calls(formed.get(before))).unwrap_or_default();
                let given: Vec<String> = message
                    .content
                    .iter()
                    .take_while(|block| block_type(block) == "tool_result")
                    .map(|block| text_field(block, "tool_use_id").to_owned())
                    .collect();
                prop_assert_eq!(given.len(), message.content.iter().filter(|b| block_type(b) == "tool_result").count());
                prop_assert_eq!(given, wanted);
                for id in open_calls(Some(message)) {
                    prop_assert!(seen.insert(id));
                }
            }
            prop_assert!(open_calls(formed.last()).is_empty());
            prop_assert_eq!(well_formed_messages(&formed), formed);
        }
    }
}
