//! In-flight calls at one server, and the requests and notifications that it sends to us as its client.
#![expect(deprecated, reason = "legacy servers still ask for roots; the library marks that as going away")]

use crate::protocol_value::ClientInputRequest;
use crate::server::ClientConversation;
use futures_util::future::BoxFuture;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, Implementation, InputRequest, ListRootsResult, ProgressNotificationParam,
    ProgressToken, Root, RootsCapabilities, SamplingCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleClient};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use toolgate_gate::CallProgress;
use toolgate_proto::AbsPath;

/// Answers requests of servers where no client can: implemented by a program that embeds this crate.
pub trait ServerRequestHandler: Send + Sync + std::fmt::Debug {
    /// Whether models can be asked as well as people. Legacy servers, and modern ones in rounds.
    fn supports_sampling(&self) -> bool {
        false
    }

    /// Answers, in the shape of the result of that request; none to decline.
    fn answer<'a>(&'a self, server: &'a str, request: &'a ClientInputRequest)
    -> BoxFuture<'a, Option<Value>>;
}

/// The in-flight calls of one server, and its notifications. Shared with the handler that the library owns.
#[derive(Debug, Default)]
pub(crate) struct InFlightCalls {
    /// The name of the server, passed to the request handler.
    server: String,
    /// The roots that the server may list; empty if its entry does not ask for them.
    roots: Vec<AbsPath>,
    /// The fallback for requests that belong to no single client.
    pub(crate) request_handler: Option<Arc<dyn ServerRequestHandler>>,
    /// Wakes the maintenance task of the server, which lists the tools again.
    pub(crate) tools_changed: Notify,
    /// The calls by progress token, which is what progress notifications carry.
    calls: Mutex<HashMap<ProgressToken, McpInFlightCall>>,
}

/// The destinations of what a server sends during one call.
#[derive(Debug)]
struct McpInFlightCall {
    /// The progress of the call at the gate.
    progress: CallProgress,
    /// The client that made the call; `None` if it did not come over MCP.
    conversation: Option<Arc<ClientConversation>>,
}

impl InFlightCalls {
    /// Creates the state of a new connection, without calls.
    pub(crate) fn new(
        server: &str,
        roots: Vec<AbsPath>,
        request_handler: Option<Arc<dyn ServerRequestHandler>>,
    ) -> Self {
        Self { server: server.to_owned(), roots, request_handler, ..Self::default() }
    }

    /// Asks the client of the only call in flight, or the request handler.
    async fn ask(&self, request: InputRequest) -> Option<Value> {
        let request = ClientInputRequest(request);
        if let Some(conversation) = self.only_conversation() {
            return conversation.ask(request).await.ok();
        }
        self.request_handler.as_ref()?.answer(&self.server, &request).await
    }

    /// Tracks a call until the returned guard is dropped.
    pub(crate) fn track_call(
        self: &Arc<Self>,
        token: ProgressToken,
        progress: CallProgress,
        conversation: Option<Arc<ClientConversation>>,
    ) -> McpInFlightGuard {
        self.lock_calls().insert(token.clone(), McpInFlightCall { progress, conversation });
        McpInFlightGuard { in_flight: Arc::clone(self), token }
    }

    /// The client that a request of the server is for. Legacy servers do not say which call it belongs to; where more than one
    /// could be meant, none is.
    fn only_conversation(&self) -> Option<Arc<ClientConversation>> {
        let under_way = self.lock_calls();
        let mut conversations = under_way.values();
        match (conversations.next(), conversations.next()) {
            (Some(only), None) => only.conversation.clone(),
            _ => None,
        }
    }

    /// Locks the calls; the lock is never held across an await.
    fn lock_calls(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, McpInFlightCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the tracking of a call.
pub(crate) struct McpInFlightGuard {
    /// The table that holds the call.
    in_flight: Arc<InFlightCalls>,
    /// The key of the call in the table.
    token: ProgressToken,
}

impl Drop for McpInFlightGuard {
    fn drop(&mut self) {
        self.in_flight.lock_calls().remove(&self.token);
    }
}

/// What the library calls.
#[derive(Debug, Clone)]
pub(crate) struct McpClientHandler(pub(crate) Arc<InFlightCalls>);

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        if !self.0.roots.is_empty() {
            capabilities.roots = Some(RootsCapabilities::default());
        }
        if self.0.request_handler.as_ref().is_some_and(|answerer| answerer.supports_sampling()) {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        ClientConfig::new(capabilities, Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let question = InputRequest::Elicitation(ElicitRequest::new(request));
        let answer = self.0.ask(question).await;
        Ok(answer.and_then(|answer| serde_json::from_value(answer).ok()).unwrap_or(declined))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let answer = self.0.ask(InputRequest::CreateMessage(CreateMessageRequest::new(params))).await;
        answer
            .and_then(|answer| serde_json::from_value(answer).ok())
            .ok_or_else(|| ErrorData::invalid_request("no client is connected that can answer this", None))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(
            self.0.roots.iter().map(|root| Root::new(format!("file://{root}"))).collect(),
        ))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = match self.0.lock_calls().get(&params.progress_token) {
            Some(under_way) => under_way.progress.clone(),
            None => return,
        };
        // Reports in quick succession are sent together: one line each.
        let said = params.message.map(|said| format!("{said}\n")).unwrap_or_default();
        match params.total.filter(|total| *total > 0.0) {
            Some(total) => progress.report_fraction(params.progress / total, said),
            None => progress.report(said),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }
}
