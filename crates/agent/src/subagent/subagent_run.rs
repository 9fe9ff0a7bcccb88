//! The work of subagents.
//!
//! The loop of a subagent is like the main one: the same gate with the same rules, hooks and approvers, the same meter with
//! the same budget. It sees at most the tools that its parent sees, in a mode that is never less strict, and each of its
//! calls has a record that names the parent's call. Cancelling the parent's call ends it.

use super::agent_definition::{AgentDefinition, AgentTypes, DEFAULT_TYPE};
use super::agent_tool::AgentInput;
use super::agent_worktree::{AgentWorktree, LeftAgentWorktree};
use super::background_agents::BackgroundAgents;
use crate::agent_event::{AgentEvent, AgentObserver, AgentOrigin, TaskNotice};
use crate::agent_hook::{AgentHook, AgentHookEvent};
use crate::agent_loop::AgentLoop;
use crate::agent_parts::AgentParts;
use crate::agent_settings::AgentSettings;
use crate::conversation::{ConversationMessage, text_block};
use crate::provider::{ModelClient, ModelEvent};
use crate::system_prompt::{AgentEnvironment, describe_environment};
use crate::token_usage::{TokenUsage, UsageMeter};
use crate::turn_model::agent_of;
use crate::turn_report::{TurnEnding, TurnReport};
use serde_json::{Map, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{Cleared, Gate, Session, SessionLimits};
use toolgate_proto::{CallResult, Code, Mode, Output, Principal, Refusal};

/// How deep agents may start agents where the caller does not say.
const DEFAULT_MAX_DEPTH: usize = 3;
/// How many subagents may run at once where the caller does not say.
const DEFAULT_MAX_AGENTS: usize = 20;
/// Tools that only the main loop has: they speak to the user.
const MAIN_LOOP_TOOLS: [&str; 5] =
    ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "ScheduleWakeup", "Workflow"];

/// What all subagents of a run share.
#[non_exhaustive]
pub struct SubagentParts {
    /// The boundary.
    pub gate: Weak<Gate>,
    /// The model's provider.
    pub client: ModelClient,
    /// Counts tokens and cost of the whole run.
    pub meter: Arc<UsageMeter>,
    /// Who watches.
    pub observers: Vec<Arc<dyn AgentObserver>>,
    /// Hooks around calls.
    pub hooks: Vec<Arc<dyn AgentHook>>,
    /// The types on offer.
    pub types: AgentTypes,
    /// Where agents work, for their prompt.
    pub environment: AgentEnvironment,
    /// The model and the limits of the run.
    pub settings: AgentSettings,
    /// How deep agents may start agents.
    pub max_depth: Option<usize>,
    /// How many may run at once.
    pub max_agents: Option<usize>,
    /// Whether agents may run beside the one that starts them.
    pub allows_background: bool,
    /// The model of all subagents, over what calls and types say.
    pub model: Option<String>,
}

impl SubagentParts {
    /// Parts without observers and hooks, with the usual limits. Agents may run in the background.
    pub fn new(
        gate: &Arc<Gate>,
        client: ModelClient,
        meter: Arc<UsageMeter>,
        types: AgentTypes,
        environment: AgentEnvironment,
        settings: AgentSettings,
    ) -> Self {
        Self {
            gate: Arc::downgrade(gate),
            client,
            meter,
            observers: Vec::new(),
            hooks: Vec::new(),
            types,
            environment,
            settings,
            max_depth: None,
            max_agents: None,
            allows_background: true,
            model: None,
        }
    }
}

/// What the calls of `Agent` share.
#[derive(Default)]
pub(super) struct SubagentRun {
    /// Set once the gate exists.
    parts: OnceLock<SubagentParts>,
    /// The places for agents that run at once.
    slots: OnceLock<Arc<Semaphore>>,
    /// The model of the main loop, as it was changed last.
    model: Mutex<Option<String>>,
    /// Ended subagents whose work can be taken up again, by their id.
    ended: Mutex<HashMap<String, EndedAgent>>,
}

/// A subagent that has ended.
#[derive(Debug, Clone)]
struct EndedAgent {
    /// Its type.
    type_name: String,
    /// Its text.
    conversation: Vec<ConversationMessage>,
    /// The git worktree that it left with changes.
    worktree: Option<String>,
}

