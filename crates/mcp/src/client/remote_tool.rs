//! A tool of another server, as a tool of the gate.
//!
//! Its schema is the server's, and the gate checks arguments against it before anything is sent.
//! Its hints are not trusted, its description is truncated and cleaned, and its results are checked against the
//! schema that the server promised.

use super::connection::{McpConnectionError, OpenConnection, ServerConnection};
#[cfg(feature = "http")]
use super::oauth::AuthChallenge;
use crate::protocol_value::ClientInputRequest;
use crate::server::{ClientConversation, mcp_result};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult,
    InputResponses, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use toolgate_gate::schema::SchemaValidator;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, OutputBlock, Refusal, escape_invisible};

/// Descriptions are part of every prompt: a long one costs, and is where instructions hide.
const MAX_DESCRIPTION_CHARS: usize = 2_048;
/// How many input rounds of one call a server may ask for.
const MAX_INPUT_ROUNDS: usize = 10;

/// Arguments whose shape only the server knows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct RemoteArguments(Map<String, Value>);

/// A tool of another server.
pub(crate) struct RemoteTool {
    /// The server's connection, shared by all of its tools.
    connection: Arc<ServerConnection>,
    /// The name of the tool at the server, without the prefix.
    tool: String,
    /// The specification for the gate, built once when the tool is listed.
    spec: ToolSpec,
    /// The validator of the output schema, if the server promised one.
    output_checker: Option<SchemaValidator>,
}

impl RemoteTool {
    /// Takes a tool as the server describes it.
    pub(crate) fn new(
        link: Arc<ServerConnection>,
        joined: &str,
        tool: &rmcp::model::Tool,
    ) -> Result<Self, String> {
        let said = tool.description.as_deref().unwrap_or_default();
        let mut spec = ToolSpec::new(joined, clean_description(said));
        spec.title =
            clean_description(tool.title.as_deref().unwrap_or(&tool.name)).chars().take(100).collect();
        spec.open_world = true;
        spec.input_schema = Some(Value::Object(tool.input_schema.as_ref().clone()));
        spec.output_schema = tool.output_schema.as_ref().map(|schema| Value::Object(schema.as_ref().clone()));
        spec.timeout = Some(link.entry.call_timeout);
        // A server may make things stricter, never looser.
        spec.requires_interaction = tool
            .meta
            .as_ref()
            .is_some_and(|meta| meta.0.get("anthropic/requiresUserInteraction") == Some(&Value::Bool(true)));
        let promised = spec.output_schema.as_ref().map(SchemaValidator::new).transpose()?;
        Ok(Self { connection: link, tool: tool.name.clone().into_owned(), spec, output_checker: promised })
    }

