//! The conversation with the client while one of its calls runs: requests, elicitation, notifications.
//!
//! The two eras differ most here.
//! A legacy client takes requests from the server at any time, so a running call can ask and wait.
//! A modern client takes none: the call must end with what it needs to know, and is made again with the answers and a
//! state that the client stores for us and could have tampered with.
//! A call that became a task is in between: it asks and waits, and the client finds the question when it polls.
//!
//! The conversation belongs to one call. The server registers it under the call's id for as long as the call is in
//! flight; an approver or a tool finds it by [`ClientConversation::of`].

use crate::protocol_value::ClientInputRequest;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, CustomNotification, ElicitRequest, ElicitRequestParams, InputRequest,
    InputRequests, InputResponses, ServerNotification, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, ServiceError};
use rmcp::task_manager::TaskContext;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use toolgate_gate::{CallContext, Session};
use toolgate_proto::{CallId, Code, Refusal};

/// How long a user may take to answer a question of a tool.
const INPUT_TIMEOUT: Duration = Duration::from_secs(300);

/// Which generation of the protocol a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolEra {
    /// 2025-11-25 and older: a connection is opened by `initialize`, and the server may ask.
    Legacy,
    /// 2026-07-28 and newer: every request stands for itself, and the server never asks.
    Modern,
}

/// The state that the client carries between two rounds of one call, sealed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RequestStatePayload {
    /// Good for one use.
    pub(crate) nonce: String,
    /// The input about which approval was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<String>,
    /// The input that was approved in an earlier round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<String>,
    /// State of the tool for the next round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<Value>,
}

/// What the call needs to know before it can go on.
#[derive(Debug, Default)]
pub(crate) struct PendingInputRequests {
    /// The requests by name; the answers come back under the same names.
    pub(crate) requests: InputRequests,
    /// The state that is sealed and sent along.
    pub(crate) carried: RequestStatePayload,
    /// Whether another round is needed. A round may carry state without any request.
    pub(crate) wanted: bool,
    /// What the client would have to be able to do.
    pub(crate) missing: Option<ClientCapabilities>,
}

/// The conversations of the calls that are in flight in one session.
#[derive(Debug, Default)]
pub(crate) struct OpenConversations(Mutex<HashMap<CallId, Arc<ClientConversation>>>);

impl OpenConversations {
    /// Locks the table; entries are inserted and removed whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Arc<ClientConversation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the conversation of a call until the guard is dropped, however the call ends.
    pub(crate) fn register(
        session: &Session,
        call: &CallId,
        conversation: Arc<ClientConversation>,
    ) -> OpenConversationGuard {
        let conversations = session.state::<Self>();
        conversations.lock().insert(call.clone(), conversation);
        OpenConversationGuard { conversations, call: call.clone() }
    }
}

/// Keeps a conversation registered.
pub(crate) struct OpenConversationGuard {
    /// The table of the session.
    conversations: Arc<OpenConversations>,
    /// The key of the conversation in the table.
    call: CallId,
}

impl Drop for OpenConversationGuard {
    fn drop(&mut self) {
        self.conversations.lock().remove(&self.call);
    }
}

/// The connection from one running call to the client that made it.
pub struct ClientConversation {
    /// The era of the client, which decides how it can be asked.
    era: ProtocolEra,
    /// The handle for requests and notifications to the client.
    peer: Peer<RoleServer>,
    /// The capabilities that the client declared; none if it declared nothing.
    capabilities: ClientCapabilities,
    /// The answers that came with this round.
    responses: InputResponses,
    /// The state from the previous round, after its seal was checked.
    pub(crate) request_state: RequestStatePayload,
    /// The requests collected for the next round.
    pub(crate) outgoing: Mutex<PendingInputRequests>,
    /// The task that the call became.
    task: OnceLock<TaskContext>,
    /// The number of the next question of a task, which makes its key unique.
    asked: AtomicU64,
}

impl std::fmt::Debug for ClientConversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConversation").field("era", &self.era).finish_non_exhaustive()
    }
}

impl ClientConversation {
    /// Opens the conversation of one round.
    pub(crate) fn new(
        context: &RequestContext<RoleServer>,
        responses: InputResponses,
        request_state: RequestStatePayload,
    ) -> Self {
        let capabilities = context.client_capabilities().unwrap_or_default();
        Self {
            era: detect_era(context),
            peer: context.peer.clone(),
            capabilities,
            responses,
            request_state,
            outgoing: Mutex::default(),
            task: OnceLock::new(),
            asked: AtomicU64::new(1),
        }
    }

    /// The call goes on as a task.
    pub(crate) fn attach_task(&self, task: TaskContext) {
        // A call becomes a task once.
        let _ = self.task.set(task);
    }

    /// Whether the client can be asked while the call runs.
    pub fn can_ask_inline(&self) -> bool {
        self.era == ProtocolEra::Legacy || self.task.get().is_some()
    }

