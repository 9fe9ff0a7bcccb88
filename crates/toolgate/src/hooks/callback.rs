//! Hooks of a host program: it registers them when the session begins, and is called back.
//!
//! A callback that raised an error counts as if it had not decided, unless its registration says otherwise; one that gives
//! no answer in time, or whose host is gone, refuses the call.

use super::configured_hook::{ConfiguredHook, HookAction};
use super::intended_event::find_intended_event;
use super::matcher::{HookMatcher, event_subject};
use super::output::parse_output;
use super::plan::describe_unraised;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolgate_agent::{AgentHook, AgentHookAnswer, AgentHookEvent};
use toolgate_gate::{Gate, Hook, HookAnswer, HookEvent, HookFailure, OnFailure, Session};
use toolgate_host::{ControlChannel, ControlError, host_mode_name};
use toolgate_policy::McpNames;

/// Timeout of a callback without one, in seconds as hosts give them.
const DEFAULT_CALLBACK_TIMEOUT: Duration = Duration::from_secs(60);

/// The events at which a hook decides what happens next. Its input is shown whole or the call is refused: a guard that
/// sees a part of an input has not judged the rest.
const DECIDING_EVENTS: [&str; 4] =
    ["PreToolUse", "PermissionRequest", "UserPromptSubmit", "UserPromptExpansion"];

/// A function of the host program.
#[derive(Debug, Clone)]
pub(crate) struct HostCallback {
    /// The control channel to the host process that owns the function.
    channel: ControlChannel,
    /// The id under which the host registered the function.
    id: String,
    /// An error of the callback refuses the call.
    blocks_on_error: bool,
}

impl HostCallback {
    /// Calls the function and reads its answer. `None` where it raised an error that does not matter.
    async fn request(&self, event: Value, timeout: Duration) -> Result<Option<Value>, HookFailure> {
        let name = event.get("hook_event_name").and_then(Value::as_str).unwrap_or_default();
        let decides = DECIDING_EVENTS.contains(&name);
        let tool_use_id = event.get("tool_use_id").cloned();
        let mut request = Map::from_iter([
            ("subtype".to_owned(), json!("hook_callback")),
            ("callback_id".to_owned(), json!(self.id)),
        ]);
        request.insert("input".to_owned(), event);
        if let Some(id) = tool_use_id {
            request.insert("tool_use_id".to_owned(), id);
        }
        let request = Value::Object(request);
        let asked = async {
            match decides {
                true => self.channel.request(request).await,
                false => self.channel.report(request).await,
            }
        };
        match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(ControlError::Refused(why))) if self.blocks_on_error => Err(HookFailure::Crashed(why)),
            Ok(Err(ControlError::Refused(_))) => Ok(None),
            Ok(Err(problem @ (ControlError::Lost | ControlError::TooLong))) => {
                Err(HookFailure::Unreachable(problem.to_string()))
            }
            Err(_) => Err(HookFailure::TimedOut(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))),
        }
    }

    /// Runs it for a call.
    pub(super) async fn call_hook(
        &self,
        event: HookEvent,
        input: Value,
        timeout: Duration,
    ) -> Result<HookAnswer, HookFailure> {
        match self.request(input, timeout).await? {
            Some(answer) => parse_output(event, answer.to_string().as_bytes()),
            None => Ok(HookAnswer::empty().with_detail("the callback raised an error")),
        }
    }
}

/// The hooks that a host registered.
#[derive(Default)]
pub struct HostHooks {
    /// Those for calls.
    pub call_hooks: Vec<Arc<dyn Hook>>,
    /// Those around calls.
    pub(crate) agent_hooks: Vec<HostAgentHook>,
    /// Events that are never raised, and why.
    pub unraised_events: Vec<(String, String)>,
}

impl HostHooks {
    /// Reads the `hooks` of an `initialize` request.
    pub fn read(hooks: &Value, channel: &ControlChannel) -> Result<Self, String> {
        let mut read = Self::default();
        let Some(events) = hooks.as_object() else { return Ok(read) };
        for (event, groups) in events {
            for group in groups.as_array().into_iter().flatten() {
                read.add_group(event, group, channel)?;
            }
        }
        Ok(read)
    }

    /// Registers each callback of a matcher group, as a call hook or an agent hook depending on the event. Events that
    /// are never raised are collected instead of rejected, so that the caller can warn about them.
    fn add_group(&mut self, event: &str, group: &Value, channel: &ControlChannel) -> Result<(), String> {
        let matcher = group.get("matcher").and_then(Value::as_str);
        let seconds = group.get("timeout").and_then(Value::as_f64);
        let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let timeout = timeout.unwrap_or(DEFAULT_CALLBACK_TIMEOUT);
        let blocks_on_error = group
            .get("onFailure")
            .is_some_and(|on_failure| !on_failure.is_null() && *on_failure != json!("continue"));
        let ids = group.get("hookCallbackIds").and_then(Value::as_array).into_iter().flatten();
        for id in ids.filter_map(Value::as_str) {
            let callback = HostCallback { channel: channel.clone(), id: id.to_owned(), blocks_on_error };
            let call_event = HookEvent::ALL.iter().find(|known| known.as_str() == event);
            let agent_event = AgentHookEvent::ALL.iter().find(|known| known.as_str() == event);
            match (call_event, agent_event) {
                (Some(event), _) => self.call_hooks.push(Arc::new(ConfiguredHook {
                    name: format!("host callback {id}"),
                    event: *event,
                    matcher: parse_tool_matcher(event.as_str(), matcher)?,
                    // A host names its servers only later.
                    unresolved_servers: None,
                    condition: None,
                    action: HookAction::Callback(callback),
                    timeout,
                    on_failure: OnFailure::Deny,
                    once: false,
                    background: false,
                    cwd: None,
                    env: Arc::default(),
                    tasks: TaskTracker::new(),
                    fault: None,
                })),
                (None, Some(event)) => {
                    let matcher = HookMatcher::parse(matcher)?;
                    let place = None;
                    self.agent_hooks.push(HostAgentHook { event: *event, matcher, callback, timeout, place });
                }
                (None, None) => {
                    if let Some(meant) = find_intended_event(event) {
                        return Err(format!("unknown event `{event}` in `hooks`; did you mean `{meant}`?"));
                    }
                    let why = describe_unraised(event).unwrap_or_default();
                    self.unraised_events.push((event.to_owned(), why));
                }
            }
        }
        Ok(())
    }

