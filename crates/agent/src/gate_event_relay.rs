//! Events of the gate for those who watch an agent: hooks of calls that start and end, and questions that wait for an
//! answer.

use crate::agent_event::{AgentEvent, AgentObserver, AgentOrigin, HookRunNotice, HookRunOutcome};
use crate::agent_hook::{AgentHook, AgentHookEvent};
use crate::run_agent_hooks::{AgentHookRunner, notification_fields};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use toolgate_gate::Sink;
use toolgate_proto::{CallRecord, Event};

/// How a hook of a call failed, in the words of records.
const FAILED_HOOKS: [&str; 7] =
    ["missing", "not_started", "crashed", "timed_out", "unreadable", "unreachable", "misconfigured"];

/// A sink of the gate that hands events on to the observers and the hooks of an agent. A sink and not a subscription, so
/// that an observer learns of a start before the hook runs.
#[derive(Default)]
pub struct GateEventRelay {
    /// The agent, once it is there: the gate is built before it.
    target: OnceLock<RelayTarget>,
}

/// Who gets the events.
struct RelayTarget {
    observers: Vec<Arc<dyn AgentObserver>>,
    hooks: Arc<[Arc<dyn AgentHook>]>,
    /// Runs the hooks for notifications, for which no call waits.
    runtime: Handle,
}

impl fmt::Debug for GateEventRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateEventRelay").finish_non_exhaustive()
    }
}

impl GateEventRelay {
    /// Connects the agent. Must be called inside a runtime; a second agent is ignored.
    pub fn connect(&self, observers: Vec<Arc<dyn AgentObserver>>, hooks: &[Arc<dyn AgentHook>]) {
        let target = RelayTarget { observers, hooks: hooks.into(), runtime: Handle::current() };
        let _ = self.target.set(target);
    }
}

impl RelayTarget {
    /// Notifies every observer.
    fn observe(&self, event: &AgentEvent) {
        for observer in &self.observers {
            observer.observe(&AgentOrigin::default(), event);
        }
    }

    /// Runs the hooks for a question that waits for the user.
    fn notify_of_question(&self, tool: &str) {
        let fields = notification_fields(
            "permission_prompt",
            &format!("toolgate needs your permission to use {tool}"),
        );
        if !self.hooks.iter().any(|hook| hook.handles(AgentHookEvent::Notification, &fields)) {
            return;
        }
        let (hooks, observers) = (Arc::clone(&self.hooks), self.observers.clone());
        self.runtime.spawn(async move {
            let origin = AgentOrigin::default();
            let runner = AgentHookRunner { hooks: &hooks, observers: &observers, origin: &origin };
            runner.run(AgentHookEvent::Notification, fields).await
        });
    }
}

impl Sink for GateEventRelay {
    fn record(&self, _: &CallRecord) {}

    fn accepts_events(&self) -> bool {
        self.target.get().is_some()
    }

    fn handle_event(&self, event: &Event) {
        let Some(target) = self.target.get() else { return };
        match event {
            Event::HookStarted { run, hook, event, .. } => {
                let (run, event, name) = (run.clone(), event.clone(), hook.clone());
                target.observe(&AgentEvent::HookStarted(HookRunNotice { run, event, name }));
            }
            Event::HookEnded { run, record, .. } => {
                let outcome = match record.ended.as_str() {
                    "cancelled" => HookRunOutcome::Cancelled,
                    ended if FAILED_HOOKS.contains(&ended) => HookRunOutcome::Error,
                    _ => HookRunOutcome::Success,
                };
                let (run, event, name) = (run.clone(), record.event.clone(), record.hook.clone());
                let hook = HookRunNotice { run, event, name };
                let detail = record.detail.clone().unwrap_or_else(|| record.ended.clone());
                target.observe(&AgentEvent::HookEnded { hook, outcome, detail });
            }
            Event::Asked { question, .. } => target.notify_of_question(question.tool.as_str()),
            _ => {}
        }
    }
}
