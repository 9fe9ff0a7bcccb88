//! Long calls as tasks.
//!
//! A client that supports the tasks extension does not wait for a long call: after a moment it gets the id of a
//! task instead of a result, and polls.
//! Which calls are long is seen, not declared: every tool may turn out to be slow, and a short call never becomes a
//! task.
//! A call that asks something once it is a task asks through the task.

use super::GateServer;
use super::conversation::{ClientConversation, OpenConversations, ProtocolEra};
use super::progress::McpProgressReporter;
use super::{find_reservation, mcp_result};
use rmcp::model::{CreateTaskResult, GetTaskResult, UpdateTaskParams};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallOptions, CallOutcome};
use toolgate_proto::{Code, ToolCall};

/// A call that takes longer than this becomes a task.
const TASK_PROMOTION_DELAY: Duration = Duration::from_millis(800);
/// How long a task may take, and how long its result is kept.
const TASK_TTL: Duration = Duration::from_secs(3_600);
/// How often a client should poll.
const TASK_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// With more tasks than this under way, calls wait as they do for clients that know no tasks.
const MAX_RUNNING_TASKS: usize = 64;

/// What became of a call.
pub(super) enum McpCallDisposition {
    /// It is over.
    Finished(Box<CallOutcome>),
    /// It goes on as a task.
    Task(Box<CreateTaskResult>),
}

/// The calls that became tasks.
#[derive(Default)]
pub(super) struct McpTasks(TaskManager);

impl McpTasks {
    /// Returns the status of a task, with the result once it is over, for a polling client.
    pub(super) fn get(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        self.0.get_task(id).map(GetTaskResult::new)
    }

    /// Delivers the client's answers to the questions of a task.
    pub(super) fn update(&self, params: UpdateTaskParams) -> Result<(), ErrorData> {
        self.0.update_task(&params.task_id, params.input_responses)
    }

    /// Cancels a task, and through it the call.
    pub(super) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.0.cancel_task(id)
    }

    /// Tells whether another call may become a task.
    fn has_room(&self) -> bool {
        self.0.running_task_count() < MAX_RUNNING_TASKS
    }

    /// Hands a running call over to a task. From here on its questions go through the task, because the request that
    /// started it is answered.
    fn promote_to_task(
        &self,
        running: JoinHandle<CallOutcome>,
        cancel: CancellationToken,
        conversation: Arc<ClientConversation>,
        server: GateServer,
    ) -> CreateTaskResult {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new()
            .with_ttl_ms(millis(TASK_TTL))
            .with_poll_interval_ms(millis(TASK_POLL_INTERVAL));
        let task = self.0.spawn(options, |context| {
            conversation.attach_task(context.clone());
            Box::pin(wait_for_call(running, cancel, context, server))
        });
        CreateTaskResult::new(task)
    }
}

/// Waits for the call on behalf of the task. Cancelling the task cancels the call.
async fn wait_for_call(
    mut running: JoinHandle<CallOutcome>,
    cancel: CancellationToken,
    context: TaskContext,
    server: GateServer,
) -> Result<rmcp::model::CallToolResult, TaskExit> {
    let _given_up = cancel.clone().drop_guard();
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = context.cancelled() => {
            cancel.cancel();
            running.await
        }
    };
    let internal = |why: String| TaskExit::Error(ErrorData::internal_error(why, None));
    let closed = ended.map_err(|error| internal(error.to_string()))?;
    match closed.result {
        Err(refusal) if refusal.code == Code::Cancelled => Err(TaskExit::Cancelled),
        Err(refusal) if refusal.code == Code::ToolPanicked => Err(internal(refusal.reason)),
        result => mcp_result::to_mcp_result(result, server.structured_content_mode(&closed.record))
            .map_err(TaskExit::Error),
    }
}

impl GateServer {
    /// Makes a call through the gate, and waits for it as long as this client should wait.
    pub(super) async fn call(
        &self,
        call: ToolCall,
        conversation: Arc<ClientConversation>,
        context: &RequestContext<RoleServer>,
    ) -> McpCallDisposition {
        let knows_tasks = conversation.era() == ProtocolEra::Modern
            && context.client_capabilities().is_some_and(|client| client.supports_tasks());
        if !knows_tasks || !self.inner.tasks.has_room() {
            let calling =
                self.call_with_progress(call, Arc::clone(&conversation), context, context.ct.clone());
            return McpCallDisposition::Finished(Box::new(calling.await));
        }
        // The request ends before the task does, and what belongs to the request with it.
        let cancel = CancellationToken::new();
        let (server, inside) = (self.clone(), context.clone());
        let (talk, token) = (Arc::clone(&conversation), cancel.clone());
        let mut running =
            tokio::spawn(async move { server.call_with_progress(call, talk, &inside, token).await });
        let abandoned = cancel.clone().drop_guard();
        let ended = tokio::select! {
            ended = &mut running => Some(ended),
            () = context.ct.cancelled() => {
                cancel.cancel();
                Some((&mut running).await)
            }
            () = tokio::time::sleep(TASK_PROMOTION_DELAY) => None,
        };
        abandoned.disarm();
        match ended {
            Some(Ok(closed)) => McpCallDisposition::Finished(Box::new(closed)),
            // The gate catches what tools do; this is a runtime that goes away.
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => McpCallDisposition::Task(Box::new(self.inner.tasks.promote_to_task(
                running,
                cancel,
                conversation,
                self.clone(),
            ))),
        }
    }

    /// One call, with progress notifications.
    async fn call_with_progress(
        &self,
        call: ToolCall,
        conversation: Arc<ClientConversation>,
        context: &RequestContext<RoleServer>,
        cancel: CancellationToken,
    ) -> CallOutcome {
        let reporter = context.meta.get_progress_token().map(|token| McpProgressReporter {
            events: self.inner.gate.events(),
            call: call.id.clone(),
            token,
            peer: context.peer.clone(),
            last_progress: 0.0,
        });
        let options = CallOptions::default().with_cancel(cancel);
        let _registered = OpenConversations::register(&self.inner.session, &call.id, conversation);
        let calling = match find_reservation(context) {
            Some(reservation) => reservation.submit(call, options),
            None => self.inner.scheduler.submit(call, options),
        };
        match reporter {
            Some(reporter) => {
                let over = CancellationToken::new();
                let calling = async {
                    let closed = calling.await;
                    over.cancel();
                    closed
                };
                tokio::join!(calling, reporter.run(&over)).0
            }
            None => calling.await,
        }
    }
}
