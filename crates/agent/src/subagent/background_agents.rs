//! Agents that run beside the one that started them, and messages to agents under way.
//!
//! Kept in the state of the session, which all its agents share; the main loop has no id here.
//! A turn does not end while an agent that it started in the background is under way: it waits, and goes on with the
//! result. So nothing runs that no turn answers for, and an interrupt reaches everything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolgate_gate::Session;

/// How long a wait without a limit sleeps before it looks again.
const MAX_IDLE_WAIT: Duration = Duration::from_secs(3600);

/// The agents of a session that are under way, and their messages.
#[derive(Debug, Default)]
pub struct BackgroundAgents {
    /// What is under way now.
    state: Mutex<BackgroundState>,
    /// Notified when a message arrives or an agent ends.
    changed: Notify,
}

/// What is under way.
#[derive(Debug, Default)]
struct BackgroundState {
    /// The loops with a turn under way, by the id of their agent.
    turns: HashMap<Option<String>, TurnMail>,
    /// The subagents under way, by id.
    running: HashMap<String, RunningAgent>,
    /// How long the end of a turn waits for agents; absent means as long as they take.
    max_wait: Option<Duration>,
}

/// A turn under way.
#[derive(Debug, Default)]
struct TurnMail {
    /// Ends the turn.
    cancel: CancellationToken,
    /// Messages that go to the model with the next request.
    messages: Vec<String>,
}

/// A subagent under way.
#[derive(Debug)]
struct RunningAgent {
    /// Ends it.
    stop: CancellationToken,
    /// The agent that started it.
    parent: Option<String>,
    /// The parent does not wait for it.
    is_background: bool,
}

impl BackgroundAgents {
    /// The agents of a session.
    pub fn of(session: &Session) -> Arc<Self> {
        session.state::<Self>()
    }

    /// Ends a subagent. False if there is none of this id under way.
    pub fn stop(&self, id: &str) -> bool {
        let state = self.lock();
        let running = state.running.get(id);
        running.inspect(|agent| agent.stop.cancel()).is_some()
    }

    /// Limits how long the end of a turn waits for agents in the background: no one who could stop them is there any
    /// more. Those that take longer are ended.
    pub fn limit_wait(&self, max_wait: Duration) {
        self.lock().max_wait = Some(max_wait);
        self.changed.notify_waiters();
    }