/// What one subagent needs before it starts.
struct SubagentPlan {
    /// Its id.
    agent_id: String,
    /// Its type.
    definition: AgentDefinition,
    /// What it goes on from.
    conversation: Vec<ConversationMessage>,
    /// Its part of the session.
    session: Session,
    /// It works in a git worktree of its own: in the one that it left, or in a new one.
    worktree: Option<Option<String>>,
    /// How the parent learns of it.
    task: TaskNotice,
}

impl SubagentRun {
    /// Connects it to the run, once the gate exists.
    pub(super) fn connect(&self, parts: SubagentParts) {
        let slots = parts.max_agents.unwrap_or(DEFAULT_MAX_AGENTS).max(1);
        let _ = self.slots.set(Arc::new(Semaphore::new(slots)));
        let _ = self.parts.set(parts);
    }

    /// What all subagents share, once it is connected.
    pub(super) fn parts(&self) -> Option<&SubagentParts> {
        self.parts.get()
    }

    /// The main loop changed its model.
    pub(super) fn set_model(&self, model: &str) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.to_owned());
    }

    /// The type of an agent that has ended.
    pub(super) fn ended_type(&self, id: &str) -> Option<String> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.get(id).map(|agent| agent.type_name.clone())
    }

    /// Runs one subagent to its end, or starts it in the background.
    pub(super) async fn run_agent(self: &Arc<Self>, input: AgentInput, cleared: &Cleared) -> CallResult {
        let (Some(parts), Some(slots)) = (self.parts.get(), self.slots.get()) else {
            return Err(Refusal::new(Code::Internal, "the agents of this session are not ready"));
        };
        let gate =
            parts.gate.upgrade().ok_or_else(|| Refusal::new(Code::Cancelled, "the session has ended"))?;
        if let Some(budget) = parts.meter.exhausted_budget() {
            return Err(Refusal::new(Code::ToolFailed, format!("the budget of ${budget:.2} is used up")));
        }
        let session = cleared.context().session.clone();
        let agents = BackgroundAgents::of(&session);
        let parent = agent_of(&session);
        // Only where a turn of the parent is under way can anything wait for the agent.
        let may_run_beside = parts.allows_background && input.run_in_background != Some(false);
        let free = slots.clone().try_acquire_owned().ok();
        // A call that leaves it open waits where it could not start at once.
        let beside = match may_run_beside && (free.is_some() || input.run_in_background == Some(true)) {
            true => agents.turn_token(parent.as_deref()),
            false => None,
        };
        let plan = self.plan_agent(parts, &gate, &input, cleared, beside.is_some())?;
        // An agent that waits for a place while it has one itself could wait for ever.
        let may_wait = beside.is_none() && session.limits().depth == 0;
        let slot = match free {
            Some(slot) => slot,
            None if may_wait => wait_for_slot(slots.clone(), cleared).await?,
            None => {
                return Err(Refusal::new(Code::ToolFailed, "as many agents as allowed are under way")
                    .hint("wait for one of them to end, or do the task yourself"));
            }
        };
        let Some(stop) = beside else {
            let stop = cleared.cancel().child_token();
            let _running = agents.start(&plan.agent_id, parent.as_deref(), stop.clone(), false);
            return self.work(input, plan, gate, (slot, stop)).await;
        };
        let mut running = agents.start(&plan.agent_id, parent.as_deref(), stop.clone(), true);
        let (run, id, what) = (Arc::clone(self), plan.agent_id.clone(), input.description.clone());
        let launched = render_launch(&id, &input);
        tokio::spawn(async move {
            let result = run.work(input, plan, gate, (slot, stop)).await;
            running.set_report(render_report(&id, &what, &result));
        });
        Ok(launched)
    }

    /// The work of a subagent, from its start to its result.
    async fn work(
        &self,
        input: AgentInput,
        plan: SubagentPlan,
        gate: Arc<Gate>,
        (_slot, stop): (OwnedSemaphorePermit, CancellationToken),
    ) -> CallResult {
        let Some(parts) = self.parts.get() else {
            return Err(Refusal::new(Code::Internal, "the agents of this session are not ready"));
        };
        let started = Instant::now();
        let worktree = match &plan.worktree {
            Some(left) => {
                let entered = (plan.agent_id.as_str(), left.as_deref());
                Some(AgentWorktree::enter(&gate, &plan.session, entered, &stop).await?)
            }
            None => None,
        };
        let notify = |event: AgentEvent| {
            for observer in &parts.observers {
                observer.observe(&AgentOrigin::default(), &event);
            }
        };
        notify(AgentEvent::TaskStarted(plan.task.clone()));
        let agent = self.build_loop(parts, &plan, &input, gate, worktree.as_ref());
        let begun = agent.run_hooks(AgentHookEvent::SubagentStart, Map::new()).await;
        let mut prompt = vec![text_block(input.prompt)];
        prompt.extend(begun.context.map(text_block));
        let report = agent.run_turn(prompt, &stop).await;
        let left = match worktree {
            Some(worktree) => Some(worktree.leave(&plan.agent_id).await),
            None => None,
        };
        let (status, result) = conclude(&report, &plan.agent_id, &agent, left.as_ref());
        notify(AgentEvent::TaskEnded {
            task: plan.task,
            status,
            summary: report.text.lines().next().unwrap_or_default().chars().take(200).collect(),
            tool_uses: report.tool_uses,
            usage: report.usage,
            duration: started.elapsed(),
        });
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let ended_agent = EndedAgent {
            type_name: plan.definition.name,
            conversation: agent.messages(),
            worktree: left.and_then(|left| left.path),
        };
        ended.insert(plan.agent_id, ended_agent);
        result
    }

    /// The loop of a subagent, in its worktree if it has one.
    fn build_loop(
        &self,
        parts: &SubagentParts,
        plan: &SubagentPlan,
        input: &AgentInput,
        gate: Arc<Gate>,
        worktree: Option<&AgentWorktree>,
    ) -> AgentLoop {
        let mut environment = parts.environment.clone();
        let mut session = plan.session.clone();
        if let Some(worktree) = worktree {
            environment.cwd = worktree.cwd();
            session = worktree.session(&session);
        }
        let mut settings = self.agent_settings(parts, &plan.definition, input, &environment);
        if !plan.definition.reads_instructions {
            settings.first_context = None;
        }
        let mut observers = parts.observers.clone();
        observers.push(Arc::new(TaskProgress::new(plan.task.clone(), parts.observers.clone())));
        AgentLoop::new(AgentParts {
            gate,
            session,
            client: parts.client.clone(),
            settings,
            meter: Arc::clone(&parts.meter),
            observers,
            hooks: parts.hooks.iter().chain(&plan.definition.agent_hooks.0).cloned().collect(),
            origin: AgentOrigin {
                agent_id: Some(plan.agent_id.clone()),
                agent_type: Some(plan.definition.name.clone()),
                parent_call: Some(plan.task.call.clone()),
            },
            conversation: plan.conversation.clone(),
        })
    }

    /// Refuses a call that no answer of an approver could make work.
    pub(super) fn check_start(&self, input: &AgentInput, parent: &Session) -> Result<(), Refusal> {
        match self.parts.get() {
            Some(parts) => self.find_type(parts, input, parent).map(drop),
            None => Ok(()),
        }
    }

    /// What a call starts: an agent that has ended, or a new one, with its type.
    fn find_type(
        &self,
        parts: &SubagentParts,
        input: &AgentInput,
        parent: &Session,
    ) -> Result<(EndedAgent, AgentDefinition), Refusal> {
        let max_depth = parts.max_depth.unwrap_or(DEFAULT_MAX_DEPTH);
        if parent.limits().depth >= max_depth {
            let reason = format!("agents may start agents only {max_depth} levels deep");
            return Err(Refusal::new(Code::ToolFailed, reason).hint("do the task yourself"));
        }
        let agent = match &input.resume {
            None => EndedAgent {
                type_name: input.subagent_type.clone().unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
                conversation: Vec::new(),
                worktree: None,
            },
            Some(id) => {
                let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.get(id).cloned().ok_or_else(|| {
                    Refusal::new(Code::ToolFailed, format!("there is no agent `{id}` that has ended"))
                        .hint("start a new one without `resume`")
                })?
            }
        };
        let definition = parts.types.get(&agent.type_name).cloned().ok_or_else(|| {
            let names: Vec<&str> = parts.types.iter().map(|known| known.name.as_str()).collect();
            Refusal::new(Code::InvalidInput, format!("there is no agent type `{}`", agent.type_name))
                .hint(format!("the types are {}", names.join(", ")))
        })?;
        Ok((agent, definition))
    }

    /// Everything that is decided before a subagent starts: its type, its tools, its mode, its session.
    fn plan_agent(
        &self,
        parts: &SubagentParts,
        gate: &Gate,
        input: &AgentInput,
        cleared: &Cleared,
        is_background: bool,
    ) -> Result<SubagentPlan, Refusal> {
        let parent = &cleared.context().session;
        let (EndedAgent { conversation, worktree, .. }, definition) = self.find_type(parts, input, parent)?;
        let depth = parent.limits().depth;
        let max_depth = parts.max_depth.unwrap_or(DEFAULT_MAX_DEPTH);
        let only = choose_tools(gate, parent, &definition, depth + 1 < max_depth)?;
        let wanted = match &input.mode {
            Some(mode) => mode.parse::<Mode>().ok(),
            None => definition.mode,
        };
        let agent_id = input.resume.clone().unwrap_or_else(|| toolgate_files::generate_id("agent-"));
        let mut limits = SessionLimits::default().with_tools(only).with_hooks(definition.hooks.clone());
        limits.mode = stricter_mode(parent.limits().mode, wanted);
        limits.depth = depth + 1;
        limits.parent_call = Some(cleared.call().clone());
        let is_isolated = worktree.is_some() || input.isolation.or(definition.isolation).is_some();
        let principal = Principal::new("subagent").with_name(agent_id.clone());
        let session = parent.child(principal, limits);
        let task = TaskNotice {
            task_id: agent_id.clone(),
            call: cleared.call().to_string(),
            description: input.description.clone(),
            agent_type: definition.name.clone(),
            is_background,
        };
        let worktree = is_isolated.then_some(worktree);
        Ok(SubagentPlan { agent_id, definition, conversation, session, worktree, task })
    }

    /// The model, the prompt and the limits of a subagent.
    fn agent_settings(
        &self,
        parts: &SubagentParts,
        definition: &AgentDefinition,
        input: &AgentInput,
        environment: &AgentEnvironment,
    ) -> AgentSettings {
        let mut settings = parts.settings.clone();
        let session_model = self.model.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let named = parts.model.as_ref().or(input.model.as_ref()).or(definition.model.as_ref());
        let named = named.and_then(|name| settings.resolve_model(name)).or(session_model);
        if let Some(model) = named.filter(|model| parts.meter.can_price(model)) {
            settings.model = model;
        }
        settings.system_prompt = format!("{}\n\n{}", definition.prompt, describe_environment(environment));
        settings.max_turns = [input.max_turns, definition.max_turns].into_iter().flatten().min();
        if definition.effort.is_some() {
            settings.effort.clone_from(&definition.effort);
        }
        settings.output_schema = None;
        settings
    }
}

