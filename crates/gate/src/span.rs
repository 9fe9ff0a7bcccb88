//! `tracing` spans: one for each call, and in it one for each stage.
//!
//! Without a subscriber a span costs a load and a branch.
//! Inputs and outputs are in no span: what may be stored of them is in the record.

use toolgate_proto::{OutcomeRecord, SessionId, Stage, ToolCall};
use tracing::field::Empty;
use tracing::{Span, info_span};

/// The span of a call.
pub(crate) fn call_span(call: &ToolCall, session: &SessionId) -> Span {
    info_span!(
        "execute_tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name.as_str(),
        gen_ai.tool.call.id = call.id.as_str(),
        gen_ai.conversation.id = session.as_str(),
        toolgate.verdict = Empty,
        error.r#type = Empty,
    )
}

/// The span of one stage of a call.
pub(crate) fn stage_span(call: &Span, stage: Stage) -> Span {
    match stage {
        Stage::Resolve => info_span!(parent: call, "resolve"),
        Stage::Validate => info_span!(parent: call, "validate"),
        Stage::Screen => info_span!(parent: call, "screen"),
        Stage::Judge => info_span!(parent: call, "judge"),
        Stage::Settle => info_span!(parent: call, "settle"),
        Stage::Guard => info_span!(parent: call, "guard"),
        Stage::Run => info_span!(parent: call, "run"),
        Stage::Finish => info_span!(parent: call, "finish"),
    }
}

/// Notes how the call ended.
pub(crate) fn record_end(call: &Span, verdict: Option<&str>, outcome: &OutcomeRecord) {
    if let Some(verdict) = verdict {
        call.record("toolgate.verdict", verdict);
    }
    if let Some(code) = outcome.code() {
        call.record("error.type", code.info().kind);
    }
}
