//! The gate as an MCP server.
//!
//! [`GateServer`] answers the protocol of both eras; every `tools/call` goes through the gate and nothing else runs a
//! tool.
//! It keeps nothing about a connection that a later call depends on: what a session remembers belongs to the
//! principal, so that a client of the stateless era finds it again.

#![expect(deprecated, reason = "legacy clients still set a log level; the library marks that as going away")]

mod conversation;
mod elicitation;
#[cfg(feature = "http")]
mod http;
pub(crate) mod mcp_result;
mod pagination;
mod progress;
mod question_form;
mod server_features;
mod stdio;
mod tasks;

pub use conversation::{ClientConversation, ProtocolEra};
pub use elicitation::ClientApprover;
#[cfg(feature = "http")]
pub use http::{HttpListener, HttpOptions, serve_http};
pub use server_features::{ServerFeatureError, ServerFeatureSet, ServerFeatures, ToolsOnly};
pub use stdio::{serve_stdio, serve_streams};

use crate::line_transport::{RawArguments, ReservedPlace};
use crate::protocol_value::{CompletionRequest, PromptRequest};
use conversation::{PendingInputRequests, RequestStatePayload, detect_era};
use elicitation::{RequestStateBinding, RequestStateSealer};
use mcp_result::StructuredContentMode;
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::ResultType;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, InputResponses, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tasks::McpTasks;
use toolgate_gate::{CallReservation, CallScheduler, Gate, Session, ToolListSnapshot};
use toolgate_proto::{CallRecord, SourceId, ToolCall};

/// How long a client may cache a list. A notification of changes comes sooner.
const LIST_TTL_MS: u64 = 300_000;

/// The name, version and instructions of the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerDescription {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What a model should know about it.
    pub instructions: Option<String>,
    /// Most entries of a list at once.
    pub page_size: usize,
}

impl ServerDescription {
    /// With the usual page size.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            instructions: None,
            page_size: pagination::DEFAULT_PAGE_SIZE,
        }
    }

    /// Sets what a model should know about the server.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets how many entries of a list a client gets at once.
    pub fn with_page_size(mut self, page_size: usize) -> Self {
        self.page_size = page_size;
        self
    }
}

/// One gate behind the protocol. Cheap to clone.
#[derive(Clone)]
pub struct GateServer {
    /// The state that clones and connections share.
    inner: Arc<GateServerInner>,
}

/// The gate, and the state of the protocol in front of it.
struct GateServerInner {
    /// The gate that every call goes through.
    gate: Arc<Gate>,
    /// The session of the principal.
    session: Session,
    /// Resources, prompts and completions, which are not tools.
    features: Arc<dyn ServerFeatures>,
    /// The identity that clients see.
    description: ServerDescription,
    /// The protection of the state that modern clients carry between rounds.
    state_sealer: RequestStateSealer,
    /// The calls that continue as tasks.
    tasks: McpTasks,
    /// Decides when each call goes on.
    scheduler: CallScheduler,
    /// The number of the next call, for its id.
    calls: AtomicU64,
}

impl std::fmt::Debug for GateServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateServer").field("about", &self.inner.description).finish_non_exhaustive()
    }
}

impl GateServer {
    /// Serves a gate on behalf of one principal, whose session this is.
    ///
    /// For questions to reach the client, the gate needs a [`ClientApprover`].
    pub fn new(
        gate: Arc<Gate>,
        session: Session,
        offering: Arc<dyn ServerFeatures>,
        about: ServerDescription,
    ) -> io::Result<Self> {
        let seals = RequestStateSealer::new()?;
        let (tasks, calls) = (McpTasks::default(), AtomicU64::new(1));
        let scheduler = gate.scheduler(&session);
        Ok(Self {
            inner: Arc::new(GateServerInner {
                gate,
                session,
                features: offering,
                description: about,
                state_sealer: seals,
                tasks,
                scheduler,
                calls,
            }),
        })
    }

    /// The gate.
    pub fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// Names the principal in the binding of a sealed state, so that one principal cannot use the state of another.
    fn principal(&self) -> String {
        let principal = self.inner.session.principal();
        format!("{}/{}", principal.edge, principal.name.as_deref().unwrap_or_default())
    }

    /// Opens a round of a request that may need several.
    fn open_round(
        &self,
        context: &RequestContext<RoleServer>,
        (responses, state): (Option<InputResponses>, Option<String>),
        binding: RequestStateBinding<'_>,
    ) -> Result<Arc<ClientConversation>, ErrorData> {
        let given = match detect_era(context) {
            ProtocolEra::Modern => self
                .inner
                .state_sealer
                .open(state.as_deref(), binding)
                .map_err(|problem| ErrorData::invalid_params(problem, None))?,
            ProtocolEra::Legacy => RequestStatePayload::default(),
        };
        Ok(Arc::new(ClientConversation::new(context, responses.unwrap_or_default(), given)))
    }

