//! Running the hooks around calls, one after the other, with their start and their end for observers.

use crate::agent_event::{AgentEvent, AgentObserver, AgentOrigin, HookRunNotice, HookRunOutcome};
use crate::agent_hook::{AgentHook, AgentHookAnswer, AgentHookEvent};
use crate::agent_loop::AgentLoop;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The hooks of an agent, and those who watch it.
pub(crate) struct AgentHookRunner<'a> {
    pub(crate) hooks: &'a [Arc<dyn AgentHook>],
    pub(crate) observers: &'a [Arc<dyn AgentObserver>],
    pub(crate) origin: &'a AgentOrigin,
}

impl AgentHookRunner<'_> {
    /// Runs the hooks of an event and joins their answers.
    pub(crate) async fn run(&self, event: AgentHookEvent, mut fields: Map<String, Value>) -> AgentHookAnswer {
        let mut joined = AgentHookAnswer::default();
        if let Some(agent_id) = &self.origin.agent_id {
            fields.insert("agent_id".to_owned(), json!(agent_id));
            fields.insert("agent_type".to_owned(), json!(self.origin.agent_type));
        }
        for hook in self.hooks.iter().filter(|hook| hook.handles(event, &fields)) {
            let run = hook.is_reported().then(|| ReportedHookRun::start(self, event, hook.name()));
            let answer = hook.handle(event, fields.clone()).await;
            if let Some(run) = run {
                match &answer {
                    Ok(answer) => run.end(HookRunOutcome::Success, answer.describe()),
                    Err(problem) => run.end(HookRunOutcome::Error, problem.clone()),
                }
            }
            let answer = answer.unwrap_or_else(|problem| {
                // A guard that failed has approved nothing.
                AgentHookAnswer { block: Some(problem), ..AgentHookAnswer::default() }
            });
            joined.context = match (joined.context, answer.context) {
                (Some(first), Some(second)) => Some(format!("{first}\n{second}")),
                (first, second) => first.or(second),
            };
            joined.block = joined.block.or(answer.block);
            joined.stop = joined.stop.or(answer.stop);
            if let Some(message) = answer.message {
                self.observe(&AgentEvent::Noticed(message));
            }
        }
        joined
    }

    /// Notifies every observer.
    fn observe(&self, event: &AgentEvent) {
        for observer in self.observers {
            observer.observe(self.origin, event);
        }
    }
}

/// A run of a hook whose start was observed. One that is dropped before its end was given up.
struct ReportedHookRun<'a> {
    runner: &'a AgentHookRunner<'a>,
    /// Absent after the end.
    hook: Option<HookRunNotice>,
}

impl<'a> ReportedHookRun<'a> {
    /// Says that a hook starts.
    fn start(runner: &'a AgentHookRunner<'a>, event: AgentHookEvent, name: &str) -> Self {
        let hook = HookRunNotice {
            run: toolgate_files::generate_uuid(),
            event: event.as_str().to_owned(),
            name: name.to_owned(),
        };
        runner.observe(&AgentEvent::HookStarted(hook.clone()));
        Self { runner, hook: Some(hook) }
    }

    /// Says how it ended.
    fn end(mut self, outcome: HookRunOutcome, detail: String) {
        self.report_end(outcome, detail);
    }

    /// Reports the end, once.
    fn report_end(&mut self, outcome: HookRunOutcome, detail: String) {
        if let Some(hook) = self.hook.take() {
            self.runner.observe(&AgentEvent::HookEnded { hook, outcome, detail });
        }
    }
}

impl Drop for ReportedHookRun<'_> {
    fn drop(&mut self) {
        self.report_end(HookRunOutcome::Cancelled, "the turn was interrupted".to_owned());
    }
}

impl AgentLoop {
    /// Runs the hooks of an event one after the other and joins their answers.
    pub async fn run_hooks(&self, event: AgentHookEvent, fields: Map<String, Value>) -> AgentHookAnswer {
        let runner = AgentHookRunner { hooks: &self.hooks, observers: &self.observers, origin: &self.origin };
        runner.run(event, fields).await
    }

    /// Runs the hooks that notify the user. `kind` is a word for them, such as `idle_prompt`.
    pub async fn notify_user(&self, kind: &str, message: &str) {
        let _ = self.run_hooks(AgentHookEvent::Notification, notification_fields(kind, message)).await;
    }
}

/// The fields of a notification.
pub(crate) fn notification_fields(kind: &str, message: &str) -> Map<String, Value> {
    Map::from_iter([("message".to_owned(), json!(message)), ("notification_type".to_owned(), json!(kind))])
}
