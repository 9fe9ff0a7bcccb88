//! The record of one call while it is made: stages and their times, what hooks and approvers said, and what else the
//! call leaves behind when it is over.

use crate::call_context::PipelineContext;
use crate::call_options::CallOutcome;
use crate::event_bus::EventBus;
use crate::hook::HookAnswer;
use crate::ledger::{redact, sha256_hex};
use crate::session::Session;
use crate::span::{call_span, record_end, stage_span};
use crate::stage::finish::HookSubject;
use crate::stage::judge::JudgedCall;
use crate::stage::validate::ValidatedCall;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use toolgate_proto::{
    ApprovalRecord, CallAnomaly, CallRecord, CallResult, Code, Event, OutcomeRecord, Refusal, Stage,
    StageRecord, ToolCall, ToolIdentity, UncoveredFile,
};
use tracing::Span;

/// Collects what becomes the record. If it is dropped before it is closed (the caller went away, or a sink panicked),
/// it closes itself: there is always exactly one record.
pub(crate) struct RecordBuilder {
    event_bus: EventBus,
    record: CallRecord,
    closed: bool,
    /// Where the whole result is, if it was too large.
    spilled: Option<String>,
    started: Instant,
    stage: Stage,
    stage_started: Instant,
    span: Span,
    stage_span: Span,
    /// What hooks want the model to know beside the result.
    hook_context: Vec<String>,
    /// Messages for the user.
    messages: Vec<String>,
    /// Why a hook wants the agent to stop.
    stop: Option<String>,
    /// How long the tool ran.
    run_time: Option<Duration>,
    /// What hooks after the run are shown. Set once the input is valid.
    hook_subject: Option<HookSubject>,
    /// Commands that the call wants the host to run.
    queued_commands: Vec<String>,
    /// Whether any hook is configured: only then the input is kept for those after the run.
    keeps_input: bool,
    /// What the call was given, where a sink wants the inputs and results of calls.
    exchange: Option<CallExchange>,
}

/// What a call was given: the text of the model, and the input that counted in the end.
struct CallExchange {
    given: String,
    input: Option<Map<String, Value>>,
}

impl RecordBuilder {
    /// Opens the record of a call and publishes that it began.
    pub(crate) fn open(context: &PipelineContext<'_>) -> Self {
        let (call, session) = (context.call, &context.call_context.session);
        let mut record = Self::new(context.gate.event_bus.clone(), session, call);
        record.keeps_input = !context.snapshot.hooks.is_empty();
        record
    }

    /// The same where the call has not begun to be processed.
    pub(crate) fn new(event_bus: EventBus, session: &Session, call: &ToolCall) -> Self {
        event_bus.publish(|| Event::Opened {
            call: call.id.clone(),
            session: session.id().clone(),
            tool: call.name.clone(),
        });
        let record = blank_record(session, call);
        let exchange =
            event_bus.keeps_results().then(|| CallExchange { given: call.input.clone(), input: None });
        let now = Instant::now();
        let span = call_span(call, session.id());
        let stage_span = stage_span(&span, Stage::Resolve);
        Self {
            event_bus,
            record,
            closed: false,
            spilled: None,
            started: now,
            stage: Stage::Resolve,
            stage_started: now,
            span,
            stage_span,
            hook_context: Vec::new(),
            messages: Vec::new(),
            stop: None,
            run_time: None,
            hook_subject: None,
            queued_commands: Vec::new(),
            keeps_input: false,
            exchange,
        }
    }

    /// The record of a call that could not be followed. No sink gets it.
    pub(crate) fn unsent_record(session: &Session, call: &ToolCall, refusal: &Refusal) -> CallRecord {
        let mut record = blank_record(session, call);
        record.outcome = OutcomeRecord::of_refusal(refusal);
        record
    }

