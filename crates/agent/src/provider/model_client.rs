//! Requests to one provider, with its API key or bearer token, and its stream as events.

use super::anthropic_event::{AnthropicEventReader, build_anthropic_body};
use super::chat_chunk::{ChatChunkReader, build_chat_body};
use super::model_error::{ModelError, ModelErrorKind};
use super::model_event::ModelEvent;
use super::model_request::ModelRequest;
use super::responses_event::{ResponsesEventReader, build_responses_body};
use super::retry_policy::RetryPolicy;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use toolgate_gate::{ProviderApi, SseReader};
use toolgate_net::{ModelHttpClient, ModelHttpRequest, ModelHttpResponse};
use toolgate_proto::address::is_loopback_url;

/// How long a stream may be silent where the caller does not say.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(180);
/// The version of the Messages API.
const ANTHROPIC_API: &str = "2023-06-01";

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

/// How requests are authenticated at the provider.
#[derive(Clone)]
pub enum ProviderCredential {
    /// Not at all: a server on this machine. Servers that want a header get a placeholder.
    Absent,
    /// A key: `x-api-key` for the Messages API, a bearer token elsewhere.
    ApiKey(SecretText),
    /// A bearer token.
    Bearer(SecretText),
    /// A key that a program prints, asked for again after a refusal.
    Helper(Arc<dyn CredentialHelper>),
}

/// Brings a key from outside.
pub trait CredentialHelper: Send + Sync {
    /// The key. `is_refused` says that the last one was refused.
    fn fetch_key(&self, is_refused: bool) -> BoxFuture<'_, Result<SecretText, String>>;
}

/// A provider.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// Which API it speaks.
    pub api: ProviderApi,
    /// Where it is, up to but without the last part of the path (`https://api.anthropic.com/v1`).
    pub base_url: String,
    /// How its requests are authenticated.
    pub credential: ProviderCredential,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// When to ask again.
    pub retry: RetryPolicy,
    /// How long a stream may be silent.
    pub idle_timeout: Duration,
}

impl ProviderConfig {
    /// A provider with the usual limits.
    pub fn new(api: ProviderApi, base_url: impl Into<String>, credential: ProviderCredential) -> Self {
        let base_url: String = base_url.into();
        Self {
            api,
            base_url: base_url.trim_end_matches('/').to_owned(),
            credential,
            headers: Vec::new(),
            retry: RetryPolicy::default(),
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
        }
    }

    /// Whether the server is on this machine.
    fn is_local(&self) -> bool {
        is_loopback_url(&self.base_url)
    }
}

/// A client of one provider. Clones share its connections.
#[derive(Clone)]
pub struct ModelClient {
    /// Where the service is and how it is spoken to.
    config: Arc<ProviderConfig>,
    /// The connections, opened with the first request.
    http: Arc<OnceLock<ModelHttpClient>>,
}

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClient").field("api", &self.config.api).finish_non_exhaustive()
    }
}

impl ModelClient {
    /// A client. Nothing is connected before the first request.
    pub fn new(config: ProviderConfig) -> Self {
        Self { config: Arc::new(config), http: Arc::default() }
    }

    /// Its provider.
    pub fn config(&self) -> &ProviderConfig {
        &self.config
    }

