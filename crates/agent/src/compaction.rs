//! Compaction: what a conversation needs to go on when the context window is nearly full.
//!
//! First old results are cleared, which costs nothing and is often enough; then the conversation is replaced by a summary
//! that the model writes. Both are bounded: a conversation that stays too large ends the turn with an error.

use crate::agent_event::AgentEvent;
use crate::agent_hook::AgentHookEvent;
use crate::agent_loop::AgentLoop;
use crate::conversation::{ConversationMessage, block_text, block_type, text_block, well_formed_messages};
use crate::provider::{ModelBlock, ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crate::token_usage::TokenUsage;
use serde_json::{Map, Value, json};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// From this part of the window on, the conversation is compacted.
const MAX_FULL_PERCENT: u64 = 85;
/// Clearing results is enough if the rest is at most this part of the window.
const MAX_CLEARED_PERCENT: u64 = 60;
/// How many of the last messages keep their results.
const MIN_KEPT_MESSAGES_COUNT: usize = 6;
/// Shorter results are not worth clearing.
const MIN_CLEARED_BYTES: usize = 500;
/// How many bytes a token has, roughly.
const BYTES_PER_TOKEN_COUNT: u64 = 4;

/// What the model is asked for.
const SUMMARY_REQUEST: &str = "The conversation is about to exceed its limit, and will be replaced by your answer to this \
message. Write down everything that is needed to go on without it: what the user asked for, in their own words where they \
matter; what was done, decided and found out, with paths, names and commands; what failed and why; the exact state of the \
work; and what comes next. Do not call a tool. Do not leave out instructions of the user.";

impl AgentLoop {
    /// Whether the context window is nearly full.
    pub(crate) fn is_nearly_full(&self) -> bool {
        let usage = self.context_usage();
        let used = usage.context_tokens() + usage.output_tokens;
        let settings = self.settings();
        settings.auto_compact && used * 100 > settings.context_tokens * MAX_FULL_PERCENT
    }

    /// Makes the conversation shorter. `trigger` is `auto` or `manual`; `instructions` say what matters in the summary.
    pub async fn compact(
        &self,
        trigger: &'static str,
        instructions: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<(), ModelError> {
        let fields = Map::from_iter([
            ("trigger".to_owned(), json!(trigger)),
            ("custom_instructions".to_owned(), json!(instructions.unwrap_or_default())),
        ]);
        let answer = self.run_hooks_until(AgentHookEvent::PreCompact, fields, cancel).await;
        let answer =
            answer.ok_or_else(|| ModelError::new(ModelErrorKind::Connection, "the turn was interrupted"))?;
        if let Some(reason) = answer.stop.or(answer.block) {
            return Err(ModelError::new(
                ModelErrorKind::ContextFull,
                format!("a hook blocked compaction: {reason}"),
            ));
        }
        let usage = self.context_usage();
        let tokens_before = match usage.context_tokens() + usage.output_tokens {
            0 => self.estimate_tokens(&self.messages()),
            counted => counted,
        };
        let (cleared, saved) = clear_old_results(&self.messages());
        let settings = self.settings();
        let left = tokens_before.saturating_sub(saved / BYTES_PER_TOKEN_COUNT);
        let is_enough =
            trigger == "auto" && saved > 0 && left * 100 <= settings.context_tokens * MAX_CLEARED_PERCENT;
        let messages = match is_enough {
            true => cleared,
            false => vec![self.summarize(cleared, instructions, cancel).await?],
        };
        self.set_messages(messages.clone());
        self.reset_context_usage();
        let summary = messages.first().filter(|_| !is_enough).map(ConversationMessage::text);
        self.observe(&AgentEvent::Compacted { trigger, tokens_before, messages });
        let fields = Map::from_iter([
            ("trigger".to_owned(), json!(trigger)),
            ("compact_summary".to_owned(), json!(summary.unwrap_or_default())),
        ]);
        // The conversation is replaced: what these hooks answer changes nothing.
        let _ = self.run_hooks_until(AgentHookEvent::PostCompact, fields, cancel).await;
        Ok(())
    }

    /// An estimate, where the provider has not reported a count yet.
    fn estimate_tokens(&self, messages: &[ConversationMessage]) -> u64 {
        let bytes: usize =
            messages.iter().flat_map(|message| &message.content).map(|block| block.to_string().len()).sum();
        bytes as u64 / BYTES_PER_TOKEN_COUNT
    }

    /// Asks the model for a summary, which becomes the first message of the conversation.
    async fn summarize(
        &self,
        mut messages: Vec<ConversationMessage>,
        instructions: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<ConversationMessage, ModelError> {
        let mut wanted = SUMMARY_REQUEST.to_owned();
        if let Some(instructions) = instructions.filter(|text| !text.trim().is_empty()) {
            wanted.push_str(&format!("\nThe user says what matters: {instructions}"));
        }
        messages.push(ConversationMessage::user(vec![text_block(wanted)]));
        let settings = self.settings();
        let request = ModelRequest {
            model: settings.model.clone(),
            system: settings.system_prompt.clone(),
            messages: without_tool_blocks(&well_formed_messages(&messages)),
            tools: Vec::new(),
            max_tokens: settings.max_tokens,
            thinking: settings.thinking,
            thinking_display: settings.thinking_display.clone(),
            effort: settings.effort.clone(),
            task_budget: None,
        };
        let summary = self.collect_text(&request, cancel).await?;
        if summary.trim().is_empty() {
            return Err(ModelError::new(ModelErrorKind::ContextFull, "the model gave no summary"));
        }
        let text = format!(
            "(The conversation so far was replaced by this summary of it.)\n\n{}\n\n(Go on from there; do not repeat what is \
             done.)",
            summary.trim()
        );
        // The instructions in files were in the first message: a summary is no place for rules word by word.
        let instructions = self.settings().first_context.map(text_block);
        Ok(ConversationMessage::user(instructions.into_iter().chain([text_block(text)]).collect()))
    }

    /// The text of an answer that no observer sees.
    async fn collect_text(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<String, ModelError> {
        let retry = self.client.config().retry;
        let mut attempt = 0;
        loop {
            let started = Instant::now();
            let mut usage = TokenUsage::default();
            let collected = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    return Err(ModelError::new(ModelErrorKind::Connection, "the turn was interrupted"));
                }
                collected = self.follow_text(request, &mut usage) => collected,
            };
            self.meter.add(&request.model, usage, started.elapsed());
            let error = match collected {
                Ok(text) => return Ok(text),
                Err(error) => error,
            };
            attempt += 1;
            let Some(delay) = retry.delay(&error, attempt, 0.5) else { return Err(error) };
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    return Err(ModelError::new(ModelErrorKind::Connection, "the turn was interrupted"));
                }
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    /// Follows one stream and keeps its text and its usage.
    async fn follow_text(
        &self,
        request: &ModelRequest,
        usage: &mut TokenUsage,
    ) -> Result<String, ModelError> {
        let mut stream = self.client.open_stream(request).await?;
        let mut text = String::new();
        while let Some(events) = stream.next_events().await? {
            for event in events {
                match event {
                    ModelEvent::BlockFinished { block: ModelBlock::Content(block), .. } => {
                        text.push_str(block_text(&block).unwrap_or_default());
                    }
                    ModelEvent::Stopped { usage: counted, .. } => *usage = counted,
                    _ => {}
                }
            }
        }
        Ok(text)
    }
}

/// The conversation with old results cleared, and how many bytes that saves.
fn clear_old_results(messages: &[ConversationMessage]) -> (Vec<ConversationMessage>, u64) {
    let kept_from = messages.len().saturating_sub(MIN_KEPT_MESSAGES_COUNT);
    let mut saved = 0;
    let mut out = messages.to_vec();
    for block in out.iter_mut().take(kept_from).flat_map(|message| &mut message.content) {
        if block_type(block) != "tool_result" {
            continue;
        }
        let size = block.get("content").map_or(0, |content| content.to_string().len());
        if size < MIN_CLEARED_BYTES {
            continue;
        }
        if let Some(fields) = block.as_object_mut() {
            let note = text_block("(this result was cleared to make room; call again if you need it)");
            fields.insert("content".to_owned(), json!([note]));
            saved += size as u64;
        }
    }
    (out, saved)
}

/// Calls and results as text: a request without tools must not contain them.
fn without_tool_blocks(messages: &[ConversationMessage]) -> Vec<ConversationMessage> {
    let as_text = |block: &Value| match block_type(block) {
        "tool_use" => {
            let name = block.get("name").and_then(Value::as_str).unwrap_or_default();
            let input = block.get("input").map(Value::to_string).unwrap_or_default();
            Some(text_block(format!("(called {name} with {input})")))
        }
        "tool_result" => {
            let content = block.get("content").map(Value::to_string).unwrap_or_default();
            Some(text_block(format!("(result: {content})")))
        }
        "thinking" | "redacted_thinking" | "reasoning_item" => None,
        _ => Some(block.clone()),
    };
    messages
        .iter()
        .map(|message| ConversationMessage {
            role: message.role,
            content: message.content.iter().filter_map(as_text).collect(),
        })
        .filter(|message| !message.content.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_and_long_results_are_cleared_and_each_keeps_its_id() {
        let result = |id: usize, bytes: usize| json!({ "type": "tool_result", "tool_use_id": format!("c{id}"), "content": "x".repeat(bytes) });
        let messages: Vec<ConversationMessage> = (0..10)
            .map(|id| ConversationMessage::user(vec![result(id, if id == 1 { 10 } else { 1_000 })]))
            .collect();
        let (cleared, saved) = clear_old_results(&messages);
        assert_eq!(saved, 3 * 1_002);
        for (id, message) in cleared.iter().enumerate() {
            assert_eq!(message.content[0]["tool_use_id"], format!("c{id}"));
            assert_eq!(message.content[0].to_string().contains("cleared"), matches!(id, 0 | 2 | 3), "{id}");
        }
    }
}
