//! The agent: a conversation, a model and a gate, and the loop that joins them.
//!
//! A turn is: request → stream → each complete call starts when the scheduler lets it → one message with all results, in
//! order → until the model is done, a limit is reached, the turn is interrupted or a request fails.

use crate::agent_event::{AgentEvent, AgentObserver, AgentOrigin, FinishedAgentCall};
use crate::agent_hook::{AgentHook, AgentHookAnswer, AgentHookEvent};
use crate::agent_parts::AgentParts;
use crate::agent_settings::AgentSettings;
use crate::conversation::{ConversationMessage, text_block, well_formed_messages};
use crate::model_answer::{ModelAnswer, NoAnswer};
use crate::prompt_expander::PromptExpander;
use crate::provider::{ModelBlock, ModelClient, ModelError, ModelErrorKind, ModelRequest, StopReason};
use crate::structured_output::{STRUCTURED_OUTPUT_TOOL, StructuredOutputSlot};
use crate::subagent::BackgroundAgents;
use crate::token_usage::{TokenUsage, UsageMeter};
use crate::transcript_path::TranscriptPath;
use crate::turn_model::TurnModel;
use crate::turn_report::{DeniedCall, TurnEnding, TurnReport};
use crate::turn_state::TurnState;
use serde_json::{Map, Value, json};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallOutcome, Gate, Session};
use toolgate_proto::{CallId, OutcomeRecord, Stage, anthropic_result};

/// How many answers in a row may be cut by their limit in tokens.
const MAX_CUT_ANSWERS: u32 = 3;
/// How many times a turn may be compacted without the user.
const MAX_COMPACTIONS: u32 = 3;
/// How many times the model is asked for the output that it did not return.
const MAX_OUTPUT_REQUESTS: u32 = 4;
/// How many times in a row hooks may keep a turn from ending.
const MAX_STOP_BLOCKS: u32 = 8;

/// An agent.
pub struct AgentLoop {
    pub(crate) gate: Arc<Gate>,
    pub(crate) session: Session,
    pub(crate) client: ModelClient,
    pub(crate) meter: Arc<UsageMeter>,
    settings: Mutex<AgentSettings>,
    pub(crate) observers: Vec<Arc<dyn AgentObserver>>,
    pub(crate) hooks: Vec<Arc<dyn AgentHook>>,
    pub(crate) origin: AgentOrigin,
    pub(crate) conversation: Mutex<Vec<ConversationMessage>>,
    /// The tokens of the last request and its answer: how full the context window is.
    context_usage: Mutex<TokenUsage>,
    /// Replaces prompts of the user; none if every prompt stands for itself.
    pub(crate) expander: Option<Arc<dyn PromptExpander>>,
    /// Content that goes to the model with the next prompt.
    attached: Mutex<Vec<Value>>,
    /// The hooks for the start of the session have run.
    pub(crate) has_started: AtomicBool,
}

/// What follows an answer.
enum NextStep {
    /// Another request.
    Request,
    /// The end of the turn.
    End(TurnEnding),
}

impl AgentLoop {
    /// An agent of these parts.
    pub fn new(parts: AgentParts) -> Self {
        Self {
            gate: parts.gate,
            session: parts.session,
            client: parts.client,
            meter: parts.meter,
            settings: Mutex::new(parts.settings),
            observers: parts.observers,
            hooks: parts.hooks,
            origin: parts.origin,
            conversation: Mutex::new(parts.conversation),
            context_usage: Mutex::default(),
            expander: None,
            attached: Mutex::default(),
            has_started: AtomicBool::new(false),
        }
    }

    /// Sets what replaces prompts of the user, such as `/name arguments`.
    pub fn with_prompt_expander(mut self, expander: Arc<dyn PromptExpander>) -> Self {
        self.expander = Some(expander);
        self
    }

    /// The settings as they are now.
    pub fn settings(&self) -> AgentSettings {
        self.lock_settings().clone()
    }

    /// Changes the settings, from the next request on.
    pub fn update_settings(&self, change: impl FnOnce(&mut AgentSettings)) {
        change(&mut self.lock_settings());
    }

    /// Counts tokens and cost of the whole run.
    pub fn meter(&self) -> &Arc<UsageMeter> {
        &self.meter
    }