    /// Sends a request; the answer follows by [`ModelStream::next_events`].
    pub async fn open_stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let first = self.send(request, false).await;
        match (&first, &self.config.credential) {
            // A helper's key may have expired.
            (Err(error), ProviderCredential::Helper(_)) if error.kind == ModelErrorKind::Authentication => {
                self.send(request, true).await
            }
            _ => first,
        }
    }

    /// Sends one attempt. `is_refused` says that the last key was refused.
    async fn send(&self, request: &ModelRequest, is_refused: bool) -> Result<ModelStream, ModelError> {
        let config = &*self.config;
        let (path, body) = match config.api {
            ProviderApi::OpenAiChat => ("chat/completions", build_chat_body(request)),
            ProviderApi::OpenAiResponses => ("responses", build_responses_body(request)),
            _ => ("messages", build_anthropic_body(request)),
        };
        let key = self.fetch_key(is_refused).await?;
        let http_request = ModelHttpRequest {
            url: format!("{}/{path}", config.base_url),
            headers: self.headers(key.as_ref()),
            body: body.to_string().into_bytes(),
        };
        let http = self.http()?;
        let sent = tokio::time::timeout(config.idle_timeout, http.post(http_request)).await;
        let response = sent.map_err(|_| silent_error(config.idle_timeout))?.map_err(ModelError::from)?;
        if !(200..300).contains(&response.status) {
            let (status, headers) = (response.status, response.headers.clone());
            let body = tokio::time::timeout(config.idle_timeout, response.read_error_text()).await;
            let mut error = ModelError::from_response(status, &headers, &body.unwrap_or_default());
            error.message = without_key(&error.message, key.as_ref());
            return Err(error);
        }
        let is_stream = response.headers.get("content-type").is_none_or(|kind| kind.contains("event-stream"));
        let reader = match config.api {
            ProviderApi::OpenAiChat => ModelEventReader::Chat(Box::new(ChatChunkReader::new(request))),
            ProviderApi::OpenAiResponses => {
                ModelEventReader::Responses(Box::new(ResponsesEventReader::new(request)))
            }
            _ => ModelEventReader::Anthropic(Box::default()),
        };
        if !is_stream && config.api != ProviderApi::OpenAiChat {
            return Err(ModelError::new(
                ModelErrorKind::BadStream,
                "the answer of the service is not a stream",
            ));
        }
        Ok(ModelStream {
            response,
            sse: SseReader::default(),
            reader,
            idle_timeout: config.idle_timeout,
            whole_body: (!is_stream).then(Vec::new),
            state: ModelStreamState::Open,
        })
    }

    /// The key; none for a server that needs none.
    async fn fetch_key(&self, is_refused: bool) -> Result<Option<SecretText>, ModelError> {
        match &self.config.credential {
            ProviderCredential::Absent => Ok(None),
            ProviderCredential::ApiKey(key) | ProviderCredential::Bearer(key) => Ok(Some(key.clone())),
            ProviderCredential::Helper(helper) => {
                helper.fetch_key(is_refused).await.map(Some).map_err(|why| {
                    ModelError::new(ModelErrorKind::Authentication, format!("the key helper failed: {why}"))
                })
            }
        }
    }

    /// The headers of a request, the one with the key among them.
    fn headers(&self, key: Option<&SecretText>) -> Vec<(String, String)> {
        let mut headers = self.config.headers.clone();
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
        let key = key.map_or("none", |key| key.0.as_str());
        let is_bearer = matches!(self.config.credential, ProviderCredential::Bearer(_));
        match self.config.api {
            ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses => {
                add("authorization", format!("Bearer {key}"))
            }
            _ => {
                add("anthropic-version", ANTHROPIC_API.to_owned());
                match is_bearer {
                    true => add("authorization", format!("Bearer {key}")),
                    false => add("x-api-key", key.to_owned()),
                }
            }
        }
        add("accept", "text/event-stream".to_owned());
        add("user-agent", concat!("toolgate/", env!("CARGO_PKG_VERSION")).to_owned());
        headers
    }

    /// The HTTP client, made at the first request: most commands never need one.
    fn http(&self) -> Result<ModelHttpClient, ModelError> {
        if let Some(http) = self.http.get() {
            return Ok(http.clone());
        }
        let http = ModelHttpClient::new(self.config.is_local())?;
        Ok(self.http.get_or_init(|| http).clone())
    }
}

/// A message of the service without the key, which some services quote.
fn without_key(message: &str, key: Option<&SecretText>) -> String {
    match key.filter(|key| key.0.len() >= 4) {
        Some(key) => message.replace(&key.0, "[key]"),
        None => message.to_owned(),
    }
}