    /// Makes the call in as many rounds as the server needs: each input request or authorization challenge is followed
    /// by another attempt, up to `MAX_INPUT_ROUNDS`.
    async fn call(&self, input: Map<String, Value>, cleared: &Cleared) -> CallResult {
        let server = &self.connection.entry.name;
        #[cfg_attr(
            not(feature = "http"),
            expect(unused_mut, reason = "only a sign-in opens another connection")
        )]
        let mut live = self.connection.ensure_open().await.map_err(|trouble| trouble.refusal(server))?;
        let conversation = ClientConversation::of(cleared.context(), cleared.call());
        let mut params = CallToolRequestParams::new(self.tool.clone()).with_arguments(input);
        if let Some(conversation) = &conversation {
            resume_call(conversation, &mut params);
        }
        for _ in 0..MAX_INPUT_ROUNDS {
            match self.call_once(&live, params.clone(), cleared).await? {
                RemoteReply::Done(result) => {
                    #[cfg(feature = "http")]
                    self.connection.attempts.reset_attempts();
                    return self.output(result);
                }
                RemoteReply::InputRequired(asked) => {
                    let answers = collect_answers(conversation.as_deref(), &live, &asked, server).await?;
                    params.input_responses = Some(answers);
                    params.request_state = asked.request_state;
                }
                #[cfg(feature = "http")]
                RemoteReply::AuthRequired(challenge, refusal) => {
                    let let_in = self.connection.reauthorize(&live, challenge).await;
                    if !let_in.map_err(|trouble| trouble.refusal(server))? {
                        return Err(refusal);
                    }
                    live = self.connection.ensure_open().await.map_err(|trouble| trouble.refusal(server))?;
                }
            }
        }
        Err(Refusal::new(
            Code::RemoteFailed,
            format!("server `{server}` asked {MAX_INPUT_ROUNDS} times without an end"),
        ))
    }

    /// Sends one request and waits for its reply. Cancellation is forwarded to the server without waiting for it.
    async fn call_once(
        &self,
        live: &OpenConnection,
        params: CallToolRequestParams,
        cleared: &Cleared,
    ) -> Result<RemoteReply, Refusal> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = live.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|error| self.service_error_refusal(&error))?;
        let conversation = ClientConversation::of(cleared.context(), cleared.call());
        let (token, progress) = (handle.progress_token.clone(), cleared.progress().clone());
        let _tracked = live.in_flight.track_call(token, progress, conversation);
        let (peer, id) = (live.peer.clone(), handle.id.clone());
        let answer = tokio::select! {
            answer = handle.await_response() => answer,
            () = cleared.cancel().cancelled() => {
                let cancelled = rmcp::model::CancelledNotificationParam::new(
                    Some(id),
                    Some("the call was cancelled".to_owned()),
                );
                // The call does not wait for the server to notice.
                let _ = peer.notify_cancelled(cancelled).await;
                return Err(Refusal::new(Code::Cancelled, "the call was cancelled"));
            }
        };
        #[cfg(feature = "http")]
        if let Some(challenge) = answer.as_ref().err().and_then(AuthChallenge::from_service_error) {
            let refusal = McpConnectionError::Auth("it does not let us in".to_owned())
                .refusal(&self.connection.entry.name);
            return Ok(RemoteReply::AuthRequired(challenge, refusal));
        }
        match answer.map_err(|error| self.service_error_refusal(&error))? {
            ServerResult::CallToolResult(result) => Ok(RemoteReply::Done(result)),
            ServerResult::InputRequiredResult(asked) => Ok(RemoteReply::InputRequired(asked)),
            _ => {
                Err(self
                    .remote_failure_refusal("it answered with something that is not the result of a tool"))
            }
        }
    }

    /// Converts a failed request: an error of the server is a failure of the tool, anything else means that the server
    /// is unavailable.
    fn service_error_refusal(&self, error: &ServiceError) -> Refusal {
        match error {
            ServiceError::McpError(error) => self.remote_failure_refusal(&escape_invisible(&error.message)),
            ServiceError::TransportClosed => {
                McpConnectionError::Down("it ended while the call was under way".to_owned())
                    .refusal(&self.connection.entry.name)
            }
            other => McpConnectionError::Down(other.to_string()).refusal(&self.connection.entry.name),
        }
    }

    /// Builds the refusal of a call that reached the server and failed there.
    fn remote_failure_refusal(&self, why: &str) -> Refusal {
        Refusal::new(Code::RemoteFailed, format!("server `{}`: {why}", self.connection.entry.name))
    }

    /// Checks and converts a result. A result that breaks the promised schema is a failure, because clients rely on the
    /// schema that the gate shows them.
    fn output(&self, result: CallToolResult) -> CallResult {
        let content: Vec<OutputBlock> =
            result.content.into_iter().filter_map(mcp_result::from_content_block).collect();
        let mut output = Output::new(content);
        if result.is_error == Some(true) {
            let said = output.model_text();
            let said = if said.is_empty() { "it failed and did not say why".to_owned() } else { said };
            return Err(self.remote_failure_refusal(&said));
        }
        match (&self.output_checker, &result.structured_content) {
            (Some(promised), Some(structured)) => promised.check(structured).map_err(|problem| {
                self.remote_failure_refusal(&format!(
                    "its result is not what it promised: {}",
                    problem.reason
                ))
            })?,
            (Some(_), None) => {
                return Err(
                    self.remote_failure_refusal("its result lacks the structured part that it promised")
                );
            }
            (None, _) => {}
        }
        // Without a promise the structured part is a copy for programs; where it says the same, once is enough.
        let repeats =
            |structured: &Value| self.output_checker.is_none() && is_same_content(&output, structured);
        output.structured = result.structured_content.filter(|structured| !repeats(structured));
        Ok(output)
    }
}

/// The outcome of one round.
enum RemoteReply {
    /// The final result, which may still be an error of the tool.
    Done(CallToolResult),
    /// A request for input; the call is repeated with the answers.
    InputRequired(InputRequiredResult),
    /// An authorization challenge, and the refusal to return if it cannot be met.
    #[cfg(feature = "http")]
    AuthRequired(AuthChallenge, Refusal),
}