    /// The session of its calls.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The conversation so far.
    pub fn messages(&self) -> Vec<ConversationMessage> {
        self.lock_conversation().clone()
    }

    /// Replaces the conversation.
    pub fn set_messages(&self, messages: Vec<ConversationMessage>) {
        *self.lock_conversation() = messages;
    }

    /// Adds content that goes to the model with the next prompt, before it.
    pub fn attach(&self, content: Vec<Value>) {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).extend(content);
    }

    /// The tokens of the last request and its answer.
    pub fn context_usage(&self) -> TokenUsage {
        *self.context_usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the conversation; the transcript goes on with an empty one.
    pub fn clear(&self) {
        let usage = self.context_usage();
        self.set_messages(Vec::new());
        self.reset_context_usage();
        let tokens_before = usage.context_tokens() + usage.output_tokens;
        self.observe(&AgentEvent::Compacted { trigger: "manual", tokens_before, messages: Vec::new() });
    }

    /// Nothing is known of the window any more: the conversation is another one.
    pub(crate) fn reset_context_usage(&self) {
        *self.context_usage.lock().unwrap_or_else(PoisonError::into_inner) = TokenUsage::default();
    }

    /// Runs one turn: from a prompt to the end of the model's work on it. Cancelling ends it soon; the conversation stays
    /// usable.
    pub async fn run_turn(&self, prompt: Vec<Value>, cancel: &CancellationToken) -> TurnReport {
        self.run_named_turn(&new_message_id(), prompt, cancel).await
    }

    /// The same, with the id of the prompt.
    pub async fn run_named_turn(
        &self,
        id: &str,
        prompt: Vec<Value>,
        cancel: &CancellationToken,
    ) -> TurnReport {
        self.run_prompt(id, prompt, false, cancel).await
    }

    /// Runs one turn for what a user typed: `/name arguments` is replaced by the text that it stands for.
    pub async fn run_user_turn(
        &self,
        id: &str,
        prompt: Vec<Value>,
        cancel: &CancellationToken,
    ) -> TurnReport {
        self.run_prompt(id, prompt, true, cancel).await
    }

    /// Runs a turn. Rules that hold until the turn ends, such as those of a skill, are those of the main loop: a subagent
    /// works within the turn of its parent.
    async fn run_prompt(
        &self,
        id: &str,
        prompt: Vec<Value>,
        is_typed: bool,
        cancel: &CancellationToken,
    ) -> TurnReport {
        let mut state = TurnState::new();
        let is_main = self.origin.agent_id.is_none();
        if is_main {
            self.start_session(cancel).await;
            self.gate.begin_turn();
        }
        let agents = BackgroundAgents::of(&self.session);
        agents.begin_turn(self.origin.agent_id.as_deref(), cancel);
        TurnModel::clear(&self.session);
        self.observe(&AgentEvent::TurnStarted);
        let expanded = match is_typed {
            true => self.expand_prompt(prompt, cancel).await,
            false => Ok(prompt),
        };
        let submitted = match expanded {
            Ok(prompt) => self.submit_prompt(id, prompt, cancel).await,
            Err(ending) => Err(ending),
        };
        let ending = match submitted {
            Err(ending) => ending,
            Ok(()) => self.run_requests(&mut state, cancel).await,
        };
        if is_main {
            self.gate.end_turn();
        }
        agents.end_turn(self.origin.agent_id.as_deref());
        TurnModel::clear(&self.session);
        if let TurnEnding::RequestFailed(error) = &ending {
            self.observe(&AgentEvent::RequestFailed(error.clone()));
            self.report_stop_failure(error, &state.text, cancel).await;
        }
        state.into_report(ending)
    }

    /// Requests answers until the turn ends, and says how it ended. Limits are checked before each request.
    async fn run_requests(&self, state: &mut TurnState, cancel: &CancellationToken) -> TurnEnding {
        loop {
            let settings = self.settings();
            if cancel.is_cancelled() {
                return TurnEnding::Interrupted { in_tools: false };
            }
            if let Some(limit) = settings.max_turns.filter(|limit| state.num_turns >= *limit) {
                return TurnEnding::MaxTurns(limit);
            }
            if let Some(budget) = self.meter.exhausted_budget() {
                return TurnEnding::MaxBudget(budget);
            }
            if self.is_nearly_full() && state.compactions < MAX_COMPACTIONS {
                state.compactions += 1;
                if let Err(error) = self.compact("auto", None, cancel).await {
                    self.observe(&AgentEvent::Noticed(format!(
                        "the conversation was not compacted: {error}"
                    )));
                }
            }
            self.read_messages();
            state.num_turns += 1;
            let started = Instant::now();
            let answered = self.request_answer(self.build_request(&settings), cancel).await;
            state.api_duration += started.elapsed();
            let step = match answered {
                Ok(answer) => self.take_answer(answer, state, cancel).await,
                Err(NoAnswer::Interrupted) => NextStep::End(TurnEnding::Interrupted { in_tools: false }),
                Err(NoAnswer::Failed(error)) if error.kind == ModelErrorKind::ContextFull => {
                    self.make_room(error, state, cancel).await
                }
                Err(NoAnswer::Failed(error)) => NextStep::End(TurnEnding::RequestFailed(error)),
            };
            if let NextStep::End(ending) = step {
                return ending;
            }
        }
    }

    /// Compacts a conversation that does not fit, and asks again; once in a turn.
    async fn make_room(
        &self,
        error: ModelError,
        state: &mut TurnState,
        cancel: &CancellationToken,
    ) -> NextStep {
        if state.compactions > 0 || !self.settings().auto_compact {
            return NextStep::End(TurnEnding::RequestFailed(error));
        }
        state.compactions = MAX_COMPACTIONS;
        match self.compact("auto", None, cancel).await {
            Ok(()) => NextStep::Request,
            Err(_) => NextStep::End(TurnEnding::RequestFailed(error)),
        }
    }

    /// The next request: the whole conversation, and the tools as they are shown now.
    fn build_request(&self, settings: &AgentSettings) -> ModelRequest {
        // A skill may want another model for the rest of the turn. One whose price is not known could exceed a budget.
        let requested = TurnModel::of(&self.session);
        let wanted = requested.model.and_then(|name| settings.resolve_model(&name));
        let wanted = wanted.filter(|model| self.meter.can_price(model));
        ModelRequest {
            model: wanted.unwrap_or_else(|| settings.model.clone()),
            system: settings.system_prompt.clone(),
            messages: well_formed_messages(&self.lock_conversation()),
            tools: self.gate.definitions(&self.session),
            max_tokens: settings.max_tokens,
            thinking: settings.thinking,
            thinking_display: settings.thinking_display.clone(),
            effort: requested.effort.or_else(|| settings.effort.clone()),
            task_budget: settings.task_budget,
        }
    }

    /// Runs the prompt hooks and adds the prompt to the conversation.
    async fn submit_prompt(
        &self,
        id: &str,
        prompt: Vec<Value>,
        cancel: &CancellationToken,
    ) -> Result<(), TurnEnding> {
        let text = ConversationMessage::user(prompt.clone()).text();
        let mut content = Vec::new();
        if self.lock_conversation().is_empty() {
            content.extend(self.settings().first_context.map(text_block));
        }
        content.append(&mut self.attached.lock().unwrap_or_else(PoisonError::into_inner));
        content.extend(prompt);
        let fields = Map::from_iter([("prompt".to_owned(), json!(text))]);
        // The prompt of a subagent is not the user's.
        let answer = match &self.origin.agent_id {
            Some(_) => AgentHookAnswer::default(),
            None => {
                let answer = self.run_hooks_until(AgentHookEvent::UserPromptSubmit, fields, cancel).await;
                answer.ok_or(TurnEnding::Interrupted { in_tools: false })?
            }
        };
        if let Some(reason) = answer.stop.or(answer.block) {
            return Err(TurnEnding::HookStopped(format!("a hook blocked the prompt: {reason}")));
        }
        content.extend(answer.context.map(text_block));
        let message = ConversationMessage::user(content);
        self.observe(&AgentEvent::Prompted { id: id.to_owned(), message: message.clone() });
        self.lock_conversation().push(message);
        Ok(())
    }

    /// Adds an answer to the conversation, waits for its calls, and says how it goes on.
    async fn take_answer(
        &self,
        answer: ModelAnswer,
        state: &mut TurnState,
        cancel: &CancellationToken,
    ) -> NextStep {
        state.usage = state.usage + answer.usage;
        *self.context_usage.lock().unwrap_or_else(PoisonError::into_inner) = answer.usage;
        state.text = answer.text();
        let (stop, broken) = (answer.stop.clone(), answer.broken.clone());
        state.stop_reason = stop.as_ref().map(|(_, words)| words.clone());
        let blocks: Vec<Value> = answer.blocks.iter().map(ModelBlock::to_value).collect();
        if !blocks.is_empty() {
            self.lock_conversation().push(ConversationMessage::assistant(blocks));
        }
        let has_calls = !answer.calls.is_empty();
        if let Some(reason) = self.finish_calls(answer, state).await {
            return NextStep::End(TurnEnding::HookStopped(reason));
        }
        if cancel.is_cancelled() {
            return NextStep::End(TurnEnding::Interrupted { in_tools: has_calls });
        }
        if let Some(output) = self.session.state::<StructuredOutputSlot>().take() {
            state.structured_output = Some(output);
            return NextStep::End(TurnEnding::Completed);
        }
        let reason = stop.map(|(reason, _)| reason);
        if let Some(error) = &broken {
            return self.continue_broken_answer(state, has_calls, error);
        }
        match reason {
            Some(StopReason::MaxTokens) => {
                let note =
                    "(your answer reached its limit in tokens; go on from where it ended, in smaller parts)";
                self.continue_cut_answer(state, has_calls, note.to_owned())
            }
            Some(StopReason::ContextFull) => {
                let message = "the conversation fills the context window";
                self.make_room(ModelError::new(ModelErrorKind::ContextFull, message), state, cancel).await
            }
            Some(StopReason::Refused) => NextStep::End(TurnEnding::Completed),
            Some(StopReason::Pause) => self.continue_paused_answer(state),
            Some(StopReason::Done | StopReason::ToolUse) | None if has_calls => {
                state.cut_answers = 0;
                NextStep::Request
            }
            Some(StopReason::Done | StopReason::ToolUse) | None => {
                let agents = BackgroundAgents::of(&self.session);
                match agents.wait_for_message(self.origin.agent_id.as_deref(), cancel).await {
                    true => NextStep::Request,
                    false => self.end_or_go_on(state, cancel).await,
                }
            }
        }
    }

    /// Adds what other agents have sent to the conversation.
    fn read_messages(&self) {
        let messages = BackgroundAgents::of(&self.session).take_messages(self.origin.agent_id.as_deref());
        if messages.is_empty() {
            return;
        }
        self.add_message(messages.into_iter().map(text_block).collect());
    }

    /// Adds a text to the conversation that no user wrote.
    fn tell_model(&self, text: String) {
        self.add_message(vec![text_block(text)]);
    }

    /// Adds a message to the conversation and to the transcript.
    fn add_message(&self, content: Vec<Value>) {
        let message = ConversationMessage::user(content);
        self.observe(&AgentEvent::Messaged(message.clone()));
        self.lock_conversation().push(message);
    }

    /// Waits for the calls of an answer and adds their results, in the order of the calls. Gives the reason of a hook
    /// that stops the agent.
    async fn finish_calls(&self, answer: ModelAnswer, state: &mut TurnState) -> Option<String> {
        if answer.calls.is_empty() {
            return None;
        }
        let cwd = self.session.workspace().cwd.clone();
        let outcomes = answer.batch.finish().await;
        let mut stop = None;
        let mut results = Vec::with_capacity(outcomes.len());
        for (call, outcome) in answer.calls.into_iter().zip(outcomes) {
            let block = anthropic_result(&CallId::from(call.id.as_str()), &outcome.result);
            let input = match serde_json::from_str(&call.input) {
                Ok(Value::Object(map)) => map,
                Ok(_) | Err(_) => Map::new(),
            };
            state.tool_uses += 1;
            if is_denied(&outcome) {
                state.denials.push(DeniedCall {
                    tool_name: call.name.clone(),
                    tool_use_id: call.id.clone(),
                    tool_input: input.clone(),
                });
            }
            stop = stop.or_else(|| outcome.stop.clone());
            results.push(block.clone());
            self.observe(&AgentEvent::CallFinished(Box::new(FinishedAgentCall {
                id: call.id,
                name: call.name,
                input,
                outcome,
                block,
            })));
        }
        self.lock_conversation().push(ConversationMessage::user(results));
        self.report_cwd_change(&cwd).await;
        stop
    }

    /// Asks for the rest of an answer that broke off. A turn that a service cut off for good has not succeeded.
    fn continue_broken_answer(&self, state: &mut TurnState, has_calls: bool, error: &ModelError) -> NextStep {
        let note = format!("(the connection broke while you were writing: {error}; go on from here)");
        match self.continue_cut_answer(state, has_calls, note) {
            NextStep::Request => NextStep::Request,
            NextStep::End(_) => NextStep::End(TurnEnding::RequestFailed(error.clone())),
        }
    }

    /// Asks for the rest of an answer that was cut, a bounded number of times.
    fn continue_cut_answer(&self, state: &mut TurnState, has_calls: bool, note: String) -> NextStep {
        state.cut_answers += 1;
        if state.cut_answers > MAX_CUT_ANSWERS {
            self.observe(&AgentEvent::Noticed(format!(
                "the answer was cut {MAX_CUT_ANSWERS} times in a row, so the turn ends"
            )));
            return NextStep::End(TurnEnding::Completed);
        }
        if has_calls {
            state.cut_answers = 0;
        }
        self.tell_model(note);
        NextStep::Request
    }

    /// A pause wants the answer back unchanged; it counts as a cut one, so that it cannot go on for ever.
    fn continue_paused_answer(&self, state: &mut TurnState) -> NextStep {
        state.cut_answers += 1;
        if state.cut_answers > MAX_CUT_ANSWERS * 4 {
            return NextStep::End(TurnEnding::Completed);
        }
        NextStep::Request
    }

    /// Runs the hooks for the end of a turn, which may keep the model going.
    async fn end_or_go_on(&self, state: &mut TurnState, cancel: &CancellationToken) -> NextStep {
        let event = match &self.origin.agent_id {
            Some(_) => AgentHookEvent::SubagentStop,
            None => AgentHookEvent::Stop,
        };
        let mut fields = Map::from_iter([
            ("stop_hook_active".to_owned(), json!(state.stop_blocks > 0)),
            ("last_assistant_message".to_owned(), json!(state.text)),
        ]);
        if let Some(agent_id) = &self.origin.agent_id {
            let path = self.session.state::<TranscriptPath>().of_agent(agent_id);
            let path = path.map_or_else(String::new, |path| path.to_string());
            fields.insert("agent_transcript_path".to_owned(), json!(path));
        }
        let Some(answer) = self.run_hooks_until(event, fields, cancel).await else {
            return NextStep::End(TurnEnding::Interrupted { in_tools: false });
        };
        match answer.block.filter(|_| answer.stop.is_none() && state.stop_blocks < MAX_STOP_BLOCKS) {
            Some(reason) => {
                state.stop_blocks += 1;
                self.tell_model(reason);
                NextStep::Request
            }
            None if self.settings().output_schema.is_some() => self.ask_for_output(state),
            None => NextStep::End(TurnEnding::Completed),
        }
    }

    /// The model ended without the output that was asked for: it is asked again, a bounded number of times.
    fn ask_for_output(&self, state: &mut TurnState) -> NextStep {
        state.output_requests += 1;
        if state.output_requests > MAX_OUTPUT_REQUESTS {
            return NextStep::End(TurnEnding::StructuredOutputFailed);
        }
        let text =
            format!("Call the tool `{STRUCTURED_OUTPUT_TOOL}` now, with your final output in its fields.");
        self.tell_model(text);
        NextStep::Request
    }

    /// Notifies every observer.
    pub(crate) fn observe(&self, event: &AgentEvent) {
        for observer in &self.observers {
            observer.observe(&self.origin, event);
        }
    }

    /// The conversation; a panic of another thread cannot leave a message half written.
    pub(crate) fn lock_conversation(&self) -> MutexGuard<'_, Vec<ConversationMessage>> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings, to read or change.
    fn lock_settings(&self) -> MutexGuard<'_, AgentSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for AgentLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentLoop").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Whether policy, a mode or an approver refused a call.
fn is_denied(outcome: &CallOutcome) -> bool {
    matches!(outcome.record.outcome, OutcomeRecord::Refused { stage: Stage::Judge | Stage::Settle, .. })
}

/// A fresh id for a message.
pub fn new_message_id() -> String {
    toolgate_files::generate_uuid()
}