/// Waits until fewer agents than allowed are under way.
async fn wait_for_slot(slots: Arc<Semaphore>, cleared: &Cleared) -> Result<OwnedSemaphorePermit, Refusal> {
    tokio::select! {
        biased;
        () = cleared.cancel().cancelled() => Err(Refusal::new(Code::Cancelled, "the call was cancelled")),
        slot = slots.acquire_owned() => {
            slot.map_err(|_| Refusal::new(Code::Cancelled, "the session has ended"))
        }
    }
}

/// The result of a call that does not wait for its agent.
fn render_launch(id: &str, input: &AgentInput) -> Output {
    let text = format!(
        "the agent works in the background; its result comes to you as a message when it ends, so go on with other work or \
         end your turn\n\nagentId: {id}"
    );
    let structured = json!({
        "status": "async_launched", "agentId": id, "description": input.description, "prompt": input.prompt,
        "outputFile": "",
    });
    Output::text(text).structured(structured)
}

/// The message to the parent at the end of an agent in the background.
fn render_report(id: &str, what: &str, result: &CallResult) -> String {
    let (status, text) = match result {
        Ok(output) => ("completed", output.model_text()),
        Err(refusal) => ("failed", refusal.to_string()),
    };
    format!("<task-notification>\nagent {id} ({what}) {status}\n{text}\n</task-notification>")
}

