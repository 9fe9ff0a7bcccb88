//! One session with a host, from its first frame to the end of its input.

use crate::control_channel::ControlChannel;
use crate::frame_renderer::FrameRenderer;
use crate::frame_writer::FrameWriter;
use crate::host_input::{HostInput, HostPrompt, MAX_INPUT_BYTES, parse_host_line};
use crate::permission_answer::TurnInterrupt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use toolgate_agent::{AgentLoop, IdleTimer, TurnReport};
use toolgate_process::{ByteSink, ByteSource};

/// What a session gets of its host.
#[derive(Clone)]
#[non_exhaustive]
pub struct HostHandles {
    /// Requests to the host.
    pub channel: ControlChannel,
    /// The turn under way.
    pub turn: Arc<TurnInterrupt>,
}

/// What the program around a session does for it.
pub trait HostRuntime: Send + Sync {
    /// Builds the agent. `initialize` is the host's request, or null if it sent none. Must be quick: the host waits.
    fn build_agent<'a>(
        &'a self,
        initialize: &'a Value,
        handles: &'a HostHandles,
    ) -> BoxFuture<'a, Result<HostedAgent, String>>;
}

/// A session's agent, and what the host may ask about it.
#[non_exhaustive]
pub struct HostedAgent {
    /// The agent.
    pub agent: Arc<AgentLoop>,
    /// Its frames.
    pub renderer: Arc<FrameRenderer>,
    /// Answers to the host's requests.
    pub controls: Arc<dyn HostControls>,
    /// The answer to `initialize`.
    pub initialize_answer: Value,
}

impl HostedAgent {
    /// An agent with its frames, the answers to requests of the host, and the answer to `initialize`.
    pub fn new(
        agent: Arc<AgentLoop>,
        renderer: Arc<FrameRenderer>,
        controls: Arc<dyn HostControls>,
        initialize_answer: Value,
    ) -> Self {
        Self { agent, renderer, controls, initialize_answer }
    }
}

/// Answers to the host's requests that need the program around the session.
pub trait HostControls: Send + Sync {
    /// Makes everything ready for a turn: waits for servers.
    fn prepare_turn(&self) -> BoxFuture<'_, ()>;

    /// The fields of the `init` frame.
    fn init_fields(&self) -> Map<String, Value>;

    /// The host closed its side: nothing more can be asked, answered or stopped.
    fn input_closed(&self) {}

    /// What has come for the agent since the last look: a schedule that is due, lines of watched commands. It is asked
    /// between turns; what it returns is not returned again, so it must reach the agent.
    fn next_event(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Runs a prompt that is a command (`/compact`); none if it is an ordinary prompt.
    fn run_command<'a>(&'a self, prompt: &'a HostPrompt) -> BoxFuture<'a, Option<TurnReport>>;

    /// Answers a request; none if it is not known.
    fn answer<'a>(
        &'a self,
        subtype: &'a str,
        request: &'a Value,
    ) -> BoxFuture<'a, Option<Result<Value, String>>>;

    /// The session ends.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Drives a session.
pub struct HostDriver {
    /// Builds the agent.
    runtime: Arc<dyn HostRuntime>,
    /// The way to the host, and the turn under way.
    handles: HostHandles,
    /// The output to the host.
    writer: FrameWriter,
    /// The host wants frames about the state of the session.
    reports_state: bool,
    /// Ends the session when it is cancelled.
    stop: CancellationToken,
}

/// How often the driver looks for what has come for the agent between turns.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// What the driver does next.
enum DriverStep {
    Input(Option<HostInput>),
    TurnOver(Option<TurnReport>),
    QuestionsChanged,
    LookForEvents,
    HostLost,
    Stopped,
}

/// The state of a session.
struct DriverState {
    /// The agent, once it is built.
    hosted: Option<Arc<HostedAgent>>,
    /// Prompts that wait for their turn.
    queue: VecDeque<HostPrompt>,
    /// The turn under way.
    turn: Option<JoinHandle<TurnReport>>,
    /// Runs hooks when the host sends nothing for a while after a turn.
    idle: Option<IdleTimer>,
    /// Whether the host may still send something.
    is_input_open: bool,
    /// Whether the last turn failed.
    has_failed: bool,
    /// The answers to requests of the host that are under way, by their id.
    answers: HashMap<String, AbortHandle>,
}

impl DriverState {
    /// Between turns of a session that goes on: the moment for schedules and the like.
    fn is_idle(&self) -> bool {
        self.hosted.is_some() && self.turn.is_none() && self.queue.is_empty() && self.is_input_open
    }