    /// The hooks around calls, which say where they happen.
    pub fn agent_hooks(self, gate: &Arc<Gate>, session: &Session) -> Vec<Arc<dyn AgentHook>> {
        let place =
            |hook: HostAgentHook| HostAgentHook { place: Some((Arc::clone(gate), session.clone())), ..hook };
        self.agent_hooks.into_iter().map(|hook| Arc::new(place(hook)) as Arc<dyn AgentHook>).collect()
    }
}

/// Parses a matcher of tools. A misspelled one is an error: the callback would screen nothing.
fn parse_tool_matcher(event: &str, matcher: Option<&str>) -> Result<HookMatcher, String> {
    let parsed = HookMatcher::parse_tools(matcher)?;
    match parsed.find_misspellings(&McpNames::default).into_iter().next() {
        Some(misspelled) => Err(format!("`hooks.{event}`: {}", misspelled.problem)),
        None => Ok(parsed),
    }
}

/// A hook of the host around calls.
pub(crate) struct HostAgentHook {
    /// The event that triggers the hook.
    event: AgentHookEvent,
    /// What the event must be about.
    matcher: HookMatcher,
    /// The function of the host that handles the event.
    callback: HostCallback,
    /// Time limit for the answer of the host.
    timeout: Duration,
    /// The gate and session that fill the common event fields. `None` until the gate is built, because hosts register
    /// hooks before that.
    place: Option<(Arc<Gate>, Session)>,
}

impl AgentHook for HostAgentHook {
    fn name(&self) -> &str {
        &self.callback.id
    }

    fn handles(&self, event: AgentHookEvent, fields: &Map<String, Value>) -> bool {
        self.event == event && self.matcher.matches_text(event_subject(event, fields))
    }

    /// Sends the event with the session's common fields. A callback error counts as an empty answer unless the host
    /// registered the callback as blocking.
    fn handle<'a>(
        &'a self,
        event: AgentHookEvent,
        fields: Map<String, Value>,
    ) -> BoxFuture<'a, Result<AgentHookAnswer, String>> {
        Box::pin(async move {
            let place = self.place.as_ref().map(|(gate, session)| (gate, session));
            let input = build_event_input(place, event, fields);
            let answer = self.callback.request(Value::Object(input), self.timeout).await;
            match answer.map_err(|failure| format!("hook `{}` failed: {failure}", self.callback.id))? {
                Some(answer) => Ok(read_agent_answer(event, &answer)),
                None => Ok(AgentHookAnswer::default()),
            }
        })
    }
}

/// The input of a hook around calls: what every event has, and the fields of this one.
pub(super) fn build_event_input(
    place: Option<(&Arc<Gate>, &Session)>,
    event: AgentHookEvent,
    fields: Map<String, Value>,
) -> Map<String, Value> {
    let mut input = Map::new();
    if let Some((gate, session)) = place {
        input.insert("session_id".to_owned(), json!(session.id()));
        input.insert("transcript_path".to_owned(), json!(super::input::transcript_path(session)));
        input.insert("cwd".to_owned(), json!(session.workspace().cwd));
        input.insert("permission_mode".to_owned(), json!(host_mode_name(gate.policy().mode())));
    }
    input.insert("hook_event_name".to_owned(), json!(event.as_str()));
    input.extend(fields);
    input
}

/// Reads the answer of a hook around calls.
pub(super) fn read_agent_answer(event: AgentHookEvent, output: &Value) -> AgentHookAnswer {
    let text = |path: &str| output.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let mut answer = AgentHookAnswer::default();
    answer.context = text("/hookSpecificOutput/additionalContext").or_else(|| text("/additionalContext"));
    answer.message = text("/systemMessage");
    if output.get("decision").and_then(Value::as_str) == Some("block") {
        answer.block = Some(text("/reason").unwrap_or_else(|| "a hook gave no reason".to_owned()));
    }
    let decision = text("/hookSpecificOutput/permissionDecision");
    // Without the user at the model picker a question is a no.
    if event == AgentHookEvent::PreModelSwitch && matches!(decision.as_deref(), Some("deny" | "ask")) {
        let reason = text("/hookSpecificOutput/permissionDecisionReason");
        answer.block = Some(reason.unwrap_or_else(|| "a hook gave no reason".to_owned()));
    }
    if output.get("continue") == Some(&Value::Bool(false)) {
        answer.stop = Some(text("/stopReason").unwrap_or_else(|| "a hook stopped the agent".to_owned()));
    }
    answer
}