    /// What the client must be asked before the request can be answered, if anything.
    fn next_round(
        &self,
        conversation: &ClientConversation,
        binding: RequestStateBinding<'_>,
    ) -> Result<Option<rmcp::model::InputRequiredResult>, ErrorData> {
        let PendingInputRequests { requests, carried, wanted, missing } =
            std::mem::take(&mut *conversation.outgoing());
        if let Some(missing) = missing {
            return Err(ErrorData::missing_required_client_capability(missing));
        }
        if !wanted || conversation.era() != ProtocolEra::Modern {
            return Ok(None);
        }
        let sealed = self.inner.state_sealer.seal(requests, carried, binding);
        sealed.map(Some).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// The server as the protocol's library calls it. Private, so that the public server has no method of that library.
#[derive(Clone)]
pub(crate) struct ProtocolHandler(pub(crate) GateServer);

impl std::ops::Deref for ProtocolHandler {
    type Target = GateServer;

    fn deref(&self) -> &GateServer {
        &self.0
    }
}

impl ServerHandler for ProtocolHandler {
    fn get_info(&self) -> ServerConfig {
        let offers = self.inner.features.feature_set();
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_tasks().build();
        if offers.resources {
            let mut resources = rmcp::model::ResourcesCapability::default();
            resources.subscribe = offers.resource_updates.then_some(true);
            resources.list_changed = Some(true);
            capabilities.resources = Some(resources);
        }
        if offers.prompts {
            let mut prompts = rmcp::model::PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        if offers.completions {
            capabilities.completions = Some(Map::new());
        }
        if offers.logging {
            capabilities.logging = Some(Map::new());
        }
        let about = &self.inner.description;
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(about.name.clone(), about.version.clone()));
        info.instructions.clone_from(&about.instructions);
        info
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.inner.features.wait_until_ready().await;
        let cursor = request.and_then(|request| request.cursor);
        let definitions = self.inner.gate.definitions(&self.inner.session);
        let (page, next) = pagination::paginate(
            definitions,
            |tool| tool.name.as_str(),
            cursor.as_deref(),
            self.inner.description.page_size,
        )?;
        let mut result =
            ListToolsResult::with_all_items(page.into_iter().map(mcp_result::to_mcp_tool).collect());
        (result.next_cursor, result.ttl_ms) = (next, Some(LIST_TTL_MS));
        // What is visible may depend on the principal.
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        self.inner.gate.definition(name).map(mcp_result::to_mcp_tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The task of a request is as large as its largest handler, and is moved several times.
        Box::pin(self.answer_call(request, context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.inner.tasks.get(&request.task_id)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.tasks.update(request)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.tasks.cancel(&request.task_id)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let listed = self.inner.features.resources().await;
        let mut all: Vec<_> = listed.into_iter().map(|entry| entry.0).collect();
        all.sort_by(|a, b| a.uri.cmp(&b.uri));
        let (page, next) =
            pagination::paginate(all, |item| &item.uri, cursor.as_deref(), self.inner.description.page_size)?;
        let mut result = ListResourcesResult::with_all_items(page);
        (result.next_cursor, result.ttl_ms) = (next, Some(LIST_TTL_MS));
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let listed = self.inner.features.templates().await;
        let mut all: Vec<_> = listed.into_iter().map(|entry| entry.0).collect();
        all.sort_by(|a, b| a.uri_template.cmp(&b.uri_template));
        let (page, next) = pagination::paginate(
            all,
            |item| &item.uri_template,
            cursor.as_deref(),
            self.inner.description.page_size,
        )?;
        let mut result = ListResourceTemplatesResult::with_all_items(page);
        (result.next_cursor, result.ttl_ms) = (next, Some(LIST_TTL_MS));
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let principal = self.principal();
        let binding = RequestStateBinding {
            principal: &principal,
            method: "resources/read",
            name: &request.uri,
            arguments: None,
        };
        let rounds = (request.input_responses, request.request_state);
        let conversation = self.open_round(&context, rounds, binding)?;
        let reading = self.inner.features.read_resource(&request.uri, Arc::clone(&conversation));
        let read = reading.await;
        match (self.next_round(&conversation, binding)?, read) {
            (Some(round), Err(_)) => Ok(round.into()),
            (_, Ok(value)) => {
                let mut result = value.0;
                result.result_type.get_or_insert(ResultType::COMPLETE);
                result.ttl_ms.get_or_insert(0);
                result.cache_scope.get_or_insert(CacheScope::Private);
                Ok(result.into())
            }
            (_, Err(not_had)) => Err(to_protocol_error(not_had)),
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let listed = self.inner.features.prompts().await;
        let mut all: Vec<_> = listed.into_iter().map(|entry| entry.0).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let (page, next) = pagination::paginate(
            all,
            |item| &item.name,
            cursor.as_deref(),
            self.inner.description.page_size,
        )?;
        let mut result = ListPromptsResult::with_all_items(page);
        (result.next_cursor, result.ttl_ms) = (next, Some(LIST_TTL_MS));
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let principal = self.principal();
        let binding = RequestStateBinding {
            principal: &principal,
            method: "prompts/get",
            name: &request.name,
            arguments: request.arguments.as_ref(),
        };
        let rounds = (request.input_responses.clone(), request.request_state.clone());
        let conversation = self.open_round(&context, rounds, binding)?;
        let asked = PromptRequest(request.clone());
        let got = self.inner.features.get_prompt(&asked, Arc::clone(&conversation)).await;
        match (self.next_round(&conversation, binding)?, got) {
            (Some(round), Err(_)) => Ok(round.into()),
            (_, Ok(value)) => {
                let mut result = value.0;
                result.result_type.get_or_insert(ResultType::COMPLETE);
                Ok(result.into())
            }
            (_, Err(not_had)) => Err(to_protocol_error(not_had)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::new(self.inner.features.complete(&CompletionRequest(request)).await.0))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.inner.features.feature_set().logging {
            return Ok(());
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "logging/setLevel", None))
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_updates_offered("resources/subscribe")
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_updates_offered("resources/unsubscribe")
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // What is not advertised is removed from this by the library.
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.inner.gate.watch_tool_changes();
        let mut seen = self.visible_tools();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let now = self.visible_tools();
                    if now != seen {
                        seen = now;
                        // A filter that leaves tools out answers with an error, which is as it should be.
                        let _ = context.sink().notify_tool_list_changed().await;
                    }
                }
            }
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let server = self.clone();
        let peer = context.peer;
        // Legacy clients are notified without a subscription; the task ends with the connection.
        tokio::spawn(async move {
            let mut changes = server.inner.gate.watch_tool_changes();
            let mut seen = server.visible_tools();
            while changes.changed().await.is_ok() && !peer.is_transport_closed() {
                let now = server.visible_tools();
                if now != seen {
                    seen = now;
                    if peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

impl GateServer {
    /// Makes one call through the gate, and converts its result.
    async fn answer_call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal();
        let binding = RequestStateBinding {
            principal: &principal,
            method: "tools/call",
            name: &request.name,
            arguments: request.arguments.as_ref(),
        };
        let rounds = (request.input_responses, request.request_state);
        let conversation = self.open_round(&context, rounds, binding)?;
        let input = match find_raw_arguments(&context) {
            Some(raw) => raw.text.clone(),
            None => Value::Object(request.arguments.clone().unwrap_or_default()).to_string(),
        };
        self.inner.features.wait_until_ready().await;
        let number = self.inner.calls.fetch_add(1, Ordering::Relaxed);
        let call = ToolCall::new(format!("mcp_{number}"), request.name.as_ref(), input);
        let closed = match self.call(call, Arc::clone(&conversation), &context).await {
            tasks::McpCallDisposition::Finished(closed) => *closed,
            tasks::McpCallDisposition::Task(task) => return Ok(CallToolResponse::Task(*task)),
        };
        match self.next_round(&conversation, binding)? {
            Some(round) if closed.result.is_err() => Ok(round.into()),
            _ => {
                let structured = self.structured_content_mode(&closed.record);
                mcp_result::to_mcp_result(closed.result, structured).map(Into::into)
            }
        }
    }

    /// A text is not sent twice: the structured part goes out where it was promised, or where another server sent it
    /// and it says something else.
    fn structured_content_mode(&self, record: &CallRecord) -> StructuredContentMode {
        let promised =
            || record.tool.as_ref().is_some_and(|tool| self.inner.gate.has_output_schema(tool.as_str()));
        match &record.source {
            Some(SourceId::Mcp { .. }) => StructuredContentMode::Sent,
            _ if promised() => StructuredContentMode::Sent,
            _ => StructuredContentMode::Omitted,
        }
    }

    /// Rejects a subscription as an unknown method if resource updates are not offered.
    fn check_updates_offered(&self, method: &'static str) -> Result<(), ErrorData> {
        if self.inner.features.feature_set().resource_updates {
            return Ok(());
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    /// The tools that a list would show now. A change of rules that changes no visibility needs no notification.
    fn visible_tools(&self) -> ToolListSnapshot {
        self.inner.gate.tool_list_snapshot(&self.inner.session)
    }
}

/// Converts a failed feature request. There is no result type that could carry a refusal here, so it becomes an error.
fn to_protocol_error(not_had: ServerFeatureError) -> ErrorData {
    match not_had {
        ServerFeatureError::Protocol(error) => error.0,
        ServerFeatureError::Round(refusal) => ErrorData::internal_error(refusal.to_string(), None),
    }
}

/// The arguments as they arrived, over whichever transport.
fn find_raw_arguments(context: &RequestContext<RoleServer>) -> Option<&RawArguments> {
    let direct = context.extensions.get::<RawArguments>();
    #[cfg(feature = "http")]
    let direct = direct
        .or_else(|| context.extensions.get::<::http::request::Parts>()?.extensions.get::<RawArguments>());
    direct
}

/// The place that the transport reserved for this call, if it did.
fn find_reservation(context: &RequestContext<RoleServer>) -> Option<CallReservation> {
    context.extensions.get::<ReservedPlace>()?.take()
}