/// The error of a stream that sent nothing for too long.
fn silent_error(limit: Duration) -> ModelError {
    let message = format!("the service sent nothing for {} s", limit.as_secs());
    ModelError::new(ModelErrorKind::Silent, message)
}

/// An answer on its way.
pub struct ModelStream {
    /// The bytes of the answer.
    response: ModelHttpResponse,
    /// Splits the bytes into events.
    sse: SseReader,
    /// Reads the events of the provider.
    reader: ModelEventReader,
    /// How long the stream may be silent.
    idle_timeout: Duration,
    /// The body of an answer that is one JSON object instead of a stream.
    whole_body: Option<Vec<u8>>,
    state: ModelStreamState,
}

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStream").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Whether more can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelStreamState {
    Open,
    Ended,
}

/// The reader of the provider's events.
enum ModelEventReader {
    Anthropic(Box<AnthropicEventReader>),
    Chat(Box<ChatChunkReader>),
    Responses(Box<ResponsesEventReader>),
}

impl ModelStream {
    /// The next events; `None` after the end of a complete answer. An error means that the rest is lost.
    pub async fn next_events(&mut self) -> Result<Option<Vec<ModelEvent>>, ModelError> {
        let deadline = tokio::time::Instant::now() + self.idle_timeout;
        while self.state == ModelStreamState::Open {
            let mut events = Vec::new();
            // Pings do not count: a server that only says that it is there is silent.
            let chunk = tokio::time::timeout_at(deadline, self.response.next_chunk()).await;
            match chunk.map_err(|_| silent_error(self.idle_timeout))?? {
                Some(chunk) => self.read_chunk(&chunk, &mut events)?,
                None => self.read_end(&mut events)?,
            }
            if let Some(ModelEvent::Failed { kind, message }) =
                events.iter().find(|event| matches!(event, ModelEvent::Failed { .. }))
            {
                return Err(ModelError::from_stream(kind, message));
            }
            if events.contains(&ModelEvent::Ended) {
                self.state = ModelStreamState::Ended;
            }
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    /// Takes bytes as they arrive, cut anywhere.
    fn read_chunk(&mut self, chunk: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if let Some(body) = &mut self.whole_body {
            body.extend_from_slice(chunk);
            return Ok(());
        }
        let (sse, reader) = (&mut self.sse, &mut self.reader);
        let mut problem = None;
        let pushed = sse.push(chunk, |data| {
            if problem.is_none() {
                problem = reader.read_data(data, events).err();
            }
        });
        if pushed.is_err() {
            problem = Some("an event of the stream never ends".to_owned());
        }
        match problem {
            Some(why) => Err(ModelError::new(ModelErrorKind::BadStream, why)),
            None => Ok(()),
        }
    }

    /// The connection is over: an error unless the answer was complete before.
    fn read_end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if let (Some(body), reader) = (self.whole_body.take(), &mut self.reader) {
            let text = String::from_utf8_lossy(&body).into_owned();
            reader.read_data(&text, events).map_err(|why| ModelError::new(ModelErrorKind::BadStream, why))?;
        }
        if let ModelEventReader::Chat(reader) = &mut self.reader {
            reader.end(events);
        }
        if !events.contains(&ModelEvent::Ended) {
            let why = "the stream ended before the answer did";
            return Err(ModelError::new(ModelErrorKind::Connection, why));
        }
        Ok(())
    }
}

impl ModelEventReader {
    /// Reads the data of one event.
    fn read_data(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), String> {
        if data.trim() == "[DONE]" {
            if let Self::Chat(reader) = self {
                reader.end(events);
            }
            return Ok(());
        }
        match self {
            Self::Anthropic(reader) => reader.read_data(data, events),
            Self::Chat(reader) => reader.read_chunk(&parse_event(data)?, events),
            Self::Responses(reader) => reader.read_event(&parse_event(data)?, events),
        }
    }
}

/// The data of an event as a tree of values.
pub(super) fn parse_event(data: &str) -> Result<Value, String> {
    serde_json::from_str(data).map_err(|_| "an event of the stream is not valid JSON".to_owned())
}
