//! Extension points behind an [`Arc`]: a program that keeps a sink or an approver for itself passes a clone of the `Arc`
//! to the builder, which takes every extension point by value.

use crate::approve::{ApprovalAnswer, ApprovalRequest, Approver};
use crate::hook::{Hook, HookAnswer, HookBatch, HookCall, HookEvent, HookFailure, OnFailure};
use crate::registry::RegisterError;
use crate::sink::Sink;
use crate::source::{Source, SourceTools};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use toolgate_proto::{CallRecord, Event, SourceId, ToolIdentity};

impl<S: Source + ?Sized> Source for Arc<S> {
    fn id(&self) -> SourceId {
        (**self).id()
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        (**self).tools(tools)
    }

    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        (**self).start(tools)
    }

    fn refresh<'a>(&'a self, tools: &'a SourceTools) -> BoxFuture<'a, Result<(), RegisterError>> {
        (**self).refresh(tools)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        (**self).close()
    }
}

impl<H: Hook + ?Sized> Hook for Arc<H> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn handles(&self, moment: HookEvent, tool: &ToolIdentity) -> bool {
        (**self).handles(moment, tool)
    }

    fn on_failure(&self) -> OnFailure {
        (**self).on_failure()
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        (**self).handle_call(call)
    }

    fn handles_batches(&self) -> bool {
        (**self).handles_batches()
    }

    fn handle_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        (**self).handle_batch(batch)
    }
}

impl<A: Approver + ?Sized> Approver for Arc<A> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        (**self).ask(request)
    }
}

impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn record(&self, record: &CallRecord) {
        (**self).record(record);
    }

    fn accepts_events(&self) -> bool {
        (**self).accepts_events()
    }

    fn handle_event(&self, event: &Event) {
        (**self).handle_event(event);
    }
}
