//! Tells the web tools which URLs the user named, for the setting `web.onlyNamedUrls`.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate::agent::{AgentHook, AgentHookAnswer, AgentHookEvent};
use toolgate::{Session, note_user_text};

/// Notes the URLs of every prompt of the user. Prompts of subagents are the model's, and do not count.
struct NamedUrlHook {
    /// The session whose web tools are told.
    session: Session,
}

impl AgentHook for NamedUrlHook {
    fn name(&self) -> &str {
        "named URLs"
    }

    fn handles(&self, event: AgentHookEvent, _: &Map<String, Value>) -> bool {
        event == AgentHookEvent::UserPromptSubmit
    }

    fn is_reported(&self) -> bool {
        false
    }

    fn handle<'a>(
        &'a self,
        _: AgentHookEvent,
        fields: Map<String, Value>,
    ) -> BoxFuture<'a, Result<AgentHookAnswer, String>> {
        Box::pin(async move {
            note_user_text(&self.session, fields.get("prompt").and_then(Value::as_str).unwrap_or_default());
            Ok(AgentHookAnswer::default())
        })
    }
}

/// The hook for the prompts of a session.
pub(super) fn note_named_urls(session: &Session) -> Arc<dyn AgentHook> {
    Arc::new(NamedUrlHook { session: session.clone() })
}