/// The tools of a subagent: at most those that its parent sees.
fn choose_tools(
    gate: &Gate,
    parent: &Session,
    definition: &AgentDefinition,
    may_start_agents: bool,
) -> Result<BTreeSet<String>, Refusal> {
    let shown: BTreeSet<String> =
        gate.definitions(parent).into_iter().map(|tool| tool.name.as_str().to_owned()).collect();
    let mut only = definition.visible_tools(&shown);
    only.retain(|name| !MAIN_LOOP_TOOLS.contains(&name.as_str()));
    if !may_start_agents {
        only.remove("Agent");
        only.remove("SendMessage");
    }
    if only.is_empty() {
        let reason = format!("agent type `{}` has no tool that this session shows", definition.name);
        return Err(Refusal::new(Code::ToolFailed, reason).hint("choose another type"));
    }
    Ok(only)
}

/// The mode of a subagent: what it wants, as far as that is not less strict than its parent's own limit. What the session's
/// mode is now counts too; the gate sees to that at each call.
fn stricter_mode(limit: Option<Mode>, wanted: Option<Mode>) -> Option<Mode> {
    match (limit, wanted) {
        (Some(limit), Some(wanted)) => Some(limit.stricter(wanted)),
        (limit, wanted) => limit.or(wanted),
    }
}