    /// The ids of the subagents under way.
    pub fn running(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.lock().running.keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    /// A turn of an agent begins.
    pub(crate) fn begin_turn(&self, agent: Option<&str>, cancel: &CancellationToken) {
        let mail = TurnMail { cancel: cancel.clone(), messages: Vec::new() };
        self.lock().turns.insert(agent.map(str::to_owned), mail);
    }

    /// A turn ended: what it started in the background ends too.
    pub(crate) fn end_turn(&self, agent: Option<&str>) {
        let mut state = self.lock();
        state.turns.remove(&agent.map(str::to_owned));
        let left = state.running.values().filter(|running| running.parent.as_deref() == agent);
        left.filter(|running| running.is_background).for_each(|running| running.stop.cancel());
    }

    /// What ends the turn of an agent, for work that it starts.
    pub(super) fn turn_token(&self, agent: Option<&str>) -> Option<CancellationToken> {
        self.lock().turns.get(&agent.map(str::to_owned)).map(|mail| mail.cancel.child_token())
    }

    /// Whether an agent is under way that this one started.
    pub(super) fn is_running(&self, agent: &str, sender: Option<&str>) -> bool {
        self.lock().running.get(agent).is_some_and(|running| running.parent.as_deref() == sender)
    }

    /// Hands a message to an agent under way, from the one that started it. False if it is not under way, or another's.
    pub(super) fn add_message(&self, agent: &str, sender: Option<&str>, message: String) -> bool {
        let mut state = self.lock();
        if state.running.get(agent).is_none_or(|running| running.parent.as_deref() != sender) {
            return false;
        }
        let Some(mail) = state.turns.get_mut(&Some(agent.to_owned())) else { return false };
        mail.messages.push(message);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// A subagent begins. It counts as under way until the guard is dropped.
    pub(super) fn start(
        self: &Arc<Self>,
        id: &str,
        parent: Option<&str>,
        stop: CancellationToken,
        is_background: bool,
    ) -> RunningAgentGuard {
        let running = RunningAgent { stop, parent: parent.map(str::to_owned), is_background };
        self.lock().running.insert(id.to_owned(), running);
        let report = is_background.then(|| format!("agent {id} ended without a result"));
        RunningAgentGuard { agents: Arc::clone(self), id: id.to_owned(), report }
    }

    /// The messages for the next request of an agent.
    pub(crate) fn take_messages(&self, agent: Option<&str>) -> Vec<String> {
        let mut state = self.lock();
        let mail = state.turns.get_mut(&agent.map(str::to_owned));
        mail.map(|mail| std::mem::take(&mut mail.messages)).unwrap_or_default()
    }

    /// Waits for something that keeps a turn from ending: a message. False at once if none can come any more.
    pub(crate) async fn wait_for_message(&self, agent: Option<&str>, cancel: &CancellationToken) -> bool {
        let since = Instant::now();
        let mut is_over = false;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let rest = {
                let state = self.lock();
                let mail = state.turns.get(&agent.map(str::to_owned));
                if mail.is_some_and(|mail| !mail.messages.is_empty()) {
                    return true;
                }
                let is_open =
                    |running: &RunningAgent| running.is_background && running.parent.as_deref() == agent;
                if !state.running.values().any(is_open) {
                    return false;
                }
                let rest = state.max_wait.map(|max_wait| max_wait.saturating_sub(since.elapsed()));
                if rest.is_some_and(|rest| rest.is_zero()) {
                    // Their ends are waited for: each has a result that says so.
                    state.running.values().filter(|it| is_open(it)).for_each(|it| it.stop.cancel());
                    is_over = true;
                }
                rest.filter(|_| !is_over).unwrap_or(MAX_IDLE_WAIT)
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => return true,
                () = changed => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// A subagent ended; one in the background reports to its parent.
    fn finish(&self, id: &str, report: Option<String>) {
        let mut state = self.lock();
        let Some(running) = state.running.remove(id) else { return };
        if let (Some(report), Some(mail)) = (report, state.turns.get_mut(&running.parent)) {
            mail.messages.push(report);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// What is under way; a panic of another thread cannot leave an entry half written.
    fn lock(&self) -> MutexGuard<'_, BackgroundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subagent under way. However its work ends, a parent that waits for it goes on.
pub(super) struct RunningAgentGuard {
    /// Where it is counted.
    agents: Arc<BackgroundAgents>,
    /// Its id.
    id: String,
    /// The message to the parent.
    report: Option<String>,
}

impl RunningAgentGuard {
    /// Sets the message to the parent for its end.
    pub(super) fn set_report(&mut self, report: String) {
        self.report = Some(report);
    }
}

impl Drop for RunningAgentGuard {
    /// Tells the parent, also after a crash.
    fn drop(&mut self) {
        self.agents.finish(&self.id, self.report.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_turn_waits_for_what_it_started_and_for_nothing_else() {
        let agents = Arc::new(BackgroundAgents::default());
        let cancel = CancellationToken::new();
        agents.begin_turn(None, &cancel);
        assert!(!agents.wait_for_message(None, &cancel).await, "nothing can come");
        let mut guard = agents.start("a", None, CancellationToken::new(), true);
        let other = agents.start("b", Some("a"), CancellationToken::new(), true);
        guard.set_report("done".to_owned());
        let waiting = {
            let (agents, cancel) = (Arc::clone(&agents), cancel.clone());
            tokio::spawn(async move { agents.wait_for_message(None, &cancel).await })
        };
        tokio::task::yield_now().await;
        agents.begin_turn(Some("a"), &cancel);
        assert!(agents.add_message("a", None, "hurry".to_owned()));
        assert!(!agents.add_message("a", Some("b"), "stop".to_owned()), "only the one that started it");
        assert_eq!(agents.take_messages(Some("a")), ["hurry"]);
        drop(guard);
        assert!(waiting.await.unwrap());
        assert_eq!(agents.take_messages(None), ["done"]);
        assert!(!agents.wait_for_message(None, &cancel).await, "the agent of another one does not count");
        drop(other);
        assert!(agents.running().is_empty() && !agents.stop("a"));
    }

    #[tokio::test]
    async fn a_wait_with_a_limit_ends_the_agents_and_waits_for_their_ends() {
        let agents = Arc::new(BackgroundAgents::default());
        let cancel = CancellationToken::new();
        agents.begin_turn(None, &cancel);
        let stop = CancellationToken::new();
        let guard = agents.start("a", None, stop.clone(), true);
        agents.limit_wait(Duration::from_millis(10));
        let ended = tokio::spawn(async move {
            stop.cancelled().await;
            drop(guard);
        });
        assert!(agents.wait_for_message(None, &cancel).await, "its report comes");
        ended.await.unwrap();
        assert_eq!(agents.take_messages(None), ["agent a ended without a result"]);
    }

    #[tokio::test]
    async fn the_end_of_a_turn_ends_what_it_started() {
        let agents = Arc::new(BackgroundAgents::default());
        let cancel = CancellationToken::new();
        agents.begin_turn(None, &cancel);
        let (beside, waited_for) = (CancellationToken::new(), CancellationToken::new());
        let _beside = agents.start("a", None, beside.clone(), true);
        let _waited_for = agents.start("b", None, waited_for.clone(), false);
        cancel.cancel();
        assert!(agents.wait_for_message(None, &cancel).await, "an interrupt ends the wait");
        agents.end_turn(None);
        assert!(beside.is_cancelled() && !waited_for.is_cancelled());
        assert!(!agents.add_message("a", None, "x".to_owned()), "no turn of this agent is under way");
    }
}
