//! What a server may ask of us, and tell us, while we are its client.
#![expect(deprecated, reason = "legacy servers still ask for roots; the library marks that as going away")]

use crate::server::Conversation;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, InputRequest, ListRootsResult,
    ProgressNotificationParam, ProgressToken, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleClient};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use toolgate_gate::Progress;
use toolgate_proto::AbsPath;

/// The calls that are under way at one server, and the news from it. Shared with the handler that the library owns.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    roots: Vec<AbsPath>,
    pub(crate) tools_changed: Notify,
    under_way: Mutex<HashMap<ProgressToken, UnderWay>>,
}

#[derive(Debug)]
struct UnderWay {
    progress: Progress,
    conversation: Option<Arc<Conversation>>,
}

impl Desk {
    pub(crate) fn new(roots: Vec<AbsPath>) -> Self {
        Self { roots, ..Self::default() }
    }

    /// Notes a call until the returned guard is dropped.
    pub(crate) fn note(self: &Arc<Self>, token: ProgressToken, progress: Progress) -> Noted {
        let under_way = UnderWay { progress, conversation: Conversation::current() };
        self.under_way().insert(token.clone(), under_way);
        Noted { desk: Arc::clone(self), token }
    }

    /// Whom a question of the server is for. Legacy servers do not say which call it belongs to; where more than one
    /// could be meant, none is.
    fn only_conversation(&self) -> Option<Arc<Conversation>> {
        let under_way = self.under_way();
        let mut conversations = under_way.values();
        match (conversations.next(), conversations.next()) {
            (Some(only), None) => only.conversation.clone(),
            _ => None,
        }
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a call off the desk.
pub(crate) struct Noted {
    desk: Arc<Desk>,
    token: ProgressToken,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.desk.under_way().remove(&self.token);
    }
}

/// What the library calls.
#[derive(Debug, Clone)]
pub(crate) struct DeskHandler(pub(crate) Arc<Desk>);

impl ClientHandler for DeskHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let Some(conversation) = self.0.only_conversation() else { return Ok(declined) };
        let question = InputRequest::Elicitation(ElicitRequest::new(request));
        match conversation.ask(question).await {
            Ok(answer) => Ok(serde_json::from_value(answer).unwrap_or(declined)),
            Err(problem) => {
                tracing::debug!(%problem, "a question of a server was declined");
                Ok(declined)
            }
        }
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(
            self.0.roots.iter().map(|root| Root::new(format!("file://{root}"))).collect(),
        ))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = match self.0.under_way().get(&params.progress_token) {
            Some(under_way) => under_way.progress.clone(),
            None => return,
        };
        let said = params.message.unwrap_or_default();
        match params.total.filter(|total| *total > 0.0) {
            Some(total) => progress.part(params.progress / total, said),
            None => progress.say(said),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }
}