    /// Adds a prompt behind those that come before it.
    fn enqueue(&mut self, prompt: HostPrompt) {
        let is_before = |other: &HostPrompt| other.priority <= prompt.priority;
        let place = self.queue.iter().take_while(|other| is_before(other)).count();
        self.queue.insert(place, prompt);
    }
}

impl HostDriver {
    /// A driver that writes to a stream. Must be called inside a runtime.
    pub fn new(runtime: Arc<dyn HostRuntime>, output: ByteSink, reports_state: bool) -> Self {
        let writer = FrameWriter::start(output);
        let channel = ControlChannel::new(writer.clone());
        let handles = HostHandles { channel, turn: Arc::default() };
        Self { runtime, handles, writer, reports_state, stop: CancellationToken::new() }
    }

    /// Ends the session when the token is cancelled: the turn is interrupted, and everything is closed.
    #[must_use]
    pub fn with_stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// The writer of its frames.
    pub fn writer(&self) -> &FrameWriter {
        &self.writer
    }

    /// Runs the session until the host closes its side and every prompt has its result. True if the last result was
    /// a success. An error is one of the protocol: the session could not begin.
    pub async fn run(&self, input: ByteSource) -> Result<bool, String> {
        let mut frames = read_frames(input, self.handles.channel.clone());
        let mut questions = self.handles.channel.open_questions();
        let mut state = DriverState {
            hosted: None,
            queue: VecDeque::new(),
            turn: None,
            idle: None,
            is_input_open: true,
            has_failed: false,
            answers: HashMap::new(),
        };
        let mut looks = tokio::time::interval(EVENT_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while state.is_input_open || state.turn.is_some() || !state.queue.is_empty() {
            if state.turn.is_none()
                && let Some(prompt) = state.queue.pop_front()
            {
                let hosted = self.ensure_hosted(&mut state).await?;
                if !prompt.wants_turn {
                    hosted.agent.attach(prompt.content);
                    continue;
                }
                self.write_state(&hosted, "running");
                state.idle = None;
                state.turn = Some(self.start_turn(hosted, prompt));
            }
            let step = tokio::select! {
                biased;
                report = wait_for_turn(&mut state.turn) => DriverStep::TurnOver(report),
                () = self.writer.wait_until_lost() => DriverStep::HostLost,
                () = self.stop.cancelled() => DriverStep::Stopped,
                frame = frames.recv(), if state.is_input_open => DriverStep::Input(frame),
                changed = questions.changed(), if self.reports_state && changed_is_open(&state) => match changed {
                    Ok(()) => DriverStep::QuestionsChanged,
                    Err(_) => DriverStep::HostLost,
                },
                _ = looks.tick(), if state.is_idle() => DriverStep::LookForEvents,
            };
            if !self.take_step(step, &mut state, *questions.borrow()).await? {
                break;
            }
        }
        if let Some(turn) = state.turn.take() {
            self.handles.turn.interrupt(false);
            let _ = turn.await;
        }
        if let Some(hosted) = &state.hosted {
            hosted.controls.close().await;
        }
        self.writer.flush().await;
        Ok(!state.has_failed)
    }

    /// False if the session is over.
    async fn take_step(
        &self,
        step: DriverStep,
        state: &mut DriverState,
        questions: usize,
    ) -> Result<bool, String> {
        match step {
            DriverStep::HostLost | DriverStep::Stopped => return Ok(false),
            DriverStep::QuestionsChanged => {
                if let Some(hosted) = &state.hosted {
                    self.write_state(hosted, if questions > 0 { "requires_action" } else { "running" });
                }
            }
            DriverStep::LookForEvents => {
                if let Some(hosted) = &state.hosted
                    && let Some(text) = hosted.controls.next_event().await
                {
                    hosted.renderer.write_notice(text.lines().next().unwrap_or_default());
                    // Not typed by a user: a `/` at its start is not a command.
                    state.queue.push_back(HostPrompt { is_composed: true, ..HostPrompt::text(&text) });
                }
            }
            DriverStep::TurnOver(report) => {
                state.turn = None;
                self.handles.turn.end_turn();
                state.has_failed = report.is_none_or(|report| report.ending.is_error());
                let is_idle = !state.queue.iter().any(|prompt| prompt.wants_turn);
                if let Some(hosted) = state.hosted.as_ref().filter(|_| is_idle) {
                    self.write_state(hosted, "idle");
                    state.idle = state.is_input_open.then(|| hosted.agent.start_idle_timer());
                }
            }
            DriverStep::Input(None) => {
                state.is_input_open = false;
                if let Some(hosted) = &state.hosted {
                    hosted.controls.input_closed();
                }
            }
            DriverStep::Input(Some(HostInput::Prompt(prompt))) => state.enqueue(prompt),
            DriverStep::Input(Some(HostInput::Request { id, request })) => {
                self.take_request(id, request, state).await?;
            }
            DriverStep::Input(Some(HostInput::Cancel(id))) => {
                // The host no longer waits for the answer to a request of its own.
                if let Some(answer) = state.answers.remove(&id) {
                    answer.abort();
                }
            }
            DriverStep::Input(Some(HostInput::Answer(_) | HostInput::Ignored)) => {}
        }
        Ok(true)
    }

    /// Answers a request of the host, or has it answered on a task of its own.
    async fn take_request(&self, id: String, request: Value, state: &mut DriverState) -> Result<(), String> {
        let subtype = request.get("subtype").and_then(Value::as_str).unwrap_or_default().to_owned();
        match subtype.as_str() {
            "initialize" if state.hosted.is_none() => {
                let hosted = self.runtime.build_agent(&request, &self.handles).await;
                match hosted {
                    Ok(hosted) => {
                        self.write_answer(&id, Ok(hosted.initialize_answer.clone()));
                        state.hosted = Some(Arc::new(hosted));
                    }
                    Err(problem) => {
                        self.write_answer(&id, Err(problem.clone()));
                        self.writer.flush().await;
                        return Err(problem);
                    }
                }
            }
            "interrupt" => {
                let wants_all = request.get("cancel_queued") == Some(&Value::Bool(true));
                if wants_all {
                    state.queue.clear();
                }
                self.handles.turn.interrupt(!state.queue.is_empty());
                let queued: Vec<&String> = state.queue.iter().map(|prompt| &prompt.id).collect();
                self.write_answer(&id, Ok(json!({ "still_queued": queued })));
            }
            "cancel_async_message" => {
                let wanted = request.get("message_uuid").and_then(Value::as_str).unwrap_or_default();
                let before = state.queue.len();
                state.queue.retain(|prompt| prompt.id != wanted);
                self.write_answer(&id, Ok(json!({ "cancelled": state.queue.len() < before })));
            }
            _ => {
                let hosted = self.ensure_hosted(state).await?;
                let (writer, subtype) = (self.writer.clone(), subtype.clone());
                let key = id.clone();
                // On a task of its own: an answer may take long, and an interrupt must not wait for it.
                let answer = tokio::spawn(async move {
                    let answer =
                        hosted.controls.answer(&subtype, &request).await.unwrap_or_else(|| {
                            Err(format!("toolgate does not know the request `{subtype}`"))
                        });
                    writer.write(answer_frame(&id, answer));
                });
                state.answers.retain(|_, answer| !answer.is_finished());
                state.answers.insert(key, answer.abort_handle());
            }
        }
        Ok(())
    }

    /// The agent, built now if the host never sent `initialize`.
    async fn ensure_hosted(&self, state: &mut DriverState) -> Result<Arc<HostedAgent>, String> {
        if let Some(hosted) = &state.hosted {
            return Ok(Arc::clone(hosted));
        }
        let hosted = Arc::new(self.runtime.build_agent(&Value::Null, &self.handles).await?);
        state.hosted = Some(Arc::clone(&hosted));
        Ok(hosted)
    }

    /// Starts a turn on a task of its own, so that requests are answered meanwhile.
    fn start_turn(&self, hosted: Arc<HostedAgent>, prompt: HostPrompt) -> JoinHandle<TurnReport> {
        let cancel = self.handles.turn.begin_turn();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = hosted.controls.prepare_turn() => {}
            }
            hosted.renderer.write_init(hosted.controls.init_fields());
            let report = match hosted.controls.run_command(&prompt).await {
                Some(report) => report,
                None if prompt.is_composed => {
                    hosted.agent.run_named_turn(&prompt.id, prompt.content, &cancel).await
                }
                None => hosted.agent.run_user_turn(&prompt.id, prompt.content, &cancel).await,
            };
            let settings = hosted.agent.settings();
            hosted.renderer.write_result(
                &report,
                hosted.agent.meter(),
                settings.context_tokens,
                settings.max_tokens,
            );
            report
        })
    }

    /// Reports the state of the session to a host that asked for it.
    fn write_state(&self, hosted: &HostedAgent, state: &str) {
        if self.reports_state {
            hosted.renderer.write_state(state);
        }
    }

    /// Answers a request.
    fn write_answer(&self, id: &str, answer: Result<Value, String>) {
        self.writer.write(answer_frame(id, answer));
    }
}

