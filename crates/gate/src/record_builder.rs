//! The trail of one call: what it passed, how long that took, and the one record it ends in.

use crate::ledger::{redact, sha256_hex};
use crate::session::Session;
use crate::sink::Sink;
use crate::span::{call_span, record_end, stage_span};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::broadcast;
use toolgate_proto::{
    ApprovalRecord, CallAnomaly, CallRecord, CallResult, Code, Effect, Event, OutcomeRecord, Refusal, Stage,
    StageRecord, ToolCall, ToolIdentity, VerdictRecord,
};
use tracing::Span;

/// A watcher that is further behind misses the oldest events.
const MAX_BUFFERED_EVENTS: usize = 1024;

/// Where records and events go.
#[derive(Clone)]
pub(crate) struct EventBus {
    pub(crate) sinks: Arc<[Arc<dyn Sink>]>,
    /// Made when somebody first watches: it is large, and mostly nobody does.
    events: Arc<OnceLock<broadcast::Sender<Event>>>,
}

impl std::fmt::Debug for EventBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audience").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

impl EventBus {
    pub(crate) fn new(sinks: Vec<Arc<dyn Sink>>) -> Self {
        Self { sinks: sinks.into(), events: Arc::default() }
    }

    /// Hears of events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.get_or_init(|| broadcast::Sender::new(MAX_BUFFERED_EVENTS)).subscribe()
    }

    /// Whether anybody wants to hear of events.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.active_sender().is_some() || self.sinks.iter().any(|sink| sink.accepts_events())
    }

    pub(crate) fn publish(&self, event: impl FnOnce() -> Event) {
        if self.has_subscribers() {
            let event = event();
            for sink in self.sinks.iter().filter(|sink| sink.accepts_events()) {
                sink.handle_event(&event);
            }
            if let Some(events) = self.active_sender() {
                // An error means that the last watcher has just gone.
                let _ = events.send(event);
            }
        }
    }

    fn active_sender(&self) -> Option<&broadcast::Sender<Event>> {
        self.events.get().filter(|events| events.receiver_count() > 0)
    }
}

/// Gathers what becomes the record. If it is dropped before it is closed (the caller went away, or something
/// panicked beyond reach), it closes itself: there is always exactly one record.
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
}

impl RecordBuilder {
    pub(crate) fn open(event_bus: EventBus, session: &Session, call: &ToolCall) -> Self {
        event_bus.publish(|| Event::Opened {
            call: call.id.clone(),
            session: session.id().clone(),
            tool: call.name.clone(),
        });
        let record = blank_record(session, call);
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
        }
    }

    /// The record of a call that could not be followed. No sink gets it.
    pub(crate) fn unsent_record(session: &Session, call: &ToolCall, refusal: &Refusal) -> CallRecord {
        let mut record = blank_record(session, call);
        record.outcome = refused_outcome(refusal);
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

    /// The span of the whole call, and that of the stage it is in.
    pub(crate) fn spans(&self) -> (&Span, &Span) {
        (&self.span, &self.stage_span)
    }

    pub(crate) fn update_record(&mut self, write: impl FnOnce(&mut CallRecord)) {
        write(&mut self.record);
    }

    pub(crate) fn set_tool(&mut self, identity: &ToolIdentity) {
        self.update_record(|record| {
            record.tool = Some(identity.name.clone());
            record.source = Some(identity.source.clone());
        });
    }

    pub(crate) fn set_input(&mut self, input: &Map<String, Value>) {
        self.update_record(|record| record.input = redact(input));
    }

    pub(crate) fn set_effects(&mut self, effects: &[Effect]) {
        self.update_record(|record| record.effects = effects.to_vec());
    }

    pub(crate) fn set_judgement(&mut self, judged: VerdictRecord) {
        self.update_record(|record| record.judged = Some(judged));
    }

    pub(crate) fn set_approval(&mut self, approval: ApprovalRecord) {
        self.update_record(|record| record.approval = Some(approval));
    }

    pub(crate) fn note_anomalies(&mut self, anomalies: Vec<CallAnomaly>) {
        if !anomalies.is_empty() {
            self.update_record(|record| record.anomalies = anomalies);
        }
    }

    pub(crate) fn set_spill_path(&mut self, path: String) {
        self.spilled = Some(path);
    }

    /// Ends the trail with its one record.
    pub(crate) fn close(mut self, result: &CallResult) -> CallRecord {
        let outcome = match result {
            Ok(output) => {
                let bytes = output.content.iter().map(block_bytes).sum();
                OutcomeRecord::Done { bytes, spilled: self.spilled.take() }
            }
            Err(refusal) => refused_outcome(refusal),
        };
        self.finish(outcome)
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
    let (session, principal) = (session.id().clone(), session.principal().clone());
    let input_sha256 = sha256_hex(call.input.as_bytes());
    CallRecord::new(session, principal, call, input_sha256, toolgate_files::now_millis())
}

impl Drop for RecordBuilder {
    fn drop(&mut self) {
        if !self.closed {
            let refusal = Refusal::new(Code::Cancelled, "the caller went away before the call was over");
            let _ = self.finish(refused_outcome(&refusal.at_stage(self.stage)));
        }
    }
}

fn refused_outcome(refusal: &Refusal) -> OutcomeRecord {
    OutcomeRecord::Refused { code: refusal.code, stage: refusal.stage, reason: refusal.reason.clone() }
}

fn block_bytes(block: &toolgate_proto::OutputBlock) -> u64 {
    use toolgate_proto::{OutputBlock, ResourceBody};
    let bytes = match block {
        OutputBlock::Text { text } => text.len(),
        OutputBlock::Image { data, .. } | OutputBlock::Audio { data, .. } => data.len(),
        OutputBlock::Embedded { body: ResourceBody::Text { text }, .. } => text.len(),
        OutputBlock::Embedded { body: ResourceBody::Blob { blob }, .. } => blob.len(),
        OutputBlock::Resource { uri, .. } => uri.len(),
    };
    bytes as u64
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