    /// The stage that the call is in.
    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Marks the end of the current stage and the start of the next.
    pub(crate) fn enter(&mut self, next: Stage) {
        let now = Instant::now();
        let mark = StageRecord::new(self.stage, micros(now - self.stage_started));
        self.record.stages.push(mark);
        let (call, stage) = (&self.record.call, self.stage);
        self.event_bus.publish(|| Event::Passed { call: call.clone(), stage });
        self.stage = next;
        self.stage_started = now;
        self.stage_span = stage_span(&self.span, next);
    }

    /// The span of the whole call.
    pub(crate) fn call_span(&self) -> Span {
        self.span.clone()
    }

    /// The span of the stage that the call is in.
    pub(crate) fn stage_span(&self) -> Span {
        self.stage_span.clone()
    }

    /// Changes the record. Everything that is recorded goes through here.
    pub(crate) fn update_record(&mut self, write: impl FnOnce(&mut CallRecord)) {
        write(&mut self.record);
    }

    /// Records the tool that was resolved.
    pub(crate) fn set_tool(&mut self, identity: &ToolIdentity) {
        self.update_record(|record| {
            record.tool = Some(identity.name.clone());
            record.source = Some(identity.source.clone());
        });
    }

    /// The input as it stands: of the model, or rewritten by a hook or an approver.
    pub(crate) fn set_input(&mut self, valid: &ValidatedCall) {
        self.update_record(|record| {
            let before = std::mem::replace(&mut record.input, redact(valid.input()));
            // The first input is the model's; what follows are revisions of it.
            if !before.is_null() && record.original_input.is_none() && before != record.input {
                record.original_input = Some(before);
            }
        });
        if let Some(exchange) = &mut self.exchange {
            exchange.input = Some(valid.input().clone());
        }
        self.hook_subject = Some(HookSubject::new(valid, self.keeps_input));
    }

    /// What the call would do, inferred effects of its commands included, and what policy decided.
    pub(crate) fn set_judgement(&mut self, judged: &JudgedCall) {
        self.update_record(|record| {
            record.effects.clone_from(&judged.intent.effects);
            record.effects.extend(judged.judgement.inferred.iter().cloned());
            record.judged = Some(judged.to_record());
        });
    }

    /// Takes what a hook says beside its decision.
    pub(crate) fn apply_hook_answer(&mut self, hook: &str, answer: &HookAnswer) {
        self.hook_context.extend(answer.additional_context.clone());
        if let Some(text) = &answer.system_message {
            self.messages.push(text.clone());
            let (call, hook, text) = (&self.record.call, hook.to_owned(), text.clone());
            self.event_bus.publish(|| Event::HookSaid { call: call.clone(), hook, text });
        }
        if let Some(reason) = &answer.stop {
            self.stop.get_or_insert(format!("hook `{hook}`: {reason}"));
        }
    }

    /// Adds text that the model reads beside the result.
    pub(crate) fn add_hook_context(&mut self, text: String) {
        self.hook_context.push(text);
    }

    /// Text that hooks add for the model.
    pub(crate) fn take_hook_context(&mut self) -> Vec<String> {
        std::mem::take(&mut self.hook_context)
    }

    /// What PostToolUse hooks see of the call; `None` if it never got that far.
    pub(crate) fn take_hook_subject(&mut self) -> Option<HookSubject> {
        self.hook_subject.take()
    }

    /// Adds a message for the user.
    pub(crate) fn add_message(&mut self, text: String) {
        self.messages.push(text);
    }

    /// Adds a command that the call wants the host to run.
    pub(crate) fn queue_command(&mut self, command: String) {
        self.queued_commands.push(command);
    }

    /// Records how long the tool ran.
    pub(crate) fn set_run_time(&mut self, time: Duration) {
        self.run_time = Some(time);
    }

    /// How long the tool ran, where it did.
    pub(crate) fn run_time(&self) -> Option<Duration> {
        self.run_time
    }

    /// Records what an approver answered.
    pub(crate) fn set_approval(&mut self, approval: ApprovalRecord) {
        self.update_record(|record| record.approval = Some(approval));
    }

