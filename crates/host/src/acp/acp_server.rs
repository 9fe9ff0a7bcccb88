//! The sessions of one editor.

use super::acp_client::AcpClient;
use super::acp_session::AcpSession;
use super::editor_servers::read_editor_servers;
use super::prompt_content::{prompt_content, stop_reason};
use super::replay_history::replay_history;
use crate::frame_renderer::host_mode_name;
use crate::host_input::HostPrompt;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, CancelNotification,
    ClientCapabilities, CloseSessionRequest, CloseSessionResponse, ContentBlock, Cost, CurrentModeUpdate,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse,
    LoadSessionRequest, LoadSessionResponse, McpCapabilities, McpServer, NewSessionRequest,
    NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities, SessionId, SessionInfo,
    SessionListCapabilities, SessionMode, SessionModeState, SessionResumeCapabilities, SessionUpdate,
    SetSessionModeRequest, SetSessionModeResponse, UnstructuredCommandInput, UsageUpdate,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, ByteStreams, Client, Error};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};
use tokio_util::sync::CancellationToken;
use toolgate_agent::conversation::text_block;
use toolgate_process::{ByteSink, ByteSource};
use toolgate_proto::{AbsPath, Mode};

/// How many sessions one answer lists.
const MAX_LISTED_SESSIONS: usize = 50;
/// How long turns have to end after the editor is gone.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the program around the server does for it.
pub trait AcpRuntime: Send + Sync {
    /// Opens a session: a new one, or one that is stored.
    fn open_session<'a>(
        &'a self,
        request: AcpSessionRequest,
        client: AcpClient,
    ) -> BoxFuture<'a, Result<AcpSession, String>>;

    /// The stored sessions, the newest first: of one directory, or of all.
    fn list_sessions<'a>(
        &'a self,
        cwd: Option<AbsPath>,
    ) -> BoxFuture<'a, Result<Vec<AcpStoredSession>, String>>;

    /// A session was closed: its records are complete.
    fn close_session<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;
}

/// The session that an editor wants.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AcpSessionRequest {
    /// Its id.
    pub id: String,
    /// It is stored, and goes on.
    pub is_stored: bool,
    /// Where it works.
    pub cwd: AbsPath,
    /// Further directories of the workspace.
    pub directories: Vec<PathBuf>,
    /// MCP servers of the editor, as `mcpServers` of a configuration file.
    pub mcp_servers: Map<String, Value>,
}

/// A stored session, as a list shows it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AcpStoredSession {
    /// Its id.
    pub id: String,
    /// The directory that it worked in.
    pub cwd: String,
    /// The start of its first prompt.
    pub title: Option<String>,
    /// When it was written to last.
    pub updated_at: Option<String>,
}

impl AcpStoredSession {
    /// Creates the entry of a session without a title.
    pub fn new(id: impl Into<String>, cwd: impl Into<String>) -> Self {
        Self { id: id.into(), cwd: cwd.into(), title: None, updated_at: None }
    }

