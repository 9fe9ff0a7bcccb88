//! One answer of a model: requested, followed, repeated where that loses nothing, with its calls started on the way.

use crate::agent_event::{AgentEvent, RetryNotice};
use crate::agent_loop::AgentLoop;
use crate::provider::{
    ModelBlock, ModelCall, ModelError, ModelErrorKind, ModelEvent, ModelRequest, StopReason,
};
use crate::token_usage::{OpenAnswer, TokenUsage};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallBatch, CallOptions};
use toolgate_proto::ToolCall;

/// After this many failures for overload the fallback model is used.
const MAX_OVERLOADS: u32 = 3;

/// An answer, complete or cut, and its calls, which run already.
pub(crate) struct ModelAnswer {
    /// The provider's id.
    pub(crate) id: String,
    /// The model that answered.
    pub(crate) model: String,
    /// The complete blocks.
    pub(crate) blocks: Vec<ModelBlock>,
    /// The calls among them, in order.
    pub(crate) calls: Vec<ModelCall>,
    /// Why the model stopped; absent if the answer was cut.
    pub(crate) stop: Option<(StopReason, String)>,
    /// Its tokens.
    pub(crate) usage: TokenUsage,
    /// Why the rest of the answer is lost.
    pub(crate) broken: Option<ModelError>,
    /// The calls on their way.
    pub(crate) batch: CallBatch,
    /// What it has cost so far, until it is counted.
    open: Option<OpenAnswer>,
}

/// Why there is no answer.
pub(crate) enum NoAnswer {
    /// The turn was interrupted before a block was complete.
    Interrupted,
    /// The request failed for good.
    Failed(ModelError),
}

impl ModelAnswer {
    /// An answer of which nothing has come yet.
    fn new(batch: CallBatch, model: &str, open: OpenAnswer) -> Self {
        Self {
            id: String::new(),
            model: model.to_owned(),
            blocks: Vec::new(),
            calls: Vec::new(),
            stop: None,
            usage: TokenUsage::default(),
            broken: None,
            batch,
            open: Some(open),
        }
    }

    /// The text of the answer.
    pub(crate) fn text(&self) -> String {
        let text = self.blocks.iter().filter_map(|block| match block {
            ModelBlock::Content(value) => crate::conversation::block_text(value),
            ModelBlock::Call(_) => None,
        });
        text.collect()
    }
}

impl AgentLoop {
    /// Requests an answer. A failure before the first complete block is repeated; after it nothing is, because a call
    /// may have run.
    pub(crate) async fn request_answer(
        &self,
        mut request: ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ModelAnswer, NoAnswer> {
        let (mut attempt, mut overloads) = (0, 0);
        loop {
            let batch =
                self.gate.batch(&self.session, CallOptions::default().with_cancel(cancel.child_token()));
            let mut answer = ModelAnswer::new(batch, &request.model, self.meter.begin_answer());
            self.observe(&AgentEvent::Requested { model: request.model.clone() });
            let started = Instant::now();
            let followed = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                followed = self.follow_stream(&request, &mut answer) => Some(followed),
            };
            self.meter.add(&answer.model, answer.usage, started.elapsed());
            answer.open = None;
            let error = match followed {
                Some(Ok(())) => return Ok(answer),
                None if answer.blocks.is_empty() => return Err(NoAnswer::Interrupted),
                None => return Ok(answer),
                Some(Err(error)) if !answer.blocks.is_empty() => {
                    self.observe(&AgentEvent::Noticed(format!(
                        "the answer broke off after a complete part, which is kept: {error}"
                    )));
                    answer.broken = Some(error);
                    return Ok(answer);
                }
                Some(Err(error)) => error,
            };
            attempt += 1;
            overloads += u32::from(error.kind == ModelErrorKind::Overloaded);
            self.change_overloaded_model(&mut request, overloads);
            self.wait_for_retry(attempt, error, cancel).await?;
        }
    }

    /// Waits before the next attempt, unless there is none.
    async fn wait_for_retry(
        &self,
        attempt: u32,
        error: ModelError,
        cancel: &CancellationToken,
    ) -> Result<(), NoAnswer> {
        let retry = self.client.config().retry;
        let Some(delay) = retry.delay(&error, attempt, random_fraction()) else {
            return Err(NoAnswer::Failed(error));
        };
        let notice = RetryNotice { attempt, max_retries: retry.max_retries, delay, error };
        self.observe(&AgentEvent::Retrying(notice));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(NoAnswer::Interrupted),
            () = tokio::time::sleep(delay) => Ok(()),
        }
    }

    /// Switches to the fallback model when the first was overloaded often enough.
    fn change_overloaded_model(&self, request: &mut ModelRequest, overloads: u32) {
        let fallback = self.settings().fallback_model;
        if let Some(fallback) = fallback.filter(|model| overloads == MAX_OVERLOADS && *model != request.model)
        {
            self.observe(&AgentEvent::Noticed(format!(
                "`{}` is overloaded, so `{fallback}` answers",
                request.model
            )));
            request.model = fallback;
        }
    }

    /// Follows one stream to its end. Each call starts when it is complete.
    async fn follow_stream(
        &self,
        request: &ModelRequest,
        answer: &mut ModelAnswer,
    ) -> Result<(), ModelError> {
        let mut stream = self.client.open_stream(request).await?;
        while let Some(events) = stream.next_events().await? {
            let mut group = Vec::with_capacity(events.len());
            for event in events {
                self.take_event(&event, answer);
                let finished = match &event {
                    ModelEvent::BlockFinished { block, .. } => Some(block.clone()),
                    _ => None,
                };
                group.push(event);
                // After the raw events: hosts see the end of a block, then the block.
                if let Some(block) = finished {
                    self.observe(&AgentEvent::Streamed(std::mem::take(&mut group)));
                    self.observe(&AgentEvent::BlockFinished {
                        message: answer.id.clone(),
                        model: answer.model.clone(),
                        block: block.to_value(),
                        usage: answer.usage,
                    });
                    if let ModelBlock::Call(call) = block {
                        let ModelCall { id, name, input } = call;
                        answer.batch.push(ToolCall::new(id, name, input));
                    }
                }
            }
            // Observers have everything that came before the wait for more.
            if !group.is_empty() {
                self.observe(&AgentEvent::Streamed(group));
            }
        }
        Ok(())
    }

    /// Adds one event of the stream to the answer.
    fn take_event(&self, event: &ModelEvent, answer: &mut ModelAnswer) {
        match event {
            ModelEvent::Started { id, model, usage } => {
                answer.id.clone_from(id);
                answer.usage = *usage;
                if !model.is_empty() {
                    answer.model.clone_from(model);
                }
                if let Some(open) = &answer.open {
                    open.set(&answer.model, *usage);
                }
            }
            ModelEvent::BlockFinished { block, .. } => {
                answer.blocks.push(block.clone());
                if let ModelBlock::Call(call) = block {
                    answer.calls.push(call.clone());
                }
            }
            ModelEvent::Stopped { reason, words, usage } => {
                answer.stop = Some((*reason, words.clone()));
                answer.usage = *usage;
            }
            ModelEvent::BlockStarted { .. }
            | ModelEvent::BlockDelta { .. }
            | ModelEvent::Ended
            | ModelEvent::Failed { .. } => {}
        }
    }
}

/// A random number from 0 to 1, to spread retries.
fn random_fraction() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let number = std::collections::hash_map::RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(number >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