impl Tool for RemoteTool {
    type Input = RemoteArguments;

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn intent(&self, _: &RemoteArguments, _: &CallContext) -> Intent {
        let effect = Effect::Remote { server: self.connection.entry.name.clone(), tool: self.tool.clone() };
        Intent::new(format!("call `{}` of server `{}`", self.tool, self.connection.entry.name), [effect])
    }

    async fn run(&self, input: RemoteArguments, cleared: Cleared) -> CallResult {
        self.call(input.0, &cleared).await
    }
}

/// Continues a call that the client makes again with its answers.
fn resume_call(conversation: &ClientConversation, params: &mut CallToolRequestParams) {
    let Some(state) = conversation.state().and_then(|state| state.get("remote")) else { return };
    params.request_state = state.get("state").and_then(Value::as_str).map(str::to_owned);
    let names = state.get("names").and_then(Value::as_array).into_iter().flatten();
    let answers: InputResponses = names
        .filter_map(Value::as_str)
        .filter_map(|name| Some((name.to_owned(), conversation.response(name)?.clone())))
        .collect();
    params.input_responses = Some(answers);
}

/// Answers the input requests of a server by asking the client that made the call.
async fn collect_answers(
    conversation: Option<&ClientConversation>,
    live: &OpenConnection,
    asked: &InputRequiredResult,
    server: &str,
) -> Result<InputResponses, Refusal> {
    let requests = asked.input_requests.clone().unwrap_or_default();
    if requests.is_empty() {
        return Ok(InputResponses::new());
    }
    let requests: BTreeMap<String, ClientInputRequest> =
        requests.into_iter().map(|(name, request)| (name, ClientInputRequest(request))).collect();
    let declined = |why: &str| {
        Refusal::new(
            Code::ApprovalUnavailable,
            format!("server `{server}` asks something in return, and {why}"),
        )
    };
    let Some(conversation) = conversation else {
        let Some(answerer) = &live.in_flight.request_handler else {
            return Err(declined("no client is connected that can answer this"));
        };
        let mut answers = InputResponses::new();
        for (name, request) in requests {
            let answer = answerer.answer(server, &request).await;
            answers.insert(name, answer.ok_or_else(|| declined("the answer was no"))?);
        }
        return Ok(answers);
    };
    match conversation.can_ask_inline() {
        false => {
            let names: Vec<&String> = requests.keys().collect();
            let state = json!({ "remote": { "state": asked.request_state, "names": names } });
            Err(conversation.require_input(requests, Some(state)))
        }
        true => {
            let mut answers = InputResponses::new();
            for (name, request) in requests {
                let answer = conversation.ask(request).await.map_err(|problem| declined(&problem))?;
                answers.insert(name, answer);
            }
            Ok(answers)
        }
    }
}

/// Whether the structured part only repeats the text, as a JSON document or as a single string field.
fn is_same_content(output: &Output, structured: &Value) -> bool {
    let [OutputBlock::Text { text }] = output.content.as_slice() else { return false };
    let only = structured.as_object().filter(|map| map.len() == 1).and_then(|map| map.values().next());
    only.and_then(Value::as_str) == Some(text)
        || serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}

/// Makes invisible characters visible and truncates the text, because a description is untrusted and reaches the model.
fn clean_description(text: &str) -> String {
    let mut text = escape_invisible(text);
    if let Some((cut, _)) = text.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_sent_twice() {
        for (text, structured, same) in [
            ("hello", json!({ "content": "hello" }), true),
            (r#"{"a":1,"b":[2]}"#, json!({ "b": [2], "a": 1 }), true),
            ("hello", json!({ "content": "hello", "lines": 1 }), false),
            ("hello", json!({ "content": "other" }), false),
            ("3", json!(3), true),
        ] {
            assert_eq!(is_same_content(&Output::text(text), &structured), same, "{text} {structured}");
        }
    }

    #[test]
    fn descriptions_are_cut_and_cleaned() {
        let cut = clean_description(&"é".repeat(5_000));
        assert_eq!(cut.chars().count(), MAX_DESCRIPTION_CHARS + 1);
        assert_eq!(clean_description("a\u{200b}b\u{e0041}"), "a\\u{200b}b\\u{e0041}");
    }
}