    /// Sets the title.
    pub fn with_title(mut self, title: impl Into<Option<String>>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets when the session was written last.
    pub fn with_updated_at(mut self, updated_at: impl Into<Option<String>>) -> Self {
        self.updated_at = updated_at.into();
        self
    }
}

/// Serves one editor.
pub struct AcpServer {
    /// What the handlers share.
    inner: Arc<AcpServerState>,
    /// Ends the connection when it is cancelled.
    stop: CancellationToken,
}

/// What the handlers share.
struct AcpServerState {
    /// Opens and closes sessions.
    runtime: Arc<dyn AcpRuntime>,
    /// The capabilities of the editor, once it has sent them.
    capabilities: Mutex<Arc<ClientCapabilities>>,
    /// The open sessions, by id.
    sessions: Mutex<HashMap<String, Arc<OpenAcpSession>>>,
    /// The turns and openings under way.
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// An open session.
struct OpenAcpSession {
    /// Its agent and its controls.
    session: AcpSession,
    /// The way to the editor.
    client: AcpClient,
    /// A turn is under way.
    is_busy: AtomicBool,
    /// The mode that the editor knows of.
    shown_mode: Mutex<String>,
}

impl AcpServer {
    /// A server; sessions are opened by the runtime.
    pub fn new(runtime: Arc<dyn AcpRuntime>) -> Self {
        let inner = AcpServerState {
            runtime,
            capabilities: Mutex::default(),
            sessions: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self { inner: Arc::new(inner), stop: CancellationToken::new() }
    }

    /// Ends the connection when the token is cancelled, as if the editor had closed its side.
    #[must_use]
    pub fn with_stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Serves the editor until it closes its side; then turns are interrupted and sessions are closed.
    pub async fn run(&self, input: ByteSource, output: ByteSink) -> Result<(), String> {
        let shared = || Arc::clone(&self.inner);
        let [initialize, create, load, list, resume, prompt, mode, close, cancel] =
            std::array::from_fn(|_| shared());
        let connection = Agent
            .v1()
            .name("toolgate")
            .on_receive_request(
                async move |request: InitializeRequest, responder, _| {
                    responder.respond(initialize.initialize(&request))
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: NewSessionRequest, responder, connection| {
                    create.create_session(request, responder, connection)
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: LoadSessionRequest, responder, connection| {
                    load.load_session(request, responder, connection)
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: ListSessionsRequest, responder, _| {
                    list.list_sessions(request, responder)
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: ResumeSessionRequest, responder, connection| {
                    resume.resume_session(request, responder, connection)
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: PromptRequest, responder, _| prompt.prompt(&request, responder),
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: SetSessionModeRequest, responder, _| {
                    responder.respond_with_result(mode.set_mode(&request).await)
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: CloseSessionRequest, responder, _| {
                    close.close_session(&request, responder)
                },
                agent_client_protocol::on_receive_request!(),
            )
            .on_receive_notification(
                async move |request: CancelNotification, _| {
                    if let Some(open) = cancel.find(&request.session_id) {
                        open.session.turn.interrupt(false);
                    }
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .connect_to(ByteStreams::new(output.compat_write(), input.compat()));
        let served = tokio::select! {
            served = connection => served.map_err(|error| error.message),
            () = self.stop.cancelled() => Ok(()),
        };
        self.inner.close_all().await;
        served
    }
}

impl AcpServerState {
    /// What this agent can do.
    fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        *lock(&self.capabilities) = Arc::new(request.client_capabilities.clone());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(
                SessionCapabilities::new()
                    .close(SessionCloseCapabilities::new())
                    .list(SessionListCapabilities::new())
                    .resume(SessionResumeCapabilities::new()),
            );
        // The one version that is spoken here; an editor that cannot speak it ends the connection.
        InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(
            Implementation::new("toolgate", env!("CARGO_PKG_VERSION")).title("toolgate".to_owned()),
        )
    }

    /// A new session.
    fn create_session(
        self: &Arc<Self>,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let state = Arc::clone(self);
        self.spawn(async move {
            let id = toolgate_files::generate_uuid();
            let opened = state
                .open(
                    id.clone(),
                    false,
                    (&request.cwd, request.additional_directories, request.mcp_servers),
                    connection,
                )
                .await;
            // An error of an answer means that the editor is gone.
            let _ = match opened {
                Ok(open) => {
                    let answered = responder.respond(NewSessionResponse::new(id).modes(open.mode_state()));
                    open.send_commands();
                    answered
                }
                Err(error) => responder.respond_with_error(error),
            };
        });
        Ok(())
    }

    /// A stored session: its conversation is replayed before the answer.
    fn load_session(
        self: &Arc<Self>,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let state = Arc::clone(self);
        self.spawn(async move {
            let id = request.session_id.0.to_string();
            let opened = state
                .open(
                    id,
                    true,
                    (&request.cwd, request.additional_directories, request.mcp_servers),
                    connection,
                )
                .await;
            let _ = match opened {
                Ok(open) => {
                    let cwd = open.session.agent.session().workspace().cwd.clone();
                    replay_history(&open.client, &open.session.agent.messages(), &cwd);
                    let answered = responder.respond(LoadSessionResponse::new().modes(open.mode_state()));
                    open.send_commands();
                    answered
                }
                Err(error) => responder.respond_with_error(error),
            };
        });
        Ok(())
    }

    /// A stored session that goes on; unlike a loaded one it is not replayed, because the editor has it.
    fn resume_session(
        self: &Arc<Self>,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let state = Arc::clone(self);
        self.spawn(async move {
            let id = request.session_id.0.to_string();
            let parts = (request.cwd.as_path(), request.additional_directories, request.mcp_servers);
            let _ = match state.open(id, true, parts, connection).await {
                Ok(open) => {
                    let answered = responder.respond(ResumeSessionResponse::new().modes(open.mode_state()));
                    open.send_commands();
                    answered
                }
                Err(error) => responder.respond_with_error(error),
            };
        });
        Ok(())
    }

    /// Lists stored sessions, some at a time.
    fn list_sessions(
        self: &Arc<Self>,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
    ) -> Result<(), Error> {
        let state = Arc::clone(self);
        self.spawn(async move {
            let _ = responder.respond_with_result(state.find_sessions(&request).await);
        });
        Ok(())
    }

    /// One part of the list; the cursor is the place of the next session in it.
    async fn find_sessions(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let invalid = |problem: String| Error::new(Error::invalid_params().code, problem);
        let cwd = match &request.cwd {
            Some(cwd) => Some(
                AbsPath::new(cwd.to_string_lossy().as_ref())
                    .map_err(|problem| invalid(problem.to_string()))?,
            ),
            None => None,
        };
        let first: usize = match &request.cursor {
            Some(cursor) => cursor.parse().map_err(|_| invalid(format!("unknown cursor `{cursor}`")))?,
            None => 0,
        };
        let stored = self.runtime.list_sessions(cwd).await.map_err(invalid)?;
        let next = first.saturating_add(MAX_LISTED_SESSIONS);
        let cursor = (stored.len() > next).then(|| next.to_string());
        let page = stored.into_iter().skip(first).take(MAX_LISTED_SESSIONS);
        let page = page.map(|session| {
            SessionInfo::new(session.id, session.cwd).title(session.title).updated_at(session.updated_at)
        });
        Ok(ListSessionsResponse::new(page.collect()).next_cursor(cursor))
    }

    /// Opens a session and remembers it.
    async fn open(
        &self,
        id: String,
        is_stored: bool,
        (cwd, directories, servers): (&Path, Vec<PathBuf>, Vec<McpServer>),
        connection: ConnectionTo<Client>,
    ) -> Result<Arc<OpenAcpSession>, Error> {
        let invalid = |problem: String| Error::new(Error::invalid_params().code, problem);
        if lock(&self.sessions).contains_key(&id) {
            return Err(invalid(format!("session `{id}` is open already")));
        }
        let cwd =
            AbsPath::new(cwd.to_string_lossy().as_ref()).map_err(|problem| invalid(problem.to_string()))?;
        let mcp_servers = read_editor_servers(&servers).map_err(invalid)?;
        let request = AcpSessionRequest { id: id.clone(), is_stored, cwd, directories, mcp_servers };
        let client = AcpClient::new(connection, id.clone(), Arc::clone(&lock(&self.capabilities)));
        let session = self.runtime.open_session(request, client.clone()).await.map_err(invalid)?;
        let shown_mode = Mutex::new(current_mode(&session));
        let open = Arc::new(OpenAcpSession { session, client, is_busy: AtomicBool::new(false), shown_mode });
        lock(&self.sessions).insert(id, Arc::clone(&open));
        Ok(open)
    }

    /// Starts a turn; the answer comes at its end.
    fn prompt(&self, request: &PromptRequest, responder: Responder<PromptResponse>) -> Result<(), Error> {
        let Some(open) = self.find(&request.session_id) else {
            return responder.respond_with_error(unknown_session(&request.session_id));
        };
        let content = match prompt_content(&request.prompt) {
            Ok(content) => content,
            Err(problem) => {
                return responder.respond_with_error(Error::new(Error::invalid_params().code, problem));
            }
        };
        if open.is_busy.swap(true, Ordering::AcqRel) {
            let problem = "a turn of this session is under way; wait for its end, or cancel it";
            return responder.respond_with_error(Error::new(Error::invalid_request().code, problem));
        }
        // An editor may cancel at once: the turn begins here, before the next message is read.
        let cancel = open.session.turn.begin_turn();
        let is_command = matches!(request.prompt.as_slice(), [ContentBlock::Text(_)]);
        self.spawn(async move {
            let answer = open.run_turn(content, is_command, &cancel).await;
            open.session.turn.end_turn();
            open.is_busy.store(false, Ordering::Release);
            let _ = responder.respond_with_result(answer);
        });
        Ok(())
    }

    /// Changes the mode of a session.
    async fn set_mode(&self, request: &SetSessionModeRequest) -> Result<SetSessionModeResponse, Error> {
        let open = self.find(&request.session_id).ok_or_else(|| unknown_session(&request.session_id))?;
        let wanted = &*request.mode_id.0;
        let answer = open.session.controls.answer("set_permission_mode", &json!({ "mode": wanted })).await;
        match answer {
            Some(Ok(_)) => {
                *lock(&open.shown_mode) = current_mode(&open.session);
                Ok(SetSessionModeResponse::new())
            }
            Some(Err(problem)) => Err(Error::new(Error::invalid_params().code, problem)),
            None => Err(Error::method_not_found()),
        }
    }

    /// Ends a session and its turn.
    fn close_session(
        self: &Arc<Self>,
        request: &CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
    ) -> Result<(), Error> {
        let id = request.session_id.clone();
        let Some(open) = lock(&self.sessions).remove(&*id.0) else {
            return responder.respond_with_error(unknown_session(&id));
        };
        let state = Arc::clone(self);
        open.session.turn.interrupt(false);
        self.spawn(async move {
            open.session.controls.close().await;
            state.runtime.close_session(&id.0).await;
            let _ = responder.respond(CloseSessionResponse::new());
        });
        Ok(())
    }

    /// The editor is gone: no turn goes on, and every record is written.
    async fn close_all(&self) {
        let sessions: Vec<_> = lock(&self.sessions).drain().collect();
        for (_, open) in &sessions {
            open.session.turn.interrupt(true);
        }
        let tasks: Vec<JoinHandle<()>> = lock(&self.tasks).drain(..).collect();
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, futures_util::future::join_all(tasks)).await;
        for (id, open) in sessions {
            open.session.controls.close().await;
            self.runtime.close_session(&id).await;
        }
    }

    /// An open session.
    fn find(&self, id: &SessionId) -> Option<Arc<OpenAcpSession>> {
        lock(&self.sessions).get(&*id.0).cloned()
    }

    /// Runs work on a task of its own, which the end waits for.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !task.is_finished());
        tasks.push(tokio::spawn(work));
    }
}

impl OpenAcpSession {
    /// Runs one turn, and says how it ended.
    async fn run_turn(
        &self,
        content: Vec<Value>,
        is_command: bool,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let session = &self.session;
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = session.controls.prepare_turn() => {}
        }
        let prompt = HostPrompt { content, is_composed: !is_command, ..HostPrompt::text("") };
        let report = match session.controls.run_command(&prompt).await {
            Some(report) => {
                if !report.text.is_empty() {
                    self.client.send_text(report.text.clone());
                }
                report
            }
            None => {
                let mut content = prompt.content;
                // The protocol has no turn that the editor did not begin: what came meanwhile goes with its next prompt.
                content.extend(session.controls.next_event().await.map(text_block));
                match prompt.is_composed {
                    true => session.agent.run_named_turn(&prompt.id, content, cancel).await,
                    false => session.agent.run_user_turn(&prompt.id, content, cancel).await,
                }
            }
        };
        self.send_usage();
        self.send_mode();
        let (reason, message) = stop_reason(&report)?;
        if let Some(message) = message {
            self.client.send_text(message);
        }
        Ok(PromptResponse::new(reason))
    }

    /// Reports how full the context window is, and the cost.
    fn send_usage(&self) {
        let usage = self.session.agent.context_usage();
        let used = usage.context_tokens() + usage.output_tokens;
        let cost = Cost::new(self.session.agent.meter().total_cost_usd(), "USD");
        let update = UsageUpdate::new(used, self.session.agent.settings().context_tokens).cost(cost);
        self.client.update(SessionUpdate::UsageUpdate(update));
    }

    /// Reports a mode that was changed by a command or a call.
    fn send_mode(&self) {
        let mode = current_mode(&self.session);
        let mut shown = lock(&self.shown_mode);
        if *shown != mode {
            shown.clone_from(&mode);
            self.client.update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode)));
        }
    }

    /// Reports the commands.
    fn send_commands(&self) {
        let commands = self.session.commands.iter().map(|command| {
            let text = |key: &str| command.get(key).and_then(Value::as_str).unwrap_or_default();
            let hint = text("argumentHint");
            let input = (!hint.is_empty())
                .then(|| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
            AvailableCommand::new(text("name"), text("description")).input(input)
        });
        let update = AvailableCommandsUpdate::new(commands.collect());
        self.client.update(SessionUpdate::AvailableCommandsUpdate(update));
    }

    /// The modes, and the one in force.
    fn mode_state(&self) -> SessionModeState {
        let modes = self.session.modes.iter().map(|mode| {
            let (name, description) = describe_mode(*mode);
            SessionMode::new(host_mode_name(*mode), name).description(description.to_owned())
        });
        SessionModeState::new(current_mode(&self.session), modes.collect::<Vec<_>>())
    }
}

/// The session is not open.
fn unknown_session(id: &SessionId) -> Error {
    Error::new(Error::invalid_params().code, format!("there is no open session `{}`", id.0))
}

/// The mode in force, by the name that editors know it by.
fn current_mode(session: &AcpSession) -> String {
    let fields = session.controls.init_fields();
    fields.get("permissionMode").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a mode is called, and what it does.
fn describe_mode(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Default => ("Default", "reads are free, everything else asks"),
        Mode::Plan => ("Plan", "only reads, and every change asks"),
        Mode::AcceptEdits => ("Accept edits", "edits inside the workspace are free"),
        Mode::DontAsk => ("Don't ask", "what would ask is refused"),
        Mode::Bypass => ("Bypass", "what would ask is allowed; deny rules still hold"),
        Mode::Deny => ("Deny", "every call is refused"),
    }
}

/// A lock; a panic of another thread cannot leave its value half changed.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