/// Whether a change of open questions matters: only while a turn goes on.
fn changed_is_open(state: &DriverState) -> bool {
    state.turn.is_some()
}

/// The end of the turn under way; never, where there is none.
async fn wait_for_turn(turn: &mut Option<JoinHandle<TurnReport>>) -> Option<TurnReport> {
    match turn {
        // An error means that the turn crashed.
        Some(turn) => turn.await.ok(),
        None => std::future::pending().await,
    }
}

/// The frame of an answer.
fn answer_frame(id: &str, answer: Result<Value, String>) -> Value {
    let response = match answer {
        Ok(value) => json!({ "subtype": "success", "request_id": id, "response": value }),
        Err(error) => json!({ "subtype": "error", "request_id": id, "error": error }),
    };
    json!({ "type": "control_response", "response": response })
}

/// Reads frames on a task of its own, so that answers reach their requests whatever the driver does.
fn read_frames(input: ByteSource, channel: ControlChannel) -> mpsc::UnboundedReceiver<HostInput> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut lines = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = MAX_INPUT_BYTES as u64 + 1;
            match (&mut lines).take(limit).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            if text.trim().is_empty() {
                continue;
            }
            match parse_host_line(text.trim()) {
                Ok(HostInput::Answer(response)) => channel.accept_answer(&response),
                Ok(input) => {
                    if let HostInput::Cancel(id) = &input {
                        channel.withdraw(id);
                    }
                    if sender.send(input).is_err() {
                        break;
                    }
                }
                Err(problem) => {
                    // A host that sends what cannot be read may have meant a refusal: nothing of it counts.
                    channel.writer().write(json!({
                        "type": "system", "subtype": "informational", "level": "warning",
                        "content": format!("a line from the host was ignored: {problem}"),
                    }));
                }
            }
        }
        channel.close();
    });
    receiver
}
