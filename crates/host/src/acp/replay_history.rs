//! A stored conversation, replayed to the editor that loads it.

use super::acp_client::{AcpClient, text_chunk};
use super::acp_updates::{announce_call, shorten};
use agent_client_protocol::v1::schema::{
    SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::Value;
use toolgate_agent::conversation::{ConversationMessage, MessageRole, block_text, block_type};
use toolgate_proto::AbsPath;

/// Sends every message as updates, in order.
pub(super) fn replay_history(client: &AcpClient, messages: &[ConversationMessage], cwd: &AbsPath) {
    for message in messages {
        for block in &message.content {
            if let Some(update) = replay_block(message.role, block, cwd) {
                client.update(update);
            }
        }
    }
}

/// The update for one block; none for what an editor does not show.
fn replay_block(role: MessageRole, block: &Value, cwd: &AbsPath) -> Option<SessionUpdate> {
    match (role, block_type(block)) {
        (MessageRole::User, "text") => Some(SessionUpdate::UserMessageChunk(text_chunk(block_text(block)?))),
        (MessageRole::Assistant, "text") => {
            Some(SessionUpdate::AgentMessageChunk(text_chunk(block_text(block)?)))
        }
        (MessageRole::Assistant, "thinking") => {
            let thought = block.get("thinking").and_then(Value::as_str)?;
            Some(SessionUpdate::AgentThoughtChunk(text_chunk(thought)))
        }
        (MessageRole::Assistant, "tool_use") => announce_call(block, cwd).map(SessionUpdate::ToolCall),
        (MessageRole::User, "tool_result") => {
            let id = block.get("tool_use_id").and_then(Value::as_str)?;
            let is_error = block.get("is_error") == Some(&Value::Bool(true));
            let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
            let content = ToolCallContent::from(shorten(&result_text(block)));
            let fields = ToolCallUpdateFields::new().status(status).content(vec![content]);
            Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields)))
        }
        _ => None,
    }
}

/// The text of a result.
fn result_text(block: &Value) -> String {
    match block.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
