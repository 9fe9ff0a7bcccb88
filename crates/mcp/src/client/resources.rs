//! Resources of the servers: two tools for models, and the gateway's offering for clients.
//!
//! A resource is read through the gate as well: reading is an effect on that server, and rules apply to it.

use super::coordinator::McpCoordinator;
use crate::protocol_value::{
    PromptEntry, PromptRequest, PromptResult, ProtocolError, ResourceEntry, ResourceReadResult,
    ResourceTemplateEntry,
};
use crate::server::{ClientConversation, ServerFeatureError, ServerFeatureSet, ServerFeatures, mcp_result};
use futures_util::future::BoxFuture;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use toolgate_files::GrantedFiles;
use toolgate_gate::{CallContext, CallOptions, Cleared, Gate, RegisterError, Session, Tool, ToolSpec};
use toolgate_proto::{
    CallResult, Code, Effect, Intent, Output, OutputBlock, Refusal, ResourceBody, SourceId, ToolCall,
};

/// How long a list of one server may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Input of [`ListResourcesTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListResourcesInput {
    /// Only those of this server.
    server: Option<String>,
}

/// Lists the resources of the servers.
pub(crate) struct ListResourcesTool(pub(crate) McpCoordinator);

impl Tool for ListResourcesTool {
    type Input = ListResourcesInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ListMcpResourcesTool",
            "Lists the resources that MCP servers offer, with the server of each. Read one with ReadMcpResourceTool.",
        )
        .read_only();
        spec.title = "List MCP resources".to_owned();
        spec.aliases = vec!["ListMcpResources".to_owned()];
        spec
    }

    fn intent(&self, input: &ListResourcesInput, _: &CallContext) -> Intent {
        let servers: Vec<String> = match &input.server {
            Some(server) => vec![server.clone()],
            None => self.0.servers().iter().map(|member| member.connection.entry.name.clone()).collect(),
        };
        let effects: Vec<Effect> = match servers.is_empty() {
            // A check without servers must not be freer than a call in a session that has some.
            true => vec![Effect::Opaque],
            false => servers.iter().map(|server| resource_effect(server, "resources/list")).collect(),
        };
        Intent::new("list the resources of MCP servers", effects)
    }

    /// No diff; the user is not asked about a server that is not there.
    async fn preview(
        &self,
        input: &ListResourcesInput,
        _: &CallContext,
        _: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        input.server.as_ref().map_or(Ok(None), |server| find_server(&self.0, server).map(|_| None))
    }

    async fn run(&self, input: ListResourcesInput, _: Cleared) -> CallResult {
        if let Some(server) = &input.server {
            find_server(&self.0, server)?;
        }
        let found: Vec<Value> = list_all_resources(&self.0)
            .await
            .into_iter()
            .filter(|(server, _)| input.server.as_ref().is_none_or(|wanted| wanted == server))
            .map(|(server, resource)| {
                json!({ "uri": resource.uri, "name": resource.name, "mimeType": resource.mime_type,
                    "description": resource.description, "server": server })
            })
            .collect();
        Ok(Output::text(Value::Array(found).to_string()))
    }
}

/// Input of [`ReadResourceTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadResourceInput {
    /// The server that offers it.
    server: String,
    /// Its address.
    uri: String,
}

/// Reads a resource of a server.
pub(crate) struct ReadResourceTool(pub(crate) McpCoordinator);

