//! The start and the end of a session, as hooks see them.

use crate::agent_event::AgentEvent;
use crate::agent_hook::{AgentHookAnswer, AgentHookEvent};
use crate::agent_loop::AgentLoop;
use crate::conversation::text_block;
use crate::provider::ModelError;
use serde_json::{Map, Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_proto::AbsPath;

/// How long hooks for the end of a session may take together: the program does not exit before they have ended.
const MAX_END_TIME: Duration = Duration::from_secs(5);

impl AgentLoop {
    /// Runs the hooks for the start of a session, before its first turn. Their text goes to the model with the first
    /// prompt.
    pub(crate) async fn start_session(&self, cancel: &CancellationToken) {
        if self.has_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let source = if self.lock_conversation().is_empty() { "startup" } else { "resume" };
        let fields = Map::from_iter([
            ("source".to_owned(), json!(source)),
            ("model".to_owned(), json!(self.settings().model)),
        ]);
        let answer =
            self.run_hooks_until(AgentHookEvent::SessionStart, fields, cancel).await.unwrap_or_default();
        self.attach(answer.context.map(text_block).into_iter().collect());
        // A session that starts cannot be blocked by a hook, so a block or a stop is only shown.
        for problem in answer.block.into_iter().chain(answer.stop) {
            self.observe(&AgentEvent::Noticed(problem));
        }
        self.report_instructions("session_start", cancel).await;
    }

    /// Runs the hooks for each file with instructions that goes to the model. They decide nothing.
    pub(crate) async fn report_instructions(&self, reason: &str, cancel: &CancellationToken) {
        for file in self.settings().instruction_files {
            let fields = Map::from_iter([
                ("file_path".to_owned(), json!(file.path)),
                ("memory_type".to_owned(), json!(file.kind.as_str())),
                ("load_reason".to_owned(), json!(reason)),
            ]);
            if self.run_hooks_until(AgentHookEvent::InstructionsLoaded, fields, cancel).await.is_none() {
                return;
            }
        }
    }

    /// Runs the hooks for a turn of the main loop that ends because a request failed. They decide nothing.
    pub(crate) async fn report_stop_failure(
        &self,
        error: &ModelError,
        text: &str,
        cancel: &CancellationToken,
    ) {
        if self.origin.agent_id.is_some() {
            return;
        }
        let fields = Map::from_iter([
            ("error".to_owned(), json!(error.kind.as_str())),
            ("error_details".to_owned(), json!(error.to_string())),
            ("last_assistant_message".to_owned(), json!(text)),
        ]);
        let _ = self.run_hooks_until(AgentHookEvent::StopFailure, fields, cancel).await;
    }

    /// Runs the hooks for a change of the working directory, if there was one since `before`. They decide nothing.
    pub(crate) async fn report_cwd_change(&self, before: &AbsPath) {
        let now = self.session.workspace().cwd.clone();
        if now != *before {
            let fields =
                Map::from_iter([("old_cwd".to_owned(), json!(before)), ("new_cwd".to_owned(), json!(now))]);
            let _ = self.run_hooks(AgentHookEvent::CwdChanged, fields).await;
        }
    }

    /// Runs the hooks of an event; none if the turn is interrupted meanwhile. An interrupt must not wait for a hook.
    pub(crate) async fn run_hooks_until(
        &self,
        event: AgentHookEvent,
        fields: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Option<AgentHookAnswer> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answer = self.run_hooks(event, fields) => Some(answer),
        }
    }

    /// Runs the hooks for the end of a session that has begun. `reason` is a word for them, such as `other`.
    pub async fn end_session(&self, reason: &str) {
        if !self.has_started.swap(false, Ordering::Relaxed) {
            return;
        }
        let fields = Map::from_iter([("reason".to_owned(), json!(reason))]);
        let ended =
            tokio::time::timeout(MAX_END_TIME, self.run_hooks(AgentHookEvent::SessionEnd, fields)).await;
        if ended.is_err() {
            self.observe(&AgentEvent::Noticed("hooks for the end of the session took too long".to_owned()));
        }
    }
}