/// The result of the call.
fn conclude(
    report: &TurnReport,
    agent_id: &str,
    agent: &AgentLoop,
    left: Option<&LeftAgentWorktree>,
) -> (&'static str, CallResult) {
    let note = match &report.ending {
        TurnEnding::Completed => None,
        TurnEnding::Interrupted { .. } => {
            let kept = left.filter(|left| left.path.is_some());
            let kept = kept.map(|left| format!("; {}", left.note)).unwrap_or_default();
            return (
                "stopped",
                Err(Refusal::new(Code::Cancelled, format!("the agent was interrupted{kept}"))),
            );
        }
        other => other.message(),
    };
    let has_text = !report.text.trim().is_empty();
    if let (Some(note), false) = (&note, has_text) {
        let refusal = Refusal::new(Code::ToolFailed, format!("the agent failed: {note}"));
        return (
            "failed",
            Err(refusal.hint("do the task yourself, or start another agent with a smaller one")),
        );
    }
    let mut text =
        if has_text { report.text.clone() } else { "(the agent ended without a message)".to_owned() };
    if let Some(note) = &note {
        text.push_str(&format!("\n\n(the agent did not finish: {note})"));
    }
    if let Some(left) = left {
        text.push_str(&format!("\n\n({})", left.note));
    }
    text.push_str(&format!("\n\nagentId: {agent_id}"));
    let structured = json!({
        "status": "completed",
        "worktreePath": left.and_then(|left| left.path.as_deref()),
        "worktreeBranch": left.and_then(|left| left.branch.as_deref()),
        "agentId": agent_id,
        "content": [{ "type": "text", "text": report.text }],
        "totalToolUseCount": report.tool_uses,
        "totalDurationMs": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        "totalTokens": report.usage.context_tokens() + report.usage.output_tokens,
        "usage": report.usage,
        "model": agent.settings().model,
    });
    let status = if note.is_some() { "failed" } else { "completed" };
    (status, Ok(Output::text(text).structured(structured)))
}

/// Reports what a subagent does.
struct TaskProgress {
    /// How events name the subagent: its id, call, description and type.
    task: TaskNotice,
    /// Receive the events about its progress.
    observers: Vec<Arc<dyn AgentObserver>>,
    /// When it began.
    started: Instant,
    /// How many calls it has made.
    tool_uses: AtomicU64,
    /// The tokens of its answers so far.
    usage: Mutex<TokenUsage>,
}

impl TaskProgress {
    /// The progress of a subagent that begins now.
    fn new(task: TaskNotice, observers: Vec<Arc<dyn AgentObserver>>) -> Self {
        Self {
            task,
            observers,
            started: Instant::now(),
            tool_uses: AtomicU64::new(0),
            usage: Mutex::default(),
        }
    }
}

impl AgentObserver for TaskProgress {
    /// Counts answers, and reports after each call.
    fn observe(&self, _: &AgentOrigin, event: &AgentEvent) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        if let AgentEvent::Streamed(events) = event {
            for event in events {
                if let ModelEvent::Stopped { usage: answer, .. } = event {
                    *usage = *usage + *answer;
                }
            }
        }
        let usage = *usage;
        let AgentEvent::CallFinished(call) = event else { return };
        let tool_uses = self.tool_uses.fetch_add(1, Ordering::Relaxed) + 1;
        let event = AgentEvent::TaskProgressed {
            task: self.task.clone(),
            last_tool: call.name.clone(),
            tool_uses,
            usage,
            duration: self.started.elapsed(),
        };
        for observer in &self.observers {
            observer.observe(&AgentOrigin::default(), &event);
        }
    }
}
