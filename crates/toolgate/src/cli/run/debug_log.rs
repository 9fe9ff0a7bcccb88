//! What an agent does, one line an event, for `--debug` and `--debug-file`. No text of prompts, answers or results is in it.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use toolgate::AbsPath;
use toolgate::agent::{AgentEvent, AgentObserver, AgentOrigin};
use toolgate_files::{FileProblem, LineLog};

/// Writes the lines.
pub(super) struct DebugLog {
    /// The file; none means standard error.
    file: Option<Mutex<LineLog>>,
}

impl DebugLog {
    /// A log to a file, or to standard error.
    pub(super) fn open(file: Option<&AbsPath>) -> Result<Arc<Self>, FileProblem> {
        let file = file.map(LineLog::open).transpose()?.map(Mutex::new);
        Ok(Arc::new(Self { file }))
    }
}

impl AgentObserver for DebugLog {
    fn observe(&self, origin: &AgentOrigin, event: &AgentEvent) {
        let Some(what) = describe(event) else { return };
        let who = origin.agent_id.as_deref().unwrap_or("main");
        let line = format!("{} {who} {what}", toolgate_files::now_millis()).replace('\n', " ");
        match &self.file {
            // A log that cannot be written is no reason to end the work.
            Some(file) => drop(file.lock().unwrap_or_else(PoisonError::into_inner).append(&line)),
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }
}

/// The event in a few words; none if it is not worth a line.
fn describe(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::TurnStarted => "turn started".to_owned(),
        AgentEvent::Requested { model } => format!("request to {model}"),
        AgentEvent::BlockFinished { block, usage, .. } => {
            let kind = block.get("type").and_then(serde_json::Value::as_str).unwrap_or_default();
            format!("block {kind}, {} tokens out", usage.output_tokens)
        }
        AgentEvent::CallFinished(call) => {
            let ended = call.outcome.result.as_ref().err().map(|refusal| format!("{:?}", refusal.code));
            format!("call {} {}: {}", call.name, call.id, ended.as_deref().unwrap_or("ok"))
        }
        AgentEvent::Retrying(notice) => format!(
            "retry {} of {} in {} ms: {}",
            notice.attempt,
            notice.max_retries,
            notice.delay.as_millis(),
            notice.error
        ),
        AgentEvent::RequestFailed(error) => format!("request failed: {error}"),
        AgentEvent::Noticed(text) => format!("notice: {text}"),
        AgentEvent::HookStarted(hook) => format!("hook {} starts: {}", hook.event, hook.name),
        AgentEvent::HookEnded { hook, outcome, .. } => {
            format!("hook {} ended: {}: {}", hook.event, outcome.as_str(), hook.name)
        }
        AgentEvent::Compacted { trigger, tokens_before, .. } => {
            format!("compacted ({trigger}), {tokens_before} tokens before")
        }
        AgentEvent::TaskStarted(task) => format!("agent {} started ({})", task.task_id, task.agent_type),
        AgentEvent::TaskEnded { task, status, .. } => format!("agent {} {status}", task.task_id),
        _ => return None,
    })
}