    /// The conversation with the client that made a call, if the call came over MCP and is in flight.
    pub fn of(context: &CallContext, call: &CallId) -> Option<Arc<Self>> {
        context.session.state::<OpenConversations>().lock().get(context.root_call(call)).cloned()
    }

    /// Which era the client speaks.
    pub fn era(&self) -> ProtocolEra {
        self.era
    }

    /// Whether the client can put this question to its user or its model.
    pub fn can_answer(&self, request: &ClientInputRequest) -> bool {
        match &request.0 {
            InputRequest::Elicitation(ElicitRequest { params, .. }) => {
                let Some(offered) = &self.capabilities.elicitation else { return false };
                match params {
                    // A client that names no form of elicitation means forms: it is the older way to say so.
                    ElicitRequestParams::FormElicitationParams { .. } => {
                        offered.form.is_some() || offered.url.is_none()
                    }
                    ElicitRequestParams::UrlElicitationParams { .. } => offered.url.is_some(),
                    _ => false,
                }
            }
            InputRequest::CreateMessage(_) => self.capabilities.sampling.is_some(),
            InputRequest::ListRoots(_) => self.capabilities.roots.is_some(),
            _ => false,
        }
    }

    /// What the client answered to the request of that name in an earlier round.
    pub fn response(&self, name: &str) -> Option<&Value> {
        self.responses.get(name)
    }

    /// What the tool had put aside in an earlier round.
    pub fn state(&self) -> Option<&Value> {
        self.request_state.tool.as_ref()
    }

    /// Ends this round: the call is to be made again with answers to these. Modern clients only.
    ///
    /// The refusal ends the run; the client never sees it.
    pub fn require_input(
        &self,
        requests: BTreeMap<String, ClientInputRequest>,
        state: Option<Value>,
    ) -> Refusal {
        let mut outgoing = self.outgoing();
        let unable = requests.values().find(|request| !self.can_answer(request));
        outgoing.missing = unable.map(|request| required_capabilities(&request.0));
        outgoing.requests.extend(requests.into_iter().map(|(name, request)| (name, request.0)));
        outgoing.carried.tool = state;
        outgoing.wanted = true;
        Refusal::new(Code::ToolFailed, "the tool needs to know more, and asked the client")
    }

    /// Asks the client and waits: for legacy clients, and for calls that became tasks.
    pub async fn ask(&self, request: ClientInputRequest) -> Result<Value, String> {
        if !self.can_answer(&request) {
            return Err("the client cannot be asked this".to_owned());
        }
        if self.era == ProtocolEra::Modern {
            let Some(task) = self.task.get() else {
                return Err("a client of this era is not asked while a call runs".to_owned());
            };
            let key = format!("question-{}", self.asked.fetch_add(1, Ordering::Relaxed));
            let answer = tokio::time::timeout(INPUT_TIMEOUT, task.request_input(key, request.0)).await;
            return match answer {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) => Err("the task was cancelled".to_owned()),
                Err(_) => Err("no answer in time".to_owned()),
            };
        }
        let request = match request.0 {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err("the client cannot be asked this".to_owned()),
        };
        let options = PeerRequestOptions::with_timeout(INPUT_TIMEOUT);
        let handle =
            self.peer.send_request_with_option(request, options).await.map_err(service_error_message)?;
        let result: ClientResult = handle.await_response().await.map_err(service_error_message)?;
        serde_json::to_value(result).map_err(|error| error.to_string())
    }

    /// Sends the client a notification.
    pub async fn notify(&self, method: &str, params: Value) {
        let notification = CustomNotification::new(method, Some(params));
        // An error means that the client is gone.
        let _ = self.peer.send_notification(ServerNotification::CustomNotification(notification)).await;
    }

    /// Locks the requests for the next round, which the approver and the tool both add to.
    pub(crate) fn outgoing(&self) -> std::sync::MutexGuard<'_, PendingInputRequests> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client must be able to do to answer a request.
fn required_capabilities(request: &InputRequest) -> ClientCapabilities {
    let mut needed = ClientCapabilities::default();
    match request {
        InputRequest::CreateMessage(_) => needed.sampling = Some(Default::default()),
        InputRequest::ListRoots(_) => needed.roots = Some(Default::default()),
        _ => needed.elicitation = Some(Default::default()),
    }
    needed
}

/// Renders an error of the library as text, for `map_err`.
fn service_error_message(error: ServiceError) -> String {
    error.to_string()
}

/// Derives the era from the protocol version of the request; without a version the client is a legacy one.
pub(crate) fn detect_era(context: &RequestContext<RoleServer>) -> ProtocolEra {
    let modern = rmcp::model::ProtocolVersion::V_2026_07_28;
    match context.protocol_version() {
        Some(version) if version.as_str() >= modern.as_str() => ProtocolEra::Modern,
        _ => ProtocolEra::Legacy,
    }
}