    /// Records which rules the answer added, and the file that they were written to.
    pub(crate) fn set_added_rules(&mut self, rules: Vec<String>, file: Option<String>) {
        self.update_record(|record| {
            if let Some(approval) = &mut record.approval {
                (approval.rules, approval.rules_file) = (rules, file);
            }
        });
    }

    /// Records that the call changed files in a way that can be undone, and files for which it cannot.
    pub(crate) fn note_journalled(&mut self, is_journalled: bool, others: Vec<UncoveredFile>) {
        if is_journalled || !others.is_empty() {
            self.update_record(|record| (record.journalled, record.not_journalled) = (is_journalled, others));
        }
    }

    /// Records what the sandbox refused although the judgement did not foresee it.
    pub(crate) fn note_anomalies(&mut self, anomalies: Vec<CallAnomaly>) {
        if !anomalies.is_empty() {
            self.update_record(|record| record.anomalies = anomalies);
        }
    }

    /// Records the file with the whole output.
    pub(crate) fn set_spill_path(&mut self, path: String) {
        self.spilled = Some(path);
    }

    /// Ends the call: its one record goes to every sink.
    pub(crate) fn close(mut self, result: CallResult) -> CallOutcome {
        let outcome = match &result {
            Ok(output) => {
                let bytes = output.content.iter().map(toolgate_proto::OutputBlock::content_bytes).sum();
                OutcomeRecord::Done { bytes, spilled: self.spilled.take() }
            }
            Err(refusal) => OutcomeRecord::of_refusal(refusal),
        };
        let record = self.finish(outcome);
        self.publish_result(&result);
        CallOutcome {
            result,
            record,
            stop: self.stop.take(),
            messages: std::mem::take(&mut self.messages),
            queued_commands: std::mem::take(&mut self.queued_commands),
        }
    }

    /// Hands the result to the sinks that want it.
    fn publish_result(&mut self, result: &CallResult) {
        if let Some(CallExchange { given, input }) = self.exchange.take() {
            let (call, result) = (self.record.call.clone(), Box::new(result.clone()));
            self.event_bus.publish_result(&Event::Returned { call, given, input, result });
        }
    }

    /// Completes the record and hands it to every sink, the first time; later times it only gives it back.
    fn finish(&mut self, outcome: OutcomeRecord) -> CallRecord {
        if self.closed {
            return self.record.clone();
        }
        self.closed = true;
        let now = Instant::now();
        let record = &mut self.record;
        record.stages.push(StageRecord::new(self.stage, micros(now - self.stage_started)));
        record.micros = micros(now - self.started);
        record_end(&self.span, record.judged.as_ref().map(|judged| judged.verdict.as_str()), &outcome);
        self.stage_span = Span::none();
        record.outcome = outcome;
        for sink in self.event_bus.sinks.iter() {
            sink.record(record);
        }
        self.event_bus.publish(|| Event::Closed { record: Box::new(record.clone()) });
        record.clone()
    }
}

/// The record of a call of which nothing is known yet.
fn blank_record(session: &Session, call: &ToolCall) -> CallRecord {
    let input_sha256 = sha256_hex(call.input.as_bytes());
    let (id, principal) = (session.id().clone(), session.principal().clone());
    let mut record = CallRecord::new(id, principal, call, input_sha256, toolgate_files::now_millis());
    record.project = session.workspace().roots.first().cloned();
    record.parent.clone_from(&session.limits().parent_call);
    record
}

impl Drop for RecordBuilder {
    fn drop(&mut self) {
        if !self.closed {
            let refusal = Refusal::new(Code::Cancelled, "the caller went away before the call was over")
                .at_stage(self.stage);
            let _ = self.finish(OutcomeRecord::of_refusal(&refusal));
            self.publish_result(&Err(refusal));
        }
    }
}

/// Microseconds, saturating.
fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