impl Tool for ReadResourceTool {
    type Input = ReadResourceInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ReadMcpResourceTool",
            "Reads a resource of an MCP server, by the address that ListMcpResourcesTool gives.",
        )
        .read_only();
        spec.title = "Read MCP resource".to_owned();
        spec.aliases = vec!["ReadMcpResource".to_owned()];
        spec.timeout = Some(Duration::from_secs(60));
        spec
    }

    fn intent(&self, input: &ReadResourceInput, _: &CallContext) -> Intent {
        let effect = resource_effect(&input.server, "resources/read");
        Intent::new(format!("read {} of server `{}`", input.uri, input.server), [effect])
    }

    /// No diff; the user is not asked about a server that is not there.
    async fn preview(
        &self,
        input: &ReadResourceInput,
        _: &CallContext,
        _: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        find_server(&self.0, &input.server).map(|_| None)
    }

    async fn run(&self, input: ReadResourceInput, _: Cleared) -> CallResult {
        let member = find_server(&self.0, &input.server)?;
        let live = member.connection.ensure_open().await.map_err(|trouble| trouble.refusal(&input.server))?;
        let failed =
            |why: String| Refusal::new(Code::RemoteFailed, format!("server `{}`: {why}", input.server));
        match live.peer.read_resource_once(ReadResourceRequestParams::new(input.uri.clone())).await {
            Ok(ReadResourceResponse::Complete(read)) => {
                let content = read.contents.into_iter().filter_map(mcp_result::from_resource).collect();
                Ok(Output::new(content))
            }
            Ok(_) => {
                Err(failed("it asks something in return, which is not passed on for resources".to_owned()))
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// The effect of a request about resources. It is declared for any name, also where no such server is connected: rules
/// are about names, and a check is the same without the server.
fn resource_effect(server: &str, method: &str) -> Effect {
    Effect::Remote { server: server.to_owned(), tool: method.to_owned() }
}

impl McpCoordinator {
    /// Registers the tools for resources in a gate that judges calls and runs none: nothing is connected, and the intents
    /// are those of the same tools in a session.
    ///
    /// ```
    /// use toolgate_gate::{Gate, GateParts};
    /// use toolgate_mcp::client::{CoordinatorOptions, McpCoordinator, PinStore};
    ///
    /// let gate = Gate::new(GateParts::default());
    /// let coordinator = McpCoordinator::new(Vec::new(), CoordinatorOptions::new(PinStore::in_memory()));
    /// coordinator.register_resource_tools(&gate)?;
    /// assert!(gate.definition("ReadMcpResourceTool").is_some());
    /// # Ok::<(), toolgate_gate::RegisterError>(())
    /// ```
    pub fn register_resource_tools(&self, gate: &Gate) -> Result<(), RegisterError> {
        gate.register(SourceId::Builtin, ListResourcesTool(self.clone()))?;
        gate.register(SourceId::Builtin, ReadResourceTool(self.clone()))
    }
}

/// Finds a server by name; the refusal lists the names that exist, so that a model can correct itself.
fn find_server(
    coordinator: &McpCoordinator,
    server: &str,
) -> Result<Arc<super::coordinator::UpstreamServer>, Refusal> {
    let servers = coordinator.servers();
    servers.iter().find(|member| member.connection.entry.name == server).cloned().ok_or_else(|| {
        let names: Vec<&str> = servers.iter().map(|member| member.connection.entry.name.as_str()).collect();
        Refusal::new(Code::BadArgument, format!("there is no server `{server}`"))
            .hint(format!("the servers are {}", names.join(", ")))
    })
}

/// Every resource of every server that is there. One that does not answer in time is left out.
async fn list_all_resources(coordinator: &McpCoordinator) -> Vec<(String, Resource)> {
    list_from_servers(coordinator, |peer| async move { peer.list_all_resources().await.unwrap_or_default() })
        .await
}

/// Lists from all connected servers concurrently. A server that is disconnected or exceeds [`LIST_TIMEOUT`] adds
/// nothing, so one slow server does not fail the whole list.
async fn list_from_servers<T, F>(
    coordinator: &McpCoordinator,
    list: impl Fn(rmcp::service::Peer<rmcp::RoleClient>) -> F,
) -> Vec<(String, T)>
where
    F: Future<Output = Vec<T>>,
{
    let servers = coordinator.servers();
    let lists = servers.iter().filter_map(|member| {
        let live = member.connection.current_open()?;
        let listing = list(live.peer.clone());
        let server = member.connection.entry.name.clone();
        Some(async move { (server, timeout(LIST_TIMEOUT, listing).await.unwrap_or_default()) })
    });
    let lists = futures_util::future::join_all(lists).await;
    lists
        .into_iter()
        .flat_map(|(server, items)| items.into_iter().map(move |item| (server.clone(), item)))
        .collect()
}

/// What the servers behind the gate offer beside tools.
pub struct GatewayFeatures {
    /// The servers whose resources and prompts are offered.
    coordinator: McpCoordinator,
    /// The gate through which resources are read, so that rules apply to them.
    gate: Arc<Gate>,
    /// The session on whose behalf resources are read.
    session: Session,
    /// The counter for the ids of reading calls.
    reads: AtomicU64,
}

impl GatewayFeatures {
    /// Offers what these servers offer, on behalf of this session.
    pub fn new(coordinator: McpCoordinator, gate: Arc<Gate>, session: Session) -> Self {
        Self { coordinator, gate, session, reads: AtomicU64::new(1) }
    }
}

impl ServerFeatures for GatewayFeatures {
    fn wait_until_ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.coordinator.wait_until_ready())
    }

    fn feature_set(&self) -> ServerFeatureSet {
        // What servers have is known only once they are there; an empty list is harmless.
        let any = !self.coordinator.servers().is_empty();
        ServerFeatureSet { resources: any, prompts: any, ..ServerFeatureSet::default() }
    }

    fn resources(&self) -> BoxFuture<'_, Vec<ResourceEntry>> {
        Box::pin(async {
            let all = list_all_resources(&self.coordinator).await;
            all.into_iter().map(|(_, resource)| ResourceEntry(resource)).collect()
        })
    }

    fn templates(&self) -> BoxFuture<'_, Vec<ResourceTemplateEntry>> {
        Box::pin(async {
            let list = |peer: rmcp::service::Peer<rmcp::RoleClient>| async move {
                peer.list_all_resource_templates().await.unwrap_or_default()
            };
            list_from_servers(&self.coordinator, list)
                .await
                .into_iter()
                .map(|(_, template)| ResourceTemplateEntry(template))
                .collect()
        })
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        _: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<ResourceReadResult, ServerFeatureError>> {
        Box::pin(async move {
            let missing = || ProtocolError::resource_not_found(uri, format!("there is no resource `{uri}`"));
            let all = list_all_resources(&self.coordinator).await;
            let server = match all.into_iter().find(|(_, resource)| resource.uri == uri) {
                Some((server, _)) => server,
                // It may come from a template; then only one server can be meant.
                None => match self.coordinator.servers().as_slice() {
                    [only] => only.connection.entry.name.clone(),
                    _ => return Err(missing().into()),
                },
            };
            let number = self.reads.fetch_add(1, Ordering::Relaxed);
            let input = json!({ "server": server, "uri": uri }).to_string();
            let call = ToolCall::new(format!("mcp_read_{number}"), "ReadMcpResourceTool", input);
            let closed = self.gate.call(&self.session, call, CallOptions::default()).await;
            let output = closed.result.map_err(ServerFeatureError::Round)?;
            let contents = output.content.into_iter().filter_map(to_resource_contents).collect();
            Ok(ResourceReadResult(ReadResourceResult::new(contents)))
        })
    }

    fn prompts(&self) -> BoxFuture<'_, Vec<PromptEntry>> {
        Box::pin(async {
            let list = |peer: rmcp::service::Peer<rmcp::RoleClient>| async move {
                peer.list_all_prompts().await.unwrap_or_default()
            };
            let all = list_from_servers(&self.coordinator, list).await;
            all.into_iter()
                .map(|(server, mut prompt)| {
                    prompt.name = format!("mcp__{server}__{}", prompt.name);
                    PromptEntry(prompt)
                })
                .collect()
        })
    }

    fn get_prompt<'a>(
        &'a self,
        request: &'a PromptRequest,
        _: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<PromptResult, ServerFeatureError>> {
        Box::pin(async move {
            let missing =
                || ProtocolError::invalid_params(format!("there is no prompt `{}`", request.name()));
            let parts = request.name().strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            let (server, name) = parts.ok_or_else(missing)?;
            let member = find_server(&self.coordinator, server).map_err(|_| missing())?;
            let live = member
                .connection
                .ensure_open()
                .await
                .map_err(|trouble| ServerFeatureError::Round(trouble.refusal(server)))?;
            let mut onward = GetPromptRequestParams::new(name);
            onward.arguments.clone_from(&request.0.arguments);
            match live.peer.get_prompt_once(onward).await {
                Ok(GetPromptResponse::Complete(prompt)) => Ok(PromptResult(prompt)),
                Ok(_) => Err(ProtocolError::internal("the server asks something in return").into()),
                Err(rmcp::service::ServiceError::McpError(error)) => Err(ProtocolError(error).into()),
                Err(error) => Err(ProtocolError::internal(error.to_string()).into()),
            }
        })
    }
}

/// Converts an embedded resource back to the protocol's type; other blocks are no contents of a resource.
fn to_resource_contents(block: OutputBlock) -> Option<ResourceContents> {
    match block {
        OutputBlock::Embedded { uri, media_type, body } => {
            let contents = match body {
                ResourceBody::Text { text } => ResourceContents::text(text, uri),
                ResourceBody::Blob { blob } => ResourceContents::blob(blob, uri),
            };
            Some(match media_type {
                Some(media_type) => contents.with_mime_type(media_type),
                None => contents,
            })
        }
        OutputBlock::Text { .. }
        | OutputBlock::Image { .. }
        | OutputBlock::Audio { .. }
        | OutputBlock::Resource { .. }
        | _ => None,
    }
}
